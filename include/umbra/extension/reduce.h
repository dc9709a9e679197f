// Reductions: over one axis, or over all axes but one. Of any of the ten dtypes, which the result has, too; they are
// joined in what the dtype is computed in (umbra::ComputeOf), the blocks of a sum of f32, eagerly, in f64.
// An assignment throws umbra::Error if the destination overlaps an operand.
#ifndef UMBRA_EXTENSION_REDUCE_H_
#define UMBRA_EXTENSION_REDUCE_H_

#include <cstring>

#include "umbra/expr_engine.h"

namespace umbra::expr {

namespace detail {

/// Reducers that join packets as they join numbers.
template <typename Reducer>
inline constexpr bool kJoinsPackets =
    std::is_same_v<Reducer, red::sum> || std::is_same_v<Reducer, red::maximum> ||
    std::is_same_v<Reducer, red::minimum> || std::is_same_v<Reducer, red::product>;
/// Elements are joined in DType in blocks of this many, the blocks in Wide: sums of millions of f32
/// stay accurate.
constexpr index_t kReduceBlock = 64;
template <typename Reducer, typename DType>
using Wide = std::conditional_t<std::is_same_v<Reducer, red::sum> && std::is_same_v<DType, float>,
                                double, DType>;

/// Reducers that give a position rather than a value.
template <typename Reducer, typename = void>
inline constexpr bool kGivesPosition = false;
template <typename Reducer>
inline constexpr bool kGivesPosition<Reducer, std::void_t<typename Reducer::Extreme>> = true;
// Does the reducer join elements one by one, from a first value on?
template <typename Reducer, typename = void>
inline constexpr bool kHasInitial = red::detail::kSetsInitial<Reducer>;
template <typename Reducer>
inline constexpr bool kHasInitial<Reducer, std::void_t<decltype(Reducer::template Initial<float>())>> = true;
/// What is joined: for the mean, the sum.
template <typename Reducer, typename = void>
struct JoinOf { using Type = Reducer; };
template <typename Reducer>
struct JoinOf<Reducer, std::void_t<typename Reducer::Join>> { using Type = typename Reducer::Join; };
/// With mask, a reduction to an extreme gives its position.
template <typename Reducer, bool mask>
struct Masked { using Type = Reducer; };
template <>
struct Masked<red::maximum, true> { using Type = red::argmax; };
template <>
struct Masked<red::minimum, true> { using Type = red::argmin; };

/// The position of the first extreme among get(0), ..., get(count - 1).
template <typename Extreme, typename DType, typename Get>
inline index_t ArgExtreme(index_t count, const Get& get) {
  if (count == 0) return 0;
  DType best = get(0);
  index_t at = 0;
  for (index_t k = 1; k < count && best == best; ++k) {
    const DType next = get(k);
    DType joined = best;
    Extreme::Reduce(joined, next);
    if (joined == best) continue;
    best = joined;
    at = k;
  }
  return at;
}

template <typename Reducer>
struct Join {
  template <typename V>
  static V join(V a, V b) {
    Reducer::Reduce(a, b);
    return a;
  }
};

/// The join of get(0), ..., get(count - 1), in every lane on its own.
template <typename Reducer, typename V, typename Get>
inline V ReduceSteps(index_t count, const Get& get) {
  using DType = simd::Elem<V>;
  using Total = Wide<Reducer, DType>;
  constexpr int kSize = simd::kWidth<V>;
  const V initial = simd::fill<V>(red::InitialOf<Reducer, DType>());
  V joined = initial;
  for (index_t k = 0; k < count && k < kReduceBlock; ++k) Reducer::Reduce(joined, get(k));
  if (count <= kReduceBlock) return joined;
  DType lanes[kSize];
  Total totals[kSize];
  std::memcpy(lanes, &joined, sizeof lanes);
  for (int i = 0; i < kSize; ++i) totals[i] = static_cast<Total>(lanes[i]);
  for (index_t first = kReduceBlock; first < count; first += kReduceBlock) {
    joined = initial;
    for (index_t k = first; k < count && k < first + kReduceBlock; ++k)
      Reducer::Reduce(joined, get(k));
    std::memcpy(lanes, &joined, sizeof lanes);
    for (int i = 0; i < kSize; ++i) Reducer::Reduce(totals[i], static_cast<Total>(lanes[i]));
  }
  for (int i = 0; i < kSize; ++i) lanes[i] = static_cast<DType>(totals[i]);
  std::memcpy(&joined, lanes, sizeof lanes);
  return joined;
}

/// The join of the first n elements of row y.
template <typename Reducer, typename E, typename DType>
inline Wide<Reducer, ComputeOf<DType>> ReduceRow(const Plan<E, DType>& plan, index_t y, index_t n) {
  using Total = Wide<Reducer, ComputeOf<DType>>;
  Total total = red::InitialOf<Reducer, Total>();
  if constexpr (PacketCheck<E>::kPass && kJoinsPackets<Reducer>) {
    using V = packet::Vector<DType>;
    constexpr index_t kSize = simd::kWidth<V>, kParts = 4;
    const DType initial = red::InitialOf<Reducer, DType>();
    for (index_t x = 0; x < n;) {
      V parts[kParts];
      for (V& part : parts) part = simd::fill<V>(initial);
      const index_t end =
          x + kReduceBlock * kParts * kSize < n ? x + kReduceBlock * kParts * kSize : n;
      for (; x + kParts * kSize <= end; x += kParts * kSize)
        for (index_t k = 0; k < kParts; ++k)
          Reducer::Reduce(parts[k], plan.template EvalPacket<V>(y, x + k * kSize, kSize));
      for (int k = 0; x < end; ++k, x += kSize) {
        const index_t lanes = end - x < kSize ? end - x : kSize;
        Reducer::Reduce(parts[k],
                        simd::keep(plan.template EvalPacket<V>(y, x, lanes), lanes, initial));
      }
      Reducer::Reduce(total, static_cast<Total>(simd::fold<Join<Reducer>>(parts)));
    }
  } else {
    for (index_t x = 0; x < n; ++x)
      Reducer::Reduce(total, static_cast<Total>(ComputeOf<DType>(plan.Eval(y, x))));
  }
  return total;
}

}  // namespace detail

/// A reduction over axes that lie side by side: an element of the result is the join of `count_`
/// elements of the source. The source's linear index is
/// (outer * count + k) * inner + rest for the result's linear index outer * inner + rest.
template <typename Reducer, typename SrcExp, typename DType, int dimsrc, int dimdst, bool keepdim>
struct ReduceWithAxisExp
    : MakeTensorExp<ReduceWithAxisExp<Reducer, SrcExp, DType, dimsrc, dimdst, keepdim>, SrcExp,
                    dimdst, DType> {
  SrcExp src_;  ///< what is reduced
  int axis_;  ///< the axis that is joined
  index_t count_, inner_, last_;  ///< see above; last_: the extent of the source's last axis
  /// `src` reduced along `axis`. Throws umbra::Error if it does not have the axis.
  ReduceWithAxisExp(const SrcExp& src, int axis) : src_(src), axis_(axis) {
    const Shape<dimsrc> shape = ShapeCheck<dimsrc, SrcExp>::Check(src);
    Require(axis >= 0 && axis < dimsrc, "reduction over axis ", axis, " of shape ", shape,
            ": its axes are 0 to ", dimsrc - 1);
    count_ = shape[axis];
    inner_ = shape.ProdShape(axis + 1, dimsrc);
    last_ = shape[dimsrc - 1];
    for (int d = 0, to = 0; d < dimsrc; ++d) {
      if (d == axis && !keepdim) continue;
      this->shape_[to++] = d == axis ? 1 : shape[d];
    }
    if (dimsrc == 1 && !keepdim) this->shape_[0] = 1;
  }
};

/// Joins the elements along `axis` by Reducer (red::sum, maximum, minimum, product, mean, argmax,
/// argmin); the result has one axis less (one element for a vector). With `mask`, red::maximum and
/// red::minimum give positions, as argmax and argmin do: numbers of the dtype, from 0. Throws umbra::Error if `axis` is
/// none of `src`. mshadow's reduce_with_axis, with more reducers.
template <typename Reducer, bool mask = false, typename SrcExp, typename DType, int etype>
inline auto reduce_with_axis(const Exp<SrcExp, DType, etype>& src, int axis) {
  using Joined = typename detail::Masked<Reducer, mask>::Type;
  static_assert(!mask || detail::kGivesPosition<Joined>, "umbra: only maximum and minimum have a position");
  constexpr int dim = ExpInfo<SrcExp>::kDim;
  static_assert(dim >= 1, "umbra: reduce_with_axis takes a tensor expression");
  return ReduceWithAxisExp<Joined, SrcExp, DType, dim, (dim > 1 ? dim - 1 : 1), false>(src.self(), axis);
}
/// The same with the axis kept at extent 1. mshadow's reduce_keepdim, NumPy's keepdims.
template <typename Reducer, bool mask = false, typename SrcExp, typename DType, int etype>
inline auto reduce_keepdim(const Exp<SrcExp, DType, etype>& src, int axis) {
  using Joined = typename detail::Masked<Reducer, mask>::Type;
  static_assert(!mask || detail::kGivesPosition<Joined>, "umbra: only maximum and minimum have a position");
  constexpr int dim = ExpInfo<SrcExp>::kDim;
  static_assert(dim >= 1, "umbra: reduce_keepdim takes a tensor expression");
  return ReduceWithAxisExp<Joined, SrcExp, DType, dim, dim, true>(src.self(), axis);
}

template <typename Reducer, typename SrcExp, typename DType, int dimsrc, int dimdst, bool keepdim>
struct Plan<ReduceWithAxisExp<Reducer, SrcExp, DType, dimsrc, dimdst, keepdim>, DType> {
  using E = ReduceWithAxisExp<Reducer, SrcExp, DType, dimsrc, dimdst, keepdim>;
  explicit Plan(const E& e)
      : src_(e.src_),
        lowest_(e.axis_ == dimsrc - 1),
        count_(e.count_),
        inner_(e.inner_),
        last_(e.last_),
        row_(e.shape_[dimdst - 1]) {}
  ComputeOf<DType> Eval(index_t y, index_t x) const {
    using C = ComputeOf<DType>;
    using Joined = typename detail::JoinOf<Reducer>::Type;
    const index_t first = lowest_ ? 0 : FirstRow(y), step = lowest_ ? 0 : inner_ / last_;
    const auto get = [&](index_t k) { return C(lowest_ ? src_.Eval(y * row_ + x, k) : src_.Eval(first + k * step, x)); };
    if constexpr (detail::kGivesPosition<Reducer>) {
      return static_cast<C>(detail::ArgExtreme<typename Reducer::Extreme, C>(count_, get));
    } else {
      const C joined = lowest_ ? static_cast<C>(detail::ReduceRow<Joined>(src_, y * row_ + x, count_))
                               : detail::ReduceSteps<Joined, C>(count_, get);
      if constexpr (std::is_same_v<Joined, Reducer>) return joined;
      else return simd::div(joined, static_cast<C>(count_));
    }
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    if (lowest_) {
      DType lanes[simd::kWidth<V>] = {};
      for (index_t i = 0; i < n; ++i) lanes[i] = Eval(y, x + i);
      return simd::load<V>(lanes);
    }
    const index_t first = FirstRow(y), step = inner_ / last_;
    return detail::ReduceSteps<Reducer, V>(
        count_, [&](index_t k) { return src_.template EvalPacket<V>(first + k * step, x, n); });
  }
  /// The first of the source's rows that are joined into row y of the result.
  index_t FirstRow(index_t y) const {
    const index_t step = inner_ / last_;
    return y / step * count_ * step + y % step;
  }
  Plan<SrcExp, DType> src_;
  bool lowest_;
  index_t count_, inner_, last_, row_;
};
template <typename Reducer, typename SrcExp, typename DType, int dimsrc, int dimdst, bool keepdim>
struct ExpInfo<ReduceWithAxisExp<Reducer, SrcExp, DType, dimsrc, dimdst, keepdim>> {
  static constexpr int kDim = dimdst;
  static constexpr int kDevMask = ExpInfo<SrcExp>::kDevMask;
  static constexpr bool kPacket = PacketCheck<SrcExp>::kPass && detail::kJoinsPackets<Reducer>;
};
template <typename Reducer, typename SrcExp, typename DType, int dimsrc, int dimdst, bool keepdim>
struct AliasCheck<ReduceWithAxisExp<Reducer, SrcExp, DType, dimsrc, dimdst, keepdim>> {
  using E = ReduceWithAxisExp<Reducer, SrcExp, DType, dimsrc, dimdst, keepdim>;
  static bool Harmless(const E& e, const Region& dst) {
    return AliasCheck<SrcExp>::Apart(e.src_, dst);
  }
  static bool Apart(const E& e, const Region& dst) {
    return AliasCheck<SrcExp>::Apart(e.src_, dst);
  }
};

/// Joins all elements that share an index along `dimkeep` into a vector.
template <typename SrcExp, typename DType, typename Reducer, int dimkeep>
struct ReduceTo1DExp
    : MakeTensorExp<ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>, SrcExp, 1, DType> {
  static constexpr int kSrcDim = ExpInfo<SrcExp>::kDim;  ///< the rank of the source
  SrcExp src_;  ///< what is reduced
  index_t outer_, inner_, last_;  ///< elements before and behind the axis that stays, and the extent of the last axis
  /// `src` joined over all axes but `dimkeep`. Throws umbra::Error if operands of `src` differ in shape.
  explicit ReduceTo1DExp(const SrcExp& src) : src_(src) {
    const Shape<kSrcDim> shape = ShapeCheck<kSrcDim, SrcExp>::Check(src);
    this->shape_[0] = shape[dimkeep];
    outer_ = shape.ProdShape(0, dimkeep);
    inner_ = shape.ProdShape(dimkeep + 1, kSrcDim);
    last_ = shape[kSrcDim - 1];
  }
};

/// The elements joined by Reducer (red::sum, maximum, minimum or product, or one in mshadow's style) over all axes but
/// `dimkeep`: a vector. mshadow's reduce_except_dim.
template <int dimkeep, typename Reducer, typename SrcExp, typename DType, int etype>
inline ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep> reduce_except_dim(const Exp<SrcExp, DType, etype>& src) {
  static_assert(0 <= dimkeep && dimkeep < ExpInfo<SrcExp>::kDim, "umbra: reduce_except_dim<axis>: the axis is beyond the rank");
  static_assert(detail::kHasInitial<Reducer>, "umbra: reduce_except_dim joins by sum, maximum, minimum or product; use "
                                              "reduce_with_axis for mean, argmax and argmin");
  return ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>(src.self());
}
/// The sums over all axes but `dimkeep`: a vector. mshadow's sumall_except_dim.
template <int dimkeep, typename SrcExp, typename DType, int etype>
inline ReduceTo1DExp<SrcExp, DType, red::sum, dimkeep> sumall_except_dim(
    const Exp<SrcExp, DType, etype>& src) {
  static_assert(0 <= dimkeep && dimkeep < ExpInfo<SrcExp>::kDim,
                "umbra: sumall_except_dim<axis>: the axis is beyond the rank");
  return ReduceTo1DExp<SrcExp, DType, red::sum, dimkeep>(src.self());
}
/// The sum of the rows of a matrix (n, c): the vector (c) of its columns' sums. mshadow's sum_rows.
template <typename SrcExp, typename DType, int etype>
inline auto sum_rows(const Exp<SrcExp, DType, etype>& src) {
  static_assert(ExpInfo<SrcExp>::kDim == 2, "umbra: sum_rows takes a matrix (two axes)");
  return sumall_except_dim<1>(src);
}

template <typename SrcExp, typename DType, typename Reducer, int dimkeep>
struct Plan<ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>, DType> {
  using E = ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>;
  explicit Plan(const E& e)
      : src_(e.src_), size_(e.shape_[0]), outer_(e.outer_), inner_(e.inner_), last_(e.last_) {}
  ComputeOf<DType> Eval(index_t, index_t x) const {
    if constexpr (dimkeep == E::kSrcDim - 1) {
      return detail::ReduceSteps<Reducer, ComputeOf<DType>>(outer_,
                                                 [&](index_t k) { return ComputeOf<DType>(src_.Eval(k, x)); });
    } else {
      using Total = detail::Wide<Reducer, ComputeOf<DType>>;
      Total total = red::InitialOf<Reducer, Total>();
      const index_t rows = last_ == 0 ? 0 : inner_ / last_;
      for (index_t o = 0; o < outer_; ++o)
        for (index_t i = 0; i < rows; ++i)
          Reducer::Reduce(total,
                          detail::ReduceRow<Reducer>(src_, (o * size_ + x) * rows + i, last_));
      return static_cast<ComputeOf<DType>>(total);
    }
  }
  template <typename V>
  V EvalPacket(index_t, index_t x, index_t n) const {
    if constexpr (dimkeep == E::kSrcDim - 1) {
      return detail::ReduceSteps<Reducer, V>(
          outer_, [&](index_t k) { return src_.template EvalPacket<V>(k, x, n); });
    } else {
      DType lanes[simd::kWidth<V>] = {};
      for (index_t i = 0; i < n; ++i) lanes[i] = Eval(0, x + i);
      return simd::load<V>(lanes);
    }
  }
  Plan<SrcExp, DType> src_;
  index_t size_, outer_, inner_, last_;
};
template <typename SrcExp, typename DType, typename Reducer, int dimkeep>
struct ExpInfo<ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>> {
  static constexpr int kDim = 1;
  static constexpr int kDevMask = ExpInfo<SrcExp>::kDevMask;
  static constexpr bool kPacket = PacketCheck<SrcExp>::kPass && detail::kJoinsPackets<Reducer>;
};
template <typename SrcExp, typename DType, typename Reducer, int dimkeep>
struct AliasCheck<ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>> {
  using E = ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>;
  static bool Harmless(const E& e, const Region& dst) {
    return AliasCheck<SrcExp>::Apart(e.src_, dst);
  }
  static bool Apart(const E& e, const Region& dst) {
    return AliasCheck<SrcExp>::Apart(e.src_, dst);
  }
};

/// dst Saver scale * (the elements of `exp` joined over all axes but the lowest, as by reduce_except_dim). Throws
/// umbra::Error if `dst` has another extent. mshadow's MapReduceKeepLowest.
template <typename Saver, typename Reducer, typename Device, typename DType, typename E, int etype>
inline void MapReduceKeepLowest(Tensor<Device, 1, DType>* dst, const Exp<E, DType, etype>& exp,
                                DType scale = 1) {
  static_assert(detail::kHasInitial<Reducer>, "umbra: MapReduceKeepLowest joins by sum, maximum, minimum or product; use "
                                              "reduce_with_axis for mean, argmax and argmin");
  MapExp<Saver>(dst, ReduceTo1DExp<E, DType, Reducer, ExpInfo<E>::kDim - 1>(exp.self()) * scale);
}
/// The same over all axes but `dimkeep`. mshadow's MapReduceKeepHighDim.
template <typename Saver, typename Reducer, int dimkeep, typename Device, typename DType,
          typename E, int etype>
inline void MapReduceKeepHighDim(Tensor<Device, 1, DType>* dst, const Exp<E, DType, etype>& exp,
                                 DType scale = 1) {
  static_assert(0 <= dimkeep && dimkeep < ExpInfo<E>::kDim,
                "umbra: MapReduceKeepHighDim<..., axis>: the axis is beyond the rank");
  static_assert(detail::kHasInitial<Reducer>, "umbra: MapReduceKeepHighDim joins by sum, maximum, minimum or product; use "
                                              "reduce_with_axis for mean, argmax and argmin");
  MapExp<Saver>(dst, ReduceTo1DExp<E, DType, Reducer, dimkeep>(exp.self()) * scale);
}

}  // namespace umbra::expr

namespace umbra {
using expr::MapReduceKeepHighDim;
using expr::MapReduceKeepLowest;
using expr::reduce_except_dim;
using expr::reduce_keepdim;
using expr::reduce_with_axis;
using expr::sum_rows;
using expr::sumall_except_dim;
}  // namespace umbra

#endif  // UMBRA_EXTENSION_REDUCE_H_

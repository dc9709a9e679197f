// Axis maps as expressions: broadcasts and reductions (umbra/extension/broadcast.h, umbra/extension/reduce.h). What
// each means is one function of umbra/axis_map.h.
#ifndef UMBRA_AXIS_MAP_EXP_H_
#define UMBRA_AXIS_MAP_EXP_H_

#include <array>
#include <cstring>

#include "umbra/axis_map.h"
#include "umbra/expr_engine.h"

namespace umbra::expr {

namespace detail {

/// Reducers that join packets as they join numbers.
template <typename Reducer>
inline constexpr bool kJoinsPackets = std::is_same_v<Reducer, red::sum> || std::is_same_v<Reducer, red::maximum> ||
                                      std::is_same_v<Reducer, red::minimum> || std::is_same_v<Reducer, red::product>;
/// Elements are joined in DType in blocks of this many, the blocks in Wide: sums of millions of f32
/// stay accurate.
constexpr index_t kReduceBlock = 64;
template <typename Reducer, typename DType>
using Wide = std::conditional_t<std::is_same_v<Reducer, red::sum> && std::is_same_v<DType, float>, double, DType>;

/// With mask, a reduction to an extreme gives its position.
template <typename Reducer, bool mask>
struct Masked {
  using Type = Reducer;
};
template <>
struct Masked<red::maximum, true> {
  using Type = red::argmax;
};
template <>
struct Masked<red::minimum, true> {
  using Type = red::argmin;
};

/// get(0), ..., get(count - 1), which join(R()) joins by R, for a reducer that is made of others; see red::Made.
template <typename DType, typename JoinBy, typename Get>
struct NumberJoiner {
  index_t count;
  const JoinBy& join;
  const Get& get;

  template <typename R>
  DType Join() const {
    return join(R());
  }
  template <typename R, typename Position>
  index_t JoinPositions(const Position& position) const {
    index_t joined = red::InitialOf<R, index_t>();
    for (index_t k = 0; k < count; ++k) R::Reduce(joined, position(get(k), k));
    return joined;
  }
  index_t Count() const { return count; }
  index_t Last() const { return count > 0 ? count - 1 : 0; }
  static constexpr bool HasNaN() { return !std::is_integral_v<DType>; }
  static DType Over(DType a, index_t b) { return simd::div(a, static_cast<DType>(b)); }
  static bool Equal(DType a, DType b) { return a == b; }
  static bool Differ(DType a, DType b) { return a != b; }
  static bool Or(bool a, bool b) { return a || b; }
  static index_t If(bool condition, index_t a, index_t b) { return condition ? a : b; }
  static index_t Least(index_t a, index_t b) { return a < b ? a : b; }
};

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
    for (index_t k = first; k < count && k < first + kReduceBlock; ++k) Reducer::Reduce(joined, get(k));
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
      const index_t end = x + kReduceBlock * kParts * kSize < n ? x + kReduceBlock * kParts * kSize : n;
      for (; x + kParts * kSize <= end; x += kParts * kSize)
        for (index_t k = 0; k < kParts; ++k)
          Reducer::Reduce(parts[k], plan.template EvalPacket<V>(y, x + k * kSize, kSize));
      for (int k = 0; x < end; ++k, x += kSize) {
        const index_t lanes = end - x < kSize ? end - x : kSize;
        Reducer::Reduce(parts[k], simd::keep(plan.template EvalPacket<V>(y, x, lanes), lanes, initial));
      }
      Reducer::Reduce(total, static_cast<Total>(simd::fold<Join<Reducer>>(parts)));
    }
  } else {
    for (index_t x = 0; x < n; ++x) Reducer::Reduce(total, static_cast<Total>(ComputeOf<DType>(plan.Eval(y, x))));
  }
  return total;
}

}  // namespace detail

/// The axis of an AxisMapExp that is not known by its type.
inline constexpr int kAtRunTime = -1;

/// Map of umbra/axis_map.h on `src_`, whose axes that are none of the result's Reducer joins; where that is void they
/// have extent 1. Those that are joined lie side by side, or the last is one of them and one gap is among the others.
template <typename Map, int axis, typename Reducer, typename SrcExp, typename DType, int dim>
struct AxisMapExp : MakeTensorExp<AxisMapExp<Map, axis, Reducer, SrcExp, DType, dim>, SrcExp, dim, DType> {
  static constexpr int kSrcDim = ExpInfo<SrcExp>::kDim;  ///< the rank of the source
  /// Is the result known to be the same all along a row?
  static constexpr bool kConstantRows =
      axis >= 0 && Map::From(dim - 1, axis, kSrcDim, dim) < 0 && std::is_void_v<Reducer>;
  SrcExp src_;  ///< what is broadcast or joined
  int axis_;  ///< the axis that Map takes
  Shape<kSrcDim> source_;  ///< the extents of the source
  /// A map of axis `at` without repeated axes. Throws umbra::Error if the source does not have that axis.
  AxisMapExp(const SrcExp& src, int at) : src_(src), axis_(at), source_(ShapeCheck<kSrcDim, SrcExp>::Check(src)) {
    Require(at >= 0 && at < kSrcDim, "reduction over axis ", at, " of shape ", source_, ": its axes are 0 to ",
            kSrcDim - 1);
    for (int d = 0; d < dim; ++d) {
      const int from = Map::From(d, at, kSrcDim, dim);
      this->shape_[d] = from >= 0 ? source_[from] : 1;
    }
  }
  /// A map with repeated axes to `shape`, which the source must fit; broadcast() checks it.
  AxisMapExp(const SrcExp& src, int at, const Shape<dim>& shape)
      : src_(src),
        axis_(at),
        source_(ShapeCheck<kSrcDim, SrcExp>::Check(src)) {
    this->shape_ = shape;
  }
};

template <typename Map, int axis, typename Reducer, typename SrcExp, typename DType, int dim>
struct Plan<AxisMapExp<Map, axis, Reducer, SrcExp, DType, dim>, DType> {
  using E = AxisMapExp<Map, axis, Reducer, SrcExp, DType, dim>;
  using C = ComputeOf<DType>;
  explicit Plan(const E& e)
      : src_(e.src_),
        shape_(e.shape_),
        last_(e.source_[kSrcDim - 1]),
        last_joined_(index_map::Joins(Map::From, kSrcDim - 1, e.axis_, kSrcDim, dim)),
        columns_along_row_(Map::From(dim - 1, e.axis_, kSrcDim, dim) == kSrcDim - 1) {
    std::array<index_t, kSrcDim> pitch{};  // rows of the source from one position of an axis to the next
    index_t rows = 1;
    for (int k = kSrcDim - 2; k >= 0; --k) {
      pitch[static_cast<std::size_t>(k)] = rows;
      rows *= e.source_[k];
      if (index_map::Joins(Map::From, k, e.axis_, kSrcDim, dim)) Join(e.source_[k], pitch[static_cast<std::size_t>(k)]);
    }
    for (int d = 0; d < dim; ++d) {
      const int from = Map::From(d, e.axis_, kSrcDim, dim);
      step_[d] = from < 0 || from == kSrcDim - 1 ? 0 : pitch[static_cast<std::size_t>(from)];
      Ensure(axis >= 0 || from != kSrcDim - 1 || d == dim - 1,
             "the columns of an axis map at run time are none of its source");
    }
    for (int d = 0; d < dim - 2; ++d) in_step_ = in_step_ && step_[d] == step_[d + 1] * shape_[d + 1];
    Ensure(last_joined_ || outer_.count == 1, kTooMany);
    count_ = outer_.count * inner_.count * (last_joined_ ? last_ : 1);
    Ensure(!red::kGivesPosition<Reducer> || !last_joined_ || count_ == last_, kTooMany);
  }
  C Eval(index_t y, index_t x) const { return EvalAt(At(y, x)); }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    if constexpr (E::kConstantRows) {
      return simd::fill<V>(Eval(y, x));
    } else {
      const Place p = At(y, x);
      if (!ColumnsAlongRow())
        return simd::by_lane_head<V>(n, [&](index_t k) { return EvalAt({p.row + k * step_[dim - 1], p.column}); });
      if constexpr (std::is_void_v<Reducer>) return src_.template EvalPacket<V>(p.row, p.column, n);
      else
        return detail::ReduceSteps<Reducer, V>(
            inner_.count, [&](index_t k) { return src_.template EvalPacket<V>(p.row + k * inner_.step, p.column, n); });
    }
  }

 private:
  static constexpr int kSrcDim = E::kSrcDim;
  /// Rows of the source that are joined: `count` of them, `step` rows apart.
  struct Run {
    index_t count = 1, step = 0;
  };
  struct Place {
    index_t row = 0, column = 0;
  };
  /// Axes that lie side by side are one run.
  void Join(index_t extent, index_t step) {
    if (extent == 1) return;
    Run& run = inner_.count == 1 || inner_.count * inner_.step == step ? inner_ : outer_;
    if (run.count == 1) run.step = step;
    Ensure(run.count == 1 || run.count * run.step == step, kTooMany);
    run.count *= extent;
  }
  C EvalAt(Place p) const {
    if constexpr (std::is_void_v<Reducer>) {
      return src_.Eval(p.row, p.column);
    } else {
      const auto get = [&](index_t k) {
        return C(LastJoined() ? src_.Eval(p.row, k) : src_.Eval(p.row + k * inner_.step, p.column));
      };
      const auto join = [&](auto by) {
        using Joined = decltype(by);
        return LastJoined() ? JoinWholeRows<Joined>(p.row) : detail::ReduceSteps<Joined, C>(inner_.count, get);
      };
      if constexpr (red::kIsMade<Reducer>)
        return static_cast<C>(
            Reducer::Value(detail::NumberJoiner<C, decltype(join), decltype(get)>{count_, join, get}));
      else return join(Reducer());
    }
  }
  /// Where the source is read, or joined from, for element (y, x).
  Place At(index_t y, index_t x) const {
    Place p;
    Move<dim - 1>(x, &p);
    if constexpr (dim > 1) {
      if (dim > 2 && axis < 0 && in_step_) p.row += y * step_[dim - 2];
      else MoveRows<dim - 2>(y, &p);
    }
    return p;
  }
  template <int d>
  void MoveRows(index_t y, Place* p) const {
    if constexpr (d == 0) {
      Move<0>(y, p);
    } else {
      Move<d>(y % shape_[d], p);
      MoveRows<d - 1>(y / shape_[d], p);
    }
  }
  /// By i along axis d of the result. Where the type tells the axis, this and the next two are known when a program is
  /// compiled.
  template <int d>
  void Move(index_t i, Place* p) const {
    if constexpr (axis >= 0) {
      constexpr int kFrom = Map::From(d, axis, kSrcDim, dim);
      if constexpr (kFrom == kSrcDim - 1) p->column += i;
      else if constexpr (kFrom >= 0) p->row += i * step_[d];
    } else {
      p->row += i * step_[d];
      if (d == dim - 1 && ColumnsAlongRow()) p->column = i;
    }
  }
  bool ColumnsAlongRow() const {
    if constexpr (axis >= 0) {
      constexpr int kFrom = Map::From(dim - 1, axis, kSrcDim, dim);
      return kFrom == kSrcDim - 1;
    } else {
      return columns_along_row_;
    }
  }
  bool LastJoined() const {
    if constexpr (axis >= 0) {
      constexpr bool kJoined = index_map::Joins(Map::From, kSrcDim - 1, axis, kSrcDim, dim);
      return kJoined;
    } else {
      return last_joined_;
    }
  }
  /// The join of all elements of the rows that are joined from `row` on.
  template <typename Joined>
  C JoinWholeRows(index_t row) const {
    if (count_ == last_) return static_cast<C>(detail::ReduceRow<Joined>(src_, row, last_));
    using Total = detail::Wide<Joined, C>;
    Total total = red::InitialOf<Joined, Total>();
    for (index_t o = 0; o < outer_.count; ++o)
      for (index_t i = 0; i < inner_.count; ++i)
        Joined::Reduce(total, detail::ReduceRow<Joined>(src_, row + o * outer_.step + i * inner_.step, last_));
    return static_cast<C>(total);
  }

  static constexpr const char* kTooMany = "an axis map joins axes that do not lie side by side";

  Plan<SrcExp, DType> src_;
  Shape<dim> shape_, step_;  // step_: rows of the source from one position to the next, by axis of the result
  index_t last_;  // the extent of the source's last axis
  Run outer_, inner_;
  index_t count_;  // elements that are joined
  bool in_step_ = true;  // do rows of the result lie at one step in the source?
  bool last_joined_, columns_along_row_;
};

template <typename Map, int axis, typename Reducer, typename SrcExp, typename DType, int dim>
struct ExpInfo<AxisMapExp<Map, axis, Reducer, SrcExp, DType, dim>> {
  using E = AxisMapExp<Map, axis, Reducer, SrcExp, DType, dim>;
  static constexpr int kDim = dim;
  static constexpr int kDevMask = ExpInfo<SrcExp>::kDevMask;
  static constexpr bool kPacket =
      kHasPackets<DType> &&
      (E::kConstantRows || (PacketCheck<SrcExp>::kPass && (std::is_void_v<Reducer> || detail::kJoinsPackets<Reducer>)));
};
/// Other positions than the one that is written are read: the source must lie apart.
template <typename Map, int axis, typename Reducer, typename SrcExp, typename DType, int dim>
struct AliasCheck<AxisMapExp<Map, axis, Reducer, SrcExp, DType, dim>> {
  using E = AxisMapExp<Map, axis, Reducer, SrcExp, DType, dim>;
  static bool Harmless(const E& e, const Region& dst) { return Apart(e, dst); }
  static bool Apart(const E& e, const Region& dst) { return AliasCheck<SrcExp>::Apart(e.src_, dst); }
};

}  // namespace umbra::expr

#endif  // UMBRA_AXIS_MAP_EXP_H_

// Index maps of the expression API: flip, slice, pad, pool and the rest of umbra/index_maps.def.
// What each means is said once, in umbra/index_map.h.
#ifndef UMBRA_EXTENSION_INDEX_MAP_H_
#define UMBRA_EXTENSION_INDEX_MAP_H_

#include <initializer_list>
#include <tuple>
#include <utility>

#include "umbra/expr_engine.h"
#include "umbra/index_map.h"

namespace umbra::expr {

/// Map of the expressions Srcs, all of one dtype.
template <typename Map, typename DType, int dimdst, typename... Srcs>
struct IndexMapExp
    : MakeTensorExp<IndexMapExp<Map, DType, dimdst, Srcs...>, void, dimdst, DType> {
  std::array<index_t, map::kMaxRank> params_{};
  int num_params_ = 0;
  std::tuple<Srcs...> src_;

  IndexMapExp(std::initializer_list<index_t> params, const Srcs&... src)
      : num_params_(static_cast<int>(params.size())), src_(src...) {
    std::copy(params.begin(), params.end(), params_.begin());
    const map::Extents<index_t> in = SourceExtents();
    const Map map = MakeMap();
    map.Check(in.rank.data());
    Require(map.Rank(in.rank.data()) == dimdst, "an index map of rank ", map.Rank(in.rank.data()),
            " as an expression of rank ", dimdst);
    std::array<index_t, map::kMaxRank> out{};
    map.Shape(in, out.data());
    for (int d = 0; d < dimdst; ++d) {
      this->shape_[d] = out[static_cast<std::size_t>(d)];
      Require(this->shape_[d] >= 0, "an index map has a negative extent: shape ", this->shape_,
              "; an operand is too small");
    }
  }

  Map MakeMap() const {
    if constexpr (Map::kParams >= 0) return Map(params_.data());
    else return Map(params_.data(), num_params_);
  }

  map::Extents<index_t> SourceExtents() const {
    map::Extents<index_t> in;
    std::size_t k = 0;
    std::apply([&](const auto&... src) { (AddExtents(src, &in, k++), ...); }, src_);
    return in;
  }

 private:
  template <typename Src>
  static void AddExtents(const Src& src, map::Extents<index_t>* in, std::size_t k) {
    constexpr int kDim = ExpInfo<Src>::kDim;
    static_assert(kDim > 0, "umbra: an index map takes tensors; a number has no positions");
    const Shape<kDim> shape = ShapeCheck<kDim, Src>::Check(src);
    in->rank[k] = kDim;
    for (int d = 0; d < kDim; ++d) in->extent[k][static_cast<std::size_t>(d)] = shape[d];
  }
};

namespace detail {

/// Runs a map's definition with numbers, at one position.
template <typename DType, typename Plans>
struct NumberContext {
  using Index = index_t;
  using Sum = red::sum;

  const Plans* plans;
  const map::Extents<index_t>* in;
  map::Position<index_t> here;

  int rank() const { return here.rank; }
  int rank(int k) const { return in->rank[static_cast<std::size_t>(k)]; }
  index_t at(int d) const { return here[d]; }
  index_t extent(int k, int d) const { return (*in)(k, d); }
  index_t size(index_t n) const { return n; }
  index_t size(int k, int d) const { return (*in)(k, d); }
  DType Literal(double value) const { return static_cast<DType>(value); }
  template <typename R>
  double Identity() const { return static_cast<double>(R::template Initial<DType>()); }

  DType Load(int k, const map::Position<index_t>& p) const {
    index_t row = 0;
    for (int d = 0; d + 1 < p.rank; ++d) row = row * (*in)(k, d) + p[d];
    return LoadFrom(k, row, p[p.rank - 1], std::make_index_sequence<std::tuple_size_v<Plans>>());
  }
  DType LoadIf(bool condition, int k, const map::Position<index_t>& p, double outside) const {
    return condition ? Load(k, p) : static_cast<DType>(outside);
  }
  DType If(bool condition, DType a, DType b) const { return condition ? a : b; }
  DType FromPosition(index_t position) const { return static_cast<DType>(position); }
  index_t ToPosition(DType number) const { return static_cast<index_t>(number); }

  template <typename R, typename Body>
  DType Reduce(std::initializer_list<index_t> sizes, const Body& body) const {
    DType total = R::template Initial<DType>();
    std::array<index_t, map::kMaxRank> window{};
    Loop<R>(sizes.begin(), sizes.end(), 0, &window, &total, body);
    return total;
  }

 private:
  template <typename R, typename Body>
  void Loop(const index_t* size, const index_t* end, std::size_t axis,
            std::array<index_t, map::kMaxRank>* window, DType* total, const Body& body) const {
    if (size == end) {
      R::Reduce(*total, static_cast<DType>(body(*window)));
      return;
    }
    for ((*window)[axis] = 0; (*window)[axis] < *size; ++(*window)[axis])
      Loop<R>(size + 1, end, axis + 1, window, total, body);
  }

  template <std::size_t... K>
  DType LoadFrom(int k, index_t row, index_t column, std::index_sequence<K...>) const {
    DType value{};
    ((static_cast<int>(K) == k ? void(value = std::get<K>(*plans).Eval(row, column)) : void()), ...);
    return value;
  }
};

}  // namespace detail

template <typename Map, typename DType, int dimdst, typename... Srcs>
struct Plan<IndexMapExp<Map, DType, dimdst, Srcs...>, DType> {
  using Plans = std::tuple<Plan<Srcs, DType>...>;
  explicit Plan(const IndexMapExp<Map, DType, dimdst, Srcs...>& e)
      : map_(e.MakeMap()),
        plans_(std::apply([](const auto&... src) { return Plans(Plan<Srcs, DType>(src)...); }, e.src_)),
        in_(e.SourceExtents()),
        shape_(e.shape_) {}
  DType Eval(index_t y, index_t x) const {
    detail::NumberContext<DType, Plans> context{&plans_, &in_, {}};
    context.here.rank = dimdst;
    context.here[dimdst - 1] = x;
    for (int d = dimdst - 2; d > 0; --d) {
      context.here[d] = y % shape_[d];
      y /= shape_[d];
    }
    if constexpr (dimdst > 1) context.here[0] = y;
    return map_.Value(context);
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    return simd::by_lane_head<V>(n, [&](index_t k) { return Eval(y, x + k); });
  }
  Map map_;
  Plans plans_;
  map::Extents<index_t> in_;
  Shape<dimdst> shape_;
};

template <typename Map, typename DType, int dimdst, typename... Srcs>
struct ExpInfo<IndexMapExp<Map, DType, dimdst, Srcs...>> {
  static constexpr int kDim = dimdst;
  static constexpr int kDevMask = (ExpInfo<Srcs>::kDevMask & ...);
  static constexpr bool kPacket = true;
};

/// Other positions than the one that is written are read: the sources must lie apart.
template <typename Map, typename DType, int dimdst, typename... Srcs>
struct AliasCheck<IndexMapExp<Map, DType, dimdst, Srcs...>> {
  using E = IndexMapExp<Map, DType, dimdst, Srcs...>;
  static bool Harmless(const E& e, const Region& dst) { return Apart(e, dst); }
  static bool Apart(const E& e, const Region& dst) {
    return std::apply([&](const auto&... src) { return (AliasCheck<Srcs>::Apart(src, dst) && ...); },
                      e.src_);
  }
};

/// `x` reversed along `axis`.
template <typename E, typename DType, int etype>
inline auto flip(const Exp<E, DType, etype>& x, int axis) {
  return IndexMapExp<map::flip, DType, ExpInfo<E>::kDim, E>({axis}, x.self());
}
/// `x` mirrored along its last axis.
template <typename E, typename DType, int etype>
inline auto mirror(const Exp<E, DType, etype>& x) {
  return flip(x, ExpInfo<E>::kDim - 1);
}
/// `x` with axes a and b exchanged; as mshadow's swapaxis<a, b>, whose axes count from the first.
template <int a, int b, typename E, typename DType, int etype>
inline auto swapaxis(const Exp<E, DType, etype>& x) {
  static_assert(a >= 0 && b >= 0 && a < ExpInfo<E>::kDim && b < ExpInfo<E>::kDim,
                "umbra: swapaxis<a, b>() of an axis beyond the rank");
  return IndexMapExp<map::swapaxis, DType, ExpInfo<E>::kDim, E>({a, b}, x.self());
}
/// Elements begin .. end - 1 of axis `axis`. Throws umbra::Error unless 0 <= begin <= end <= extent.
template <int axis, typename E, typename DType, int etype>
inline auto slice(const Exp<E, DType, etype>& x, index_t begin, index_t end) {
  static_assert(axis >= 0 && axis < ExpInfo<E>::kDim, "umbra: slice<axis>() of an axis beyond the rank");
  return IndexMapExp<map::slice, DType, ExpInfo<E>::kDim, E>({axis, begin, end}, x.self());
}
/// The window of `shape` of the last two axes that begins at (top, left), or in the middle.
template <typename E, typename DType, int etype>
inline auto crop(const Exp<E, DType, etype>& x, Shape<2> shape, index_t top, index_t left) {
  constexpr int kDim = ExpInfo<E>::kDim;
  static_assert(kDim >= 2, "umbra: crop() takes a tensor of two axes or more");
  return IndexMapExp<map::crop, DType, kDim, E>({top, left, shape[0], shape[1]}, x.self());
}
template <typename E, typename DType, int etype>
inline auto crop(const Exp<E, DType, etype>& x, Shape<2> shape) {
  constexpr int kDim = ExpInfo<E>::kDim;
  const auto from = ShapeCheck<kDim, E>::Check(x.self());
  return crop(x, shape, (from[kDim - 2] - shape[0]) / 2, (from[kDim - 1] - shape[1]) / 2);
}
/// `x` with zeros around its last two axes.
template <typename E, typename DType, int etype>
inline auto pad(const Exp<E, DType, etype>& x, index_t rows, index_t columns) {
  return IndexMapExp<map::pad, DType, ExpInfo<E>::kDim, E>({rows, columns}, x.self());
}
template <typename E, typename DType, int etype>
inline auto pad(const Exp<E, DType, etype>& x, index_t around) { return pad(x, around, around); }
/// Every element scale x scale times, last two axes.
template <typename E, typename DType, int etype>
inline auto upsampling_nearest(const Exp<E, DType, etype>& x, index_t scale) {
  return IndexMapExp<map::upsampling_nearest, DType, ExpInfo<E>::kDim, E>({scale}, x.self());
}
/// The vector `x` as each of `rows` rows.
template <typename E, typename DType, int etype>
inline auto repmat(const Exp<E, DType, etype>& x, index_t rows) {
  static_assert(ExpInfo<E>::kDim == 1, "umbra: repmat() takes a vector (one axis)");
  return IndexMapExp<map::repmat, DType, 2, E>({rows}, x.self());
}
/// `a`, then `b`, along `axis`; of any rank. Throws umbra::Error if another extent differs.
template <int axis, typename A, typename B, typename DType, int atype, int btype>
inline auto concat(const Exp<A, DType, atype>& a, const Exp<B, DType, btype>& b) {
  constexpr int kDim = ExpInfo<A>::kDim;
  static_assert(kDim == ExpInfo<B>::kDim, "umbra: concat() of tensors of different ranks");
  static_assert(axis >= 0 && axis < kDim, "umbra: concat<axis>() along an axis beyond the rank");
  return IndexMapExp<map::concat, DType, kDim, A, B>({axis}, a.self(), b.self());
}
/// The elements of `x` in row-major order as a tensor of `shape`. Throws umbra::Error if the numbers
/// of elements differ.
template <typename E, typename DType, int etype, int dimdst>
inline auto reshape(const Exp<E, DType, etype>& x, Shape<dimdst> shape) {
  using Result = IndexMapExp<map::reshape, DType, dimdst, E>;
  if constexpr (dimdst == 1) return Result({shape[0]}, x.self());
  else if constexpr (dimdst == 2) return Result({shape[0], shape[1]}, x.self());
  else if constexpr (dimdst == 3) return Result({shape[0], shape[1], shape[2]}, x.self());
  else if constexpr (dimdst == 4) return Result({shape[0], shape[1], shape[2], shape[3]}, x.self());
  else return Result({shape[0], shape[1], shape[2], shape[3], shape[4]}, x.self());
}
/// Reducer over windows of the last two axes; windows that reach beyond the end are cut.
template <typename Reducer, typename E, typename DType, int etype>
inline auto pool(const Exp<E, DType, etype>& x, index_t height, index_t width, index_t stride_y,
                 index_t stride_x) {
  return IndexMapExp<map::pool<Reducer>, DType, ExpInfo<E>::kDim, E>(
      {height, width, stride_y, stride_x}, x.self());
}
template <typename Reducer, typename E, typename DType, int etype>
inline auto pool(const Exp<E, DType, etype>& x, index_t height, index_t width, index_t stride) {
  return pool<Reducer>(x, height, width, stride, stride);
}
/// The gradient of pool<Reducer>(data): `pooled` is its result, `grad` the gradient of that.
template <typename Reducer, typename A, typename B, typename C, typename DType, int atype, int btype,
          int ctype>
inline auto unpool(const Exp<A, DType, atype>& data, const Exp<B, DType, btype>& pooled,
                   const Exp<C, DType, ctype>& grad, index_t height, index_t width, index_t stride_y,
                   index_t stride_x) {
  return IndexMapExp<map::unpool<Reducer>, DType, ExpInfo<A>::kDim, A, B, C>(
      {height, width, stride_y, stride_x}, data.self(), pooled.self(), grad.self());
}

}  // namespace umbra::expr

namespace umbra {
using expr::concat;
using expr::crop;
using expr::flip;
using expr::mirror;
using expr::pad;
using expr::pool;
using expr::repmat;
using expr::reshape;
using expr::slice;
using expr::swapaxis;
using expr::unpool;
using expr::upsampling_nearest;
}  // namespace umbra

#endif  // UMBRA_EXTENSION_INDEX_MAP_H_

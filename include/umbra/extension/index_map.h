// Index maps of the expression API: flip, slice, pad, pool and the rest of umbra/index_maps.def.
// What each means is said once, in umbra/index_map/. Shared by all: operands but indices have one dtype, any of the
// ten, and so has the result; sizes, steps and positions are in elements. A function throws umbra::Error if ranks,
// numbers or extents do not fit (or does not compile), an assignment if the destination overlaps an operand.
#ifndef UMBRA_EXTENSION_INDEX_MAP_H_
#define UMBRA_EXTENSION_INDEX_MAP_H_

#include <cmath>
#include <type_traits>

#include "umbra/index_map_exp.h"

namespace umbra::expr {

/// `x` reversed along `axis`. mshadow's flip; of what can be assigned to, it can be assigned to
/// (umbra/extension/target.h).
template <typename E, typename DType, int etype>
inline auto flip(const Exp<E, DType, etype>& x, int axis) {
  return IndexMapExp<index_map::flip, DType, ExpInfo<E>::kDim, E>({axis}, x.self());
}
/// `x` mirrored along its last axis. mshadow's mirror.
template <typename E, typename DType, int etype>
inline auto mirror(const Exp<E, DType, etype>& x) {
  return flip(x, ExpInfo<E>::kDim - 1);
}
/// `x` with axes a and b exchanged; as mshadow's swapaxis<a, b>, whose axes count from the first. There b < a.
template <int a, int b, typename E, typename DType, int etype>
inline auto swapaxis(const Exp<E, DType, etype>& x) {
  static_assert(a >= 0 && b >= 0 && a < ExpInfo<E>::kDim && b < ExpInfo<E>::kDim,
                "umbra: swapaxis<a, b>() of an axis beyond the rank");
  return IndexMapExp<index_map::swapaxis, DType, ExpInfo<E>::kDim, E>({a, b}, x.self());
}
/// Elements begin .. end - 1 of axis `axis`. Throws umbra::Error unless 0 <= begin <= end <= extent. mshadow's slice.
template <int axis, typename E, typename DType, int etype>
inline auto slice(const Exp<E, DType, etype>& x, index_t begin, index_t end) {
  static_assert(axis >= 0 && axis < ExpInfo<E>::kDim, "umbra: slice<axis>() of an axis beyond the rank");
  return IndexMapExp<index_map::slice, DType, ExpInfo<E>::kDim, E>({axis, begin, end}, x.self());
}
/// The window of `shape` (height, width) of the last two axes that begins at (top, left), or in the middle. Throws
/// umbra::Error if it is not all within them. mshadow's crop.
template <typename E, typename DType, int etype>
inline auto crop(const Exp<E, DType, etype>& x, Shape<2> shape, index_t top, index_t left) {
  constexpr int kDim = ExpInfo<E>::kDim;
  static_assert(kDim >= 2, "umbra: crop() takes a tensor of two axes or more");
  return IndexMapExp<index_map::crop, DType, kDim, E>({top, left, shape[0], shape[1]}, x.self());
}
template <typename E, typename DType, int etype>
inline auto crop(const Exp<E, DType, etype>& x, Shape<2> shape) {
  constexpr int kDim = ExpInfo<E>::kDim;
  const auto from = ShapeCheck<kDim, E>::Check(x.self());
  return crop(x, shape, (from[kDim - 2] - shape[0]) / 2, (from[kDim - 1] - shape[1]) / 2);
}
/// `x` with `rows` zeros above and below and `columns` beside its last two axes, 0 or more of each. mshadow's pad.
template <typename E, typename DType, int etype>
inline auto pad(const Exp<E, DType, etype>& x, index_t rows, index_t columns) {
  return IndexMapExp<index_map::pad, DType, ExpInfo<E>::kDim, E>({rows, columns}, x.self());
}
template <typename E, typename DType, int etype>
inline auto pad(const Exp<E, DType, etype>& x, index_t around) {
  return pad(x, around, around);
}
/// Every element scale x scale times: (..., h, w) becomes (..., h scale, w scale); 1 <= scale. As mshadow's.
template <typename E, typename DType, int etype>
inline auto upsampling_nearest(const Exp<E, DType, etype>& x, index_t scale) {
  return IndexMapExp<index_map::upsampling_nearest, DType, ExpInfo<E>::kDim, E>({scale}, x.self());
}
/// The vector `x` (n) as each of `rows` rows: (rows, n). mshadow's repmat.
template <typename E, typename DType, int etype>
inline auto repmat(const Exp<E, DType, etype>& x, index_t rows) {
  static_assert(ExpInfo<E>::kDim == 1, "umbra: repmat() takes a vector (one axis)");
  return IndexMapExp<index_map::repmat, DType, 2, E>({rows}, x.self());
}
/// `a`, then `b`, along `axis`; of any rank. Throws umbra::Error if another extent differs. mshadow's concat.
template <int axis, typename A, typename B, typename DType, int atype, int btype>
inline auto concat(const Exp<A, DType, atype>& a, const Exp<B, DType, btype>& b) {
  constexpr int kDim = ExpInfo<A>::kDim;
  static_assert(kDim == ExpInfo<B>::kDim, "umbra: concat() of tensors of different ranks");
  static_assert(axis >= 0 && axis < kDim, "umbra: concat<axis>() along an axis beyond the rank");
  return IndexMapExp<index_map::concat, DType, kDim, A, B>({axis}, a.self(), b.self());
}
/// The matrix product (m, n) of (m, k) and (k, n) as part of a larger expression, without BLAS: every element is a sum
/// of its own. mshadow's implicit_dot.
template <typename A, typename B, typename DType, int atype, int btype>
inline auto implicit_dot(const Exp<A, DType, atype>& a, const Exp<B, DType, btype>& b) {
  return IndexMapExp<index_map::implicit_dot, DType, 2, A, B>({}, a.self(), b.self());
}
/// The elements of `x` in row-major order as a tensor of `shape`. Throws umbra::Error if the numbers
/// of elements differ. mshadow's reshape.
template <typename E, typename DType, int etype, int dimdst>
inline auto reshape(const Exp<E, DType, etype>& x, Shape<dimdst> shape) {
  return IndexMapExp<index_map::reshape, DType, dimdst, E>(shape.shape_, dimdst, x.self());
}
/// Elements begin[d], begin[d] + step[d], ... below end[d] of every axis; 0 <= begin[d] <= end[d] <= extent, 1 <=
/// step[d]. Umbra's own; without steps it is slice(x, begin, end).
template <typename E, typename DType, int etype, int dim>
inline auto slice_ex(const Exp<E, DType, etype>& x, Shape<dim> begin, Shape<dim> end, Shape<dim> step) {
  static_assert(dim == ExpInfo<E>::kDim && dim <= 5, "umbra: slice_ex() with shapes of another rank");
  std::array<index_t, 3 * dim> p{};
  for (std::size_t d = 0; d < dim; ++d) {
    p[d] = begin[static_cast<int>(d)];
    p[dim + d] = end[static_cast<int>(d)];
    p[2 * dim + d] = step[static_cast<int>(d)];
  }
  return IndexMapExp<index_map::slice_ex, DType, dim, E>(p.data(), 3 * dim, x.self());
}
namespace detail {
/// The numbers of slice_ex for every element from `begin` to before `end`.
template <int dim>
inline std::array<index_t, 3 * static_cast<std::size_t>(dim)> BoxNumbers(const Shape<dim>& begin,
                                                                         const Shape<dim>& end) {
  std::array<index_t, 3 * static_cast<std::size_t>(dim)> numbers{};
  for (std::size_t d = 0; d < dim; ++d) {
    numbers[d] = begin[static_cast<int>(d)];
    numbers[dim + d] = end[static_cast<int>(d)];
    numbers[2 * dim + d] = 1;
  }
  return numbers;
}
}  // namespace detail
/// Elements begin[d] .. end[d] - 1 of every axis d. Throws umbra::Error unless 0 <= begin[d] <= end[d] <= extent, which
/// mshadow's slice(x, begin, end) does not check.
template <typename E, typename DType, int etype, int dim>
inline auto slice(const Exp<E, DType, etype>& x, Shape<dim> begin, Shape<dim> end) {
  static_assert(dim == ExpInfo<E>::kDim, "umbra: slice() with shapes of another rank");
  const auto numbers = detail::BoxNumbers(begin, end);
  return IndexMapExp<index_map::slice_ex, DType, dim, E>(numbers.data(), 3 * dim, x.self());
}
/// Dimension d of the result is dimension axes[d] of `x`; each is given once. mshadow's transpose, as NumPy's.
template <typename E, typename DType, int etype, int dim>
inline auto transpose(const Exp<E, DType, etype>& x, Shape<dim> axes) {
  static_assert(dim == ExpInfo<E>::kDim, "umbra: transpose() with axes of another rank");
  return IndexMapExp<index_map::permute, DType, dim, E>(axes.shape_, dim, x.self());
}
/// A new axis of `size`, 0 or more, behind `axis`, before all others if that is -1, along which `x` repeats. mshadow's
/// broadcast_with_axis.
template <typename E, typename DType, int etype>
inline auto broadcast_with_axis(const Exp<E, DType, etype>& x, int axis, index_t size) {
  return IndexMapExp<index_map::broadcast_with_axis, DType, ExpInfo<E>::kDim + 1, E>({axis, size}, x.self());
}
/// Axis `axis`, of extent 1, repeated `size` times. mshadow's broadcast_keepdim.
template <typename E, typename DType, int etype>
inline auto broadcast_keepdim(const Exp<E, DType, etype>& x, int axis, index_t size) {
  return IndexMapExp<index_map::broadcast_keepdim, DType, ExpInfo<E>::kDim, E>({axis, size}, x.self());
}
namespace detail {
/// The axes that a shape has: a TShape says so, a Shape by its type.
template <typename S>
inline index_t CountOf(const S& shape) {
  return shape.ndim();
}
template <int dim>
inline index_t CountOf(const Shape<dim>&) {
  return dim;
}
}  // namespace detail
/// Axes axes[k] of `x`, of extent 1, in increasing order, repeated sizes[k] times, 0 or more; a TAxes is a TShape or a
/// Shape. mshadow's broadcast_multi_axes.
template <typename E, typename DType, int etype, typename TAxes>
inline auto broadcast_multi_axes(const Exp<E, DType, etype>& x, const TAxes& axes, const TAxes& sizes) {
  constexpr int kDim = ExpInfo<E>::kDim;
  const index_t count = detail::CountOf(axes);
  Require(count == detail::CountOf(sizes) && count <= kDim, "broadcast_multi_axes of an expression of rank ", kDim,
          ": ", count, " axes and ", detail::CountOf(sizes), " sizes are given");
  std::array<index_t, 2 * static_cast<std::size_t>(kDim)> numbers{};
  for (int k = 0; k < count; ++k) {
    numbers[static_cast<std::size_t>(2 * k)] = axes[k];
    numbers[static_cast<std::size_t>(2 * k + 1)] = sizes[k];
  }
  return IndexMapExp<index_map::broadcast_multi_axes, DType, kDim, E>(numbers.data(), static_cast<int>(2 * count),
                                                                      x.self());
}
/// `x` as a tensor of `shape`, a TShape or a Shape of its rank: axes of extent 1 are repeated. Throws umbra::Error if
/// the rank or another extent differs. mshadow's broadcast_to.
template <typename E, typename DType, int etype, typename TTarget>
inline auto broadcast_to(const Exp<E, DType, etype>& x, const TTarget& shape) {
  constexpr int kDim = ExpInfo<E>::kDim;
  const Shape<kDim> from = ShapeCheck<kDim, E>::Check(x.self());
  Require(detail::CountOf(shape) == kDim, "broadcast_to a shape of ", detail::CountOf(shape), " axes from ", from,
          ": the numbers of axes are equal");
  std::array<index_t, 2 * static_cast<std::size_t>(kDim)> numbers{};
  int count = 0;
  for (int d = 0; d < kDim; ++d) {
    if (from[d] == shape[d]) continue;
    Require(from[d] == 1, "broadcast_to: axis ", d, " of shape ", from, " does not become ", shape[d],
            "; only an extent of 1 is repeated");
    numbers[static_cast<std::size_t>(count++)] = d;
    numbers[static_cast<std::size_t>(count++)] = shape[d];
  }
  return IndexMapExp<index_map::broadcast_multi_axes, DType, kDim, E>(numbers.data(), count, x.self());
}
/// start, start + step, ... before stop, every number `repeat` times: a vector, whose element i is start + floor(i /
/// repeat) * step in DType's arithmetic. Throws umbra::Error if no such steps lead to stop. mshadow's range, which is
/// never empty there.
template <typename DType>
inline auto range(DType start, DType stop, DType step = 1, index_t repeat = 1) {
  Require(step > 0 ? stop >= start : step < 0 && stop <= start, "range: no steps of ", step, " lead from ", start,
          " to ", stop);
  const double count = std::ceil((static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(step));
  Require(count < 9e15, "range: ", count, " elements");
  return IndexMapExp<index_map::steps, DType, 1>({static_cast<index_t>(count), repeat}) * ScalarExp<DType>(step) +
         ScalarExp<DType>(start);
}
/// x[index[i]] for every position i of `index`: rows of a matrix, elements of a vector; the axes are those of `index`,
/// then those of `x` but its first. Positions beyond axis 0 are clipped. Here and below an index has any dtype that has
/// numbers; fractions are cut off, NaN is 0. mshadow's take, which clips nothing and takes rows of matrices only.
template <typename Index, typename E, typename IType, typename DType, int itype, int etype>
inline auto take(const Exp<Index, IType, itype>& index, const Exp<E, DType, etype>& x) {
  return IndexMapExp<index_map::take, DType, ExpInfo<Index>::kDim + ExpInfo<E>::kDim - 1, Index, E>({}, index.self(),
                                                                                                    x.self());
}
/// The gradient (rows, c) of take(index, x) for an x of `rows` rows: those of `grad` (n, c) summed by index (n).
/// Eagerly rows times the elements of `grad`, compiled one pass, as AddTakeGrad, which adds in place. mshadow's
/// take_grad, which clips nothing.
template <typename Index, typename E, typename IType, typename DType, int itype, int etype>
inline auto take_grad(const Exp<Index, IType, itype>& index, const Exp<E, DType, etype>& grad, index_t rows) {
  return IndexMapExp<index_map::take_grad, DType, 2, Index, E>({rows}, index.self(), grad.self());
}
/// (n, classes): 1 where the column is index[row], else 0; of default_real_t, f32, whatever dtype `index` (n) has.
/// mshadow's one_hot_encode.
template <typename Index, typename IType, int itype>
inline auto one_hot_encode(const Exp<Index, IType, itype>& index, index_t classes) {
  return IndexMapExp<index_map::one_hot_encode, default_real_t, 2, Index>({classes}, index.self());
}
/// Element index[i] of a tensor of `shape`, counted row by row, stands at the result[i]-th place once its axes are
/// permuted as transpose(x, axes) does. Places that it does not have are clipped; the result has the dtype of `index`,
/// which should hold them: f32 counts to 2^24. Throws umbra::Error if an axis is missing or an extent is below 1.
/// mshadow's transpose_indices, where they come round again.
template <typename Index, typename DType, int itype, int dim>
inline auto transpose_indices(const Exp<Index, DType, itype>& index, Shape<dim> shape, Shape<dim> axes) {
  static_assert(dim <= index_map::kMaxRank, "umbra: transpose_indices() of a shape with too many axes");
  std::array<index_t, 2 * static_cast<std::size_t>(dim)> numbers{};
  for (std::size_t d = 0; d < dim; ++d) {
    numbers[d] = shape[static_cast<int>(d)];
    numbers[dim + d] = axes[static_cast<int>(d)];
  }
  return IndexMapExp<index_map::transpose_indices, DType, ExpInfo<Index>::kDim, Index>(numbers.data(), 2 * dim,
                                                                                       index.self());
}
/// Element index[i] of row i of `x` (n, c), clipped to the row: (n). mshadow's mat_choose_row_element clips nothing.
template <typename E, typename Index, typename DType, typename IType, int etype, int itype>
inline auto mat_choose_row_element(const Exp<E, DType, etype>& x, const Exp<Index, IType, itype>& index) {
  return IndexMapExp<index_map::mat_choose_row_element, DType, 1, E, Index>({}, x.self(), index.self());
}
/// `x` (n, c), with values[i] as element index[i] of row i, if it has that one; values of another dtype than `x` are
/// converted as by tcast. mshadow's mat_fill_row_element.
template <typename E, typename V, typename Index, typename DType, typename VType, typename IType, int etype, int vtype,
          int itype>
inline auto mat_fill_row_element(const Exp<E, DType, etype>& x, const Exp<V, VType, vtype>& values,
                                 const Exp<Index, IType, itype>& index) {
  if constexpr (std::is_same_v<VType, DType>)
    return IndexMapExp<index_map::mat_fill_row_element, DType, 2, E, V, Index>({}, x.self(), values.self(),
                                                                               index.self());
  else return mat_fill_row_element(x, tcast<DType>(values), index);
}
/// Row i of `x` (n, c) times m[i]. mshadow's mask.
template <typename M, typename E, typename DType, int mtype, int etype>
inline auto mask(const Exp<M, DType, mtype>& m, const Exp<E, DType, etype>& x) {
  return IndexMapExp<index_map::mask, DType, 2, M, E>({}, m.self(), x.self());
}
}  // namespace umbra::expr

namespace umbra {
using expr::broadcast_keepdim;
using expr::broadcast_multi_axes;
using expr::broadcast_to;
using expr::broadcast_with_axis;
using expr::concat;
using expr::crop;
using expr::flip;
using expr::implicit_dot;
using expr::mask;
using expr::mat_choose_row_element;
using expr::mat_fill_row_element;
using expr::mirror;
using expr::one_hot_encode;
using expr::pad;
using expr::range;
using expr::repmat;
using expr::reshape;
using expr::slice;
using expr::slice_ex;
using expr::swapaxis;
using expr::take;
using expr::take_grad;
using expr::transpose;
using expr::transpose_indices;
using expr::upsampling_nearest;
}  // namespace umbra

#endif  // UMBRA_EXTENSION_INDEX_MAP_H_

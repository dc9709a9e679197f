// Windows of the expression API: pooling, its gradients, and patches, as mshadow's; what each means is said once, in
// umbra/index_map/window.h. Operands have one dtype, any of the ten, and so has the result; sizes and strides are in
// elements. A function throws umbra::Error if ranks, numbers or extents do not fit (or does not compile), an assignment
// if the destination overlaps an operand.
#ifndef UMBRA_EXTENSION_WINDOW_H_
#define UMBRA_EXTENSION_WINDOW_H_

#include "umbra/extension/index_map.h"

namespace umbra::expr {

/// Reducer (red::sum, maximum, minimum, product, mean) over the windows of height x width elements that lie whole
/// within the last two axes. Throws umbra::Error if `x` is smaller than a window. mshadow's pool, which has no mean.
template <typename Reducer, typename E, typename DType, int etype>
inline auto pool(const Exp<E, DType, etype>& x, index_t height, index_t width, index_t stride_y, index_t stride_x) {
  return IndexMapExp<index_map::pool<Reducer>, DType, ExpInfo<E>::kDim, E>({height, width, stride_y, stride_x},
                                                                           x.self());
}
template <typename Reducer, typename E, typename DType, int etype>
inline auto pool(const Exp<E, DType, etype>& x, index_t height, index_t width, index_t stride) {
  return pool<Reducer>(x, height, width, stride, stride);
}
/// The same over `shape` (rows, columns) windows; what of one lies beyond the end is left out. Throws umbra::Error if a
/// window begins beyond it: mshadow's pool, to which this shape is given in the same way, joins nothing there.
template <typename Reducer, typename E, typename DType, int etype>
inline auto pool(const Exp<E, DType, etype>& x, Shape<2> shape, index_t height, index_t width, index_t stride_y,
                 index_t stride_x) {
  return IndexMapExp<index_map::pool<Reducer>, DType, ExpInfo<E>::kDim, E>(
      {shape[0], shape[1], height, width, stride_y, stride_x}, x.self());
}
/// The gradient of pool<Reducer>(data), Reducer sum, maximum, minimum or mean: `pooled` is its result, `grad` the
/// gradient of that. Every element that equals an extreme has all of its gradient. mshadow's unpool.
template <typename Reducer, typename A, typename B, typename C, typename DType, int atype, int btype, int ctype>
inline auto unpool(const Exp<A, DType, atype>& data, const Exp<B, DType, btype>& pooled,
                   const Exp<C, DType, ctype>& grad, index_t height, index_t width, index_t stride_y,
                   index_t stride_x) {
  return IndexMapExp<index_map::unpool<Reducer>, DType, ExpInfo<A>::kDim, A, B, C>(
      {height, width, stride_y, stride_x}, data.self(), pooled.self(), grad.self());
}

/// Reducer (as of pool) over the elements of `x` up to each one along `axis`, itself included: scan<red::sum>(x, 0) has
/// cumulative sums. Eagerly, sums of f32 are rounded once, from f64. Umbra's own.
template <typename Reducer, typename E, typename DType, int etype>
inline auto scan(const Exp<E, DType, etype>& x, int axis) {
  return IndexMapExp<index_map::scan<Reducer>, DType, ExpInfo<E>::kDim, E>({axis}, x.self());
}
/// Reducer (as of pool) over windows of `size` channels (the third axis from the end), `padding` beyond each end, less
/// than `size`: (channels + 2 padding - size + 1) / stride of them, so that for strides beyond 1 a last one may be left
/// out. mshadow's chpool, whose windows there also lack the channels beyond the number of windows; these do not.
template <typename Reducer, typename E, typename DType, int etype>
inline auto chpool(const Exp<E, DType, etype>& x, index_t size, index_t stride, index_t padding) {
  return IndexMapExp<index_map::chpool<Reducer>, DType, ExpInfo<E>::kDim, E>({size, stride, padding}, x.self());
}
/// A window around every channel: stride 1, padding size / 2. Throws umbra::Error if `size` is even.
template <typename Reducer, typename E, typename DType, int etype>
inline auto chpool(const Exp<E, DType, etype>& x, index_t size) {
  Require(size % 2 == 1, "chpool: ", size,
          " channels have none in the middle; give an odd size, or a stride and a padding");
  return chpool<Reducer>(x, size, 1, size / 2);
}
/// The gradient of chpool<Reducer>(data), as unpool is that of pool. mshadow's ch_unpool.
template <typename Reducer, typename A, typename B, typename C, typename DType, int atype, int btype, int ctype>
inline auto ch_unpool(const Exp<A, DType, atype>& data, const Exp<B, DType, btype>& pooled,
                      const Exp<C, DType, ctype>& grad, index_t size, index_t stride, index_t padding) {
  return IndexMapExp<index_map::ch_unpool<Reducer>, DType, ExpInfo<A>::kDim, A, B, C>(
      {size, stride, padding}, data.self(), pooled.self(), grad.self());
}
template <typename Reducer, typename A, typename B, typename C, typename DType, int atype, int btype, int ctype>
inline auto ch_unpool(const Exp<A, DType, atype>& data, const Exp<B, DType, btype>& pooled,
                      const Exp<C, DType, ctype>& grad, index_t size) {
  return ch_unpool<Reducer>(data, pooled, grad, size, 1, size / 2);
}
/// Reducer (as of pool) over height x width windows that together cover the last two axes: number o of n from floor(o
/// extent / n) to before ceil((o + 1) extent / n). Umbra's own; the windows of PyTorch's adaptive pooling.
template <typename Reducer, typename E, typename DType, int etype>
inline auto ada_pool(const Exp<E, DType, etype>& x, index_t height, index_t width) {
  return IndexMapExp<index_map::ada_pool<Reducer>, DType, ExpInfo<E>::kDim, E>({height, width}, x.self());
}
/// The patches of pictures (n, c, h, w) as columns of a matrix (c height width, n patches). Throws umbra::Error if a
/// picture is smaller than a patch. mshadow's, in both forms.
template <typename E, typename DType, int etype>
inline auto unpack_patch2col(const Exp<E, DType, etype>& x, index_t height, index_t width, index_t stride_y,
                             index_t stride_x, index_t dilate_y, index_t dilate_x) {
  return IndexMapExp<index_map::unpack_patch2col, DType, 2, E>({height, width, stride_y, stride_x, dilate_y, dilate_x},
                                                               x.self());
}
template <typename E, typename DType, int etype>
inline auto unpack_patch2col(const Exp<E, DType, etype>& x, index_t height, index_t width, index_t stride,
                             index_t dilate = 1) {
  return unpack_patch2col(x, height, width, stride, stride, dilate, dilate);
}
/// The transpose of unpack_patch2col, in its forms: columns summed back into pictures of `shape`. mshadow's.
template <typename E, typename DType, int etype>
inline auto pack_col2patch(const Exp<E, DType, etype>& x, Shape<4> shape, index_t height, index_t width,
                           index_t stride_y, index_t stride_x, index_t dilate_y, index_t dilate_x) {
  return IndexMapExp<index_map::pack_col2patch, DType, 4, E>(
      {shape[0], shape[1], shape[2], shape[3], height, width, stride_y, stride_x, dilate_y, dilate_x}, x.self());
}
template <typename E, typename DType, int etype>
inline auto pack_col2patch(const Exp<E, DType, etype>& x, Shape<4> shape, index_t height, index_t width, index_t stride,
                           index_t dilate = 1) {
  return pack_col2patch(x, shape, height, width, stride, stride, dilate, dilate);
}

}  // namespace umbra::expr

namespace umbra {
using expr::ada_pool;
using expr::ch_unpool;
using expr::chpool;
using expr::pack_col2patch;
using expr::pool;
using expr::unpack_patch2col;
using expr::unpool;
}  // namespace umbra

#endif  // UMBRA_EXTENSION_WINDOW_H_

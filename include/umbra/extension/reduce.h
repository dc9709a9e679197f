// Reductions: over one axis, or over all axes but one. Of any of the ten dtypes, which the result has, too; they are
// joined in what the dtype is computed in (umbra::ComputeOf), the blocks of a sum of f32, eagerly, in f64.
// An assignment throws umbra::Error if the destination overlaps an operand.
#ifndef UMBRA_EXTENSION_REDUCE_H_
#define UMBRA_EXTENSION_REDUCE_H_

#include "umbra/axis_map_exp.h"

namespace umbra::expr {

/// What reduce_with_axis and reduce_keepdim give.
template <typename Reducer, typename SrcExp, typename DType, int dimdst, bool keepdim>
using ReduceWithAxisExp =
    AxisMapExp<std::conditional_t<keepdim, index_map::reduce_keepdim, index_map::reduce_with_axis>, kAtRunTime, Reducer,
               SrcExp, DType, dimdst>;
/// What reductions over all axes but one give.
template <typename SrcExp, typename DType, typename Reducer, int dimkeep>
using ReduceTo1DExp = AxisMapExp<index_map::reduce_except_dim, dimkeep, Reducer, SrcExp, DType, 1>;

/// Joins the elements along `axis` by Reducer (red::sum, maximum, minimum, product, mean, argmax,
/// argmin); the result has one axis less (one element for a vector). With `mask`, red::maximum and
/// red::minimum give positions, as argmax and argmin do: numbers of the dtype, from 0. Throws umbra::Error if `axis` is
/// none of `src`. mshadow's reduce_with_axis, with more reducers.
template <typename Reducer, bool mask = false, typename SrcExp, typename DType, int etype>
inline auto reduce_with_axis(const Exp<SrcExp, DType, etype>& src, int axis) {
  using Joined = typename detail::Masked<Reducer, mask>::Type;
  static_assert(!mask || red::kGivesPosition<Joined>, "umbra: only maximum and minimum have a position");
  constexpr int dim = ExpInfo<SrcExp>::kDim;
  static_assert(dim >= 1, "umbra: reduce_with_axis takes a tensor expression");
  return ReduceWithAxisExp<Joined, SrcExp, DType, (dim > 1 ? dim - 1 : 1), false>(src.self(), axis);
}
/// The same with the axis kept at extent 1. mshadow's reduce_keepdim, NumPy's keepdims.
template <typename Reducer, bool mask = false, typename SrcExp, typename DType, int etype>
inline auto reduce_keepdim(const Exp<SrcExp, DType, etype>& src, int axis) {
  using Joined = typename detail::Masked<Reducer, mask>::Type;
  static_assert(!mask || red::kGivesPosition<Joined>, "umbra: only maximum and minimum have a position");
  constexpr int dim = ExpInfo<SrcExp>::kDim;
  static_assert(dim >= 1, "umbra: reduce_keepdim takes a tensor expression");
  return ReduceWithAxisExp<Joined, SrcExp, DType, dim, true>(src.self(), axis);
}

/// The elements joined by Reducer (red::sum, maximum, minimum or product, or one in mshadow's style) over all axes but
/// `dimkeep`: a vector. mshadow's reduce_except_dim.
template <int dimkeep, typename Reducer, typename SrcExp, typename DType, int etype>
inline ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep> reduce_except_dim(const Exp<SrcExp, DType, etype>& src) {
  static_assert(0 <= dimkeep && dimkeep < ExpInfo<SrcExp>::kDim,
                "umbra: reduce_except_dim<axis>: the axis is beyond the rank");
  static_assert(!red::kIsMade<Reducer>,
                "umbra: reduce_except_dim joins by sum, maximum, minimum or product; use "
                "reduce_with_axis for mean, argmax and argmin");
  return {src.self(), dimkeep};
}
/// The sums over all axes but `dimkeep`: a vector. mshadow's sumall_except_dim.
template <int dimkeep, typename SrcExp, typename DType, int etype>
inline ReduceTo1DExp<SrcExp, DType, red::sum, dimkeep> sumall_except_dim(const Exp<SrcExp, DType, etype>& src) {
  static_assert(0 <= dimkeep && dimkeep < ExpInfo<SrcExp>::kDim,
                "umbra: sumall_except_dim<axis>: the axis is beyond the rank");
  return {src.self(), dimkeep};
}
/// The sum of the rows of a matrix (n, c): the vector (c) of its columns' sums. mshadow's sum_rows.
template <typename SrcExp, typename DType, int etype>
inline auto sum_rows(const Exp<SrcExp, DType, etype>& src) {
  static_assert(ExpInfo<SrcExp>::kDim == 2, "umbra: sum_rows takes a matrix (two axes)");
  return sumall_except_dim<1>(src);
}

/// dst Saver scale * (the elements of `exp` joined over all axes but the lowest, as by reduce_except_dim). Throws
/// umbra::Error if `dst` has another extent. mshadow's MapReduceKeepLowest.
template <typename Saver, typename Reducer, typename Device, typename DType, typename E, int etype>
inline void MapReduceKeepLowest(Tensor<Device, 1, DType>* dst, const Exp<E, DType, etype>& exp, DType scale = 1) {
  static_assert(!red::kIsMade<Reducer>,
                "umbra: MapReduceKeepLowest joins by sum, maximum, minimum or product; use "
                "reduce_with_axis for mean, argmax and argmin");
  MapExp<Saver>(dst, reduce_except_dim<ExpInfo<E>::kDim - 1, Reducer>(exp) * scale);
}
/// The same over all axes but `dimkeep`. mshadow's MapReduceKeepHighDim.
template <typename Saver, typename Reducer, int dimkeep, typename Device, typename DType, typename E, int etype>
inline void MapReduceKeepHighDim(Tensor<Device, 1, DType>* dst, const Exp<E, DType, etype>& exp, DType scale = 1) {
  static_assert(0 <= dimkeep && dimkeep < ExpInfo<E>::kDim,
                "umbra: MapReduceKeepHighDim<..., axis>: the axis is beyond the rank");
  static_assert(!red::kIsMade<Reducer>,
                "umbra: MapReduceKeepHighDim joins by sum, maximum, minimum or product; use "
                "reduce_with_axis for mean, argmax and argmin");
  MapExp<Saver>(dst, reduce_except_dim<dimkeep, Reducer>(exp) * scale);
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

// broadcast<axis>: a vector along one axis of a larger shape, as mshadow's. Of any of the ten dtypes, which the result
// has, too. An assignment throws umbra::Error if the destination overlaps the vector.
#ifndef UMBRA_EXTENSION_BROADCAST_H_
#define UMBRA_EXTENSION_BROADCAST_H_

#include "umbra/axis_map_exp.h"

namespace umbra::expr {

/// What broadcast gives.
template <typename SrcExp, typename DType, int dimdst, int dimcast>
using Broadcast1DExp = AxisMapExp<index_map::broadcast, dimcast, void, SrcExp, DType, dimdst>;
/// What broadcast_scalar gives.
template <typename SrcExp, typename DType, int dimdst>
using BroadcastScalarExp = AxisMapExp<index_map::broadcast_scalar, 0, void, SrcExp, DType, dimdst>;

/// The vector `src` along axis `dimcast` of `shape`. Throws umbra::Error if the extents differ. mshadow's broadcast.
template <int dimcast, typename SrcExp, typename DType, int etype, int dimdst>
inline Broadcast1DExp<SrcExp, DType, dimdst, dimcast> broadcast(const Exp<SrcExp, DType, etype>& src,
                                                                Shape<dimdst> shape) {
  static_assert(ExpInfo<SrcExp>::kDim == 1, "umbra: broadcast<axis>() takes a vector (one axis)");
  static_assert(0 <= dimcast && dimcast < dimdst, "umbra: broadcast<axis>() to an axis beyond the rank");
  const Shape<1> given = ShapeCheck<1, SrcExp>::Check(src.self());
  Require(given[0] == shape[dimcast], "broadcast<", dimcast, ">: a vector of ", given[0],
          " elements does not fit shape ", shape, ", whose axis ", dimcast, " has ", shape[dimcast]);
  return {src.self(), dimcast, shape};
}

/// The vector `src` (1) as a tensor of `shape`. Throws umbra::Error for another extent. mshadow's broadcast_scalar.
template <typename SrcExp, typename DType, int etype, int dimdst>
inline BroadcastScalarExp<SrcExp, DType, dimdst> broadcast_scalar(const Exp<SrcExp, DType, etype>& src,
                                                                  Shape<dimdst> shape) {
  static_assert(ExpInfo<SrcExp>::kDim == 1, "umbra: broadcast_scalar() takes a vector (one axis) of one element");
  const Shape<1> given = ShapeCheck<1, SrcExp>::Check(src.self());
  Require(given[0] == 1, "broadcast_scalar: the source has ", given[0], " elements, it must have one");
  return {src.self(), 0, shape};
}

}  // namespace umbra::expr

namespace umbra {
using expr::broadcast;
using expr::broadcast_scalar;
}  // namespace umbra

#endif  // UMBRA_EXTENSION_BROADCAST_H_

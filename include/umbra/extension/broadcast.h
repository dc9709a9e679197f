// broadcast<axis>: a vector along one axis of a larger shape, as mshadow's. Of any of the ten dtypes, which the result
// has, too. An assignment throws umbra::Error if the destination overlaps the vector.
#ifndef UMBRA_EXTENSION_BROADCAST_H_
#define UMBRA_EXTENSION_BROADCAST_H_

#include "umbra/expr_engine.h"

namespace umbra::expr {

/// Element (..., i at dimcast, ...) is element i of the vector `src_`.
template <typename SrcExp, typename DType, int dimdst, int dimcast>
struct Broadcast1DExp
    : MakeTensorExp<Broadcast1DExp<SrcExp, DType, dimdst, dimcast>, SrcExp, dimdst, DType> {
  SrcExp src_;  ///< of one axis
  /// `src` along axis `dimcast` of `shape`, which it must fit; broadcast<dimcast>() checks it.
  Broadcast1DExp(const SrcExp& src, Shape<dimdst> shape) : src_(src) { this->shape_ = shape; }
};

/// The vector `src` along axis `dimcast` of `shape`. Throws umbra::Error if the extents differ. mshadow's broadcast.
template <int dimcast, typename SrcExp, typename DType, int etype, int dimdst>
inline Broadcast1DExp<SrcExp, DType, dimdst, dimcast> broadcast(
    const Exp<SrcExp, DType, etype>& src, Shape<dimdst> shape) {
  static_assert(ExpInfo<SrcExp>::kDim == 1, "umbra: broadcast<axis>() takes a vector (one axis)");
  static_assert(0 <= dimcast && dimcast < dimdst,
                "umbra: broadcast<axis>() to an axis beyond the rank");
  const Shape<1> given = ShapeCheck<1, SrcExp>::Check(src.self());
  Require(given[0] == shape[dimcast], "broadcast<", dimcast, ">: a vector of ", given[0],
          " elements does not fit shape ", shape);
  return Broadcast1DExp<SrcExp, DType, dimdst, dimcast>(src.self(), shape);
}

template <typename SrcExp, typename DType, int dimdst, int dimcast>
struct Plan<Broadcast1DExp<SrcExp, DType, dimdst, dimcast>, DType> {
  explicit Plan(const Broadcast1DExp<SrcExp, DType, dimdst, dimcast>& e)
      : src_(e.src_),
        length_(e.shape_[dimcast]),
        step_(e.shape_.ProdShape(dimcast + 1, dimdst - 1)) {}
  ComputeOf<DType> Eval(index_t y, index_t x) const {
    if constexpr (dimcast == dimdst - 1)
      return src_.Eval(0, x);
    else
      return src_.Eval(0, y / step_ % length_);
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    if constexpr (dimcast == dimdst - 1)
      return src_.template EvalPacket<V>(0, x, n);
    else
      return simd::fill<V>(src_.Eval(0, y / step_ % length_));
  }
  Plan<SrcExp, DType> src_;
  index_t length_, step_;
};

template <typename SrcExp, typename DType, int dimdst, int dimcast>
struct ExpInfo<Broadcast1DExp<SrcExp, DType, dimdst, dimcast>> {
  static constexpr int kDim = dimdst;
  static constexpr int kDevMask = ExpInfo<SrcExp>::kDevMask;
  static constexpr bool kPacket = PacketCheck<SrcExp>::kPass;
};
template <typename SrcExp, typename DType, int dimdst, int dimcast>
struct AliasCheck<Broadcast1DExp<SrcExp, DType, dimdst, dimcast>> {
  static bool Harmless(const Broadcast1DExp<SrcExp, DType, dimdst, dimcast>& e, const Region& dst) {
    return AliasCheck<SrcExp>::Apart(e.src_, dst);
  }
  static bool Apart(const Broadcast1DExp<SrcExp, DType, dimdst, dimcast>& e, const Region& dst) {
    return AliasCheck<SrcExp>::Apart(e.src_, dst);
  }
};

/// The only element of the vector `src_` everywhere.
template <typename SrcExp, typename DType, int dimdst>
struct BroadcastScalarExp
    : MakeTensorExp<BroadcastScalarExp<SrcExp, DType, dimdst>, SrcExp, dimdst, DType> {
  SrcExp src_;  ///< of one element
  /// `src` as every element of `shape`.
  BroadcastScalarExp(const SrcExp& src, Shape<dimdst> shape) : src_(src) { this->shape_ = shape; }
};

/// The vector `src` (1) as a tensor of `shape`. Throws umbra::Error for another extent. mshadow's broadcast_scalar.
template <typename SrcExp, typename DType, int etype, int dimdst>
inline BroadcastScalarExp<SrcExp, DType, dimdst> broadcast_scalar(
    const Exp<SrcExp, DType, etype>& src, Shape<dimdst> shape) {
  static_assert(ExpInfo<SrcExp>::kDim == 1,
                "umbra: broadcast_scalar() takes a vector (one axis) of one element");
  const Shape<1> given = ShapeCheck<1, SrcExp>::Check(src.self());
  Require(given[0] == 1, "broadcast_scalar: the source has ", given[0],
          " elements, it must have one");
  return BroadcastScalarExp<SrcExp, DType, dimdst>(src.self(), shape);
}

template <typename SrcExp, typename DType, int dimdst>
struct Plan<BroadcastScalarExp<SrcExp, DType, dimdst>, DType> {
  explicit Plan(const BroadcastScalarExp<SrcExp, DType, dimdst>& e) : src_(e.src_) {}
  ComputeOf<DType> Eval(index_t, index_t) const { return src_.Eval(0, 0); }
  template <typename V>
  V EvalPacket(index_t, index_t, index_t) const {
    return simd::fill<V>(src_.Eval(0, 0));
  }
  Plan<SrcExp, DType> src_;
};
template <typename SrcExp, typename DType, int dimdst>
struct ExpInfo<BroadcastScalarExp<SrcExp, DType, dimdst>> {
  static constexpr int kDim = dimdst;
  static constexpr int kDevMask = ExpInfo<SrcExp>::kDevMask;
  static constexpr bool kPacket = kHasPackets<DType>;
};
template <typename SrcExp, typename DType, int dimdst>
struct AliasCheck<BroadcastScalarExp<SrcExp, DType, dimdst>> {
  using E = BroadcastScalarExp<SrcExp, DType, dimdst>;
  static bool Harmless(const E& e, const Region& dst) {
    return AliasCheck<SrcExp>::Apart(e.src_, dst);
  }
  static bool Apart(const E& e, const Region& dst) {
    return AliasCheck<SrcExp>::Apart(e.src_, dst);
  }
};

}  // namespace umbra::expr

namespace umbra {
using expr::broadcast;
using expr::broadcast_scalar;
}  // namespace umbra

#endif  // UMBRA_EXTENSION_BROADCAST_H_

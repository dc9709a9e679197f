// Plans: what is known of an expression by its type, what it reads, and its elements, one by one or in packets;
// mshadow's Plan, with more to say.
#ifndef UMBRA_PLAN_H_
#define UMBRA_PLAN_H_

#include <cstdint>
#include <type_traits>

#include "umbra/axis_map.h"
#include "umbra/expression.h"
#include "umbra/packet.h"
#include "umbra/region.h"

namespace umbra::expr {

using packet::PacketArch;

template <typename E>
struct ExpInfo;

namespace detail {
/// Of what is no expression, and of one whose operands have different ranks.
struct UnknownInfo {
  static constexpr int kDim = -1;
  static constexpr int kDevMask = 0;
};
/// Of an extension that says nothing else: its own rank, on the device of its source.
template <typename SrcExp, int dim>
struct ExtensionInfo {
  static constexpr int kDim = ExpInfo<SrcExp>::kDim >= 0 ? dim : -1;
  static constexpr int kDevMask = ExpInfo<SrcExp>::kDevMask;
};
template <typename SubType, typename SrcExp, int dim, typename DType>
ExtensionInfo<SrcExp, dim> InfoOf(const MakeTensorExp<SubType, SrcExp, dim, DType>*);
UnknownInfo InfoOf(const void*);
}  // namespace detail

/// What is known of an expression's type: its rank kDim (0 for a number, -1 if its operands contradict), the mask
/// kDevMask of the devices that can evaluate it, and kPacket, whether it can be evaluated in packets (not, if it is
/// not said). An extension that derives from MakeTensorExp has its rank and its source's devices.
template <typename E>
struct ExpInfo : decltype(detail::InfoOf(static_cast<const E*>(nullptr))) {};

/// Evaluates an expression at a point: Eval(row, column), and in packets where ExpInfo says so:
/// EvalPacket<V>(row, column, n) of which the first n lanes count. Elements of narrow dtypes are
/// evaluated as what they are computed in (ComputeOf<DType>).
template <typename E, typename DType>
struct Plan;

/// Are packets of DType computed with? Narrow dtypes are evaluated one by one.
template <typename DType>
inline constexpr bool kHasPackets = std::is_same_v<ComputeOf<DType>, DType>;

namespace detail {
template <typename E, typename = void>
inline constexpr bool kSaysPackets = std::is_same_v<E, float> || std::is_same_v<E, double> ||
                                     std::is_same_v<E, std::int32_t> || std::is_same_v<E, std::int64_t>;
template <typename E>
inline constexpr bool kSaysPackets<E, std::void_t<decltype(ExpInfo<E>::kPacket)>> = ExpInfo<E>::kPacket;
}  // namespace detail
/// Can elements of the dtype E, or the expression E, be evaluated in packets of Arch?
template <typename E, packet::PacketArch Arch = packet::kDefaultArch>
struct PacketCheck {
  static constexpr bool kPass = detail::kSaysPackets<E>;  ///< whether they can
};

/// Does reading the expression while writing `dst` point by point give what was meant?
template <typename E>
struct AliasCheck {
  /// Is each element that is read the one that is written then, or no part of `dst`?
  static bool Harmless(const E&, const Region&) { return true; }
  /// Is nothing that is read a part of `dst`?
  static bool Apart(const E&, const Region&) { return true; }
};

// ---- numbers ----------------------------------------------------------------------------------
template <typename DType>
struct ExpInfo<ScalarExp<DType>> {
  static constexpr int kDim = 0;
  static constexpr int kDevMask = 3;
  static constexpr bool kPacket = kHasPackets<DType>;
};
template <typename DType>
struct Plan<ScalarExp<DType>, DType> {
  explicit Plan(const ScalarExp<DType>& e) : scalar_(e.scalar_) {}
  ComputeOf<DType> Eval(index_t, index_t) const { return scalar_; }
  template <typename V>
  V EvalPacket(index_t, index_t, index_t) const {
    return simd::fill<V>(scalar_);
  }
  ComputeOf<DType> scalar_;
};

// ---- tensors ----------------------------------------------------------------------------------
template <typename Device, int dim, typename DType>
struct ExpInfo<Tensor<Device, dim, DType>> {
  static constexpr int kDim = dim;
  static constexpr int kDevMask = Device::kDevMask;
  static constexpr bool kPacket = kHasPackets<DType>;
};
template <typename Device, int dim, typename DType>
struct ExpInfo<TensorContainer<Device, dim, DType>> : ExpInfo<Tensor<Device, dim, DType>> {};
template <typename Device, int dim, typename DType>
struct Plan<Tensor<Device, dim, DType>, DType> {
  explicit Plan(const Tensor<Device, dim, DType>& t) : dptr_(t.dptr_), stride_(dim == 1 ? 0 : t.stride_) {
    umbra::detail::Settle(t.stream_);
  }
  DType& REval(index_t y, index_t x) { return dptr_[y * stride_ + x]; }
  ComputeOf<DType> Eval(index_t y, index_t x) const { return static_cast<ComputeOf<DType>>(dptr_[y * stride_ + x]); }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    const DType* p = dptr_ + y * stride_ + x;
    return n == simd::kWidth<V> ? simd::load<V>(p) : simd::load_head<V>(p, n);
  }
  /// Packets of a tensor of 16-bit floats, as V of f32.
  template <typename V>
  V EvalWidened(index_t y, index_t x, index_t n) const {
    using Half = std::conditional_t<std::is_same_v<DType, half_t>, simd::f16, simd::bf16>;
    using From = simd::packet<Half, simd::kWidth<V>>;
    const auto* p = reinterpret_cast<const Half*>(dptr_ + y * stride_ + x);
    return simd::widen<V>(n == simd::kWidth<V> ? simd::load<From>(p) : simd::load_head<From>(p, n));
  }
  DType* dptr_;
  index_t stride_;
};
template <typename Device, int dim, typename DType>
struct AliasCheck<Tensor<Device, dim, DType>> {
  static bool Apart(const Tensor<Device, dim, DType>& t, const Region& dst) { return RegionOf(t).Apart(dst); }
  static bool Harmless(const Tensor<Device, dim, DType>& t, const Region& dst) {
    const Region own = RegionOf(t);
    return own.Same(dst) || own.Apart(dst);
  }
};

// ---- conversions, transposes, maps -------------------------------------------------------------
namespace detail {
/// Is E a tensor of 16-bit floats, whose packets are widened as they are read?
template <typename E>
inline constexpr bool kWidens = false;
template <typename Device, int dim>
inline constexpr bool kWidens<Tensor<Device, dim, half_t>> = true;
template <typename Device, int dim>
inline constexpr bool kWidens<Tensor<Device, dim, bf16_t>> = true;
}  // namespace detail
template <typename DstDType, typename SrcDType, typename EType, int etype>
struct ExpInfo<TypecastExp<DstDType, SrcDType, EType, etype>> {
  static constexpr int kDim = ExpInfo<EType>::kDim;
  static constexpr int kDevMask = ExpInfo<EType>::kDevMask;
  static constexpr bool kPacket = (PacketCheck<EType>::kPass || detail::kWidens<EType>)&&kHasPackets<DstDType>;
};
template <typename DstDType, typename SrcDType, typename EType, int etype>
struct Plan<TypecastExp<DstDType, SrcDType, EType, etype>, DstDType> {
  explicit Plan(const TypecastExp<DstDType, SrcDType, EType, etype>& e) : src_(e.exp) {}
  ComputeOf<DstDType> Eval(index_t y, index_t x) const {
    return static_cast<ComputeOf<DstDType>>(ConvertTo<DstDType>(src_.Eval(y, x)));
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    using Src = ComputeOf<SrcDType>;
    const auto from = SourcePacket<simd::Rebind<V, Src>>(y, x, n);
    if constexpr (std::is_integral_v<DstDType> && sizeof(Src) != sizeof(DstDType)) {
      // Masks of one lane size do not select among lanes of another.
      Src lanes[simd::kWidth<V>];
      DstDType converted[simd::kWidth<V>];
      simd::store(lanes, from);
      for (int i = 0; i < simd::kWidth<V>; ++i) converted[i] = simd::cast<DstDType>(lanes[i]);
      return simd::load<V>(converted);
    } else {
      return simd::cast<V>(from);
    }
  }
  template <typename V>
  V SourcePacket(index_t y, index_t x, index_t n) const {
    if constexpr (detail::kWidens<EType>) return src_.template EvalWidened<V>(y, x, n);
    else return src_.template EvalPacket<V>(y, x, n);
  }
  Plan<EType, SrcDType> src_;
};
template <typename DstDType, typename SrcDType, typename EType, int etype>
struct AliasCheck<TypecastExp<DstDType, SrcDType, EType, etype>> {
  using E = TypecastExp<DstDType, SrcDType, EType, etype>;
  static bool Harmless(const E& e, const Region& dst) { return AliasCheck<EType>::Harmless(e.exp, dst); }
  static bool Apart(const E& e, const Region& dst) { return AliasCheck<EType>::Apart(e.exp, dst); }
};

template <typename EType, typename DType>
struct ExpInfo<TransposeExp<EType, DType>> {
  static constexpr int kDim = ExpInfo<EType>::kDim;
  static constexpr int kDevMask = ExpInfo<EType>::kDevMask;
  static constexpr bool kPacket = false;
};
template <typename EType, typename DType>
struct Plan<TransposeExp<EType, DType>, DType> {
  explicit Plan(const TransposeExp<EType, DType>& e) : src_(e.exp) {}
  ComputeOf<DType> Eval(index_t y, index_t x) const {
    index_t at[2] = {};
    at[index_map::transpose::From(0, 0, 2, 2)] = y;
    at[index_map::transpose::From(1, 0, 2, 2)] = x;
    return src_.Eval(at[0], at[1]);
  }
  Plan<EType, DType> src_;
};
template <typename EType, typename DType>
struct AliasCheck<TransposeExp<EType, DType>> {
  static bool Harmless(const TransposeExp<EType, DType>& e, const Region& dst) {
    return AliasCheck<EType>::Apart(e.exp, dst);
  }
  static bool Apart(const TransposeExp<EType, DType>& e, const Region& dst) {
    return AliasCheck<EType>::Apart(e.exp, dst);
  }
};

namespace detail {
constexpr int JoinDim(int a, int b) { return a == 0 ? b : b == 0 ? a : a == b ? a : -1; }
}  // namespace detail

template <typename OP, typename TA, typename DType, int etype>
struct ExpInfo<UnaryMapExp<OP, TA, DType, etype>> {
  using V = packet::Vector<ComputeOf<DType>>;
  static constexpr int kDim = ExpInfo<TA>::kDim;
  static constexpr int kDevMask = ExpInfo<TA>::kDevMask;
  static constexpr bool kPacket = PacketCheck<TA>::kPass && packet::kTakes<OP, V>;
};
template <typename OP, typename TA, typename DType, int etype>
struct Plan<UnaryMapExp<OP, TA, DType, etype>, DType> {
  explicit Plan(const UnaryMapExp<OP, TA, DType, etype>& e) : src_(e.src_) {}
  ComputeOf<DType> Eval(index_t y, index_t x) const { return OP::Map(ComputeOf<DType>(src_.Eval(y, x))); }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    return packet::MapLanes<OP>(src_.template EvalPacket<V>(y, x, n));
  }
  Plan<TA, DType> src_;
};
template <typename OP, typename TA, typename DType, int etype>
struct AliasCheck<UnaryMapExp<OP, TA, DType, etype>> {
  using E = UnaryMapExp<OP, TA, DType, etype>;
  static bool Harmless(const E& e, const Region& dst) { return AliasCheck<TA>::Harmless(e.src_, dst); }
  static bool Apart(const E& e, const Region& dst) { return AliasCheck<TA>::Apart(e.src_, dst); }
};

template <typename OP, typename TA, typename TB, typename DType, int etype>
struct ExpInfo<BinaryMapExp<OP, TA, TB, DType, etype>> {
  using V = packet::Vector<ComputeOf<DType>>;
  static constexpr int kDim = detail::JoinDim(ExpInfo<TA>::kDim, ExpInfo<TB>::kDim);
  static constexpr int kDevMask = ExpInfo<TA>::kDevMask & ExpInfo<TB>::kDevMask;
  static constexpr bool kPacket = PacketCheck<TA>::kPass && PacketCheck<TB>::kPass && packet::kTakes<OP, V, V>;
};
template <typename OP, typename TA, typename TB, typename DType, int etype>
struct Plan<BinaryMapExp<OP, TA, TB, DType, etype>, DType> {
  explicit Plan(const BinaryMapExp<OP, TA, TB, DType, etype>& e) : lhs_(e.lhs_), rhs_(e.rhs_) {}
  ComputeOf<DType> Eval(index_t y, index_t x) const {
    return OP::Map(ComputeOf<DType>(lhs_.Eval(y, x)), ComputeOf<DType>(rhs_.Eval(y, x)));
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    return packet::MapLanes<OP>(lhs_.template EvalPacket<V>(y, x, n), rhs_.template EvalPacket<V>(y, x, n));
  }
  Plan<TA, DType> lhs_;
  Plan<TB, DType> rhs_;
};
template <typename OP, typename TA, typename TB, typename DType, int etype>
struct AliasCheck<BinaryMapExp<OP, TA, TB, DType, etype>> {
  using E = BinaryMapExp<OP, TA, TB, DType, etype>;
  static bool Harmless(const E& e, const Region& dst) {
    return AliasCheck<TA>::Harmless(e.lhs_, dst) && AliasCheck<TB>::Harmless(e.rhs_, dst);
  }
  static bool Apart(const E& e, const Region& dst) {
    return AliasCheck<TA>::Apart(e.lhs_, dst) && AliasCheck<TB>::Apart(e.rhs_, dst);
  }
};

template <typename OP, typename TA, typename TB, typename TC, typename DType, int etype>
struct ExpInfo<TernaryMapExp<OP, TA, TB, TC, DType, etype>> {
  using V = packet::Vector<ComputeOf<DType>>;
  static constexpr int kDim = detail::JoinDim(detail::JoinDim(ExpInfo<TA>::kDim, ExpInfo<TB>::kDim), ExpInfo<TC>::kDim);
  static constexpr int kDevMask = ExpInfo<TA>::kDevMask & ExpInfo<TB>::kDevMask & ExpInfo<TC>::kDevMask;
  static constexpr bool kPacket =
      PacketCheck<TA>::kPass && PacketCheck<TB>::kPass && PacketCheck<TC>::kPass && packet::kTakes<OP, V, V, V>;
};
template <typename OP, typename TA, typename TB, typename TC, typename DType, int etype>
struct Plan<TernaryMapExp<OP, TA, TB, TC, DType, etype>, DType> {
  explicit Plan(const TernaryMapExp<OP, TA, TB, TC, DType, etype>& e)
      : item1_(e.item1_),
        item2_(e.item2_),
        item3_(e.item3_) {}
  ComputeOf<DType> Eval(index_t y, index_t x) const {
    return OP::Map(ComputeOf<DType>(item1_.Eval(y, x)), ComputeOf<DType>(item2_.Eval(y, x)),
                   ComputeOf<DType>(item3_.Eval(y, x)));
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    return packet::MapLanes<OP>(item1_.template EvalPacket<V>(y, x, n), item2_.template EvalPacket<V>(y, x, n),
                                item3_.template EvalPacket<V>(y, x, n));
  }
  Plan<TA, DType> item1_;
  Plan<TB, DType> item2_;
  Plan<TC, DType> item3_;
};
template <typename OP, typename TA, typename TB, typename TC, typename DType, int etype>
struct AliasCheck<TernaryMapExp<OP, TA, TB, TC, DType, etype>> {
  using E = TernaryMapExp<OP, TA, TB, TC, DType, etype>;
  static bool Harmless(const E& e, const Region& dst) {
    return AliasCheck<TA>::Harmless(e.item1_, dst) && AliasCheck<TB>::Harmless(e.item2_, dst) &&
           AliasCheck<TC>::Harmless(e.item3_, dst);
  }
  static bool Apart(const E& e, const Region& dst) {
    return AliasCheck<TA>::Apart(e.item1_, dst) && AliasCheck<TB>::Apart(e.item2_, dst) &&
           AliasCheck<TC>::Apart(e.item3_, dst);
  }
};

/// The plan that evaluates `e` element by element (mshadow's MakePlan). It keeps pointers to the tensors, not
/// the tensors.
template <typename E, typename DType, int etype>
inline Plan<E, DType> MakePlan(const Exp<E, DType, etype>& e) {
  return Plan<E, DType>(e.self());
}

/// Do all rows of all tensors in the expression begin at multiples of the packet's size? Expressions
/// run in packets all the same where they do not. False for extensions, transposes and products.
template <int dim, typename E, packet::PacketArch Arch = packet::kDefaultArch>
struct PacketAlignCheck {
  /// Looks at the addresses and strides of the tensors in `e`.
  static bool Check(const E& e) { return Of(e); }

 private:
  template <typename DType>
  static bool Of(const ScalarExp<DType>&) {
    return true;
  }
  template <typename Device, int rank, typename DType>
  static bool Of(const Tensor<Device, rank, DType>& t) {
    return packet::CheckAlign<Arch>(t.dptr_) &&
           (rank == 1 || packet::CheckAlign<Arch>(static_cast<std::size_t>(t.stride_) * sizeof(DType)));
  }
  template <typename Dst, typename Src, typename T, int etype>
  static bool Of(const TypecastExp<Dst, Src, T, etype>& e) {
    return Of(e.exp);
  }
  template <typename OP, typename TA, typename DType, int etype>
  static bool Of(const UnaryMapExp<OP, TA, DType, etype>& e) {
    return Of(e.src_);
  }
  template <typename OP, typename TA, typename TB, typename DType, int etype>
  static bool Of(const BinaryMapExp<OP, TA, TB, DType, etype>& e) {
    return Of(e.lhs_) && Of(e.rhs_);
  }
  template <typename OP, typename TA, typename TB, typename TC, typename DType, int etype>
  static bool Of(const TernaryMapExp<OP, TA, TB, TC, DType, etype>& e) {
    return Of(e.item1_) && Of(e.item2_) && Of(e.item3_);
  }
  template <typename SubType, typename DType, int etype>
  static bool Of(const Exp<SubType, DType, etype>&) {
    return false;
  }
};
/// Evaluates an expression a packet at a time, from (y, x) on along the row.
template <typename E, typename DType, packet::PacketArch Arch = packet::kDefaultArch>
class PacketPlan {
 public:
  using Packet = packet::Packet<DType, Arch>;
  /// A plan of `e`; see MakePacketPlan.
  explicit PacketPlan(const E& e) : plan_(e) {}
  /// Elements (y, x) .. (y, x + kSize - 1), all of which exist.
  Packet EvalPacket(index_t y, index_t x) const { return EvalHead(y, x, Packet::kSize); }
  /// Of which only the first n lanes count; nothing beyond them is read.
  Packet EvalHead(index_t y, index_t x, index_t n) const {
    return Packet(plan_.template EvalPacket<packet::Vector<DType, Arch>>(y, x, n));
  }
  /// Element (y, x) alone.
  ComputeOf<DType> Eval(index_t y, index_t x) const { return plan_.Eval(y, x); }

 private:
  Plan<E, DType> plan_;
};
/// The plan that evaluates `e` in packets of Arch; ill-formed where PacketCheck<E, Arch> fails.
template <packet::PacketArch Arch = packet::kDefaultArch, typename E, typename DType, int etype>
inline PacketPlan<E, DType, Arch> MakePacketPlan(const Exp<E, DType, etype>& e) {
  static_assert(PacketCheck<E, Arch>::kPass, "umbra: the expression has no packets: use MakePlan");
  return PacketPlan<E, DType, Arch>(e.self());
}

}  // namespace umbra::expr

#endif  // UMBRA_PLAN_H_

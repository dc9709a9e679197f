// Eager evaluation: plans that give the element at (row, column), and the loops over them.
#ifndef UMBRA_EXPR_ENGINE_H_
#define UMBRA_EXPR_ENGINE_H_

#include <string_view>
#include <type_traits>

#include "umbra/expression.h"
#include "umbra/packet.h"
#include "umbra/region.h"

namespace umbra::expr {

/// What is known of an expression's type: rank (0 for a number), device, and whether it can be
/// evaluated in packets.
template <typename E>
struct ExpInfo {
  static constexpr int kDim = -1;
  static constexpr int kDevMask = 0;
  static constexpr bool kPacket = false;
};

/// Evaluates an expression at a point: Eval(row, column), and in packets where ExpInfo says so:
/// EvalPacket<V>(row, column, n) of which the first n lanes count. Elements of narrow dtypes are
/// evaluated as what they are computed in (ComputeOf<DType>).
template <typename E, typename DType>
struct Plan;

/// Are packets of DType computed with? Narrow dtypes are evaluated one by one.
template <typename DType>
inline constexpr bool kHasPackets = std::is_same_v<ComputeOf<DType>, DType>;

/// Does reading the expression while writing `dst` point by point give what was meant?
template <typename E>
struct AliasCheck {
  static bool Harmless(const E&, const Region&) { return true; }
  static bool Apart(const E&, const Region&) { return true; }
};

/// The shape of an expression as one of `dim` axes; throws umbra::Error if its parts differ.
template <int dim, typename E>
struct ShapeCheck;

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
  ComputeOf<DType> Eval(index_t, index_t) const { return static_cast<ComputeOf<DType>>(scalar_); }
  template <typename V>
  V EvalPacket(index_t, index_t, index_t) const {
    return simd::fill<V>(scalar_);
  }
  DType scalar_;
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
  explicit Plan(const Tensor<Device, dim, DType>& t)
      : dptr_(t.dptr_), stride_(dim == 1 ? 0 : t.stride_) {}
  DType& REval(index_t y, index_t x) { return dptr_[y * stride_ + x]; }
  ComputeOf<DType> Eval(index_t y, index_t x) const {
    return static_cast<ComputeOf<DType>>(dptr_[y * stride_ + x]);
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    const DType* p = dptr_ + y * stride_ + x;
    return n == simd::kWidth<V> ? simd::load<V>(p) : simd::load_head<V>(p, n);
  }
  DType* dptr_;
  index_t stride_;
};
template <typename Device, int dim, typename DType>
struct AliasCheck<Tensor<Device, dim, DType>> {
  static bool Apart(const Tensor<Device, dim, DType>& t, const Region& dst) {
    return RegionOf(t).Apart(dst);
  }
  static bool Harmless(const Tensor<Device, dim, DType>& t, const Region& dst) {
    const Region own = RegionOf(t);
    return own.Same(dst) || own.Apart(dst);
  }
};

// ---- conversions, transposes, maps -------------------------------------------------------------
template <typename DstDType, typename SrcDType, typename EType, int etype>
struct ExpInfo<TypecastExp<DstDType, SrcDType, EType, etype>> {
  static constexpr int kDim = ExpInfo<EType>::kDim;
  static constexpr int kDevMask = ExpInfo<EType>::kDevMask;
  static constexpr bool kPacket = ExpInfo<EType>::kPacket && kHasPackets<DstDType>;
};
template <typename DstDType, typename SrcDType, typename EType, int etype>
struct Plan<TypecastExp<DstDType, SrcDType, EType, etype>, DstDType> {
  explicit Plan(const TypecastExp<DstDType, SrcDType, EType, etype>& e) : src_(e.exp) {}
  ComputeOf<DstDType> Eval(index_t y, index_t x) const {
    return static_cast<ComputeOf<DstDType>>(ConvertTo<DstDType>(src_.Eval(y, x)));
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    using From = simd::Rebind<V, SrcDType>;
    const From from = src_.template EvalPacket<From>(y, x, n);
    if constexpr (std::is_integral_v<DstDType> && sizeof(SrcDType) != sizeof(DstDType)) {
      // Masks of one lane size do not select among lanes of another.
      SrcDType lanes[simd::kWidth<V>];
      DstDType converted[simd::kWidth<V>];
      simd::store(lanes, from);
      for (int i = 0; i < simd::kWidth<V>; ++i) converted[i] = simd::cast<DstDType>(lanes[i]);
      return simd::load<V>(converted);
    } else {
      return simd::cast<V>(from);
    }
  }
  Plan<EType, SrcDType> src_;
};
template <typename DstDType, typename SrcDType, typename EType, int etype>
struct AliasCheck<TypecastExp<DstDType, SrcDType, EType, etype>> {
  using E = TypecastExp<DstDType, SrcDType, EType, etype>;
  static bool Harmless(const E& e, const Region& dst) {
    return AliasCheck<EType>::Harmless(e.exp, dst);
  }
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
  ComputeOf<DType> Eval(index_t y, index_t x) const { return src_.Eval(x, y); }
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
  static constexpr bool kPacket = ExpInfo<TA>::kPacket && packet::kTakes<OP, V>;
};
template <typename OP, typename TA, typename DType, int etype>
struct Plan<UnaryMapExp<OP, TA, DType, etype>, DType> {
  explicit Plan(const UnaryMapExp<OP, TA, DType, etype>& e) : src_(e.src_) {}
  ComputeOf<DType> Eval(index_t y, index_t x) const { return OP::Map(ComputeOf<DType>(src_.Eval(y, x))); }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    return OP::MapPacket(src_.template EvalPacket<V>(y, x, n));
  }
  Plan<TA, DType> src_;
};
template <typename OP, typename TA, typename DType, int etype>
struct AliasCheck<UnaryMapExp<OP, TA, DType, etype>> {
  using E = UnaryMapExp<OP, TA, DType, etype>;
  static bool Harmless(const E& e, const Region& dst) {
    return AliasCheck<TA>::Harmless(e.src_, dst);
  }
  static bool Apart(const E& e, const Region& dst) { return AliasCheck<TA>::Apart(e.src_, dst); }
};

template <typename OP, typename TA, typename TB, typename DType, int etype>
struct ExpInfo<BinaryMapExp<OP, TA, TB, DType, etype>> {
  using V = packet::Vector<ComputeOf<DType>>;
  static constexpr int kDim = detail::JoinDim(ExpInfo<TA>::kDim, ExpInfo<TB>::kDim);
  static constexpr int kDevMask = ExpInfo<TA>::kDevMask & ExpInfo<TB>::kDevMask;
  static constexpr bool kPacket =
      ExpInfo<TA>::kPacket && ExpInfo<TB>::kPacket && packet::kTakes<OP, V, V>;
};
template <typename OP, typename TA, typename TB, typename DType, int etype>
struct Plan<BinaryMapExp<OP, TA, TB, DType, etype>, DType> {
  explicit Plan(const BinaryMapExp<OP, TA, TB, DType, etype>& e) : lhs_(e.lhs_), rhs_(e.rhs_) {}
  ComputeOf<DType> Eval(index_t y, index_t x) const {
    return OP::Map(ComputeOf<DType>(lhs_.Eval(y, x)), ComputeOf<DType>(rhs_.Eval(y, x)));
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    return OP::MapPacket(lhs_.template EvalPacket<V>(y, x, n),
                         rhs_.template EvalPacket<V>(y, x, n));
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
  static constexpr int kDim =
      detail::JoinDim(detail::JoinDim(ExpInfo<TA>::kDim, ExpInfo<TB>::kDim), ExpInfo<TC>::kDim);
  static constexpr int kDevMask =
      ExpInfo<TA>::kDevMask & ExpInfo<TB>::kDevMask & ExpInfo<TC>::kDevMask;
  static constexpr bool kPacket = ExpInfo<TA>::kPacket && ExpInfo<TB>::kPacket &&
                                  ExpInfo<TC>::kPacket && packet::kTakes<OP, V, V, V>;
};
template <typename OP, typename TA, typename TB, typename TC, typename DType, int etype>
struct Plan<TernaryMapExp<OP, TA, TB, TC, DType, etype>, DType> {
  explicit Plan(const TernaryMapExp<OP, TA, TB, TC, DType, etype>& e)
      : item1_(e.item1_), item2_(e.item2_), item3_(e.item3_) {}
  ComputeOf<DType> Eval(index_t y, index_t x) const {
    return OP::Map(ComputeOf<DType>(item1_.Eval(y, x)), ComputeOf<DType>(item2_.Eval(y, x)),
                   ComputeOf<DType>(item3_.Eval(y, x)));
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    return OP::MapPacket(item1_.template EvalPacket<V>(y, x, n),
                         item2_.template EvalPacket<V>(y, x, n),
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

// ---- shapes -----------------------------------------------------------------------------------
/// A shape that may also be "any", for numbers: told by a flag, not by a zero extent.
template <int dim>
struct MaybeShape {
  bool any = true;
  Shape<dim> shape;
};
namespace detail {
template <typename OP, typename = void>
struct OpName {
  static constexpr std::string_view value = "an operator";
};
template <typename OP>
struct OpName<OP, std::void_t<decltype(OP::kName)>> {
  static constexpr std::string_view value = OP::kName;
};
}  // namespace detail
/// The shape that two operands of `op` have in common; throws umbra::Error with both if they differ.
template <int dim>
inline MaybeShape<dim> Join(std::string_view op, const MaybeShape<dim>& a,
                            const MaybeShape<dim>& b) {
  if (a.any) return b;
  Require(b.any || a.shape == b.shape, op, ": the shapes of the operands differ: ", a.shape,
          " and ", b.shape, "; use broadcast<axis>(...) to bring one to the shape of the other");
  return a;
}
/// The shape of an expression of `dim` axes, or any for a number; throws umbra::Error where operands differ.
template <int dim, typename DType>
inline MaybeShape<dim> ShapeOf(const ScalarExp<DType>&) {
  return {};
}
template <int dim, typename Device, typename DType>
inline MaybeShape<dim> ShapeOf(const Tensor<Device, dim, DType>& t) {
  CheckTensor(t);
  return {false, t.shape_};
}
template <int dim, typename DstDType, typename SrcDType, typename EType, int etype>
inline MaybeShape<dim> ShapeOf(const TypecastExp<DstDType, SrcDType, EType, etype>& e);
template <int dim, typename EType, typename DType>
inline MaybeShape<dim> ShapeOf(const TransposeExp<EType, DType>& e);
template <int dim, typename OP, typename TA, typename DType, int etype>
inline MaybeShape<dim> ShapeOf(const UnaryMapExp<OP, TA, DType, etype>& e);
template <int dim, typename OP, typename TA, typename TB, typename DType, int etype>
inline MaybeShape<dim> ShapeOf(const BinaryMapExp<OP, TA, TB, DType, etype>& e);
template <int dim, typename OP, typename TA, typename TB, typename TC, typename DType, int etype>
inline MaybeShape<dim> ShapeOf(const TernaryMapExp<OP, TA, TB, TC, DType, etype>& e);
template <int dim, typename SubType, typename SrcExp, typename DType>
inline MaybeShape<dim> ShapeOf(const MakeTensorExp<SubType, SrcExp, dim, DType>& e) {
  return {false, e.shape_};
}
template <int dim, typename DstDType, typename SrcDType, typename EType, int etype>
inline MaybeShape<dim> ShapeOf(const TypecastExp<DstDType, SrcDType, EType, etype>& e) {
  return ShapeOf<dim>(e.exp);
}
template <int dim, typename EType, typename DType>
inline MaybeShape<dim> ShapeOf(const TransposeExp<EType, DType>& e) {
  static_assert(dim == 2, "umbra: .T() transposes matrices (two axes)");
  MaybeShape<dim> shape = ShapeOf<dim>(e.exp);
  const index_t rows = shape.shape[0];
  shape.shape[0] = shape.shape[1];
  shape.shape[1] = rows;
  return shape;
}
template <int dim, typename OP, typename TA, typename DType, int etype>
inline MaybeShape<dim> ShapeOf(const UnaryMapExp<OP, TA, DType, etype>& e) {
  return ShapeOf<dim>(e.src_);
}
template <int dim, typename OP, typename TA, typename TB, typename DType, int etype>
inline MaybeShape<dim> ShapeOf(const BinaryMapExp<OP, TA, TB, DType, etype>& e) {
  return Join(detail::OpName<OP>::value, ShapeOf<dim>(e.lhs_), ShapeOf<dim>(e.rhs_));
}
template <int dim, typename OP, typename TA, typename TB, typename TC, typename DType, int etype>
inline MaybeShape<dim> ShapeOf(const TernaryMapExp<OP, TA, TB, TC, DType, etype>& e) {
  constexpr std::string_view op = detail::OpName<OP>::value;
  return Join(op, Join(op, ShapeOf<dim>(e.item1_), ShapeOf<dim>(e.item2_)), ShapeOf<dim>(e.item3_));
}

template <int dim, typename E>
struct ShapeCheck {
  static Shape<dim> Check(const E& e) { return ShapeOf<dim>(e).shape; }
};

/// Compile-time check of an expression against its destination.
template <typename Device, int dim, typename E>
struct TypeCheck {
  static constexpr int kDim = ExpInfo<E>::kDim;
  static_assert(kDim >= 0,
                "umbra: the operands have different numbers of axes, or a dot() stands "
                "inside a larger expression: assign it to a tensor first, or use jit");
  static_assert(kDim < 0 || kDim == 0 || kDim == dim,
                "umbra: the expression and its destination have different numbers of axes");
  static_assert(kDim < 0 || (ExpInfo<E>::kDevMask & Device::kDevMask) != 0,
                "umbra: the expression and its destination are on different devices");
};

/// The stream of a tensor; none for other expressions.
template <typename Device, typename E>
struct StreamInfo {
  static Stream<Device>* Get(const E&) { return nullptr; }
};
template <typename Device, int dim, typename DType>
struct StreamInfo<Device, Tensor<Device, dim, DType>> {
  static Stream<Device>* Get(const Tensor<Device, dim, DType>& t) { return t.stream_; }
};

/// The plan that evaluates `e` element by element (mshadow's MakePlan). It keeps pointers to the tensors, not
/// the tensors.
template <typename E, typename DType, int etype>
inline Plan<E, DType> MakePlan(const Exp<E, DType, etype>& e) {
  return Plan<E, DType>(e.self());
}

/// Can the expression be evaluated in packets?
template <typename E, packet::PacketArch Arch = packet::kDefaultArch>
struct PacketCheck {
  static constexpr bool kPass = ExpInfo<E>::kPacket;
};
/// Do all rows of all tensors in the expression begin at multiples of the packet's size? Expressions
/// run in packets all the same where they do not.
template <int dim, typename E, packet::PacketArch Arch = packet::kDefaultArch>
struct PacketAlignCheck {
  static bool Check(const E& e) { return Of(e); }

 private:
  template <typename DType>
  static bool Of(const ScalarExp<DType>&) { return true; }
  template <typename Device, int rank, typename DType>
  static bool Of(const Tensor<Device, rank, DType>& t) {
    return packet::CheckAlign<Arch>(t.dptr_) &&
           (rank == 1 || packet::CheckAlign<Arch>(static_cast<std::size_t>(t.stride_) * sizeof(DType)));
  }
  template <typename Dst, typename Src, typename T, int etype>
  static bool Of(const TypecastExp<Dst, Src, T, etype>& e) { return Of(e.exp); }
  template <typename OP, typename TA, typename DType, int etype>
  static bool Of(const UnaryMapExp<OP, TA, DType, etype>& e) { return Of(e.src_); }
  template <typename OP, typename TA, typename TB, typename DType, int etype>
  static bool Of(const BinaryMapExp<OP, TA, TB, DType, etype>& e) { return Of(e.lhs_) && Of(e.rhs_); }
  template <typename OP, typename TA, typename TB, typename TC, typename DType, int etype>
  static bool Of(const TernaryMapExp<OP, TA, TB, TC, DType, etype>& e) {
    return Of(e.item1_) && Of(e.item2_) && Of(e.item3_);
  }
  template <typename SubType, typename SrcExp, int rank, typename DType>
  static bool Of(const MakeTensorExp<SubType, SrcExp, rank, DType>&) { return false; }
};
/// Evaluates an expression a packet at a time, from (y, x) on along the row.
template <typename E, typename DType, packet::PacketArch Arch = packet::kDefaultArch>
class PacketPlan {
 public:
  using Packet = packet::Packet<DType, Arch>;
  explicit PacketPlan(const E& e) : plan_(e) {}
  Packet EvalPacket(index_t y, index_t x) const { return EvalHead(y, x, Packet::kSize); }
  /// Of which only the first n lanes count; nothing beyond them is read.
  Packet EvalHead(index_t y, index_t x, index_t n) const {
    return Packet(plan_.template EvalPacket<packet::Vector<DType, Arch>>(y, x, n));
  }
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

/// `*dst Saver value`; what a narrow dtype is computed in is rounded once, here.
template <typename Saver, typename DType>
inline void Store(DType* dst, ComputeOf<DType> value) {
  if constexpr (kHasPackets<DType>) {
    Saver::Save(*dst, value);
  } else if constexpr (std::is_same_v<Saver, sv::saveto>) {
    *dst = ConvertTo<DType>(value);  // what was there may be no value of a bool
  } else {
    ComputeOf<DType> joined = static_cast<ComputeOf<DType>>(*dst);
    Saver::Save(joined, value);
    *dst = ConvertTo<DType>(joined);
  }
}

/// Element by element over the rows of `dst`, without checks.
template <typename Saver, typename Device, int dim, typename DType, typename E>
inline void MapPlan(Tensor<Device, dim, DType>* dst, const Plan<E, DType>& plan) {
  const Shape<2> flat = dst->shape_.FlatTo2D();
  for (index_t y = 0; y < flat[0]; ++y) {
    DType* row = dst->dptr_ + (dim == 1 ? 0 : y * dst->stride_);
    for (index_t x = 0; x < flat[1]; ++x) Store<Saver>(&row[x], ComputeOf<DType>(plan.Eval(y, x)));
  }
}
/// The same in packets; the tail of a row is a packet of which the first lanes count.
template <typename SV, typename Device, int dim, typename DType, typename E,
          packet::PacketArch Arch>
inline void MapPacketPlan(Tensor<Device, dim, DType>* dst, const PacketPlan<E, DType, Arch>& plan) {
  using Saver = packet::Saver<SV, DType, Arch>;
  constexpr index_t kSize = packet::Packet<DType, Arch>::kSize;
  const Shape<2> flat = dst->shape_.FlatTo2D();
  for (index_t y = 0; y < flat[0]; ++y) {
    DType* row = dst->dptr_ + (dim == 1 ? 0 : y * dst->stride_);
    index_t x = 0;
    for (; x + kSize <= flat[1]; x += kSize) Saver::Save(row + x, plan.EvalPacket(y, x));
    const index_t n = flat[1] - x;
    if (n > 0) Saver::SaveHead(row + x, plan.EvalHead(y, x, n), n);
  }
}

/// How expressions of a GPU's tensors are evaluated: by generated kernels, once umbra/jit.h is included.
template <typename Device>
struct Generated {
  template <typename Saver, int dim, typename DType, typename E>
  static void Assign(const Tensor<Device, dim, DType>&, const E&) {
    static_assert(sizeof(E) == 0, "umbra: expressions of a GPU's tensors are computed by generated kernels: include umbra/jit.h "
                                  "before this assignment and link umbra_compiler, or copy the tensors to the CPU");
  }
};

/// dst Saver= exp, element by element or packet by packet. Throws umbra::Error if the shapes do not fit.
template <typename Saver, int dim, typename DType, typename E, int etype>
inline void MapOnCpu(Tensor<cpu, dim, DType>* dst, const Exp<E, DType, etype>& exp) {
  CheckTensor(*dst);
  const MaybeShape<dim> shape = ShapeOf<dim>(exp.self());
  Require(shape.any || shape.shape == dst->shape_, "assignment to a tensor of shape ", dst->shape_,
          " from an expression of shape ", shape.shape);
  const Region region = RegionOf(*dst);
  if (region.rows == 0 || region.width == 0) return;
  Require(AliasCheck<E>::Harmless(exp.self(), region),
          "the destination overlaps an operand in a way that would change the result; assign to "
          "memory of its own");
  if constexpr (PacketCheck<E>::kPass)
    MapPacketPlan<Saver>(dst, MakePacketPlan(exp));
  else
    MapPlan<Saver>(dst, MakePlan(exp));
}

/// `dst Saver exp`, in packets where the expression has them. Throws umbra::Error if shapes differ,
/// memory is missing, or the destination overlaps an operand so that the result would change.
template <typename Saver, typename Device, int dim, typename DType, typename E, int etype>
inline void MapExp(Tensor<Device, dim, DType>* dst, const Exp<E, DType, etype>& exp) {
  (void)TypeCheck<Device, dim, E>();
  if constexpr (!Device::kDevCPU) {
    Generated<Device>::template Assign<Saver>(*dst, exp.self());
  } else {
    MapOnCpu<Saver>(dst, exp);
  }
}

/// A product has no rank: it is assigned, or part of what is compiled.
template <typename TA, typename TB, bool lt, bool rt, typename DType>
struct ExpInfo<DotExp<TA, TB, lt, rt, DType>> {
  static constexpr int kDim = -1;
  static constexpr int kDevMask = ExpInfo<TA>::kDevMask & ExpInfo<TB>::kDevMask;
  static constexpr bool kPacket = false;
};

/// dst = scale * dot(a, b); in umbra/dot.h.
template <typename Saver, typename Device, int dim, typename DType, typename TA, typename TB,
          bool lt, bool rt>
inline void EvalDot(Tensor<Device, dim, DType>* dst, const DotExp<TA, TB, lt, rt, DType>& e);

/// `dst Saver= exp`, evaluated here and now, products by BLAS.
template <typename Saver, typename Device, int dim, typename DType, typename E, int etype>
inline void AssignEagerly(Tensor<Device, dim, DType>* dst, const Exp<E, DType, etype>& exp) {
  MapExp<Saver>(dst, exp);
}
template <typename Saver, typename Device, int dim, typename DType, typename TA, typename TB, bool lt,
          bool rt>
inline void AssignEagerly(Tensor<Device, dim, DType>* dst, const DotExp<TA, TB, lt, rt, DType>& dot) {
  EvalDot<Saver>(dst, dot);
}

}  // namespace umbra::expr

#if defined(UMBRA_JIT_EXPRESSIONS)
namespace umbra::detail {
template <typename Saver, int dim, typename DType, typename E>
inline void AssignCompiled(Tensor<cpu, dim, DType>* dst, const E& exp);  // in umbra/jit.h
}  // namespace umbra::detail
#endif

namespace umbra::expr {

/// Runs assign(&dst, exp) in the order of the stream of `dst`, on copies of the two if that is later.
template <typename Device, int dim, typename DType, typename E, typename Assign>
inline void AssignInOrder(Tensor<Device, dim, DType>* dst, const E& exp, Assign assign) {
  if constexpr (Device::kDevCPU) {
    if (umbra::detail::IsAsynchronous(dst->stream_)) {
      dst->stream_->Submit([to = *dst, exp, assign]() mutable { assign(&to, exp); });
      return;
    }
  }
  assign(dst, exp);
}

/// Chooses how an assignment is evaluated: eagerly, or, in a program built with UMBRA_JIT_EXPRESSIONS
/// defined for all of it, by compiled kernels.
template <typename Saver, typename Container, typename DType>
struct ExpEngine {
  template <typename E, int etype>
  static void Eval(Container* dst, const Exp<E, DType, etype>& exp) {
    AssignInOrder(Handle(dst), exp.self(), [](auto* to, const E& from) {
#if defined(UMBRA_JIT_EXPRESSIONS)
      if constexpr (Container::kDevCPU) umbra::detail::AssignCompiled<Saver>(to, from);
      else
#endif
      AssignEagerly<Saver>(to, from);
    });
  }

 private:
  template <typename Device, int dim>
  static Tensor<Device, dim, DType>* Handle(Tensor<Device, dim, DType>* dst) {
    return dst;
  }
};

}  // namespace umbra::expr

namespace umbra {
using expr::batch_dot;
using expr::dot;
using expr::F;
using expr::MapExp;
using expr::scalar;
using expr::tcast;
}  // namespace umbra

#endif  // UMBRA_EXPR_ENGINE_H_

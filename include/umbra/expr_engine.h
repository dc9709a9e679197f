// Eager evaluation: the shapes and devices of an expression and its destination are checked, and loops over plans
// (umbra/plan.h) assign the elements. Names and meaning of what it checks are mshadow's.
#ifndef UMBRA_EXPR_ENGINE_H_
#define UMBRA_EXPR_ENGINE_H_

#include <string_view>
#include <type_traits>

#include "umbra/generated.h"
#include "umbra/plan.h"

namespace umbra::expr {

/// The shape of an expression as one of `dim` axes; throws umbra::Error if its parts differ.
template <int dim, typename E>
struct ShapeCheck;

/// A shape that may also be "any", for numbers: told by a flag, not by a zero extent.
template <int dim>
struct MaybeShape {
  bool any = true;  ///< any shape: that of a number
  Shape<dim> shape;  ///< where `any` is false
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
inline MaybeShape<dim> Join(std::string_view op, const MaybeShape<dim>& a, const MaybeShape<dim>& b) {
  if (a.any) return b;
  Require(b.any || a.shape == b.shape, op, ": the shapes of the operands differ: ", a.shape, " and ", b.shape,
          "; use broadcast<axis>(...) to bring one to the shape of the other");
  return a;
}
/// The shape of an expression of `dim` axes, or any for a number; throws umbra::Error where operands differ.
template <int dim, typename DType>
inline MaybeShape<dim> ShapeOf(const ScalarExp<DType>&) {
  return {};
}
template <int dim, typename Device, typename DType>
inline MaybeShape<dim> ShapeOf(const Tensor<Device, dim, DType>& t) {
  CheckHandle(t);
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
namespace detail {
template <typename Check, typename = void>
inline constexpr bool kSaysShape = true;
template <typename Check>
inline constexpr bool kSaysShape<Check, typename Check::AsksShapeOf> = false;
}  // namespace detail
template <int dim, typename E, typename DType, int etype>
inline MaybeShape<dim> ShapeOf(const Exp<E, DType, etype>& e) {
  static_assert(detail::kSaysShape<ShapeCheck<dim, E>>,
                "umbra: an expression with another number of axes, or of a class "
                "that is no MakeTensorExp and has no ShapeCheck of its own");
  return {false, ShapeCheck<dim, E>::Check(e.self())};
}
template <int dim, typename DstDType, typename SrcDType, typename EType, int etype>
inline MaybeShape<dim> ShapeOf(const TypecastExp<DstDType, SrcDType, EType, etype>& e) {
  return ShapeOf<dim>(e.exp);
}
template <int dim, typename EType, typename DType>
inline MaybeShape<dim> ShapeOf(const TransposeExp<EType, DType>& e) {
  static_assert(dim == 2, "umbra: .T() transposes matrices (two axes)");
  const MaybeShape<dim> source = ShapeOf<dim>(e.exp);
  MaybeShape<dim> shape = source;
  for (int d = 0; d < dim; ++d) shape.shape[d] = source.shape[index_map::transpose::From(d, 0, dim, dim)];
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
  using AsksShapeOf = void;
  /// The shape of `e`, zeros if it is a number. Throws umbra::Error if operands differ.
  static Shape<dim> Check(const E& e) { return ShapeOf<dim>(e).shape; }
};

/// What the types tell of an expression that is assigned to a tensor of `dim` axes of DType on Device: its rank
/// kExpDim; kDevPass, whether it is on that device; kMapPass, whether it fits element by element; kRedPass, whether it
/// has axes that a reduction to the tensor can join.
template <typename Device, int dim, typename DType, typename E>
struct TypeCheck {
  static constexpr int kExpDim = ExpInfo<E>::kDim;
  static constexpr bool kDevPass = (ExpInfo<E>::kDevMask & Device::kDevMask) != 0;
  static constexpr bool kMapPass = (kExpDim == 0 || kExpDim == dim) && kDevPass;
  static constexpr bool kRedPass = kExpDim > dim&& kDevPass;
};
/// Calls of these compile if kPass holds: what extensions say of their operands in mshadow's style.
template <bool kPass>
struct TypeCheckPass {
  /// Of an expression and its destination.
  static void Error_All_Tensor_in_Exp_Must_Have_Same_Type() {
    static_assert(kPass, "umbra: the tensors of the expression and its destination differ in rank, dtype or device");
  }
  /// Of a reduction and its result.
  static void Error_TypeCheck_Not_Pass_For_Reduce_Exp() {
    static_assert(kPass,
                  "umbra: the expression has no axes more than the result of its reduction, or is on another device");
  }
  /// Of an extension and its operand.
  static void Error_Expression_Does_Not_Meet_Dimension_Req() {
    static_assert(kPass, "umbra: the expression has another number of axes than the extension takes");
  }
};

namespace detail {
/// Is the expression one that can be assigned element by element?
template <typename Device, int dim, typename DType, typename E>
constexpr void RequireMap() {
  using Check = TypeCheck<Device, dim, DType, E>;
  static_assert(Check::kExpDim >= 0,
                "umbra: the operands have different numbers of axes, or a dot() stands "
                "inside a larger expression: assign it to a tensor first, or use jit");
  static_assert(Check::kExpDim <= 0 || Check::kExpDim == dim,
                "umbra: the expression and its destination have different numbers of axes");
  static_assert(Check::kExpDim < 0 || Check::kDevPass,
                "umbra: the expression and its destination are on different devices");
}
}  // namespace detail

/// The stream of a tensor; none for other expressions.
template <typename Device, typename E>
struct StreamInfo {
  /// The stream of `e`; null if it is no tensor.
  static Stream<Device>* Get(const E&) { return nullptr; }
};
template <typename Device, int dim, typename DType>
struct StreamInfo<Device, Tensor<Device, dim, DType>> {
  static Stream<Device>* Get(const Tensor<Device, dim, DType>& t) { return t.stream_; }
};

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
template <typename SV, typename E, int dim, typename DType, packet::PacketArch Arch>
inline void MapPacketPlan(Tensor<cpu, dim, DType> dst, const PacketPlan<E, DType, Arch>& plan) {
  using Saver = packet::Saver<SV, DType, Arch>;
  constexpr index_t kSize = packet::Packet<DType, Arch>::kSize;
  const Shape<2> flat = dst.shape_.FlatTo2D();
  for (index_t y = 0; y < flat[0]; ++y) {
    DType* row = dst.dptr_ + (dim == 1 ? 0 : y * dst.stride_);
    index_t x = 0;
    for (; x + kSize <= flat[1]; x += kSize) Saver::Save(row + x, plan.EvalPacket(y, x));
    const index_t n = flat[1] - x;
    if (n > 0) Saver::SaveHead(row + x, plan.EvalHead(y, x, n), n);
  }
}

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
  if constexpr (PacketCheck<E>::kPass) MapPacketPlan<Saver>(*dst, MakePacketPlan(exp));
  else MapPlan<Saver>(dst, MakePlan(exp));
}

/// `dst Saver exp`, in packets where the expression has them. Throws umbra::Error if shapes differ,
/// memory is missing, or the destination overlaps an operand so that the result would change.
template <typename Saver, typename Device, int dim, typename DType, typename E, int etype>
inline void MapExp(Tensor<Device, dim, DType>* dst, const Exp<E, DType, etype>& exp) {
  detail::RequireMap<Device, dim, DType, E>();
  if constexpr (!Device::kDevCPU) {
    AssignGenerated<Saver>(*dst, exp.self());
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
template <typename Saver, typename Device, int dim, typename DType, typename TA, typename TB, bool lt, bool rt>
inline void EvalDot(Tensor<Device, dim, DType>* dst, const DotExp<TA, TB, lt, rt, DType>& e);

/// How an expression of type::kComplex is assigned to an RV, a tensor: products by BLAS, an expression of a user's by
/// his own specialisation.
template <typename SV, typename RV, typename E, typename DType>
struct ExpComplexEngine {
  /// `*dst SV= exp`; without a specialisation it does not compile, and says that a product must be assigned.
  static void Eval(RV* dst, const E& exp) { MapExp<SV>(dst, exp); }
};
template <typename SV, typename Device, int dim, typename DType, typename TA, typename TB, bool lt, bool rt>
struct ExpComplexEngine<SV, Tensor<Device, dim, DType>, DotExp<TA, TB, lt, rt, DType>, DType> {
  static void Eval(Tensor<Device, dim, DType>* dst, const DotExp<TA, TB, lt, rt, DType>& dot) { EvalDot<SV>(dst, dot); }
};

/// `dst Saver= exp`, evaluated here and now, products by BLAS.
template <typename Saver, typename Device, int dim, typename DType, typename E, int etype>
inline void AssignEagerly(Tensor<Device, dim, DType>* dst, const Exp<E, DType, etype>& exp) {
  if constexpr (Device::kDevCPU) umbra::detail::RunWaiting();
  if constexpr (etype == type::kComplex)
    ExpComplexEngine<Saver, Tensor<Device, dim, DType>, E, DType>::Eval(dst, exp.self());
  else MapExp<Saver>(dst, exp);
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
  /// `*dst Saver= exp`, in the order of its stream. Throws umbra::Error if shapes do not fit, memory is missing, or
  /// the destination overlaps an operand so that the result would change.
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

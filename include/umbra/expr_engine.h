// Eager evaluation: plans that give the element at (row, column), and the loops over them.
#ifndef UMBRA_EXPR_ENGINE_H_
#define UMBRA_EXPR_ENGINE_H_

#include <type_traits>

#include "umbra/expression.h"
#include "umbra/packet.h"

namespace umbra {
template <typename Device, int dimension, typename DType>
struct Tensor;
template <typename Device, int dimension, typename DType>
class TensorContainer;
}  // namespace umbra

namespace umbra::expr {

/// Bytes that an assignment writes, and how they are laid out.
struct Region {
  const char *first, *last;
  const void* data;
  index_t stride;
};

/// What is known of an expression's type: rank (0 for a number), device, and whether it can be
/// evaluated in packets.
template <typename E>
struct ExpInfo {
  static constexpr int kDim = -1;
  static constexpr int kDevMask = 0;
  static constexpr bool kPacket = false;
};

/// Evaluates an expression at a point: Eval(row, column), and in packets where ExpInfo says so:
/// EvalPacket<V>(row, column, n) of which the first n lanes count.
template <typename E, typename DType>
struct Plan;

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
  static constexpr bool kPacket = true;
};
template <typename DType>
struct Plan<ScalarExp<DType>, DType> {
  explicit Plan(const ScalarExp<DType>& e) : scalar_(e.scalar_) {}
  DType Eval(index_t, index_t) const { return scalar_; }
  template <typename V>
  V EvalPacket(index_t, index_t, index_t) const { return simd::fill<V>(scalar_); }
  DType scalar_;
};

// ---- tensors ----------------------------------------------------------------------------------
template <typename Device, int dim, typename DType>
struct ExpInfo<Tensor<Device, dim, DType>> {
  static constexpr int kDim = dim;
  static constexpr int kDevMask = Device::kDevMask;
  static constexpr bool kPacket = true;
};
template <typename Device, int dim, typename DType>
struct ExpInfo<TensorContainer<Device, dim, DType>> : ExpInfo<Tensor<Device, dim, DType>> {};
template <typename Device, int dim, typename DType>
struct Plan<Tensor<Device, dim, DType>, DType> {
  explicit Plan(const Tensor<Device, dim, DType>& t) : dptr_(t.dptr_), stride_(dim == 1 ? 0 : t.stride_) {}
  DType& REval(index_t y, index_t x) { return dptr_[y * stride_ + x]; }
  const DType& Eval(index_t y, index_t x) const { return dptr_[y * stride_ + x]; }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    const DType* p = dptr_ + y * stride_ + x;
    return n == simd::kWidth<V> ? simd::load<V>(p) : simd::load_head<V>(p, n);
  }
  DType* dptr_;
  index_t stride_;
};
template <typename Device, int dim, typename DType>
inline Region RegionOf(const Tensor<Device, dim, DType>& t) {
  const auto* first = reinterpret_cast<const char*>(t.dptr_);
  const Shape<2> flat = t.shape_.FlatTo2D();
  const index_t count = flat[0] == 0 || flat[1] == 0 ? 0 : (flat[0] - 1) * t.stride_ + flat[1];
  return {first, first + count * static_cast<index_t>(sizeof(DType)), t.dptr_, t.stride_};
}
template <typename Device, int dim, typename DType>
struct AliasCheck<Tensor<Device, dim, DType>> {
  static bool Apart(const Tensor<Device, dim, DType>& t, const Region& dst) {
    const Region own = RegionOf(t);
    return own.last <= dst.first || dst.last <= own.first;
  }
  static bool Harmless(const Tensor<Device, dim, DType>& t, const Region& dst) {
    return Apart(t, dst) || (t.dptr_ == dst.data && (t.stride_ == dst.stride || dim == 1));
  }
};

// ---- conversions, transposes, maps -------------------------------------------------------------
template <typename DstDType, typename SrcDType, typename EType, int etype>
struct ExpInfo<TypecastExp<DstDType, SrcDType, EType, etype>> {
  static constexpr int kDim = ExpInfo<EType>::kDim;
  static constexpr int kDevMask = ExpInfo<EType>::kDevMask;
  static constexpr bool kPacket = false;
};
template <typename DstDType, typename SrcDType, typename EType, int etype>
struct Plan<TypecastExp<DstDType, SrcDType, EType, etype>, DstDType> {
  explicit Plan(const TypecastExp<DstDType, SrcDType, EType, etype>& e) : src_(e.exp) {}
  DstDType Eval(index_t y, index_t x) const { return simd::cast<DstDType>(SrcDType(src_.Eval(y, x))); }
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
  DType Eval(index_t y, index_t x) const { return src_.Eval(x, y); }
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
  using V = packet::Vector<DType>;
  static constexpr int kDim = ExpInfo<TA>::kDim;
  static constexpr int kDevMask = ExpInfo<TA>::kDevMask;
  static constexpr bool kPacket = ExpInfo<TA>::kPacket && packet::kTakes<OP, V>;
};
template <typename OP, typename TA, typename DType, int etype>
struct Plan<UnaryMapExp<OP, TA, DType, etype>, DType> {
  explicit Plan(const UnaryMapExp<OP, TA, DType, etype>& e) : src_(e.src_) {}
  DType Eval(index_t y, index_t x) const { return OP::Map(DType(src_.Eval(y, x))); }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    return OP::MapPacket(src_.template EvalPacket<V>(y, x, n));
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
  using V = packet::Vector<DType>;
  static constexpr int kDim = detail::JoinDim(ExpInfo<TA>::kDim, ExpInfo<TB>::kDim);
  static constexpr int kDevMask = ExpInfo<TA>::kDevMask & ExpInfo<TB>::kDevMask;
  static constexpr bool kPacket =
      ExpInfo<TA>::kPacket && ExpInfo<TB>::kPacket && packet::kTakes<OP, V, V>;
};
template <typename OP, typename TA, typename TB, typename DType, int etype>
struct Plan<BinaryMapExp<OP, TA, TB, DType, etype>, DType> {
  explicit Plan(const BinaryMapExp<OP, TA, TB, DType, etype>& e) : lhs_(e.lhs_), rhs_(e.rhs_) {}
  DType Eval(index_t y, index_t x) const {
    return OP::Map(DType(lhs_.Eval(y, x)), DType(rhs_.Eval(y, x)));
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    return OP::MapPacket(lhs_.template EvalPacket<V>(y, x, n), rhs_.template EvalPacket<V>(y, x, n));
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
  using V = packet::Vector<DType>;
  static constexpr int kDim = detail::JoinDim(
      detail::JoinDim(ExpInfo<TA>::kDim, ExpInfo<TB>::kDim), ExpInfo<TC>::kDim);
  static constexpr int kDevMask =
      ExpInfo<TA>::kDevMask & ExpInfo<TB>::kDevMask & ExpInfo<TC>::kDevMask;
  static constexpr bool kPacket = ExpInfo<TA>::kPacket && ExpInfo<TB>::kPacket &&
                                  ExpInfo<TC>::kPacket && packet::kTakes<OP, V, V, V>;
};
template <typename OP, typename TA, typename TB, typename TC, typename DType, int etype>
struct Plan<TernaryMapExp<OP, TA, TB, TC, DType, etype>, DType> {
  explicit Plan(const TernaryMapExp<OP, TA, TB, TC, DType, etype>& e)
      : item1_(e.item1_), item2_(e.item2_), item3_(e.item3_) {}
  DType Eval(index_t y, index_t x) const {
    return OP::Map(DType(item1_.Eval(y, x)), DType(item2_.Eval(y, x)), DType(item3_.Eval(y, x)));
  }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t n) const {
    return OP::MapPacket(item1_.template EvalPacket<V>(y, x, n), item2_.template EvalPacket<V>(y, x, n),
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
template <int dim>
inline MaybeShape<dim> Join(const MaybeShape<dim>& a, const MaybeShape<dim>& b) {
  if (a.any) return b;
  Require(b.any || a.shape == b.shape, "the shapes of the operands differ: ", a.shape, " and ",
          b.shape, "; use broadcast<axis>(...) to bring one to the shape of the other");
  return a;
}
template <int dim, typename DType>
inline MaybeShape<dim> ShapeOf(const ScalarExp<DType>&) { return {}; }
template <int dim, typename Device, typename DType>
inline MaybeShape<dim> ShapeOf(const Tensor<Device, dim, DType>& t) { return {false, t.shape_}; }
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
  return Join(ShapeOf<dim>(e.lhs_), ShapeOf<dim>(e.rhs_));
}
template <int dim, typename OP, typename TA, typename TB, typename TC, typename DType, int etype>
inline MaybeShape<dim> ShapeOf(const TernaryMapExp<OP, TA, TB, TC, DType, etype>& e) {
  return Join(Join(ShapeOf<dim>(e.item1_), ShapeOf<dim>(e.item2_)), ShapeOf<dim>(e.item3_));
}

template <int dim, typename E>
struct ShapeCheck {
  static Shape<dim> Check(const E& e) { return ShapeOf<dim>(e).shape; }
};

/// Compile-time check of an expression against its destination.
template <typename Device, int dim, typename E>
struct TypeCheck {
  static constexpr int kDim = ExpInfo<E>::kDim;
  static_assert(kDim >= 0, "umbra: the operands have different numbers of axes, or a dot() stands "
                           "inside a larger expression: assign it to a tensor first, or use jit");
  static_assert(kDim < 0 || kDim == 0 || kDim == dim,
                "umbra: the expression and its destination have different numbers of axes");
  static_assert(kDim < 0 || (ExpInfo<E>::kDevMask & Device::kDevMask) != 0,
                "umbra: the expression and its destination are on different devices");
};

template <typename E, typename DType, int etype>
inline Plan<E, DType> MakePlan(const Exp<E, DType, etype>& e) { return Plan<E, DType>(e.self()); }

/// dst = exp, element by element, in packets where the expression has them; tails are packets of
/// which the first lanes count.
template <typename Saver, typename Device, int dim, typename DType, typename E, int etype>
inline void MapExp(Tensor<Device, dim, DType>* dst, const Exp<E, DType, etype>& exp) {
  (void)TypeCheck<Device, dim, E>();
  const MaybeShape<dim> shape = ShapeOf<dim>(exp.self());
  Require(shape.any || shape.shape == dst->shape_, "assignment to a tensor of shape ", dst->shape_,
          " from an expression of shape ", shape.shape);
  const Shape<2> flat = dst->shape_.FlatTo2D();
  if (flat[0] == 0 || flat[1] == 0) return;
  Require(dst->dptr_ != nullptr, "assignment to a tensor of shape ", dst->shape_,
          " that has no memory: call AllocSpace, or use TensorContainer");
  const Region region = RegionOf(*dst);
  Require(AliasCheck<E>::Harmless(exp.self(), region),
          "the destination overlaps an operand in a way that would change the result; assign to "
          "memory of its own");
  const Plan<E, DType> plan = MakePlan(exp);
  const index_t stride = dim == 1 ? 0 : dst->stride_;
  if constexpr (ExpInfo<E>::kPacket) {
    using V = packet::Vector<DType>;
    constexpr index_t kWidth = simd::kWidth<V>;
    for (index_t y = 0; y < flat[0]; ++y) {
      DType* row = dst->dptr_ + y * stride;
      index_t x = 0;
      for (; x + kWidth <= flat[1]; x += kWidth) {
        V value = plan.template EvalPacket<V>(y, x, kWidth);
        if constexpr (!std::is_same_v<Saver, sv::saveto>) {
          V joined = simd::load<V>(row + x);
          Saver::Save(joined, value);
          value = joined;
        }
        simd::store(row + x, value);
      }
      if (x == flat[1]) continue;
      V value = plan.template EvalPacket<V>(y, x, flat[1] - x);
      if constexpr (!std::is_same_v<Saver, sv::saveto>) {
        V joined = simd::load_head<V>(row + x, flat[1] - x);
        Saver::Save(joined, value);
        value = joined;
      }
      simd::store_head(row + x, value, flat[1] - x);
    }
  } else {
    for (index_t y = 0; y < flat[0]; ++y)
      for (index_t x = 0; x < flat[1]; ++x)
        Saver::Save(dst->dptr_[y * stride + x], DType(plan.Eval(y, x)));
  }
}

/// dst = scale * dot(a, b); in umbra/dot.h.
template <typename Saver, typename Device, int dim, typename DType, typename TA, typename TB, bool lt,
          bool rt>
inline void EvalDot(Tensor<Device, dim, DType>* dst, const DotExp<TA, TB, lt, rt, DType>& e);

/// Chooses how an assignment is evaluated.
template <typename Saver, typename Container, typename DType>
struct ExpEngine {
  template <typename E, int etype>
  static void Eval(Container* dst, const Exp<E, DType, etype>& exp) {
    EvalAs(Handle(dst), exp.self());
  }

 private:
  template <typename Device, int dim>
  static Tensor<Device, dim, DType>* Handle(Tensor<Device, dim, DType>* dst) { return dst; }
  template <typename Device, int dim, typename E, int etype>
  static void EvalAs(Tensor<Device, dim, DType>* dst, const Exp<E, DType, etype>& exp) {
    MapExp<Saver>(dst, exp);
  }
  template <typename Device, int dim, typename TA, typename TB, bool lt, bool rt>
  static void EvalAs(Tensor<Device, dim, DType>* dst, const DotExp<TA, TB, lt, rt, DType>& dot) {
    EvalDot<Saver>(dst, dot);
  }
};

}  // namespace umbra::expr

namespace umbra {
using expr::dot;
using expr::F;
using expr::scalar;
using expr::tcast;
}  // namespace umbra

#endif  // UMBRA_EXPR_ENGINE_H_

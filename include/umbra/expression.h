// Expression templates: what is written on the right of an assignment, unevaluated. Names and meaning as mshadow's.
#ifndef UMBRA_EXPRESSION_H_
#define UMBRA_EXPRESSION_H_

#include "umbra/op.h"
#include "umbra/shape.h"

namespace umbra::expr {

/// Kinds of expressions, ordered: a value in memory, elementwise over such, anything that can be
/// evaluated point by point, and what needs an evaluation of its own (dot).
namespace type {
/// A tensor in memory.
constexpr int kRValue = 0;
/// A map of tensors, element by element.
constexpr int kMapper = 1;
/// An expression that may read other positions than it writes.
constexpr int kChainer = 3;
/// An expression that is evaluated as a whole: a product of matrices.
constexpr int kComplex = 7;
}  // namespace type

/// Where functions of expressions are (umbra/elementwise.h), so that their operands find them and `using namespace`
/// does not: names of other libraries, or of umbra::op, might clash. A program's own functions are preferred.
namespace detail::functions {
/// Makes an expression `SubType` find them.
template <typename SubType>
struct FoundBy {};
}  // namespace detail::functions

/// Base of all expressions: `SubType` with elements of `DType`.
template <typename SubType, typename DType, int exp_type>
struct Exp : detail::functions::FoundBy<SubType> {
  /// The expression as what it is.
  const SubType& self() const { return *static_cast<const SubType*>(this); }
  /// The same, to be changed.
  SubType* ptrself() { return static_cast<SubType*>(this); }
};

/// A number for every element.
template <typename DType>
struct ScalarExp : Exp<ScalarExp<DType>, DType, type::kMapper> {
  ComputeOf<DType> scalar_;  ///< of every element: what elements are computed in, so 1e-8f beside f16 is no 0
  /// Implicit, so that numbers are expressions.
  ScalarExp(ComputeOf<DType> scalar) : scalar_(scalar) {}  // NOLINT: numbers are expressions
};
/// The number `s` as an expression, for operators written F<op>(x, scalar(s)).
template <typename DType>
inline ScalarExp<DType> scalar(DType s) {
  return ScalarExp<DType>(s);
}

/// Elements converted to another dtype; see tcast.
template <typename DstDType, typename SrcDType, typename EType, int etype>
struct TypecastExp : Exp<TypecastExp<DstDType, SrcDType, EType, etype>, DstDType, etype> {
  EType exp;  ///< what is converted
  /// `e`, converted; see tcast.
  explicit TypecastExp(const EType& e) : exp(e) {}
};
/// Elements converted to DstDType: floats to integers truncate and saturate, NaN becomes 0.
template <typename DstDType, typename SrcDType, typename EType, int etype>
inline TypecastExp<DstDType, SrcDType, EType, (etype | type::kMapper)> tcast(const Exp<EType, SrcDType, etype>& exp) {
  return TypecastExp<DstDType, SrcDType, EType, (etype | type::kMapper)>(exp.self());
}

/// A matrix with rows and columns exchanged; `.T()` of a tensor.
template <typename EType, typename DType>
struct TransposeExp : Exp<TransposeExp<EType, DType>, DType, type::kChainer> {
  EType exp;  ///< what is transposed
  /// `e`, transposed.
  explicit TransposeExp(const EType& e) : exp(e) {}
  /// The transpose of the transpose: the matrix itself.
  const EType& T() const { return exp; }
};

/// OP::Map of every element of an expression.
template <typename OP, typename TA, typename DType, int etype>
struct UnaryMapExp : Exp<UnaryMapExp<OP, TA, DType, etype>, DType, etype> {
  TA src_;  ///< the operand
  /// OP of `src`; F<OP>(src) makes it.
  explicit UnaryMapExp(const TA& src) : src_(src) {}
};

/// OP::Map of the elements of two expressions of one shape, of which one may be a number.
template <typename OP, typename TA, typename TB, typename DType, int etype>
struct BinaryMapExp : Exp<BinaryMapExp<OP, TA, TB, DType, etype>, DType, etype> {
  TA lhs_;  ///< the left operand
  TB rhs_;  ///< the right operand
  /// OP of both; F<OP>(lhs, rhs) and operators make it.
  BinaryMapExp(const TA& lhs, const TB& rhs) : lhs_(lhs), rhs_(rhs) {}
};

/// OP::Map of the elements of three expressions of one shape; numbers fit any.
template <typename OP, typename TA, typename TB, typename TC, typename DType, int etype>
struct TernaryMapExp : Exp<TernaryMapExp<OP, TA, TB, TC, DType, etype>, DType, etype> {
  TA item1_;  ///< the first operand
  TB item2_;  ///< the second operand
  TC item3_;  ///< the third operand
  /// OP of the three; F<OP>(item1, item2, item3) makes it.
  TernaryMapExp(const TA& item1, const TB& item2, const TC& item3) : item1_(item1), item2_(item2), item3_(item3) {}
};

/// scale * op(lhs) . op(rhs); matrices, vectors as rows (lhs) and outer products, or as many matrices
/// on both sides (batch_dot).
template <typename TA, typename TB, bool ltrans, bool rtrans, typename DType>
struct DotExp : Exp<DotExp<TA, TB, ltrans, rtrans, DType>, DType, type::kComplex> {
  TA lhs_;  ///< the left matrix, as it lies in memory
  TB rhs_;  ///< the right matrix, as it lies in memory
  ComputeOf<DType> scale_;  ///< factor of the product
  /// scale times the product; dot() and batch_dot() make it.
  DotExp(const TA& lhs, const TB& rhs, ComputeOf<DType> scale) : lhs_(lhs), rhs_(rhs), scale_(scale) {}
};

/// Base of extensions: an expression of its own shape over `SrcExp`.
template <typename SubType, typename SrcExp, int dim, typename DType>
struct MakeTensorExp : Exp<SubType, DType, type::kChainer> {
  Shape<dim> shape_;  ///< of the result; the extension's constructor sets it
  /// The extension itself.
  const SubType& real_self() const { return *static_cast<const SubType*>(this); }
};

template <typename Saver, typename RValue, typename DType>
struct ExpEngine;

/// What can stand on the left of an assignment.
template <typename Container, typename DType>
class RValueExp : public Exp<Container, DType, type::kRValue> {
 public:
  /// The transpose of a matrix, without a copy.
  TransposeExp<Container, DType> T() const { return TransposeExp<Container, DType>(this->self()); }

#define UMBRA_ASSIGNMENT(symbol, saver)                                                        \
  Container& operator symbol(ComputeOf<DType> s) {                                             \
    ExpEngine<sv::saver, Container, DType>::Eval(this->ptrself(), ScalarExp<DType>(s));        \
    return *this->ptrself();                                                                   \
  }                                                                                            \
  template <typename E, typename EDType, int etype>                                            \
  Container& operator symbol(const Exp<E, EDType, etype>& exp) {                               \
    static_assert(std::is_same_v<EDType, DType>,                                               \
                  "umbra: the two sides of an assignment have different dtypes: convert with " \
                  "tcast<DType>(...)");                                                        \
    ExpEngine<sv::saver, Container, DType>::Eval(this->ptrself(), exp.self());                 \
    return *this->ptrself();                                                                   \
  }
  UMBRA_ASSIGNMENT(+=, plusto)
  UMBRA_ASSIGNMENT(-=, minusto)
  UMBRA_ASSIGNMENT(*=, multo)
  UMBRA_ASSIGNMENT(/=, divto)
#undef UMBRA_ASSIGNMENT

 protected:
  Container& __assign(DType s) {
    ExpEngine<sv::saveto, Container, DType>::Eval(this->ptrself(), ScalarExp<DType>(s));
    return *this->ptrself();
  }
  template <typename E, typename EDType, int etype>
  Container& __assign(const Exp<E, EDType, etype>& exp) {
    static_assert(std::is_same_v<EDType, DType>,
                  "umbra: the two sides of an assignment have different dtypes: convert with "
                  "tcast<DType>(...)");
    ExpEngine<sv::saveto, Container, DType>::Eval(this->ptrself(), exp.self());
    return *this->ptrself();
  }
};

/// OP on every element.
template <typename OP, typename TA, typename DType, int ta>
inline UnaryMapExp<OP, TA, DType, (ta | type::kMapper)> MakeExp(const Exp<TA, DType, ta>& src) {
  static_assert(op::detail::kOperandsOf<OP, 1> == 1, "umbra: F<op>(x) of an operator that takes more operands");
  return UnaryMapExp<OP, TA, DType, (ta | type::kMapper)>(src.self());
}
template <typename OP, typename TA, typename TB, typename DA, typename DB, int ta, int tb>
inline BinaryMapExp<OP, TA, TB, DA, (ta | tb | type::kMapper)> MakeExp(const Exp<TA, DA, ta>& lhs,
                                                                       const Exp<TB, DB, tb>& rhs) {
  static_assert(op::detail::kOperandsOf<OP, 2> == 2,
                "umbra: F<op>(x, y) of an operator that takes more or fewer operands");
  static_assert(std::is_same_v<DA, DB>,
                "umbra: the two operands have different dtypes: convert one with tcast<DType>(...)");
  return BinaryMapExp<OP, TA, TB, DA, (ta | tb | type::kMapper)>(lhs.self(), rhs.self());
}
template <typename OP, typename TA, typename TB, typename TC, typename DA, typename DB, typename DC, int ta, int tb,
          int tc>
inline TernaryMapExp<OP, TA, TB, TC, DA, (ta | tb | tc | type::kMapper)> MakeExp(const Exp<TA, DA, ta>& item1,
                                                                                 const Exp<TB, DB, tb>& item2,
                                                                                 const Exp<TC, DC, tc>& item3) {
  static_assert(op::detail::kOperandsOf<OP, 3> == 3,
                "umbra: F<op>(x, y, z) of an operator that takes more or fewer operands");
  static_assert(std::is_same_v<DA, DB> && std::is_same_v<DA, DC>,
                "umbra: the three operands have different dtypes: convert with tcast<DType>(...)");
  return TernaryMapExp<OP, TA, TB, TC, DA, (ta | tb | tc | type::kMapper)>(item1.self(), item2.self(), item3.self());
}

/// T, not deduced.
template <typename T>
struct Just {
  using type = T;
};
/// A number beside an expression of DType, on either side: it is taken as what DType is computed in.
template <typename DType>
using NumberOf = typename Just<ComputeOf<DType>>::type;

namespace detail {
// The dtype of an expression; void of a number.
template <typename E, typename DType, int etype>
DType ElementOf(const Exp<E, DType, etype>*);
void ElementOf(const void*);
template <typename T>
using Element = decltype(ElementOf(static_cast<const T*>(nullptr)));

// The dtype of the first expression among operands.
template <typename...>
struct FirstElement {};
template <typename T, typename... Rest>
struct FirstElement<T, Rest...>
    : std::conditional_t<std::is_void_v<Element<T>>, FirstElement<Rest...>, Just<Element<T>>> {};

// An operand as an expression, a number as one of DType.
template <typename DType, typename E, typename EDType, int etype>
const Exp<E, EDType, etype>& Operand(const Exp<E, EDType, etype>& exp) {
  return exp;
}
template <typename DType, typename T, typename = std::enable_if_t<std::is_void_v<Element<T>>>>
ScalarExp<DType> Operand(const T& number) {
  return ScalarExp<DType>(static_cast<ComputeOf<DType>>(number));
}
}  // namespace detail

/// Short for MakeExp: F<op::sigmoid>(x), F<op::pow>(x, 2.0f), F<op::clip>(x, 0.0f, 1.0f). Of the operands one at least
/// is an expression, and numbers stand for as many elements.
template <typename OP, typename... Args, typename DType = typename detail::FirstElement<Args...>::type>
inline auto F(const Args&... args) {
  static_assert(
      sizeof...(Args) <= 3,
      "umbra: expressions take operators of up to three operands; one of four is for graphs: graph::Apply(...)");
  return MakeExp<OP>(detail::Operand<DType>(args)...);
}

#define UMBRA_OPERATOR(symbol, name)                                                    \
  template <typename TA, typename TB, typename DA, typename DB, int ta, int tb>         \
  inline auto operator symbol(const Exp<TA, DA, ta>& lhs, const Exp<TB, DB, tb>& rhs) { \
    return MakeExp<op::name>(lhs, rhs);                                                 \
  }                                                                                     \
  template <typename TA, typename DType, int ta>                                        \
  inline auto operator symbol(const Exp<TA, DType, ta>& lhs, NumberOf<DType> rhs) {     \
    return MakeExp<op::name>(lhs, ScalarExp<DType>(rhs));                               \
  }                                                                                     \
  template <typename TB, typename DType, int tb>                                        \
  inline auto operator symbol(NumberOf<DType> lhs, const Exp<TB, DType, tb>& rhs) {     \
    return MakeExp<op::name>(ScalarExp<DType>(lhs), rhs);                               \
  }
UMBRA_OPERATOR(+, plus)
UMBRA_OPERATOR(-, minus)
UMBRA_OPERATOR(*, mul)
UMBRA_OPERATOR(/, div)
#undef UMBRA_OPERATOR
/// Short for F<op::negative>(src).
template <typename TA, typename DType, int ta>
inline auto operator-(const Exp<TA, DType, ta>& src) {
  return MakeExp<op::negative>(src);
}

/// scale * dot(...) stays one product.
template <typename TA, typename TB, bool lt, bool rt, typename DType>
inline DotExp<TA, TB, lt, rt, DType> operator*(const DotExp<TA, TB, lt, rt, DType>& dot, NumberOf<DType> scale) {
  return DotExp<TA, TB, lt, rt, DType>(dot.lhs_, dot.rhs_, dot.scale_ * scale);
}
/// A product with a factor; the product is scaled, not its result.
template <typename TA, typename TB, bool lt, bool rt, typename DType>
inline DotExp<TA, TB, lt, rt, DType> operator*(NumberOf<DType> scale, const DotExp<TA, TB, lt, rt, DType>& dot) {
  return dot * scale;
}
/// The same with the factor -1.
template <typename TA, typename TB, bool lt, bool rt, typename DType>
inline DotExp<TA, TB, lt, rt, DType> operator-(const DotExp<TA, TB, lt, rt, DType>& dot) {
  return dot * static_cast<ComputeOf<DType>>(-1.0f);
}

/// The products op(lhs[k]) . op(rhs[k]) of as many matrices: (batch, m, k) and (batch, k, n) give (batch, m, n).
/// Dtypes, assignments and errors are those of dot. mshadow's batch_dot.
template <bool transpose_left = false, bool transpose_right = false, typename TA, typename TB, typename DType>
inline DotExp<TA, TB, transpose_left, transpose_right, DType> batch_dot(const RValueExp<TA, DType>& lhs,
                                                                        const RValueExp<TB, DType>& rhs) {
  return {lhs.self(), rhs.self(), ComputeOf<DType>(1)};
}

/// Products of tensors, either side transposed by .T() if it is a matrix: (m, k) and (k, n) give (m, n), (k) and (k, n)
/// give (n), (m) and (n) give the outer product (m, n). Of f32, f64, f16 and bf16, the last two summed in f32. Eagerly
/// assigned by =, += and -=, which throw umbra::Error if shapes do not fit or the destination overlaps an operand.
/// mshadow's dot.
template <typename TA, typename TB, typename DType>
inline DotExp<TA, TB, false, false, DType> dot(const RValueExp<TA, DType>& lhs, const RValueExp<TB, DType>& rhs) {
  return DotExp<TA, TB, false, false, DType>(lhs.self(), rhs.self(), ComputeOf<DType>(1));
}
template <typename TA, typename TB, typename DType>
inline DotExp<TA, TB, true, false, DType> dot(const TransposeExp<TA, DType>& lhs, const RValueExp<TB, DType>& rhs) {
  return DotExp<TA, TB, true, false, DType>(lhs.exp, rhs.self(), DType(1));
}
template <typename TA, typename TB, typename DType>
inline DotExp<TA, TB, false, true, DType> dot(const RValueExp<TA, DType>& lhs, const TransposeExp<TB, DType>& rhs) {
  return DotExp<TA, TB, false, true, DType>(lhs.self(), rhs.exp, DType(1));
}
template <typename TA, typename TB, typename DType>
inline DotExp<TA, TB, true, true, DType> dot(const TransposeExp<TA, DType>& lhs, const TransposeExp<TB, DType>& rhs) {
  return DotExp<TA, TB, true, true, DType>(lhs.exp, rhs.exp, DType(1));
}
/// Of anything else: tells the compiler's user what dot takes.
template <typename EA, typename EB, typename DA, typename DB, int atype, int btype>
inline const EA& dot(const Exp<EA, DA, atype>& lhs, const Exp<EB, DB, btype>&) {
  static_assert(!std::is_same_v<DA, DB>,
                "umbra: dot() takes tensors or their .T(): assign what is computed to a tensor before");
  static_assert(std::is_same_v<DA, DB>,
                "umbra: dot() of operands of different dtypes: convert one with tcast<DType>()");
  return lhs.self();
}

}  // namespace umbra::expr

#endif  // UMBRA_EXPRESSION_H_

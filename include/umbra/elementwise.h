// The operators of umbra/ops.def as functions of expressions: exp(x), maximum(x, 0.0f), select(x > 0.0f, x, y).
#ifndef UMBRA_ELEMENTWISE_H_
#define UMBRA_ELEMENTWISE_H_

#include <type_traits>

#include "umbra/expression.h"

namespace umbra::expr::detail::functions {

template <typename... Pack>
using IfEmpty = std::enable_if_t<sizeof...(Pack) == 0, int>;
template <typename E, typename DType, int etype>
DType ElementOf(const Exp<E, DType, etype>*);
void ElementOf(const void*);
/// The dtype of the first of the operands that is an expression; void if none is.
template <typename... Operands>
struct FirstElement {
  using type = void;
};
template <typename First, typename... Rest>
struct FirstElement<First, Rest...> {
  using Own = decltype(ElementOf(static_cast<const First*>(nullptr)));
  using type = std::conditional_t<std::is_void_v<Own>, typename FirstElement<Rest...>::type, Own>;
};
/// An operand as an expression: a number beside one takes its dtype.
template <typename DType, typename E, typename EDType, int etype>
inline const E& Operand(const Exp<E, EDType, etype>& operand) {
  return operand.self();
}
template <typename DType, typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
inline ScalarExp<DType> Operand(T number) {
  return ScalarExp<DType>(static_cast<DType>(number));
}
// The empty pack is what a program's own functions have not, which are preferred for it.
#define UMBRA_FUNCTION_1(name)                                                                            \
  template <typename TA, typename DType, int ta, typename... Pack, IfEmpty<Pack...> = 0>                  \
  inline auto name(const Exp<TA, DType, ta>& a, const Pack&...) {                                         \
    return MakeExp<op::name>(a);                                                                          \
  }
#define UMBRA_FUNCTION_2(name)                                                                            \
  template <typename TA, typename TB, typename DA, typename DB, int ta, int tb, typename... Pack, IfEmpty<Pack...> = 0> \
  inline auto name(const Exp<TA, DA, ta>& a, const Exp<TB, DB, tb>& b, const Pack&...) {                  \
    return MakeExp<op::name>(a, b);                                                                       \
  }                                                                                                       \
  template <typename TA, typename DType, int ta, typename... Pack, IfEmpty<Pack...> = 0>                  \
  inline auto name(const Exp<TA, DType, ta>& a, typename Just<DType>::type b, const Pack&...) {           \
    return MakeExp<op::name>(a, ScalarExp<DType>(b));                                                     \
  }                                                                                                       \
  template <typename TB, typename DType, int tb, typename... Pack, IfEmpty<Pack...> = 0>                  \
  inline auto name(typename Just<DType>::type a, const Exp<TB, DType, tb>& b, const Pack&...) {           \
    return MakeExp<op::name>(ScalarExp<DType>(a), b);                                                     \
  }
#define UMBRA_FUNCTION_3(name)                                                                            \
  template <typename A, typename B, typename C, typename DType = typename FirstElement<A, B, C>::type>    \
  inline auto name(const A& a, const B& b, const C& c)                                                    \
      -> decltype(MakeExp<op::name>(Operand<DType>(a), Operand<DType>(b), Operand<DType>(c))) {           \
    return MakeExp<op::name>(Operand<DType>(a), Operand<DType>(b), Operand<DType>(c));                    \
  }
#define UMBRA_FUNCTION_OF(...) UMBRA_FUNCTION_PICK(__VA_ARGS__, 3, 2, 1, )
#define UMBRA_FUNCTION_PICK(a, b, c, count, ...) UMBRA_FUNCTION_##count
#define UMBRA_PRIMITIVE(name, arity, ...) UMBRA_FUNCTION_##arity(name)
#define UMBRA_COMPOSITE(name, args, ...) UMBRA_FUNCTION_OF args(name)
#include "umbra/ops.def"
#undef UMBRA_FUNCTION_1
#undef UMBRA_FUNCTION_2
#undef UMBRA_FUNCTION_3
#undef UMBRA_FUNCTION_OF
#undef UMBRA_FUNCTION_PICK

#define UMBRA_COMPARISON(symbol, name)                                                                    \
  template <typename TA, typename TB, typename DA, typename DB, int ta, int tb>                           \
  inline auto operator symbol(const Exp<TA, DA, ta>& a, const Exp<TB, DB, tb>& b) {                       \
    return MakeExp<op::name>(a, b);                                                                       \
  }                                                                                                       \
  template <typename TA, typename DType, int ta>                                                          \
  inline auto operator symbol(const Exp<TA, DType, ta>& a, typename Just<DType>::type b) {                \
    return MakeExp<op::name>(a, ScalarExp<DType>(b));                                                     \
  }                                                                                                       \
  template <typename TB, typename DType, int tb>                                                          \
  inline auto operator symbol(typename Just<DType>::type a, const Exp<TB, DType, tb>& b) {                \
    return MakeExp<op::name>(ScalarExp<DType>(a), b);                                                     \
  }
UMBRA_COMPARISON(<, lt)
UMBRA_COMPARISON(<=, le)
UMBRA_COMPARISON(>, gt)
UMBRA_COMPARISON(>=, ge)
#undef UMBRA_COMPARISON

}  // namespace umbra::expr::detail::functions

#endif  // UMBRA_ELEMENTWISE_H_

// The operators of umbra/ops.def as functions of expressions: exp(x), maximum(x, 0.0f), select(x > 0 && x < 1, x, y).
#ifndef UMBRA_ELEMENTWISE_H_
#define UMBRA_ELEMENTWISE_H_

#include <type_traits>

#include "umbra/expression.h"

namespace umbra::expr::detail::functions {

// A number beside an expression, which takes its dtype. It is made of one, so that a program's own function of a number
// is preferred; and so it is for the empty pack, which it has not.
template <typename DType>
struct NumberBeside : ScalarExp<DType> {
  template <typename T, typename = std::enable_if_t<std::is_convertible_v<T, ComputeOf<DType>>>>
  NumberBeside(T number) : ScalarExp<DType>(static_cast<ComputeOf<DType>>(number)) {  // NOLINT: numbers are expressions
    static_assert(
        !std::is_integral_v<DType> || !std::is_floating_point_v<T>,
        "umbra: a number with a fraction beside an expression of integers: convert that with tcast<float>(...), "
        "or write a whole number");
  }
};
template <typename DType>
using Number = typename Just<NumberBeside<DType>>::type;
template <typename... Pack>
using IfEmpty = std::enable_if_t<sizeof...(Pack) == 0, int>;

#define UMBRA_LIST(...) __VA_ARGS__
#define UMBRA_T(k) typename E##k, typename D##k, int t##k
#define UMBRA_E(k) const Exp<E##k, D##k, t##k>& x##k
#define UMBRA_N(k, beside) const Number<D##beside>& x##k
#define UMBRA_FUNCTION(name, types, parameters, operands)             \
  template <UMBRA_LIST types, typename... Pack, IfEmpty<Pack...> = 0> \
  inline auto name(UMBRA_LIST parameters, const Pack&...) {           \
    return MakeExp<op::name>(UMBRA_LIST operands);                    \
  }
#define UMBRA_FUNCTION_1(name) UMBRA_FUNCTION(name, (UMBRA_T(0)), (UMBRA_E(0)), (x0))
#define UMBRA_FUNCTION_2(name)                                                       \
  UMBRA_FUNCTION(name, (UMBRA_T(0), UMBRA_T(1)), (UMBRA_E(0), UMBRA_E(1)), (x0, x1)) \
  UMBRA_FUNCTION(name, (UMBRA_T(0)), (UMBRA_E(0), UMBRA_N(1, 0)), (x0, x1))          \
  UMBRA_FUNCTION(name, (UMBRA_T(1)), (UMBRA_N(0, 1), UMBRA_E(1)), (x0, x1))
#define UMBRA_FUNCTION_3(name)                                                                                   \
  UMBRA_FUNCTION(name, (UMBRA_T(0), UMBRA_T(1), UMBRA_T(2)), (UMBRA_E(0), UMBRA_E(1), UMBRA_E(2)), (x0, x1, x2)) \
  UMBRA_FUNCTION(name, (UMBRA_T(0), UMBRA_T(1)), (UMBRA_E(0), UMBRA_E(1), UMBRA_N(2, 0)), (x0, x1, x2))          \
  UMBRA_FUNCTION(name, (UMBRA_T(0), UMBRA_T(2)), (UMBRA_E(0), UMBRA_N(1, 0), UMBRA_E(2)), (x0, x1, x2))          \
  UMBRA_FUNCTION(name, (UMBRA_T(1), UMBRA_T(2)), (UMBRA_N(0, 1), UMBRA_E(1), UMBRA_E(2)), (x0, x1, x2))          \
  UMBRA_FUNCTION(name, (UMBRA_T(0)), (UMBRA_E(0), UMBRA_N(1, 0), UMBRA_N(2, 0)), (x0, x1, x2))                   \
  UMBRA_FUNCTION(name, (UMBRA_T(1)), (UMBRA_N(0, 1), UMBRA_E(1), UMBRA_N(2, 1)), (x0, x1, x2))                   \
  UMBRA_FUNCTION(name, (UMBRA_T(2)), (UMBRA_N(0, 2), UMBRA_N(1, 2), UMBRA_E(2)), (x0, x1, x2))
#define UMBRA_FUNCTION_OF(...) UMBRA_FUNCTION_PICK(__VA_ARGS__, 3, 2, 1, )
#define UMBRA_FUNCTION_PICK(a, b, c, count, ...) UMBRA_FUNCTION_##count
#define UMBRA_PRIMITIVE(name, arity, ...) UMBRA_FUNCTION_##arity(name)
#define UMBRA_COMPOSITE(name, args, ...) UMBRA_FUNCTION_OF args(name)
#include "umbra/ops.def"

#define UMBRA_SIGN(symbol, name)                           \
  template <UMBRA_T(0), UMBRA_T(1)>                        \
  inline auto operator symbol(UMBRA_E(0), UMBRA_E(1)) {    \
    return MakeExp<op::name>(x0, x1);                      \
  }                                                        \
  template <UMBRA_T(0)>                                    \
  inline auto operator symbol(UMBRA_E(0), UMBRA_N(1, 0)) { \
    return MakeExp<op::name>(x0, x1);                      \
  }                                                        \
  template <UMBRA_T(1)>                                    \
  inline auto operator symbol(UMBRA_N(0, 1), UMBRA_E(1)) { \
    return MakeExp<op::name>(x0, x1);                      \
  }
UMBRA_SIGN(<, lt)
UMBRA_SIGN(<=, le)
UMBRA_SIGN(>, gt)
UMBRA_SIGN(>=, ge)
UMBRA_SIGN(==, eq)
UMBRA_SIGN(!=, ne)
UMBRA_SIGN(&&, logical_and)
UMBRA_SIGN(||, logical_or)
template <UMBRA_T(0)>
inline auto operator!(UMBRA_E(0)) {
  return MakeExp<op::logical_not>(x0);
}

#undef UMBRA_SIGN
#undef UMBRA_FUNCTION_1
#undef UMBRA_FUNCTION_2
#undef UMBRA_FUNCTION_3
#undef UMBRA_FUNCTION_OF
#undef UMBRA_FUNCTION_PICK
#undef UMBRA_FUNCTION
#undef UMBRA_LIST
#undef UMBRA_T
#undef UMBRA_E
#undef UMBRA_N

}  // namespace umbra::expr::detail::functions

#endif  // UMBRA_ELEMENTWISE_H_

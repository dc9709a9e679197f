// What the operators of networks mean, in forms that lose nothing in a wider type: of double, long double and the
// packets that have functions in this namespace before this is read.
#ifndef UMBRA_TESTS_SWEEP_NETWORKS_H_
#define UMBRA_TESTS_SWEEP_NETWORKS_H_

#include <cmath>
#include <type_traits>

namespace reference {

using std::erfc, std::exp, std::log1p, std::sqrt, std::tanh;

// Of the type of T's elements.
template <typename T>
auto Constant(long double number) {
  return static_cast<std::conditional_t<std::is_same_v<T, long double>, T, double>>(number);
}

template <typename T>
T rsqrt(T x) {
  return 1 / sqrt(x);
}
template <typename T>
T sigmoid(T x) {
  return 1 / (1 + exp(-x));
}
template <typename T>
T softplus(T x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
template <typename T>
T log_sigmoid(T x) {
  return -softplus(-x);
}
template <typename T>
T silu(T x) {
  return x * sigmoid(x);
}
template <typename T>
T mish(T x) {
  return x * tanh(softplus(x));
}
template <typename T>
T gelu(T x) {
  const auto twice_root = Constant<T>(1.59576912160573071175978423973752L);  // 2 sqrt(2 / pi)
  return x * sigmoid(twice_root * (x + Constant<T>(0.044715L) * (x * x * x)));
}
template <typename T>
T gelu_erf(T x) {
  return x < -100 ? T{} : x / 2 * erfc(x * -Constant<T>(0.707106781186547524400844362104849L));
}

}  // namespace reference

#endif  // UMBRA_TESTS_SWEEP_NETWORKS_H_

#include "kernels.h"

// Of C++20, and of definitions and flags of the build.
template <typename T>
concept Number = sizeof(UNIT) == 6 && sizeof(T) >= 4;
template <Number T>
constexpr T Twice(T a) {
#ifdef NDEBUG
  return 2 * a;
#else
  return 4 * a;
#endif
}

UMBRA_KERNEL void scale(umbra::Tensor<umbra::cpu, 2> y, umbra::Tensor<umbra::cpu, 2> x) { y = x * Twice(SCALE); }
void halved(umbra::Tensor<umbra::cpu, 1> y) { nn::halve(y, y); }

#include "in_a_folder.h"
#include "kernels.h"

static_assert(sizeof(FROM) == 8 && OTHER == 2 && LANGUAGE == 1, "options of the target");
static_assert(SOURCE == 3 && IN_A_FOLDER == 4, "properties of the source");
static_assert(FIRST == 5, "a precompiled header");

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

// Operators that the user defines.
#include <cmath>
#include <cstdio>

#include "mshadow/tensor.h"

using namespace mshadow;
using namespace mshadow::expr;

struct addone {
  MSHADOW_XINLINE static float Map(float a) { return a + 1.0f; }
};
struct maxoftwo {
  template <typename DType>
  MSHADOW_XINLINE static DType Map(DType a, DType b) {
    if (a > b) return a;
    return b;
  }
};
namespace {
UMBRA_OP(twice, (a), a + a)
}  // namespace
struct sigmoid {
  MSHADOW_XINLINE static real_t Map(real_t a) { return 1.0f / (1.0f + std::exp(-a)); }
};

int main(void) {
  TensorContainer<cpu, 2> src(Shape2(3, 21)), other(Shape2(3, 21)), out(Shape2(3, 21));
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 21; ++j) {
      src[i][j] = static_cast<float>(j) - 10.0f;
      other[i][j] = static_cast<float>(i);
    }
  out = F<maxoftwo>(F<addone>(src) + 2.0f, other);
  int failures = 0;
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 21; ++j) {
      const float wanted = std::max(src[i][j] + 3.0f, other[i][j]);
      failures += out[i][j] != wanted;
    }
  out = F<sigmoid>(src);
  for (index_t j = 0; j < 21; ++j) failures += std::fabs(out[1][j] - 1.0f / (1.0f + std::exp(-src[1][j]))) > 1e-6f;
  out = F<twice>(src);
  failures += out[1][3] != 2 * src[1][3];
  std::printf(failures == 0 ? "defop: done\n" : "defop: %d wrong elements\n", failures);
  return failures != 0;
}

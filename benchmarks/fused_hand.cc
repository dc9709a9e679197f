// What the fused steps are measured against, as one would write it by hand.
#include <cmath>

#include "fused.h"

namespace bench::fused {

void Relu(Size rows, Size columns, const float* bias, float* y) {
  for (Size i = 0; i < rows; ++i) {
    float* const row = y + i * columns;
    for (Size j = 0; j < columns; ++j) row[j] = row[j] + bias[j] > 0 ? row[j] + bias[j] : 0;
  }
}

void GeluResidual(Size rows, Size columns, const float* bias, const float* residual, float* y) {
  for (Size i = 0; i < rows; ++i) {
    float* const row = y + i * columns;
    const float* const r = residual + i * columns;
    for (Size j = 0; j < columns; ++j) {
      const float v = row[j] + bias[j];
      row[j] = v / (1 + std::exp(v * (-1.5957691669464111f - 0.07135481387376785f * v * v))) + r[j];
    }
  }
}

void Update(Size n, float* __restrict p, float* __restrict m, float* __restrict v, const float* __restrict g,
            float rate, float beta1, float beta2, float epsilon) {
  for (Size i = 0; i < n; ++i) {
    m[i] = m[i] * beta1 + g[i] * (1 - beta1);
    v[i] = v[i] * beta2 + g[i] * g[i] * (1 - beta2);
    p[i] -= m[i] * rate / (std::sqrt(v[i]) + epsilon);
  }
}

}  // namespace bench::fused

// Hand-written loops for the workloads of fused.cc.
#ifndef UMBRA_BENCHMARKS_FUSED_H_
#define UMBRA_BENCHMARKS_FUSED_H_

#include <cstdint>

namespace bench::fused {

using Size = std::int64_t;

/// y = max(y + bias, 0), a pass over a product.
void Relu(Size rows, Size columns, const float* bias, float* y);
/// y = gelu(y + bias) + residual, a pass over a product.
void GeluResidual(Size rows, Size columns, const float* bias, const float* residual, float* y);
/// One step of Adam, in place.
void Update(Size n, float* p, float* m, float* v, const float* g, float rate, float beta1, float beta2, float epsilon);

}  // namespace bench::fused

#endif  // UMBRA_BENCHMARKS_FUSED_H_

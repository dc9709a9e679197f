#include "kernels.h"

#include "ops/leaky.h"

namespace nn {
using namespace umbra;
UMBRA_OP(swish, (x, beta), x / (1 + exp(-beta * x)))

UMBRA_KERNEL void bias_swish(Tensor<cpu, 2> y, Tensor<cpu, 2> x, Tensor<cpu, 1> bias, float beta) {
  y = F<swish>(x + broadcast<1>(bias, x.shape_), scalar(beta));
}
UMBRA_KERNEL void momentum(Tensor<cpu, 2> weight, Tensor<cpu, 2> velocity, const Tensor<cpu, 2>& gradient, float rate) {
  velocity *= 0.5f;
  velocity -= rate * gradient;
  weight += velocity;
}
template <typename DType>
UMBRA_KERNEL void activate(Tensor<cpu, 1, DType> y, Tensor<cpu, 1, DType> x) {
  y = F<leaky>(x);
}
template void activate<float>(Tensor<cpu, 1, float>, Tensor<cpu, 1, float>);
template void activate<double>(Tensor<cpu, 1, double>, Tensor<cpu, 1, double>);
template void halve<float>(Tensor<cpu, 1, float>, Tensor<cpu, 1, float>);
// Its loop has a bound that only a call knows: it stays as it is.
UMBRA_KERNEL void looped(Tensor<cpu, 1> y, int n) {
  for (int k = 0; k < n; ++k) y += 1.0f;
}
}  // namespace nn

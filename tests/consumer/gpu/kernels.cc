#include "kernels.h"

using namespace umbra;
UMBRA_OP(swish, (x, beta), x / (1 + exp(-beta * x)))

template <typename Device>
UMBRA_KERNEL void bias_swish(Tensor<Device, 2> y, Tensor<Device, 2> x, Tensor<Device, 1> bias, float beta) {
  y = F<swish>(x + broadcast<1>(bias, x.shape_), scalar(beta));
}
template void bias_swish<cpu>(Tensor<cpu, 2>, Tensor<cpu, 2>, Tensor<cpu, 1>, float);
template void bias_swish<gpu>(Tensor<gpu, 2>, Tensor<gpu, 2>, Tensor<gpu, 1>, float);
// Its loop has a bound that only a call knows: there is no code for it.
UMBRA_KERNEL void looped(Tensor<gpu, 2> y, int n) {
  for (int k = 0; k < n; ++k) y += 1.0f;
}

#ifndef KERNELS_H_
#define KERNELS_H_
#include <umbra/tensor.h>

namespace nn {
void bias_swish(umbra::Tensor<umbra::cpu, 2> y, umbra::Tensor<umbra::cpu, 2> x, umbra::Tensor<umbra::cpu, 1> bias,
                float beta);
void momentum(umbra::Tensor<umbra::cpu, 2> weight, umbra::Tensor<umbra::cpu, 2> velocity,
              const umbra::Tensor<umbra::cpu, 2>& gradient, float rate);
template <typename DType>
void activate(umbra::Tensor<umbra::cpu, 1, DType> y, umbra::Tensor<umbra::cpu, 1, DType> x);
void looped(umbra::Tensor<umbra::cpu, 1> y, int n);
// Every file that calls it has an instance of its own, which is one function in the program.
template <typename DType>
UMBRA_KERNEL void halve(umbra::Tensor<umbra::cpu, 1, DType> y, umbra::Tensor<umbra::cpu, 1, DType> x) {
  y = x * DType(0.5f);
}
}  // namespace nn

void halved(umbra::Tensor<umbra::cpu, 1> y);
void shift(umbra::Tensor<umbra::cpu, 1> y);
void scale(umbra::Tensor<umbra::cpu, 2> y, umbra::Tensor<umbra::cpu, 2> x);

namespace losses {
void squared(umbra::Tensor<umbra::cpu, 1> loss, umbra::Tensor<umbra::cpu, 2> x, umbra::Tensor<umbra::cpu, 2> y);
void halved(umbra::Tensor<umbra::cpu, 1> loss);
}  // namespace losses
#endif

#ifndef KERNELS_H_
#define KERNELS_H_
#include <umbra/tensor.h>

namespace nn {
void bias_swish(umbra::Tensor<umbra::cpu, 2> y, umbra::Tensor<umbra::cpu, 2> x, umbra::Tensor<umbra::cpu, 1> bias, float beta);
void momentum(umbra::Tensor<umbra::cpu, 2> weight, umbra::Tensor<umbra::cpu, 2> velocity, const umbra::Tensor<umbra::cpu, 2>& gradient, float rate);
template <typename DType>
void activate(umbra::Tensor<umbra::cpu, 1, DType> y, umbra::Tensor<umbra::cpu, 1, DType> x);
void looped(umbra::Tensor<umbra::cpu, 1> y, int n);
}  // namespace nn

void scale(umbra::Tensor<umbra::cpu, 2> y, umbra::Tensor<umbra::cpu, 2> x);

namespace losses {
void squared(umbra::Tensor<umbra::cpu, 1> loss, umbra::Tensor<umbra::cpu, 2> x, umbra::Tensor<umbra::cpu, 2> y);
}  // namespace losses
#endif

#ifndef KERNELS_H_
#define KERNELS_H_
#include <umbra/tensor.h>

template <typename Device>
void bias_swish(umbra::Tensor<Device, 2> y, umbra::Tensor<Device, 2> x, umbra::Tensor<Device, 1> bias, float beta);
void looped(umbra::Tensor<umbra::gpu, 2> y, int n);
#endif

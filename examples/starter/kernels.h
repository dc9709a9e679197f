#ifndef KERNELS_H_
#define KERNELS_H_

#include <umbra/tensor.h>

using umbra::cpu;
using umbra::Tensor;

// y = x * sigmoid(beta * x), x being x + bias; a bias for each column.
void bias_swish(Tensor<cpu, 2> y, Tensor<cpu, 2> x, Tensor<cpu, 1> bias, float beta);

// Each row of y is that of x, moved and scaled to mean 0 and variance 1; what it was moved and scaled by is kept.
void standardize(Tensor<cpu, 2> y, Tensor<cpu, 1> mean, Tensor<cpu, 1> scale, Tensor<cpu, 2> x);

#endif

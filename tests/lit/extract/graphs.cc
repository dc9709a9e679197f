// Marked functions as graphs, with what a caller has to know of them.
// RUN: %extract --strict %s -- -std=c++17 -I%root/include | %FileCheck %s
// RUN: %extract --strict %s -- -std=c++17 -I%root/include > %t.again && cd / && %extract --strict %s -- -std=c++17 -I%root/include | cmp - %t.again
#include <cmath>

#include "umbra/tensor.h"

using namespace umbra;
using namespace umbra::expr;

UMBRA_OP(swish, (x, beta), x / (1 + exp(-beta * x)))
UMBRA_KERNEL void bias_swish(Tensor<cpu, 2> y, Tensor<cpu, 2> x, Tensor<cpu, 1> bias, float beta) {
  y = F<swish>(x + broadcast<1>(bias, x.shape_), scalar(beta));
}
// CHECK: # graphs.cc:[[@LINE-3]]
// CHECK-NEXT: # void bias_swish(umbra::Tensor<umbra::cpu, 2, float> y, umbra::Tensor<umbra::cpu, 2, float> x, umbra::Tensor<umbra::cpu, 1, float> bias, float beta)
// CHECK-NEXT: # symbol _Z10bias_swishN5umbra6TensorINS_3cpuELi2EfEES2_NS0_IS1_Li1EfEEf
// CHECK-NEXT: # parameter y: f32 of rank 2 on cpu: output 0
// CHECK-NEXT: # parameter x: f32 of rank 2 on cpu: input 0
// CHECK-NEXT: # parameter bias: f32 of rank 1 on cpu: input 1
// CHECK-NEXT: # parameter beta: f32: scalar 0
// CHECK-NEXT: # line [[@LINE-9]]: y = %10
// CHECK-NEXT: graph bias_swish
// CHECK-NEXT: %0 = scalar beta               : f32
// CHECK-NEXT: %1 = input x                   : f32[?0, ?1]
// CHECK-NEXT: %2 = input bias                : f32[?1]
// CHECK-NEXT: %3 = broadcast %2 axes=[-1, 0] : f32[?0, ?1]
// CHECK-NEXT: %4 = plus %1, %3               : f32[?0, ?1]
// CHECK-NEXT: %5 = negative %0               : f32
// CHECK-NEXT: %6 = mul %5, %4                : f32[?0, ?1]
// CHECK-NEXT: %7 = exp %6                    : f32[?0, ?1]
// CHECK-NEXT: %8 = constant 1                : f32
// CHECK-NEXT: %9 = plus %8, %7               : f32[?0, ?1]
// CHECK-NEXT: %10 = div %4, %9               : f32[?0, ?1]   # y
// CHECK-NEXT: output y = %10

// Operators as functions of expressions.
UMBRA_KERNEL void clipped(Tensor<cpu, 1> y, Tensor<cpu, 1> x, float most) {
  y = select(x > 0, minimum(exp(x), most), 0.5);
}
// CHECK: graph clipped
// CHECK: = gt
// CHECK: = exp
// CHECK: = minimum
// CHECK: = select
// CHECK-NEXT: output y

// Statements are one graph; what is read and written is an input and an output.
namespace nn {
UMBRA_KERNEL void momentum(Tensor<cpu, 2> weight, Tensor<cpu, 2> velocity, const Tensor<cpu, 2>& gradient, float rate) {
  velocity *= 0.5f;
  velocity -= rate * gradient;
  weight += velocity;
}
}  // namespace nn
// CHECK: # parameter weight: f32 of rank 2 on cpu: input 2, output 0
// CHECK-NEXT: # parameter velocity: f32 of rank 2 on cpu: input 0, output 1
// CHECK-NEXT: # parameter gradient: f32 of rank 2 on cpu: input 1
// CHECK: # velocity must lie apart from weight
// CHECK-NEXT: # velocity must lie apart from gradient
// CHECK-NEXT: graph nn_momentum
// CHECK: output weight
// CHECK-NEXT: output velocity

// A user's operator: locals, conditions and a loop become selections and constants.
struct leaky {
  template <typename DType>
  static DType Map(DType a) {
    DType slope = 1;
    for (int k = 0; k < 2; ++k) slope /= 10;
    if (a > 0) return a;
    else slope *= 2;
    return slope * std::fabs(a);
  }
};
template <typename xpu, typename DType>
UMBRA_KERNEL void activate(Tensor<xpu, 1, DType> y, Tensor<xpu, 1, DType> x) {
  y = F<leaky>(x);
}
template void activate<cpu, double>(Tensor<cpu, 1, double>, Tensor<cpu, 1, double>);
template void activate<gpu, float>(Tensor<gpu, 1, float>, Tensor<gpu, 1, float>);
// CHECK: # void activate<umbra::cpu, double>(
// CHECK: graph activate_cpu_double
// CHECK-NEXT: %0 = input x                   : f64[?0]
// CHECK-NEXT: %1 = constant 0                : f64
// CHECK-NEXT: %2 = gt %0, %1                 : bool[?0]
// CHECK: abs %0
// CHECK: select %2, %0, %{{[0-9]+}}
// CHECK: # parameter x: f32 of rank 1 on gpu: input 0
// CHECK: graph activate_gpu_float

// Bits of integers; a lambda's body stands where it is called; frexp has two results.
struct parts_of {
  static float Map(float a, float b) {
    int exponent;
    const auto scaled = [&, twice = 2 * b](float x) { return std::fma(x, twice, a); };
    return scaled(std::frexp(a, &exponent)) + static_cast<float>(exponent & 3);
  }
};
UMBRA_KERNEL void in_parts(Tensor<cpu, 1> y, Tensor<cpu, 1> x, Tensor<cpu, 1> z) { y = F<parts_of>(x, z); }
// CHECK: graph in_parts
// CHECK: logb %0
// CHECK: %[[MANTISSA:[0-9]+]] = select %{{[0-9]+}}, %0, %{{[0-9]+}}
// CHECK: fma %[[MANTISSA]], %{{[0-9]+}}, %0
// CHECK: bit_and %{{[0-9]+}}, %{{[0-9]+}}

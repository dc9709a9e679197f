// The operators of programs written for mshadow, as their files have them.
// RUN: %extract --strict %s -- -std=c++17 -I%root/include -DPROGRAM='"%root/tests/compat/defop.cc"' -DDEFOP | %FileCheck %s --check-prefix=DEFOP
// RUN: %extract --strict %s -- -std=c++17 -I%root/include -DPROGRAM='"%root/tests/compat/convnet.cc"' -DCONVNET | %FileCheck %s --check-prefix=CONVNET
// RUN: %extract --strict %s -- -std=c++17 -I%root/include -DPROGRAM='"%root/tests/compat/mlp.cc"' -DMLP | %FileCheck %s --check-prefix=MLP
#define main program
#include PROGRAM
#undef main

#ifdef DEFOP
UMBRA_KERNEL void defop(Tensor<cpu, 2> out, Tensor<cpu, 2> src, Tensor<cpu, 2> other) {
  out = F<maxoftwo>(F<addone>(src) + 2.0f, other);
}
#endif
#ifdef CONVNET
UMBRA_KERNEL void convnet(Tensor<cpu, 4> act, Tensor<cpu, 2> dst, Tensor<cpu, 4> gact, Tensor<cpu, 4> pooled, Tensor<cpu, 4> gpool) {
  act = F<relu>(act);
  gact = unpool<red::maximum>(act, pooled, gpool, 2, 2, 2, 2) * F<relu_grad>(act);
  dst = reshape(swapaxis<1, 0>(gact), Shape2(4, 126));
}
#endif
#if defined(DEFOP) || defined(MLP)
UMBRA_KERNEL void logistic(Tensor<cpu, 2> out, Tensor<cpu, 2> src) { out = F<sigmoid>(src); }
#endif

// DEFOP: graph defop
// DEFOP-NEXT: %0 = input src : f32[?0, ?1]
// DEFOP-NEXT: %1 = constant 1 : f32
// DEFOP-NEXT: %2 = plus %0, %1 : f32[?0, ?1]
// DEFOP-NEXT: %3 = constant 2 : f32
// DEFOP-NEXT: %4 = plus %2, %3 : f32[?0, ?1]
// DEFOP-NEXT: %5 = input other : f32[?0, ?1]
// DEFOP-NEXT: %6 = gt %4, %5 : bool[?0, ?1]
// DEFOP-NEXT: %7 = select %6, %4, %5 : f32[?0, ?1] # out
// DEFOP: graph logistic
// DEFOP: exp
// CONVNET: graph convnet
// CONVNET: select
// CONVNET: gather
// CONVNET: output act
// MLP: graph logistic
// MLP-NEXT: %0 = input src : f32[?0, ?1]
// MLP-NEXT: %1 = negative %0
// MLP-NEXT: %2 = exp %1
// MLP-NEXT: %3 = constant 1
// MLP-NEXT: %4 = plus %3, %2
// MLP-NEXT: %5 = div %3, %4

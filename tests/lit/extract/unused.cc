// What is marked but makes no kernel is said.
// RUN: %extract %s -- -std=c++17 -I%root/include 2>&1 >%t.out | %FileCheck %s
// RUN: grep -c '^graph' %t.out | %FileCheck %s --check-prefix=COUNT
// COUNT: 2
#include "umbra/tensor.h"

using namespace umbra;

// CHECK: [[@LINE+2]]:19: warning: nothing in this file instantiates 'never', so no kernel is made of it; ask for one: `template void f<float>(...);`
template <typename DType>
UMBRA_KERNEL void never(Tensor<cpu, 2, DType> y) { y = DType(1); }

// CHECK-NOT: {{'slope'|'bent'}}
UMBRA_KERNEL float slope(float a) { return a * 2.0f; }
// CHECK: [[@LINE+1]]:20: warning: 'lonely' returns a value, so it serves kernels that call it, and none here does; no kernel is made of it
UMBRA_KERNEL float lonely(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = x * 2.0f; return 1.0f; }
// An operator's Map is its only caller.
template <typename DType>
UMBRA_KERNEL DType bent(DType a) { return a > 0 ? a : a / 2; }
struct bend {
  template <typename DType>
  static DType Map(DType a) { return bent(a); }
};
UMBRA_KERNEL void bends(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<bend>(x); }
UMBRA_KERNEL void caller(Tensor<cpu, 2> y, float a) { y = slope(a); }

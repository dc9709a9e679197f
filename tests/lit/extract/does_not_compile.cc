// Clang's own diagnostics, exit code 1, and no file is touched.
// RUN: echo before > %t.out
// RUN: not %extract %s -o %t.out -- -std=c++17 -I%root/include 2>&1 | %FileCheck %s
// RUN: grep -qx before %t.out
#include "umbra/tensor.h"
using namespace umbra;
UMBRA_KERNEL void f(Tensor<cpu, 2> y, Tensor<cpu, 2> x) {
  // CHECK: does_not_compile.cc:[[@LINE+1]]:11: error: use of undeclared identifier 'z'
  y = x + z;
}
// CHECK: does_not_compile.cc:[[@LINE+2]]:1: error: weak declaration cannot have internal linkage
// CHECK: // weak: neither static nor in an unnamed namespace
UMBRA_KERNEL static void g(Tensor<cpu, 2> y) { y = 1.0f; }

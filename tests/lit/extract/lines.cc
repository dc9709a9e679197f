// Each line of generated code that computes a value is led back to the user's line.
// RUN: rm -rf %t && %extract %s --out %t --name nn --targets avx2 -- -std=c++17 -I%root/include
// RUN: %FileCheck %s < %t/nn.avx2.cc
// RUN: g++ -std=c++17 -I%root/include -I%t -g $(sed -n '1s/.*Compile with//p' %t/nn.avx2.cc) -fdebug-prefix-map=lines.cc=%s -c %t/nn.avx2.cc -o %t/nn.o
// RUN: objdump --dwarf=decodedline %t/nn.o | grep -F lines.cc | awk '{print $1, $2}' | sort -u | %FileCheck %s --check-prefix=DEBUG
#include <cmath>

#include "umbra/tensor.h"

using namespace umbra;

struct soft {
  static float Map(float a) {
    if (a > 20.0f) return a;
    return std::log1p(std::exp(a));
  }
};

// CHECK: #line [[@LINE+1]] "lines.cc"
UMBRA_KERNEL void steps(Tensor<cpu, 2> y, Tensor<cpu, 2> x, float s) {
  // CHECK-NEXT: void steps_avx2(
  // CHECK-NEXT: #line {{[0-9]+}} "nn.avx2.cc"
  // CHECK: #line [[@LINE-8]] "lines.cc"
  // CHECK-NEXT: log1p
  y = F<soft>(x);
  // CHECK: #line [[@LINE+2]] "lines.cc"
  // CHECK-NEXT: y_1 * 
  y *= s;
  // CHECK: #line [[@LINE+2]] "lines.cc"
  // CHECK-NEXT: y_2 - 
  y -= x;
  // CHECK-NEXT: #line [[@LINE-1]] "lines.cc"
  // CHECK-NEXT: store(
  // CHECK-NEXT: #line {{[0-9]+}} "nn.avx2.cc"
}
// DEBUG: lines.cc 15
// DEBUG: lines.cc 28
// DEBUG: lines.cc 31

// What has no graph is said at its own line, and the function stays eager.
// RUN: %extract %s -- -std=c++17 -I%root/include 2>&1 >%t.out | %FileCheck %s
// RUN: %FileCheck %s --check-prefix=OTHERS < %t.out
// RUN: not %extract --strict %s -- -std=c++17 -I%root/include 2>&1 >%t.strict | %FileCheck %s --check-prefix=STRICT
// RUN: not test -s %t.strict
// Every one has a hint or a remedy.
// RUN: %extract %s -- -std=c++17 -I%root/include 2>&1 >%t.out | awk '/ warning: /{ if (without) print last; without = 1; last = $0 } / note: /{ without = 0 } END { if (without) print last }' | count 0
// OTHERS: graph fine
// OTHERS-NOT: graph
// STRICT: error: 'helper' is not marked as a kernel, so what it does is not known here; kernel 'unmarked' cannot be generated
#include <cmath>
#include <cstdio>
#include <vector>

#include "umbra/tensor.h"

using namespace umbra;
using namespace umbra::expr;

UMBRA_KERNEL void fine(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = x + 1.0f; }

// CHECK-DAG: [[@LINE+1]]:1: note: mark it UMBRA_KERNEL, or make it constexpr
float helper(float a) { return a + 1; }
UMBRA_KERNEL void unmarked(Tensor<cpu, 2> y, Tensor<cpu, 2> x, float a) {
  y = x * 2.0f;
  // CHECK-DAG: [[@LINE+1]]:11: warning: 'helper' is not marked as a kernel, so what it does is not known here; kernel 'unmarked' stays eager
  y = x * helper(a);
  // CHECK: constexpr
}

// CHECK-DAG: [[@LINE+1]]:1: note: mark it UMBRA_KERNEL; it is then neither static nor in an unnamed namespace
static void doubled(Tensor<cpu, 2> y) { y *= 2.0f; }
UMBRA_KERNEL void unmarked_statement(Tensor<cpu, 2> y) {
  // CHECK-DAG: [[@LINE+1]]:3: warning: 'doubled' is not marked as a kernel, so what it does is not known here; kernel 'unmarked_statement' stays eager
  doubled(y);
  // CHECK: UMBRA_KERNEL
}

struct calls_helper {
  // CHECK: [[@LINE+1]]:38: warning: 'helper' is not marked {{.*}}; kernel 'through_operator' stays eager
  static float Map(float a) { return helper(a); }
};
UMBRA_KERNEL void through_operator(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<calls_helper>(x); }

UMBRA_KERNEL void recursion(Tensor<cpu, 2> y, int n) {
  y *= 2.0f;
  // CHECK: [[@LINE+1]]:14: warning: 'recursion' calls itself; kernel 'recursion' stays eager
  if (n > 0) recursion(y, n - 1);
  // CHECK: note: a kernel has no recursion; write a loop with a bound that is known
}

UMBRA_KERNEL void bound(Tensor<cpu, 2> y, Tensor<cpu, 2> x, int n) {
  // CHECK: [[@LINE+1]]:21: warning: the bound of this loop is not known when the kernel is generated; kernel 'bound' stays eager
  for (int k = 0; k < n; ++k) y += x;
  // CHECK: note: use a literal, a constexpr or a template argument
}
UMBRA_KERNEL void endless(Tensor<cpu, 2> y) {
  // CHECK: warning: running this takes more than 1048576 steps; kernel 'endless' stays eager
  for (int k = 0; k >= 0; k = 1) y *= 1.5f;
}

int counter = 0;
UMBRA_KERNEL void global(Tensor<cpu, 2> y) {
  // CHECK: [[@LINE+1]]:5: warning: 'counter' is a variable outside the kernel, which may change between calls; kernel 'global' stays eager
  ++counter;
  // CHECK: note: pass it as a parameter, or make it constexpr
  y = 1.0f;
}
UMBRA_KERNEL void kept(Tensor<cpu, 2> y) {
  // CHECK: [[@LINE+1]]:3: warning: the static variable 'calls' outlives the call; kernel 'kept' stays eager
  static int calls = 0;
  y = static_cast<float>(++calls);
}
UMBRA_KERNEL void output(Tensor<cpu, 2> y) {
  // CHECK: [[@LINE+1]]:3: warning: '{{.*}}printf' is not marked as a kernel, so what it does is not known here; kernel 'output' stays eager
  std::printf("%d", 1);
  y = 1.0f;
}
// CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: parameter 'sum' is a number that is passed by reference, to be changed; kernel 'by_reference' stays eager
UMBRA_KERNEL void by_reference(Tensor<cpu, 2> y, float& sum) { y = sum; }

// CHECK: [[@LINE+1]]:52: warning: parameter 'p' is a pointer; kernel 'pointer' stays eager
UMBRA_KERNEL void pointer(Tensor<cpu, 2> y, float* p) { y = *p; }
UMBRA_KERNEL void data(Tensor<cpu, 2> y, Tensor<cpu, 2> x) {
  // CHECK: [[@LINE+1]]:9: warning: 'dptr_' of a tensor: a kernel sees no pointers, strides or streams; kernel 'data' stays eager
  y = x.dptr_[3];
}
UMBRA_KERNEL void element(Tensor<cpu, 1> y, Tensor<cpu, 1> x) {
  // CHECK: [[@LINE+1]]:8: warning: an element of a tensor is assigned on its own; kernel 'element' stays eager
  y[0] = x[0];
}

// CHECK: [[@LINE+1]]:63: warning: parameter 'v' has type {{.*}}vector<float>{{.*}}, which a kernel does not take; kernel 'vector' stays eager
UMBRA_KERNEL void vector(Tensor<cpu, 2> y, std::vector<float> v) { y = v[0]; }
UMBRA_KERNEL void unsigned_number(Tensor<cpu, 2, int> y, unsigned n) {
  y = static_cast<int>(n);
}
// CHECK: warning: parameter 'n' has type 'unsigned int', which a kernel does not take; kernel 'unsigned_number' stays eager
// CHECK: note: take int or index_t: kernels have no unsigned numbers
UMBRA_KERNEL void object(Tensor<cpu, 2> y, Tensor<cpu, 2> x) {
  // CHECK: [[@LINE+1]]:22: warning: an object of type 'std::vector<float>' has no counterpart in a kernel; kernel 'object' stays eager
  std::vector<float> v(3);
  y = x * v[0];
}

// CHECK: [[@LINE+1]]:66: warning: no element is assigned: 'y' becomes another handle of the tensor on the right
UMBRA_KERNEL void handle(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = x; }
// CHECK: note: this copies the elements
// CHECK: umbra::F<umbra::op::identity>( )
// CHECK: warning: 'handle' assigns to no tensor of its parameters; kernel 'handle' stays eager

UMBRA_KERNEL void number_of_map(Tensor<cpu, 2> y, Tensor<cpu, 1> v, float rows) {
  // CHECK: [[@LINE+1]]:5: warning: a number that repmat takes follows neither from extents nor from whole numbers of the call; kernel 'number_of_map' stays eager
  y = repmat(v, static_cast<int>(rows));
  // CHECK: note: compute it by + - * / from extents such as x.size(0), parameters and literals
}
UMBRA_KERNEL void axis_of_map(Tensor<cpu, 2> y, Tensor<cpu, 2> x, int axis) {
  // CHECK: [[@LINE+1]]:5: warning: a number that flip takes is not known when the kernel is generated; kernel 'axis_of_map' stays eager
  y = flip(x, axis);
}
UMBRA_KERNEL void function(Tensor<cpu, 2> y, Tensor<cpu, 2> x) {
  // CHECK: [[@LINE+1]]:3: warning: 'umbra::Softmax' has no counterpart in a kernel; kernel 'function' stays eager
  Softmax(y, x);
}
UMBRA_KERNEL void uninitialised(Tensor<cpu, 2> y) {
  TensorContainer<cpu, 2> t(y.shape_);
  // CHECK: [[@LINE+1]]:5: warning: 't' is read before it is written; kernel 'uninitialised' stays eager
  y = t + 1.0f;
}
UMBRA_KERNEL void ranks(Tensor<cpu, 2> y, Tensor<cpu, 2> x) {
  // CHECK: [[@LINE+1]]:5: warning: slice: {{.*}}; kernel 'ranks' stays eager
  y = slice<1>(x, 5, 2) + x;
}
UMBRA_KERNEL void range(Tensor<cpu, 2> y, Tensor<cpu, 1> x) {
  // CHECK: [[@LINE+1]]:21: warning: slice of 'y': positions 3 to 2 of {{.*}} are none; kernel 'range' stays eager
  slice<1>(y, 3, 2) = 1.0f;
  y[0] = x;
}
UMBRA_KERNEL void statement(Tensor<cpu, 2> y, int n) {
  // CHECK: [[@LINE+1]]:15: warning: a goto has no counterpart in a kernel; kernel 'statement' stays eager
  if (n == 2) goto end;
end:
  y = 1.0f;
}
UMBRA_KERNEL void choice(Tensor<cpu, 2> y, int n) {
  // CHECK: [[@LINE+1]]:3: warning: which case of this switch is meant is not known when the kernel is generated; kernel 'choice' stays eager
  switch (n) { default: y = 1.0f; }
}
UMBRA_KERNEL void parts(Tensor<cpu, 2> y, Tensor<cpu, 2> x) {
  // CHECK: [[@LINE+2]]:3: warning: a structured binding has no counterpart in a kernel; kernel 'parts' stays eager
  const float weights[2] = {1, 2};
  const auto [a, b] = weights;
  y = x * a + b;
}
enum Mode { kFast };
// CHECK: warning: parameter 'mode' has type 'Mode', which a kernel does not take; kernel 'enumeration' stays eager
// CHECK: note: give the enumeration a signed type
UMBRA_KERNEL void enumeration(Tensor<cpu, 2> y, Mode mode) { y = static_cast<float>(mode); }
struct bessel_of {
  // CHECK: [[@LINE+1]]:38: warning: 'std::cyl_bessel_j' is not marked as a kernel, so what it does is not known here; kernel 'function_of_c' stays eager
  static float Map(float a) { return std::cyl_bessel_j(0.5f, a); }
  // CHECK: note: a kernel calls the functions of <cmath> that docs/extract.md lists
};
UMBRA_KERNEL void function_of_c(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<bessel_of>(x); }
// Where the standard library has others that do, the hint names them.
template <int function>
struct instead {
  static float Map(float a) {
    int quotient = 0;
    // CHECK: [[@LINE+2]]:{{[0-9]+}}: warning: 'std::remquo' is not marked {{.*}}; kernel 'remquo' stays eager
    // CHECK: note: std::remainder gives its result
    if constexpr (function == 0) return std::remquo(a, 2.0f, &quotient);
    // CHECK: [[@LINE+2]]:{{[0-9]+}}: warning: 'isnormal' is not marked {{.*}}; kernel 'isnormal' stays eager
    // CHECK: note: compare std::abs(x) with std::numeric_limits<float>::min() and infinity()
    if constexpr (function == 1) return std::isnormal(a);
    // CHECK: [[@LINE+2]]:{{[0-9]+}}: warning: 'fpclassify' is not marked {{.*}}; kernel 'fpclassify' stays eager
    // CHECK: note: kernels have std::isnan, std::isinf and std::isfinite
    if constexpr (function == 2) return std::fpclassify(a) == FP_ZERO;
    // CHECK: [[@LINE+2]]:{{[0-9]+}}: warning: 'nan' is not marked {{.*}}; kernel 'nan' stays eager
    // CHECK: note: write std::numeric_limits<float>::quiet_NaN()
    if constexpr (function == 3) return a + std::nan("");
    // CHECK: [[@LINE+2]]:{{[0-9]+}}: warning: 'nexttoward{{f?}}' is not marked {{.*}}; kernel 'nexttoward' stays eager
    // CHECK: note: kernels have no long double: use std::nextafter
    if constexpr (function == 4) return std::nexttoward(a, 1.0L);
    return a;
  }
};
UMBRA_KERNEL void remquo(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<instead<0>>(x); }
UMBRA_KERNEL void isnormal(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<instead<1>>(x); }
UMBRA_KERNEL void fpclassify(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<instead<2>>(x); }
UMBRA_KERNEL void nan(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<instead<3>>(x); }
UMBRA_KERNEL void nexttoward(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<instead<4>>(x); }
UMBRA_KERNEL void unsigned_bits(Tensor<cpu, 2, int> y, Tensor<cpu, 1, int> x, int n) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: a value of type 'unsigned int' is no element of a tensor; kernel 'unsigned_bits' stays eager
  y = static_cast<int>(static_cast<unsigned>(n) >> 3);
  // CHECK: note: kernels have no unsigned numbers but uint8_t
}
UMBRA_KERNEL void lambda(Tensor<cpu, 2> y, float a) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: a lambda that changes its own copies has no counterpart in a kernel; kernel 'lambda' stays eager
  y = [a]() mutable { return a *= 2; }();
  // CHECK: note: capture by reference what it changes, as [&] does
}
struct calls_lambda {
  static float Map(float a) {
    const auto f = [&](float x) {
      // CHECK: [[@LINE+1]]:14: warning: 'helper' is not marked {{.*}}; kernel 'inside_lambda' stays eager
      return helper(x) + a;
    };
    return f(a);
  }
};
UMBRA_KERNEL void inside_lambda(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<calls_lambda>(x); }
struct Model {
  // CHECK: [[@LINE+1]]:21: warning: a member function has an object that the kernel does not know; kernel 'Model::Run' stays eager
  UMBRA_KERNEL void Run(Tensor<cpu, 2> y) { y = 1.0f; }
};
// CHECK: warning: the tensors are on different devices; kernel 'devices' stays eager
UMBRA_KERNEL void devices(Tensor<cpu, 2> y, Tensor<gpu, 2>) { y = 1.0f; }
struct no_map {};
// CHECK: warning: operator 'no_map' has no Map(...); kernel 'mapless' stays eager
UMBRA_KERNEL void mapless(Tensor<cpu, 2> y, Tensor<cpu, 2> x) { y = F<no_map>(x); }
// CHECK: warning: 'y' is needed as it was after its new elements are written; kernel 'in_place' stays eager
// CHECK: note: assign to a tensor of its own
UMBRA_KERNEL void in_place(Tensor<cpu, 2> y) { y = y + flip(y, 1); }
UMBRA_KERNEL void table(Tensor<cpu, 2> y) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: an array of 268435456 elements; kernel 'table' stays eager
  float big[1 << 28] = {};
  y = big[0];
}

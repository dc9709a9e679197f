// expect: umbra: the operands have different numbers of axes, or a dot() stands
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 1> v, Tensor<cpu, 2, double> d) {
  a = b + 1.0f;
#ifdef FAIL
  (void)v; (void)d; a = dot(a, b) + b;
#else
  (void)v;
  (void)d;
#endif
}

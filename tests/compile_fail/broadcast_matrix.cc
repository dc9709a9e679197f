// expect: umbra: broadcast<axis>() takes a vector
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 1> v, Tensor<cpu, 2, double> d) {
  a = b + 1.0f;
#ifdef FAIL
  (void)v; (void)d; a = b + broadcast<1>(b, a.shape_);
#else
  (void)v;
  (void)d;
#endif
}

// expect: umbra: the two sides of an assignment have different dtypes
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 1> v, Tensor<cpu, 2, double> d) {
  a = b + 1.0f;
#ifdef FAIL
  (void)v; a = d * 2.0;
#else
  (void)v;
  (void)d;
#endif
}

// expect: umbra: dot() of operands of different dtypes: convert one with tcast<DType>()
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 2, double> d) {
  a = b + tcast<float>(d);
#ifdef FAIL
  a = dot(b, d);
#endif
}

// expect: umbra: op::exp takes f32 or f64: convert with tcast<float>(...)
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 2, double> d, Tensor<cpu, 2, int> k) {
  a = b + tcast<float>(d + tcast<double>(k));
#ifdef FAIL
  k = F<op::sigmoid>(k);
#endif
}

// expect: umbra: the expression and its destination are on different devices
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 2, double> d, Tensor<cpu, 2, int> k) {
  a = b + tcast<float>(d + tcast<double>(k));
#ifdef FAIL
  a = Tensor<gpu, 2>() * 2.0f;
#endif
}

// expect: umbra: only maximum and minimum have a position
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 2, double> d, Tensor<cpu, 2, int> k) {
  a = b + tcast<float>(d + tcast<double>(k));
#ifdef FAIL
  Tensor<cpu, 1>() = reduce_with_axis<red::sum, true>(a, 1);
#endif
}

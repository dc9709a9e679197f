// expect: umbra: sumall_except_dim<axis>: the axis is beyond the rank
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 2, double> d, Tensor<cpu, 2, int> k) {
  a = b + tcast<float>(d + tcast<double>(k));
#ifdef FAIL
  Tensor<cpu, 1>() = sumall_except_dim<2>(a);
#endif
}

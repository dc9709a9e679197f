// expect: umbra: dot() takes tensors of float, double, half_t or bf16_t
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 2, double> d, Tensor<cpu, 2, int> k) {
  a = b + tcast<float>(d + tcast<double>(k));
#ifdef FAIL
  k = dot(k, k);
#endif
}

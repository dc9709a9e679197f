// expect: umbra: expressions of a GPU's tensors are computed by generated kernels
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 2, double> d, Tensor<cpu, 2, int> k) {
  a = b + tcast<float>(d + tcast<double>(k));
#ifdef FAIL
  Tensor<gpu, 2>() = Tensor<gpu, 2>() * 2.0f;
#endif
}

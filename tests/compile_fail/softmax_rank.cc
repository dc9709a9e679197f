// expect: umbra: Softmax and SoftmaxGrad take tensors of rank 1 to 3
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 2, double> d, Tensor<cpu, 2, int> k) {
  a = b + tcast<float>(d + tcast<double>(k));
#ifdef FAIL
  Softmax(Tensor<cpu, 4>(), Tensor<cpu, 4>());
#endif
}

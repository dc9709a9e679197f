// expect: umbra: a bool alone is neither an element nor pad: write TensorContainer(shape, initial, pad)
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 2, double> d, Tensor<cpu, 2, int> k) {
  a = b + tcast<float>(d + tcast<double>(k));
#ifdef FAIL
  TensorContainer<cpu, 2> c(a.shape_, false);
#endif
}

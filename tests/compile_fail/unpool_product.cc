// expect: umbra: windows have a gradient if they are joined by sum, mean, maximum or minimum
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 4> x, Tensor<cpu, 4> joined, Tensor<cpu, 4> grad) {
  x = unpool<red::mean>(x, joined, grad, 2, 2, 2, 2);
#ifdef FAIL
  x = unpool<red::product>(x, joined, grad, 2, 2, 2, 2);
#endif
}

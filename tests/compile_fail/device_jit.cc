// expect: umbra: the expression and its destination are on different devices
#include "umbra/jit.h"
using namespace umbra;
void Test(Tensor<gpu, 2> a, Tensor<cpu, 2> b) {
  jit(a) = a * 2.0f;
#ifdef FAIL
  jit(a) = b * 2.0f;
#endif
}

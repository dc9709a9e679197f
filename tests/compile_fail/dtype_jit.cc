// expect: umbra: no dtype is of this C++ type
#include "umbra/jit.h"
using namespace umbra;
void Test(Tensor<cpu, 2, long long> a) {
  a = a + 1;
#ifdef FAIL
  jit(a) = a + a;
#endif
}

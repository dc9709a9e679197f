// expect: umbra: dot() takes tensors or their .T(): assign what is computed to a tensor before
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 2> c) {
  a = dot(b, c.T());
#ifdef FAIL
  a = dot(b, c * 2.0f);
#endif
}

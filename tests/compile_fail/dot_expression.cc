// expect: umbra: dot() takes tensors or their .T(): assign what is computed to a tensor before
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 2> c, Tensor<cpu, 3> d, Tensor<cpu, 3> e) {
  a = dot(b, c.T());
  d = batch_dot(d, e);
#ifdef FAIL
  a = dot(b, c * 2.0f);
#endif
}

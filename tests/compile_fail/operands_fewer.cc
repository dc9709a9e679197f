// expect: umbra: F<op>(x) of an operator that takes more operands
#include "umbra/tensor.h"
using namespace umbra;
UMBRA_OP(scaled, (a, b), a * b)
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b) {
  a = F<scaled>(b, 2.0f);
  a = F<scaled>(3, b);
#ifdef FAIL
  a = F<scaled>(b);
#endif
}

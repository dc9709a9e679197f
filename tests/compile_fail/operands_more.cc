// expect: umbra: F<op>(x, y) of an operator that takes more or fewer operands
#include "umbra/tensor.h"
using namespace umbra;
struct half_of {
  static float Map(float a, float b) { return (a + b) / 2; }
};
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b) {
  a = F<op::gelu>(b);
  a = F<half_of>(b, b);
#ifdef FAIL
  a = F<op::gelu>(b, b);
#endif
}

// expect: umbra: this operator has no text to generate code from: define it with UMBRA_OP(name, (args), expression)
#include "umbra/jit.h"
using namespace umbra;
struct addone {
  static float Map(float a) { return a + 1.0f; }
};
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b) {
  a = F<addone>(b);
  jit(a) = b + 1.0f;
#ifdef FAIL
  jit(a) = F<addone>(b);
#endif
}

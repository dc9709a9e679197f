// expect: umbra: this operator's expression has a name that is neither an argument nor an operator of umbra/ops.def
#include "umbra/jit.h"
using namespace umbra;
constexpr float kSlope = 0.25f;
UMBRA_OP(slope, (x), x * kSlope)
UMBRA_OP(slope_of, (x, slope), x * slope)
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b) {
  a = F<slope>(b);
  jit(a) = F<slope_of>(b, scalar(kSlope));
#ifdef FAIL
  jit(a) = F<slope>(b);
#endif
}

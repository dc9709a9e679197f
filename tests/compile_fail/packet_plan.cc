// expect: umbra: the expression has no packets: use MakePlan
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2> b, Tensor<cpu, 2, double> d, Tensor<cpu, 2, int> k) {
  a = b + tcast<float>(d + tcast<double>(k));
#ifdef FAIL
  (void)expr::MakePacketPlan(a.T() * 2.0f);
#endif
}

// expect: umbra: op::bit_and takes integers: convert with tcast<int>(...)
#include "umbra/tensor.h"
using namespace umbra;
void Test(Tensor<cpu, 2> a, Tensor<cpu, 2, int> k) {
  k = F<op::bit_and>(k, tcast<int>(a));
#ifdef FAIL
  a = F<op::bit_and>(a, a);
#endif
}

// The same expression through the compiler.
#include <umbra/jit.h>

#include <cstdio>

UMBRA_OP(swish, (x, beta), x / (1 + exp(-beta * x)))

int main() {
  using namespace umbra;
  TensorContainer<cpu, 2> x(Shape2(3, 5), 2.0f), y(Shape2(3, 5));
  jit(y) = F<swish>(x, scalar(1.0f));
  std::printf("%.4f\n", static_cast<double>(y[2][4]));
  return y[2][4] > 1.76f && y[2][4] < 1.77f ? 0 : 1;
}

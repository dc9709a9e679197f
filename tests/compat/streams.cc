// Streams: work in order, Wait, CheckIdle.
#include <cstdio>

#include "mshadow/tensor.h"

using namespace mshadow;
using namespace mshadow::expr;

int main(void) {
  InitTensorEngine<cpu>();
  Stream<cpu>* stream = NewStream<cpu>();
  TensorContainer<cpu, 2> a(Shape2(100, 33)), b(Shape2(100, 33));
  a.set_stream(stream);
  b.set_stream(stream);
  a = 1.0f;
  for (int i = 0; i < 10; ++i) {
    b = a * 2.0f;
    a = b - 0.5f;
  }
  Tensor<cpu, 2> c = NewTensor<cpu>(Shape2(100, 33), 0.0f);
  Copy(c, a, stream);
  stream->Wait();
  const bool right = stream->CheckIdle() && c[99][32] == a[0][0] && c[5][5] == 512.5f;
  FreeSpace(&c);
  DeleteStream(stream);
  ShutdownTensorEngine<cpu>();
  std::printf(right ? "streams: done\n" : "streams: wrong\n");
  return right ? 0 : 1;
}

// A library with Umbra inside and much memory of each thread, as a generator of random numbers is.
// tests/support/opens.cc opens it.
#include <random>

#include "umbra/jit.h"
#include "umbra/tensor.h"

namespace {
thread_local std::mt19937 generator;
}

// Does a statement wait in a fused stream, and do what it says when the stream is waited for?
extern "C" [[gnu::visibility("default")]] bool StatementsWait() {
  using umbra::cpu;
  const auto drawn = static_cast<float>(generator() % 100);
  umbra::Stream<cpu>* const stream = umbra::NewStream<cpu>(umbra::Execution::kFused);
  bool right;
  {
    umbra::TensorContainer<cpu, 1> x(umbra::Shape1(10), drawn), y(umbra::Shape1(10), -1.0f);
    x.set_stream(stream);
    y.set_stream(stream);
    umbra::jit(y) = x + x;
    right = y.dptr_[9] == -1;
    stream->Wait();
    right = right && y.dptr_[9] == 2 * drawn;
  }
  umbra::DeleteStream<cpu>(stream);
  return right;
}

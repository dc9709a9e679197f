// The suite through the compiler. The triad is an expression with a call site of its own, as a
// host program would write it; the others are kernels in the text form, called with the same operands each time.
#include "calls.h"
#include "suite.h"
#include "umbra/jit.h"

namespace bench::umbra_jit {

using namespace umbra;

namespace {

int g_threads = 1;
Math g_math = Math::kStrict;

void Assign(const Triad& d) {
  const Tensor<cpu, 1> a(const_cast<float*>(d.a), Shape1(d.n)), b(const_cast<float*>(d.b), Shape1(d.n)),
      c(const_cast<float*>(d.c), Shape1(d.n)), out(d.out, Shape1(d.n));
  jit(out) = a * b + c * d.s;
}

template <typename Workload>
Prepared Prepare(const Workload& d) {
  CompileOptions options;
  options.math = g_math;
  const Call call = CallOf(d);
  return [function = Compile(call.kernel, options), arguments = call.arguments] { function(arguments, {g_threads}); };
}

}  // namespace

void SetThreads(int threads) {
  g_threads = threads;
  runtime::CallSite::SetThreads(threads);
}

Prepared Run(const Triad& d) {
  return [d] { Assign(d); };
}

Prepared Run(const Gelu& d) { return Prepare(d); }
Prepared Run(const Softmax& d) { return Prepare(d); }
Prepared Run(const LayerNorm& d) { return Prepare(d); }
Prepared Run(const Channels& d) { return Prepare(d); }
Prepared Run(const Adam& d) { return Prepare(d); }
Prepared Run(const Options& d) { return Prepare(d); }
Prepared Run(const Dense& d) { return Prepare(d); }
Prepared Run(const Scores& d) { return Prepare(d); }
Prepared Run(const Transpose& d) { return Prepare(d); }
Prepared Run(const LogSumExp& d) { return Prepare(d); }
Prepared Run(const SoftmaxGradient& d) { return Prepare(d); }
Prepared Run(const LayerNormGradient& d) { return Prepare(d); }
Prepared Run(const Patches& d) { return Prepare(d); }
Prepared Run(const MaxPool& d) { return Prepare(d); }
Prepared Run(const Unpool& d) { return Prepare(d); }
Prepared Run(const Overlapping& d) { return Prepare(d); }
Prepared Run(const Opaque& d) { return Prepare(d); }
Prepared Run(const ComplexProduct& d) { return Prepare(d); }
Prepared Run(const Concat& d) { return Prepare(d); }
Prepared Run(const Take& d) { return Prepare(d); }
Prepared Run(const Mixed& d) { return Prepare(d); }
Prepared Run(const Saxpy8& d) { return Prepare(d); }
Prepared Run(const Planes& d) { return Prepare(d); }
Prepared Run(const Quantized& d) { return Prepare(d); }
Prepared Run(const Sum500& d) { return Prepare(d); }

}  // namespace bench::umbra_jit

namespace bench::umbra_fast {

namespace {

template <typename Workload>
Prepared PrepareFast(const Workload& d) {
  umbra_jit::g_math = umbra::Math::kFast;
  Prepared prepared = umbra_jit::Run(d);
  umbra_jit::g_math = umbra::Math::kStrict;
  return prepared;
}

}  // namespace

Prepared Run(const Gelu& d) { return PrepareFast(d); }
Prepared Run(const Softmax& d) { return PrepareFast(d); }
Prepared Run(const LayerNorm& d) { return PrepareFast(d); }
Prepared Run(const Channels& d) { return PrepareFast(d); }
Prepared Run(const Options& d) { return PrepareFast(d); }
Prepared Run(const LogSumExp& d) { return PrepareFast(d); }
Prepared Run(const SoftmaxGradient& d) { return PrepareFast(d); }
Prepared Run(const LayerNormGradient& d) { return PrepareFast(d); }

}  // namespace bench::umbra_fast

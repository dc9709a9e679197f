// The workloads as calls of kernels in the text form. Operands may lie in a GPU's memory.
#ifndef UMBRA_BENCHMARKS_CALLS_H_
#define UMBRA_BENCHMARKS_CALLS_H_

#include <memory>

#include "suite.h"
#include "umbra/compile.h"

namespace bench {

struct Call {
  std::shared_ptr<const umbra::graph::Graph> kernel;
  umbra::runtime::Arguments arguments;
};

Call CallOf(const Triad& d);
Call CallOf(const Gelu& d);
Call CallOf(const Softmax& d);
Call CallOf(const SoftmaxGradient& d);
Call CallOf(const LayerNorm& d);
Call CallOf(const LayerNormGradient& d);
Call CallOf(const LogSumExp& d);
Call CallOf(const Channels& d);
Call CallOf(const Adam& d);
Call CallOf(const Options& d);
Call CallOf(const Dense& d);
Call CallOf(const Scores& d);
Call CallOf(const Transpose& d);
Call CallOf(const Patches& d);
Call CallOf(const MaxPool& d);
Call CallOf(const Unpool& d);
Call CallOf(const Overlapping& d);
Call CallOf(const Opaque& d);
Call CallOf(const ComplexProduct& d);
Call CallOf(const Concat& d);
Call CallOf(const Take& d);
Call CallOf(const Mixed& d);
Call CallOf(const Saxpy8& d);
Call CallOf(const Quantized& d);
Call CallOf(const Planes& d);
Call CallOf(const Sum500& d);
Call CallOf(const AdamSteps& d);

}  // namespace bench

#endif  // UMBRA_BENCHMARKS_CALLS_H_

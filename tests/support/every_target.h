// A graph on operands drawn at random: the bits of the interpreter by every instruction set of this machine.
#ifndef UMBRA_TESTS_SUPPORT_EVERY_TARGET_H_
#define UMBRA_TESTS_SUPPORT_EVERY_TARGET_H_

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/target.h"
#include "compiler/graph/graph.h"
#include "tests/support/drawn.h"
#include "umbra/compile.h"

namespace umbra::drawn {

// Extents that the graph leaves open are `open`. Compares its first output; it has no scalars.
inline void ExpectSameBitsOnEveryTarget(const std::shared_ptr<const graph::Graph>& graph, index_t open) {
  std::mt19937 random(7);
  std::vector<std::unique_ptr<Tensor>> inputs;
  runtime::Arguments arguments;
  for (const int id : graph->inputs()) {
    const graph::Node& node = graph->node(id);
    std::vector<index_t> shape;
    for (index_t d = 0; d < static_cast<index_t>(node.shape.rank()); ++d)
      shape.push_back(node.shape[d].is_static() ? static_cast<index_t>(node.shape[d]) : open);
    inputs.push_back(std::make_unique<Tensor>(node.dtype, shape, 0, &random));
    arguments.inputs.push_back(inputs.back()->ref);
  }
  const auto run = [&](const CompileOptions& options) {
    const Function function = Compile(graph, options);
    const DType type = graph->node(graph->outputs()[0].node).dtype;
    auto result =
        std::make_unique<Tensor>(type, runtime::OutputShapes(function.program(), arguments.inputs)[0], 0, nullptr);
    arguments.outputs = {result->ref};
    function(arguments);
    return result;
  };
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  const auto expected = run(options);
  options.engine = Engine::kJit;
  for (const auto target : codegen::kAllTargets) {
    if (!HostRuns(target)) continue;
    options.target = std::string(codegen::Name(target));
    EXPECT_TRUE(SameBits(*expected, *run(options))) << options.target;
  }
}

}  // namespace umbra::drawn

#endif  // UMBRA_TESTS_SUPPORT_EVERY_TARGET_H_

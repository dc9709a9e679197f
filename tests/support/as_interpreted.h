// Programs by every dialect beside the interpreter, on operands with and without gaps.
#ifndef UMBRA_TESTS_SUPPORT_AS_INTERPRETED_H_
#define UMBRA_TESTS_SUPPORT_AS_INTERPRETED_H_

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/target.h"
#include "tests/support/drawn.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra::drawn {

// The extents of all symbols, of those that operands bring.
inline std::vector<index_t> WithDerived(const runtime::Program& program, std::vector<index_t> extents) {
  extents.resize(static_cast<std::size_t>(program.num_symbols));
  const auto value = [&](const runtime::Extent& extent) {
    return extent.is_static() ? extent.value : extents[static_cast<std::size_t>(extent.symbol)];
  };
  for (const runtime::DerivedExtent& derived : program.derived)
    extents[static_cast<std::size_t>(derived.result.symbol)] =
        runtime::Compute(derived.op.kind, value(derived.a), value(derived.b));
  return extents;
}

// Operands of a program whose open extents are `brought`, by symbol.
struct Call {
  Call(const runtime::Program& program, const std::vector<index_t>& brought, index_t padding) : random(7) {
    const std::vector<index_t> extents = WithDerived(program, brought);
    const auto value = [&](const runtime::Extent& extent) {
      return extent.is_static() ? extent.value : extents[static_cast<std::size_t>(extent.symbol)];
    };
    for (const runtime::Buffer& buffer : program.buffers) {
      if (buffer.kind > runtime::Buffer::Kind::kOutput) continue;
      std::vector<index_t> shape;
      for (const runtime::Extent& extent : buffer.shape) shape.push_back(value(extent));
      const bool output = buffer.kind == runtime::Buffer::Kind::kOutput;
      tensors.push_back(std::make_unique<Tensor>(buffer.dtype, shape, padding, output ? nullptr : &random));
      (output ? arguments.outputs : arguments.inputs).push_back(tensors.back()->ref);
      if (output) outputs.push_back(tensors.back().get());
    }
  }
  std::mt19937 random;
  std::vector<std::unique_ptr<Tensor>> tensors;
  std::vector<Tensor*> outputs;
  runtime::Arguments arguments;
};

inline std::string With(std::string text, const std::string& word, const std::string& by) {
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
    text.replace(at, word.size(), by);
  return text;
}

// Reductions join in another order than the interpreter, elements are the same bits.
inline void ExpectAsInterpreted(const std::string& text, const std::vector<std::vector<index_t>>& extents,
                                double tolerance) {
  const auto graph = graph::ParseText(text)[0];
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  const Function interpreted = Compile(graph, options);
  options.engine = Engine::kJit;
  for (const auto target : codegen::kAllTargets) {
    if (!HostRuns(target)) continue;
    options.target = std::string(codegen::Name(target));
    const Function function = Compile(graph, options);
    for (const auto& of_symbols : extents)
      for (const index_t padding : {0, 3})
        for (const int threads : {1, 2}) {
          const Call expected(function.program(), of_symbols, padding), got(function.program(), of_symbols, padding);
          interpreted(expected.arguments, {threads});
          function(got.arguments, {threads});
          std::string what = text + "\n" + options.target + ", padding " + std::to_string(padding);
          for (const index_t extent : of_symbols) what += ", " + std::to_string(extent);
          for (std::size_t k = 0; k < got.outputs.size(); ++k) {
            if (tolerance == 0) EXPECT_TRUE(SameBits(*expected.outputs[k], *got.outputs[k])) << what;
            else ExpectSame(*expected.outputs[k], *got.outputs[k], tolerance, what);
          }
        }
  }
}

}  // namespace umbra::drawn

#endif  // UMBRA_TESTS_SUPPORT_AS_INTERPRETED_H_

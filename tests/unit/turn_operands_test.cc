// Operands that lie across memory, of reductions and of what computes with positions: these are turned first.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "tests/support/drawn.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

std::shared_ptr<const graph::Graph> Parsed(const std::string& text) { return graph::ParseText(text)[0]; }

index_t NumTurned(const plan::Plan& plan) {
  return std::count_if(plan.buffers.begin(), plan.buffers.end(),
                       [](const auto& buffer) { return buffer.name.find("_turned") != std::string::npos; });
}

// The same bits from every instruction set; those of the interpreter, up to the order of sums. Open extents are `open`.
void ExpectAgreement(const std::shared_ptr<const graph::Graph>& graph, index_t open) {
  std::mt19937 random(7);
  std::vector<std::unique_ptr<drawn::Tensor>> inputs;
  runtime::Arguments arguments;
  for (const int id : graph->inputs()) {
    const graph::Node& node = graph->node(id);
    std::vector<index_t> shape;
    for (std::size_t d = 0; d < node.shape.size(); ++d)
      shape.push_back(node.shape[d].is_static() ? static_cast<index_t>(node.shape[d]) : open);
    inputs.push_back(std::make_unique<drawn::Tensor>(node.dtype, shape, 2, &random));
    arguments.inputs.push_back(inputs.back()->ref);
  }
  const auto run = [&](const CompileOptions& options, int threads) {
    const Function function = Compile(graph, options);
    auto result =
        std::make_unique<drawn::Tensor>(graph->node(graph->outputs()[0].node).dtype,
                                        runtime::OutputShapes(function.program(), arguments.inputs)[0], 0, nullptr);
    arguments.outputs = {result->ref};
    function(arguments, {threads});
    return result;
  };
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  const auto expected = run(options, 1);
  options.engine = Engine::kJit;
  std::unique_ptr<drawn::Tensor> first;
  for (const auto target : codegen::kAllTargets) {
    if (!HostRuns(target)) continue;
    options.target = std::string(codegen::Name(target));
    auto got = run(options, target == codegen::Target::kAvx2 ? 2 : 1);
    drawn::ForEachIndex(got->ref.shape, [&](const std::vector<index_t>& i) {
      EXPECT_NEAR(got->At(i), expected->At(i), 1e-5 * static_cast<double>(open + 10)) << options.target;
    });
    if (first == nullptr) first = std::move(got);
    else EXPECT_TRUE(drawn::SameBits(*first, *got)) << options.target;
  }
}

TEST(TurnOperands, SameBits) {
  const char* const kernels[] = {
      "kernel k(x: f32[n, m], y: f32[m, n]) -> (z: f32[m]) { z = reduce_with_axis<sum>(x.T * y, 1) }",
      "kernel k(x: i8[n, m], y: f32[m, n]) -> (z: f32[n]) { z = reduce_with_axis<maximum>(tcast<f32>(x.T) * y, 0) }",
      "kernel k(x: f32[n, 33]) -> (z: f32[33, n]) { t = x.T  e = exp(t - broadcast<0>(reduce_with_axis<maximum>(t, 1)))  z = e / broadcast<0>(reduce_with_axis<sum>(e, 1)) }",
      "kernel k(x: f64[n, 20, m], y: f64[n, m, 20]) -> (z: f64[n, m]) { z = reduce_with_axis<sum>(transpose<0, 2, 1>(x) - y, 2) }",
      "kernel k(x: f32[n, m], y: f32[m, n], u: f32[n, m]) -> (z: f32[m]) { z = reduce_with_axis<sum>(x.T * y + u.T, 1) }",
      "kernel k(x: f32[n, m], v: f32[m]) -> (z: f32[m, n]) { z = x.T * broadcast<0>(flip(v, 0)) }",
      "kernel k(x: f32[n, m], y: f32[m, n]) -> (z: f32[m]) { z = reduce_with_axis<sum>(x.T * flip(y, 1), 1) }",
  };
  for (const char* const text : kernels) {
    const auto graph = Parsed(text);
    EXPECT_GE(NumTurned(Lower(*graph)), 1) << text;
    for (const index_t open : {1, 3, 17, 70}) {
      SCOPED_TRACE(text + std::string(" of ") + std::to_string(open));
      ExpectAgreement(graph, open);
    }
  }
}

// A temporary is not written over what was turned of an operand that it may be written over: that lies otherwise.
TEST(TurnOperands, NotInPlace) {
  for (const index_t open : {16, 40, 64})
    ExpectAgreement(
        Parsed(
            "kernel k(x: f32[3, n, n]) -> (z: f32[3, n, n]) { t = x - broadcast<0>(reduce_with_axis<maximum>(swapaxis(x, 1, 2), 2))"
            "  z = flip(swapaxis(x, 1, 2) - broadcast<0>(reduce_with_axis<sum>(swapaxis(x, 1, 2) * t, 2)), 1) }"),
        open);
  for (const char* const extent : {"16", "20", "31", "33", "64"}) {
    const std::string n = extent;
    ExpectAgreement(Parsed("kernel k(x: f32[5, " + n + ", " + n + "]) -> (z: f32[5, " + n + ", " + n +
                           "]) { t = swapaxis(x, 1, 2)  d = t - broadcast<0>(reduce_with_axis<maximum>(t, 2))"
                           "  z = flip(d - broadcast<0>(reduce_with_axis<sum>(d, 2)), 1) }"),
                    1);
    ExpectAgreement(Parsed("kernel k(x: f32[n, " + n + "]) -> (z: f32[n, " + n +
                           "]) { e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))"
                           "  z = flip(e / broadcast<0>(reduce_with_axis<sum>(e, 1)), 0) }"),
                    70);
  }
}

TEST(TurnOperands, OnceForSeveralKernels) {
  const auto graph = Parsed(
      "kernel k(x: f32[n, m], y: f32[m, n]) -> (z: f32[m, n]) { z = x.T - broadcast<0>(flip(reduce_with_axis<sum>(x.T * y, 1), 0)) }");
  EXPECT_EQ(NumTurned(Lower(*graph)), 1);
  ExpectAgreement(graph, 40);
}

TEST(TurnOperands, WhatIsNot) {
  for (
      const char* const text :
      {"kernel k(x: f32[n, m]) -> (z: f32[m]) { z = reduce_with_axis<sum>(x.T, 1) }",  // columns
       "kernel k(x: f32[n, m], y: f32[m, n]) -> (z: f32[m, n]) { z = x.T + y }",  // by tiles
       "kernel k(x: f32[k], w: f32[n, k]) -> (z: f32[n]) { z = reduce_with_axis<sum>(w.T * broadcast<0>(x), 0) }",  // along rows of w
       "kernel k(x: f32[n, 3], y: f32[3, n]) -> (z: f32[n]) { z = reduce_with_axis<sum>(x.T * y, 0) }",  // short
       "kernel k(x: f32[n, 20]) -> (z: f32[n, 20]) { e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))  z = e / broadcast<0>(reduce_with_axis<sum>(e, 1)) }",
       "kernel k(x: f32[m, k], w: f32[n, k]) -> (z: f32[m, n]) { z = implicit_dot(x, w.T) }"})  // by panels
    EXPECT_EQ(NumTurned(Lower(*Parsed(text))), 0) << text;
}

}  // namespace
}  // namespace umbra

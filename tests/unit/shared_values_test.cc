// Values that are read twice by what is read twice, and so on: 2^40 paths lead to the first of a chain of 40. Whatever
// looks at a graph or writes it down meets each value once.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "compiler/codegen/cuda/generate.h"
#include "compiler/driver/lower.h"
#include "tests/support/every_target.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using namespace drawn;  // NOLINT: the test's own words

constexpr int kLength = 40;

// `a1 = ...`, each `#` of the step being the value before.
std::string Chain(const std::string& step) {
  std::string text;
  for (int k = 1; k <= kLength; ++k) {
    text += "  a" + std::to_string(k) + " = ";
    for (const char c : step) text += c == '#' ? "a" + std::to_string(k - 1) : std::string(1, c);
    text += "\n";
  }
  return text;
}

// The graph of a text in which `chain` stands for the chain, and `last` for its last value.
std::shared_ptr<const graph::Graph> GraphOf(std::string text, const std::string& step) {
  const auto replace = [&](const std::string& word, const std::string& by) {
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word)) text.replace(at, word.size(), by);
  };
  replace("chain\n", Chain(step));
  replace("last", "a" + std::to_string(kLength));
  return graph::ParseText(text)[0];
}

// The bits of the interpreter by every dialect, and a text for GPUs that is as long as the chain.
void OnEveryRoute(const std::string& text, const std::string& chained) {
  SCOPED_TRACE(chained + " in\n" + text);
  const auto graph = GraphOf(text, chained);
  ExpectSameBitsOnEveryTarget(graph, 70);
  const plan::Plan plan = Lower(*graph);
  for (const auto& step : plan.steps) {
    const auto& kernel = std::get<plan::Kernel>(step);
    for (const auto& variant : codegen::CudaVariants(kernel.signature, codegen::ScheduleForCuda(plan, kernel)))
      EXPECT_LT(codegen::GenerateCuda(plan, kernel, variant).kernel.size(), 60000u);
  }
}

TEST(SharedValues, Conditions) {
  for (const char* step : {"# && #", "# || #", "!# && #"}) {
    for (const char* compare : {"==", ">"})
      OnEveryRoute(
          std::string(
              "kernel k(s: i32[?], l: i32[9], g: i32[?, c]) -> (y: i32[9, c]) {\n  x = broadcast_with_axis(g, -1, 9)\n"
              "  a0 = broadcast<1>(s, x) ") +
              compare + " broadcast<0>(l, x)\nchain\n  y = reduce_with_axis<sum>(select(last, x, 0), 1)\n}",
          step);
    for (const char* first : {"x > 0", "broadcast<0>(v, x) > 0", "broadcast<1>(steps<i64>(70, 1), x) < 12",
                              "broadcast<0>(steps<i64>(8, 1), x) < 3"})
      OnEveryRoute(std::string("kernel k(x: f32[8, 70], v: f32[8]) -> (y: f32[8, 70]) {\n  a0 = ") + first +
                       "\nchain\n  y = select(last, x, 0)\n}",
                   step);
  }
}

TEST(SharedValues, Positions) {
  for (const char* step :
       {"# + #", "# - # * #", "minimum(#, # * 2)", "# / 3 + # / 5", "select(# > 3, #, # + 1)", "bit_and(#, # + 1)"})
    for (const char* first : {"steps<i64>(64, 1)", "steps<i64>(16, 4)"}) {
      const std::string chain = std::string("  a0 = ") + first + "\nchain\n";
      OnEveryRoute("kernel k(x: f32[100, 70]) -> (y: f32[64, 70]) {\n" + chain + "  y = take(last, x)\n}", step);
      OnEveryRoute("kernel k(x: f32[64, 70]) -> (y: f32[64]) {\n" + chain + "  y = mat_choose_row_element(x, last)\n}",
                   step);
      OnEveryRoute("kernel k(x: f32[8, 64]) -> (y: f32[8]) {\n" + chain +
                       "  y = reduce_with_axis<maximum>(select(broadcast<1>(last, x) > 3, x, 0), 1)\n}",
                   step);
      OnEveryRoute(
          "kernel k(x: f32[8, 64]) -> (y: f32[8, 64]) {\n" + chain + "  y = x + tcast<f32>(broadcast<1>(last, x))\n}",
          step);
    }
}

TEST(SharedValues, Maps) {
  for (const char* step : {"flip(#, 0) + #", "swapaxis(#, 0, 1) * 0.5 + #", "minimum(#, # * 2)"})
    OnEveryRoute("kernel k(a0: f32[4, 4]) -> (y: f32[4, 4]) {\nchain\n  y = last * 2\n}", step);
}

}  // namespace
}  // namespace umbra

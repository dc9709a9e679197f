// Positions in packets are i32 where a launch finds that 32 bits hold them: the bits of the interpreter for every instruction
// set, with positions of either width.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/target.h"
#include "tests/support/drawn.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::Tensor;
using runtime::Variant;

// Has a launch taken the form with positions of 64 bits, whatever else of it?
bool IsWide(const Function& function) {
  for (const auto& step : function.program().steps) {
    const auto& slots = std::get<runtime::KernelStep>(step).slots->function;
    for (const bool packed : {false, true})
      for (const bool strided : {false, true})
        if (slots[static_cast<std::size_t>(Variant{.strided = strided && !packed, .packed = packed, .wide_index = true}.index())].load() != nullptr) return true;
  }
  return false;
}

// The kernel's only output, of x with such a shape, by every target; `is_wide`: with positions of 64 bits?
void ExpectSameBits(const std::string& text, DType type, const std::vector<index_t>& shape, bool is_wide) {
  std::mt19937 random(11);
  const Tensor x(type, shape, 2, &random);
  std::unique_ptr<Tensor> expected;
  std::vector<CompileOptions> routes(1);
  routes[0].engine = Engine::kInterpreter;
  for (const auto target : codegen::kAllTargets)
    if (HostRuns(target)) {
      routes.emplace_back();
      routes.back().engine = Engine::kJit;
      routes.back().target = std::string(codegen::Name(target));
    }
  for (const CompileOptions& route : routes) {
    const Function function = Compile(graph::ParseText(text)[0], route);
    const runtime::Buffer& face = function.program().buffers[1];
    auto result = std::make_unique<Tensor>(face.dtype, runtime::OutputShapes(function.program(), {x.ref})[0], 0, nullptr);
    function({{x.ref}, {result->ref}, {}}, {2});
    if (expected == nullptr) {
      expected = std::move(result);
      continue;
    }
    EXPECT_TRUE(drawn::SameBits(*expected, *result)) << text << " " << route.target << " " << shape[0];
    EXPECT_EQ(IsWide(function), is_wide) << text << " " << route.target;
  }
}

TEST(Positions, OfExtremes) {
  for (const char* const type : {"f32", "f64", "f16", "i32", "i64", "u8"})
    for (const char* const reducer : {"argmax", "argmin"})
      for (const int axis : {0, 1, 2}) {
        const std::string text = std::string("kernel k(x: ") + type + "[n, m, c]) -> (p: i64[" + (axis == 0 ? "m, c" : axis == 1 ? "n, c" : "n, m") +
                                 "]) { p = reduce_with_axis<" + reducer + ">(x, " + std::to_string(axis) + ") }";
        for (const std::vector<index_t>& shape : std::vector<std::vector<index_t>>{{1, 1, 1}, {3, 70, 5}, {65, 3, 33}, {40, 9, 64}, {5, 2, 1000}})
          ExpectSameBits(text, *FindDType(type), shape, false);
      }
}

// The text with the number for each N.
std::string Sized(std::string text, index_t number) {
  for (std::size_t at; (at = text.find('N')) != std::string::npos;) text.replace(at, 1, std::to_string(number));
  return text;
}

TEST(Positions, OfNothing) {
  ExpectSameBits("kernel k(x: f32[n, m]) -> (p: i64[n]) { p = reduce_with_axis<argmax>(x, 1) }", DType::kFloat32, {5, 0}, true);
  ExpectSameBits("kernel k(x: f32[n, m]) -> (p: i64[m]) { p = reduce_with_axis<argmin>(x, 0) }", DType::kFloat32, {0, 37}, true);
  ExpectSameBits("kernel k(x: f32[0]) -> (p: i64[]) { p = reduce_with_axis<minimum>(select(x > 0, steps<i64>(0, 1), 7), 0) }", DType::kFloat32, {0}, true);
}

// What is made of positions: numbers, conditions, other positions.
TEST(Positions, InExpressions) {
  for (const char* const made : {"select(x > 0, 2 * i + 1, -i)", "maximum(select(x > 1, i, 0) - select(x < 0, i, 3), i / 3)", "select(x > 0, i, 5) * select(x > 1, i, -2)"})
    for (const char* const result : {"y: i64[N]) { y = MADE }", "y: f32[N]) { y = tcast<f32>(MADE) * x }", "y: i64[]) { y = reduce_with_axis<minimum>(MADE, 0) }",
                                     "y: i64[]) { y = reduce_with_axis<sum>(MADE, 0) }", "y: f32[N]) { y = select(MADE > 2 * i, x, tcast<f32>(i) / 7) }",
                                     "y: f16[N]) { y = tcast<f16>(i) + tcast<f16>(x) }"})
      for (const index_t n : {1, 33, 1000}) {
        std::string text = std::string("kernel k(x: f32[N]) -> (") + result;
        text.insert(text.find('{') + 1, " i = steps<i64>(N, 1) ");
        if (const auto at = text.find("MADE"); at != std::string::npos) text.replace(at, 4, std::string("(") + made + ")");
        ExpectSameBits(Sized(text, n), DType::kFloat32, {n}, false);
      }
}

// Beside values that are kept from phase to phase, which stand in the kernel where they were added.
TEST(Positions, BesideKeptValues) {
  for (const char* const text : {"kernel k(x: f32[n, m]) -> (y: f32[n, m]) { e = exp(x)  y = e / (broadcast<0>(reduce_with_axis<maximum>(e, 1)) * tcast<f32>(extent<0>(x))) }",
                                 "kernel k(x: f32[n, m]) -> (y: f32[n, m]) { e = exp(x)  y = e / (broadcast<1>(reduce_with_axis<maximum>(e, 0)) * tcast<f32>(extent<1>(x))) }",
                                 "kernel k(x: f32[n, m]) -> (y: f32[n, m]) { e = exp(x)  y = e + broadcast<0>(tcast<f32>(reduce_with_axis<argmax>(e, 1))) }",
                                 "kernel k(x: f32[n, m]) -> (y: f32[n, m]) { e = exp(x)  y = e + broadcast<1>(tcast<f32>(reduce_with_axis<argmax>(e, 0))) }"})
    for (const index_t n : {1, 20, 70}) ExpectSameBits(text, DType::kFloat32, {n, 100 + n}, false);
}

// A few elements of a tensor at positions that 32 bits do not hold.
TEST(Positions, BeyondThirtyTwoBits) {
  for (const char* const text : {"kernel k(x: f32[N]) -> (y: i64[]) { y = reduce_with_axis<maximum>(select(x > 0, steps<i64>(N, 1) * 100000, 3), 0) }",
                                 "kernel k(x: f32[N]) -> (y: f32[N]) { y = tcast<f32>(steps<i64>(N, 1) * 100000) * x }",
                                 "kernel k(x: f32[N]) -> (y: i64[N]) { y = select(x > 0, steps<i64>(N, 1) * 100000, 3) }"})
    for (const index_t n : {1000, 40000}) ExpectSameBits(Sized(text, n), DType::kFloat32, {n}, n == 40000);
  // Packets go across short rows, whose axis becomes the last.
  for (const index_t n : {1000, 40000})
    ExpectSameBits("kernel k(x: f32[n, 3]) -> (y: f32[3, n]) {\n"
                   "  y = transpose(flip(x, 1)) + transpose(x) * tcast<f32>(broadcast<1>(steps<i64>(extent<0>(x), 1) * 100000))\n}", DType::kFloat32, {n, 3}, n == 40000);
}

}  // namespace
}  // namespace umbra

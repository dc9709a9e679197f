// Positions in packets are i32 where a launch finds that 32 bits hold them: the bits of the interpreter for every
// instruction set, with positions of either width.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/drawn.h"
#include "tests/unit/index_map_common.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::Tensor;
using runtime::Variant;

bool IsWide(const Function& function) {
  return HasTaken(function, {.wide_index = true}) || HasTaken(function, {.strided = true, .wide_index = true});
}

// The kernel's only output, of x with such a shape, by every target; `is_wide`: with positions of 64 bits?
void ExpectSameBits(const std::string& text, DType type, const std::vector<index_t>& shape, bool is_wide) {
  std::mt19937 random(11);
  const Tensor x(type, shape, 2, &random);
  std::unique_ptr<Tensor> expected;
  for (const CompileOptions& route : Routes()) {
    const Function function = Compile(graph::ParseText(text)[0], route);
    const runtime::Buffer& face = function.program().buffers[1];
    auto result =
        std::make_unique<Tensor>(face.dtype, runtime::OutputShapes(function.program(), {x.ref})[0], 0, nullptr);
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
        const std::string text = std::string("kernel k(x: ") + type + "[n, m, c]) -> (p: i64[" +
                                 (axis == 0   ? "m, c"
                                  : axis == 1 ? "n, c"
                                              : "n, m") +
                                 "]) { p = reduce_with_axis<" + reducer + ">(x, " + std::to_string(axis) + ") }";
        for (const std::vector<index_t>& shape :
             std::vector<std::vector<index_t>>{{1, 1, 1}, {3, 70, 5}, {65, 3, 33}, {40, 9, 64}, {5, 2, 1000}})
          ExpectSameBits(text, *FindDType(type), shape, false);
      }
}

// Positions that were found, and numbers of 64 bits beside extents: packets as other data are, in tiles of transposed
// operands and of rows that share what they read.
TEST(Positions, AreDataOnceFound) {
  const std::vector<index_t> shape = {7, 40, 37};
  for (const char* const after :
       {"t.T + 1", "t.T + t.T", "tcast<i64>(tcast<i32>(t).T * 2)", "tcast<i64>(tcast<f32>(t).T * 2)",
        "tcast<i64>((t > 1).T ? 3 : 4)", "bit_and(t, 3).T", "tcast<i64>((t == extent<0>(x) - 6 ? 7 : t).T) + 1",
        "t.T > extent<0>(x) && t.T < extent<1>(x) * 2 ? t.T * extent<0>(x) : t.T - 1",
        "maximum(t, extent<0>(x)).T + extent<1>(x) * 2"})
    for (const char* const reducer : {"argmax", "argmin"})
      ExpectSameBits(std::string("kernel k(x: f32[s, n, m]) -> (y: i64[m, n]) {\n  t = reduce_with_axis<") + reducer +
                         ">(x, 0)\n  y = " + after + "\n}",
                     DType::kFloat32, shape, false);
  for (const char* const joined :
       {"minimum(x, extent<0>(x) - 1) * broadcast<1, 2>(v, x)", "x / extent<1>(x) + broadcast<1, 2>(v, x)"})
    ExpectSameBits(
        std::string(
            "kernel k(x: i64[s, n, m]) -> (y: i64[s, m]) {\n  v = reduce_with_axis<sum>(x, 0)\n  y = reduce_with_axis<sum>(") +
            joined + ", 1)\n}",
        DType::kInt64, shape, false);
}

// The text with the number for each N.
std::string Sized(std::string text, index_t number) {
  for (std::size_t at; (at = text.find('N')) != std::string::npos;) text.replace(at, 1, std::to_string(number));
  return text;
}

// Memory without gaps is cut into rows anew, and what is left over is a shorter one: the extent stays what the call has
// brought.
TEST(Positions, ExtentsBesideRowsCutAnew) {
  for (const char* const body : {"x + tcast<f32>(extent<0>(x))", "x / tcast<f32>(extent<0>(x) * extent<0>(x) + 1)",
                                 "tcast<f32>(minimum(tcast<i64>(x), extent<0>(x) - 20000))"})
    for (const index_t count : {16384, 16385, 20000, 40001})
      ExpectSameBits(std::string("kernel k(x: f32[n]) -> (y: f32[n]) { y = ") + body + " }", DType::kFloat32, {count},
                     false);
}

TEST(Positions, OfNothing) {
  ExpectSameBits("kernel k(x: f32[n, m]) -> (p: i64[n]) { p = reduce_with_axis<argmax>(x, 1) }", DType::kFloat32,
                 {5, 0}, true);
  ExpectSameBits("kernel k(x: f32[n, m]) -> (p: i64[m]) { p = reduce_with_axis<argmin>(x, 0) }", DType::kFloat32,
                 {0, 37}, true);
  ExpectSameBits(
      "kernel k(x: f32[0]) -> (p: i64[]) { p = reduce_with_axis<minimum>(select(x > 0, steps<i64>(0, 1), 7), 0) }",
      DType::kFloat32, {0}, true);
}

// Rows that share copied columns, and an extent that is a number: the form is the same whatever the extent.
TEST(Positions, ExtentsOfPackedKernels) {
  const char* const text =
      "kernel k(x: f32[c, 40]) -> (z: f32[40, 40]) { z = reduce_with_axis<mean>(broadcast_with_axis(x, 1, 40) * broadcast_with_axis(x, 0, 40), 0) }";
  for (const index_t c : {0, 5})
    for (const CompileOptions& route : Routes()) {
      if (route.engine == Engine::kInterpreter) continue;
      const Function function = Compile(graph::ParseText(text)[0], route);
      std::mt19937 random(2);
      const Tensor x(DType::kFloat32, {c, 40}, 0, &random), z(DType::kFloat32, {40, 40}, 0, nullptr);
      function({{x.ref}, {z.ref}, {}}, {1});
      EXPECT_TRUE(HasTaken(function, {.packed = true})) << route.target << " " << c;
      EXPECT_FALSE(IsWide(function)) << route.target << " " << c;
      EXPECT_EQ(std::isnan(z.At({3, 4})), c == 0) << route.target;
    }
}

// What is made of positions: numbers, conditions, other positions.
TEST(Positions, InExpressions) {
  for (const char* const made :
       {"select(x > 0, 2 * i + 1, -i)", "maximum(select(x > 1, i, 0) - select(x < 0, i, 3), i / 3)",
        "select(x > 0, i, 5) * select(x > 1, i, -2)"})
    for (const char* const result :
         {"y: i64[N]) { y = MADE }", "y: f32[N]) { y = tcast<f32>(MADE) * x }",
          "y: i64[]) { y = reduce_with_axis<minimum>(MADE, 0) }", "y: i64[]) { y = reduce_with_axis<sum>(MADE, 0) }",
          "y: f32[N]) { y = select(MADE > 2 * i, x, tcast<f32>(i) / 7) }",
          "y: f16[N]) { y = tcast<f16>(i) + tcast<f16>(x) }"})
      for (const index_t n : {1, 33, 1000}) {
        std::string text = std::string("kernel k(x: f32[N]) -> (") + result;
        text.insert(text.find('{') + 1, " i = steps<i64>(N, 1) ");
        if (const auto at = text.find("MADE"); at != std::string::npos)
          text.replace(at, 4, std::string("(") + made + ")");
        ExpectSameBits(Sized(text, n), DType::kFloat32, {n}, false);
      }
}

// Beside values that are kept from phase to phase, which stand in the kernel where they were added.
TEST(Positions, BesideKeptValues) {
  for (
      const char* const text :
      {"kernel k(x: f32[n, m]) -> (y: f32[n, m]) { e = exp(x)  y = e / (broadcast<0>(reduce_with_axis<maximum>(e, 1)) * tcast<f32>(extent<0>(x))) }",
       "kernel k(x: f32[n, m]) -> (y: f32[n, m]) { e = exp(x)  y = e / (broadcast<1>(reduce_with_axis<maximum>(e, 0)) * tcast<f32>(extent<1>(x))) }",
       "kernel k(x: f32[n, m]) -> (y: f32[n, m]) { e = exp(x)  y = e + broadcast<0>(tcast<f32>(reduce_with_axis<argmax>(e, 1))) }",
       "kernel k(x: f32[n, m]) -> (y: f32[n, m]) { e = exp(x)  y = e + broadcast<1>(tcast<f32>(reduce_with_axis<argmax>(e, 0))) }"})
    for (const index_t n : {1, 20, 70}) ExpectSameBits(text, DType::kFloat32, {n, 100 + n}, false);
}

// Labels of 32 bits beside the positions of classes, along packets and across them, and beside others.
TEST(Positions, BesideLabels) {
  for (const char* const text :
       {"kernel k(t: i32[n]) -> (y: f32[n, 10]) { y = one_hot_encode(t, 10) * 2 }",
        "kernel k(t: i32[n]) -> (y: f32[n, 100]) { y = 1 - one_hot_encode(t, 100) }",
        "kernel k(t: i32[n]) -> (y: f32[n]) {\n  h = one_hot_encode(t, 10)\n"
        "  y = reduce_with_axis<maximum>(select(h > 0, -1, broadcast<0>(tcast<f32>(t), h)), 1)\n}",
        "kernel k(t: i32[n]) -> (y: i32[n, 7]) {\n  j = broadcast_with_axis(steps<i64>(7, 1), -1, extent<0>(t))\n"
        "  i = broadcast_with_axis(steps<i64>(extent<0>(t), 1), 0, 7)\n  u = broadcast_with_axis(t, 0, 7)\n"
        "  y = select(tcast<i64>(u) < j * 3 - 5, u, select(tcast<i64>(u) >= i / 4 - 3, 1, u * 2))\n}",
        "kernel k(t: i32[n]) -> (y: f32[n]) {\n  i = steps<i64>(extent<0>(t), 1)\n"
        "  y = select(tcast<i64>(t) == i - 9, 1, select(i < tcast<i64>(t) * 3, 2, 3)) * tcast<f32>(t)\n}"})
    for (const index_t n : {1, 16, 53, 200}) ExpectSameBits(text, DType::kInt32, {n}, false);
}

// The ends of i64, whose difference to a position wraps around; each condition chooses.
TEST(Positions, BesideTheLeastAndTheLargest) {
  const std::string text =
      "kernel k(t: i64[n]) -> (y: f32[n, 17]) {\n  e = broadcast_with_axis(shift_left(t, 63), 0, 17)\n"
      "  j = broadcast_with_axis(steps<i64>(17, 1), -1, extent<0>(t))\n  v = broadcast_with_axis(tcast<f32>(t), 0, 17)\n"
      "  y = select(CONDITION, v, v * 2 + 1)\n}";
  for (const char* const condition :
       {"j < e", "j <= e", "j > e", "e <= j * 3 - 5", "7 - j < e", "7 - j >= bit_not(e)", "j <= bit_not(e)",
        "j * 3 - 5 < bit_not(e)", "j > bit_not(e)", "j - j / 3 * 3 <= bit_not(e)", "j - j / 5 * 5 > e",
        "5 - (j - j / 5 * 5) - j < e", "j + bit_not(e) > 5", "j - e <= 3", "j == bit_not(e)"})
    for (const index_t n : {1, 40}) {
      std::string of = text;
      of.replace(of.find("CONDITION"), 9, condition);
      ExpectSameBits(of, DType::kInt64, {n}, false);
    }
}

// A few elements of a tensor at positions that 32 bits do not hold.
TEST(Positions, BeyondThirtyTwoBits) {
  for (
      const char* const text :
      {"kernel k(x: f32[N]) -> (y: i64[]) { y = reduce_with_axis<maximum>(select(x > 0, steps<i64>(N, 1) * 100000, 3), 0) }",
       "kernel k(x: f32[N]) -> (y: f32[N]) { y = tcast<f32>(steps<i64>(N, 1) * 100000) * x }",
       "kernel k(x: f32[N]) -> (y: i64[N]) { y = select(x > 0, steps<i64>(N, 1) * 100000, 3) }"})
    for (const index_t n : {1000, 40000}) ExpectSameBits(Sized(text, n), DType::kFloat32, {n}, n == 40000);
  for (const index_t n : {1000, 40000})
    ExpectSameBits(
        "kernel k(t: i32[n]) -> (y: i32[n]) { y = select(tcast<i64>(t) < steps<i64>(extent<0>(t), 1) * 100000, t, 3) }",
        DType::kInt32, {n}, n == 40000);
  // Packets go across short rows, whose axis becomes the last.
  for (const index_t n : {1000, 40000})
    ExpectSameBits(
        "kernel k(x: f32[n, 3]) -> (y: f32[3, n]) {\n"
        "  y = transpose(flip(x, 1)) + transpose(x) * tcast<f32>(broadcast<1>(steps<i64>(extent<0>(x), 1) * 100000))\n}",
        DType::kFloat32, {n, 3}, n == 40000);
}

}  // namespace
}  // namespace umbra

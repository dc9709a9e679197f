// Integers that 16 bits hold are computed in as many: the numbers of the interpreter, which computes in i32, by every
// instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "compiler/codegen/source.h"
#include "compiler/driver/lower.h"
#include "tests/support/every_target.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

// Does the source of the graph's kernels compute packets of i16?
bool IsNarrow(const std::string& text) {
  codegen::SourceOptions options;
  options.target = codegen::Target::kAvx512;
  const std::string source = codegen::Generate(Lower(*graph::ParseText(text)[0], false, Math::kStrict), options).text;
  return source.find("cast<i16x") != std::string::npos;
}

TEST(NarrowIntegers, WhatFits) {
  for (
      const char* text : {
          "kernel k(a: u8[n], b: u8[n]) -> (y: u8[n]) { y = tcast<u8>(minimum(a + b, 255)) }",
          "kernel k(a: u8[n], b: u8[n]) -> (y: u8[n]) { y = tcast<u8>(maximum(a - b, 0)) }",
          "kernel k(a: u8[n]) -> (y: u8[n]) { y = select(a > 128, a * 0 + 255, a * 0) }",
          "kernel k(a: u8[n]) -> (y: u8[n]) { y = tcast<u8>(clip((a - 128) * 5 / 4 + 140, 0, 255)) }",
          "kernel k(a: u8[n]) -> (y: i32[n]) { y = bit_and(a, 15) * 16 + shift_right(a, 4) }",
          "kernel k(a: i8[n], b: i8[n]) -> (y: i16[n]) { y = tcast<i16>(a * b + bit_xor(a, b)) }",
          "kernel k(a: i8[n], b: i8[n]) -> (y: bool[n]) { y = a * 3 > b && b != 0 }",
          "kernel k(a: u8[n, m]) -> (y: u8[n]) { y = tcast<u8>(reduce_with_axis<maximum>(abs(a - 100), 1)) }",
          "kernel k(a: i16[n, m]) -> (y: i8[n]) { y = tcast<i8>(reduce_with_axis<minimum>(a / (-7), 1)) }",
          "kernel k(a: u8[n, m]) -> (y: u8[?, ?]) { y = tcast<u8>((pad(a, 1, 1) * 2 + 3) / 2) }",
          "kernel k(a: u8[20, 80]) -> (y: u8[18, 78]) { y = pool<maximum>(a, 3, 3, 1, 1) }",
          "kernel k(a: u8[n, m], b: bool[n, m]) -> (y: i8[n, m]) { y = tcast<i8>(a - tcast<i32>(b) * 90) }",
          "kernel k(a: i8[2, 300000]) -> (y: i8[2]) { y = reduce_with_axis<minimum>(a, 1) }",
          "kernel k(a: u8[n], b: u8[m]) -> (y: u8[n, m]) { y = broadcast<0>(maximum(a, 2)) - broadcast<1>(b) }",
          "kernel k(a: u8[n], b: u8[m]) -> (y: u8[n, m]) { y = broadcast<0>(select(a > 7, minimum(a, 90), a * 0 + 5)) / 2 + broadcast<1>(b / 2) }",
          "kernel k(a: u8[n, 200]) -> (y: u8[n, 199]) { y = tcast<u8>((slice(a, 1, 0, 199) + slice(a, 1, 1, 200)) / 2) }",
      }) {
    SCOPED_TRACE(text);
    EXPECT_TRUE(IsNarrow(text));
    for (const index_t open : {1, 33, 100}) drawn::ExpectSameBitsOnEveryTarget(graph::ParseText(text)[0], open);
  }
}

// The least and the largest of none are those of i32 and of i16, whose last 8 bits are the same.
TEST(NarrowIntegers, ExtremesOfNothing) {
  for (const std::string reducer : {"maximum", "minimum"}) {
    const std::string text =
        "kernel k(a: u8[5, m]) -> (y: u8[5]) { y = tcast<u8>(reduce_with_axis<" + reducer + ">(a - 7, 1)) }";
    EXPECT_TRUE(IsNarrow(text));
    drawn::ExpectSameBitsOnEveryTarget(graph::ParseText(text)[0], 0);
  }
}

TEST(NarrowIntegers, WhatMightNotFit) {
  for (const char* text : {
           "kernel k(a: u8[n], b: u8[n]) -> (y: i32[n]) { y = a * b }",
           "kernel k(a: u8[n], s: i32) -> (y: i32[n]) { y = a + s }",
           "kernel k(a: i16[n]) -> (y: i32[n]) { y = a + 1 }",
           "kernel k(a: i16[n]) -> (y: i32[n]) { y = -a }",
           "kernel k(a: i16[n], b: i32[n]) -> (y: i32[n]) { y = maximum(a, b) }",
           "kernel k(a: u8[n]) -> (y: i32[n]) { y = shift_left(a, 8) }",
           "kernel k(a: u8[n]) -> (y: i32[n]) { y = shift_right(a - 3, 20) }",
           "kernel k(a: u8[n]) -> (y: f32[n]) { y = tcast<f32>(a - 3) * 0.5 }",
           "kernel k(a: u8[n, m]) -> (y: i32[n]) { y = reduce_with_axis<sum>(a, 1) }",
           "kernel k(a: i64[n], b: u8[n]) -> (y: i32[n]) { y = select(a > 3, tcast<i32>(b) + 1, 0) }",
           "kernel k(a: u8[n], b: f32[n]) -> (y: f32[n]) { y = select(a + 1 > 9, b, 0.5) }",
           "kernel k(a: u8[n, m]) -> (y: u8[n, m]) { y = tcast<u8>(255 - flip(a, 1)) }",
           "kernel k(a: u8[n, 40]) -> (y: u8[n, 39]) { y = tcast<u8>((slice(a, 1, 0, 39) + slice(a, 1, 1, 40)) / 2) }",
           "kernel k(a: u8[n, m]) -> (y: i32[n]) { y = reduce_with_axis<maximum>(a, 1) }",
       }) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(IsNarrow(text));
    const auto graph = graph::ParseText(text)[0];
    if (graph->scalars().empty()) drawn::ExpectSameBitsOnEveryTarget(graph, 33);
  }
}

// What moves nothing wider than 16 bits has packets of as many lanes.
TEST(NarrowIntegers, OfNoArithmetic) {
  for (const char* text : {
           "kernel k(a: i8[n]) -> (y: i8[n]) { y = a }",
           "kernel k(a: u8[n, m]) -> (y: u8[n, m]) { y = flip(flip(a, 1), 0) }",
           "kernel k(a: u8[n, m]) -> (y: u8[?, ?]) { y = upsampling_nearest(a, 3) }",
           "kernel k(a: i16[n, m]) -> (y: i16[?, ?]) { y = pad(a, 2, 3) }",
           "kernel k(a: bool[n, m], b: bool[n, m]) -> (y: bool[n, m]) { y = a && !flip(b, 1) || a && b }",
           "kernel k(a: u8[n, m], b: u8[n, m]) -> (y: bool[n, m]) { y = a > b }",
           "kernel k(a: u8[n, m], b: u8[n, m]) -> (y: u8[?, m]) { y = concat(a, b, 0) }",
           "kernel k(a: u8[n, m], b: u8[n, m]) -> (y: u8[n, ?]) { y = concat(a, b, 1) }",
           "kernel k(a: u8[3, 3, 20, 20]) -> (y: u8[?, ?]) { y = unpack_patch2col(a, 3, 3, 1, 1, 1, 1) }",
           "kernel k(a: u8[n, m]) -> (y: u8[?, ?]) { y = a.T }",
       }) {
    SCOPED_TRACE(text);
    for (const index_t open : {3, 17, 33, 100}) drawn::ExpectSameBitsOnEveryTarget(graph::ParseText(text)[0], open);
  }
}

// An expression over a, b and c, whose numbers may leave 16 bits or not.
std::string Drawn(std::mt19937* random, int depth) {
  const auto pick = [&](int n) { return static_cast<int>((*random)() % static_cast<unsigned>(n)); };
  const auto operand = [&] { return Drawn(random, depth - 1); };
  if (depth == 0) return pick(4) == 0 ? "(b * 0 + " + std::to_string(pick(300)) + ")" : std::string(1, "abc"[pick(3)]);
  switch (pick(12)) {
    case 0:
    case 1: return "(" + operand() + " + " + operand() + ")";
    case 2:
    case 3: return "(" + operand() + " - " + operand() + ")";
    case 4: return "(" + operand() + " * " + std::to_string(pick(9) - 4) + ")";
    case 5: return "(" + operand() + " / " + std::to_string(pick(20) + 1) + ")";
    case 6: return "maximum(" + operand() + ", " + operand() + ")";
    case 7: return "minimum(" + operand() + ", " + operand() + ")";
    case 8: return "abs(" + operand() + ")";
    case 9: return "select(" + operand() + " <= " + operand() + ", " + operand() + ", " + operand() + ")";
    case 10: return "bit_and(" + operand() + ", " + operand() + ")";
    default: return "shift_right(" + operand() + ", " + std::to_string(pick(18)) + ")";
  }
}

TEST(NarrowIntegers, DrawnExpressions) {
  std::mt19937 random(11);
  int narrow = 0, wide = 0;
  for (int k = 0; k < 60; ++k) {
    const std::string text = "kernel k(a: u8[n], b: i8[n], c: " + std::string(k % 3 == 0 ? "i16" : "u8") +
                             "[n]) -> (y: " + (k % 2 == 0 ? "i32" : "i16") + "[n]) { y = tcast<" +
                             (k % 2 == 0 ? "i32" : "i16") + ">(" + Drawn(&random, 3) + " + a - b) }";
    SCOPED_TRACE(text);
    ++(IsNarrow(text) ? narrow : wide);
    drawn::ExpectSameBitsOnEveryTarget(graph::ParseText(text)[0], 53);
  }
  EXPECT_GT(narrow, 15);
  EXPECT_GT(wide, 5);
}

}  // namespace
}  // namespace umbra

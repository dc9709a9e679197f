// What is put together of computed values is written part by part, where the whole lies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/transform/joined_parts.h"
#include "runtime/program_text.h"
#include "tests/support/as_interpreted.h"
#include "tests/support/drawn.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::ExpectAsInterpreted;
using drawn::Tensor;
using runtime::Buffer;

std::vector<Buffer> PartsOf(const runtime::Program& program) {
  std::vector<Buffer> parts;
  for (const Buffer& buffer : program.buffers)
    if (buffer.part >= 0) parts.push_back(buffer);
  return parts;
}

std::size_t NumParts(const std::string& text) { return PartsOf(Compile(graph::ParseText(text)[0]).program()).size(); }

// Shares of x, then how far w is below the largest of its row.
const std::string kShares = "  s = x / broadcast<0>(reduce_with_axis<sum>(x, 1))\n";
const std::string kBelow = "  d = w - broadcast<0>(reduce_with_axis<maximum>(w, 1))\n";

TEST(JoinedParts, RowsBelowRows) {
  const std::string text =
      "kernel k(x: f32[n, m], w: f32[h, m]) -> (y: f32[k, m]) {\n" + kShares + kBelow + "  y = concat(s, d, 0)\n}";
  EXPECT_EQ(NumParts(text), 2u);
  const Function function = Compile(graph::ParseText(text)[0]);
  std::mt19937 random(5);
  for (const index_t padding : {0, 3}) {
    const Tensor x(DType::kFloat32, {5, 37}, padding, &random), w(DType::kFloat32, {4, 37}, padding, &random);
    Tensor y(DType::kFloat32, {9, 37}, padding, nullptr);
    function({{x.ref, w.ref}, {y.ref}, {}});
    for (index_t i = 0; i < 9; ++i) {
      double sum = 0, most = -1e30;
      for (index_t j = 0; j < 37; ++j) {
        if (i < 5) sum += x.At({i, j});
        else most = std::max(most, w.At({i - 5, j}));
      }
      for (index_t j = 0; j < 37; ++j) {
        const double expected = i < 5 ? x.At({i, j}) / sum : w.At({i - 5, j}) - most;
        ASSERT_NEAR(y.At({i, j}), expected, 1e-5 * std::max(1.0, std::abs(expected))) << i << ", " << j;
      }
    }
  }
  ExpectAsInterpreted(text, {{5, 37, 4}, {1, 64, 1}, {0, 16, 3}, {3, 0, 2}, {130, 20, 1}}, 1e-5);
}

TEST(JoinedParts, ColumnsBesideColumns) {
  const std::string text = "kernel k(x: f32[n, m], w: f32[n, h]) -> (y: f32[n, k]) {\n" + kShares + kBelow +
                           "  y = concat(s, d, x, s, 1)\n}";
  EXPECT_EQ(NumParts(text), 4u);  // x is copied, and s is written twice
  ExpectAsInterpreted(text, {{5, 37, 4}, {3, 16, 64}, {40, 7, 1}, {2, 0, 5}}, 1e-5);
  const std::string known =
      "kernel k(x: f32[n, 64], w: f32[n, 80]) -> (y: f32[n, 144]) {\n" + kShares + kBelow + "  y = concat(s, d, 1)\n}";
  EXPECT_EQ(NumParts(known), 2u);
  ExpectAsInterpreted(known, {{5}, {1}, {33}}, 1e-5);
  // Parts of a row that are as short as this are put together in packets.
  EXPECT_EQ(NumParts("kernel k(x: f32[n, 24], w: f32[n, 80]) -> (y: f32[n, 104]) {\n" + kShares + kBelow +
                     "  y = concat(s, d, 1)\n}"),
            0u);
}

TEST(JoinedParts, CheapOnesAmongThem) {
  const std::string text = "kernel k(x: f32[n, 96], w: f32[n, 96]) -> (y: f32[n, 288]) {\n" + kShares +
                           "  y = concat(w, s, x * 2 + w, 1)\n}";
  EXPECT_EQ(NumParts(text), 3u);
  ExpectAsInterpreted(text, {{5}, {70}}, 1e-5);
  // Where nothing is computed to memory, one kernel does it all.
  EXPECT_EQ(NumParts("kernel k(x: f32[n, 96], w: f32[n, 96]) -> (y: f32[n, 192]) { y = concat(w, x * 2 + w, 1) }"), 0u);
}

TEST(JoinedParts, OfProducts) {
  const std::string text =
      "kernel k(x: f32[n, 70], w: f32[70, 64], v: f32[70, 80]) -> (y: f32[n, 144]) "
      "{ y = concat(relu(dot(x, w)), dot(x, v), 1) }";
  EXPECT_EQ(NumParts(text), 2u);
  ExpectAsInterpreted(text, {{5}, {33}, {200}}, 1e-4);
  // A product is computed once, whatever it is written to.
  EXPECT_EQ(NumParts("kernel k(x: f32[n, 70], w: f32[70, 64]) -> (y: f32[n, 128]) "
                     "{ p = dot(x, w)  y = concat(p, p, 1) }"),
            0u);
  const std::string read =
      "kernel k(x: f32[n, 70], w: f32[70, 64], v: f32[70, 80], z: f32[144, 9]) -> (y: f32[n, 9]) "
      "{ y = dot(concat(relu(dot(x, w)), dot(x, v), 1), z) }";
  EXPECT_EQ(NumParts(read), 2u);
  ExpectAsInterpreted(read, {{5}, {33}, {200}}, 1e-4);
}

TEST(JoinedParts, PartsThatOthersRead) {
  const std::string text = "kernel k(x: f32[n, 64], w: f32[n, 64]) -> (y: f32[n, 128], z: f32[n, 64], t: f32[64]) {\n" +
                           kShares + kBelow + "  y = concat(s, d, 1)\n  z = s\n  t = reduce_with_axis<sum>(d, 0)\n}";
  EXPECT_EQ(NumParts(text), 2u);
  ExpectAsInterpreted(text, {{5}, {70}}, 1e-4);
  // One part is made of the other.
  const std::string chain = "kernel k(x: f32[n, 64]) -> (y: f32[n, 128]) {\n" + kShares +
                            "  y = concat(s, s * broadcast<1>(reduce_with_axis<maximum>(s, 0)), 1)\n}";
  ExpectAsInterpreted(chain, {{5}, {70}}, 1e-4);
}

TEST(JoinedParts, JoinedOfJoined) {
  const std::string text = "kernel k(x: f32[n, 64], w: f32[n, 64]) -> (y: f32[?, 2, 64]) {\n" + kShares + kBelow +
                           "  a = concat(s, d, 1)\n  b = concat(d * 2, s, 1)\n"
                           "  y = reshape(concat(a, b, 0), 2 * extent<0>(x), 2, 64)\n}";
  ExpectAsInterpreted(text, {{5}, {70}}, 1e-4);
}

// The whole may be the memory of what is read: a call works on a copy then.
TEST(JoinedParts, InPlace) {
  const Function function = Compile(graph::ParseText(
      "kernel k(x: f32[n, 128]) -> (y: f32[n, 128]) {\n  a = slice(x, 1, 0, 64)\n  b = slice(x, 1, 64, 128)\n"
      "  y = concat(b / broadcast<0>(reduce_with_axis<sum>(a, 1)), a / broadcast<0>(reduce_with_axis<sum>(b, 1)), 1)\n}")
                                        [0]);
  EXPECT_EQ(PartsOf(function.program()).size(), 2u);
  std::mt19937 random(6);
  for (const index_t padding : {0, 3}) {
    Tensor x(DType::kFloat32, {30, 128}, padding, &random), y(DType::kFloat32, {30, 128}, padding, nullptr);
    function({{x.ref}, {y.ref}, {}});
    function({{x.ref}, {x.ref}, {}});
    EXPECT_TRUE(drawn::SameBits(x, y));
    function({{x.ref}, {y.ref}, {}});
  }
}

TEST(JoinedParts, TravelAsText) {
  const Function function = Compile(graph::ParseText("kernel k(x: f32[n, 64], w: f32[h, 64]) -> (y: f32[k, 64]) {\n" +
                                                     kShares + kBelow + "  y = concat(s, d, 0)\n}")[0]);
  const std::vector<Buffer> parts = PartsOf(runtime::ProgramFromText(runtime::ProgramToText(function.program())));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].part, 0);
  EXPECT_EQ(parts[0].begin, runtime::Extent::Static(0));
  EXPECT_EQ(parts[1].begin, parts[0].shape[0]);
}

// Rows of x at their places, but for those that the padding has set to 0.
TEST(JoinedParts, PaddedOnes) {
  const Function function = Compile(graph::ParseText(
      "kernel k(x: f32[9, 64], w: f32[5, 64]) -> (y: f32[23, 64]) {\n  p = pad(slice(x, 0, 2, 7), 2, 0)\n"
      "  y = concat(p, w / broadcast<0>(reduce_with_axis<sum>(w, 1)), p, 0)\n}")[0]);
  std::mt19937 random(5);
  const Tensor x(DType::kFloat32, {9, 64}, 0, &random), w(DType::kFloat32, {5, 64}, 0, &random);
  Tensor y(DType::kFloat32, {23, 64}, 0, nullptr);
  function({{x.ref, w.ref}, {y.ref}, {}});
  for (index_t i = 0; i < 9; ++i)
    for (index_t j = 0; j < 64; ++j) {
      const double expected = i < 2 || i >= 7 ? 0 : x.At({i, j});
      ASSERT_EQ(y.At({i, j}), expected) << i << ", " << j;
      ASSERT_EQ(y.At({i + 14, j}), expected) << i << ", " << j;
    }
}

// Casts that round are no part of it, and reshapes that are outputs are copied.
TEST(JoinedParts, RoundedOrReshaped) {
  const auto shares = [](const std::string& result, const std::string& more) {
    return NumParts("kernel k(x: f32[n, 64], w: f32[n, 64]) -> (y: f32[n, 128]" + more + ") {\n" + kShares + kBelow +
                    result + "\n}");
  };
  EXPECT_EQ(shares("  y = tcast<f32>(tcast<i32>(concat(s, d, 1)))", ""), 0u);
  EXPECT_EQ(shares("  y = concat(s, d, 1)", ""), 2u);
  EXPECT_EQ(
      NumParts(
          "kernel k(x: f32[b, t, 300], w: f32[300, 64], u: f32[b, m, 64]) -> (z: f32[b, t, 64], y: f32[b, ?, 64]) {\n"
          "  z = reshape(dot(reshape(x, b * t, 300), w), b, t, 64)\n  y = concat(z, u * 2, 1)\n}"),
      0u);
}

// What leaves something out, or puts something between, is none.
TEST(JoinedParts, OfOthers) {
  const auto parts = [](const std::string& result) {
    const auto graph =
        graph::ParseText("kernel k(x: f32[9, 64], w: f32[8, 64]) -> (y: f32[?, ?]) { y = " + result + " }")[0];
    graph::PositionForms forms(*graph);
    return graph::PartsOfJoin(*graph, graph->outputs()[0].node, &forms).size();
  };
  EXPECT_EQ(parts("concat(exp(x), w, 0)"), 2u);
  EXPECT_EQ(parts("concat(concat(w, exp(x), 0), slice(x, 0, 1, 3), 0)"), 2u);
  EXPECT_EQ(parts("pad(concat(exp(x), w, 0), 1, 0)"), 0u);
  EXPECT_EQ(parts("flip(concat(exp(x), w, 0), 0)"), 0u);
  EXPECT_EQ(parts("concat(x, w, 0)"), 0u);  // nothing is computed
}

}  // namespace
}  // namespace umbra

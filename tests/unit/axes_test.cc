// Kernels whose axes are put in another order or made one: short rows of pixels, taken apart and put together, and axes
// that lie one after the other in memory. Every dialect beside the interpreter, on operands with and without gaps.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "tests/support/as_interpreted.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using namespace drawn;  // NOLINT: the test's own words

const char* const kPixels[] = {
    "kernel k(x: T[n, w, N], m: T[N]) -> (y: T[n, w, N]) {\n  y = (x - broadcast<2>(m)) * 2\n}",
    "kernel k(x: T[n, w, N], r: T[n]) -> (y: T[n, w, N]) {\n  y = x * broadcast<0>(r)\n}",
    "kernel k(x: T[n, w, N]) -> (y: T[N, n, w]) {\n  y = transpose<2, 0, 1>(x) + 1\n}",
    "kernel k(x: T[N, n, w]) -> (y: T[n, w, N]) {\n  y = transpose<1, 2, 0>(x) * 2\n}",
    "kernel k(x: T[n, w, N], m: T[N], r: T[w]) -> (y: T[N, n, w], z: T[n, w, N]) {\n"
    "  y = transpose<2, 0, 1>(x) * broadcast<0>(m)\n  z = (x + broadcast<1>(r)) - broadcast<2>(m)\n}",
    "kernel k(x: T[w, N]) -> (y: T[N, w]) {\n  y = x.T\n}",
    "kernel k(x: T[n, N, w]) -> (y: T[n, w, N]) {\n  y = transpose<0, 2, 1>(x)\n}",
};

TEST(Axes, ShortRowsOfPixels) {
  for (const char* text : kPixels)
    for (const int count : {2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16})
      ExpectAsInterpreted(With(With(text, "T[", "f32["), "N", std::to_string(count)), {{2, 37}, {3, 16}}, 0);
}

TEST(Axes, ShortRowsOfOtherDtypes) {
  for (const char* text : kPixels)
    for (const char* type : {"f64", "i32", "i64", "u8", "i8", "f16", "bf16"})
      for (const int count : {2, 3, 13})
        ExpectAsInterpreted(With(With(text, "T[", std::string(type) + "["), "N", std::to_string(count)), {{3, 35}}, 0);
}

// Elements of short rows in another order, or of several.
TEST(Axes, ShortRowsOfOthers) {
  const char* const texts[] = {
      "kernel k(x: T[n, w, N]) -> (y: T[n, w, ?]) {\n  y = slice(x, 2, 1, N)\n}",
      "kernel k(x: T[n, w, N]) -> (y: T[n, w, N]) {\n  y = flip(x, 2) * 2\n}",
      "kernel k(x: T[n, w, N], a: T[n, w, 2]) -> (y: T[n, w, ?]) {\n  y = concat(a, concat(x, a, 2), 2)\n}",
      "kernel k(x: T[n, w, N], m: T[N]) -> (y: T[n, w, N], z: T[n, w, N]) {\n  y = flip(x, 2) - x\n  z = flip(x, 2) * broadcast<2>(m)\n}",
      "kernel k(x: T[n, w, N]) -> (y: T[n, ?, N]) {\n  y = slice(flip(x, 2), 1, 1, extent<1>(x)) + slice(x, 1, 0, extent<1>(x) - 1)\n}",
      "kernel k(x: T[n, w, N]) -> (y: T[n, w, N]) {\n  y = flip(flip(x, 1), 2) + flip(x, 0)\n}",
      "kernel k(x: T[n, w, N]) -> (y: T[n, ?, ?]) {\n  y = pad(x, 1, 2)\n}",
      "kernel k(x: T[n, w, N]) -> (y: T[n, ?, ?]) {\n  y = upsampling_nearest(flip(x, 2), 2)\n}",
      "kernel k(x: T[w, N], i: i64[n]) -> (y: T[n, N]) {\n  y = flip(take(i, x), 1)\n}",
      "kernel k(x: T[n, N]) -> (y: T[n, ?], z: T[N, n]) {\n  y = concat(x, flip(x, 1), 1)\n  z = swapaxis(flip(x, 1), 0, 1)\n}"};
  for (const char* text : texts)
    for (const std::string type : {"f32", "f64", "u8", "i64", "f16"})
      for (const int count : type == "f32" ? std::vector<int>{2, 3, 4, 7, 13, 16} : std::vector<int>{3, 9})
        ExpectAsInterpreted(With(With(text, "T[", type + "["), "N", std::to_string(count)), {{2, 37}, {3, 16}}, 0);
  for (const int count : {2, 4, 14})
    ExpectAsInterpreted(
        With("kernel k(x: f32[n, w, N], z: f32[n, w, N]) -> (y: f32[n, w, N]) {\n  y = conj(complex_mul_cc(x, z))\n}",
             "N", std::to_string(count)),
        {{2, 37}}, 0);
}

// Several known elements of each short row, whose results have no axis for them.
TEST(Axes, KnownPlacesOfShortRows) {
  const char* const texts[] = {
      "kernel k(x: T[n, w, N]) -> (y: T[n, w, 1]) {\n  y = slice(x, 2, 0, 1) * 2 - slice(x, 2, 1, 2)\n}",
      "kernel k(x: T[n, w, N], z: T[n, w], v: T[n]) -> (y: T[n, w]) {\n"
      "  y = reshape(slice(x, 2, 1, 2) - slice(x, 2, 0, 1), n, m) * z + broadcast<0>(v)\n}",
      "kernel k(x: T[n, w, N], z: T[n, w, N]) -> (y: T[n, w], u: T[w]) {\n"
      "  y = reshape(slice(x, 2, 0, 1) * slice(z, 2, 1, 2) - slice(x, 2, 1, 2) * slice(z, 2, 0, 1), n, m)\n"
      "  u = reduce_with_axis<sum>(y, 0)\n}"};
  for (const char* text : texts)
    for (const std::string type : {"f32", "f64", "i32", "u8", "f16"})
      for (const int count : {2, 3, 8}) {
        std::string with = With(With(text, "T[", type + "["), "N", std::to_string(count));
        with = With(with, "n, m)", "extent<0>(x), extent<1>(x))");
        ExpectAsInterpreted(with, {{2, 37}, {3, 16}, {1, 100}}, type == "f16" ? 1e-2 : type[0] == 'f' ? 1e-5 : 0);
      }
}

TEST(Axes, TransposesOfAnyDtype) {
  for (const char* type : {"f32", "f64", "i32", "i64", "u8", "i8", "i16", "f16", "bf16"})
    for (const char* body : {"  y = x.T", "  y = x.T * 2 + x.T"})
      ExpectAsInterpreted(
          With(std::string("kernel k(x: T[n, m]) -> (y: T[m, n]) {\n") + body + "\n}", "T[", std::string(type) + "["),
          {{70, 130}, {33, 7}, {3, 300}, {64, 64}}, 0);
  ExpectAsInterpreted(
      "kernel k(x: u8[n, m], w: f16[n, m], z: f32[m, n]) -> (y: f32[m, n]) {\n  y = tcast<f32>(x.T) * tcast<f32>(w.T) - z\n}",
      {{70, 130}, {33, 17}}, 0);
}

// Axes that are one in memory are one for tiles, too, of as many threads as there are.
TEST(Axes, TransposesOfSeveralAxes) {
  for (const char* body :
       {"(x: f32[a, b, c]) -> (y: f32[b, c, a]) {\n  y = transpose<1, 2, 0>(x)\n}",
        "(x: f32[a, b, c]) -> (y: f32[c, a, b]) {\n  y = transpose<2, 0, 1>(x) * 2\n}",
        "(x: f32[a, b, c], z: f32[b, c, a]) -> (y: f32[b, c, a]) {\n  y = transpose<1, 2, 0>(x) - z\n}",
        "(x: f32[a, b, c], m: f32[b]) -> (y: f32[b, c, a]) {\n  y = transpose<1, 2, 0>(x) * broadcast<0>(m)\n}",
        "(x: f32[a, b, c], m: f32[c]) -> (y: f32[b, c, a]) {\n  y = transpose<1, 2, 0>(x) * broadcast<1>(m)\n}"})
    ExpectAsInterpreted(std::string("kernel k") + body,
                        {{7, 40, 33}, {64, 30, 110}, {33, 1, 200}, {40, 90, 1}, {1, 9, 9}, {5, 0, 3}, {16, 64, 64}}, 0);
  for (
      const char* body :
      {"(x: f32[n, c, h, w]) -> (y: f32[n, h, w, c]) {\n  y = transpose<0, 2, 3, 1>(x)\n}",
       "(x: f32[n, h, w, c], b: f32[c]) -> (y: f32[n, c, h, w]) {\n  y = transpose<0, 3, 1, 2>(x) + broadcast<1>(b)\n}",
       "(x: f32[n, c, h, w]) -> (y: f32[h, w, n, c]) {\n  y = transpose<2, 3, 0, 1>(x)\n}"})
    ExpectAsInterpreted(std::string("kernel k") + body,
                        {{2, 40, 9, 11}, {1, 64, 28, 60}, {3, 5, 1, 70}, {20, 20, 20, 20}}, 0);
}

// What reads a reshape only to reduce what that has joined reads the operand where it lies.
TEST(Axes, ReductionsOfJoinedAxes) {
  const char* const joined[] = {
      "(x: T[n, c, h, w]) -> (y: T[n, c]) {\n  y = reduce_with_axis<maximum>(reshape(x, extent<0>(x), extent<1>(x), extent<2>(x) * extent<3>(x)), 2)\n}",
      "(x: T[n, c, h, w]) -> (y: T[n, c]) {\n  y = reduce_with_axis<sum>(exp(reshape(x, extent<0>(x), extent<1>(x), extent<2>(x) * extent<3>(x)) * 0.5), 2)\n}",
      "(x: T[n, c, h, w]) -> (y: T[n]) {\n  y = reduce_with_axis<sum>(reshape(x, extent<0>(x), extent<1>(x) * extent<2>(x) * extent<3>(x)), 1)\n}",
      "(x: T[n, c, h, w]) -> (y: T[h, w]) {\n  y = reduce_with_axis<sum>(reshape(x, extent<0>(x) * extent<1>(x), extent<2>(x), extent<3>(x)), 0)\n}",
      "(x: T[n, c, h, w]) -> (p: i64[n, c]) {\n  p = reduce_with_axis<argmax>(reshape(x, extent<0>(x), extent<1>(x), extent<2>(x) * extent<3>(x)), 2)\n}",
      "(x: T[n, c, h, w], v: T[n, c]) -> (a: T[n, c], s: T[n, c]) {\n  r = reshape(x, extent<0>(x), extent<1>(x), extent<2>(x) * extent<3>(x)) - broadcast<0, 1>(v, reshape(x, extent<0>(x), extent<1>(x), extent<2>(x) * extent<3>(x)))\n"
      "  a = reduce_with_axis<maximum>(r, 2)\n  s = reduce_with_axis<sum>(r * r, 2)\n}",
      "(x: T[n, c, h, w], z: T[n, c, h, w]) -> (y: T[c]) {\n  r = reshape(x * z, extent<0>(x), extent<1>(x), extent<2>(x) * extent<3>(x))\n  y = sumall_except_dim<1>(r)\n}",
      "(x: T[4, 5, 6, 7]) -> (y: T[4, 5]) {\n  y = reduce_with_axis<minimum>(reshape(x, 4, 5, 42), 2)\n}",
  };
  for (const std::string body : joined) {
    const std::string text = With("kernel k" + body, "T[", "f32[");
    const bool known = body.find("T[4,") != std::string::npos;
    ExpectAsInterpreted(text,
                        known ? std::vector<std::vector<index_t>>{{}}
                              : std::vector<std::vector<index_t>>{{2, 3, 4, 5},
                                                                  {3, 2, 17, 33},
                                                                  {1, 7, 1, 64},
                                                                  {2, 1, 90, 1},
                                                                  {2, 3, 0, 4}},
                        1e-5);
    const Function function = Compile(graph::ParseText(text)[0], {});
    for (const auto& step : function.program().steps)
      for (const runtime::Access& access : std::get<runtime::KernelStep>(step).signature.operands)
        EXPECT_FALSE(access.gathered) << text;
  }
  // What is one loop stays one, in whatever order it is written.
  for (const char* const order : {"  p = reduce_with_axis<sum>(g * h, 1)\n  q = reduce_with_axis<maximum>(g, 1)\n",
                                  "  q = reduce_with_axis<maximum>(g, 1)\n  p = reduce_with_axis<sum>(g * h, 1)\n"}) {
    const std::string text =
        std::string("kernel k(x: f32[n, a, b], u: f32[n, a, b]) -> (p: f32[n], q: f32[n], o: f32[n, ?]) {\n") +
        "  g = reshape(x, extent<0>(x), extent<1>(x) * extent<2>(x))\n  h = reshape(u, extent<0>(x), extent<1>(x) * extent<2>(x))\n" +
        order + "  o = h\n}";
    ExpectAsInterpreted(text, {{3, 4, 20}}, 1e-5);
    EXPECT_EQ(Compile(graph::ParseText(text)[0], {}).program().steps.size(), 1u) << text;
  }
  // Not what else reads, too, nor a part of what was joined.
  for (
      const std::string body :
      {"(x: f32[n, h, w]) -> (y: f32[n, ?]) {\n  r = reshape(x, extent<0>(x), extent<1>(x) * extent<2>(x))\n  y = r / broadcast<0>(reduce_with_axis<sum>(r * r, 1))\n}",
       "(x: f32[n, h, w]) -> (y: f32[n]) {\n  y = reduce_with_axis<sum>(slice(reshape(x, extent<0>(x), extent<1>(x) * extent<2>(x)), 1, 1, extent<2>(x)), 1)\n}",
       "(x: f32[n, h, w], z: f32[n, m]) -> (y: f32[n]) {\n  y = reduce_with_axis<sum>(reshape(x, extent<0>(x), extent<1>(x) * extent<2>(x)) * z, 1)\n}"})
    for (const std::vector<index_t>& extents : {std::vector<index_t>{2, 3, 20}, {5, 33, 1}}) {
      std::vector<index_t> all = extents;
      if (body.find("m]") != std::string::npos) all.push_back(extents[1] * extents[2]);
      ExpectAsInterpreted("kernel k" + body, {all}, 1e-5);
    }
}

// Of an open extent a known part, computed where it is read.
TEST(Axes, KnownPartsOfOpenExtents) {
  for (
      const char* body :
      {"(x: f32[n, m]) -> (y: f32[n, 4]) {\n  y = slice(gelu(x), 1, 1, 5)\n}",
       "(x: f32[n, m]) -> (y: f32[3, m]) {\n  y = slice(exp(x) * 2, 0, 1, 4)\n}",
       "(x: f32[n, m]) -> (y: f32[n]) {\n  y = mat_choose_row_element(exp(x), tcast<i64>(reduce_with_axis<maximum>(x, 1) * 0 + 2))\n}"}) {
    ExpectAsInterpreted(std::string("kernel k") + body, {{5, 5}, {17, 40}, {4, 9}, {300, 33}}, 0);
    const Function function = Compile(graph::ParseText(std::string("kernel k") + body)[0], {});
    for (const runtime::Buffer& buffer : function.program().buffers)
      EXPECT_FALSE(buffer.kind == runtime::Buffer::Kind::kTemporary && buffer.shape.size() == 2) << body;
  }
}

// Windows of an adaptive pool lie where quotients tell: packets go along them, whether extents are known or not.
TEST(Axes, AdaptivePools) {
  for (const char* shape : {"3, 5, 7, 9", "2, 3, 20, 33", "2, 2, 4, 4"})
    for (const char* pool : {"ada_pool<maximum>(x, 2, 4)", "ada_pool<mean>(x, 3, 1)", "ada_pool<sum>(x, 4, 3)"})
      ExpectAsInterpreted(
          std::string("kernel k(x: f32[") + shape + "]) -> (y: f32[?, ?, ?, ?]) {\n  y = " + pool + "\n}", {{}}, 1e-5);
}

// Blocks of a matrix, whose rows do not follow each other: of fewer elements than partial results, and of more.
TEST(Axes, RowsOfBlocks) {
  for (
      const char* body :
      {"(x: f32[64, 96]) -> (y: f32[4, 6]) {\n  y = reduce_with_axis<sum>(reduce_with_axis<sum>(reshape(x, 4, 16, 6, 16), 3), 1)\n}",
       "(x: f32[30, 240]) -> (y: f32[3, 10]) {\n  y = reduce_with_axis<maximum>(reduce_with_axis<maximum>(reshape(x, 3, 10, 10, 24), 3), 1)\n}",
       "(x: f32[30, 330]) -> (y: f32[3, 5]) {\n  b = reshape(x, 3, 10, 5, 66)\n  y = reduce_with_axis<sum>(reduce_with_axis<sum>(exp(b), 3), 1)\n}",
       "(x: f64[20, 100]) -> (y: f64[2, 5]) {\n  b = reshape(x, 2, 10, 5, 20)\n  y = reduce_with_axis<mean>(reduce_with_axis<mean>(b * b, 3), 1)\n}"})
    ExpectAsInterpreted("kernel k" + std::string(body), {{}}, 1e-5);
}

// Axes that both shapes of a reshape begin or end with are those.
TEST(Axes, ReshapesThatKeepAxes) {
  for (
      const char* body :
      {"(x: f32[n, c, h, w]) -> (y: f32[n, c, ?]) {\n  y = reshape(x, extent<0>(x), extent<1>(x), extent<2>(x) * extent<3>(x)) + 1\n}",
       "(x: f32[n, c, h, w]) -> (y: f32[?, w]) {\n  y = reshape(x, extent<0>(x) * extent<1>(x) * extent<2>(x), extent<3>(x)) + 1\n}",
       "(x: f32[n, c, h, w]) -> (y: f32[n, ?, w]) {\n  y = reshape(x, extent<0>(x), extent<1>(x) * extent<2>(x), extent<3>(x)) + 1\n}",
       "(x: f32[n, c, h, w]) -> (y: f32[n, c, h, w]) {\n  y = reshape(x, extent<0>(x), extent<1>(x), extent<2>(x), extent<3>(x)) + 1\n}",
       "(x: f32[n, c, h, w]) -> (y: f32[w, h, c, n]) {\n  y = reshape(x, extent<3>(x), extent<2>(x), extent<1>(x), extent<0>(x)) + 1\n}",
       "(x: f32[n, c]) -> (y: f32[n, 1, c]) {\n  y = reshape(x, extent<0>(x), 1, extent<1>(x)) + 1\n}"})
    ExpectAsInterpreted(std::string("kernel k") + body, {{2, 3, 4, 5}, {3, 3, 3, 3}, {1, 40, 1, 17}, {2, 0, 4, 4}}, 0);
}

TEST(Axes, FewLongRowsThatLieApart) {
  for (
      const char* body :
      {"(x: f32[n, m]) -> (y: f32[n, m]) {\n  y = x * 2 + 1\n}", "(x: f32[m, n]) -> (y: f32[n, m]) {\n  y = x.T\n}",
       "(x: u8[n, m], v: f64[n]) -> (y: i8[n, m], z: f64[n, m]) {\n  y = tcast<i8>(x)\n  z = tcast<f64>(x) * broadcast<0>(v)\n}"})
    ExpectAsInterpreted(std::string("kernel k") + body, {{1, 200003}, {3, 100001}, {3, 262144}}, 0);
}

TEST(Axes, PixelsOfBytesBecomeFloats) {
  for (const int count : {1, 3, 4})
    ExpectAsInterpreted(With("kernel k(x: u8[n, w, N], m: f32[N]) -> (y: f32[N, n, w]) {\n"
                             "  y = tcast<f32>(transpose<2, 0, 1>(x)) * 0.00390625 - broadcast<0>(m)\n}",
                             "N", std::to_string(count)),
                        {{5, 50}, {1, 300}}, 0);
}

// Rows of functions go across packets beyond the length of packets.
TEST(Axes, RowsOfFunctions) {
  for (const int count : {3, 15, 16, 20, 31, 32, 33})
    ExpectAsInterpreted(
        With("kernel k(x: f32[n, w, N], m: f32[N]) -> (y: f32[n, w, N]) {\n  y = exp(x * 0.1) * broadcast<2>(m)\n}",
             "N", std::to_string(count)),
        {{2, 21}}, 1e-6);
}

TEST(Axes, RowsOfSeveralAxes) {
  for (const char* known : {"7, 7]", "h, v]", "3, 40]", "1, 5]"})
    for (const char* body : {"  y = reduce_with_axis<sum>(reduce_with_axis<sum>(x, 3), 2)",
                             "  y = reduce_with_axis<maximum>(reduce_with_axis<maximum>(x * x, 2), 2)",
                             "  y = reduce_with_axis<sum>(reduce_with_axis<maximum>(x, 3), 2)"})
      ExpectAsInterpreted(With("kernel k(x: f32[n, c, KNOWN) -> (y: f32[n, c]) {\n", "KNOWN", known) + body + "\n}",
                          {{3, 5, 7, 7}, {2, 33, 14, 9}}, 1e-5);
  for (const char* body : {"  y = maximum(x * broadcast<1>(m), 0)", "  y = x - broadcast<1>(m) * 2"})
    ExpectAsInterpreted(
        std::string("kernel k(x: f32[n, c, h, v], m: f32[c]) -> (y: f32[n, c, h, v]) {\n") + body + "\n}",
        {{3, 5, 7, 7}, {1, 64, 5, 5}, {2, 1, 30, 30}, {1, 1, 1, 9}}, 0);
  ExpectAsInterpreted("kernel k(x: f32[n, c, h, v]) -> (y: f32[c]) {\n  y = sumall_except_dim<1>(x)\n}",
                      {{3, 5, 7, 7}, {40, 3, 14, 9}}, 1e-4);
  ExpectAsInterpreted("kernel k(x: f32[n, c, 8]) -> (y: f32[n, c]) {\n  y = reduce_with_axis<sum>(x, 2)\n}",
                      {{50, 3}, {1, 200}, {2, 1}}, 1e-5);
}

// What a call brings many of, and short, is known to the program that runs.
const runtime::Program* FasterFor(const Function& function, const std::vector<index_t>& symbols) {
  const auto& for_extents = function.program().for_extents;
  return for_extents ? for_extents(symbols).program.get() : nullptr;
}

TEST(Axes, ManyShortRowsOfAnOpenExtent) {
  const std::string texts[] = {
      "kernel k(x: f32[n, c]) -> (y: f32[n, c]) {\n  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))\n"
      "  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}",
      "kernel k(x: f32[n, c]) -> (y: f32[n]) {\n  y = reduce_with_axis<sum>(x * x, 1)\n}",
      "kernel k(x: f32[n, c], m: f32[c]) -> (y: f32[n, c]) {\n  y = x * broadcast<1>(m)\n}",
      "kernel k(x: f32[n, c]) -> (y: f32[c, n]) {\n  y = x.T\n}",
      "kernel k(x: f32[n, c]) -> (p: i64[n], m: f32[n]) {\n  p = reduce_with_axis<argmax>(x, 1)\n  m = reduce_with_axis<maximum>(x, 1)\n}",
      "kernel k(x: f32[n, c]) -> (y: f32[n, ?]) {\n  y = concat(flip(x, 1), x, 1)\n}",
      "kernel k(x: f32[n, c]) -> (y: f32[n], z: f32[?, ?]) {\n  y = reduce_with_axis<maximum>(x, 1)\n  z = concat(x, x, 1)\n}",
  };
  for (const std::string& text : texts) {
    ExpectAsInterpreted(text, {{5000, 3}, {5000, 10}, {4096, 15}, {5000, 1}, {4095, 7}, {300, 64}, {5000, 33}}, 1e-5);
    const Function function = Compile(graph::ParseText(text)[0], {});
    const runtime::Program* const faster = FasterFor(function, {5000, 10, 20});
    ASSERT_NE(faster, nullptr) << text;
    EXPECT_EQ(faster->buffers[0].shape[1], runtime::Extent::Static(10)) << text;
    EXPECT_EQ(faster, FasterFor(function, {9000, 10, 20})) << text;
    EXPECT_NE(faster, FasterFor(function, {5000, 11, 22})) << text;
    EXPECT_NE(FasterFor(function, {5000, 1, 2}), nullptr) << text;
    EXPECT_EQ(FasterFor(function, {100, 10, 20}), nullptr) << text;
    EXPECT_EQ(FasterFor(function, {5000, 100, 200}), nullptr) << text;
  }
  // One for each length, but not without end.
  const Function function = Compile(graph::ParseText(texts[1])[0], {});
  int programs = 0;
  for (index_t columns = 1; columns <= 64; ++columns)
    programs += FasterFor(function, {5000, columns}) != nullptr ? 1 : 0;
  EXPECT_EQ(programs, 32);
}

// Columns of one element, as channels of pictures that were pooled to a point have them, are rows: known when
// compiling, or at the call. Elements of such rows lie apart where the operand is part of a wider one.
TEST(Axes, ColumnsOfOneElement) {
  const std::string softmax =
      "  e = exp(x - broadcast_with_axis(reduce_with_axis<maximum>(x, 1), 0, extent<1>(x)))\n"
      "  y = e / broadcast_with_axis(reduce_with_axis<sum>(e, 1), 0, extent<1>(x))\n}";
  const std::string texts[] = {
      "kernel k(x: f32[n, c, H]) -> (y: f32[n, c, H]) {\n" + softmax,
      "kernel k(x: f32[n, c, H, W]) -> (y: f32[n, c, H, W]) {\n" + softmax,
      "kernel k(x: f32[n, c, H]) -> (y: f32[n, H], p: i64[n, H]) {\n  y = reduce_with_axis<sum>(x * x, 1)\n  p = reduce_with_axis<argmax>(x, 1)\n}",
      "kernel k(x: f32[n, c, H], b: f32[c]) -> (y: f32[n, H], z: f32[n, H]) {\n  y = reduce_with_axis<sum>(x * flip(x, 1), 1)\n"
      "  z = reduce_with_axis<maximum>(x - broadcast<1>(b, x), 1)\n}",
      "kernel k(x: f16[n, c, H]) -> (y: f16[n, c, H]) {\n  t = tcast<f32>(x)\n  y = tcast<f16>(t - broadcast_with_axis(reduce_with_axis<sum>(t, 1), 0, extent<1>(x)))\n}",
      "kernel k(x: f32[c, H]) -> (y: f32[H]) {\n  y = reduce_with_axis<sum>(x, 0)\n}",
  };
  for (const std::string& text : texts) {
    const bool one = text.find("f32[c, H]") != std::string::npos, pictures = text.find('W') != std::string::npos;
    const auto extents = [&](std::vector<index_t> of, bool open) {
      if (one) of.erase(of.begin());
      for (int k = 0; open && k < (pictures ? 2 : 1); ++k) of.push_back(1);
      return of;
    };
    const double tolerance = text.find("f16") != std::string::npos ? 2e-3 : 1e-5;
    ExpectAsInterpreted(
        With(With(text, "H", "1"), "W", "1"),
        {extents({5, 37}, false), extents({1, 1}, false), extents({70, 64}, false), extents({3, 3000}, false)},
        tolerance);
    ExpectAsInterpreted(With(With(text, "H", "h"), "W", "w"),
                        {extents({5, 37}, true), extents({70, 64}, true), extents({2, 5000}, true)}, tolerance);
  }
  const Function function = Compile(graph::ParseText(With(texts[0], "H", "h"))[0], {});
  const runtime::Program* const faster = FasterFor(function, {70, 64, 1});
  ASSERT_NE(faster, nullptr);
  EXPECT_EQ(faster->buffers[0].shape[2], runtime::Extent::Static(1));
  EXPECT_EQ(FasterFor(function, {70, 64, 2}), nullptr);
  EXPECT_EQ(faster->steps.size(), 1u);
  const auto& kernel = std::get<runtime::KernelStep>(faster->steps[0]).signature;
  EXPECT_EQ(kernel.axes.size(), 2u);
  EXPECT_EQ(kernel.vector_axis, 1) << "along what is reduced";
}

// What may be written over an operand follows from the steps: a program for known extents that has others runs only
// where its own allow it.
TEST(Axes, ManyShortRowsInPlace) {
  const std::string texts[] = {
      "kernel i(x: f32[n, c, c]) -> (y: f32[n, c, c]) {\n  t = x / broadcast<0, 1>(reduce_with_axis<sum>(exp(x), 2))\n  y = batch_dot(t, t)\n}",
      "kernel i(x: f32[n, c, c]) -> (y: f32[n, c, c]) {\n  e = exp(x)\n  y = e / broadcast<0, 1>(reduce_with_axis<sum>(e, 2))\n}",
  };
  for (const std::string& text : texts)
    for (const auto target : codegen::kAllTargets) {
      if (!HostRuns(target)) continue;
      CompileOptions options;
      options.target = std::string(codegen::Name(target));
      const Function function = Compile(graph::ParseText(text)[0], options);
      for (const index_t columns : {3, 8, 10, 12}) {
        const Call apart(function.program(), {5000, columns}, 0);
        function(apart.arguments, {1});
        EXPECT_NE(FasterFor(function, {5000, columns}), nullptr);
        for (const bool at_once : {false, true}) {
          Call over(function.program(), {5000, columns}, 0);
          over.arguments.outputs[0] = over.arguments.inputs[0];
          if (at_once) runtime::Run(function.program(), over.arguments, {1});
          else function(over.arguments, {1});
          ExpectSame(*apart.outputs[0], *over.tensors[0], 1e-5,
                     text + "\n" + options.target + ", " + std::to_string(columns));
        }
      }
    }
}

// What gathers along memory is turned by tiles, not read across it.
TEST(Axes, TransposesOfWhatGathers) {
  const auto kernels_of = [](const std::string& text) {
    return Compile(graph::ParseText(text)[0], {}).program().steps.size();
  };
  for (const std::string value :
       {"flip(x, 1)", "flip(x, 0) * 2", "slice(x, 1, 2, extent<1>(x))", "pad(x, 1, 2)", "concat(x, flip(x, 0), 0)",
        "take(tcast<i64>(reduce_with_axis<maximum>(x, 1) * 0), x)", "flip(x, 1) + x"}) {
    const std::string text = "kernel k(x: f32[n, m]) -> (y: f32[?, ?]) {\n  y = (" + value + ").T\n}";
    ExpectAsInterpreted(text, {{70, 130}, {33, 7}, {1, 300}, {64, 64}}, 0);
    EXPECT_GE(kernels_of(text), 2U) << text;
    EXPECT_GE(kernels_of(With(text, "n, m]", "170, 130]")), 2U) << text;
  }
  EXPECT_EQ(kernels_of("kernel k(x: f32[n, m]) -> (y: f32[m, n]) {\n  y = x.T * 2\n}"), 1U);
  EXPECT_EQ(kernels_of("kernel k(x: f32[100, m]) -> (y: f32[m, 100]) {\n  y = flip(x, 1).T\n}"), 1U)
      << "few lines stay in the first cache";
  EXPECT_EQ(
      kernels_of("kernel k(x: f32[n, m], v: f32[m]) -> (y: f32[m, n]) {\n  y = broadcast<1>(flip(v, 0), x).T * 2\n}"),
      1U)
      << "one of a row";
  std::string many = "flip(x, 1).T";
  for (int k = 0; k < 8; ++k) many += " + flip(x * " + std::to_string(k) + ", 1).T";
  EXPECT_EQ(kernels_of("kernel k(x: f32[n, m]) -> (y: f32[m, n]) {\n  y = " + many + "\n}"), 1U)
      << "more temporaries than they are worth";
  EXPECT_EQ(
      kernels_of("kernel k(x: f32[n, h, w, 3]) -> (y: f32[?, ?, ?, ?]) {\n  y = transpose<0, 3, 1, 2>(flip(x, 2))\n}"),
      1U)
      << "pixels";
  for (const char* value :
       {"transpose<0, 2, 1>(flip(x, 2))", "transpose<1, 0, 2>(flip(x, 2))", "transpose<2, 1, 0>(flip(x, 1)) * 2"})
    ExpectAsInterpreted(std::string("kernel k(x: f32[a, b, c]) -> (y: f32[?, ?, ?]) {\n  y = ") + value + "\n}",
                        {{5, 40, 70}, {40, 3, 50}}, 0);
  EXPECT_EQ(kernels_of("kernel k(x: f32[a, b, c]) -> (y: f32[?, ?, ?]) {\n  y = transpose<1, 0, 2>(flip(x, 2))\n}"), 1U)
      << "along memory in either order";
}

// What is planned of many transposes takes no longer than they are many.
TEST(Axes, ManyTransposesOfEachOther) {
  std::string text = "kernel k(x: f32[n, n, n, n]) -> (y: f32[?, ?, ?, ?]) {\n  t0 = flip(x, 3) + x\n";
  for (int k = 1; k <= 300; ++k) {
    const std::string before = "t" + std::to_string(k - 1);
    text += "  t" + std::to_string(k) + " = transpose<1, 2, 3, 0>(" + before + ") + transpose<1, 0, 2, 3>(" + before +
            ") * " + before + "\n";
  }
  EXPECT_FALSE(Lower(*graph::ParseText(text + "  y = t300\n}")[0]).steps.empty());
}

// A window that is all of the picture reads it as it lies.
TEST(Axes, WindowsOfWholePictures) {
  for (const char* body :
       {"pool<maximum>(x, 7, 5, 1, 1)", "pool<sum>(x, 7, 5, 2, 3)", "pool<mean>(x * 2, 7, 5, 1, 1)"}) {
    const std::string text =
        std::string("kernel k(x: f32[n, c, h, v]) -> (y: f32[n, c, ?, ?]) {\n  y = ") + body + "\n}";
    ExpectAsInterpreted(text, {{70, 70, 7, 5}, {3, 7, 7, 5}, {70, 70, 7, 6}, {70, 70, 8, 5}}, 1e-5);
    ExpectAsInterpreted(With(text, "h, v]", "7, 5]"), {{3, 50}}, 1e-5);
    const Function function = Compile(graph::ParseText(text)[0], {});
    const runtime::Program* const faster = FasterFor(function, WithDerived(function.program(), {70, 70, 7, 5}));
    ASSERT_NE(faster, nullptr) << text;
    EXPECT_FALSE(std::get<runtime::KernelStep>(faster->steps[0]).signature.positional) << text;
    EXPECT_EQ(FasterFor(function, WithDerived(function.program(), {70, 70, 14, 14})), nullptr) << text;
  }
}

TEST(Axes, ManyShortRowsInTheBackground) {
  CompileOptions options;
  options.background = true;
  const Function function = Compile(
      graph::ParseText("kernel background(x: f32[n, c]) -> (y: f32[n]) {\n  y = reduce_with_axis<sum>(x, 1) + 3\n}")[0],
      options);
  function.Wait();
  const Call call(function.program(), {5000, 6}, 0);
  for (int k = 0; k < 3; ++k) function(call.arguments);  // whoever serves them
  while (function.program().for_extents({5000, 6}).pending) std::this_thread::yield();
  EXPECT_NE(FasterFor(function, {5000, 6}), nullptr);
  const Call expected(function.program(), {5000, 6}, 0);
  CompileOptions interpreter;
  interpreter.engine = Engine::kInterpreter;
  Compile(
      graph::ParseText("kernel background(x: f32[n, c]) -> (y: f32[n]) {\n  y = reduce_with_axis<sum>(x, 1) + 3\n}")[0],
      interpreter)(expected.arguments);
  function(call.arguments);
  ExpectSame(*expected.outputs[0], *call.outputs[0], 1e-5, "in the background");
}

// What an axis without an index divides is read nowhere.
TEST(Axes, OfNoIndex) {
  ExpectAsInterpreted(
      "kernel k(x: f32[3, 0]) -> (y: f32[?], z: f32[?, ?]) {\n  z = upsampling_nearest(flip(x, 0), 2) + 1\n"
      "  y = reduce_with_axis<sum>(z, 1)\n}",
      {{}}, 0);
  ExpectAsInterpreted(
      "kernel k(x: f32[n, 2]) -> (y: f32[?]) {\n"
      "  y = reduce_with_axis<sum>(upsampling_nearest(slice(flip(x, 0), 1, 2, 2), 2), 1)\n}",
      {{3}}, 0);
}

}  // namespace
}  // namespace umbra

// Rows of a known, small number of elements, which packets go across, and those that are just long enough not to: the
// same bits by every dialect, of which plain has no packets, and about what the interpreter finds, however operands
// lie.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/target.h"
#include "tests/support/as_interpreted.h"
#include "tests/support/every_target.h"
#include "tests/support/expect_each.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using namespace drawn;  // NOLINT: the test's own words

const char* const kTexts[] = {
    // What is dear is kept for the next phase.
    "kernel k(x: T[?, N], v: T[?]) -> (y: T[?, N], s: T[?]) {\n  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))\n"
    "  s = reduce_with_axis<sum>(e, 1) + v\n  y = e / broadcast<0>(s)\n}",
    "kernel k(x: T[?, N], v: T[?]) -> (y: T[?, N], s: T[?]) {\n  s = reduce_with_axis<sum>(x, 1) * v\n  c = x - broadcast<0>(s)\n"
    "  y = select(c > 0, c * broadcast<0>(rsqrt(reduce_with_axis<sum>(c * c, 1) + 1)), tanh(x))\n}",
};

std::string Typed(std::string text, DType type, index_t columns) {
  const auto replace = [&](const std::string& word, const std::string& by) {
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word)) text.replace(at, word.size(), by);
  };
  replace("T[", std::string(Name(type)) + "[");
  replace("N]", std::to_string(columns) + "]");
  return text;
}

enum class Layout { kDense, kPadded, kTurned };  // rows one after the other, apart, or elements of a row apart

struct Operands {
  Operands(DType type, index_t rows, index_t columns, Layout layout)
      : random(static_cast<unsigned>(rows * 100 + columns)),
        x(type, layout == Layout::kTurned ? std::vector<index_t>{columns, rows} : std::vector<index_t>{rows, columns},
          layout == Layout::kPadded ? 3 : 0, &random),
        v(type, {rows}, 0, &random) {
    if (layout != Layout::kTurned) return;
    std::swap(x.ref.shape[0], x.ref.shape[1]);
    std::swap(x.ref.stride[0], x.ref.stride[1]);
  }

  std::mt19937 random;
  Tensor x, v;
};

struct Results {
  Results(DType type, index_t rows, index_t columns, index_t padding)
      : y(type, {rows, columns}, padding, nullptr),
        s(type, {rows}, 0, nullptr) {}
  Tensor y, s;
};

void Call(const Function& function, const Operands& in, Results* out) {
  function(runtime::Arguments{{in.x.ref, in.v.ref}, {out->y.ref, out->s.ref}, {}}, {2});
}

// Is what lies between rows as it was?
bool IsWhole(const Tensor& y, index_t padding) {
  bool whole = true;
  const auto size = static_cast<index_t>(SizeOf(y.dtype)), columns = y.ref.shape[1];
  for (index_t row = 0; row < y.ref.shape[0]; ++row) {
    const char* end = static_cast<const char*>(y.ref.data) + (row * y.ref.stride[0] + columns) * size;
    for (index_t k = 0; k < padding * size; ++k) whole = whole && end[k] == 0x5a;
  }
  return whole;
}

void ExpectAlike(const char* text, DType type, index_t columns, const std::vector<index_t>& numbers_of_rows) {
  const auto graph = graph::ParseText(Typed(text, type, columns))[0];
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  const Function interpreted = Compile(graph, options);
  options.engine = Engine::kJit;
  std::vector<Function> compiled;
  for (const auto target : codegen::kAllTargets) {
    if (!HostRuns(target)) continue;
    options.target = std::string(codegen::Name(target));
    compiled.push_back(Compile(graph, options));
  }
  for (const index_t rows : numbers_of_rows)
    for (const Layout layout : {Layout::kDense, Layout::kPadded, Layout::kTurned}) {
      const Operands operands(type, rows, columns, layout);
      const index_t padding = layout == Layout::kPadded ? 5 : 0;
      Results expected(type, rows, columns, padding);
      Call(interpreted, operands, &expected);
      std::unique_ptr<Results> first;
      for (const Function& function : compiled) {
        auto got = std::make_unique<Results>(type, rows, columns, padding);
        Call(function, operands, got.get());
        EXPECT_TRUE(IsWhole(got->y, padding));
        const std::string what = Typed(text, type, columns) + "\n" + std::to_string(rows) + " rows, layout " +
                                 std::to_string(static_cast<int>(layout));
        ExpectSame(expected.y, got->y, IsHalf(type) ? 2e-2 : 1e-4, what);
        if (first != nullptr) EXPECT_TRUE(SameBits(first->y, got->y) && SameBits(first->s, got->s)) << what;
        else first = std::move(got);
      }
    }
}

TEST(ShortRows, OfAnyNumberOfElements) {
  for (const char* text : kTexts)
    for (index_t columns = 1; columns <= 18; ++columns)
      ExpectAlike(text, DType::kFloat32, columns, {1, 7, 16, 33, 100});
}

TEST(ShortRows, OfOtherNumbers) {
  for (const char* text : kTexts)
    for (const DType type : {DType::kFloat64, DType::kFloat16, DType::kBFloat16})
      for (const index_t columns : {2, 3, 4, 7, 8, 9, 15}) ExpectAlike(text, type, columns, {1, 8, 19, 64});
}

TEST(ShortRows, LongerOnesGoAlongPackets) {
  for (const char* text : kTexts)
    for (const index_t columns : {16, 20, 32, 33, 64}) ExpectAlike(text, DType::kFloat32, columns, {1, 7, 40});
}

// The destination is the operand, whose rows are brought together before any is written.
TEST(ShortRows, InPlace) {
  for (const index_t columns : {2, 4, 5, 8, 10, 12, 15})
    for (const auto target : codegen::kAllTargets) {
      if (!HostRuns(target)) continue;
      CompileOptions options;
      options.target = std::string(codegen::Name(target));
      const Function function = Compile(graph::ParseText(Typed(kTexts[0], DType::kFloat32, columns))[0], options);
      Operands operands(DType::kFloat32, 53, columns, Layout::kDense);
      Results expected(DType::kFloat32, 53, columns, 0), got(DType::kFloat32, 53, columns, 0);
      Call(function, operands, &expected);
      function(runtime::Arguments{{operands.x.ref, operands.v.ref}, {operands.x.ref, got.s.ref}, {}}, {2});
      EXPECT_TRUE(SameBits(expected.y, operands.x)) << options.target << ", " << columns;
    }
}

// Rows of several axes, of operands with and without gaps, beside positions, others of their elements' order and
// numbers of a row.
TEST(ShortRows, OfSeveralAxes) {
  const std::string softmax =
      "  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(reduce_with_axis<maximum>(x, 2), 1)))\n"
      "  y = e / broadcast<0>(reduce_with_axis<sum>(reduce_with_axis<sum>(e, 2), 1))\n";
  for (const char* type : {"f32", "f64", "f16"})
    for (const std::string& text :
         {"kernel k(x: F[n, 4, 5]) -> (y: F[n, 4, 5]) {\n" + softmax + "}",
          "kernel k(x: F[n, 3, 3], z: F[3, 3, n]) -> (y: F[n, 3, 3], s: F[n]) {\n" + softmax +
              "  s = reduce_with_axis<sum>(reduce_with_axis<sum>(y * transpose<2, 0, 1>(z), 2), 1)\n}"})
      drawn::ExpectAsInterpreted(drawn::With(text, "F", type), {{1}, {16}, {37}}, type[1] == '1' ? 2e-3 : 1e-5);
  drawn::ExpectAsInterpreted(
      "kernel k(x: f32[n, 4, 4]) -> (y: f32[n, 4, 4], r: f32[n], c: f32[n]) {\n" + softmax +
          "  r = reduce_with_axis<sum>(reduce_with_axis<sum>(y * broadcast<1>(steps(4, 1), y), 2), 1)\n"
          "  c = reduce_with_axis<sum>(reduce_with_axis<sum>(y * broadcast<2>(steps(4, 1), y), 2), 1)\n}",
      {{1}, {33}}, 1e-5);
  drawn::ExpectAsInterpreted(
      "kernel k(x: f32[2, n, 2], t: f32[2, n, 1]) -> (y: f32[n]) {\n"
      "  y = reduce_with_axis<sum>(reduce_with_axis<sum>(x - broadcast_keepdim(t, 2, 2), 0), 1)\n}",
      {{1}, {50}}, 1e-5);
  drawn::ExpectAsInterpreted(
      "kernel k(x: f32[m, n, 2, 3, 2], v: f32[2, 3, 2]) -> (y: f32[m, n], z: f32[m, n, 2, 3, 2]) {\n"
      "  w = x * broadcast_with_axis(broadcast_with_axis(v, -1, extent<1>(x)), -1, extent<0>(x))\n"
      "  y = reduce_with_axis<sum>(reduce_with_axis<sum>(reduce_with_axis<sum>(w, 4), 3), 2)\n"
      "  z = tanh(w - broadcast<0, 1>(y, x))\n}",
      {{1, 1}, {3, 40}, {70, 5}}, 1e-4);
}

// Axes that operands have in other orders, elsewhere, or not at all, of known and of open extents, where packets are
// whole and where they are not.
TEST(ShortRows, OfAxesInOtherOrders) {
  for (
      const char* text :
      {"kernel k(x: T[b, n, 2, 3], z: T[b, n, 3, 2]) -> (y: T[b, n, 3, 2]) { y = swapaxis(x, 2, 3) - z }",
       "kernel k(x: T[b, n, 4, 4], s: T[4], v: T[b, n]) -> (y: T[b, n, 4, 4], z: T[b, n, 4, 4]) {\n"
       "  y = (x + swapaxis(x, 2, 3)) * broadcast<2>(s)\n  z = swapaxis(y, 2, 3) - broadcast<0, 1>(v)\n}",
       "kernel k(x: T[b, n, 2, 5, 2]) -> (y: T[b, n, 5, 2, 2]) { y = permute(x, 0, 1, 3, 2, 4) * 3 }",
       "kernel k(x: T[b, n, 2, 5, 2], z: T[2, 2, b, n, 5]) -> (y: T[b, 2, n, 5, 2]) {\n"
       "  y = permute(x, 0, 2, 1, 3, 4) - permute(z, 2, 0, 3, 4, 1)\n}",
       "kernel k(x: T[b, n, 3, 3]) -> (y: T[3, 3, b, n]) { y = permute(x, 3, 2, 0, 1) * 3 }",
       "kernel k(x: T[8, 7, b, n]) -> (y: T[b, n, 7, 8]) { y = permute(x, 2, 3, 1, 0) * 3 }",
       "kernel k(x: T[b, n, 1, 6, 1, 2, 5]) -> (y: T[6, 1, 2, b, n, 5, 1]) { y = permute(x, 3, 2, 5, 0, 1, 6, 4) * 3 }",
       "kernel k(x: T[2, b, n, 1]) -> (y: T[b, n, 1, 2]) { y = permute(x, 1, 2, 3, 0) * 3 }",
       "kernel k(x: T[n, b, p, q]) -> (y: T[n, q, p, b]) { y = permute(x, 0, 3, 2, 1) * 3 }"})
    for (const char* type : {"f32", "f64", "f16", "u8"}) {
      const bool open = std::string(text).find("p, q") != std::string::npos;
      std::vector<std::vector<index_t>> extents = {{1, 1}, {3, 40}, {70, 5}, {2, 16}};
      if (open) extents = {{1, 1, 1, 1}, {3000, 3, 2, 4}, {900, 20, 4, 4}, {40, 5, 20, 30}};
      drawn::ExpectAsInterpreted(drawn::With(text, "T", type), extents, 0);
    }
}

// Kernels that take elements from rows of others: turned, twice, from rows of none, and columns of windows by steps.
TEST(ShortRows, OfOthers) {
  for (const char* text :
       {"kernel k(x: f32[100, 6], z: f32[100, 6]) -> (y: f32[6, 100]) { y = (z + flip(x, 1)).T }",
        "kernel k(x: f32[100, 3], z: f32[100, 6]) -> (y: f32[6, 100]) { y = swapaxis(complex_mul_rc(x, z), 1, 0) }",
        "kernel k(x: f32[9, 3, 20], z: f32[9, 3, 20]) -> (y: f32[9, 20, 3]) { y = swapaxis(flip(x, 2) - z, 2, 1) }",
        "kernel k(x: f32[40, 4]) -> (y: f32[40, 4]) { y = complex_exchange(complex_exchange(x)) }",
        "kernel k(x: f32[99, 4, 4]) -> (y: f32[99, 4, 4]) { y = flip(permute(x, 0, 2, 1), 1) }",
        "kernel k(x: f32[3, 30, 4, 4]) -> (y: f32[3, 30, 4, 4]) { y = flip(x, 2) - flip(x, 3) }",
        "kernel k(x: f32[99, 4, 4]) -> (y: f32[99, 4, 8]) { y = concat(x, permute(x, 0, 2, 1), 2) }",
        "kernel k(a: f32[100, 3], b: f32[100, 0]) -> (y: f32[100, 3]) { y = concat(a, b, 1) }",
        "kernel k(x: f32[4, 1, 1, 9]) -> (y: f32[3, 20]) { y = unpack_patch2col(pad(x * 2, 0, 1), 1, 3, 1, 2, 1, 1) }",
        "kernel k(x: f32[3, 2, 7, 11]) -> (y: f32[12, 96]) { y = unpack_patch2col(pad(x, 1, 1), 2, 3, 1, 3, 1, 1) }"}) {
    SCOPED_TRACE(text);
    ExpectSameBitsOnEveryTarget(graph::ParseText(text)[0], 1);
  }
}

// Pixels of colours that are stored at a lower resolution, each for several pixels of a line.
TEST(ShortRows, OfRepeatedElements) {
  const std::string text =
      "kernel k(u: T[p, q], v: T[p, q]) -> (o: T[h, w, 3]) {\n"
      "  a = upsampling_nearest(u, S) b = upsampling_nearest(v, S)\n"
      "  r = reshape(a + 2 * b, extent<0>(u) * S, extent<1>(u) * S, 1)\n"
      "  g = reshape(b - 3, extent<0>(u) * S, extent<1>(u) * S, 1)\n"
      "  o = concat(r, g, r * 3 - g, 2)\n}";
  for (const char* times : {"2", "3", "7", "16", "17"})
    for (const char* type : {"f32", "u8", "i64"})
      ExpectAsInterpreted(With(With(text, "S", times), "T", type), {{1, 1}, {2, 9}}, 0);
  ExpectAsInterpreted(With(With(text, "S", "2"), "T", "f16"), {{1, 3001}}, 0);
}

// Elements a few apart, of which each pixel of a line takes the next one.
TEST(ShortRows, OfElementsApart) {
  const std::string bayer =
      "kernel k(x: T[h, w]) -> (y: T[?, ?, 3]) {\n  r = slice_ex(x, 0, 0, h, w, 2, 2)\n"
      "  g = slice_ex(x, 0, 1, h, w, 2, 2) + slice_ex(x, 1, 0, h, w, 2, 2)\n  b = slice_ex(x, 1, 1, h, w, 2, 2)\n"
      "  y = tcast<T>(concat(reshape(r, h / 2, w / 2, 1), reshape(g, h / 2, w / 2, 1), reshape(b, h / 2, w / 2, 1), 2))\n}";
  for (const char* type : {"f32", "u8", "i16", "f64"})
    ExpectAsInterpreted(With(bayer, "T", type), {{4, 2}, {6, 72}}, 0);
  const std::string resampled =
      "kernel k(x: f32[n, 97]) -> (y: f32[n, 144]) {\n  p = reshape(slice(x, 1, 0, 96), n, 48, 2)\n"
      "  q = reshape(slice(x, 1, 1, 97), n, 48, 2)\n  e = slice(p, 2, 0, 1)\n  o = slice(p, 2, 1, 2)\n"
      "  y = reshape(concat(e, e * 0.25 + o * 0.75, slice(q, 2, 1, 2) - e, 2), n, 144)\n}";
  ExpectAsInterpreted(resampled, {{3}}, 0);
  const std::string nv12 =
      "kernel k(l: T[4, 2 * W], c: T[2, W, 2]) -> (y: T[4, 2 * W, 3]) {\n"
      "  u = upsampling_nearest(reshape(slice(c, 2, 0, 1), 2, W), 2)\n"
      "  v = upsampling_nearest(reshape(slice(c, 2, 1, 2), 2, W), 2)\n"
      "  y = tcast<T>(concat(reshape(u + l, 4, 2 * W, 1), reshape(l - v, 4, 2 * W, 1), reshape(v, 4, 2 * W, 1), 2))\n}";
  for (const char* type : {"f32", "u8"})
    for (const int width : {3, 17}) {
      const std::string text = With(With(nv12, "2 * W", std::to_string(2 * width)), "W", std::to_string(width));
      ExpectAsInterpreted(With(text, "T", type), {{}}, 0);
    }
}

// What many tensors are joined to, along any axis: each element is its own tensor's.
TEST(ShortRows, JoinedOfMany) {
  constexpr index_t kRows = 37, kColumns = 21;
  std::mt19937 random(5);
  const Tensor x(DType::kFloat32, {kRows, kColumns}, 0, &random);
  for (const int parts : {2, 5, 9, 17, 40})
    for (const char* const shape : {"[n, m]", "[1, n, m]", "[n, 1, m]", "[n, m, 1]"})
      for (const int axis : {0, 1, 2}) {
        const bool flat = std::string(shape) == "[n, m]";
        const std::string extents[] = {"1, extent<0>(x), extent<1>(x)", "extent<0>(x), 1, extent<1>(x)",
                                       "extent<0>(x), extent<1>(x), 1"};
        if (axis == 2 && flat) continue;
        if (!flat && shape[1 + 3 * axis] != '1') continue;
        std::string joined;
        for (int k = 0; k < parts; ++k) joined += detail::Concat(k + 1, k % 3 == 1 ? " * -z, " : " * z, ");
        const std::string text =
            detail::Concat("kernel k(x: f32[n, m]) -> (y: f32[", flat ? "p, q" : "p, q, r",
                           "]) {\n  z = ", flat ? "x * 2" : "reshape(x * 2, " + extents[axis] + ")", "\n  y = concat(",
                           joined, axis, ")\n}");
        SCOPED_TRACE(text);
        for (const auto target : codegen::kAllTargets) {
          if (!HostRuns(target)) continue;
          CompileOptions options;
          options.target = std::string(codegen::Name(target));
          const Function function = Compile(graph::ParseText(text)[0], options);
          Tensor y(DType::kFloat32, runtime::OutputShapes(function.program(), {x.ref})[0], 0, nullptr);
          function({{x.ref}, {y.ref}, {}});
          for (int k = 0; k < parts; ++k)
            for (index_t i = 0; i < kRows; ++i)
              for (index_t j = 0; j < kColumns; ++j) {
                const index_t row = flat && axis == 0 ? k * kRows + i : i,
                              column = flat && axis == 1 ? k * kColumns + j : j;
                std::vector<index_t> at{row, column};
                if (!flat) at.insert(at.begin() + axis, k);
                ASSERT_EQ(y.At(at), static_cast<float>((k % 3 == 1 ? -1 : 1) * (k + 1) * 2 * x.At({i, j})))
                    << options.target;
              }
        }
      }
}

// Of rows that memory tells, each place is a packet: corners of triangles, turned and joined.
TEST(ShortRows, OfRowsByIndex) {
  const auto at = [](const Tensor& x, index_t i, index_t k) {
    const double place = std::trunc(static_cast<double>(static_cast<float>(x.At({i, 0})) * 10));
    return x.At({static_cast<index_t>(std::clamp(place, 0.0, 44.0)), k % 3});
  };
  ExpectEach(
      "kernel k(x: f32[n, 3]) -> (y: f32[n, 3]) {\n  i = tcast<i32>(reshape(slice(x, 1, 0, 1), n) * 10)\n"
      "  r = take(i, x)\n  y = concat(slice(r, 1, 1, 3), slice(r, 1, 0, 1), 1) * x - r\n}",
      {45, 3}, {45, 3},
      [at](const Tensor& x, const std::vector<index_t>& to) {
        return at(x, to[0], to[1] + 1) * x.At(to) - at(x, to[0], to[1]);
      },
      1e-5);
}

// What several of the columns that are joined are made of, in one phase and where another keeps what it needs.
TEST(ShortRows, JoinedOfWhatTheyShare) {
  const std::string shared =
      "kernel k(v: f32[n, 3], t: i64[f, 2], w: f32[f, 1]) -> (y: f32[f, 4]) {\n"
      "  a = take(reshape(slice(t, 1, 0, 1), f), v)\n  b = take(reshape(slice(t, 1, 1, 2), f), v) - a\n"
      "  p = slice(b, 1, 0, 1)\n  q = sin(slice(a, 1, 1, 2)) * p\n";
  for (const char* const lines : {"  y = concat(p * w, q, w, q - p, 1)\n}",
                                  "  s = concat(p * w, q, w, q - p, 1)\n"
                                  "  y = s - broadcast<0>(reduce_with_axis<maximum>(s, 1))\n}"})
    drawn::ExpectAsInterpreted(shared + lines, {{9, 1}, {9, 16}, {20, 53}}, 1e-5);
}

// Most places of rows that are longer than a few.
TEST(ShortRows, OfKnownPlaces) {
  std::string minors = "  y = ";
  for (int k = 0; k < 3; ++k) {
    const auto at = [](int row, int column) { return detail::Concat("x", row * 3 + column % 3); };
    minors += detail::Concat(k > 0 ? " + " : "", at(0, k), " * (", at(1, k + 1), " * ", at(2, k + 2), " - ",
                             at(1, k + 2), " * ", at(2, k + 1), ")");
  }
  for (const bool square : {false, true}) {
    std::string text =
        square ? "kernel k(x: f32[n, 3, 3]) -> (y: f32[n]) {\n" : "kernel k(x: f32[n, 9]) -> (y: f32[n]) {\n";
    for (int k = 0; k < 9; ++k)
      text += detail::Concat("  x", k, " = reshape(slice(", square ? "reshape(x, n, 9)" : "x", ", 1, ", k, ", ", k + 1,
                             "), n)\n");
    drawn::ExpectAsInterpreted(text + minors + "\n}", {{1}, {16}, {53}}, 1e-5);
  }
}

}  // namespace
}  // namespace umbra

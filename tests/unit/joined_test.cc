// Kernels over what reshapes divide and join, and over what index maps put together: rows that choose, parts of others,
// groups, small matrices. Every dialect beside the interpreter, on operands with and without gaps.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/as_interpreted.h"

namespace umbra {
namespace {

using namespace drawn;  // NOLINT: the test's own words

// Each outcome of what is the same for a row has a loop of its own, unless they are many.
TEST(Joined, RowsThatChoose) {
  for (
      const char* body : {
          "concat(exp(x), x * 2, flip(x, 1), 1)",
          "select(broadcast<1>(steps<i64>(extent<1>(x), 1), x) < 3, x * x, select(broadcast<0>(f, x) >= 0, x + 1, -x))",
          "select(broadcast<0>(f, x) > 0 && broadcast<1>(steps<i64>(extent<1>(x), 1), x) != 2, x, pad(x, 0, 0) / 2)",
          "concat(concat(x, x + 1, 1), concat(pad(x, 1, 0), x * 3, x * 5, 1), concat(x, -x, x / 7, x - 2, 1), 1)",
      })
    ExpectAsInterpreted(
        std::string("kernel k(x: f32[n, c, m], f: i64[n]) -> (y: f32[n, ?, m]) {\n  y = ") + body + "\n}",
        {{4, 5, 37}, {3, 1, 16}, {2, 7, 130}}, 0);
}

// Columns of a matrix that all rows take, and rows of a table.
TEST(Joined, ColumnsAndRowsOfOthers) {
  const std::string columns =
      "kernel k(a: f32[n, 3], b: f32[m, 3]) -> (y: f32[n, m]) {\n"
      "  u = reshape(slice(a, 1, 2, 3), extent<0>(a))\n  v = reshape(slice(b, 1, 2, 3), extent<0>(b))\n"
      "  w = reshape(slice(b, 1, 0, 1), extent<0>(b)) * 3\n"
      "  y = minimum(broadcast<0>(u), broadcast<1>(v)) + broadcast<1>(w)\n}";
  ExpectAsInterpreted(columns, {{40, 50}, {1, 3}, {17, 300}}, 0);
  const std::string rows =
      "kernel k(t: f32[v, N], i: i32[n], w: f32[N]) -> (y: f32[n], z: f32[n, N]) {\n  r = take(i, t)\n"
      "  y = reduce_with_axis<sum>(r * broadcast<1>(w), 1)\n  z = r - broadcast<0>(reduce_with_axis<maximum>(r, 1))\n}";
  for (const char* known : {"3", "16", "40", "64", "65"})
    ExpectAsInterpreted(With(rows, "N", known), {{9, 70}, {1, 1}, {30, 5}}, 1e-5);
}

// Axes of one element that reshapes add and leave out.
TEST(Joined, OfOneElement) {
  for (const char* text : {
           "kernel k(x: f32[n, 1, h, w]) -> (y: f32[n, 1, h, w]) {\n  r = reshape(x, extent<0>(x), extent<2>(x) * "
           "extent<3>(x))\n  y = reshape(r - broadcast<0>(reduce_with_axis<maximum>(r, 1)), extent<0>(x), 1, "
           "extent<2>(x), extent<3>(x))\n}",
           "kernel k(x: f32[1, n, h, w]) -> (y: f32[n], z: f32[h, n, w]) {\n"
           "  r = reshape(x, extent<1>(x), extent<2>(x) * extent<3>(x))\n  y = reduce_with_axis<maximum>(r, 1)\n"
           "  z = transpose<1, 0, 2>(reshape(r * broadcast<0>(y), extent<1>(x), extent<2>(x), extent<3>(x)))\n}",
           "kernel k(x: f32[n, h]) -> (y: f32[1, n, 1, 1], z: f32[1, 1]) {\n"
           "  y = reshape(reduce_keepdim<maximum>(x, 1), 1, extent<0>(x), 1, 1)\n"
           "  z = reshape(reduce_keepdim<minimum>(reduce_with_axis<minimum>(x, 1), 0), 1, 1)\n}",
           "kernel k(x: f32[n, 1, h, 1, w, 1]) -> (y: f32[1, n, h, w]) {\n"
           "  y = reshape(x * 2, 1, extent<0>(x), extent<2>(x), extent<4>(x)) - 1\n}",
       })
    ExpectAsInterpreted(text, {{4, 5, 37}, {3, 1, 16}, {1, 1, 1}, {2, 3, 0}}, 0);
}

// Groups of channels of pictures of open extents, parts of tensors in other shapes side by side, places of small
// matrices, and numbers that all of a pixel is scaled by.
TEST(Joined, GroupsAndPartsOfOthers) {
  for (
      const char* text : {
          "kernel k(x: f32[n, 64, h, w], g: f32[64]) -> (y: f32[n, 64, h, w]) {\n"
          "  r = reshape(x, extent<0>(x), 16, 4 * extent<2>(x) * extent<3>(x))\n"
          "  z = reshape(r - broadcast<0, 1>(reduce_with_axis<maximum>(r, 2)), extent<0>(x), 64, extent<2>(x), "
          "extent<3>(x))\n  y = z * broadcast<1>(g)\n}",
          "kernel k(x: f32[h, n, w, 6], g: f32[n]) -> (y: f32[h, n, w, 6]) {\n"
          "  r = reshape(x, extent<0>(x), 1, extent<1>(x) / 1 * extent<2>(x) * 6)\n"
          "  z = reshape(r - broadcast<0, 1>(reduce_with_axis<maximum>(r, 2)), extent<0>(x), extent<1>(x), extent<2>(x), "
          "6)\n  y = z * broadcast<1>(g)\n}",
          "kernel k(x: f32[h, w, 6, 4]) -> (y: f32[h, p]) {\n"
          "  r = reshape(x, extent<0>(x), extent<1>(x) * 3, 8)\n"
          "  y = reduce_with_axis<maximum>(r, 2)\n}",
      })
    ExpectAsInterpreted(text, {{2, 5, 7}, {1, 1, 1}, {3, 4, 16}}, 0);
  const std::string channels =
      "kernel k(x: f32[n, c, h, w], g: f32[c]) -> (y: f32[n, c, h, w]) {\n"
      "  r = reshape(x, extent<0>(x), 4, extent<1>(x) / 4 * extent<2>(x) * extent<3>(x))\n"
      "  z = reshape(r - broadcast<0, 1>(reduce_with_axis<maximum>(r, 2)), extent<0>(x), extent<1>(x), extent<2>(x), "
      "extent<3>(x))\n  y = z * broadcast<1>(g)\n}";
  for (const char* known : {"w", "5", "40"})
    ExpectAsInterpreted(With(channels, "w]", std::string(known) + "]"), {{2, 8, 5, 7}, {1, 4, 1, 1}, {3, 12, 4, 33}},
                        0);
  for (const char* body : {
           "concat(reshape(x, extent<0>(x), 24), reshape(relu(z), extent<0>(x), 30), 1)",
           "concat(reshape(flip(z, 2), extent<0>(x), 30), reshape(x, extent<0>(x), 24), reshape(z, extent<0>(x), 30), "
           "1)",
           "pad(reshape(slice(x, 2, 1, 7) * 2, extent<0>(x), 18), 1, 2)",
       })
    ExpectAsInterpreted(
        std::string("kernel k(x: f32[n, 3, 8], z: f32[n, 5, 6]) -> (y: f32[?, ?]) {\n  y = ") + body + "\n}",
        {{1}, {20}, {67}}, 0);
  const std::string open =
      "kernel k(x: f32[n, a, b], z: f32[n, c, d]) -> (y: f32[n, q]) {\n"
      "  y = concat(reshape(x, extent<0>(x), extent<1>(x) * extent<2>(x)), "
      "reshape(z, extent<0>(x), extent<1>(z) * extent<2>(z)), 1)\n}";
  ExpectAsInterpreted(open, {{3, 4, 50, 2, 17}, {2, 1, 1, 40, 3}, {1, 5, 64, 3, 64}, {2, 3, 5, 0, 4}}, 0);
  for (const char* text : {
           "kernel k(a: u8[h, w, 4], b: u8[h, w, 4]) -> (y: u8[h, w, 4]) {\n"
           "  m = broadcast_keepdim(tcast<i32>(slice(a, 2, 3, 4)), 2, 4)\n"
           "  y = tcast<u8>((tcast<i32>(a) * m + tcast<i32>(b) * (255 - m) + 127) / 255)\n}",
           "kernel k(a: f32[h, w, 3], b: f32[h, w, 3]) -> (y: f32[h, w, 3], z: f32[h, w, 2]) {\n"
           "  y = a * broadcast_keepdim(slice(a, 2, 1, 2), 2, 3)\n"
           "  z = concat(slice(b, 2, 2, 3), slice(a, 2, 0, 1) * slice(b, 2, 0, 1), 2)\n}",
           "kernel k(a: f32[h, w], b: f32[h, w]) -> (y: f32[h, 2, 2]) {\n"
           "  c = reshape(reduce_with_axis<maximum>(a, 1), extent<0>(a), 1)\n  s = reshape(sin(slice(b, 1, 0, 1)), "
           "extent<0>(a), 1)\n  y = reshape(concat(c, -s, s, c, 1), extent<0>(a), 2, 2)\n}",
       })
    ExpectAsInterpreted(text, {{3, 50}, {1, 1}, {40, 16}}, 1e-5);
}

// Parts without elements, and of one element that an open extent is before.
TEST(Joined, PartsOfNothing) {
  ExpectAsInterpreted("kernel k(a: f32[n]) -> (y: f32[?]) { y = concat(slice(exp(flip(a, 0)), 0, 0, 1), a, 0) }",
                      {{5}, {1}, {40}}, 1e-5);
  ExpectAsInterpreted(
      "kernel k(x: f32[n, 4, 0]) -> (y: f32[n]) { y = reduce_with_axis<sum>(reshape(x, extent<0>(x), 0), 1) }",
      {{5}, {1}, {40}}, 0);
  ExpectAsInterpreted("kernel k(x: i16[n, 0, w]) -> (y: i32[?, ?, ?]) { y = tcast<i32>(concat(x, x, 1)) }",
                      {{3, 2}, {20, 50}}, 0);
}

// Halves that are interleaved, made of neighbours, and read through that by what makes more of them.
TEST(Joined, Interleaved) {
  ExpectAsInterpreted(
      "kernel k(x: f32[c, h, w]) -> (y: f32[c, ?, ?]) {\n  c = extent<0>(x)\n  h = extent<1>(x)\n  w = extent<2>(x)\n"
      "  l = concat(slice(x, 2, 0, 1), slice(x, 2, 0, w - 1), 2)\n  r = concat(slice(x, 2, 1, w), slice(x, 2, w - 1, w), 2)\n"
      "  a = reshape(concat(reshape(0.75 * x + 0.25 * l, c, h, w, 1), reshape(0.75 * x + 0.25 * r, c, h, w, 1), 3), c, h, 2 * w)\n"
      "  t = concat(slice(a, 1, 0, 1), slice(a, 1, 0, h - 1), 1)\n  b = concat(slice(a, 1, 1, h), slice(a, 1, h - 1, h), 1)\n"
      "  y = reshape(concat(reshape(0.75 * a + 0.25 * t, c, h, 1, 2 * w), reshape(0.75 * a + 0.25 * b, c, h, 1, 2 * w), 2), c, 2 * h, 2 * w)\n}",
      {{2, 3, 21}, {1, 1, 1}, {3, 5, 64}}, 0);
  ExpectAsInterpreted(
      "kernel k(x: f32[n, w]) -> (y: f32[n, ?], z: f32[n, ?]) {\n  n = extent<0>(x)\n  w = extent<1>(x)\n"
      "  a = reshape(concat(reshape(exp(x), n, w, 1), reshape(x / 3, n, w, 1), reshape(flip(x, 1), n, w, 1), 2), n, 3 * w)\n"
      "  y = flip(a, 1) + a\n  z = concat(slice(a, 1, 1, 3 * w), slice(a, 1, 0, 1), 1)\n}",
      {{3, 21}, {1, 1}, {4, 64}}, 0);
}

// Columns that are put together behind several axes; some follow from positions along one of these.
TEST(Joined, ColumnsBehindSeveralAxes) {
  const std::string points =
      "kernel k(z: F[n, h, w]) -> (p: F[n, h, w, ?]) {\n  n = extent<0>(z)\n  h = extent<1>(z)\n  w = extent<2>(z)\n"
      "  x = (broadcast<2>(steps<F>(w, 1), z) - 3) * z / 5\n  y = (broadcast<1>(steps<F>(h, 1), z) - 2) * z / 5\n"
      "  p = concat(reshape(x, n, h, w, 1), reshape(y, n, h, w, 1), reshape(z, n, h, w, 1), reshape(x * y, n, h, w, 1), 3)\n}";
  for (const char* of : {"f32", "f64"})
    ExpectAsInterpreted(With(points, "F", of), {{2, 5, 21}, {1, 1, 1}, {3, 4, 64}}, 0);
}

// Axes that several maps repeat, one after the other, are those of the reshape that joins them.
TEST(Joined, RepeatedAndReshaped) {
  ExpectAsInterpreted(
      "kernel k(x: f32[n, c, h, w]) -> (u: f32[n, c], v: f32[n, c], s: f32[n, c, h, w]) {\n  n = extent<0>(x)\n"
      "  c = extent<1>(x)\n  h = extent<2>(x)\n  w = extent<3>(x)\n  r = reshape(x, n, c, h * w)\n"
      "  e = exp(r - broadcast_with_axis(reduce_with_axis<maximum>(r, 2), 1, h * w))\n  z = reduce_with_axis<sum>(e, 2)\n"
      "  i = steps<i64>(h * w, 1)\n  u = reduce_with_axis<sum>(e * broadcast<2>(tcast<f32>(i - i / w * w), e), 2) / z\n"
      "  v = reduce_with_axis<sum>(e * broadcast<2>(tcast<f32>(i / w), e), 2) / z\n"
      "  s = reshape(e / broadcast_with_axis(z, 1, h * w), n, c, h, w)\n}",
      {{2, 3, 5, 21}, {1, 1, 1, 1}, {2, 4, 16, 16}}, 1e-5);
  ExpectAsInterpreted(
      "kernel k(x: f32[n, c, h, w]) -> (y: f32[n, c, h, w]) {\n  n = extent<0>(x)\n  c = extent<1>(x)\n  h = extent<2>(x)\n"
      "  w = extent<3>(x)\n  f = reshape(x, n, c, h * w)\n"
      "  e = exp(f - broadcast_keepdim(reduce_keepdim<maximum>(f, 2), 2, h * w))\n"
      "  y = reshape(e / broadcast_keepdim(reduce_keepdim<sum>(e, 2), 2, h * w), n, c, h, w)\n}",
      {{2, 3, 5, 21}, {1, 1, 1, 1}, {2, 4, 16, 16}}, 1e-5);
}

}  // namespace
}  // namespace umbra

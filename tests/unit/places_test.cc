// Places that data choose: held within bounds in packets, as one by one, by every instruction set.
#include <gtest/gtest.h>

#include "tests/support/as_interpreted.h"
#include "tests/support/every_target.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

// Places from -15 to 14, of tables of 7 and of one element, alone and beside other work.
TEST(Places, OfDataOfAnyKind) {
  for (
      const char* text : {
          "kernel k(i: i32[n], x: f32[7]) -> (y: f32[n]) { y = take(i, x) }",
          "kernel k(i: i32[n], x: f64[7]) -> (y: f64[n]) { y = take(i, x) * 2 }",
          "kernel k(i: i32[n], x: u8[7]) -> (y: u8[n]) { y = take(i, x) }",
          "kernel k(i: i32[n], x: f32[1]) -> (y: f32[n]) { y = take(i, x) }",
          "kernel k(i: i32[n], j: i32[n], x: f32[7]) -> (y: f32[n]) { y = take(i, x) + take(j + 1, x) * take(i, x) }",
          "kernel k(i: i32[n], x: f32[7]) -> (y: f32[n]) { y = take(maximum(i, 2), x) + tcast<f32>(i) }",
          "kernel k(i: i32[n], p: f32[n], x: f32[7]) -> (y: f32[n]) { j = tcast<i32>(p * 3)  y = take(j, x) + (take(j + 1, x) - take(j, x)) * (p * 3 - tcast<f32>(j)) + tcast<f32>(i) }",
          "kernel k(i: i32[n], x: f32[n, 5]) -> (y: f32[n]) { y = mat_choose_row_element(x, i) }",
          "kernel k(i: i32[n, 3], x: f32[7]) -> (y: f32[n]) { y = reduce_with_axis<minimum>(take(i, x), 1) }",
          "kernel k(i: i32[3, n], x: f32[7]) -> (y: f32[n]) { y = reduce_with_axis<maximum>(take(i, x), 0) }",
          "kernel k(i: i32[n], x: f32[7, 3]) -> (y: f32[n, 3]) { y = take(i, x) }",
          "kernel k(i: i64[n], x: f32[7]) -> (y: f32[n]) { y = take(i, x) }",
          "kernel k(i: i64[n], x: f64[p], z: f64[n]) -> (y: f64[n]) { y = take(i, x) * z }",
          "kernel k(i: f32[n], x: f32[7]) -> (y: f32[n]) { y = take(i, x) }",
          "kernel k(i: f32[n], x: f32[p], z: f32[n]) -> (y: f32[n]) { y = take(i * 3, x) - take(i, x) * z }",
          "kernel k(i: f64[n], x: u8[7]) -> (y: u8[n]) { y = take(i / 0, x) }",
          "kernel k(i: f64[n], x: f32[7]) -> (y: f32[n]) { y = take(i, x) + take(i * 2, x) }",
          "kernel k(i: u8[n], x: u8[7]) -> (y: u8[n]) { y = take(tcast<i32>(i), x) }",
          "kernel k(i: f16[n], x: f16[7]) -> (y: f16[n]) { y = take(i, x) }",
          "kernel k(i: i64[n], x: f32[n, 5]) -> (y: f32[n]) { y = mat_choose_row_element(x, i) }",
          "kernel k(i: i64[3, n], x: f32[7]) -> (y: f32[n]) { y = reduce_with_axis<maximum>(take(i, x), 0) }",
          "kernel k(i: f32[n], x: f32[7]) -> (y: f32[n]) { s = clip(i * 2, 0, 5.9); f = floor(s); j = tcast<i32>(f)  y = take(j, x) + (s - f) * (take(j + 1, x) - take(j, x)) }",
          "kernel k(i: i8[n], x: f32[7]) -> (y: f32[n]) { y = take(tcast<i32>(i), x) }",
          "kernel k(i: i32[n], x: f32[16]) -> (y: f32[n]) { y = take(i, x) * tcast<f32>(i) }",
          "kernel k(i: i32[n], x: f32[33]) -> (y: f32[n]) { y = take(i * 2 + 10, x) }",
          "kernel k(i: i32[n], x: f32[64]) -> (y: f32[n]) { y = take(i * 3 + 40, x) - take(i, x) }",
          "kernel k(i: i32[n], x: f32[65]) -> (y: f32[n]) { y = take(i * 4 + 40, x) }",
          "kernel k(i: i64[n], x: f64[20]) -> (y: f64[n]) { y = take(i * 2, x) }",
          "kernel k(i: i32[n], x: i32[12]) -> (y: i32[n]) { y = take(i, x) + i }",
          "kernel k(i: i32[n], x: f64[30]) -> (y: f64[n]) { y = take(i * 2 + 15, x) }",
      }) {
    SCOPED_TRACE(text);
    std::string lines(text);
    if (const auto next = lines.find("  y = "); next != std::string::npos) lines.replace(next, 2, "\n");
    for (const index_t open : {1, 16, 53}) drawn::ExpectSameBitsOnEveryTarget(graph::ParseText(lines)[0], open);
  }
}

// Elements of matrices and pictures that are counted row by row, whether rows follow each other or have gaps, at sums
// and products of what data choose, which may lie anywhere.
TEST(Places, CountedRowByRow) {
  const std::string corners =
      "  w = extent<1>(x)\n  f = reshape(x, extent<0>(x) * w)\n  c = floor(u)\n  r = floor(v)\n"
      "  i = tcast<i64>(r) * w + tcast<i64>(c)\n"
      "  y = (1 - (u - c)) * take(i, f) + (u - c) * take(i + 1, f) + take(i + w, f) - take(i + w + 1, f)\n}";
  for (const char* of : {"f32", "f64"})
    drawn::ExpectAsInterpreted(
        drawn::With("kernel k(x: F[h, w], u: F[n], v: F[n]) -> (y: F[n]) {\n" + corners, "F", of),
        {{5, 7, 53}, {1, 1, 16}, {40, 33, 130}}, 0);
  for (
      const char* text : {
          "kernel k(x: f32[a, b, c], i: i64[n]) -> (y: f32[n]) {\n  y = take(i * 5 - 3, reshape(x, extent<0>(x) * "
          "extent<1>(x) * extent<2>(x)))\n}",
          "kernel k(x: u8[a, b, c], i: i32[n]) -> (y: u8[n]) {\n  y = take(i, reshape(x, extent<0>(x) * extent<1>(x) * "
          "extent<2>(x)))\n}",
          "kernel k(x: i32[a, b, c], i: i32[n]) -> (y: i32[n, c]) {\n  y = take(i, reshape(x, extent<0>(x) * "
          "extent<1>(x), extent<2>(x)))\n}",
          "kernel k(x: f32[a, b, c], i: i32[n, 3]) -> (y: f32[n, 3]) {\n  n = extent<0>(i)\n"
          "  o = broadcast_with_axis(steps<i64>(n, 1) * 2, 0, 3) + tcast<i64>(i)\n"
          "  y = reshape(take(reshape(o, n * 3), reshape(x, extent<0>(x) * extent<1>(x) * extent<2>(x))), n, 3)\n}",
          "kernel k(x: f32[a, b, c], i: i32[n]) -> (y: f32[n]) {\n  f = reshape(x, extent<0>(x) * extent<1>(x) * "
          "extent<2>(x))\n  y = take(take(i, f), f) + take(tcast<i64>(i) * 3, f)\n}",
      })
    drawn::ExpectAsInterpreted(text, {{3, 5, 7, 53}, {1, 1, 1, 16}, {2, 9, 16, 33}}, 0);
}

// What no data choose is made in packets, too, where it is held within bounds.
TEST(Places, OfPositions) {
  drawn::ExpectAsInterpreted(
      "kernel k(s: f32[b, h, t, t], e: f32[9, h]) -> (y: f32[b, h, t, t]) {\n  t = extent<2>(s)\n"
      "  i = broadcast_with_axis(steps<i64>(t, 1), 0, t) - broadcast_with_axis(steps<i64>(t, 1), -1, t) + 4\n"
      "  g = reshape(take(reshape(i, t * t), e), t, t, extent<1>(e))\n"
      "  y = s + broadcast_with_axis(transpose<2, 0, 1>(g), -1, extent<0>(s))\n}",
      {{2, 3, 21}, {1, 1, 1}, {3, 16, 40}}, 0);
  drawn::ExpectAsInterpreted(
      "kernel k(x: f64[m], z: f64[n]) -> (y: f64[n]) {\n"
      "  y = z + take(40 - steps<i64>(extent<0>(z), 1) * 3, x) * take(steps<i64>(extent<0>(z), 1) / 2 - 7, x)\n}",
      {{10, 53}, {1, 1}, {130, 40}}, 0);
}

}  // namespace
}  // namespace umbra

// Places that data choose: held within bounds in packets, as one by one, by every instruction set.
#include <gtest/gtest.h>

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
      }) {
    SCOPED_TRACE(text);
    std::string lines(text);
    if (const auto next = lines.find("  y = "); next != std::string::npos) lines.replace(next, 2, "\n");
    for (const index_t open : {1, 16, 53}) drawn::ExpectSameBitsOnEveryTarget(graph::ParseText(lines)[0], open);
  }
}

}  // namespace
}  // namespace umbra

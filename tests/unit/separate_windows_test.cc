// Large windows, which are reduced along one dimension after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/expect_each.h"

namespace umbra {
namespace {

using drawn::ExpectEach;
using drawn::Tensor;
using Index = std::vector<index_t>;

struct Window {
  index_t rows, columns, step;
};

// Pools of channels of 23 by 29 pixels.
void ExpectPools(const std::string& reducer, const Window& window, std::size_t kernels, double tolerance) {
  constexpr index_t kHeight = 23, kWidth = 29;
  const index_t height = (kHeight - window.rows) / window.step + 1, width = (kWidth - window.columns) / window.step + 1;
  const std::string step = std::to_string(window.step);
  const std::string text = "kernel k(x: f32[n, h, w]) -> (y: f32[n, ?, ?]) { y = pool<" + reducer + ">(x * 2, " +
                           std::to_string(window.rows) + ", " + std::to_string(window.columns) + ", " + step + ", " +
                           step + ") }";
  const auto expected = [&](const Tensor& x, const Index& at) {
    double sum = 0, most = -1e30, least = 1e30;
    for (index_t i = 0; i < window.rows; ++i)
      for (index_t j = 0; j < window.columns; ++j) {
        const double value = 2 * x.At({at[0], at[1] * window.step + i, at[2] * window.step + j});
        sum += value, most = std::max(most, value), least = std::min(least, value);
      }
    if (reducer == "mean") return sum / static_cast<double>(window.rows * window.columns);
    return reducer == "sum" ? sum : reducer == "maximum" ? most : least;
  };
  ExpectEach(text, {3, kHeight, kWidth}, {3, height, width}, expected, tolerance, [&](const runtime::Program& program) {
    const std::size_t steps = program.steps.size();  // the interpreter has none
    EXPECT_TRUE(steps == 0 || steps == kernels) << steps << " kernels: " << text;
  });
}

TEST(SeparateWindows, Pools) {
  ExpectPools("sum", {7, 7, 1}, 2, 1e-5);
  ExpectPools("mean", {5, 11, 1}, 2, 1e-5);
  ExpectPools("maximum", {9, 6, 2}, 2, 0);
  ExpectPools("minimum", {12, 9, 1}, 2, 0);
}

TEST(SeparateWindows, SmallOrApart) {
  ExpectPools("sum", {3, 3, 1}, 1, 1e-5);
  ExpectPools("maximum", {7, 7, 7}, 1, 0);
}

// Padding, which has its own conditions; and windows of which one dimension is reduced alone.
TEST(SeparateWindows, OfPadded) {
  const auto at = [](const Tensor& x, index_t i, index_t j) {
    return i < 0 || j < 0 || i >= 23 || j >= 29 ? 0.0 : x.At({i, j});
  };
  ExpectEach(
      "kernel k(x: f32[23, 29]) -> (y: f32[23, 29]) { y = pool<sum>(pad(x, 4, 4), 9, 9, 1, 1) }", {23, 29}, {23, 29},
      [&](const Tensor& x, const Index& index) {
        double sum = 0;
        for (index_t i = -4; i <= 4; ++i)
          for (index_t j = -4; j <= 4; ++j) sum += at(x, index[0] + i, index[1] + j);
        return sum;
      },
      1e-5);
  ExpectEach("kernel k(x: f32[23, 29]) -> (y: f32[23, 29]) { y = pool<maximum>(pad(x, 0, 7), 1, 15, 1, 1) }", {23, 29},
             {23, 29}, [&](const Tensor& x, const Index& index) {
               double most = -1e30;
               for (index_t j = -7; j <= 7; ++j) most = std::max(most, at(x, index[0], index[1] + j));
               return most;
             });
}

}  // namespace
}  // namespace umbra

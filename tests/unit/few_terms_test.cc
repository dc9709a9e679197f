// Sums of the coordinates of all pairs of points, and small products beside views.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "tests/support/expect_each.h"

namespace umbra {
namespace {

using drawn::ExpectEach;
using drawn::Tensor;
using Index = std::vector<index_t>;

int Temporaries(const runtime::Program& program, std::size_t rank) {
  int count = 0;
  for (const runtime::Buffer& buffer : program.buffers)
    count += buffer.kind == runtime::Buffer::Kind::kTemporary && buffer.shape.size() >= rank;
  return count;
}

void ExpectNoMatrix(const runtime::Program& program) { EXPECT_EQ(Temporaries(program, 2), 0); }

void ExpectKernels(const runtime::Program& program) {
  for (const auto& step : program.steps) EXPECT_TRUE(std::holds_alternative<runtime::KernelStep>(step));
}

double Square(const Tensor& x, index_t i, index_t j, index_t terms) {
  double sum = 0;
  for (index_t k = 0; k < terms; ++k) {
    const double d = x.At({i, k}) - x.At({j, k});
    sum += d * d;
  }
  return sum;
}

TEST(FewTerms, Distances) {
  for (const index_t terms : {1, 2, 3, 4, 5}) {
    const std::string text =
        "kernel k(x: f32[n, " + std::to_string(terms) +
        "]) -> (y: f32[n, n]) {\n"
        "  d = broadcast<0, 2>(x) - broadcast<1, 2>(x)\n  y = sqrt(reduce_with_axis<sum>(d * d, 2))\n}";
    ExpectEach(
        text, {37, terms}, {37, 37},
        [terms](const Tensor& x, const Index& at) { return std::sqrt(Square(x, at[0], at[1], terms)); }, 1e-5);
  }
}

// What pairs come to is reduced at once: no matrix of it is kept.
TEST(FewTerms, ReducedDistances) {
  const std::string text =
      "kernel k(x: f32[n, 3]) -> (y: f32[n]) {\n  d = broadcast<0, 2>(x) - broadcast<1, 2>(x)\n"
      "  r = reduce_with_axis<sum>(d * d, 2) + 0.5\n  y = reduce_with_axis<sum>(1 / r, 1)\n}";
  ExpectEach(
      text, {53, 3}, {53},
      [](const Tensor& x, const Index& at) {
        double sum = 0;
        for (index_t j = 0; j < 53; ++j) sum += 1 / (Square(x, at[0], j, 3) + 0.5);
        return sum;
      },
      1e-5, ExpectNoMatrix);
  ExpectEach(
      "kernel k(x: f32[0, 3]) -> (y: f32[0]) {\n  d = broadcast<0, 2>(x) - broadcast<1, 2>(x)\n"
      "  y = reduce_with_axis<minimum>(reduce_with_axis<sum>(d * d, 2), 1)\n}",
      {0, 3}, {0}, [](const Tensor&, const Index&) { return 0.0; });
}

// The rows of a picture's colours by a matrix, wherever the picture's rows end.
TEST(FewTerms, ProductsBesideViews) {
  const auto product = [](const Tensor& x, index_t i, index_t j, index_t c) {
    double sum = 0;
    for (index_t k = 0; k < 3; ++k) sum += x.At({i, j, k}) * x.At({0, k, c});
    return sum;
  };
  const std::string matrix = "  m = reshape(slice(slice(x, 0, 0, 1), 1, 0, 3), 3, 3)\n";
  ExpectEach(
      "kernel k(x: f32[h, w, 3]) -> (y: f32[h, w, 3]) {\n" + matrix +
          "  y = reshape(dot(reshape(x, h * w, 3), m) + 1, h, w, 3)\n}",
      {7, 11, 3}, {7, 11, 3}, [&](const Tensor& x, const Index& at) { return product(x, at[0], at[1], at[2]) + 1; },
      1e-5, ExpectKernels);
  ExpectEach(
      "kernel k(x: f32[h, w, 3]) -> (y: f32[?, 1]) {\n" + matrix +
          "  y = slice(dot(reshape(x, h * w, 3), m), 1, 1, 2)\n}",
      {7, 11, 3}, {77, 1}, [&](const Tensor& x, const Index& at) { return product(x, at[0] / 11, at[0] % 11, 1); },
      1e-5, ExpectKernels);
}

}  // namespace
}  // namespace umbra

// Reductions that leave a few columns, and axes that positions divide.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/expect_each.h"

namespace umbra {
namespace {

using drawn::ExpectEach;
using drawn::Kernel;
using drawn::Tensor;
using Index = std::vector<index_t>;

void ExpectNoTemporaries(const runtime::Program& program) {
  for (const runtime::Buffer& buffer : program.buffers) EXPECT_NE(buffer.kind, runtime::Buffer::Kind::kTemporary);
}

// Forces on points: what two have in common is computed once for all coordinates.
TEST(ColumnsApart, Forces) {
  for (const index_t columns : {2, 3, 4, 5}) {
    const std::string text = Kernel("n, " + std::to_string(columns), "n, " + std::to_string(columns),
                                    "  d = broadcast<0, 2>(x) - broadcast<1, 2>(x)\n"
                                    "  r = reduce_with_axis<sum>(d * d, 2) + 0.5\n"
                                    "  y = x + reduce_with_axis<sum>(d * broadcast<0, 1>(1 / r), 1)");
    ExpectEach(
        text, {45, columns}, {45, columns},
        [columns](const Tensor& x, const Index& at) {
          double sum = x.At(at);
          for (index_t j = 0; j < 45; ++j) {
            double r = 0.5;
            for (index_t k = 0; k < columns; ++k) r += std::pow(x.At({at[0], k}) - x.At({j, k}), 2);
            sum += (x.At(at) - x.At({j, at[1]})) / r;
          }
          return sum;
        },
        1e-4);
  }
}

// The farthest in each coordinate, weighed by another.
TEST(ColumnsApart, Extremes) {
  const std::string text =
      Kernel("n, 3", "n, 3",
             "  w = reshape(slice(x, 1, 0, 1), n)\n"
             "  y = reduce_with_axis<maximum>(broadcast<1, 2>(x) * broadcast<0, 1>(broadcast<0>(w) - "
             "broadcast<1>(w)), 1)");
  ExpectEach(
      text, {40, 3}, {40, 3},
      [](const Tensor& x, const Index& at) {
        double most = -INFINITY;
        for (index_t j = 0; j < 40; ++j) most = std::max(most, x.At({j, at[1]}) * (x.At({at[0], 0}) - x.At({j, 0})));
        return most;
      },
      1e-5);
}

double Part(double re, double im, index_t part) { return part == 0 ? re * re - im * im : 2 * re * im; }

// Squares of complex numbers: which part it is chooses what is summed.
TEST(ColumnsApart, Complex) {
  ExpectEach(
      Kernel("n, m, 2", "n, 2", "  y = reduce_with_axis<sum>(complex_mul_cc(x, x), 1)"), {7, 37, 2}, {7, 2},
      [](const Tensor& x, const Index& at) {
        double sum = 0;
        for (index_t j = 0; j < 37; ++j) sum += Part(x.At({at[0], j, 0}), x.At({at[0], j, 1}), at[1]);
        return sum;
      },
      1e-5);
  ExpectEach(
      Kernel("n, 32, 4, 2", "n, 32, 2", "  y = reduce_with_axis<sum>(complex_mul_cc(x, x), 2)"), {3, 32, 4, 2},
      {3, 32, 2},
      [](const Tensor& x, const Index& at) {
        double sum = 0;
        for (index_t j = 0; j < 4; ++j) sum += Part(x.At({at[0], at[1], j, 0}), x.At({at[0], at[1], j, 1}), at[2]);
        return sum;
      },
      1e-5);
}

// Complex numbers side by side, along the axis that packets go along, and as one axis of rows.
TEST(ColumnsApart, ComplexSideBySide) {
  ExpectEach(
      Kernel("t, 74", "74", "  y = reduce_with_axis<sum>(complex_mul_cc(x, conj(x)), 0)"), {9, 74}, {74},
      [](const Tensor& x, const Index& at) {
        double sum = 0;
        for (index_t j = 0; j < 9; ++j) {
          const double re = x.At({j, at[0] / 2 * 2}), im = x.At({j, at[0] / 2 * 2 + 1});
          sum += at[0] % 2 == 0 ? re * re + im * im : 0;
        }
        return sum;
      },
      1e-5);
  ExpectEach(
      Kernel("n, 74", "n, 2", "  y = reduce_with_axis<sum>(reshape(complex_mul_cc(x, x), n, 37, 2), 1)"), {9, 74},
      {9, 2},
      [](const Tensor& x, const Index& at) {
        double sum = 0;
        for (index_t j = 0; j < 37; ++j) sum += Part(x.At({at[0], 2 * j}), x.At({at[0], 2 * j + 1}), at[1]);
        return sum;
      },
      1e-5);
  // What reads them divides the axis, too.
  ExpectEach(
      Kernel("t, 74", "37", "  y = complex_abs_square(reduce_with_axis<sum>(complex_mul_cc(x, conj(x)), 0))"), {9, 74},
      {37},
      [](const Tensor& x, const Index& at) {
        double sum = 0;
        for (index_t j = 0; j < 9; ++j)
          for (index_t k : {0, 1}) sum += std::pow(x.At({j, 2 * at[0] + k}), 2);
        return sum * sum;
      },
      1e-5);
}

// A filter of pictures as a product by their patches: nothing is divided, and no patch is written.
TEST(ColumnsApart, ProductByPatches) {
  const std::string text = Kernel("n, 1, 12, 20", "1, m",
                                  "  k = reshape(slice(reshape(x, n * 240), 0, 0, 15), 1, 15)\n"
                                  "  y = dot(k, unpack_patch2col(pad(x, 1, 2), 3, 5, 1, 1, 1, 1))");
  ExpectEach(
      text, {2, 1, 12, 20}, {1, 480},
      [](const Tensor& x, const Index& at) {
        const index_t picture = at[1] / 240, row = at[1] / 20 % 12, column = at[1] % 20;
        double sum = 0;
        for (index_t i = 0; i < 3; ++i)
          for (index_t j = 0; j < 5; ++j) {
            const index_t r = row + i - 1, c = column + j - 2;
            const double of = r < 0 || c < 0 || r >= 12 || c >= 20 ? 0 : x.At({picture, 0, r, c});
            sum += x.At({0, 0, 0, i * 5 + j}) * of;
          }
        return sum;
      },
      1e-5, ExpectNoTemporaries);
}

// Patches put together: those that reach a point begin a stride apart.
TEST(ColumnsApart, PatchesTogether) {
  struct Case {
    index_t height, width, size[2], stride[2], dilate;
  };
  for (const Case& c : {Case{9, 13, {3, 4}, {2, 2}, 1},
                        {1, 70, {1, 12}, {1, 3}, 1},
                        {1, 65, {1, 5}, {1, 3}, 1},
                        {8, 8, {2, 2}, {2, 2}, 1},
                        {11, 12, {3, 3}, {1, 2}, 1},
                        {11, 12, {3, 2}, {2, 3}, 2}}) {
    const auto count = [&](int k) {
      return ((k == 0 ? c.height : c.width) - (c.dilate * (c.size[k] - 1) + 1)) / c.stride[k] + 1;
    };
    const index_t rows = count(0), columns = count(1), points = c.size[0] * c.size[1];
    const auto numbers = [](std::vector<index_t> all) {
      std::string text;
      for (const index_t n : all) text += ", " + std::to_string(n);
      return text;
    };
    const std::string text = Kernel(
        std::to_string(2 * points) + ", " + std::to_string(3 * rows * columns), "3, 2" + numbers({c.height, c.width}),
        "  y = pack_col2patch(x" +
            numbers({3, 2, c.height, c.width, c.size[0], c.size[1], c.stride[0], c.stride[1], c.dilate, c.dilate}) +
            ")");
    ExpectEach(
        text, {2 * points, 3 * rows * columns}, {3, 2, c.height, c.width},
        [&](const Tensor& x, const Index& at) {
          double sum = 0;
          for (index_t row = 0; row < rows; ++row)
            for (index_t column = 0; column < columns; ++column)
              for (index_t i = 0; i < c.size[0]; ++i)
                for (index_t j = 0; j < c.size[1]; ++j)
                  if (row * c.stride[0] + i * c.dilate == at[2] && column * c.stride[1] + j * c.dilate == at[3])
                    sum += x.At({(at[1] * c.size[0] + i) * c.size[1] + j, (at[0] * rows + row) * columns + column});
          return sum;
        },
        1e-6);
  }
}

// Frames that overlap, one row of memory each, or one column, added up to a signal.
TEST(ColumnsApart, FramesAddedUp) {
  struct Case {
    index_t frames, length, step;
  };
  for (const Case& c : {Case{37, 64, 16}, Case{40, 96, 32}, Case{90, 40, 20}, Case{5, 33, 7}})
    for (const bool in_rows : {true, false}) {
      const index_t all = (c.frames - 1) * c.step + c.length;
      const Index from = in_rows ? Index{c.frames, c.length} : Index{c.length, c.frames};
      const std::string text = Kernel(std::to_string(from[0]) + ", " + std::to_string(from[1]), std::to_string(all),
                                      "  y = reshape(pack_col2patch(" + std::string(in_rows ? "x.T" : "x") +
                                          ", 1, 1, 1, " + std::to_string(all) + ", 1, " + std::to_string(c.length) +
                                          ", 1, " + std::to_string(c.step) + ", 1, 1), " + std::to_string(all) + ")");
      ExpectEach(
          text, from, {all},
          [&](const Tensor& x, const Index& at) {
            double sum = 0;
            for (index_t frame = 0; frame < c.frames; ++frame) {
              const index_t k = at[0] - frame * c.step;
              if (k >= 0 && k < c.length) sum += in_rows ? x.At({frame, k}) : x.At({k, frame});
            }
            return sum;
          },
          1e-6);
    }
}

}  // namespace
}  // namespace umbra

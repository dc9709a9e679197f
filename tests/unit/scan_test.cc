// Running reductions, alone and in the loops of what is computed before and behind them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/expect_each.h"
#include "umbra/error.h"

namespace umbra {
namespace {

using drawn::ExpectEach;
using drawn::Kernel;
using drawn::Tensor;
using Index = std::vector<index_t>;

std::string ShapeText(const Index& shape, bool open) {
  std::string text;
  for (std::size_t d = 0; d < shape.size(); ++d)
    text += (d > 0 ? ", " : "") + (open ? std::string(1, static_cast<char>('n' + d)) : std::to_string(shape[d]));
  return text;
}

// One kernel, which keeps nothing as large as its operands in memory; what is interpreted has no steps.
void ExpectOneKernel(const runtime::Program& program) {
  EXPECT_LE(program.steps.size(), 1u);
  for (const runtime::Buffer& buffer : program.buffers) EXPECT_NE(buffer.kind, runtime::Buffer::Kind::kTemporary);
}

double Join(const std::string& reducer, double a, double b) {
  if (reducer == "maximum") return std::max(a, b);
  if (reducer == "minimum") return std::min(a, b);
  return reducer == "product" ? a * b : a + b;
}

// `of`(x, at) joined along the axis up to `at`.
template <typename Of>
double Scanned(const std::string& reducer, const Tensor& x, Index at, int axis, const Of& of) {
  const index_t last = at[static_cast<std::size_t>(axis)];
  double all = 0;
  for (index_t k = 0; k <= last; ++k) {
    at[static_cast<std::size_t>(axis)] = k;
    const double next = of(x, at);
    all = k == 0 ? next : Join(reducer, all, next);
  }
  return all;
}

double Element(const Tensor& x, const Index& at) { return x.At(at); }

// Rows that end within packets, between them and within groups of them; along memory, across it, and between axes.
TEST(Scan, AlongEachAxis) {
  for (const char* reducer : {"sum", "maximum", "minimum"})
    for (const Index& shape : {Index{77}, Index{3, 64}, Index{4, 131}, Index{70, 5}, Index{3, 9, 20}})
      for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
        for (const bool open : {false, true}) {
          const std::string dims = ShapeText(shape, open);
          ExpectEach(
              Kernel(dims, dims, "  y = scan<" + std::string(reducer) + ">(x, " + std::to_string(axis) + ")"), shape,
              shape, [&](const Tensor& x, const Index& at) { return Scanned(reducer, x, at, axis, Element); }, 1e-5,
              ExpectOneKernel);
        }
}

TEST(Scan, Products) {
  ExpectEach(
      Kernel("n, m", "n, m", "  y = scan<product>(1 + x / 64, 1)"), {5, 45}, {5, 45},
      [](const Tensor& x, const Index& at) {
        return Scanned("product", x, at, 1, [](const Tensor& t, const Index& i) { return 1 + t.At(i) / 64; });
      },
      1e-5, ExpectOneKernel);
}

TEST(Scan, Means) {
  for (const int axis : {0, 1})
    ExpectEach(
        Kernel("n, m", "n, m", "  y = scan<mean>(x, " + std::to_string(axis) + ")"), {21, 45}, {21, 45},
        [axis](const Tensor& x, const Index& at) {
          const double count = static_cast<double>(at[static_cast<std::size_t>(axis)] + 1);
          return Scanned("sum", x, at, axis, Element) / count;
        },
        1e-5);
}

// Functions before and behind, which go over groups of packets.
TEST(Scan, BetweenFunctions) {
  const auto of = [](const Tensor& x, const Index& at) { return std::exp(x.At(at)); };
  for (const index_t columns : {1, 15, 64, 203})
    ExpectEach(
        Kernel("n, m", "n, m", "  y = log(scan<sum>(exp(x), 1))"), {3, columns}, {3, columns},
        [&](const Tensor& x, const Index& at) { return std::log(Scanned("sum", x, at, 1, of)); }, 1e-5,
        ExpectOneKernel);
}

// What a scan is of may need a reduction of the row, and what it comes to may be reduced in the same loop.
TEST(Scan, BesideReductions) {
  const auto row_sum = [](const Tensor& x, index_t row) {
    double sum = 0;
    for (index_t k = 0; k < x.ref.shape[1]; ++k) sum += std::exp(x.At({row, k}));
    return sum;
  };
  ExpectEach(
      Kernel("n, m", "n, m",
             "  p = exp(x)\n"
             "  y = scan<sum>(p / broadcast<0>(reduce_with_axis<sum>(p, 1)), 1)"),
      {4, 150}, {4, 150},
      [&](const Tensor& x, const Index& at) {
        return Scanned("sum", x, at, 1, [](const Tensor& t, const Index& i) { return std::exp(t.At(i)); }) /
               row_sum(x, at[0]);
      },
      1e-5, ExpectOneKernel);
  for (const int axis : {0, 1}) {
    const std::string along = std::to_string(axis);
    ExpectEach(
        Kernel("n, m", axis == 0 ? "m" : "n",
               "  y = reduce_with_axis<maximum>(scan<maximum>(x, " + along + ") - x, " + along + ")"),
        {37, 70}, {axis == 0 ? 70 : 37},
        [axis](const Tensor& x, const Index& at) {
          double most = 0, high = -INFINITY;
          for (index_t k = 0; k < (axis == 0 ? 37 : 70); ++k) {
            const double next = axis == 0 ? x.At({k, at[0]}) : x.At({at[0], k});
            high = std::max(high, next);
            most = std::max(most, high - next);
          }
          return most;
        },
        1e-5, ExpectOneKernel);
  }
}

// A scan of a scan along the same axis is one loop; along another one it is another kernel.
TEST(Scan, OfScans) {
  const auto of_scan = [](const Tensor& x, const Index& at) { return Scanned("sum", x, at, 1, Element); };
  ExpectEach(
      Kernel("n, m", "n, m", "  y = scan<maximum>(scan<sum>(x, 1), 1) - x"), {4, 75}, {4, 75},
      [&](const Tensor& x, const Index& at) { return Scanned("maximum", x, at, 1, of_scan) - x.At(at); }, 1e-5,
      ExpectOneKernel);
  ExpectEach(
      Kernel("n, m", "n, m", "  y = scan<sum>(scan<sum>(x, 1), 0)"), {9, 40}, {9, 40},
      [&](const Tensor& x, const Index& at) { return Scanned("sum", x, at, 0, of_scan); }, 1e-5,
      [](const runtime::Program& program) { EXPECT_NE(program.steps.size(), 1u); });
}

// Elements that are not asked for count all the same.
TEST(Scan, WhereItIsChosen) {
  for (const int axis : {0, 1}) {
    const std::string along = std::to_string(axis);
    ExpectEach(
        Kernel("24, 40", "24, 40",
               "  at = broadcast<" + along + ">(steps<i32>(extent<" + along + ">(x), 1), x)\n" +
                   "  y = at < 5 || at >= 11 ? scan<sum>(x, " + along + ") : 0.5"),
        {24, 40}, {24, 40},
        [axis](const Tensor& x, const Index& at) {
          const index_t k = at[static_cast<std::size_t>(axis)];
          return k < 5 || k >= 11 ? Scanned("sum", x, at, axis, Element) : 0.5;
        },
        1e-5);
  }
}

// Where an element stands among those that are kept tells where it is read.
TEST(Scan, AsPositions) {
  const auto place = [](const Tensor& x, index_t at) {
    index_t count = -1;
    for (index_t k = 0; k <= at; ++k) count += x.At({k}) > 0 ? 1 : 0;
    return std::max<index_t>(count, 0);
  };
  ExpectEach(Kernel("n", "n", "  y = take(scan<sum>(tcast<i64>(tcast<i32>(x > 0)), 0) - 1, x) * 2"), {90}, {90},
             [&](const Tensor& x, const Index& at) { return 2 * x.At({place(x, at[0])}); });
  ExpectEach(Kernel("n", "n", "  y = scan<sum>(tcast<i32>(x > 0), 0) > steps<i32>(extent<0>(x), 1) ? x : -x"), {90},
             {90}, [&](const Tensor& x, const Index& at) {
               index_t count = 0;
               for (index_t k = 0; k <= at[0]; ++k) count += x.At({k}) > 0 ? 1 : 0;
               return count > at[0] ? x.At(at) : -x.At(at);
             });
}

// What joins tensors chooses by positions, and is computed lane by lane where it is whole numbers.
TEST(Scan, BesideWhatIsJoined) {
  for (const int axis : {0, 1}) {
    const std::string along = std::to_string(axis);
    ExpectEach(Kernel("6, 50", "6, 50",
                      "  i = tcast<i64>(x * 4)\n"
                      "  y = tcast<f32>(scan<sum>(i, " +
                          along + ") + concat(slice(i, 1, 20, 50), slice(i, 1, 0, 20), 1))"),
               {6, 50}, {6, 50}, [axis](const Tensor& x, const Index& at) {
                 const auto whole = [](const Tensor& t, const Index& i) { return std::trunc(t.At(i) * 4); };
                 return Scanned("sum", x, at, axis, whole) + whole(x, {at[0], (at[1] + 20) % 50});
               });
  }
  ExpectEach(
      Kernel(
          "5, 18", "5, 18",
          "  a = slice(x, 1, 2, 18)\n"
          "  y = concat(slice(x, 1, 0, 2), (scan<sum>(a, 1) > 3 ? concat(slice(a, 0, 0, 2), slice(a, 0, 2, 5), 0) : 1), 1)"),
      {5, 18}, {5, 18}, [](const Tensor& x, const Index& at) {
        double sum = 0;
        for (index_t k = 2; k <= at[1]; ++k) sum += x.At({at[0], k});
        return at[1] < 2 || sum > 3 ? x.At(at) : 1;
      });
}

// Rows of as few elements as columns are long lie across packets of them.
TEST(Scan, AcrossLongRows) {
  constexpr index_t n = 70000;
  const auto graph =
      graph::ParseText(Kernel("3, " + std::to_string(n), std::to_string(n) + ", 3", "  y = scan<maximum>(x.T, 0)"))[0];
  std::mt19937 random(5);
  const Tensor x(DType::kFloat32, {3, n}, 0, &random);
  const Tensor y(DType::kFloat32, {n, 3}, 0, nullptr);
  for (const std::string& target : HostTargets()) {
    CompileOptions options;
    options.target = target;
    Compile(graph, options)({{x.ref}, {y.ref}, {}});
    for (index_t row = 0; row < 3; ++row) {
      double most = -INFINITY;
      for (index_t k = 0; k < n; ++k) {
        most = std::max(most, x.At({row, k}));
        ASSERT_EQ(y.At({k, row}), most) << target << ", row " << row << ", element " << k;
      }
    }
  }
}

TEST(Scan, FromTheEnd) {
  ExpectEach(
      Kernel("n, m", "n, m", "  y = flip(scan<sum>(flip(x, 1), 1), 1)"), {5, 37}, {5, 37},
      [](const Tensor& x, const Index& at) {
        double sum = 0;
        for (index_t k = at[1]; k < 37; ++k) sum += x.At({at[0], k});
        return sum;
      },
      1e-5);
}

// The same number for all of a row is scanned, too.
TEST(Scan, OfWhatIsSpread) {
  ExpectEach(
      Kernel("n, m", "n, m",
             "  y = scan<sum>(broadcast<0>(reduce_with_axis<maximum>(x, 1), x), 1) + scan<sum>(0 * x + 2, 1)"),
      {6, 50}, {6, 50},
      [](const Tensor& x, const Index& at) {
        double most = -INFINITY;
        for (index_t k = 0; k < 50; ++k) most = std::max(most, x.At({at[0], k}));
        return (most + 2) * static_cast<double>(at[1] + 1);
      },
      1e-5);
}

// A NaN stays from where it stands on; sums of integers wrap around.
TEST(Scan, Extremes) {
  std::vector<float> x(50), y(50);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 7);
  x[20] = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::int32_t> i(50, 1 << 30), s(50);
  for (const std::string& target : HostTargets()) {
    CompileOptions options;
    options.target = target;
    const auto graphs = graph::ParseText(
        "kernel a(x: f32[n]) -> (y: f32[n]) { y = scan<maximum>(x, 0) }\n"
        "kernel b(i: i32[n]) -> (s: i32[n]) { s = scan<sum>(i, 0) }");
    Compile(graphs[0], options)({{runtime::TensorRef::Dense(x.data(), DType::kFloat32, {50})},
                                 {runtime::TensorRef::Dense(y.data(), DType::kFloat32, {50})},
                                 {}});
    Compile(graphs[1], options)({{runtime::TensorRef::Dense(i.data(), DType::kInt32, {50})},
                                 {runtime::TensorRef::Dense(s.data(), DType::kInt32, {50})},
                                 {}});
    float most = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      most = std::max(most, x[k]);
      EXPECT_EQ(std::isnan(y[k]), k >= 20) << target << ", element " << k;
      if (k < 20) { EXPECT_EQ(y[k], most); }
      EXPECT_EQ(s[k], static_cast<std::int32_t>((k + 1) << 30)) << target << ", element " << k;
    }
  }
}

// The order in which elements are joined is one for packets of any width, and for groups of them.
TEST(Scan, EachTargetGivesTheSameBits) {
  for (const char* line : {"y = scan<sum>(x, 1)", "y = log(2 + scan<sum>(exp(x), 1))",
                           "y = scan<product>(1 + x / 64, 1) - broadcast<0>(reduce_with_axis<sum>(x, 1))"}) {
    const auto graph = graph::ParseText(Kernel("n, m", "n, m", std::string("  ") + line))[0];
    for (const index_t columns : {5, 16, 47, 201}) {
      std::mt19937 random(11);
      const Tensor x(DType::kFloat32, {4, columns}, 0, &random);
      const Tensor first(DType::kFloat32, {4, columns}, 0, nullptr), other(DType::kFloat32, {4, columns}, 0, nullptr);
      const std::vector<std::string> targets = HostTargets();
      for (const std::string& target : targets) {
        CompileOptions options;
        options.target = target;
        const Tensor& y = target == targets[0] ? first : other;
        Compile(graph, options)({{x.ref}, {y.ref}, {}});
        drawn::ForEachIndex({4, columns}, [&](const Index& at) {
          ASSERT_EQ(y.At(at), first.At(at)) << line << " " << target << ", column " << at[1];
        });
      }
    }
  }
}

// Long rows that are gone through at positions are whole ranges, too.
TEST(Scan, OfLongRows) {
  const auto graph = graph::ParseText(Kernel("n", "n", "  y = scan<maximum>(flip(x, 0) - 1, 0)"))[0];
  constexpr index_t n = 100000;
  std::mt19937 random(3);
  const Tensor x(DType::kFloat32, {n}, 0, &random);
  const Tensor y(DType::kFloat32, {n}, 0, nullptr);
  Compile(graph, {})({{x.ref}, {y.ref}, {}}, {4});
  double most = -INFINITY;
  for (index_t k = 0; k < n; ++k) {
    most = std::max(most, static_cast<double>(static_cast<float>(x.At({n - 1 - k})) - 1));
    ASSERT_EQ(static_cast<float>(y.At({k})), static_cast<float>(most)) << k;
  }
}

// A row is gone through once, in the order of its elements, whoever else works on the others.
TEST(Scan, ThreadsGiveTheSameBits) {
  const auto graph = graph::ParseText(Kernel("n, m", "n, m", "  y = scan<sum>(x, 0) + scan<sum>(x, 1)"))[0];
  std::mt19937 random(7);
  const Tensor x(DType::kFloat32, {300, 500}, 0, &random);
  const Tensor one(DType::kFloat32, {300, 500}, 0, nullptr), four(DType::kFloat32, {300, 500}, 0, nullptr);
  const Function function = Compile(graph, {});
  function({{x.ref}, {one.ref}, {}}, {1});
  function({{x.ref}, {four.ref}, {}}, {4});
  drawn::ForEachIndex({300, 500}, [&](const Index& at) { ASSERT_EQ(one.At(at), four.At(at)); });
}

std::string MessageOf(const std::string& text) {
  try {
    graph::ParseText(text);
  } catch (const Error& error) { return error.what(); }
  return "";
}

TEST(Scan, WhatDoesNotFit) {
  EXPECT_NE(MessageOf(Kernel("n, m", "n, m", "  y = scan<sum>(x, 2)")).find("its axes are 0 to 1"), std::string::npos);
  EXPECT_NE(MessageOf(Kernel("n, m", "n, m", "  y = scan<argmax>(x, 1)")).find("scan takes the reducer sum"),
            std::string::npos);
  EXPECT_NE(MessageOf(Kernel("n, m", "n, m", "  y = tcast<f32>(scan<sum>(x > 0, 1))")).find("tcast<i32>"),
            std::string::npos);
  EXPECT_NE(MessageOf(Kernel("n, m", "n, m", "  y = cumsum(x, 1)")).find("scan<sum>(x, axis)"), std::string::npos);
}

}  // namespace
}  // namespace umbra

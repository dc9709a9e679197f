// Kernels that walk several rows at a time, phase by phase: any number of rows, of any length.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "runtime/launch.h"
#include "tests/support/expect_each.h"
#include "tests/unit/index_map_common.h"
#include "umbra/compile.h"
#include "umbra/graph.h"
#include "umbra/kernel_prelude.h"

namespace umbra {
namespace {

using runtime::TensorRef;
using Shape = std::vector<index_t>;

std::size_t Count(const Shape& shape) {
  std::size_t count = 1;
  for (const index_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

// The same bits by every dialect, of which plain goes row by row, and about what the interpreter finds, whose sums go
// in another order. `fill` gives element k of an input.
template <typename T, typename Fill>
void ExpectAlike(const std::string& text, const std::vector<Shape>& in, const std::vector<Shape>& out,
                 const Fill& fill) {
  std::vector<std::vector<T>> sources;
  for (const Shape& shape : in) {
    sources.emplace_back(Count(shape));
    for (std::size_t k = 0; k < sources.back().size(); ++k) sources.back()[k] = fill(k);
  }
  std::vector<std::vector<T>> expected;
  for (const CompileOptions& route : Routes()) {
    static std::map<std::string, Function> compiled;
    const bool interpreted = route.engine == Engine::kInterpreter;
    const std::string key = (interpreted ? "interpreter" : route.target) + text;
    auto function = compiled.find(key);
    if (function == compiled.end()) function = compiled.emplace(key, Compile(graph::ParseText(text)[0], route)).first;
    std::vector<std::vector<T>> results;
    runtime::Arguments arguments;
    for (std::size_t k = 0; k < in.size(); ++k)
      arguments.inputs.push_back(TensorRef::Dense(sources[k].data(), DTypeOf<T>::value, in[k]));
    for (const Shape& shape : out) results.emplace_back(Count(shape), T(77));
    for (std::size_t k = 0; k < out.size(); ++k)
      arguments.outputs.push_back(TensorRef::Dense(results[k].data(), DTypeOf<T>::value, out[k]));
    function->second(arguments);
    const bool rough = expected.empty() || route.target == "plain";
    for (std::size_t k = 0; k < expected.size(); ++k)
      for (std::size_t i = 0; i < results[k].size(); ++i) {
        const T a = results[k][i], b = expected[k][i], bound = rough ? T(1e-4) * (1 + std::abs(b)) : T(0);
        ASSERT_TRUE(a == b || std::abs(a - b) <= bound || (a != a && b != b))
            << key << "\nresult " << k << ", element " << i << " of " << results[k].size() << ": " << b << " and " << a;
      }
    if (rough) expected = results;
  }
}

template <typename T>
T Number(std::size_t k) {
  return static_cast<T>(static_cast<double>(k * 2654435761u % 1009) / 100 - 5);
}

// Lengths of which 4, 2 and 1 rows are walked at a time, with and without whole packets.
constexpr index_t kLengths[] = {1, 7, 16, 33, 100, 256, 513, 1024, 2049, 5000};
constexpr index_t kRows[] = {1, 2, 3, 4, 5, 7, 8, 9};

const char* const kOfRows[] = {
    "kernel k(x: T[n, m]) -> (y: T[n, m]) {\n"
    "  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))\n  y = e * broadcast<0>(1 / reduce_with_axis<sum>(e, 1))\n}",
    "kernel k(x: T[n, m]) -> (y: T[n, m]) {\n  c = x - broadcast<0>(reduce_with_axis<sum>(x, 1) * 0.01)\n"
    "  y = c * broadcast<0>(rsqrt(reduce_with_axis<sum>(c * c, 1) + 1))\n}",
    "kernel k(x: T[n, m]) -> (y: T[n, m]) {\n  most = reduce_with_axis<maximum>(x, 1)\n"
    "  s = reduce_with_axis<sum>(exp(x - broadcast<0>(most)), 1)\n  t = reduce_with_axis<sum>(x * x, 1) + s\n"
    "  y = x * broadcast<0>(most / t) + broadcast<0>(log(s))\n}",
};

TEST(Rows, AnyNumberOfAnyLength) {
  for (std::string text : kOfRows)
    for (const char* type : {"f32", "f64"}) {
      std::string typed = text;
      for (std::size_t at; (at = typed.find('T')) != std::string::npos;) typed.replace(at, 1, type);
      for (const index_t columns : kLengths)
        for (const index_t rows : kRows) {
          const Shape shape = {rows, columns};
          if (typed.find("f64") != std::string::npos) ExpectAlike<double>(typed, {shape}, {shape}, Number<double>);
          else ExpectAlike<float>(typed, {shape}, {shape}, Number<float>);
          if (HasFatalFailure()) return;
        }
    }
}

// A number a row, from the last phase's reduction; and results of several phases.
TEST(Rows, NumbersOfRows) {
  const std::string text =
      "kernel k(x: f32[n, m], b: f32[n]) -> (y: f32[n], z: f32[n, m], s: f32[n]) {\n  most = reduce_with_axis<maximum>(x, 1)\n"
      "  s = reduce_with_axis<sum>(exp(x - broadcast<0>(most)), 1)\n  y = most + log(s) * b\n  z = x - broadcast<0>(most + b)\n}";
  for (const index_t columns : kLengths)
    for (const index_t rows : kRows)
      ExpectAlike<float>(text, {{rows, columns}, {rows}}, {{rows}, {rows, columns}, {rows}}, Number<float>);
}

// Rows of three axes; rows that are themselves of two axes; rows chosen by numbers, and parts of rows.
TEST(Rows, OfMoreAxes) {
  const std::string kernel =
      "e = exp(x - broadcast<0, 1>(reduce_with_axis<maximum>(x, 2)))\n  y = e * broadcast<0, 1>(1 / reduce_with_axis<sum>(e, 2))\n}";
  for (const index_t columns : kLengths)
    for (const index_t rows : kRows) {
      ExpectAlike<float>("kernel k(x: f32[b, n, m]) -> (y: f32[b, n, m]) {\n  " + kernel, {{3, rows, columns}},
                         {{3, rows, columns}}, Number<float>);
      ExpectAlike<float>(
          "kernel k(x: f32[n, h, w]) -> (y: f32[n, h, w]) {\n  c = x - broadcast<0>(sumall_except_dim<0>(x) * 0.01)\n"
          "  y = c * broadcast<0>(rsqrt(sumall_except_dim<0>(c * c) + 1))\n}",
          {{rows, 3, columns}}, {{rows, 3, columns}}, Number<float>);
    }
}

// A launch that takes the row axes for one leaves the innermost as many rows as a kernel walks at a time, if they
// suffice.
TEST(Rows, OfMoreAxesGoTogether) {
  const Function function = Compile(graph::ParseText(
      "kernel k(x: f32[b, n, m]) -> (y: f32[b, n, m]) {\n  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 2)))\n"
      "  y = e * broadcast<0>(1 / reduce_with_axis<sum>(e, 2))\n}")[0]);
  const auto& step = std::get<runtime::KernelStep>(function.program().steps.at(0));
  float number = 0;
  const auto rows = [&](const Shape& shape, int threads) {
    const TensorRef x = TensorRef::Dense(&number, DType::kFloat32, shape);
    const runtime::LaunchPlan plan = runtime::PrepareLaunch(step, {x, x}, shape, threads);
    EXPECT_EQ(plan.extent[0] * plan.extent[1], shape[0] * shape[1]);
    return plan.extent[1];
  };
  EXPECT_EQ(rows({3, 20, 100}, 1), 4);
  EXPECT_EQ(rows({3, 7, 100}, 1), 3);
  EXPECT_EQ(rows({3, 20, 1000}, 1), 2);
  EXPECT_EQ(rows({3, 20, 10000}, 1), 1);
  EXPECT_EQ(rows({4, 20, 500}, 64), 4);
}

// With little arithmetic they have room for fewer.
TEST(Rows, OfLittleArithmeticAreFewer) {
  const Function function =
      Compile(graph::ParseText("kernel k(x: f32[b, n, m]) -> (y: f32[b, n, m]) {\n"
                               "  y = x - broadcast<0>(reduce_with_axis<maximum>(x, 2))\n}")[0]);
  const auto& step = std::get<runtime::KernelStep>(function.program().steps.at(0));
  float number = 0;
  const auto rows = [&](index_t columns) {
    const TensorRef x = TensorRef::Dense(&number, DType::kFloat32, {3, 20, columns});
    return runtime::PrepareLaunch(step, {x, x}, {3, 20, columns}, 1).extent[1];
  };
  EXPECT_EQ(rows(100), 4);
  EXPECT_EQ(rows(400), 2);
  EXPECT_EQ(rows(1000), 1);
}

TEST(Rows, AreAskedForSoFarAhead) {
  EXPECT_EQ(simd::rows_ahead<float>(64, 1, runtime::kPrefetchAhead), 32);
  EXPECT_EQ(simd::rows_ahead<float>(64, 4, runtime::kPrefetchAhead), 35);
  EXPECT_EQ(simd::rows_ahead<float>(64, 1, 4096), 16);
  EXPECT_EQ(simd::rows_ahead<float>(64, 4, 0), 0);
  EXPECT_EQ(simd::rows_ahead<double>(4096, 1, runtime::kPrefetchAhead), 1);
  EXPECT_EQ(simd::rows_ahead<float>(131073, 1, runtime::kPrefetchAhead), 0);
}

// An axis of extent 1 gives its place to the next one, which moves other operands than it does.
TEST(Rows, OfOneBatch) {
  for (const index_t batches : {1, 3})
    for (const index_t rows : {1, 5}) {
      const Shape pictures = {batches, rows, 4, 9};
      ExpectAlike<float>(
          "kernel k(x: f32[b, c, h, w], v: f32[c]) -> (y: f32[b, c, h, w]) {\n  y = x + broadcast<1>(v)\n}",
          {pictures, {rows}}, {pictures}, Number<float>);
      const Shape shape = {batches, rows, 100};
      ExpectAlike<float>(
          "kernel k(x: f32[b, n, m], v: f32[n]) -> (y: f32[b, n, m], s: f32[b, n]) {\n  s = reduce_with_axis<sum>(x * broadcast<1>(v, x), 2)\n"
          "  y = x * broadcast<1>(v, x) - broadcast<0>(s, x)\n}",
          {shape, {rows}}, {shape, {batches, rows}}, Number<float>);
    }
}

TEST(Rows, OfTables) {
  const std::string text =
      "kernel k(t: f32[v, m], place: f32[n]) -> (y: f32[n, m]) {\n  x = take(place, t)\n"
      "  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))\n  y = e * broadcast<0>(1 / reduce_with_axis<sum>(e, 1))\n}";
  for (const index_t columns : {index_t{33}, index_t{256}, index_t{2049}})
    for (const index_t rows : kRows)
      ExpectAlike<float>(text, {{6, columns}, {rows}}, {{rows, columns}},
                         [](std::size_t k) { return static_cast<float>(k * 2654435761u % 6); });
}

// NaN and infinity stay in their row.
TEST(Rows, KeepTheirNaNs) {
  for (const std::size_t place : {std::size_t{0}, std::size_t{101}, std::size_t{350}})
    for (const float odd : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()}) {
      std::string text = kOfRows[0];
      for (std::size_t at; (at = text.find('T')) != std::string::npos;) text.replace(at, 1, "f32");
      ExpectAlike<float>(text, {{5, 100}}, {{5, 100}},
                         [&](std::size_t k) { return k == place ? odd : Number<float>(k); });
    }
}

// A phase that stores one thing and reduces another: what is stored may take the place of what is reduced.
TEST(Rows, InPlaceOfWhatIsReduced) {
  const char* const text =
      "kernel k(x: f32[n, m], w: f32[n, m]) -> (y: f32[n, m], z: f32[n, m]) {\n"
      "  s = reduce_with_axis<maximum>(x, 1)\n  y = w * 2\n  z = w * broadcast<0>(s)\n}";
  for (const index_t columns : {index_t{5}, index_t{100}, index_t{1024}})
    for (const CompileOptions& route : Routes()) {
      const Function function = Compile(graph::ParseText(text)[0], route);
      const Shape shape = {3, columns};
      std::vector<float> x(Count(shape), 1), w(Count(shape), 5), z(Count(shape));
      const auto ref = [&shape](std::vector<float>& v) { return TensorRef::Dense(v.data(), DType::kFloat32, shape); };
      function({{ref(x), ref(w)}, {ref(x), ref(z)}, {}});
      EXPECT_EQ(z, w) << route.target;
      EXPECT_EQ(x, std::vector<float>(Count(shape), 10)) << route.target;
    }
}

// The result may be the operand.
TEST(Rows, InPlace) {
  std::string text = kOfRows[0];
  for (std::size_t at; (at = text.find('T')) != std::string::npos;) text.replace(at, 1, "f32");
  const Shape shape = {9, 100};
  for (const CompileOptions& route : Routes()) {
    const Function function = Compile(graph::ParseText(text)[0], route);
    std::vector<float> x(900), y(900);
    for (std::size_t k = 0; k < 900; ++k) x[k] = Number<float>(k);
    const TensorRef in = TensorRef::Dense(x.data(), DType::kFloat32, shape),
                    out = TensorRef::Dense(y.data(), DType::kFloat32, shape);
    function({{in}, {out}, {}});
    function({{in}, {in}, {}});
    EXPECT_EQ(x, y) << route.target;
  }
}

// Functions of one number for each row, before and behind what is reduced, have packets of rows.
TEST(Rows, FunctionsOfNumbers) {
  using drawn::Tensor;
  const auto of_row = [](const Tensor& x, index_t i, index_t columns) {
    double sum = 1;
    for (index_t k = 0; k < columns; ++k) sum += x.At({i, k}) * x.At({i, k});
    return sum;
  };
  for (const index_t columns : {16, 64}) {
    const std::string text = "kernel k(x: f32[n, " + std::to_string(columns) + "]) -> (y: f32[n, " +
                             std::to_string(columns) +
                             "]) {\n  a = cos(exp(reshape(slice(x, 1, 0, 1), n)))\n"
                             "  s = reduce_with_axis<sum>(x * x, 1) + 1\n"
                             "  y = x * broadcast<0>(a) + broadcast<0>(pow(s, 0.3) * a)\n}";
    drawn::ExpectEach(
        text, {300, columns}, {300, columns},
        [&](const Tensor& x, const Shape& at) {
          const double a = std::cos(std::exp(x.At({at[0], 0})));
          return x.At(at) * a + std::pow(of_row(x, at[0], columns), 0.3) * a;
        },
        1e-5);
  }
}

}  // namespace
}  // namespace umbra

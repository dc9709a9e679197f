// Fast arithmetic: fused products and sums where the target has them, right on NaN and infinity, apart from strict.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/host_targets.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

std::shared_ptr<const graph::Graph> Parsed(const std::string& text) { return graph::ParseText(text)[0]; }

// A sum of products within the bound that strict has, with one rounding less for each.
TEST(Fast, SumsWithinTheBound) {
  constexpr index_t kRows = 8, kColumns = 70, kInner = 100;
  const auto graph = Parsed("kernel k(a: f32[8, 100], b: f32[100, 70]) -> (y: f32[8, 70]) { y = dot(a, b) }");
  std::mt19937 random(3);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> a(kRows * kInner), b(kInner * kColumns), y(kRows * kColumns);
  for (auto* v : {&a, &b})
    for (float& x : *v) x = draw(random);
  const auto ref = [](std::vector<float>& v, index_t rows, index_t columns) {
    return runtime::TensorRef::Dense(v.data(), DType::kFloat32, {rows, columns});
  };
  CompileOptions options;
  options.math = Math::kFast;
  for (const std::string& target : HostTargets()) {
    options.target = target;
    Compile(graph, options)({{ref(a, kRows, kInner), ref(b, kInner, kColumns)}, {ref(y, kRows, kColumns)}, {}});
    for (index_t i = 0; i < kRows; ++i)
      for (index_t j = 0; j < kColumns; ++j) {
        double sum = 0, size = 0;
        for (index_t k = 0; k < kInner; ++k) {
          const double term = static_cast<double>(a[static_cast<std::size_t>(i * kInner + k)]) *
                              b[static_cast<std::size_t>(k * kColumns + j)];
          sum += term;
          size += std::fabs(term);
        }
        EXPECT_NEAR(y[static_cast<std::size_t>(i * kColumns + j)], sum, (kInner + 1) * size * 0x1p-24) << target;
      }
  }
}

TEST(Fast, KeepsNanInfinityZeroAndDenormals) {
  CompileOptions options;
  options.math = Math::kFast;
  const auto graph = Parsed(
      "kernel k(x: f32[n]) -> (y: f32[n], e: f32[n], t: f32[n]) { y = x * x - square(x) * 0.5\n  e = exp(x)\n  t = tanh(x) }");
  std::vector<float> x(40, 3), y(40), e(40), t(40);
  x[1] = std::numeric_limits<float>::infinity();
  x[2] = -x[1];
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[4] = -0.0f;
  x[5] = 1e-40f;
  const auto ref = [](std::vector<float>& v) { return runtime::TensorRef::Dense(v.data(), DType::kFloat32, {40}); };
  for (const std::string& target : HostTargets()) {
    options.target = target;
    Compile(graph, options)({{ref(x)}, {ref(y), ref(e), ref(t)}, {}});
    EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[3]) && std::isnan(e[3]) && std::isnan(t[3])) << target;
    EXPECT_EQ(e[1], x[1]) << target;
    EXPECT_EQ(e[2], 0) << target;
    EXPECT_EQ(t[1], 1) << target;
    EXPECT_EQ(t[2], -1) << target;
    EXPECT_TRUE(t[4] == 0 && std::signbit(t[4])) << target;
    EXPECT_EQ(t[5], x[5]) << target << ": denormals are not flushed";
    EXPECT_EQ(y[0], 4.5f) << target;
  }
}

// docs/numerics.md has the largest error of each over all arguments; this is a sample, through the compiler.
TEST(Fast, FunctionsStayWithinTwoUnitsInTheLastPlace) {
  struct Function {
    const char* text;
    double (*exact)(double);
    float first, last;
  };
  const Function functions[] = {{"exp", std::exp, -80, 80},     {"log", std::log, 0.01f, 100},
                                {"tanh", std::tanh, -9, 9},     {"sin", std::sin, -3e4f, 3e4f},
                                {"erf", std::erf, -3.5f, 3.5f}, {"cbrt", std::cbrt, -1e6f, 1e6f},
                                {"atan", std::atan, -20, 20},   {"erfc", std::erfc, -4, 8}};
  constexpr index_t kCount = 4001;
  std::vector<float> x(kCount), y(kCount);
  const auto ref = [](std::vector<float>& v) { return runtime::TensorRef::Dense(v.data(), DType::kFloat32, {kCount}); };
  CompileOptions options;
  options.math = Math::kFast;
  for (const auto& [text, exact, first, last] : functions) {
    for (index_t i = 0; i < kCount; ++i)
      x[static_cast<std::size_t>(i)] = first + (last - first) * static_cast<float>(i) / (kCount - 1);
    const auto graph = Parsed(std::string("kernel k(x: f32[n]) -> (y: f32[n]) { y = ") + text + "(x) }");
    for (const std::string& target : HostTargets()) {
      options.target = target;
      Compile(graph, options)({{ref(x)}, {ref(y)}, {}});
      double worst = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double meant = exact(static_cast<double>(x[i]));
        int exponent = 0;
        std::frexp(meant, &exponent);
        if (meant != 0) worst = std::max(worst, std::fabs(y[i] - meant) / std::ldexp(1.0, exponent - 24));
      }
      EXPECT_LT(worst, 2) << text << ", " << target;
    }
  }
}

// One kernel in two ways of computing, one after the other, from the same caches.
TEST(Fast, IsNotTakenForStrict) {
  const auto graph = Parsed("kernel k(x: f32[n], c: f32[n]) -> (y: f32[n]) { y = x * x + c }");
  std::vector<float> x(64, 1 + FLT_EPSILON), c(64, -1), y(64);
  const auto ref = [](std::vector<float>& v) { return runtime::TensorRef::Dense(v.data(), DType::kFloat32, {64}); };
  for (const std::string& target : HostTargets()) {
    for (const Math math : {Math::kStrict, Math::kFast, Math::kStrict}) {
      CompileOptions options;
      options.target = target;
      options.math = math;
      Compile(graph, options)({{ref(x), ref(c)}, {ref(y)}, {}});
      const bool fused = math == Math::kFast && (target == "avx2" || target == "avx512");
      EXPECT_EQ(y[0], fused ? std::fma(x[0], x[0], -1.0f) : x[0] * x[0] - 1) << target;
    }
  }
}

}  // namespace
}  // namespace umbra

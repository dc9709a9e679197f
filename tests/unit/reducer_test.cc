// Mean, argmax and argmin: eager, interpreted and compiled for every target, against loops written out here.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "compiler/codegen/source.h"
#include "compiler/driver/target.h"
#include "umbra/jit.h"
#include "umbra/tensor.h"

namespace umbra {
namespace {

template <typename T>
class Reducers : public testing::Test {};
using Types = testing::Types<float, double, std::int32_t, std::int64_t, half_t>;
TYPED_TEST_SUITE(Reducers, Types);

template <typename T>
index_t Position(const std::vector<T>& values, bool largest) {
  index_t at = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (std::isnan(static_cast<double>(values[k]))) return static_cast<index_t>(k);
    const T best = values[static_cast<std::size_t>(at)];
    if (largest ? values[k] > best : values[k] < best) at = static_cast<index_t>(k);
  }
  return at;
}

// Every route for `exp` of shape (4, kColumns) along an axis; `check` looks at the result.
template <typename Exp, typename T, typename Check>
void OnEveryRoute(const Exp& exp, TensorContainer<cpu, 1, T>* dst, const Check& check) {
  *dst = T(0);
  *dst = exp;
  check("eager");
  for (const auto target : codegen::kAllTargets) {
    if (!HostRuns(target)) continue;
    CompileOptions options;
    options.target = std::string(codegen::Name(target));
    jit::SetOptions(options);
    *dst = T(0);
    jit(*dst) = exp;
    check(options.target);
  }
  CompileOptions interpreted;
  interpreted.engine = Engine::kInterpreter;
  jit::SetOptions(interpreted);
  *dst = T(0);
  jit(*dst) = exp;
  check("interpreter");
  jit::SetOptions({});
}

// As reducers in mshadow's style are written.
struct largest {
  template <typename DType>
  static void Reduce(DType& dst, DType src) {
    if (src > dst) dst = src;
  }
  template <typename DType>
  static void SetInitValue(DType& initv) {
    initv = red::limits::MinValue<DType>();
  }
};

TYPED_TEST(Reducers, BeginWithLimits) {
  using T = TypeParam;
  const double least = std::is_same_v<T, half_t>         ? -65504.0
                       : std::is_same_v<T, std::int32_t> ? -2147483648.0
                       : std::is_same_v<T, std::int64_t> ? -9223372036854775808.0
                       : std::is_same_v<T, float>        ? -0x1.fffffep127
                                                         : -0x1.fffffffffffffp1023;
  EXPECT_EQ(static_cast<double>(red::limits::MinValue<T>()), least);
  EXPECT_EQ(red::limits::MaxValue<T>(),
            std::is_integral_v<T> ? T(-(red::limits::MinValue<T>() + T(1))) : T(-red::limits::MinValue<T>()));
  EXPECT_EQ(static_cast<double>(red::limits::NegInfValue<T>()), std::is_integral_v<T> ? least : -HUGE_VAL);
  EXPECT_EQ(static_cast<double>(red::limits::PosInfValue<T>()),
            std::is_integral_v<T> ? static_cast<double>(red::limits::MaxValue<T>()) : HUGE_VAL);
  EXPECT_EQ(static_cast<float>(red::limits::MinValue<bf16_t>()), -0x1.fep127f);
  EXPECT_EQ(red::limits::MinValue<std::uint8_t>(), 0);
  if constexpr (!std::is_same_v<T, half_t>) {
    TensorContainer<cpu, 2, T> x(Shape2(2, 5));
    x = T(-7);
    x[1][3] = T(-2);
    TensorContainer<cpu, 1, T> dst(Shape1(2));
    dst = reduce_with_axis<largest, false>(x, 1);
    EXPECT_EQ(dst[0], T(-7));
    EXPECT_EQ(dst[1], T(-2));
  }
}

TYPED_TEST(Reducers, AlongBothAxes) {
  using T = TypeParam;
  for (const index_t columns : {1, 7, 33, 100}) {
    constexpr index_t kRows = 5;
    TensorContainer<cpu, 2, T> x(Shape2(kRows, columns));
    std::mt19937 random(static_cast<unsigned>(columns));
    for (index_t r = 0; r < kRows; ++r)
      for (index_t c = 0; c < columns; ++c) x[r][c] = T(static_cast<int>(random() % 9) - 4);  // with ties
    if constexpr (!std::is_integral_v<T>) x[2][columns / 2] = T(NAN);
    for (const int axis : {0, 1}) {
      TensorContainer<cpu, 1, T> dst(Shape1(axis == 0 ? columns : kRows));
      const auto line = [&](index_t k) {
        std::vector<T> values;
        for (index_t i = 0; i < (axis == 0 ? kRows : columns); ++i) values.push_back(axis == 0 ? x[i][k] : x[k][i]);
        return values;
      };
      OnEveryRoute(reduce_with_axis<red::argmax>(x, axis), &dst, [&](const std::string& route) {
        for (index_t k = 0; k < dst.size(0); ++k)
          EXPECT_EQ(static_cast<index_t>(dst[k]), Position(line(k), true)) << route << ", axis " << axis << ", " << k;
      });
      OnEveryRoute(reduce_with_axis<red::minimum, true>(x, axis), &dst, [&](const std::string& route) {
        for (index_t k = 0; k < dst.size(0); ++k)
          EXPECT_EQ(static_cast<index_t>(dst[k]), Position(line(k), false)) << route << ", axis " << axis << ", " << k;
      });
      OnEveryRoute(reduce_with_axis<red::mean>(x, axis), &dst, [&](const std::string& route) {
        for (index_t k = 0; k < dst.size(0); ++k) {
          double sum = 0;
          for (const T v : line(k)) sum += static_cast<double>(v);
          const double mean = sum / static_cast<double>(line(k).size());
          if (std::isnan(mean)) EXPECT_TRUE(std::isnan(static_cast<double>(dst[k]))) << route;
          else if (std::is_integral_v<T>) EXPECT_EQ(static_cast<double>(dst[k]), std::trunc(mean)) << route;
          else EXPECT_NEAR(static_cast<double>(dst[k]), mean, sizeof(T) == 2 ? 2e-3 : 1e-5) << route;
        }
      });
    }
  }
}

TEST(Reducers, OfNothing) {
  TensorContainer<cpu, 2, float> x(Shape2(3, 0));
  TensorContainer<cpu, 1, float> dst(Shape1(3));
  OnEveryRoute(reduce_with_axis<red::argmax>(x, 1), &dst, [&](const std::string& route) {
    for (index_t k = 0; k < 3; ++k) EXPECT_EQ(dst[k], 0) << route;
  });
  OnEveryRoute(reduce_with_axis<red::mean>(x, 1), &dst, [&](const std::string& route) {
    for (index_t k = 0; k < 3; ++k) EXPECT_TRUE(std::isnan(dst[k])) << route;
  });
}

TEST(Reducers, InTheTextForm) {
  const auto graph = graph::ParseText(
      "kernel k(x: f32[n, m]) -> (p: i64[n], m: f32[n, 1]) {\n  p = reduce_with_axis<argmax>(x, 1)\n"
      "  m = reduce_keepdim<mean>(x, 1)\n}")[0];
  const float x[] = {1, 5, 2, 5, -3, -9, -1, -1};
  std::int64_t p[2];
  float m[2];
  Compile(graph, {})(
      {{runtime::TensorRef::Dense(const_cast<float*>(x), DType::kFloat32, {2, 4})},
       {runtime::TensorRef::Dense(p, DType::kInt64, {2}), runtime::TensorRef::Dense(m, DType::kFloat32, {2, 1})},
       {}});
  EXPECT_EQ(p[0], 1);
  EXPECT_EQ(p[1], 2);
  EXPECT_EQ(m[0], 3.25f);
  EXPECT_EQ(m[1], -3.5f);
}

}  // namespace
}  // namespace umbra

// The prelude's functions on a sample of all f32 bit patterns: error against f64 libm, special
// values, and the same bits in a scalar and in a packet.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/unit/cpu_guard.h"
#include "umbra/packet.h"

namespace umbra {
namespace {

using V = packet::Vector<float>;

template <typename Function, typename Reference>
void Check(const char* name, double bound, const Function& function, const Reference& reference) {
  double worst = 0;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4099) {
    const auto pattern = static_cast<std::uint32_t>(bits);
    float x;
    std::memcpy(&x, &pattern, 4);
    const float scalar = function(x);
    const V packet = function(simd::fill<V>(x));
    const float lane = packet[simd::kWidth<V> - 1];
    if (std::isnan(scalar) && std::isnan(lane)) {
      EXPECT_TRUE(std::isnan(reference(static_cast<double>(x)))) << name << "(" << x << ")";
      continue;
    }
    ASSERT_EQ(std::memcmp(&scalar, &lane, 4), 0) << name << "(" << x << "): " << scalar << " and " << lane;
    const double exact = reference(static_cast<double>(x));
    const auto rounded = static_cast<float>(exact);
    if (std::isinf(rounded) || std::fabs(rounded) < std::numeric_limits<float>::min()) {
      EXPECT_TRUE(scalar == rounded || std::fabs(scalar) == std::numeric_limits<float>::max() ||
                  std::fabs(static_cast<double>(scalar) - exact) < 3e-45)
          << name << "(" << x << "): " << scalar << ", expected " << rounded;
      continue;
    }
    const double ulp = std::nextafter(std::fabs(rounded), INFINITY) - std::fabs(rounded);
    worst = std::max(worst, std::fabs(static_cast<double>(scalar) - exact) / ulp);
  }
  EXPECT_LE(worst, bound) << name;
}

#define CHECK_FUNCTION(name, bound) \
  Check(#name, bound, [](auto x) { return simd::name(x); }, [](double x) { return std::name(x); })

TEST(Prelude, FunctionsOfOneOperand) {
  REQUIRE_CPU();
  CHECK_FUNCTION(exp, 1.1);
  CHECK_FUNCTION(expm1, 1.8);
  CHECK_FUNCTION(log, 1.4);
  CHECK_FUNCTION(log1p, 1.6);
  CHECK_FUNCTION(tanh, 1.7);
  CHECK_FUNCTION(sqrt, 0.5);
  CHECK_FUNCTION(floor, 0);
  CHECK_FUNCTION(ceil, 0);
  CHECK_FUNCTION(trunc, 0);
  CHECK_FUNCTION(rint, 0);
}

TEST(Prelude, HeadsTouchNothingBeyond) {
  REQUIRE_CPU();
  constexpr int n = simd::kWidth<V>;
  for (int lanes = 0; lanes <= n; ++lanes) {
    float from[n], to[n];
    for (int k = 0; k < n; ++k) from[k] = static_cast<float>(k + 1), to[k] = -1;
    const V v = simd::load_head<V>(from, lanes);
    for (int k = 0; k < n; ++k) EXPECT_EQ(v[k], k < lanes ? from[k] : 0.0f);
    simd::store_head(to, v, lanes);
    for (int k = 0; k < n; ++k) EXPECT_EQ(to[k], k < lanes ? from[k] : -1.0f);
  }
}

TEST(Prelude, IntegersNeverTrap) {
  const int smallest = std::numeric_limits<int>::min();
  EXPECT_EQ(simd::div(7, 0), 0);
  EXPECT_EQ(simd::div(smallest, -1), smallest);
  EXPECT_EQ(simd::cast<int>(3e9f), std::numeric_limits<int>::max());
  EXPECT_EQ(simd::cast<int>(-3e9f), smallest);
  EXPECT_EQ(simd::cast<int>(std::nanf("")), 0);
  EXPECT_EQ(simd::cast<int>(-1.9f), -1);
}

TEST(Prelude, ExtremesKeepNaN) {
  const float nan = std::nanf("");
  EXPECT_TRUE(std::isnan(simd::maximum(nan, 1.0f)));
  EXPECT_TRUE(std::isnan(simd::maximum(1.0f, nan)));
  EXPECT_TRUE(std::isnan(simd::minimum(nan, 1.0f)));
  EXPECT_TRUE(std::isnan(op::relu::Map(nan)));
  EXPECT_EQ(simd::maximum(2.0f, 1.0f), 2.0f);
}

}  // namespace
}  // namespace umbra

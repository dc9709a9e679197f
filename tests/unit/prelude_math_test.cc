// The prelude's functions on a sample of all f32 bit patterns: error against f64 libm, special
// values, and the same bits in a scalar and in a packet.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "tests/unit/cpu_guard.h"
#include "umbra/packet.h"

namespace umbra {
namespace {

template <typename E>
using Pattern = std::conditional_t<sizeof(E) == 4, std::uint32_t, std::uint64_t>;
// A type in which the reference is better by far.
template <typename E>
using Wide = std::conditional_t<sizeof(E) == 4, double, long double>;

using V = packet::Vector<float>;

template <typename E>
E FromPattern(Pattern<E> pattern) {
  E x;
  std::memcpy(&x, &pattern, sizeof x);
  return x;
}

// Error in units of the last place where the result is normal; elsewhere the result must be right.
template <typename E, typename Function, typename Reference>
double Error(const char* name, E x, E got, const Function&, const Reference& reference) {
  const Wide<E> exact = reference(static_cast<Wide<E>>(x));
  const E rounded = static_cast<E>(exact);
  if (std::isnan(got) || std::isnan(rounded)) {
    EXPECT_EQ(std::isnan(got), std::isnan(rounded)) << name << "(" << x << ")";
    return 0;
  }
  if (std::isinf(rounded) || std::fabs(rounded) < std::numeric_limits<E>::min()) {
    EXPECT_TRUE(got == rounded || std::fabs(got) == std::numeric_limits<E>::max() ||
                std::fabs(got - exact) < 3 * static_cast<Wide<E>>(std::numeric_limits<E>::denorm_min()))
        << name << "(" << x << "): " << got << ", expected " << rounded;
    return 0;
  }
  const E ulp = std::nextafter(std::fabs(rounded), std::numeric_limits<E>::infinity()) - std::fabs(rounded);
  return static_cast<double>(std::fabs(got - exact) / ulp);
}

template <typename E, typename Function, typename Reference>
void Check(const char* name, double bound, const Function& function, const Reference& reference) {
  typedef packet::Vector<E> Packet;
  double worst = 0;
  // About a million patterns, from the first to the last.
  const Pattern<E> step = (std::numeric_limits<Pattern<E>>::max() >> 20) + 3;
  Pattern<E> pattern = 0, before = 0;
  do {
    const E x = FromPattern<E>(pattern);
    const E scalar = function(x);
    const Packet packet = function(simd::fill<Packet>(x));
    const E lane = packet[simd::kWidth<Packet> - 1];
    const bool same = std::memcmp(&scalar, &lane, sizeof lane) == 0 || (std::isnan(scalar) && std::isnan(lane));
    ASSERT_TRUE(same) << name << "(" << x << "): " << scalar << " and " << lane;
    worst = std::max(worst, Error(name, x, scalar, function, reference));
    before = pattern;
    pattern += step;
  } while (pattern > before);
  EXPECT_LE(worst, bound) << name;
}

#define CHECK_FUNCTION(name, bound_f32, bound_f64)                                                     \
  Check<float>(#name, bound_f32, [](auto x) { return simd::name(x); }, [](double x) { return std::name(x); }); \
  Check<double>(#name " in f64", bound_f64, [](auto x) { return simd::name(x); }, [](long double x) { return std::name(x); })

TEST(Prelude, FunctionsOfOneOperand) {
  REQUIRE_CPU();
  CHECK_FUNCTION(exp, 1.1, 1);
  CHECK_FUNCTION(expm1, 1.8, 2);
  CHECK_FUNCTION(log, 1.4, 1);
  CHECK_FUNCTION(log1p, 1.6, 2);
  CHECK_FUNCTION(tanh, 1.7, 2);
  CHECK_FUNCTION(sqrt, 0.5, 0.5);
  CHECK_FUNCTION(floor, 0, 0);
  CHECK_FUNCTION(ceil, 0, 0);
  CHECK_FUNCTION(trunc, 0, 0);
  CHECK_FUNCTION(rint, 0, 0);
}

// glibc states up to 4 ULP for its vector functions; its scalars are better. Packets are checked alone.
template <typename E, typename Function, typename Reference>
void CheckLibrary(const char* name, const Function& function, const Reference& reference) {
  typedef packet::Vector<E> Packet;
  const E infinity = std::numeric_limits<E>::infinity();
  std::vector<E> arguments = {0, E(-0.0), 1, -1, 2, -2, infinity, -infinity, std::numeric_limits<E>::quiet_NaN(),
                              std::numeric_limits<E>::min(), -std::numeric_limits<E>::min(), E(1e-3), E(0.999999)};
  for (int k = -4000; k <= 4000; ++k) arguments.push_back(static_cast<E>(k) / 400);
  for (const E x : arguments) {
    const Packet result = function(simd::fill<Packet>(x));
    for (int k = 0; k < simd::kWidth<Packet>; ++k)
      EXPECT_LE(Error(name, x, result[k], function, reference), 4.5) << name << "(" << x << ") = " << result[k];
    if (x != 0) continue;
    EXPECT_EQ(std::signbit(result[0]), std::signbit(reference(static_cast<Wide<E>>(x)))) << name << "(" << x << ")";
  }
}

#define CHECK_LIBRARY(name)                                                                                    \
  CheckLibrary<float>(#name, [](auto x) { return simd::name(x); }, [](double x) { return std::name(x); });     \
  CheckLibrary<double>(#name " in f64", [](auto x) { return simd::name(x); }, [](long double x) { return std::name(x); })

TEST(Prelude, FunctionsOfTheLibrary) {
  REQUIRE_CPU();
  CHECK_LIBRARY(erf);
  CHECK_LIBRARY(sin);
  CHECK_LIBRARY(cos);
  CHECK_LIBRARY(tan);
  CHECK_LIBRARY(asin);
  CHECK_LIBRARY(acos);
  CHECK_LIBRARY(atan);
  CHECK_LIBRARY(sinh);
  CHECK_LIBRARY(cosh);
  CHECK_LIBRARY(cbrt);
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

// Quotients by one number, which kernels compute without dividing: the bits of a division.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "compiler/codegen/divisors.h"
#include "tests/unit/host_targets.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using runtime::TensorRef;

template <typename T>
class DivisorTest : public ::testing::Test {};
using DTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(DivisorTest, DTypes);

template <typename T>
using Pattern = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <typename T>
std::vector<T> Special() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           1,
                           3,
                           10,
                           T(1) / 3,
                           Limits::max(),
                           Limits::min(),
                           Limits::denorm_min(),
                           Limits::infinity(),
                           std::nextafter(T(1), T(0)),
                           std::nextafter(T(2), T(0)),
                           std::nextafter(Limits::min(), T(0))};
  // About where the steps of a quotient would leave the normal range.
  for (const int exponent :
       sizeof(T) == 4 ? std::vector{-102, -90, -30, 30, 90, 126} : std::vector{-970, -800, -200, 200, 800, 1020})
    for (const T factor : {std::nextafter(T(1), T(0)), T(1), T(1.2)}) values.push_back(std::ldexp(factor, exponent));
  const std::size_t count = values.size();
  for (std::size_t k = 0; k < count; ++k) values.push_back(-values[k]);
  values.push_back(Limits::quiet_NaN());
  return values;
}

// Of any exponent, and not.
template <typename T>
T Drawn(std::mt19937_64& random, bool any) {
  const auto pattern = static_cast<Pattern<T>>(random());
  T value;
  std::memcpy(&value, &pattern, sizeof value);
  int exponent;
  return any || !std::isfinite(value) ? value : std::frexp(value, &exponent);
}

// Dividends; many whose quotient by `divisor` is next to a number halfway between two.
template <typename T>
std::vector<T> Dividends(T divisor, std::mt19937_64& random) {
  std::vector<T> values = Special<T>();
  while (values.size() < 3000) values.push_back(Drawn<T>(random, values.size() % 2 == 0));
  while (values.size() < 6001) {
    const T quotient = std::fabs(Drawn<T>(random, false));
    const T half = (std::nextafter(quotient, T(2)) - quotient) / 2;
    const T near = std::fma(quotient, divisor, half * divisor);
    for (const T x : {near, std::nextafter(near, T(0)), std::nextafter(near, T(4))}) values.push_back(x);
  }
  return values;
}

template <typename T>
void ExpectQuotients(const Function& function, std::vector<T> x, T divisor, const std::vector<umbra_scalar>& scalars,
                     const std::string& what) {
  std::vector<T> y(x.size());
  const std::vector<index_t> shape = {static_cast<index_t>(x.size())};
  function({{TensorRef::Dense(x.data(), DTypeOf<T>::value, shape)},
            {TensorRef::Dense(y.data(), DTypeOf<T>::value, shape)},
            scalars});
  for (std::size_t k = 0; k < x.size(); ++k) {
    const T expected = x[k] / divisor;
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(y[k])) << what << ": " << x[k] << " / " << divisor << " is " << y[k];
    else
      ASSERT_EQ(std::memcmp(&expected, &y[k], sizeof(T)), 0)
          << what << ": " << x[k] << " / " << divisor << " is " << y[k] << ", expected " << expected;
  }
}

template <typename T>
Function Compiled(const std::string& divisor, const std::string& target, Math math) {
  const std::string type = sizeof(T) == 4 ? "f32" : "f64";
  CompileOptions options;
  options.target = target;
  options.math = math;
  return Compile(graph::ParseText("kernel k(x: " + type + "[n]" + (divisor == "s" ? ", s: " + type : "") +
                                  ") -> (y: " + type + "[n]) { y = x / " + divisor + " }")[0],
                 options);
}

TYPED_TEST(DivisorTest, OfACall) {
  using T = TypeParam;
  for (const std::string& target : HostTargets())
    for (const Math math : {Math::kStrict, Math::kFast}) {
      const Function function = Compiled<T>("s", target, math);
      std::mt19937_64 random(7);
      std::vector<T> divisors = Special<T>();
      while (divisors.size() < 300) divisors.push_back(Drawn<T>(random, divisors.size() % 4 == 0));
      for (const T divisor : divisors) {
        umbra_scalar scalar{};
        if constexpr (sizeof(T) == 4) scalar.f32 = divisor;
        else scalar.f64 = divisor;
        ExpectQuotients<T>(function, Dividends(divisor, random), divisor, {scalar}, target);
        for (const T alike : Special<T>())
          ExpectQuotients<T>(function, std::vector<T>(19, alike), divisor, {scalar}, target);
      }
    }
}

TYPED_TEST(DivisorTest, OfTheText) {
  using T = TypeParam;
  std::mt19937_64 random(8);
  for (const std::string& target : HostTargets())
    for (const std::string text :
         {"3", "255", "1.9999999", "0.7", "5.9999995", "1.556202667805867", "-3", "0.25", "0.000000000001"}) {
      const T divisor = static_cast<T>(std::stod(text));
      ExpectQuotients<T>(Compiled<T>("(" + text + ")", target, Math::kStrict), Dividends(divisor, random), divisor, {},
                         target);
    }
}

// For nearly all divisors the reciprocal as a sum of two is enough, and for which it is not is known: of these some
// dividend shows it.
TYPED_TEST(DivisorTest, KnownOnes) {
  using T = TypeParam;
  const auto is_known = [](T divisor) {
    return codegen::IsKnownDivisor(static_cast<double>(divisor), DTypeOf<T>::value);
  };
  for (const T divisor : {T(3), T(6), T(10), T(255), T(0.1), T(0.8), T(1e-6), T(100)})
    EXPECT_TRUE(is_known(divisor)) << divisor;
  EXPECT_FALSE(is_known(static_cast<T>(sizeof(T) == 4 ? 0x1.7ffffep+2 : 0x1.8e61bd8674b63p+0)));
  if constexpr (sizeof(T) == 4) {  // all dividends of one exponent
    int known = 0;
    std::mt19937_64 random(9);
    for (int k = 0; k < 20; ++k) {
      const float divisor = 1 + static_cast<float>(random() >> 41) * 0x1p-23f;
      float high = 1 / divisor;
      if (std::fma(-high, divisor, 1.0f) < 0) high = std::nextafter(high, 0.0f);
      const float low = std::fma(-high, divisor, 1.0f) / divisor;
      bool all = true;
      for (int bits = 0; bits < 1 << 23; ++bits) {
        const float x = 1 + static_cast<float>(bits) * 0x1p-23f;
        all = all && std::fma(x, high, x * low) == x / divisor;
      }
      known += is_known(divisor);
      EXPECT_EQ(is_known(divisor), all) << divisor;
    }
    EXPECT_GT(known, 10);
  }
}

}  // namespace
}  // namespace umbra

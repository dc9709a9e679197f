// The prelude's functions on a sample of all bit patterns: error against libm in a wider type, special
// values, and the same bits in a scalar and in packets of every width.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/sweep/networks.h"
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

// Sums with 1 and more are what they are with the exponential itself, which no processor takes long for.
template <typename E, typename Beside, typename Function>
void CheckBeside(const char* name, const Beside& beside, const Function& function) {
  typedef packet::Vector<E> Packet;
  const Pattern<E> step = (std::numeric_limits<Pattern<E>>::max() >> 20) + 3;
  Pattern<E> pattern = 0, before = 0;
  do {
    const E x = FromPattern<E>(pattern);
    const E one = beside(x), lane = beside(simd::fill<Packet>(x))[simd::kWidth<Packet> - 1];
    ASSERT_TRUE(std::isnan(x) || std::isinf(one) || std::isnormal(one)) << name << "(" << x << "): " << one;
    for (const E other : {E(1), E(2.5)}) {
      const E sum = other + function(x);
      ASSERT_TRUE(std::isnan(sum) ? std::isnan(other + one) && std::isnan(other + lane)
                                  : other + one == sum && other + lane == sum)
          << name << "(" << x << ")";
    }
    before = pattern;
    pattern += step;
  } while (pattern > before);
}

// The inverse error function, by Newton's method from the prelude's result.
template <typename T>
T InverseErf(T x) {
  T y = std::fabs(static_cast<T>(simd::erfinv(static_cast<double>(x))));
  if (!std::isfinite(y) || y < T(1e-100)) return std::copysign(y, x);
  const T size = std::fabs(x);
  for (int k = 0; k < 2; ++k) {
    const T off = size < T(0.5) ? std::erf(y) - size : (1 - size) - std::erfc(y);
    y -= off * std::exp(y * y) * T(0.886226925452758013649083741670572591L);
  }
  return std::copysign(y, x);
}

#define CHECK_FUNCTION(name, bound_f32, bound_f64)                                                    \
  Check<float>(                                                                                       \
      #name, bound_f32, [](auto x) { return simd::name(x); }, [](double x) { return std::name(x); }); \
  Check<double>(                                                                                      \
      #name " in f64", bound_f64, [](auto x) { return simd::name(x); }, [](long double x) { return std::name(x); })

TEST(Prelude, FunctionsOfOneOperand) {
  CHECK_FUNCTION(exp, 1.1, 1);
  CHECK_FUNCTION(expm1, 1.8, 2);
  CHECK_FUNCTION(log, 1, 1);
  CHECK_FUNCTION(log1p, 1.6, 2);
  CHECK_FUNCTION(tanh, 2.2, 2);
  CHECK_FUNCTION(exp2, 1.2, 1.2);
  CHECK_FUNCTION(log2, 1.7, 1.5);
  CHECK_FUNCTION(sin, 2.3, 2.1);
  CHECK_FUNCTION(cos, 2.3, 2.1);
  CHECK_FUNCTION(tan, 1.5, 1.5);
  CHECK_FUNCTION(asin, 2, 2);
  CHECK_FUNCTION(acos, 1.5, 1.5);
  CHECK_FUNCTION(atan, 2, 2);
  CHECK_FUNCTION(sinh, 1.2, 1.2);
  CHECK_FUNCTION(cosh, 1.2, 1.2);
  CHECK_FUNCTION(cbrt, 1, 1);
  CHECK_FUNCTION(erf, 1.6, 1.6);
  CHECK_FUNCTION(erfc, 2.7, 3.6);
  CHECK_FUNCTION(asinh, 2, 2);
  CHECK_FUNCTION(acosh, 1.5, 1.5);
  CHECK_FUNCTION(atanh, 1.5, 1.5);
  // Below -2 there are zeros, at which f64 has no more digits.
  const auto magnitude = [](auto x) { return simd::lgamma(simd::abs(x)); };
  Check<float>(
      "lgamma", 0.6, [](auto x) { return simd::lgamma(x); }, [](double x) { return std::lgamma(x); });
  Check<double>("lgamma in f64", 3.3, magnitude, [](long double x) { return std::lgamma(std::fabs(x)); });
  CHECK_FUNCTION(tgamma, 0.6, 7);
  Check<float>(
      "erfinv", 2, [](auto x) { return simd::erfinv(x); }, InverseErf<double>);
  Check<double>(
      "erfinv in f64", 2, [](auto x) { return simd::erfinv(x); }, InverseErf<long double>);
  CHECK_FUNCTION(sqrt, 0.5, 0.5);
  CHECK_FUNCTION(floor, 0, 0);
  CHECK_FUNCTION(ceil, 0, 0);
  CHECK_FUNCTION(trunc, 0, 0);
  CHECK_FUNCTION(round, 0, 0);
  CHECK_FUNCTION(rint, 0, 0);
}

// Of the table's expression as a whole, where it is a composite's; what is below `from` is taken for that.
template <typename E, typename Operator, typename Reference>
void CheckOperator(const char* name, E from, double bound, const Operator& function, const Reference& reference) {
  Check<E>(
      name, bound, [&](auto x) { return function(x < from ? simd::fill<decltype(x)>(from) : x); },
      [&](Wide<E> x) { return reference(x < from ? from : x); });
}

#define CHECK_OPERATOR_FROM(name, from_f32, bound_f32, from_f64, bound_f64)                \
  CheckOperator<float>(                                                                    \
      #name, from_f32, bound_f32, [](auto x) { return op::name::MapPacket(x); },           \
      [](double x) { return reference::name(x); });                                        \
  CheckOperator<double>(                                                                   \
      #name " in f64", from_f64, bound_f64, [](auto x) { return op::name::MapPacket(x); }, \
      [](long double x) { return reference::name(x); })
#define CHECK_OPERATOR(name, bound_f32, bound_f64) \
  CHECK_OPERATOR_FROM(name, -HUGE_VALF, bound_f32, -HUGE_VAL, bound_f64)

TEST(Prelude, ExponentialsBesideOne) {
  const auto check = [](auto zero) {
    typedef decltype(zero) E;
    CheckBeside<E>(
        "exp", [](auto x) { return simd::exp_beside_1(x); }, [](E x) { return simd::exp(x); });
    CheckBeside<E>(
        "exp2", [](auto x) { return simd::exp2_beside_1(x); }, [](E x) { return simd::exp2(x); });
  };
  check(0.0f);
  check(0.0);
}

TEST(Prelude, OperatorsOfNetworks) {
  CHECK_OPERATOR(rsqrt, 1.5, 1.5);
  CHECK_OPERATOR(log_sigmoid, 2.2, 2.2);
  CHECK_OPERATOR(softplus, 2.2, 2.2);
  CHECK_OPERATOR(silu, 2.8, 2.8);
  CHECK_OPERATOR(mish, 3.8, 3.8);
  CHECK_OPERATOR(gelu_erf, 2.7, 3.6);
  // The exponential overflows soon after these: where the result is subnormal, of gelu a little before.
  CHECK_OPERATOR_FROM(sigmoid, -88, 2.5, -709, 2.5);
  CHECK_OPERATOR_FROM(gelu, -10, 160, -21, 1800);
}

// From where e^-x overflows, or e^x has fewer digits, to where results are 0.
template <typename E>
void CheckTails(E first, E last) {
  const auto expect = [](const char* name, double bound, E x, E got, const auto& reference) {
    EXPECT_LE(Error(name, x, got, 0, reference), bound) << name << "(" << x << ")";
  };
  for (E x = first; x > last; x -= E(0.01)) {
    expect("silu", 2.8, x, op::silu::Map(x), reference::silu<Wide<E>>);
    expect("mish", 3.8, x, op::mish::Map(x), reference::mish<Wide<E>>);
  }
}

// From 0 to where results are 0, which few of all patterns are.
template <typename E>
void CheckNormalTails(E last, double bound_of_erfc, double bound_of_gelu) {
  double erfc = 0, gelu = 0;
  for (int k = 0; k < 300000; ++k) {
    const E x = last * (static_cast<E>(k) + E(0.37)) / E(300000);
    erfc = std::max(erfc, Error("erfc", x, simd::erfc(x), 0, [](Wide<E> y) { return std::erfc(y); }));
    gelu = std::max(gelu, Error("gelu_erf", -x, simd::gelu_erf(-x), 0, reference::gelu_erf<Wide<E>>));
  }
  EXPECT_LE(erfc, bound_of_erfc);
  EXPECT_LE(gelu, bound_of_gelu);
}

TEST(Prelude, OperatorsOfNetworksAreRightUntilTheyAreZero) {
  EXPECT_FLOAT_EQ(op::silu::Map(-90.5f), -4.4977775e-38f);
  CheckNormalTails(12.0f, 3, 3);
  CheckNormalTails(30.0, 3.9, 3.6);
  CheckTails(-86.0f, -130.0f);
  CheckTails(-700.0, -770.0);
}

template <typename E>
std::vector<E> Specials() {
  using Limits = std::numeric_limits<E>;
  std::vector<E> result = {0,
                           Limits::denorm_min(),
                           Limits::min() / 8,
                           Limits::min(),
                           Limits::epsilon(),
                           E(1e-3),
                           E(0.25),
                           std::nextafter(E(0.5), E(0)),
                           E(0.5),
                           E(0.75),
                           std::nextafter(E(1), E(0)),
                           1,
                           std::nextafter(E(1), E(2)),
                           E(1.5),
                           2,
                           E(2.5),
                           3,
                           8,
                           10,
                           88,
                           89,
                           90,
                           104,
                           127,
                           128,
                           149,
                           150,
                           709,
                           710,
                           711,
                           746,
                           1023,
                           1024,
                           1074,
                           1075,
                           8191,
                           8192,
                           8193,
                           1048575,
                           1048576,
                           E(1e22),
                           E(0x1.325b97ef32006p+84),
                           E(0x1.9b77d5a7bd71bp+84),  // nearly multiples of ln 2, by a sum of two
                           Limits::max() / 2,
                           Limits::max(),
                           Limits::infinity(),
                           Limits::quiet_NaN()};
  for (int k = 1; k <= 12; ++k) result.push_back(static_cast<E>(k * 0.78539816339744830962L));  // near zeros and poles
  for (std::size_t k = result.size(); k-- > 0;) result.push_back(-result[k]);
  return result;
}

// Like what libm gives, with the sign of a zero.
template <typename E>
void ExpectLike(const std::string& what, E got, Wide<E> exact, double bound) {
  EXPECT_LE(Error(what.c_str(), E(0), got, 0, [exact](Wide<E>) { return exact; }), bound) << what << " = " << got;
  const E rounded = static_cast<E>(exact);
  const bool has_sign = rounded == 0 || std::isinf(rounded);
  EXPECT_EQ(has_sign && std::signbit(got), has_sign && std::signbit(rounded)) << what << " = " << got;
}

template <typename E, typename Function, typename Reference>
void CheckSpecials(const char* name, const Function& function, const Reference& reference, double bound = 2) {
  for (const E x : Specials<E>())
    ExpectLike<E>(std::string(name) + "(" + std::to_string(x) + ")", function(x), reference(static_cast<Wide<E>>(x)),
                  bound);
}
template <typename E, typename Function, typename Reference>
void CheckSpecialPairs(const char* name, const Function& function, const Reference& reference) {
  for (const E x : Specials<E>())
    for (const E y : Specials<E>())
      ExpectLike<E>(std::string(name) + "(" + std::to_string(x) + ", " + std::to_string(y) + ")", function(x, y),
                    reference(static_cast<Wide<E>>(x), static_cast<Wide<E>>(y)), 2);
}

#define CHECK_SPECIALS(name)                                                               \
  CheckSpecials<float>(                                                                    \
      #name, [](auto x) { return simd::name(x); }, [](double x) { return std::name(x); }); \
  CheckSpecials<double>(                                                                   \
      #name " in f64", [](auto x) { return simd::name(x); }, [](long double x) { return std::name(x); })
#define CHECK_SPECIAL_PAIRS(name)                                                                                  \
  CheckSpecialPairs<float>(                                                                                        \
      #name, [](auto x, auto y) { return simd::name(x, y); }, [](double x, double y) { return std::name(x, y); }); \
  CheckSpecialPairs<double>(                                                                                       \
      #name " in f64", [](auto x, auto y) { return simd::name(x, y); },                                            \
      [](long double x, long double y) { return std::name(x, y); })

// It has a sign where it is 0.
template <typename T>
T ExactGelu(T x) {
  return std::copysign(std::isinf(x) && x < 0 ? T(0) : reference::gelu_erf(x), x);
}

// Next to the extremes, which are multiples of pi / 2.
template <typename E>
void CheckSinesNearOne() {
  EXPECT_EQ(simd::cos(E(0)), 1);
  EXPECT_EQ(simd::cos(-E(0)), 1);
  const E unit = std::numeric_limits<E>::epsilon() / 2;
  for (int k = 0; k < 4000; ++k)
    for (const E beside : {E(0), E(1e-7), E(1e-5), E(3e-4)}) {
      const E x = static_cast<E>(k * 1.57079632679489661923L) + beside;
      const E sine = std::fabs(simd::sin(x)), cosine = std::fabs(simd::cos(x)), most = std::max(sine, cosine);
      EXPECT_LE(most, 1) << x;
      EXPECT_GE(most, std::max(std::fabs(std::sin(x)), std::fabs(std::cos(x))) - 2 * unit) << x;
    }
}

TEST(Prelude, SinesAreAtMostOne) {
  CheckSinesNearOne<float>();
  CheckSinesNearOne<double>();
}

TEST(Prelude, SpecialValuesAreThoseOfLibm) {
  CHECK_SPECIALS(exp);
  CHECK_SPECIALS(expm1);
  CHECK_SPECIALS(exp2);
  CHECK_SPECIALS(log);
  CHECK_SPECIALS(log1p);
  CHECK_SPECIALS(log2);
  CHECK_SPECIALS(tanh);
  CHECK_SPECIALS(sin);
  CHECK_SPECIALS(cos);
  CHECK_SPECIALS(tan);
  CHECK_SPECIALS(asin);
  CHECK_SPECIALS(acos);
  CHECK_SPECIALS(atan);
  CHECK_SPECIALS(sinh);
  CHECK_SPECIALS(cosh);
  CHECK_SPECIALS(cbrt);
  CHECK_SPECIALS(erf);
  CHECK_SPECIALS(erfc);
  CheckSpecials<float>(
      "gelu_erf", [](auto x) { return simd::gelu_erf(x); }, ExactGelu<double>, 3);
  CheckSpecials<double>(
      "gelu_erf in f64", [](auto x) { return simd::gelu_erf(x); }, ExactGelu<long double>, 3.5);
  CHECK_SPECIALS(asinh);
  CHECK_SPECIALS(acosh);
  CHECK_SPECIALS(atanh);
  CheckSpecials<float>(
      "lgamma", [](auto x) { return simd::lgamma(x); }, [](double x) { return std::lgamma(x); });
  CheckSpecials<double>(
      "lgamma of |x| in f64", [](auto x) { return simd::lgamma(simd::abs(x)); },
      [](long double x) { return std::lgamma(std::fabs(x)); });
  CheckSpecials<float>(
      "tgamma", [](auto x) { return simd::tgamma(x); }, [](double x) { return std::tgamma(x); });
  CheckSpecials<double>(
      "tgamma in f64", [](auto x) { return simd::tgamma(x); }, [](long double x) { return std::tgamma(x); }, 6);
  CHECK_SPECIALS(logb);
  CHECK_SPECIALS(round);
  CHECK_SPECIAL_PAIRS(pow);
  CHECK_SPECIAL_PAIRS(atan2);
  CHECK_SPECIAL_PAIRS(fmod);
}

// Powers that are a step or two: within half a unit of the last place, or with two roundings; and special values.
TEST(Prelude, PowersOfAFewSteps) {
  const auto check = [](auto x, double exponent, double bound) {
    using E = decltype(x);
    const E got = simd::pow(x, static_cast<E>(exponent));
    ExpectLike<E>("pow(" + std::to_string(x) + ", " + std::to_string(exponent) + ")", got,
                  std::pow(static_cast<Wide<E>>(x), static_cast<Wide<E>>(exponent)), bound);
  };
  for (const auto& [exponent, bound] : {std::pair(2.0, 0.501),
                                        {3.0, 1.31},
                                        {4.0, 0.52},
                                        {-1.0, 0.501},
                                        {-2.0, 0.51},
                                        {0.5, 0.501},
                                        {-0.5, 1.5},
                                        {1.5, 1.31},
                                        {2.5, 1.37}}) {
    for (const float x : Specials<float>()) check(x, exponent, bound);
    for (const double x : Specials<double>()) check(x, exponent, bound);
    std::mt19937_64 random(7);
    for (int k = 0; k < 200000; ++k) {
      const double size =
          std::ldexp(1 + std::ldexp(static_cast<double>(random() >> 12), -52), static_cast<int>(random() % 60) - 30);
      check(static_cast<float>(size), exponent, bound);
      check(size, exponent, bound);
      if (exponent == std::floor(exponent)) check(static_cast<float>(-size), exponent, bound);
    }
    // Up to where powers leave the range, where what small parts lack is lost.
    for (const double most : {1.0, 1.03125, 1.2, 1.3, 1.5, 1.6875, 1.99999})
      for (int k = -1074; k < 1024; ++k) {
        const double size = std::ldexp(most, k);
        check(size, exponent, std::max(bound, 1.7));
        if (k >= -149 && k < 128) check(static_cast<float>(size), exponent, std::max(bound, 1.7));
      }
  }
}

// Patterns, pairs that are near each other, and special values: the bits of the C library.
template <typename E, typename Function, typename Reference>
void CheckExactly(const char* name, int count, const Function& function, const Reference& reference) {
  const auto check = [&](E x, E y) {
    const E got = function(x, y), exact = reference(x, y);
    ASSERT_TRUE(std::memcmp(&got, &exact, sizeof got) == 0 || (std::isnan(got) && std::isnan(exact)))
        << name << "(" << x << ", " << y << ") = " << got << ", expected " << exact;
  };
  for (const E x : Specials<E>())
    for (const E y : Specials<E>()) check(x, y);
  std::mt19937_64 random(3);
  for (int k = 0; k < count; ++k) {
    const E x = FromPattern<E>(static_cast<Pattern<E>>(random()));
    E y = FromPattern<E>(static_cast<Pattern<E>>(random()));
    if (k % 2 == 0) y = x / static_cast<E>(1 + random() % 1000000);
    check(x, y);
  }
}

TEST(Prelude, InverseErfAtItsEnds) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(simd::erfinv(1.0), infinity);
  EXPECT_EQ(simd::erfinv(-1.0f), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(simd::erfinv(1.5f)));
  EXPECT_TRUE(std::isnan(simd::erfinv(-infinity)));
  EXPECT_TRUE(std::isnan(simd::erfinv(std::nan(""))));
  EXPECT_TRUE(simd::erfinv(-0.0) == 0 && std::signbit(simd::erfinv(-0.0)));
  EXPECT_GT(simd::erfinv(std::numeric_limits<double>::denorm_min()), 0);
}

// Near its zeros below -2 the error of lgamma is that of what cancels there.
TEST(Prelude, LgammaOfNegativeNumbers) {
  std::mt19937_64 random(5);
  for (int k = 0; k < 100000; ++k) {
    const double x = -2 - static_cast<double>(random() % 1000000000) * (k % 2 == 0 ? 1e-8 : 1e-7);
    const long double exact = std::lgamma(static_cast<long double>(x));
    if (std::isinf(exact)) continue;
    const auto error = static_cast<double>(std::fabs(simd::lgamma(x) - exact));
    ASSERT_LE(error, 8 * 0x1p-52 * std::fmax(1.0, std::lgamma(-x))) << x;
  }
}

#define CHECK_EXACTLY(name, reference)                                                     \
  CheckExactly<float>(                                                                     \
      #name, 300000, [](auto x, [[maybe_unused]] auto y) { return simd::name; },           \
      [](float x, [[maybe_unused]] float y) { return std::reference; });                   \
  CheckExactly<double>(                                                                    \
      #name " in f64", 100000, [](auto x, [[maybe_unused]] auto y) { return simd::name; }, \
      [](double x, [[maybe_unused]] double y) { return std::reference; })
#define CHECK_EXACT(name) CHECK_EXACTLY(name, name)

TEST(Prelude, ExactFunctionsAreThoseOfLibm) {
  CHECK_EXACT(fmod(x, y));
  CHECK_EXACT(remainder(x, y));
  CHECK_EXACT(fma(x, y, -x));
  CHECK_EXACT(fma(x, y, y));
  CHECK_EXACT(copysign(x, y));
  CHECK_EXACT(nextafter(x, y));
  CHECK_EXACT(logb(x));
  CHECK_EXACTLY(ldexp(x, y), ldexp(x, simd::cast<int>(y)) * (y == y ? 1 : y));
  // Results with fewer digits are rounded once.
  CHECK_EXACTLY(ldexp(x, decltype(x)(-130)), ldexp(x, -130));
  CHECK_EXACTLY(ldexp(x, decltype(x)(-1030)), ldexp(x, -1030));
}

// Packets of `Packet` with special values of all kinds side by side.
template <typename Packet, typename Function>
void CheckLanes(const char* name, const Function& function) {
  typedef simd::Elem<Packet> E;
  const std::vector<E> specials = Specials<E>();
  for (std::size_t first = 0; first < specials.size(); ++first) {
    Packet x{}, y{};
    for (int k = 0; k < simd::kWidth<Packet>; ++k) {
      x[k] = specials[(first + static_cast<std::size_t>(k)) % specials.size()];
      y[k] = specials[(5 * first + 3 * static_cast<std::size_t>(k)) % specials.size()];
    }
    const Packet result = function(x, y);
    for (int k = 0; k < simd::kWidth<Packet>; ++k) {
      const E scalar = function(x[k], y[k]), lane = result[k];
      const bool same = std::memcmp(&scalar, &lane, sizeof lane) == 0 || (std::isnan(scalar) && std::isnan(lane));
      EXPECT_TRUE(same) << name << "(" << x[k] << ", " << y[k] << "), " << simd::kWidth<Packet> << " lanes: " << scalar
                        << " and " << lane;
    }
  }
}

#define CHECK_WIDTHS(name, call)                                               \
  {                                                                            \
    const auto f = [](auto x, [[maybe_unused]] auto y) { return simd::call; }; \
    CheckLanes<simd::f32x4>(name, f);                                          \
    CheckLanes<simd::f32x8>(name, f);                                          \
    CheckLanes<simd::f32x16>(name, f);                                         \
    CheckLanes<simd::f64x2>(name, f);                                          \
    CheckLanes<simd::f64x4>(name, f);                                          \
    CheckLanes<simd::f64x8>(name, f);                                          \
  }
#define CHECK_WIDTHS1(name) CHECK_WIDTHS(#name, name(x))
#define CHECK_WIDTHS2(name) CHECK_WIDTHS(#name, name(x, y))

TEST(Prelude, LanesDoNotSeeEachOther) {
  CHECK_WIDTHS1(exp);
  CHECK_WIDTHS1(expm1);
  CHECK_WIDTHS1(exp2);
  CHECK_WIDTHS1(log);
  CHECK_WIDTHS1(log1p);
  CHECK_WIDTHS1(log2);
  CHECK_WIDTHS1(tanh);
  CHECK_WIDTHS1(sin);
  CHECK_WIDTHS1(cos);
  CHECK_WIDTHS1(tan);
  CHECK_WIDTHS1(asin);
  CHECK_WIDTHS1(acos);
  CHECK_WIDTHS1(atan);
  CHECK_WIDTHS1(sinh);
  CHECK_WIDTHS1(cosh);
  CHECK_WIDTHS1(cbrt);
  CHECK_WIDTHS1(erf);
  CHECK_WIDTHS1(erfc);
  CHECK_WIDTHS1(gelu_erf);
  CHECK_WIDTHS1(erfinv);
  CHECK_WIDTHS1(asinh);
  CHECK_WIDTHS1(acosh);
  CHECK_WIDTHS1(atanh);
  CHECK_WIDTHS1(lgamma);
  CHECK_WIDTHS1(tgamma);
  CHECK_WIDTHS1(round);
  CHECK_WIDTHS1(sqrt);
  CHECK_WIDTHS2(pow);
  CHECK_WIDTHS2(atan2);
  CHECK_WIDTHS2(fmod);
  CHECK_WIDTHS2(remainder);
  CHECK_WIDTHS2(copysign);
  CHECK_WIDTHS2(nextafter);
  CHECK_WIDTHS2(ldexp);
  CHECK_WIDTHS1(logb);
  CHECK_WIDTHS("fma", fma(x, y, x));
}

template <typename P>
void CheckHeads(const char* what) {
  using E = simd::Elem<P>;
  constexpr int n = simd::kWidth<P>;
  for (int lanes = 0; lanes <= n; ++lanes) {
    E from[n], to[n];
    for (int k = 0; k < n; ++k) from[k] = static_cast<E>(k + 1), to[k] = static_cast<E>(-1);
    const P v = simd::load_head<P>(from, lanes);
    for (int k = 0; k < n; ++k) EXPECT_EQ(v[k], k < lanes ? from[k] : E(0)) << what;
    simd::store_head(to, v, lanes);
    for (int k = 0; k < n; ++k) EXPECT_EQ(to[k], k < lanes ? from[k] : static_cast<E>(-1)) << what;
  }
}

// Of packets as wide as registers, of what stands beside wider elements, and of several registers.
TEST(Prelude, HeadsTouchNothingBeyond) {
  constexpr int n = simd::kWidth<V>;
#define CHECK_HEADS(E)                             \
  CheckHeads<simd::packet<E, n / 2>>(#E ", half"); \
  CheckHeads<simd::packet<E, n>>(#E);              \
  CheckHeads<simd::packet<E, 2 * n>>(#E ", twice")
  CHECK_HEADS(signed char);
  CHECK_HEADS(unsigned char);
  CHECK_HEADS(short);
  CHECK_HEADS(int);
  CHECK_HEADS(long long);
  CHECK_HEADS(float);
  CHECK_HEADS(double);
#undef CHECK_HEADS
}

}  // namespace
}  // namespace umbra

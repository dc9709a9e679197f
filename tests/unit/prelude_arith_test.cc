// The prelude's quotients, integers and extremes: the bits of C++'s own operators, in a scalar and in packets.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "umbra/op.h"
#include "umbra/packet.h"
#include "umbra/prelude/spans.h"

namespace umbra {
namespace {

// What a compiler makes of the steps of a quotient: the sign of a remainder of zero, above all.
template <typename P>
void ExpectQuotients() {
  using E = simd::Elem<P>;
  std::mt19937_64 random(5);
  std::uniform_real_distribution<E> drawn(E(0.25), E(64));
  for (int pass = 0; pass < 2000; ++pass) {
    const E divisor = pass % 2 == 0 ? drawn(random) : static_cast<E>(1 + pass / 2);
    E x[simd::kWidth<P>], y[simd::kWidth<P>];
    for (E& value : x) {
      const E size = drawn(random);
      const E values[] = {size, -size, size * divisor,       std::floor(size) * -divisor,
                          E(0), -E(0), std::ldexp(size, 90), std::ldexp(size, -100)};
      value = values[random() % 8];
    }
    simd::store(y, simd::load<P>(x) / simd::Divisor<E>(divisor));
    for (int k = 0; k < simd::kWidth<P>; ++k) {
      const E expected = x[k] / divisor;
      ASSERT_EQ(std::memcmp(&y[k], &expected, sizeof(E)), 0)
          << x[k] << " / " << divisor << " is " << y[k] << ", expected " << expected;
    }
  }
}

// The same of a packet of divisors, some of which no reciprocal is of use for.
template <typename P>
void ExpectQuotientsByPackets() {
  using E = simd::Elem<P>;
  std::mt19937_64 random(6);
  std::uniform_real_distribution<E> drawn(E(0.25), E(64));
  for (int pass = 0; pass < 4000; ++pass) {
    E x[simd::kWidth<P>], by[simd::kWidth<P>], y[simd::kWidth<P>];
    for (int k = 0; k < simd::kWidth<P>; ++k) {
      const E size = drawn(random), divisor = drawn(random), nan = std::numeric_limits<E>::quiet_NaN(),
              inf = std::numeric_limits<E>::infinity();
      const E values[] = {size, -size, size * divisor,       std::floor(size) * -divisor,
                          E(0), -E(0), std::ldexp(size, 90), std::ldexp(size, -100),
                          inf,  nan};
      const E divisors[] = {
          E(0), -divisor, inf, nan, std::ldexp(divisor, 60), std::ldexp(divisor, -60), std::ldexp(divisor, -140)};
      x[k] = values[random() % (pass % 3 == 0 ? 10 : 6)];
      by[k] = pass % 4 == 0 && random() % 8 == 0 ? divisors[random() % 7] : divisor;
    }
    simd::store(y, simd::load<P>(x) / simd::Divisors<P>(simd::load<P>(by)));
    for (int k = 0; k < simd::kWidth<P>; ++k) {
      const E expected = x[k] / by[k];
      const bool same = std::memcmp(&y[k], &expected, sizeof(E)) == 0 || (std::isnan(y[k]) && std::isnan(expected));
      ASSERT_TRUE(same) << x[k] << " / " << by[k] << " is " << y[k] << ", expected " << expected;
    }
  }
}

TEST(PreludeArith, DivisorsGiveTheBitsOfADivision) {
  ExpectQuotients<packet::Vector<float>>();
  ExpectQuotients<packet::Vector<double>>();
  ExpectQuotientsByPackets<packet::Vector<float>>();
  ExpectQuotientsByPackets<packet::Vector<double>>();
}

TEST(PreludeArith, IntegersNeverTrap) {
  const int smallest = std::numeric_limits<int>::min();
  EXPECT_EQ(simd::div(7, 0), 0);
  EXPECT_EQ(simd::div(smallest, -1), smallest);
  EXPECT_EQ(simd::abs(smallest), smallest);
  EXPECT_EQ(simd::cast<int>(3e9f), std::numeric_limits<int>::max());
  EXPECT_EQ(simd::cast<int>(-3e9f), smallest);
  EXPECT_EQ(simd::cast<int>(std::nanf("")), 0);
  EXPECT_EQ(simd::cast<int>(-1.9f), -1);
}

TEST(PreludeArith, DoublesSaturateAsIntegers) {
  constexpr int least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  constexpr int lanes = simd::kRegisterBytes / 8;
  const std::pair<double, int> cases[] = {{1.9, 1},           {-1.9, -1},
                                          {most, most},       {most + 0.5, most},
                                          {most + 1.0, most}, {1e300, most},
                                          {least, least},     {least - 0.5, least},
                                          {-1e300, least},    {std::numeric_limits<double>::infinity(), most},
                                          {std::nan(""), 0}};
  for (const auto& [x, expected] : cases) {
    EXPECT_EQ(simd::cast<int>(x), expected) << x;
    const auto got = simd::cast<simd::packet<int, lanes>>(simd::fill<simd::packet<double, lanes>>(x));
    for (int k = 0; k < lanes; ++k) EXPECT_EQ(got[k], expected) << x;
  }
}

// Quotients of every two of many integers, their ends and multiples of each other among them.
template <typename E>
void ExpectIntegerQuotients() {
  typedef simd::packet<E, simd::kWidth<packet::Vector<float>>> P;
  constexpr int width = simd::kWidth<P>;
  constexpr E least = std::numeric_limits<E>::min(), most = std::numeric_limits<E>::max();
  std::vector<E> numbers = {0,     1,     -1,     2,    -2,       3,        -3,       7,     -10,       1000,
                            46340, 46341, -46341, most, most - 1, most / 2, most / 3, least, least + 1, least / 2};
  std::mt19937_64 random(5);
  while (numbers.size() < 400) {
    const E drawn = static_cast<E>(random()) >> random() % (8 * sizeof(E));
    numbers.push_back(drawn);
    if (numbers.size() % 5 == 0)
      numbers.push_back(static_cast<E>(static_cast<std::uint64_t>(drawn) * (random() % 1000) - random() % 3));
  }
  const std::size_t count = numbers.size() / width * width;
  E x[width], y[width], z[width];
  for (std::size_t k = 0; k < count; k += width)
    for (const E by : numbers) {
      const P a = simd::load<P>(&numbers[k]);
      simd::store(x, simd::div(a, simd::fill<P>(by)));
      simd::store(y, simd::div_by(a, by));
      simd::store(z, simd::div(simd::fill<P>(by), a));
      for (int j = 0; j < width; ++j) {
        const E of = numbers[k + static_cast<std::size_t>(j)];
        ASSERT_EQ(x[j], simd::div(of, by)) << of << " / " << by;
        ASSERT_EQ(y[j], simd::div(of, by)) << of << " / " << by;
        ASSERT_EQ(z[j], simd::div(by, of)) << by << " / " << of;
      }
    }
}

TEST(PreludeArith, IntegerQuotients) {
  ExpectIntegerQuotients<int>();
  ExpectIntegerQuotients<simd::i64>();
}

TEST(PreludeArith, ExtremesKeepNaN) {
  const float nan = std::nanf("");
  EXPECT_TRUE(std::isnan(simd::maximum(nan, 1.0f)));
  EXPECT_TRUE(std::isnan(simd::maximum(1.0f, nan)));
  EXPECT_TRUE(std::isnan(simd::minimum(nan, 1.0f)));
  EXPECT_TRUE(std::isnan(op::relu::Map(nan)));
  EXPECT_EQ(simd::maximum(2.0f, 1.0f), 2.0f);
}

// The quotient stays for as long as is said, below 0, too, and no walk stands still.
TEST(PreludeArith, QuotientsOfAWalk) {
  for (simd::i64 divisor = 1; divisor <= 9; ++divisor)
    for (simd::i64 begin = -30; begin <= 12; ++begin) {
      simd::QuotientWalk walk(divisor);
      for (simd::i64 at = begin, steps = 0; at < 40; at += (steps % 3 == 2 ? 1 : walk.left), ++steps) {
        ASSERT_EQ(walk.quotient_at(at), at / divisor) << at << " / " << divisor;
        ASSERT_GT(walk.left, 0);
        ASSERT_EQ((at + walk.left - 1) / divisor, at / divisor) << at << " / " << divisor << ", " << walk.left;
        if (at < -divisor) { ASSERT_GE(walk.left, (-at) % divisor); }
      }
    }
}

}  // namespace
}  // namespace umbra

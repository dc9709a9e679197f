#include "umbra/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tests/support/philox.h"
#include "tests/support/testing.h"

namespace umbra {
namespace {

TEST(Random, KnownAnswer) {  // of Random123's kat_vectors for philox4x32-10
  const auto zero = Philox(0, 0);
  EXPECT_EQ(zero[0], 0x6627e8d5u);
  EXPECT_EQ(zero[1], 0xe169c58du);
  EXPECT_EQ(zero[2], 0xbc57ac4cu);
  EXPECT_EQ(zero[3], 0x9b00dbd8u);
}

TEST(Random, Distributions) {
  Random<cpu> random(17), same(17), other(18);
  TensorContainer<cpu, 2> a(Shape2(100, 1003)), b(a.shape_), c(a.shape_);
  random.SampleUniform<2>(&a, -1, 3);
  same.SampleUniform<2>(&b, -1, 3);
  other.SampleUniform<2>(&c, -1, 3);
  double mean = 0, differs = 0;
  for (index_t i = 0; i < 100; ++i)
    for (index_t j = 0; j < 1003; ++j) {
      ASSERT_EQ(a[i][j], b[i][j]);
      ASSERT_TRUE(a[i][j] >= -1 && a[i][j] < 3);
      differs += a[i][j] != c[i][j];
      mean += static_cast<double>(a[i][j]) / 100300;
    }
  EXPECT_NEAR(mean, 1, 0.02);
  EXPECT_GT(differs, 100000);
  random.SampleGaussian<2>(&a, 2, 3);
  double m = 0, v = 0;
  for (index_t i = 0; i < 100; ++i)
    for (index_t j = 0; j < 1003; ++j) m += static_cast<double>(a[i][j]) / 100300;
  for (index_t i = 0; i < 100; ++i)
    for (index_t j = 0; j < 1003; ++j) v += std::pow(static_cast<double>(a[i][j]) - m, 2) / 100300;
  EXPECT_NEAR(m, 2, 0.05);
  EXPECT_NEAR(std::sqrt(v), 3, 0.05);
  b = random.uniform(b.shape_) * 2.0f;
  EXPECT_LT(b[0][0], 2.0f);
  TensorContainer<cpu, 1> deck((Shape1(52)));
  for (int i = 0; i < 52; ++i) deck[i] = static_cast<float>(i);
  random.Shuffle<1, float>(&deck);
  double sum = 0, moved = 0;
  for (int i = 0; i < 52; ++i) sum += deck[i], moved += deck[i] != static_cast<float>(i);
  EXPECT_EQ(sum, 51 * 26);
  EXPECT_GT(moved, 40);
}

// Every call draws numbers of its own, however many calls there were and of whatever kind.
TEST(Random, CallsAreIndependent) {
  Random<cpu> random(1);
  TensorContainer<cpu, 1> pair(Shape1(2)), normal(Shape1(8)), uniform(Shape1(64));
  std::set<float> seen;
  for (int k = 0; k < 200; ++k) {
    random.SampleGaussian(&pair);
    seen.insert(pair[0]);
    seen.insert(pair[1]);
  }
  EXPECT_EQ(seen.size(), 400u);
  random.Seed(5);
  EXPECT_EQ(random.GetSeed(), 5u);
  random.SampleGaussian(&normal);
  random.SampleUniform(&uniform);
  for (index_t g = 0; g < 8; ++g)
    for (index_t i = 0; i < 64; ++i)
      for (index_t j = 0; j < 64; ++j) {
        const double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(uniform[i])));
        EXPECT_GT(std::abs(static_cast<double>(normal[g]) -
                           radius * std::cos(6.283185307179586 * static_cast<double>(uniform[j]))),
                  1e-6);
      }
  const Shape<2> shape = Shape2(3, 5);
  TensorContainer<cpu, 2> difference(shape);
  difference = random.uniform(shape) - random.uniform(shape);
  EXPECT_NE(difference[1][1], 0.0f);
  const auto once = random.gaussian(shape, 1.0f, 2.0f);
  difference = once - once;
  EXPECT_EQ(difference[2][4], 0.0f);
  const auto a = random.uniform(shape);
  const auto b = random.uniform(Shape1(1000));  // another rank does not disturb the first
  TensorContainer<cpu, 2> kept(shape);
  TensorContainer<cpu, 1> many((Shape1(1000)));
  kept = F<op::lt>(a, scalar(0.5f)) * 2.0f;
  many = b * 1.0f;
  EXPECT_TRUE(kept[0][0] == 0.0f || kept[0][0] == 2.0f);
  random.SampleUniform(&kept);
  TensorContainer<cpu, 2> padded(shape, 0.0f, false), same(shape);
  Random<cpu> first(9), second(9);
  first.SampleUniform(&padded);
  second.SampleUniform(&same);
  for (index_t k = 0; k < 15; ++k) EXPECT_EQ(padded[k / 5][k % 5], same[k / 5][k % 5]);
}

TEST(Random, UniformKeepsItsBounds) {
  Random<cpu> random(3);
  TensorContainer<cpu, 1> t(Shape1(1000000));
  random.SampleUniform(&t, 1000.0f, 1001.0f);
  EXPECT_LT(*std::max_element(t.dptr_, t.dptr_ + 1000000), 1001.0f);
  EXPECT_GE(*std::min_element(t.dptr_, t.dptr_ + 1000000), 1000.0f);
  const float most = std::numeric_limits<float>::max();
  random.SampleUniform(&t, -most, most);
  EXPECT_TRUE(std::all_of(t.dptr_, t.dptr_ + 1000000, [](float x) { return std::isfinite(x); }));
  random.SampleUniform(&t, 2.0f, 2.0f);
  EXPECT_EQ(t[77], 2.0f);
  EXPECT_SAYS("two finite numbers in ascending order", random.SampleUniform(&t, 1.0f, 0.0f));
  Random<cpu, double> doubles(3);
  TensorContainer<cpu, 3, double> d(Shape3(2, 300, 301)), empty(Shape3(2, 0, 3));
  doubles.SampleUniform(&d);
  doubles.SampleGaussian(&empty);
  double mean = 0;
  for (index_t y = 0; y < 600; ++y)
    for (index_t x = 0; x < 301; ++x) mean += d.dptr_[y * d.stride_ + x] / (600 * 301);
  EXPECT_NEAR(mean, 0.5, 0.005);
  TensorContainer<cpu, 2> deck(Shape2(6, 2));
  int at_home[6] = {};
  for (int k = 0; k < 6000; ++k) {
    for (index_t y = 0; y < 6; ++y) deck[y] = static_cast<float>(y);
    random.Shuffle(static_cast<Tensor<cpu, 2>*>(&deck));
    for (index_t y = 0; y < 6; ++y) at_home[y] += deck[y][1] == static_cast<float>(y);
  }
  for (const int times : at_home) EXPECT_NEAR(times, 1000, 150);  // five standard deviations
}

}  // namespace
}  // namespace umbra

// Reductions over every axis, against sums in f64.
#include <algorithm>

#include "exp_common.h"

namespace umbra {
namespace {

using testing::kSizes;
using testing::Sample;

template <typename T>
class ExpReduce : public ::testing::Test {
 protected:
  // A tensor of small numbers, so that sums are exact in every dtype.
  static TensorContainer<cpu, 3, T> Make(const Shape<3>& shape) {
    TensorContainer<cpu, 3, T> t(shape);
    for (index_t i = 0; i < shape[0]; ++i)
      for (index_t j = 0; j < shape[1]; ++j)
        for (index_t k = 0; k < shape[2]; ++k) t[i][j][k] = Sample<T>((i * shape[1] + j) * shape[2] + k);
    return t;
  }
};
using DTypes = ::testing::Types<float, double, std::int32_t>;
TYPED_TEST_SUITE(ExpReduce, DTypes);

TYPED_TEST(ExpReduce, SumsAlongEveryAxis) {
  using T = TypeParam;
  for (const index_t n : kSizes) {
    const auto t = this->Make(Shape3(3, 5, n));
    TensorContainer<cpu, 2, T> s0(Shape2(5, n)), s1(Shape2(3, n)), s2(Shape2(3, 5));
    s0 = reduce_with_axis<red::sum>(t * 2, 0);
    s1 = reduce_with_axis<red::sum, false>(t, 1);
    s2 = reduce_with_axis<red::sum>(t, 2) + 1;
    TensorContainer<cpu, 3, T> k0(Shape3(1, 5, n)), k1(Shape3(3, 1, n)), k2(Shape3(3, 5, 1));
    k0 = reduce_keepdim<red::sum>(t * 2, 0);
    k1 = reduce_keepdim<red::sum>(t, 1);
    k2 = reduce_keepdim<red::sum, false>(t, 2) + 1;
    for (index_t j = 0; j < 5; ++j)
      for (index_t k = 0; k < n; ++k) {
        double sum = 0;
        for (index_t i = 0; i < 3; ++i) sum += 2 * static_cast<double>(t[i][j][k]);
        ASSERT_EQ(static_cast<double>(s0[j][k]), sum);
        ASSERT_EQ(k0[0][j][k], s0[j][k]);
      }
    for (index_t i = 0; i < 3; ++i) {
      for (index_t k = 0; k < n; ++k) {
        double sum = 0;
        for (index_t j = 0; j < 5; ++j) sum += static_cast<double>(t[i][j][k]);
        ASSERT_EQ(static_cast<double>(s1[i][k]), sum);
        ASSERT_EQ(k1[i][0][k], s1[i][k]);
      }
      for (index_t j = 0; j < 5; ++j) {
        double sum = 1;
        for (index_t k = 0; k < n; ++k) sum += static_cast<double>(t[i][j][k]);
        ASSERT_EQ(static_cast<double>(s2[i][j]), sum);
        ASSERT_EQ(k2[i][j][0], s2[i][j]);
      }
    }
  }
}

TYPED_TEST(ExpReduce, AllButOneAxis) {
  using T = TypeParam;
  for (const index_t n : kSizes) {
    const auto t = this->Make(Shape3(3, 5, n));
    TensorContainer<cpu, 1, T> v0(Shape1(3), T(1)), v1(Shape1(5), T(1)), v2(Shape1(n), T(1));
    v0 += sumall_except_dim<0>(t);
    v1 = sumall_except_dim<1>(t * 2) * 3;
    v2 -= sumall_except_dim<2>(t);
    double w0[3] = {}, w1[5] = {}, w2[64] = {};
    for (index_t i = 0; i < 3; ++i)
      for (index_t j = 0; j < 5; ++j)
        for (index_t k = 0; k < n; ++k) {
          w0[i] += static_cast<double>(t[i][j][k]);
          w1[j] += static_cast<double>(t[i][j][k]);
          w2[k] += static_cast<double>(t[i][j][k]);
        }
    for (index_t i = 0; i < 3; ++i) ASSERT_EQ(static_cast<double>(v0[i]), 1 + w0[i]);
    for (index_t j = 0; j < 5; ++j) ASSERT_EQ(static_cast<double>(v1[j]), 6 * w1[j]);
    for (index_t k = 0; k < n; ++k) ASSERT_EQ(static_cast<double>(v2[k]), 1 - w2[k]);

    TensorContainer<cpu, 1, T> m1(Shape1(5), T(7)), m2(Shape1(n), T(7));
    MapReduceKeepHighDim<sv::saveto, red::sum, 1>(&m1, t * 2, T(3));
    MapReduceKeepLowest<sv::plusto, red::maximum>(&m2, t);
    for (index_t j = 0; j < 5; ++j) ASSERT_EQ(m1[j], v1[j]);
    for (index_t k = 0; k < n; ++k) {
      T largest = t[0][0][k];
      for (index_t i = 0; i < 15; ++i) largest = std::max(largest, t[i / 5][i % 5][k]);
      ASSERT_EQ(m2[k], 7 + largest);
    }
  }
}

TYPED_TEST(ExpReduce, OtherReducers) {
  using T = TypeParam;
  for (const index_t n : kSizes) {
    const auto t = this->Make(Shape3(2, 3, n));
    TensorContainer<cpu, 2, T> high(Shape2(2, 3)), low(Shape2(2, 3)), product(Shape2(2, n));
    high = reduce_with_axis<red::maximum>(t, 2);
    low = reduce_with_axis<red::minimum>(t, 2);
    product = reduce_with_axis<red::product>(t, 1);
    for (index_t i = 0; i < 2; ++i) {
      for (index_t j = 0; j < 3; ++j) {
        ASSERT_EQ(high[i][j], *std::max_element(&t[i][j][0], &t[i][j][0] + n));
        ASSERT_EQ(low[i][j], *std::min_element(&t[i][j][0], &t[i][j][0] + n));
      }
      for (index_t k = 0; k < n; ++k) ASSERT_EQ(product[i][k], t[i][0][k] * t[i][1][k] * t[i][2][k]);
    }
  }
}

TYPED_TEST(ExpReduce, OfAVector) {
  using T = TypeParam;
  for (const index_t n : kSizes) {
    TensorContainer<cpu, 1, T> v(Shape1(n)), s(Shape1(1));
    double sum = 0;
    for (index_t i = 0; i < n; ++i) sum += static_cast<double>(v[i] = Sample<T>(i));
    s = reduce_with_axis<red::sum>(v, 0);
    EXPECT_EQ(static_cast<double>(s[0]), sum);
    s = reduce_keepdim<red::sum>(v, 0) * 2;
    EXPECT_EQ(static_cast<double>(s[0]), 2 * sum);
  }
}

TEST(ExpReduceFloat, FourAxesEachInTurn) {
  TensorContainer<cpu, 4> t(Shape4(2, 3, 4, 17));
  for (index_t i = 0; i < 24; ++i)
    for (index_t l = 0; l < 17; ++l) t[i / 12][i / 4 % 3][i % 4][l] = Sample<float>(i * 17 + l);
  TensorContainer<cpu, 3> r1(Shape3(2, 4, 17)), r2(Shape3(2, 3, 17));
  r1 = reduce_with_axis<red::sum>(t, 1);
  r2 = reduce_with_axis<red::sum>(t, 2);
  TensorContainer<cpu, 1> v1(Shape1(3)), v2(Shape1(4));
  v1 = sumall_except_dim<1>(t);
  v2 = sumall_except_dim<2>(t);
  for (index_t i = 0; i < 2; ++i)
    for (index_t l = 0; l < 17; ++l) {
      for (index_t k = 0; k < 4; ++k) ASSERT_EQ(r1[i][k][l], t[i][0][k][l] + t[i][1][k][l] + t[i][2][k][l]);
      for (index_t j = 0; j < 3; ++j)
        ASSERT_EQ(r2[i][j][l], t[i][j][0][l] + t[i][j][1][l] + t[i][j][2][l] + t[i][j][3][l]);
    }
  float sum1 = 0, sum2 = 0;
  for (index_t i = 0; i < 2; ++i)
    for (index_t l = 0; l < 17; ++l) {
      for (index_t k = 0; k < 4; ++k) sum1 += t[i][2][k][l];
      for (index_t j = 0; j < 3; ++j) sum2 += t[i][j][3][l];
    }
  EXPECT_EQ(v1[2], sum1);
  EXPECT_EQ(v2[3], sum2);
}

TEST(ExpReduceFloat, MillionsStayAccurate) {
  constexpr index_t n = 1 << 20;
  TensorContainer<cpu, 2> row(Shape2(1, n)), column(Shape2(n, 1));
  double sum = 0;
  for (index_t i = 0; i < n; ++i) {
    row[0][i] = column[i][0] = static_cast<float>(1.0 / static_cast<double>(1 + i % 977));
    sum += static_cast<double>(row[0][i]);
  }
  TensorContainer<cpu, 1> s(Shape1(1));
  const double tolerance = sum * 1.2e-7;  // one rounding of f32 and little more
  s = reduce_with_axis<red::sum>(row, 1);
  EXPECT_NEAR(static_cast<double>(s[0]), sum, tolerance);
  s = reduce_with_axis<red::sum>(column, 0);
  EXPECT_NEAR(static_cast<double>(s[0]), sum, tolerance);
  s = sum_rows(column);
  EXPECT_NEAR(static_cast<double>(s[0]), sum, tolerance);
  s = sumall_except_dim<0>(row);
  EXPECT_NEAR(static_cast<double>(s[0]), sum, tolerance);
}

TEST(ExpReduceFloat, BlocksHaveNoSeams) {
  // Lengths around the blocks of accumulation; every element counts once.
  for (const index_t n : {63, 64, 65, 127, 128, 129, 255, 257, 1023, 1025, 4095, 4096, 4097, 8191}) {
    TensorContainer<cpu, 2> row(Shape2(2, n), 1.0f), column(Shape2(n, 5), 1.0f);
    TensorContainer<cpu, 1> s(Shape1(2)), c(Shape1(5));
    s = reduce_with_axis<red::sum>(row, 1);
    EXPECT_EQ(s[1], static_cast<float>(n));
    c = sum_rows(column);
    EXPECT_EQ(c[4], static_cast<float>(n));
    row[1][n - 1] = 9;
    s = reduce_with_axis<red::maximum>(row, 1);
    EXPECT_EQ(s[0], 1);
    EXPECT_EQ(s[1], 9);
    row = -1.0f;
    s = reduce_with_axis<red::maximum>(row, 1);
    EXPECT_EQ(s[1], -1);
  }
}

TEST(ExpReduceFloat, TailLanesDoNotLeakIn) {
  // exp(0) is 1: lanes beyond the row must not be summed.
  for (const index_t n : kSizes) {
    TensorContainer<cpu, 2> t(Shape2(3, n), 0.0f);
    TensorContainer<cpu, 1> s(Shape1(3));
    s = reduce_with_axis<red::sum>(F<op::exp>(t), 1);
    EXPECT_EQ(s[2], static_cast<float>(n));
  }
}

TEST(ExpReduceFloat, NanAndInfinity) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  TensorContainer<cpu, 2> t(Shape2(4, 33), 1.0f);
  t[0][32] = NAN;
  t[1][0] = -inf;
  t[2][17] = inf;
  TensorContainer<cpu, 1> s(Shape1(4));
  s = reduce_with_axis<red::maximum>(t, 1);
  EXPECT_TRUE(std::isnan(s[0]));
  EXPECT_EQ(s[1], 1);
  EXPECT_EQ(s[2], inf);
  s = reduce_with_axis<red::minimum>(t, 1);
  EXPECT_TRUE(std::isnan(s[0]));
  EXPECT_EQ(s[1], -inf);
  s = reduce_with_axis<red::sum>(t, 1);
  EXPECT_TRUE(std::isnan(s[0]));
  EXPECT_EQ(s[2], inf);
  EXPECT_EQ(s[3], 33);
}

TEST(ExpReduceFloat, OfNothing) {
  TensorContainer<cpu, 2> none(Shape2(3, 0));
  TensorContainer<cpu, 1> s(Shape1(3), 7.0f), empty(Shape1(0));
  s = reduce_with_axis<red::sum>(none, 1);
  EXPECT_EQ(s[2], 0);
  s = reduce_with_axis<red::maximum>(none, 1);
  EXPECT_EQ(s[2], -std::numeric_limits<float>::infinity());
  s = sumall_except_dim<0>(none);
  EXPECT_EQ(s[0], 0);
  empty = reduce_with_axis<red::sum>(none, 0);
  TensorContainer<cpu, 2> no_rows(Shape2(0, 3));
  s = sum_rows(no_rows) + 1.0f;
  EXPECT_EQ(s[2], 1);
}

TEST(ExpReduceFloat, Softmax) {
  for (const index_t n : kSizes) {
    const Shape<2> shape = Shape2(3, n);
    TensorContainer<cpu, 2> t(shape), e(shape);
    TensorContainer<cpu, 1> m(Shape1(3)), s(Shape1(3));
    for (index_t y = 0; y < 3; ++y)
      for (index_t x = 0; x < n; ++x) t[y][x] = Sample<float>(y * n + x) * 0.1f;
    m = reduce_with_axis<red::maximum>(t, 1);
    e = F<op::exp>(t - broadcast<0>(m, shape));
    s = reduce_with_axis<red::sum>(e, 1);
    e /= broadcast<0>(s, shape);
    for (index_t y = 0; y < 3; ++y) {
      double sum = 0;
      for (index_t x = 0; x < n; ++x) sum += std::exp(static_cast<double>(t[y][x]));
      for (index_t x = 0; x < n; ++x)
        ASSERT_NEAR(static_cast<double>(e[y][x]), std::exp(static_cast<double>(t[y][x])) / sum, 1e-6);
    }
  }
}

struct CountPositive {
  template <typename T>
  static void Reduce(T& a, T b) {
    a = a + (b > T(0) ? T(1) : T(0));
  }
  template <typename T>
  static void SetInitValue(T& total) {
    total = T(0);
  }
};
TEST(ExpReduceFloat, ReducersOfTheUser) {
  TensorContainer<cpu, 2> t(Shape2(3, 33), 1.0f);
  t[1][5] = -1;
  TensorContainer<cpu, 1> s(Shape1(3));
  s = reduce_with_axis<CountPositive>(t, 1);
  EXPECT_EQ(s[0], 33);
  EXPECT_EQ(s[1], 32);
  t[2][7] = 4;
  s = reduce_except_dim<0, red::product>(t * 2.0f / 2.0f);
  EXPECT_EQ(s[1], -1);
  EXPECT_EQ(s[2], 4);
  TensorContainer<cpu, 1> columns(Shape1(33));
  columns = reduce_except_dim<1, red::maximum>(t);
  EXPECT_EQ(columns[7], 4);
  EXPECT_EQ(columns[5], 1);
}

TEST(ExpReduceFloat, BadAxesThrow) {
  const TensorContainer<cpu, 2> t(Shape2(3, 4), 1.0f);
  EXPECT_SAYS("reduction over axis 2 of shape (3,4): its axes are 0 to 1", reduce_with_axis<red::sum>(t, 2));
  EXPECT_SAYS("axis -1", reduce_keepdim<red::sum>(t, -1));
  TensorContainer<cpu, 1> s(Shape1(4));
  EXPECT_SAYS("shape (4,) from an expression of shape (3,)", s = reduce_with_axis<red::sum>(t, 1));
}

}  // namespace
}  // namespace umbra

// Elementwise assignment: every node, saver, dtype, row length and layout; overlap and bad input.
#include "exp_common.h"

namespace umbra {
namespace {

using testing::kSizes;
using testing::Padded;
using testing::Sample;

template <typename DType>
class ExpMap : public ::testing::Test {};
using DTypes = ::testing::Types<float, double, std::int32_t>;
TYPED_TEST_SUITE(ExpMap, DTypes);

// Runs `body(dst, a, b, rows, columns)` over layouts and checks `expected(old, a, b)` afterwards.
template <typename T, typename Body, typename Expected>
void ForLayouts(const Body& body, const Expected& expected) {
  for (const index_t columns : kSizes)
    for (const index_t gap : {0, 1, 7})
      for (const index_t offset : {0, 1}) {
        const Padded<T> dst(3, columns, gap, offset), a(3, columns, 0), b(3, columns, gap + 2);
        a.tensor() *= T(3);
        b.tensor() += T(60);
        const TensorContainer<cpu, 2, T> old(TensorContainer<cpu, 2, T>(Shape2(3, columns), T(0)));
        Copy<2, T>(old, dst.tensor());
        Tensor<cpu, 2, T> out = dst.tensor();
        body(out, a.tensor(), b.tensor());
        for (index_t y = 0; y < 3; ++y)
          for (index_t x = 0; x < columns; ++x)
            ASSERT_EQ(out[y][x], T(expected(old[y][x], a.tensor()[y][x], b.tensor()[y][x])))
                << "at " << y << ", " << x << " of rows of " << columns << ", gap " << gap;
        ASSERT_TRUE(dst.GuardsHold()) << "rows of " << columns << ", gap " << gap;
      }
}

TYPED_TEST(ExpMap, Savers) {
  using T = TypeParam;
  ForLayouts<T>([](auto& d, auto a, auto b) { d = a + b; }, [](T, T a, T b) { return a + b; });
  ForLayouts<T>([](auto& d, auto a, auto b) { d += a * b; }, [](T d, T a, T b) { return d + a * b; });
  ForLayouts<T>([](auto& d, auto a, auto b) { d -= a - b; }, [](T d, T a, T b) { return d - (a - b); });
  ForLayouts<T>([](auto& d, auto a, auto) { d *= a; }, [](T d, T a, T) { return d * a; });
  ForLayouts<T>([](auto& d, auto, auto b) { d /= b; }, [](T d, T, T b) { return d / b; });
}

TYPED_TEST(ExpMap, Numbers) {
  using T = TypeParam;
  ForLayouts<T>([](auto& d, auto, auto) { d = T(4); }, [](T, T, T) { return T(4); });
  ForLayouts<T>([](auto& d, auto, auto) { d += 4; }, [](T d, T, T) { return d + 4; });
  ForLayouts<T>([](auto& d, auto, auto) { d -= 4; }, [](T d, T, T) { return d - 4; });
  ForLayouts<T>([](auto& d, auto, auto) { d *= 4; }, [](T d, T, T) { return d * 4; });
  ForLayouts<T>([](auto& d, auto, auto) { d /= 4; }, [](T d, T, T) { return d / 4; });
  ForLayouts<T>([](auto& d, auto a, auto b) { d = 2 * a - b / 4 + 1; }, [](T, T a, T b) { return 2 * a - b / 4 + 1; });
  ForLayouts<T>([](auto& d, auto, auto b) { d = 100 / b; }, [](T, T, T b) { return 100 / b; });
  ForLayouts<T>([](auto& d, auto a, auto) { d = a * scalar(T(5)) + scalar(T(1)) * a; },
                [](T, T a, T) { return a * 5 + a; });
  ForLayouts<T>([](auto& d, auto a, auto b) { d = -a * 3 - -(b + 1); }, [](T, T a, T b) { return -a * 3 + (b + 1); });
}

TYPED_TEST(ExpMap, TernaryTakesNumbers) {
  using T = TypeParam;
  ForLayouts<T>([](auto& d, auto a, auto b) { d = F<op::select>(F<op::lt>(a, b), a, scalar(T(7))); },
                [](T, T a, T b) { return a < b ? a : T(7); });
  ForLayouts<T>([](auto& d, auto a, auto b) { d = F<op::select>(scalar(T(0)), a, b); }, [](T, T, T b) { return b; });
}

TYPED_TEST(ExpMap, ComparisonsAreOneOrZero) {
  using T = TypeParam;
  ForLayouts<T>([](auto& d, auto a, auto b) { d = F<op::ge>(a, b); }, [](T, T a, T b) { return a >= b; });
  ForLayouts<T>([](auto& d, auto a, auto) { d = F<op::ne>(a, scalar(T(0))); }, [](T, T a, T) { return a != 0; });
}

TYPED_TEST(ExpMap, InPlace) {
  using T = TypeParam;
  ForLayouts<T>([](auto& d, auto, auto) { d = d * 2 + d; }, [](T d, T, T) { return d * 2 + d; });
  ForLayouts<T>([](auto& d, auto, auto) { d += d; }, [](T d, T, T) { return d + d; });
}

TYPED_TEST(ExpMap, Conversions) {
  using T = TypeParam;
  for (const index_t n : kSizes) {
    TensorContainer<cpu, 1, T> source(Shape1(n));
    for (index_t i = 0; i < n; ++i) source[i] = Sample<T>(i);
    TensorContainer<cpu, 1> f(Shape1(n));
    TensorContainer<cpu, 1, double> d(Shape1(n));
    TensorContainer<cpu, 1, std::int32_t> k(Shape1(n));
    f = tcast<float>(source) + 0.5f;
    d = tcast<double>(source * 2);
    k = tcast<std::int32_t>(source) * 3;
    for (index_t i = 0; i < n; ++i) {
      EXPECT_EQ(f[i], static_cast<float>(source[i]) + 0.5f);
      EXPECT_EQ(d[i], static_cast<double>(source[i]) * 2);
      EXPECT_EQ(k[i], static_cast<int>(source[i]) * 3);
    }
  }
}

TEST(ExpMapFloat, ConversionToIntegersSaturates) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const float given[] = {0.9f, -0.9f, 3e9f, -3e9f, inf, -inf, NAN, 2147483520.0f, -2147483648.0f};
  const int wanted[] = {0, 0, 2147483647, -2147483647 - 1, 2147483647, -2147483647 - 1, 0, 2147483520, -2147483647 - 1};
  // All at the front of a packet, and all in a tail.
  for (const index_t repeat : {1, 5}) {
    TensorContainer<cpu, 1> source(Shape1(9 * repeat));
    TensorContainer<cpu, 1, std::int32_t> result(Shape1(9 * repeat));
    for (index_t i = 0; i < 9 * repeat; ++i) source[i] = given[i % 9];
    result = tcast<std::int32_t>(source);
    for (index_t i = 0; i < 9 * repeat; ++i) EXPECT_EQ(result[i], wanted[i % 9]) << given[i % 9];
  }
}

TEST(ExpMapFloat, IntegerDivisionNeverTraps) {
  TensorContainer<cpu, 1, std::int32_t> a(Shape1(19)), b(Shape1(19)), c(Shape1(19));
  for (index_t i = 0; i < 19; ++i) {
    a[i] = i % 3 == 0 ? -2147483647 - 1 : 7;
    b[i] = i % 2 == 0 ? -1 : 0;
  }
  c = a / b;
  for (index_t i = 0; i < 19; ++i) EXPECT_EQ(c[i], b[i] == 0 ? 0 : a[i] == 7 ? -7 : -2147483647 - 1);
}

TEST(ExpMapFloat, NanAndInfinityPass) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (const index_t n : {3, 16, 33}) {
    TensorContainer<cpu, 1> a(Shape1(n), 1.0f), b(Shape1(n));
    a[0] = NAN;
    a[1] = inf;
    a[n - 1] = -inf;
    b = F<op::maximum>(a, 0.0f);
    EXPECT_TRUE(std::isnan(b[0]));
    EXPECT_EQ(b[1], inf);
    EXPECT_EQ(b[n - 1], 0);
    b = F<op::minimum>(0, a);
    EXPECT_TRUE(std::isnan(b[0]));
    EXPECT_EQ(b[n - 1], -inf);
    b = F<op::eq>(a, a);
    EXPECT_EQ(b[0], 0);
    EXPECT_EQ(b[1], 1);
  }
}

TEST(ExpMapFloat, BroadcastsVectors) {
  for (const index_t n : kSizes) {
    const Shape<4> shape = Shape4(2, 3, 5, n);
    TensorContainer<cpu, 4> dst(shape), one(shape, 1.0f);
    TensorContainer<cpu, 1> v0(Shape1(2)), v1(Shape1(3)), v2(Shape1(5)), v3(Shape1(n)), s(Shape1(1));
    for (auto* v : {&v0, &v1, &v2, &v3})
      for (index_t i = 0; i < v->shape_[0]; ++i) (*v)[i] = Sample<float>(i + v->shape_[0]);
    s[0] = 1000;
    dst = broadcast<0>(v0, shape) + broadcast<1>(v1 * 2, shape) + broadcast<2>(v2, shape) * one +
          broadcast<3>(v3, shape) + broadcast_scalar(s, shape);
    for (index_t i = 0; i < 2; ++i)
      for (index_t j = 0; j < 3; ++j)
        for (index_t k = 0; k < 5; ++k)
          for (index_t l = 0; l < n; ++l) ASSERT_EQ(dst[i][j][k][l], v0[i] + v1[j] * 2 + v2[k] + v3[l] + 1000);
  }
  TensorContainer<cpu, 1> v(Shape1(4), 1.0f);
  EXPECT_SAYS("broadcast<1>: a vector of 4 elements does not fit shape (4,5), whose axis 1 has 5",
              broadcast<1>(v, Shape2(4, 5)));
  EXPECT_SAYS("broadcast_scalar: the source has 4 elements", broadcast_scalar(v, Shape2(4, 5)));
}

TEST(ExpMapFloat, Transposes) {
  for (const index_t n : kSizes) {
    const Padded<float> a(3, n, 2), b(n, 3, 1);
    TensorContainer<cpu, 2> dst(Shape2(n, 3), 1.0f);
    dst += a.tensor().T() * 2 + b.tensor();
    for (index_t y = 0; y < n; ++y)
      for (index_t x = 0; x < 3; ++x) ASSERT_EQ(dst[y][x], 1 + a.tensor()[x][y] * 2 + b.tensor()[y][x]);
    dst = a.tensor().T();
    EXPECT_EQ(dst[n - 1][2], a.tensor()[2][n - 1]);
  }
}

TEST(ExpMapFloat, ExpressionsMayBeKept) {
  TensorContainer<cpu, 1> a(Shape1(17), 1.0f), dst(Shape1(17));
  const auto kept = [&] {
    const auto inner = a * 2.0f;
    return F<op::maximum>(inner + a, scalar(0.5f)) + inner;
  }();
  a = 3.0f;
  dst = kept;
  EXPECT_EQ(dst[16], 15);
}

TEST(ExpMapFloat, SubTensorsAsDestinationAndOperand) {
  TensorContainer<cpu, 3> a(Shape3(4, 3, 17), 1.0f);
  a[1] = a[0] + a[2] * 4;
  a[3][2] = a[1][0] * 2;
  a.Slice(2, 3) += 10;
  EXPECT_EQ(a[0][2][16], 1);
  EXPECT_EQ(a[1][2][16], 5);
  EXPECT_EQ(a[2][0][0], 11);
  EXPECT_EQ(a[3][1][16], 1);
  EXPECT_EQ(a[3][2][16], 10);
}

TEST(ExpMapFloat, OverlapThatChangesTheResultThrows) {
  TensorContainer<cpu, 2> a(Shape2(5, 5), 1.0f);
  TensorContainer<cpu, 1> v(Shape1(9), 1.0f);
  EXPECT_SAYS("overlaps an operand", a = a.T() * 1.0f);
  EXPECT_SAYS("overlaps an operand", v.Slice(1, 9) = v.Slice(0, 8) * 1.0f);
  EXPECT_SAYS("overlaps an operand", a = a + broadcast<0>(a[2], a.shape_));
  EXPECT_SAYS("overlaps an operand", a[0] = sum_rows(a));
  EXPECT_SAYS("shape", v = reduce_keepdim<red::sum>(v * 1.0f, 0) + v.Slice(0, 1));
  // The same memory, other rows: 3 x 3 with pitch 4 against pitch 5.
  float data[32] = {};
  const Tensor<cpu, 2> narrow(data, Shape2(3, 3), 4, nullptr), wide(data, Shape2(3, 3), 5, nullptr);
  EXPECT_SAYS("overlaps an operand", Tensor<cpu, 2>(narrow) += wide);
  const Tensor<cpu, 1, double> d(reinterpret_cast<double*>(a.dptr_), Shape1(5));
  EXPECT_SAYS("overlaps an operand", a[0] = tcast<float>(d));
}

TEST(ExpMapFloat, RowsBetweenRowsDoNotOverlap) {
  float data[3 * 12];
  for (int i = 0; i < 36; ++i) data[i] = static_cast<float>(i);
  Tensor<cpu, 2> left(data, Shape2(3, 5), 12, nullptr);
  const Tensor<cpu, 2> right(data + 5, Shape2(3, 5), 12, nullptr);
  left = right * 2.0f;
  for (int y = 0; y < 3; ++y) {
    EXPECT_EQ(left[y][4], 2 * static_cast<float>(y * 12 + 9));
    EXPECT_EQ(right[y][0], static_cast<float>(y * 12 + 5));
  }
  const Tensor<cpu, 2> shifted(data + 4, Shape2(3, 5), 12, nullptr);
  EXPECT_SAYS("overlaps an operand", left = shifted * 2.0f);
  const Tensor<cpu, 2> around(data + 9, Shape2(2, 5), 12, nullptr);
  EXPECT_SAYS("overlaps an operand", left.Slice(0, 2) = around * 2.0f);
}

TEST(ExpMapFloat, ShapesThatDifferThrow) {
  TensorContainer<cpu, 2> a(Shape2(3, 4), 1.0f), b(Shape2(4, 3), 1.0f);
  EXPECT_SAYS("shape (3,4) from an expression of shape (4,3)", a = b * 1.0f);
  EXPECT_SAYS("plus: the shapes of the operands differ: (3,4) and (4,3)", a = a + b);
  EXPECT_SAYS("maximum: the shapes", a = F<op::maximum>(a, b));
  EXPECT_SAYS("select: the shapes", a = F<op::select>(a, a, b));
  EXPECT_SAYS("(4,3) and (3,4)", a = a.T() + a);
}

TEST(ExpMapFloat, EmptyTensorsAreNoOperationAndNotNumbers) {
  TensorContainer<cpu, 2> none(Shape2(0, 4)), rows(Shape2(3, 0)), some(Shape2(3, 4), 1.0f);
  none = none + 1.0f;
  rows += rows * 2.0f;
  Tensor<cpu, 2> nothing(nullptr, Shape2(0, 4));
  nothing = 3.0f;
  EXPECT_SAYS("shape (3,4) from an expression of shape (0,4)", some = none + 1.0f);
  EXPECT_SAYS("plus: the shapes of the operands differ: (0,4) and (3,4)", some = none + some);
  EXPECT_SAYS("mul: the shapes of the operands differ: (3,0) and (3,4)", some = rows * some);
  EXPECT_EQ(some[2][3], 1);
}

TEST(ExpMapFloat, TensorsThatCannotBeWalkedThrow) {
  alignas(8) float data[64] = {};
  TensorContainer<cpu, 2> a(Shape2(3, 4), 1.0f);
  Tensor<cpu, 2> null(nullptr, Shape2(3, 4));
  EXPECT_SAYS("shape (3,4) has no memory", null = 1.0f);
  EXPECT_SAYS("has no memory", a = null * 1.0f);
  Tensor<cpu, 2> short_rows(data, Shape2(3, 4), 3, nullptr);
  EXPECT_SAYS("stride 3", a = short_rows * 1.0f);
  EXPECT_SAYS("stride 3", short_rows = 1.0f);
  auto* odd = reinterpret_cast<float*>(reinterpret_cast<char*>(data) + 2);
  EXPECT_SAYS("not aligned to their elements of 4 bytes", a = Tensor<cpu, 2>(odd, Shape2(3, 4)) * 1.0f);
  EXPECT_SAYS("negative extent: shape (-3,4)", a = Tensor<cpu, 2>(data, Shape2(-3, 4)) * 1.0f);
}

TEST(ExpMapFloat, FiveAxes) {
  TensorContainer<cpu, 5> a(Shape5(2, 3, 2, 3, 17), 2.0f), b(Shape5(2, 3, 2, 3, 17));
  b = a * a - 1.0f;
  EXPECT_EQ(b[1][2][1][2][16], 3);
}

}  // namespace
}  // namespace umbra

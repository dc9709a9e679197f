// Operators: their values, the same bits in packets, tails and scalars, and the user's own.
#include <functional>
#include <vector>

#include "exp_common.h"

// Operators as a user writes them, outside of Umbra's namespaces.
namespace user {
UMBRA_OP(maxoftwo, (a, b), a > b ? a : b)
UMBRA_OP(maxbyselect, (a, b), select(a > b, a, b))
UMBRA_OP(halve, (a), 0.5 * a)
UMBRA_OP(swish, (a), a* sigmoid(a) + 0.1)
UMBRA_OP(clip, (a, low, high), minimum(maximum(a, low), high))
UMBRA_OP(mix, (a, b, c, d), (a + b) / 3 - c * d)
UMBRA_OP(leaky, (a), a > 0 ? a : 0.01 * a)
UMBRA_OP(inside, (a, b), a > -b && a < b)
UMBRA_OP(both, (a), select(a >= 1 && !(a == 3), 1, 0))
UMBRA_OP(constant, (a), 2.5)
UMBRA_OP(wave, (a), sin(a) * exp(-abs(a)))
}  // namespace user
UMBRA_OP(global_square, (a), a* a)

namespace umbra {
namespace {

using testing::kSizes;
using testing::SameBits;

template <typename T>
std::vector<T> Points() {
  constexpr T inf = std::numeric_limits<T>::infinity();
  std::vector<T> points = {0,
                           T(-0.0),
                           1,
                           -1,
                           T(0.5),
                           T(-0.5),
                           3,
                           -3,
                           inf,
                           -inf,
                           std::numeric_limits<T>::quiet_NaN(),
                           std::numeric_limits<T>::denorm_min(),
                           -std::numeric_limits<T>::denorm_min(),
                           std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::max(),
                           std::numeric_limits<T>::lowest(),
                           T(88.5),
                           T(-88.5),
                           T(710),
                           T(-745),
                           T(1e-8),
                           T(1e10)};
  for (int i = -60; i <= 60; ++i) points.push_back(static_cast<T>(i) * T(0.173));
  return points;
}

// The operator on vectors of every length: each element has the bits of the scalar Map.
template <typename OP, int arity, typename T>
void ExpectOneMeaning(const char* name) {
  const std::vector<T> points = Points<T>();
  for (const index_t n : kSizes) {
    TensorContainer<cpu, 1, T> x(Shape1(n)), y(Shape1(n)), z(Shape1(n)), result(Shape1(n));
    for (std::size_t first = 0; first < points.size(); first += static_cast<std::size_t>(n)) {
      for (index_t i = 0; i < n; ++i) {
        const std::size_t at = first + static_cast<std::size_t>(i);
        x[i] = points[at % points.size()];
        y[i] = points[(5 * at + 3) % points.size()];
        z[i] = points[(11 * at + 7) % points.size()];
      }
      if constexpr (arity == 1) result = F<OP>(x);
      else if constexpr (arity == 2) result = F<OP>(x, y);
      else result = F<OP>(x, y, z);
      for (index_t i = 0; i < n; ++i) {
        T wanted;
        if constexpr (arity == 1) wanted = OP::Map(x[i]);
        else if constexpr (arity == 2) wanted = OP::Map(x[i], y[i]);
        else wanted = OP::Map(x[i], y[i], z[i]);
        ASSERT_TRUE(SameBits(result[i], wanted)) << name << "(" << x[i] << ", " << y[i] << ", " << z[i] << ") of " << n
                                                 << ": " << result[i] << " and " << wanted;
      }
    }
  }
}
template <typename OP, int arity, bool of_floats>
void ExpectOneMeaningOfFloats(const char* name) {
  if constexpr (of_floats) {
    ExpectOneMeaning<OP, arity, float>(name);
    ExpectOneMeaning<OP, arity, double>(name);
  }
}

TEST(ExpOp, PacketsTailsAndScalarsHaveTheSameBits) {
  [[maybe_unused]] constexpr bool kFloat = true, kNumeric = true, kInteger = false, kBool = false, kAny = false;
#define UMBRA_PRIMITIVE(name, arity, dtypes, ...) ExpectOneMeaningOfFloats<op::name, arity, dtypes>(#name);
#include "umbra/ops.def"
#define CHECK_UNARY(name) ExpectOneMeaningOfFloats<op::name, 1, true>(#name)
  CHECK_UNARY(identity);
  CHECK_UNARY(square);
  CHECK_UNARY(rsqrt);
  CHECK_UNARY(relu);
  CHECK_UNARY(sigmoid);
  CHECK_UNARY(softplus);
  CHECK_UNARY(silu);
  CHECK_UNARY(gelu);
  CHECK_UNARY(gelu_erf);
  CHECK_UNARY(mish);
  CHECK_UNARY(log_sigmoid);
  CHECK_UNARY(sign);
  ExpectOneMeaningOfFloats<op::clip, 3, true>("clip");
#undef CHECK_UNARY
  ExpectOneMeaning<user::swish, 1, float>("swish f32");
  ExpectOneMeaning<user::leaky, 1, double>("leaky f64");
  ExpectOneMeaning<user::wave, 1, float>("wave f32");
}

// Against libm in f64, within a few units in the last place.
template <typename OP, typename T>
void ExpectNear(const char* name, double (*reference)(double), double ulps) {
  for (int i = -200; i <= 200; ++i) {
    const T x = static_cast<T>(i) * T(0.0437);
    const double wanted = reference(static_cast<double>(x));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(OP::Map(x))) << name << "(" << x << ")";
      continue;
    }
    const double tolerance = ulps * std::abs(wanted) * static_cast<double>(std::numeric_limits<T>::epsilon());
    if (std::isinf(wanted)) EXPECT_EQ(OP::Map(x), static_cast<T>(wanted)) << name << "(" << x << ")";
    else EXPECT_NEAR(static_cast<double>(OP::Map(x)), wanted, tolerance) << name << "(" << x << ")";
  }
}
template <typename OP>
void ExpectNearInBoth(const char* name, double (*reference)(double), double ulps = 2) {
  ExpectNear<OP, float>(name, reference, ulps);
  ExpectNear<OP, double>(name, reference, ulps);
}

TEST(ExpOp, ValuesAreThoseOfLibm) {
  ExpectNearInBoth<op::abs>("abs", std::fabs, 0);
  ExpectNearInBoth<op::sqrt>("sqrt", std::sqrt);
  ExpectNearInBoth<op::floor>("floor", std::floor, 0);
  ExpectNearInBoth<op::ceil>("ceil", std::ceil, 0);
  ExpectNearInBoth<op::trunc>("trunc", std::trunc, 0);
  ExpectNearInBoth<op::rint>("rint", std::rint, 0);
  ExpectNearInBoth<op::round>("round", std::round, 0);
  ExpectNearInBoth<op::exp>("exp", std::exp);
  ExpectNearInBoth<op::expm1>("expm1", std::expm1, 3);
  ExpectNearInBoth<op::log>("log", std::log);
  ExpectNearInBoth<op::log1p>("log1p", std::log1p, 3);
  ExpectNearInBoth<op::tanh>("tanh", std::tanh);
  ExpectNearInBoth<op::erf>("erf", std::erf);
  ExpectNearInBoth<op::sin>("sin", std::sin);
  ExpectNearInBoth<op::cos>("cos", std::cos);
  ExpectNearInBoth<op::tan>("tan", std::tan);
  ExpectNearInBoth<op::asin>("asin", std::asin);
  ExpectNearInBoth<op::acos>("acos", std::acos);
  ExpectNearInBoth<op::atan>("atan", std::atan);
  ExpectNearInBoth<op::sinh>("sinh", std::sinh);
  ExpectNearInBoth<op::cosh>("cosh", std::cosh);
  ExpectNearInBoth<op::exp2>("exp2", std::exp2);
  ExpectNearInBoth<op::log2>("log2", std::log2);
  ExpectNearInBoth<op::erfc>("erfc", std::erfc);
  ExpectNearInBoth<op::cbrt>("cbrt", std::cbrt);
  ExpectNearInBoth<op::sigmoid>(
      "sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 4);
  ExpectNearInBoth<op::silu>(
      "silu", [](double x) { return x / (1 + std::exp(-x)); }, 4);
  ExpectNearInBoth<op::mish>(
      "mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, 4);
  ExpectNearInBoth<op::log_sigmoid>(
      "log_sigmoid", [](double x) { return -std::log1p(std::exp(-x)); }, 4);
  ExpectNear<op::gelu_erf, float>(
      "gelu_erf", [](double x) { return 0.5 * x * std::erfc(x * -std::sqrt(0.5)); }, 4);
  ExpectNearInBoth<op::relu>(
      "relu", [](double x) { return x > 0 ? x : 0; }, 0);
  ExpectNearInBoth<op::sign>(
      "sign", [](double x) { return static_cast<double>((x > 0) - (x < 0)); }, 0);
}

TEST(ExpOp, PairsOnNumbers) {
  EXPECT_EQ(op::plus::Map(2.0f, 3.0f), 5);
  EXPECT_EQ(op::minus::Map(2, 3), -1);
  EXPECT_EQ(op::mul::Map(2.0, 3.0), 6);
  EXPECT_EQ(op::div::Map(7, 2), 3);
  EXPECT_EQ(op::div::Map(7, 0), 0);
  EXPECT_EQ(op::negative::Map(7), -7);
  EXPECT_EQ(op::maximum::Map(7, 9), 9);
  EXPECT_EQ(op::minimum::Map(7.0f, 9.0f), 7);
  EXPECT_TRUE(std::isnan(op::maximum::Map(NAN, 1.0f)));
  EXPECT_TRUE(std::isnan(op::minimum::Map(1.0f, NAN)));
  EXPECT_TRUE(std::isnan(op::sign::Map(NAN)) && std::isnan(op::clip::Map(NAN, 0.0f, 1.0f)));
  EXPECT_TRUE(std::signbit(op::sign::Map(-0.0f)));
  EXPECT_EQ(op::sign::Map(-INFINITY), -1);
  EXPECT_EQ(op::sign::Map(-7), -1);
  EXPECT_EQ(op::clip::Map(7, -2, 3), 3);
  EXPECT_EQ(op::clip::Map(-INFINITY, -2.0f, 3.0f), -2);
  EXPECT_EQ(op::lt::Map(1.0f, 2.0f), 1.0f);
  EXPECT_EQ(op::le::Map(2, 2), 1);
  EXPECT_EQ(op::gt::Map(1.0, 2.0), 0);
  EXPECT_EQ(op::ge::Map(NAN, 2.0f), 0);
  EXPECT_EQ(op::eq::Map(NAN, NAN), 0);
  EXPECT_EQ(op::ne::Map(NAN, NAN), 1);
  EXPECT_EQ(op::logical_and::Map(2.0f, 0.0f), 0);
  EXPECT_EQ(op::logical_or::Map(2.0f, 0.0f), 1);
  EXPECT_EQ(op::logical_not::Map(0), 1);
  EXPECT_EQ(op::select::Map(1.0f, 5.0f, 6.0f), 5);
  EXPECT_EQ(op::select::Map(0, 5, 6), 6);
  EXPECT_FLOAT_EQ(op::pow::Map(2.0f, 0.5f), std::sqrt(2.0f));
  EXPECT_DOUBLE_EQ(op::atan2::Map(1.0, -1.0), std::atan2(1.0, -1.0));
}

TEST(ExpOp, ComparisonsWithNanAreTheSameInPackets) {
  TensorContainer<cpu, 1> a(Shape1(33), 1.0f), b(Shape1(33));
  for (index_t i = 0; i < 33; i += 2) a[i] = NAN;
  b = F<op::ne>(a, a) * 2.0f + F<op::logical_not>(a);
  for (index_t i = 0; i < 33; ++i) EXPECT_EQ(b[i], i % 2 == 0 ? 2 : 0);
}

TEST(ExpOp, LiteralsTakeTheElementType) {
  const float x = 0.3f;
  EXPECT_TRUE(SameBits(user::halve::Map(x), 0.5f * x));
  EXPECT_TRUE(SameBits(user::swish::Map(x), x * op::sigmoid::Map(x) + 0.1f));
  EXPECT_EQ(user::mix::Map(7, 1, 2, 3), 8 / 3 - 6);
  EXPECT_EQ(user::constant::Map(1.0f), 2.5f);
  EXPECT_EQ(user::constant::Map(1), 2);
}

TEST(ExpOp, OfOneToFourArguments) {
  EXPECT_EQ(user::maxoftwo::Map(2.0, 3.0), 3);
  EXPECT_EQ(user::clip::Map(5, 0, 3), 3);
  EXPECT_EQ(user::leaky::Map(-100.0f), -1.0f);
  EXPECT_EQ(user::inside::Map(1.0f, 2.0f), 1);
  EXPECT_EQ(user::inside::Map(-3.0f, 2.0f), 0);
  EXPECT_EQ(user::both::Map(3.0f), 0);
  EXPECT_EQ(user::both::Map(2.0f), 1);
  EXPECT_EQ(global_square::Map(-4), 16);
}

TEST(ExpOp, KeepTheirText) {
  EXPECT_EQ(user::maxoftwo::kName, "maxoftwo");
  EXPECT_EQ(user::maxoftwo::kArgs, "(a, b)");
  EXPECT_EQ(user::maxoftwo::kText, "a > b ? a : b");
  EXPECT_EQ(user::mix::kArgs, "(a, b, c, d)");
  EXPECT_EQ(user::clip::kText, "minimum(maximum(a, low), high)");
  EXPECT_EQ(op::sigmoid::kName, "sigmoid");
}

TEST(ExpOp, SelectHasPacketsAndTheConditionalHasScalars) {
  EXPECT_TRUE((packet::PacketOp<user::maxbyselect, float>::kEnabled));
  EXPECT_TRUE((packet::PacketOp<user::inside, double>::kEnabled));
#if defined(__SSE2__)
  EXPECT_FALSE((packet::PacketOp<user::maxoftwo, float>::kEnabled));
#endif
  TensorContainer<cpu, 2> a(Shape2(3, 33)), b(Shape2(3, 33), 4.0f), c(Shape2(3, 33)), d(Shape2(3, 33));
  for (index_t y = 0; y < 3; ++y)
    for (index_t x = 0; x < 33; ++x) a[y][x] = testing::Sample<float>(y * 33 + x);
  a[1][1] = NAN;
  c = F<user::maxoftwo>(a, b);
  d = F<user::maxbyselect>(a, b);
  for (index_t y = 0; y < 3; ++y)
    for (index_t x = 0; x < 33; ++x) {
      EXPECT_EQ(c[y][x], a[y][x] > 4 ? a[y][x] : 4);
      EXPECT_EQ(d[y][x], c[y][x]);
    }
  c = F<user::clip>(a, scalar(-2.0f), b);
  EXPECT_EQ(c[0][0], -2);
  c = F<user::inside>(a, b) * 10.0f;
  EXPECT_EQ(c[0][0], 0);
  EXPECT_EQ(c[1][1], 0);
}

TEST(ExpOp, IntegersWork) {
  for (const index_t n : kSizes) {
    TensorContainer<cpu, 1, std::int32_t> a(Shape1(n)), b(Shape1(n));
    for (index_t i = 0; i < n; ++i) a[i] = testing::Sample<std::int32_t>(i);
    b = F<op::abs>(a) + F<op::relu>(a) * 2 - F<op::square>(a) + F<user::maxbyselect>(a, scalar(5));
    for (index_t i = 0; i < n; ++i)
      EXPECT_EQ(b[i], std::abs(a[i]) + std::max(a[i], 0) * 2 - a[i] * a[i] + std::max(a[i], 5));
  }
}

// An operator in mshadow's style, a struct with a template Map, works on scalars.
struct PlusOne {
  template <typename T>
  static T Map(T a) {
    return a + T(1);
  }
};
TEST(ExpOp, PlainFunctorsWork) {
  TensorContainer<cpu, 1> a(Shape1(17), 2.0f), b(Shape1(17));
  b = F<PlusOne>(a) * 2.0f;
  EXPECT_EQ(b[16], 6);
}

}  // namespace
}  // namespace umbra

// Tensors of every element type: eager evaluation against the compiler, and both against arithmetic
// written out here.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

#include "umbra/data_type.h"
#include "umbra/jit.h"
#include "umbra/tensor.h"

namespace umbra {
namespace {

template <typename T>
class EveryDType : public testing::Test {
 protected:
  static constexpr index_t kRows = 5, kColumns = 37;
  using Matrix = TensorContainer<cpu, 2, T>;

  Matrix Draw(unsigned seed, double low = 1) {
    Matrix m(Shape2(kRows, kColumns));
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> draw(low, 11);
    for (index_t y = 0; y < kRows; ++y)
      for (index_t x = 0; x < kColumns; ++x) m[y][x] = ConvertTo<T>(draw(random));
    return m;
  }
};

using Types = testing::Types<float, double, half_t, bf16_t, std::int8_t, std::uint8_t, std::int16_t, std::int32_t,
                             std::int64_t, bool>;
TYPED_TEST_SUITE(EveryDType, Types);

template <typename T>
bool Same(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Both routes for `dst op exp`; the results must be the same to the bit.
#define BOTH_ROUTES(dst, op, ...)                                                                                   \
  do {                                                                                                              \
    auto eager = dst;                                                                                               \
    auto compiled = dst;                                                                                            \
    eager op __VA_ARGS__;                                                                                           \
    jit(compiled) op __VA_ARGS__;                                                                                   \
    for (index_t y = 0; y < eager.size(0); ++y)                                                                     \
      for (index_t x = 0; x < eager.size(1); ++x)                                                                   \
        ASSERT_TRUE(Same(eager[y][x], compiled[y][x]))                                                              \
            << #op " " #__VA_ARGS__ " at " << y << ", " << x << ": " << +eager[y][x] << " and " << +compiled[y][x]; \
  } while (false)

TYPED_TEST(EveryDType, EagerEqualsCompiled) {
  using T = TypeParam;
  const auto a = this->Draw(1), b = this->Draw(2);
  const auto dst = this->Draw(3);
  const T s = ConvertTo<T>(3);
  BOTH_ROUTES(dst, =, a + b);
  BOTH_ROUTES(dst, =, a * b - a / b);
  BOTH_ROUTES(dst, =, (a + s) * s);
  BOTH_ROUTES(dst, +=, a * b);
  BOTH_ROUTES(dst, -=, a);
  BOTH_ROUTES(dst, *=, b);
  BOTH_ROUTES(dst, /=, b);
  BOTH_ROUTES(dst, =, F<op::maximum>(a, b));
  BOTH_ROUTES(dst, =, F<op::lt>(a, b));
  BOTH_ROUTES(dst, =, flip(a, 1) + b);
  BOTH_ROUTES(dst, =, broadcast<1>(reduce_with_axis<red::maximum>(a, 0), dst.shape_));
  BOTH_ROUTES(dst, =, tcast<T>(tcast<float>(a) * 1.7f));
  BOTH_ROUTES(dst, =, concat<0>(slice<0>(a, 0, 2), slice<0>(b, 2, TestFixture::kRows)));
}

TYPED_TEST(EveryDType, ComputesWideAndRoundsOnce) {
  using T = TypeParam;
  using C = ComputeOf<T>;
  const auto a = this->Draw(4), b = this->Draw(5);
  auto dst = this->Draw(6);
  const auto before = dst;
  dst += a * b + a;
  for (index_t y = 0; y < dst.size(0); ++y)
    for (index_t x = 0; x < dst.size(1); ++x) {
      const C wide =
          static_cast<C>(before[y][x]) + (static_cast<C>(a[y][x]) * static_cast<C>(b[y][x]) + static_cast<C>(a[y][x]));
      EXPECT_TRUE(Same(dst[y][x], ConvertTo<T>(wide)));
    }
}

TYPED_TEST(EveryDType, FlagsAndNamesAgree) {
  using T = TypeParam;
  EXPECT_EQ(SizeOf(DTypeOf<T>::value), sizeof(T));
  EXPECT_EQ(SizeOfFlag(DataType<T>::kFlag), sizeof(T));
  EXPECT_EQ(FindDType(Name(DTypeOf<T>::value)), DTypeOf<T>::value);
  EXPECT_EQ(ComputeType(DTypeOf<T>::value), (std::is_same_v<T, bool> ? DType::kBool : DTypeOf<ComputeOf<T>>::value));
  bool called = false;
  UMBRA_TYPE_SWITCH(DataType<T>::kFlag, Element, { called = std::is_same_v<Element, T>; });
  EXPECT_TRUE(called);
  SwitchDType(DTypeOf<T>::value, [](auto tag) { EXPECT_TRUE((std::is_same_v<decltype(tag), T>)); });
}

TEST(HalfTypes, KnownValues) {
  EXPECT_EQ(half_t(1.0f).bits(), 0x3c00);
  EXPECT_EQ(half_t(65504.0f).bits(), 0x7bff);
  EXPECT_EQ(half_t(65520.0f).bits(), 0x7c00);  // rounds to infinity
  EXPECT_EQ(half_t(65519.0f).bits(), 0x7bff);
  EXPECT_EQ(half_t(std::ldexp(1.0f, -24)).bits(), 0x0001);
  EXPECT_EQ(half_t(std::ldexp(1.0f, -25)).bits(), 0x0000);  // a tie, to even
  EXPECT_EQ(half_t(std::ldexp(1.5f, -25)).bits(), 0x0001);
  EXPECT_EQ(half_t(-0.0f).bits(), 0x8000);
  EXPECT_EQ(half_t(2049.0f).bits(), half_t(2048.0f).bits());
  EXPECT_EQ(half_t(1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)).bits(), 0x3c01);  // once from f64
  EXPECT_EQ(bf16_t(1.0f).bits(), 0x3f80);
  EXPECT_EQ(bf16_t(3.4e38f).bits(), 0x7f80);
  EXPECT_EQ(bf16_t(257.0f).bits(), bf16_t(256.0f).bits());
  EXPECT_TRUE(std::isnan(static_cast<float>(half_t(std::nanf("")))));
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16_t(std::nanf("")))));
  // Every pattern survives the way through f32.
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const half_t h = half_t::FromBits(static_cast<std::uint16_t>(bits));
    const bf16_t b = bf16_t::FromBits(static_cast<std::uint16_t>(bits));
    EXPECT_TRUE(std::isnan(static_cast<float>(h)) || half_t(static_cast<float>(h)).bits() == bits) << bits;
    EXPECT_TRUE(std::isnan(static_cast<float>(b)) || bf16_t(static_cast<float>(b)).bits() == bits) << bits;
  }
  half_t h = 1.5f;
  h += 2.0f;
  h *= h;
  EXPECT_EQ(static_cast<float>(h), 12.25f);
  EXPECT_LT(h, half_t(13));
}

TEST(Conversions, SaturateTruncateWrap) {
  EXPECT_EQ(ConvertTo<std::int8_t>(300.7f), 127);
  EXPECT_EQ(ConvertTo<std::uint8_t>(-1.0), 0);
  EXPECT_EQ(ConvertTo<std::int16_t>(std::nanf("")), 0);
  EXPECT_EQ(ConvertTo<std::int64_t>(1e30), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(ConvertTo<std::int64_t>(-1e30f), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(ConvertTo<std::int8_t>(200), -56);
  EXPECT_EQ(ConvertTo<std::uint8_t>(-1), 255);
  EXPECT_EQ(ConvertTo<std::int32_t>(std::int64_t{1} << 32), 0);
  EXPECT_EQ(ConvertTo<bool>(0.5f), true);
  EXPECT_EQ(ConvertTo<float>(true), 1.0f);
}

TEST(Int64, IsExactBeyondDoubles) {
  TensorContainer<cpu, 1, std::int64_t> a(Shape1(3)), eager(Shape1(3)), compiled(Shape1(3));
  a[0] = (std::int64_t{1} << 60) + 1;
  a[1] = std::numeric_limits<std::int64_t>::min();
  a[2] = -7;
  eager = a * std::int64_t{3} + a / std::int64_t{-1};
  jit(compiled) = a * std::int64_t{3} + a / std::int64_t{-1};
  for (int k = 0; k < 3; ++k) {
    const auto bits = static_cast<std::uint64_t>(a[k]);
    EXPECT_EQ(eager[k], static_cast<std::int64_t>(bits * 3 - bits));
    EXPECT_EQ(compiled[k], eager[k]);
  }
}

}  // namespace
}  // namespace umbra

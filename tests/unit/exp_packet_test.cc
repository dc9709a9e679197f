// Packets of every instruction set that the compiler's flags allow, and plans made of them.
#include <vector>

#include "exp_common.h"

// A program's operators that know scalars only, and packets for them, as programs for mshadow write them.
namespace program {
struct third {
  template <typename T>
  static T Map(T a) {
    return a / 3;
  }
};
struct further {
  template <typename T>
  static T Map(T a, T b) {
    return a + b + b;
  }
};
inline int packets = 0;  // how many were made
}  // namespace program

namespace umbra {
namespace packet {
template <typename DType, PacketArch Arch>
struct PacketOp<program::third, DType, Arch> {
  static const bool kEnabled = true;
  static Packet<DType, Arch> Map(const Packet<DType, Arch>& a) {
    ++program::packets;
    return a / Packet<DType, Arch>::Fill(3);
  }
};
template <PacketArch Arch>
struct PacketOp<program::further, double, Arch> {
  static const bool kEnabled = true;
  static Packet<double, Arch> Map(const Packet<double, Arch>& a, const Packet<double, Arch>& b) {
    ++program::packets;
    return a + b + b;
  }
};
}  // namespace packet

namespace {

using packet::Packet;
using packet::PacketArch;
using packet::PacketOp;

template <typename T, PacketArch arch>
struct Kind {
  using DType = T;
  static constexpr PacketArch kArch = arch;
};
template <typename K>
class ExpPacket : public ::testing::Test {};
using Kinds =
    ::testing::Types<Kind<float, packet::kPlain>, Kind<double, packet::kPlain>, Kind<std::int32_t, packet::kPlain>,
                     Kind<float, packet::kSSE2>, Kind<double, packet::kSSE2>, Kind<std::int32_t, packet::kSSE2>
#if defined(__AVX2__)
                     ,
                     Kind<float, packet::kAVX2>, Kind<double, packet::kAVX2>, Kind<std::int32_t, packet::kAVX2>
#endif
#if defined(__AVX512F__)
                     ,
                     Kind<float, packet::kAVX512>, Kind<double, packet::kAVX512>, Kind<std::int32_t, packet::kAVX512>
#endif
                     >;
TYPED_TEST_SUITE(ExpPacket, Kinds);

TYPED_TEST(ExpPacket, LoadsStoresAndArithmetic) {
  using T = typename TypeParam::DType;
  using P = Packet<T, TypeParam::kArch>;
  constexpr index_t bytes = packet::Bytes(TypeParam::kArch);
  EXPECT_EQ(P::kSize, bytes == 0 ? 1 : bytes / index_t{sizeof(T)});
  // One past an aligned address: any address will do.
  alignas(64) T a[40], b[40], c[40];
  for (int i = 0; i < 40; ++i) {
    a[i] = testing::Sample<T>(i);
    b[i] = T(i + 1);
    c[i] = T(99);
  }
  const P x = P::LoadUnAligned(a + 1), y = P::Load(b + 1);
  const auto check = [&](const P& p, auto expected) {
    p.StoreUnAligned(c + 1);
    for (int i = 0; i < P::kSize; ++i) EXPECT_EQ(c[i + 1], T(expected(a[i + 1], b[i + 1])));
    EXPECT_EQ(c[0], T(99));
    EXPECT_EQ(c[P::kSize + 1], T(99));
  };
  check(x + y, [](T p, T q) { return p + q; });
  check(x - y, [](T p, T q) { return p - q; });
  check(x * y, [](T p, T q) { return p * q; });
  check(x / y, [](T p, T q) { return p / q; });
  check(P::Fill(T(3)), [](T, T) { return 3; });
  check(PacketOp<op::maximum, T, TypeParam::kArch>::Map(x, y), [](T p, T q) { return p > q ? p : q; });
  P filled;
  filled = T(4);
  check(filled, [](T, T) { return 4; });
  T sum = 0;
  for (int i = 0; i < P::kSize; ++i) sum += a[i + 1];
  EXPECT_EQ(x.Sum(), sum);
}

TYPED_TEST(ExpPacket, HeadsTouchNothingBeyond) {
  using T = typename TypeParam::DType;
  using P = Packet<T, TypeParam::kArch>;
  for (index_t n = 0; n <= P::kSize; ++n) {
    // Ends with the vector, so that the address sanitizer sees a read beyond.
    std::vector<T> from(static_cast<std::size_t>(n)), to(static_cast<std::size_t>(n) + 1, T(99));
    for (index_t i = 0; i < n; ++i) from[static_cast<std::size_t>(i)] = T(i + 1);
    const P p = P::LoadHead(from.data(), n);
    T all[16] = {};
    p.Store(all);
    for (index_t i = 0; i < P::kSize; ++i) EXPECT_EQ(all[i], i < n ? T(i + 1) : T(0));
    p.StoreHead(to.data(), n);
    for (index_t i = 0; i < n; ++i) EXPECT_EQ(to[static_cast<std::size_t>(i)], T(i + 1));
    EXPECT_EQ(to.back(), T(99));
    packet::Saver<sv::plusto, T, TypeParam::kArch>::SaveHead(to.data(), p, n);
    packet::Saver<sv::multo, T, TypeParam::kArch>::SaveHead(to.data(), p, n);
    for (index_t i = 0; i < n; ++i) EXPECT_EQ(to[static_cast<std::size_t>(i)], T(2 * (i + 1) * (i + 1)));
    EXPECT_EQ(to.back(), T(99));
  }
}

TYPED_TEST(ExpPacket, PlansOfThisWidthEqualScalars) {
  using T = typename TypeParam::DType;
  using P = Packet<T, TypeParam::kArch>;
  const Shape<2> shape = Shape2(3, 37);
  TensorContainer<cpu, 2, T> a(shape), b(shape, T(2)), dst(shape, T(1));
  TensorContainer<cpu, 1, T> v(Shape1(37), T(5));
  for (index_t y = 0; y < 3; ++y)
    for (index_t x = 0; x < 37; ++x) a[y][x] = testing::Sample<T>(y * 37 + x);
  const auto e = F<op::maximum>(a * b, scalar(T(1))) + broadcast<1>(v, shape) - F<op::relu>(a);
  const auto plan = expr::MakePlan(e);
  const auto packets = expr::MakePacketPlan<TypeParam::kArch>(e);
  T lanes[16];
  for (index_t y = 0; y < 3; ++y)
    for (index_t x = 0; x + P::kSize <= 37; x += P::kSize) {
      packets.EvalPacket(y, x).Store(lanes);
      for (index_t i = 0; i < P::kSize; ++i) EXPECT_EQ(lanes[i], plan.Eval(y, x + i));
    }
  EXPECT_EQ(packets.Eval(2, 36), plan.Eval(2, 36));
  Tensor<cpu, 2, T>& handle = dst;
  expr::MapPacketPlan<sv::plusto>(handle, packets);
  for (index_t y = 0; y < 3; ++y)
    for (index_t x = 0; x < 37; ++x) EXPECT_EQ(dst[y][x], 1 + plan.Eval(y, x));
  expr::MapPlan<sv::minusto>(&handle, plan);
  EXPECT_EQ(dst[2][36], 1);
}

TEST(ExpPacketOp, SaysWhichExpressionsHavePackets) {
  EXPECT_TRUE((PacketOp<op::plus, float>::kEnabled));
  EXPECT_TRUE((PacketOp<op::tanh, double>::kEnabled));
  EXPECT_TRUE((PacketOp<op::abs, std::int32_t>::kEnabled));
  const TensorContainer<cpu, 2> a(Shape2(3, 4), 1.0f);
  const auto fast = F<op::exp>(a * 2.0f);
  const auto sum = a + a;
  EXPECT_TRUE((expr::PacketCheck<std::decay_t<decltype(fast)>>::kPass));
  EXPECT_TRUE((PacketOp<op::erf, float>::kEnabled));
  EXPECT_TRUE((expr::PacketCheck<std::decay_t<decltype(F<op::erf>(a) + 1.0f)>>::kPass));
  EXPECT_FALSE((expr::PacketCheck<std::decay_t<decltype(a.T())>>::kPass));
  EXPECT_EQ((expr::ExpInfo<std::decay_t<decltype(sum)>>::kDim), 2);
  EXPECT_EQ((expr::ExpInfo<std::decay_t<decltype(sum)>>::kDevMask), cpu::kDevMask);
  EXPECT_EQ((expr::ExpInfo<expr::ScalarExp<float>>::kDim), 0);
  EXPECT_TRUE((expr::PacketCheck<float>::kPass && expr::PacketCheck<double, packet::kSSE2>::kPass));
  EXPECT_FALSE((expr::PacketCheck<unsigned>::kPass || expr::PacketCheck<half_t>::kPass));
}

TEST(ExpPacketOp, OfAProgram) {
  TensorContainer<cpu, 2> x(Shape2(3, 37)), y(x.shape_);
  TensorContainer<cpu, 2, double> wide(x.shape_);
  for (index_t k = 0; k < 3 * 37; ++k) x[k / 37][k % 37] = testing::Sample<float>(k);
  const auto rows_of = [](index_t lanes) { return 3 * ((37 + lanes - 1) / lanes); };
  constexpr index_t kFloats = Packet<float>::kSize, kDoubles = Packet<double>::kSize;

  program::packets = 0;
  y = F<program::third>(x + 1.0f);
  EXPECT_EQ(program::packets, rows_of(kFloats));
  for (index_t k = 0; k < 3 * 37; ++k) EXPECT_EQ(y[k / 37][k % 37], (x[k / 37][k % 37] + 1) / 3);

  // Rows that begin anywhere, at any distance, run in packets, too.
  std::vector<float> storage(3 * 41 + 1);
  Tensor<cpu, 2> odd(storage.data() + 1, x.shape_, 41, nullptr);
  program::packets = 0;
  odd = F<program::third>(x + 1.0f);
  y = F<program::third>(odd);
  EXPECT_EQ(program::packets, 2 * rows_of(kFloats));
  EXPECT_EQ(odd[2][36], (x[2][36] + 1) / 3);

  program::packets = 0;  // registers of as many doubles as there are floats, more than a packet of them
  y = tcast<float>(F<program::further>(tcast<double>(x), F<program::third>(tcast<double>(x))));
  EXPECT_EQ(program::packets, rows_of(kFloats) * 2 * (kFloats / kDoubles));
  for (index_t k = 0; k < 3 * 37; ++k) {
    const double a = x[k / 37][k % 37];
    EXPECT_EQ(y[k / 37][k % 37], static_cast<float>(a + a / 3 + a / 3));
  }
  program::packets = 0;  // and of as many floats as there are doubles
  wide = tcast<double>(F<program::third>(x));
  EXPECT_EQ(program::packets, rows_of(kDoubles));
  for (index_t k = 0; k < 3 * 37; ++k) EXPECT_EQ(wide[k / 37][k % 37], x[k / 37][k % 37] / 3);

  program::packets = 0;  // none for float: element by element
  y = F<program::further>(x, x);
  EXPECT_EQ(program::packets, 0);
  EXPECT_EQ(y[2][36], 3 * x[2][36]);
  static_assert(!PacketOp<program::further, float>::kEnabled && PacketOp<program::further, double>::kEnabled);
}

TEST(ExpPacketOp, TypeCheckSaysWhatFits) {
  using Matrix = Tensor<cpu, 2>;
  using expr::TypeCheck;
  static_assert(TypeCheck<cpu, 2, float, Matrix>::kMapPass && TypeCheck<cpu, 2, float, Matrix>::kExpDim == 2);
  static_assert(TypeCheck<cpu, 2, float, expr::ScalarExp<float>>::kMapPass &&
                TypeCheck<gpu, 2, float, expr::ScalarExp<float>>::kDevPass);
  static_assert(!TypeCheck<cpu, 1, float, Matrix>::kMapPass && TypeCheck<cpu, 1, float, Matrix>::kRedPass);
  static_assert(!TypeCheck<gpu, 2, float, Matrix>::kDevPass && !TypeCheck<gpu, 1, float, Matrix>::kRedPass);
  expr::TypeCheckPass<true>::Error_All_Tensor_in_Exp_Must_Have_Same_Type();
  expr::TypeCheckPass<true>::Error_TypeCheck_Not_Pass_For_Reduce_Exp();
  expr::TypeCheckPass<true>::Error_Expression_Does_Not_Meet_Dimension_Req();
}

TYPED_TEST(ExpPacket, Alignment) {
  using T = typename TypeParam::DType;
  constexpr PacketArch arch = TypeParam::kArch;
  constexpr index_t lanes = Packet<T, arch>::kSize;
  EXPECT_EQ((packet::UpperAlign<T, arch>(0)), 0);
  EXPECT_EQ((packet::UpperAlign<T, arch>(1)), lanes);
  EXPECT_EQ((packet::UpperAlign<T, arch>(lanes)), lanes);
  EXPECT_EQ((packet::LowerAlign<T, arch>(lanes + lanes - 1)), lanes);
  EXPECT_EQ((packet::LowerAlign<T, arch>(lanes - 1)), 0);
  alignas(64) char memory[128];
  EXPECT_TRUE(packet::CheckAlign<arch>(memory));
  EXPECT_FALSE(packet::CheckAlign<arch>(memory + 1));
  EXPECT_FALSE(packet::CheckAlign<arch>(memory + (std::size_t{1} << packet::AlignBytes<arch>::value) / 2));
  EXPECT_TRUE(packet::CheckAlign<arch>(std::size_t{64}));

  TensorContainer<cpu, 2, T> a(Shape2(3, 7), T(1)), b(Shape2(3, 7), T(2));
  const auto sum = a + b * T(3);
  using Sum = std::decay_t<decltype(sum)>;
  EXPECT_TRUE((expr::PacketAlignCheck<2, Sum, arch>::Check(sum)));
  std::vector<T> storage(64);
  T* odd = reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(storage.data()) + 63) / 64 * 64) + 1;
  const Tensor<cpu, 2, T> shifted(odd, Shape2(3, 7));
  const auto other = a + shifted;
  EXPECT_EQ((expr::PacketAlignCheck<2, std::decay_t<decltype(other)>, arch>::Check(other)), false);
  EXPECT_FALSE((expr::PacketAlignCheck<2, std::decay_t<decltype(a.T())>, arch>::Check(a.T())));

  std::size_t pitch = 0;
  void* rows = packet::AlignedMallocPitch(&pitch, 7 * sizeof(T), 3);
  EXPECT_EQ(pitch, 64u);
  EXPECT_TRUE(packet::CheckAlign<arch>(rows));
  packet::AlignedFree(rows);
  EXPECT_THROW(packet::AlignedMallocPitch(&pitch, std::size_t{1} << 62, 64), Error);
}

}  // namespace
}  // namespace umbra

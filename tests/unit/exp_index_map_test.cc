// Index maps a packet at a time: positions of elements side by side, and packets beside elements.
#include <random>

#include "exp_common.h"
#include "umbra/index_map/run.h"

namespace umbra {
namespace {

// A position of each of 16 elements, one by one, and as a run of them.
struct Both {
  static constexpr int kLanes = 16;
  std::array<index_t, kLanes> each;
  index_map::Run<kLanes> run;
};

TEST(ExpIndexMapRun, KnowsWhatElementsAre) {
  std::mt19937 random(3);
  const auto drawn = [&](int most) {
    return static_cast<index_t>(random() % static_cast<unsigned>(2 * most + 1)) - most;
  };
  int known = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<Both> made;
    const auto add = [&](const auto& of_lane, index_map::Run<16> run) {
      Both both{{}, run};
      for (std::size_t k = 0; k < 16; ++k) both.each[k] = of_lane(static_cast<index_t>(k));
      made.push_back(both);
    };
    for (int k = 0; k < 3; ++k) {
      const index_t first = drawn(40), step = drawn(2);
      add([&](index_t lane) { return first + lane * step; }, {first, step});
    }
    for (int k = 0; k < 6; ++k) {
      const Both a = made[random() % made.size()], b = made[random() % made.size()];
      const auto at = [](const Both& both, index_t lane) { return both.each[static_cast<std::size_t>(lane)]; };
      switch (random() % 6) {
        case 0: add([&](index_t i) { return at(a, i) + at(b, i); }, a.run + b.run); break;
        case 1: add([&](index_t i) { return at(a, i) - at(b, i); }, a.run - b.run); break;
        case 2: add([&](index_t i) { return at(a, i) * at(b, i); }, a.run * b.run); break;
        case 3: add([&](index_t i) { return at(b, i) == 0 ? 0 : at(a, i) / at(b, i); }, a.run / b.run); break;
        case 4: add([&](index_t i) { return std::min(at(a, i), at(b, i)); }, Min(a.run, b.run)); break;
        default: add([&](index_t i) { return std::max(at(a, i), at(b, i)); }, Max(a.run, b.run)); break;
      }
      const Both& last = made.back();
      if (!last.run.known) continue;
      ++known;
      for (index_t lane = 0; lane < 16; ++lane) ASSERT_EQ(last.run[lane], at(last, lane)) << round;
    }
    for (const Both& a : made)
      for (const Both& b : made) {
        const index_map::RunCondition<16> conditions[] = {a.run < b.run, a.run <= b.run, a.run >= b.run, a.run == b.run,
                                                          a.run >= b.run && a.run == b.run};
        for (std::size_t k = 0; k < 16; ++k) {
          const index_t x = a.each[k], y = b.each[k];
          const bool expected[] = {x < y, x <= y, x >= y, x == y, x == y};
          for (std::size_t c = 0; c < 5; ++c) {
            ASSERT_EQ(conditions[c].known, a.run.known && b.run.known);
            ASSERT_TRUE(!conditions[c].known || ((conditions[c].bits >> k & 1) != 0) == expected[c])
                << round << " " << c;
          }
        }
      }
  }
  EXPECT_GT(known, 40000);  // of 120000
}

// Positions from data may be any.
TEST(ExpIndexMapRun, ComparesTheFarthest) {
  using Run = index_map::Run<16>;
  constexpr index_t most = std::numeric_limits<index_t>::max(), least = std::numeric_limits<index_t>::min();
  EXPECT_EQ((Run(least) < Run(5)).bits, 0xffffu);
  EXPECT_EQ((Run(most) >= Run(-5)).bits, 0xffffu);
  EXPECT_EQ(Max(Run(0), Min(Run(least), Run(8))).first, 0);
  EXPECT_EQ(Max(Run(0), Min(Run(most), Run(8))).first, 8);
  for (const index_t far : {least, least + 1, most, most - 1})
    for (const index_t step : {1, -1, 3})
      for (const index_t first : {-1, 0, 7}) {
        const auto equal = Run(far) == Run(first, step);
        EXPECT_TRUE(!equal.known || equal.bits == 0) << far;
        const auto below = Run(first, step) < Run(far);
        EXPECT_TRUE(!below.known || below.bits == (far > 0 ? 0xffffu : 0u)) << far;
      }
}

template <typename T>
class ExpIndexMap : public ::testing::Test {};
using DTypes = ::testing::Types<float, double, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(ExpIndexMap, DTypes);

// Packets of e, and the last ones of rows, equal its elements.
template <typename E, typename DType, int etype>
void ExpectPacketsAreElements(const char* name, const expr::Exp<E, DType, etype>& e) {
  constexpr index_t kSize = packet::Packet<DType>::kSize;
  const auto plan = expr::MakePlan(e);
  const auto packets = expr::MakePacketPlan(e);
  const Shape<2> flat = expr::ShapeCheck<expr::ExpInfo<E>::kDim, E>::Check(e.self()).FlatTo2D();
  DType lanes[16];
  for (index_t y = 0; y < flat[0]; ++y)
    for (index_t x = 0; x < flat[1]; ++x) {
      const index_t n = std::min(kSize, flat[1] - x);
      packets.EvalHead(y, x, n).Store(lanes);
      for (index_t i = 0; i < n; ++i)
        ASSERT_EQ(lanes[i], plan.Eval(y, x + i)) << name << " at " << y << ", " << x + i << " of " << n;
    }
}

template <int dim, typename T>
TensorContainer<cpu, dim, T> Drawn(Shape<dim> shape, unsigned seed, int below = 41) {
  TensorContainer<cpu, dim, T> t(shape);
  std::mt19937 random(seed);
  const Shape<2> flat = shape.FlatTo2D();
  for (index_t y = 0; y < flat[0]; ++y)
    for (index_t x = 0; x < flat[1]; ++x)
      t.dptr_[y * t.stride_ + x] = static_cast<T>(random() % static_cast<unsigned>(below));
  return t;
}

TYPED_TEST(ExpIndexMap, PacketsAreElements) {
  using T = TypeParam;
  for (const index_t width : {3, 4, 15, 16, 17, 40}) {
    const auto x = Drawn<4, T>(Shape4(2, 3, 6, width), 1);
    const auto p = Drawn<4, T>(Shape4(2, 3, 3, width / 2), 2), g = Drawn<4, T>(Shape4(2, 3, 3, width / 2), 3);
    const auto m = Drawn<2, T>(Shape2(7, width), 4), same = Drawn<2, T>(Shape2(7, width), 5);
    const auto rows = Drawn<1, T>(Shape1(5), 6, 9), column = Drawn<1, T>(Shape1(7), 7, static_cast<int>(width)),
               v = Drawn<1, T>(Shape1(width), 8);
    ExpectPacketsAreElements("flip", flip(x, 3));
    ExpectPacketsAreElements("flip of another axis", flip(x, 1));
    ExpectPacketsAreElements("swapaxis", swapaxis<3, 2>(x));
    ExpectPacketsAreElements("slice", slice(x, Shape4(0, 1, 2, 1), Shape4(2, 3, 5, width)) + T(1));
    ExpectPacketsAreElements("slice_ex", slice_ex(x, Shape4(0, 0, 1, 0), Shape4(2, 3, 6, width), Shape4(1, 2, 2, 3)));
    ExpectPacketsAreElements("crop", crop(x, Shape2(3, width - 1), 1, 1));
    ExpectPacketsAreElements("pad", pad(x, 2, 3));
    ExpectPacketsAreElements("upsampling_nearest", upsampling_nearest(x, 3));
    ExpectPacketsAreElements("repmat", repmat(v, 3));
    ExpectPacketsAreElements("concat", concat<1>(m, concat<1>(same, m)));
    ExpectPacketsAreElements("concat of rows", concat<0>(m, same));
    ExpectPacketsAreElements("reshape", reshape(x, Shape3(6, width, 6)));
    ExpectPacketsAreElements("reshape to rows", reshape(x, Shape2(36, width)));
    ExpectPacketsAreElements("transpose", transpose(x, Shape4(3, 1, 0, 2)));
    ExpectPacketsAreElements("take", take(rows, m));
    ExpectPacketsAreElements("take of a vector", take(column, v));
    ExpectPacketsAreElements("take_grad", take_grad(column, m, width));
    ExpectPacketsAreElements("mat_choose_row_element", mat_choose_row_element(m, column));
    ExpectPacketsAreElements("mat_fill_row_element", mat_fill_row_element(m, column, column));
    ExpectPacketsAreElements("mask", mask(column, m));
    ExpectPacketsAreElements("implicit_dot", implicit_dot(same, reshape(x, Shape2(width, 36))));
    ExpectPacketsAreElements("maximum", pool<red::maximum>(x, 2, 2, 2, 2));
    ExpectPacketsAreElements("mean", pool<red::mean>(x, 3, 2, 1, 1));
    ExpectPacketsAreElements("cut", pool<red::sum>(x, Shape2(3, width), 2, 3, 2, 1));
    ExpectPacketsAreElements("cut maximum", pool<red::maximum>(x, Shape2(3, width), 2, 3, 2, 1));
    ExpectPacketsAreElements("unpool", unpool<red::maximum>(x, p, g, 2, 2, 2, 2));
    ExpectPacketsAreElements("unpool of sums", unpool<red::sum>(x, p, g, 2, 2, 2, 2));
    ExpectPacketsAreElements("chpool", chpool<red::sum>(x, 3));
    ExpectPacketsAreElements("unpack_patch2col", unpack_patch2col(x, 2, 2, 1, 1));
    ExpectPacketsAreElements("pack_col2patch", pack_col2patch(unpack_patch2col(x, 2, 2, 1, 1), x.shape_, 2, 2, 1, 1));
    ExpectPacketsAreElements("a nest", pad(flip(take(rows, m), 1) * T(2), 1, 1));
    ExpectPacketsAreElements("of what has no packets", flip(m.T(), 1));
    if (width % 2 == 0) ExpectPacketsAreElements("conj", conj(m));
    if (width % 2 == 0) ExpectPacketsAreElements("product", complex_mul_cc(m, same));
  }
}

// What a map reads where it writes may be what it writes to; what it reads elsewhere may not.
TYPED_TEST(ExpIndexMap, PointwiseSourcesAreWrittenOver) {
  using T = TypeParam;
  for (const index_t width : {3, 16, 40}) {
    const auto m = Drawn<2, T>(Shape2(7, width), 4);
    const auto column = Drawn<1, T>(Shape1(7), 7, static_cast<int>(width));
    TensorContainer<cpu, 2, T> filled(m.shape_), masked(m.shape_), a(m), b(m);
    filled = mat_fill_row_element(m, column, column);
    masked = mask(column, m);
    a = mat_fill_row_element(a, column, column);
    b = mask(column, b);
    for (index_t y = 0; y < 7; ++y)
      for (index_t x = 0; x < width; ++x) {
        EXPECT_EQ(a[y][x], filled[y][x]) << y << " " << x;
        EXPECT_EQ(b[y][x], masked[y][x]) << y << " " << x;
      }
    EXPECT_SAYS("overlaps an operand", a = mask(Tensor<cpu, 1, T>(a.dptr_, Shape1(7)), m));
    EXPECT_SAYS("overlaps an operand", a = flip(a, 1));
  }
}

// Tensors of 16-bit floats that are converted are read in packets: every value, in every lane.
template <typename Half, typename T>
void ExpectConverted() {
  TensorContainer<cpu, 2, Half> from(Shape2(128, 521));
  for (index_t k = 0; k < 128 * 521; ++k) from[k / 521][k % 521] = Half::FromBits(static_cast<std::uint16_t>(k));
  const auto e = tcast<T>(from) + T(0);
  static_assert(expr::PacketCheck<std::decay_t<decltype(e)>>::kPass);
  TensorContainer<cpu, 2, T> to(from.shape_);
  to = e;
  for (index_t k = 0; k < 128 * 521; ++k) {
    const T expected = ConvertTo<T>(from[k / 521][k % 521]) + T(0), got = to[k / 521][k % 521];
    ASSERT_TRUE(got == expected || (got != got && expected != expected)) << from[k / 521][k % 521].bits();
  }
}
TYPED_TEST(ExpIndexMap, HalvesAreConvertedInPackets) {
  ExpectConverted<half_t, TypeParam>();
  ExpectConverted<bf16_t, TypeParam>();
}

}  // namespace
}  // namespace umbra

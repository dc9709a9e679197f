// Axis maps: a program's own is one function, from which every route follows.
#include "umbra/axis_map.h"

#include "tests/unit/index_map_common.h"

namespace umbra {

// Axes turned by one: (a, b, c) becomes (b, c, a).
struct turn {
  static constexpr int From(int d, int, int, int rank) { return (d + 1) % rank; }
};
// Two axes of four, the second before the first; the others are joined.
struct inner_exchanged {
  static constexpr int From(int d, int, int, int) { return 2 - d; }
};
// The two last of four axes.
struct last_two {
  static constexpr int From(int d, int, int, int) { return d + 2; }
};
// The second and the last of four.
struct every_other {
  static constexpr int From(int d, int, int, int) { return 2 * d + 1; }
};

namespace {

using expr::AxisMapExp;

template <typename Map, typename Reducer, int dim, int axis = 0, typename T, int dimsrc>
AxisMapExp<Map, axis, Reducer, Tensor<cpu, dimsrc, T>, T, dim> Mapped(const Tensor<cpu, dimsrc, T>& x) {
  return {x, 0};
}

TEST(AxisMap, OnesAndRepeatedAxesAreNoneOfTheSource) {
  EXPECT_EQ(index_map::broadcast::From(0, 1, 2, 4), index_map::kRepeated);
  EXPECT_EQ(index_map::broadcast::From(2, 1, 2, 4), 1);
  EXPECT_EQ(index_map::reduce_with_axis::From(0, 0, 1, 1), index_map::kOne);
  EXPECT_EQ(index_map::reduce_with_axis::From(1, 1, 3, 2), 2);
  EXPECT_EQ(index_map::reduce_keepdim::From(1, 1, 3, 3), index_map::kOne);
  EXPECT_TRUE(index_map::Joins(index_map::reduce_keepdim::From, 1, 1, 3, 3));
  EXPECT_FALSE(index_map::Joins(index_map::transpose::From, 1, 0, 2, 2));
  for (const char* name :
       {"broadcast", "broadcast_scalar", "transpose", "reduce_with_axis", "reduce_keepdim", "reduce_except_dim"})
    EXPECT_NE(index_map::FindAxisMap(name), nullptr) << name;
  EXPECT_EQ(index_map::FindAxisMap("turn"), nullptr);
}

TEST(AxisMap, OfAProgramByEveryRoute) {
  for (const index_t n : {1, 4, 19}) {
    const auto x = Drawn<3>(Shape3(n, 3, 5), 1);
    const auto y = Drawn<4>(Shape4(2, n, 3, 17), 2);
    const auto matrix = Drawn<2>(Shape2(n, 3), 3);
    Check<3>("turn", [&] { return Mapped<turn, void, 3>(x); });
    CheckSavers<2>("inner_exchanged", [&] { return Mapped<inner_exchanged, red::sum, 2>(y); });
    Check<2>("last_two", [&] { return Mapped<last_two, red::maximum, 2>(y); });
    Check<2>("last_two, of an axis at run time",
             [&] { return Mapped<last_two, red::minimum, 2, expr::kAtRunTime>(y); });
    Check<4>("broadcast of a matrix", [&] {
      return AxisMapExp<index_map::broadcast, 1, void, Tensor<cpu, 2>, float, 4>(matrix, 1, Shape4(2, n, 3, 7));
    });
    Check<3>("broadcast of a matrix to the last axes", [&] {
      return AxisMapExp<index_map::broadcast, 1, void, Tensor<cpu, 2>, float, 3>(matrix, 1, Shape3(4, n, 3));
    });
    TensorContainer<cpu, 3> turned(Shape3(3, 5, n));
    turned = Mapped<turn, void, 3>(x);
    TensorContainer<cpu, 2> sums(Shape2(3, n));
    sums = Mapped<inner_exchanged, red::sum, 2>(y);
    for (index_t a = 0; a < n; ++a)
      for (index_t b = 0; b < 3; ++b) {
        for (index_t c = 0; c < 5; ++c) ASSERT_EQ(turned[b][c][a], x[a][b][c]);
        float sum = 0;
        for (index_t c = 0; c < 17; ++c) sum += y[0][a][b][c] + y[1][a][b][c];
        ASSERT_EQ(sums[b][a], sum);
      }
  }
}

TEST(AxisMap, BroadcastsHaveTheShapeThatTheyAreTold) {
  for (const index_t n : {1, 4, 19}) {
    const auto row = Drawn<1>(Shape1(n), 1), column = Drawn<1>(Shape1(9), 2), one = Drawn<1>(Shape1(1), 3);
    const auto x = Drawn<2>(Shape2(9, n), 4);
    const Shape<2> shape = Shape2(9, n);
    CheckSavers<2>("of both axes", [&] { return broadcast<0>(column, shape) - broadcast<1>(row, shape); });
    Check<3>("of three axes", [&] {
      const Shape<3> cube = Shape3(9, n, 1);
      return broadcast<0>(column, cube) - broadcast<1>(row, cube) * broadcast<2>(one, cube);
    });
    Check<2>("of a number along a row", [&] { return broadcast<1>(broadcast_scalar(one, Shape1(n)), shape); });
    Check<2>("flipped", [&] { return flip(broadcast<1>(row, shape), 0); });
    Check<2>("of both axes, flipped", [&] { return flip(broadcast<0>(column, shape) * broadcast<1>(row, shape), 1); });
    Check<2>("of a number, flipped", [&] { return flip(broadcast_scalar(one, shape), 0); });
    Check<2>("padded", [&] { return pad(broadcast<1>(row, shape), 2); });
    Check<2>("side by side", [&] { return concat<1>(broadcast<1>(row, shape), broadcast<0>(column, Shape2(9, 3))); });
    Check<1>("summed", [&] { return sum_rows(broadcast<0>(column, shape)); });
    Check<2>("summed beside a tensor", [&] { return broadcast<1>(sum_rows(broadcast<0>(column, shape) * x), shape); });
  }
}

TEST(AxisMap, BroadcastsToAnotherShapeAreRefused) {
  const auto row = Drawn<1>(Shape1(4), 1);
  const auto x = Drawn<2>(Shape2(9, 4), 2);
  TensorContainer<cpu, 2> dst(Shape2(9, 4));
  for (const CompileOptions& route : Routes()) {
    jit::SetOptions(route);
    EXPECT_THROW((jit(dst) = broadcast<1>(row, Shape2(8, 4))), Error) << route.target;
    EXPECT_THROW((jit(dst) = x + broadcast<1>(row, Shape2(8, 4))), Error) << route.target;
    EXPECT_THROW((jit(dst) = x + flip(broadcast<1>(row, Shape2(8, 4)), 0)), Error) << route.target;
  }
  jit::SetOptions({});
}

TEST(AxisMap, ThatEagerPlansDoNotHaveIsAnError) {
  const auto y = Drawn<4>(Shape4(2, 3, 2, 5), 2);
  TensorContainer<cpu, 2> dst(Shape2(3, 5));
  EXPECT_THROW((dst = Mapped<every_other, red::sum, 2>(y)), InternalError);
  EXPECT_THROW((dst = Mapped<every_other, red::sum, 2, expr::kAtRunTime>(y)), InternalError);
}

}  // namespace
}  // namespace umbra

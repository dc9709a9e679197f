// Every extension but complex numbers of a second dtype, broadcasts and reductions of both, on drawn extents, of one
// and of none, too: eager, interpreter and every dialect agree, alone and inside a larger expression, with each saver.
#include "tests/unit/index_map_common.h"

namespace umbra {
namespace {

constexpr index_t kExtents[] = {1, 2, 3, 5, 8, 17, 33};

// Powers of two of both signs: products are exact in any order.
template <typename T, int dim>
TensorContainer<cpu, dim, T> Powers(Shape<dim> shape) {
  TensorContainer<cpu, dim, T> t = Drawn<dim, T>(shape, 3);
  t = F<op::select>(F<op::lt>(t, scalar(T(0))), scalar(T(-1)), scalar(T(2)));
  return t;
}

template <typename T>
TensorContainer<cpu, 1, T> Positions(index_t count, index_t below) {
  TensorContainer<cpu, 1, T> t((Shape1(count)));
  for (index_t i = 0; i < count; ++i) t[i] = static_cast<T>(below == 0 ? 0 : i * 7 % below);
  return t;
}

template <typename T>
void CheckBroadcastsAndReductions(index_t n, index_t m) {
  const auto x = Drawn<2, T>(Shape2(n, m), 1);
  const auto cube = Drawn<3, T>(Shape3(2, n, m), 2);
  const auto rows = Drawn<1, T>(Shape1(n), 3), columns = Drawn<1, T>(Shape1(m), 4), one = Drawn<1, T>(Shape1(1), 5);
  const auto powers = Powers<T>(x.shape_);
  Check<2, T>("broadcast 0", [&] { return broadcast<0>(rows, Shape2(n, m)); });
  CheckSavers<3, T>("broadcast 2", [&] { return broadcast<2>(columns * T(2), Shape3(2, n, m)); });
  Check<2, T>("broadcast_scalar", [&] { return broadcast_scalar(one, Shape2(n, m)); });
  Check<1, T>("sum_rows", [&] { return sum_rows(x); });
  Check<1, T>("sumall_except_dim", [&] { return sumall_except_dim<1>(cube + T(1)); });
  Check<1, T>("reduce_except_dim", [&] { return reduce_except_dim<0, red::maximum>(x); });
  CheckSavers<1, T>("reduce sum", [&] { return reduce_with_axis<red::sum>(x, 1); });
  Check<2, T>("reduce minimum", [&] { return reduce_with_axis<red::minimum>(cube * T(3), 1); });
  Check<1, T>("reduce product", [&] { return reduce_with_axis<red::product>(powers, 1); });
  Check<1, T>("reduce mean", [&] { return reduce_with_axis<red::mean>(x, 0); });
  Check<1, T>("reduce argmax", [&] { return reduce_with_axis<red::argmax>(x, 1); });
  Check<1, T>("reduce argmin", [&] { return reduce_with_axis<red::minimum, true>(x, 0); });
  CheckSavers<2, T>("keepdim maximum", [&] { return reduce_keepdim<red::maximum>(x, 1); });
  Check<3, T>("keepdim sum", [&] { return reduce_keepdim<red::sum>(cube, 1); });
}

template <typename T>
void CheckRearrangements(index_t n, index_t m) {
  const auto x = Drawn<2, T>(Shape2(n, m), 1), y = Drawn<2, T>(Shape2(n, 5), 2);
  const auto cube = Drawn<3, T>(Shape3(3, n, m), 3), thin = Drawn<3, T>(Shape3(3, 1, m), 4);
  const auto columns = Drawn<1, T>(Shape1(m), 5);
  Check<2, T>("flip", [&] { return flip(x, 0); });
  Check<2, T>("mirror", [&] { return mirror(x); });
  CheckSavers<3, T>("swapaxis", [&] { return swapaxis<2, 0>(cube); });
  Check<3, T>("transpose", [&] { return transpose(cube, Shape3(1, 2, 0)); });
  Check<2, T>("T", [&] { return x.T(); });
  Check<1, T>("reshape", [&] { return reshape(x, Shape1(n * m)); });
  Check<2, T>("slice", [&] { return slice<1>(x, m / 3, m); });
  Check<2, T>("slice of every axis", [&] { return slice(x, Shape2(n / 2, 0), Shape2(n, m / 2)); });
  CheckSavers<2, T>("slice_ex", [&] { return slice_ex(x, Shape2(0, m / 2), Shape2(n, m), Shape2(2, 3)); });
  CheckSavers<2, T>("concat", [&] { return concat<1>(x, y * T(2)); });
  Check<2, T>("crop", [&] { return crop(x, Shape2((n + 1) / 2, (m + 1) / 2)); });
  Check<2, T>("pad", [&] { return pad(x, 2, 1); });
  Check<2, T>("upsampling_nearest", [&] { return upsampling_nearest(x, 2); });
  Check<2, T>("repmat", [&] { return repmat(columns, n); });
  Check<3, T>("broadcast_with_axis", [&] { return broadcast_with_axis(x, 0, 3); });
  Check<3, T>("broadcast_to", [&] { return broadcast_to(thin, Shape3(3, n, m)); });
  Check<3, T>("broadcast_keepdim", [&] { return broadcast_keepdim(thin, 1, n); });
  Check<1, T>("range", [&] { return range(T(1), T(1 + m), T(1), 2); });
}

template <typename T>
void CheckSelections(index_t n, index_t m) {
  const auto x = Drawn<2, T>(Shape2(n, m), 1), grad = Drawn<2, T>(Shape2(9, m), 2);
  const auto rows = Drawn<1, T>(Shape1(n), 3);
  const auto index = Positions<T>(9, n), place = Positions<T>(n, m);
  if (n > 0) CheckSavers<2, T>("take", [&] { return take(index, x); });
  Check<2, T>("take_grad", [&] { return take_grad(index, grad, n); });
  Check<1, T>("transpose_indices", [&] { return transpose_indices(index, Shape2(3, 5), Shape2(1, 0)); });
  Check<2>("one_hot_encode", [&] { return one_hot_encode(index, m); });
  if (m > 0) Check<1, T>("mat_choose_row_element", [&] { return mat_choose_row_element(x, place); });
  Check<2, T>("mat_fill_row_element", [&] { return mat_fill_row_element(x, rows, place); });
  Check<2, T>("mask", [&] { return mask(rows, x); });
  Check<2, T>("implicit_dot", [&] { return implicit_dot(x, x.T()); });
}

template <typename T>
void CheckWindows(index_t count, index_t n, index_t m) {
  const auto x = Drawn<4, T>(Shape4(count, 3, n + 2, m + 2), 1);
  const auto powers = Powers<T>(x.shape_);
  Check<4, T>("pool", [&] { return pool<red::maximum>(x, 2, 3, 2, 1); });
  Check<4, T>("pool of a shape", [&] { return pool<red::maximum>(x, Shape2((n + 1) / 2 + 1, m), 2, 3, 2, 1); });
  Check<4, T>("pool product", [&] { return pool<red::product>(powers, 2, 2, 3, 2); });
  Check<4, T>("chpool", [&] { return chpool<red::sum>(x, 3); });
  Check<4, T>("ada_pool", [&] { return ada_pool<red::minimum>(x, 2, 2); });
  TensorContainer<cpu, 4, T> pooled(
      expr::ShapeCheck<4, decltype(pool<red::maximum>(x, 2, 3, 2, 1))>::Check(pool<red::maximum>(x, 2, 3, 2, 1)));
  pooled = pool<red::maximum>(x, 2, 3, 2, 1);
  const auto grad = Drawn<4, T>(pooled.shape_, 2), channels = Drawn<4, T>(x.shape_, 3);
  CheckSavers<4, T>("unpool", [&] { return unpool<red::maximum>(x, pooled, grad, 2, 3, 2, 1); });
  Check<4, T>("ch_unpool", [&] { return ch_unpool<red::sum>(x, channels, channels, 3, 1, 1); });
  CheckSavers<2, T>("unpack_patch2col", [&] { return unpack_patch2col(x, 2, 3, 1, 2, 1, 1); });
  const auto columns =
      Drawn<2, T>(expr::ShapeCheck<2, decltype(unpack_patch2col(x, 2, 2, 1))>::Check(unpack_patch2col(x, 2, 2, 1)), 4);
  Check<4, T>("pack_col2patch", [&] { return pack_col2patch(columns, x.shape_, 2, 2, 1); });
}

TEST(Extension, BroadcastsAndReductionsOnDrawnShapes) {
  std::mt19937 random(20261121);
  const auto draw = [&] { return kExtents[random() % std::size(kExtents)]; };
  for (int round = 0; round < 2; ++round) {
    CheckBroadcastsAndReductions<float>(draw(), draw());
    CheckBroadcastsAndReductions<std::int32_t>(draw(), draw());
  }
}

TEST(Extension, IndexMapsOnDrawnShapes) {
  std::mt19937 random(20261122);
  const auto draw = [&] { return kExtents[random() % std::size(kExtents)]; };
  for (int round = 0; round < 2; ++round) {
    CheckRearrangements<double>(draw(), draw());
    CheckSelections<double>(draw(), draw());
    CheckWindows<double>(1 + round, draw(), draw());
  }
}

const Shape<2> kSmall[] = {Shape2(1, 1), Shape2(0, 3), Shape2(3, 0)};

TEST(Extension, BroadcastsAndReductionsOfOneElementAndOfNone) {
  for (const Shape<2>& shape : kSmall) CheckBroadcastsAndReductions<float>(shape[0], shape[1]);
}

TEST(Extension, RearrangementsOfOneElementAndOfNone) {
  for (const Shape<2>& shape : kSmall) CheckRearrangements<double>(shape[0], shape[1]);
}

TEST(Extension, SelectionsOfOneElementAndOfNone) {
  for (const Shape<2>& shape : kSmall) CheckSelections<double>(shape[0], shape[1]);
}

TEST(Extension, WindowsOfNoPicturesAndAsLargeAsOne) {
  CheckWindows<double>(0, 2, 3);
  CheckWindows<double>(1, 0, 1);
}

}  // namespace
}  // namespace umbra

// Index maps whose positions come from data, windows over channels, patches.
#include "tests/unit/index_map_common.h"
#include "umbra/tshape.h"

namespace umbra {
namespace {

TensorContainer<cpu, 1> Indices(index_t n, int below, unsigned seed) {
  TensorContainer<cpu, 1> t((Shape1(n)));
  std::mt19937 random(seed);
  for (index_t i = 0; i < n; ++i) t[i] = static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(below)));
  return t;
}

TEST(IndexMapData, Rearranging) {
  const auto x = Drawn<3>(Shape3(3, 6, 37), 1);
  CheckSavers<3>("slice_ex", [&] { return slice_ex(x, Shape3(1, 0, 2), Shape3(3, 5, 36), Shape3(1, 2, 3)); });
  Check<3>("transpose", [&] { return transpose(x, Shape3(2, 0, 1)); });
  Check<4>("broadcast_with_axis", [&] { return broadcast_with_axis(x, 1, 3); });
  Check<4>("broadcast_with_axis, before all", [&] { return broadcast_with_axis(x, -1, 3); });
  Check<3>("slice of every axis", [&] { return slice(x * 2.0f, Shape3(1, 0, 2), Shape3(3, 5, 36)); });
  const auto one = Drawn<3>(Shape3(3, 1, 37), 2);
  Check<3>("broadcast_keepdim", [&] { return broadcast_keepdim(one, 1, 4); });
  Check<1>("range", [&] { return range(2.0f, 40.0f, 1.5f, 3); });
  Check<1, std::int32_t>("range i32", [&] { return range<std::int32_t>(10, -10, -3); });
}

TEST(IndexMapData, BroadcastsOfSeveralAxes) {
  const auto x = Drawn<3>(Shape3(1, 6, 1), 1);
  Check<3>("broadcast_multi_axes", [&] { return broadcast_multi_axes(x, Shape2(0, 2), Shape2(3, 17)); });
  Check<3>("broadcast_to", [&] { return broadcast_to(x + 1.0f, Shape3(3, 6, 17)); });
  TensorContainer<cpu, 3> y(Shape3(3, 6, 17)), first(Shape3(2, 3, 4));
  y = broadcast_to(x, TShape(y.shape_));
  EXPECT_EQ(y[2][4][11], x[0][4][0]);
  const TShape axes(Shape1(0)), sizes(Shape1(3));
  TensorContainer<cpu, 3> z(Shape3(3, 6, 1));
  z = broadcast_multi_axes(x, axes, sizes);
  EXPECT_EQ(z[1][5][0], x[0][5][0]);
  const auto rows = Drawn<2>(Shape2(3, 4), 2);
  first = broadcast_with_axis(rows, -1, 2);
  EXPECT_EQ(first[1][2][3], rows[2][3]);
  EXPECT_SAYS("broadcast_to: axis 1 of shape (1,6,1) does not become 5", broadcast_to(x, Shape3(3, 5, 1)));
  EXPECT_SAYS("broadcast_to a shape of 2 axes from (1,6,1)", broadcast_to(x, Shape2(3, 6)));
  EXPECT_SAYS("broadcast_multi_axes: axis 0 comes after axis 2", broadcast_multi_axes(x, Shape2(2, 0), Shape2(3, 3)));
  EXPECT_SAYS("broadcast_multi_axes: the extents 6 and 1 differ", broadcast_multi_axes(x, Shape1(1), Shape1(3)));
  EXPECT_SAYS("1 axes and 2 sizes are given", broadcast_multi_axes(x, TShape(Shape1(0)), TShape(Shape2(3, 4))));
  EXPECT_SAYS("behind axis -2 of a tensor of rank 3; it can be -1 (before all) to 2", broadcast_with_axis(x, -2, 3));
}

// Where an element was says where it is: transpose moves what transpose_indices follows.
TEST(IndexMapData, TransposedIndices) {
  const auto x = Drawn<3>(Shape3(3, 4, 5), 40);
  TensorContainer<cpu, 3> moved(Shape3(5, 3, 4), 0.0f, false);
  moved = transpose(x, Shape3(2, 0, 1));
  TensorContainer<cpu, 1> places(Shape1(60)), taken(Shape1(60)), flat(Shape1(60));
  places = transpose_indices(range(0.0f, 60.0f), Shape3(3, 4, 5), Shape3(2, 0, 1));
  flat = reshape(x, Shape1(60));
  taken = take(places, moved.FlatTo1D());
  ExpectSame(flat, taken, "take of transpose_indices");
  const auto index = Drawn<2>(Shape2(5, 17), 41);  // some below 0
  Check<2>("transpose_indices", [&] { return transpose_indices(index + 1.0f, Shape2(2, 3), Shape2(1, 0)); });
  EXPECT_SAYS("transpose_indices: axis 1 is given twice", transpose_indices(index, Shape2(2, 3), Shape2(1, 1)));
  EXPECT_SAYS("transpose_indices: the extent is 0", transpose_indices(index, Shape2(2, 0), Shape2(1, 0)));
}

TEST(IndexMapData, FromData) {
  const auto x = Drawn<2>(Shape2(11, 37), 3);
  auto index = Indices(23, 11, 4);
  CheckSavers<2>("take", [&] { return take(index, x); });
  index[3] = -5;
  index[4] = 400;
  Check<2>("take beyond", [&] { return take(index, x * 2.0f); });
  const auto vector = Drawn<1>(Shape1(11), 9);
  Check<1>("take of a vector", [&] { return take(index, vector); });
  Check<1>("take of a vector, inside",
           [&] { return F<op::exp>(take(index, vector) * 0.5f) - take(index, vector + 1.0f); });
  const auto cube = Drawn<3>(Shape3(11, 3, 5), 8);
  Check<3>("take of a tensor", [&] { return take(index, cube); });
  const auto grad = Drawn<2>(Shape2(23, 37), 5);
  Check<2>("take_grad", [&] { return take_grad(index, grad, 11); });
  Check<2>("one_hot_encode", [&] { return one_hot_encode(index, 13); });
  const auto rows = Indices(11, 37, 6), values = Drawn<1>(Shape1(11), 7);
  Check<1>("choose", [&] { return mat_choose_row_element(x, rows); });
  Check<2>("fill", [&] { return mat_fill_row_element(x, values, rows); });
  TensorContainer<cpu, 1, double> wide(values.shape_);
  TensorContainer<cpu, 1, std::int32_t> whole(values.shape_);
  wide = tcast<double>(values) * 3.0;
  whole = tcast<std::int32_t>(values * 9.0f);
  Check<2>("fill with f64", [&] { return mat_fill_row_element(x, wide, rows); });
  Check<2>("fill with i32, inside", [&] { return F<op::abs>(mat_fill_row_element(x * 2.0f, whole, rows)) + x; });
  TensorContainer<cpu, 2> filled(x.shape_);
  filled = mat_fill_row_element(x, whole, rows);
  EXPECT_EQ(filled[4][static_cast<index_t>(rows[4])], static_cast<float>(whole[4]));
  Check<2>("mask", [&] { return mask(values, x); });
}

// An index has a dtype of its own; one that f32 does not hold reaches its row.
template <typename IType>
void CheckTake(const std::string& name) {
  const auto x = Drawn<2>(Shape2(11, 37), 3);
  const auto numbers = Indices(23, 11, 4);
  TensorContainer<cpu, 1, IType> index(Shape1(23));
  index = tcast<IType>(numbers);
  Check<2>("take " + name, [&] { return take(index, x); });
  TensorContainer<cpu, 2> taken(Shape2(23, 37)), expected(Shape2(23, 37));
  taken = take(index, x);
  expected = take(numbers, x);
  ExpectSame(expected, taken, name);
}

template <typename IType>
void CheckIndexDType(const std::string& name) {
  const auto x = Drawn<2>(Shape2(11, 37), 3), grad = Drawn<2>(Shape2(23, 37), 5);
  const auto numbers = Indices(23, 11, 4), row_numbers = Indices(11, 37, 6);
  const auto values = Drawn<1>(Shape1(11), 7);
  TensorContainer<cpu, 1, IType> index(Shape1(23)), rows(Shape1(11));
  index = tcast<IType>(numbers);
  rows = tcast<IType>(row_numbers);
  Check<2>("take_grad " + name, [&] { return take_grad(index, grad, 11); });
  Check<1>("choose " + name, [&] { return mat_choose_row_element(x * 2.0f, rows); });
  Check<2>("fill " + name, [&] { return mat_fill_row_element(x, values, rows); });
}

TEST(IndexMapData, IndicesOfTheirOwnDtype) {
  CheckTake<std::int32_t>("i32");
  CheckTake<std::int64_t>("i64");
  CheckTake<double>("f64");
  CheckTake<std::uint8_t>("u8");
  CheckIndexDType<std::int32_t>("i32");
  const auto ints = Drawn<2, std::int32_t>(Shape2(9, 33), 21);
  const auto numbers = Indices(14, 9, 22);
  Check<2, std::int32_t>("take of i32", [&] { return take(numbers, ints); });
  TensorContainer<cpu, 1, std::int64_t> index(Shape1(4));
  index[0] = 2, index[1] = -1, index[2] = std::int64_t{1} << 40, index[3] = 0;
  Check<2>("one_hot_encode of i64", [&] { return one_hot_encode(index, 3); });  // mshadow's: of default_real_t
  Check<2, std::int64_t>("transpose_indices of i64",
                         [&] { return reshape(transpose_indices(index, Shape2(2, 3), Shape2(1, 0)), Shape2(2, 2)); });
  TensorContainer<cpu, 1> odd(Shape1(4));
  odd[0] = std::numeric_limits<float>::quiet_NaN(), odd[1] = 1e30f, odd[2] = -1e30f, odd[3] = 1.9f;
  Check<2, std::int32_t>("take at no number", [&] { return take(odd, ints); });
  TensorContainer<cpu, 2, std::int32_t> rows(Shape2(4, 33));
  rows = take(odd, ints);
  EXPECT_EQ(rows[1][5], ints[8][5]);
  EXPECT_EQ(rows[3][5], ints[1][5]);
}

// 16-bit floats are loaded whole where they lie side by side, or by a stride, and one by one where not.
TEST(IndexMapData, Halves) {
  const auto x = Drawn<2, half_t>(Shape2(11, 70), 51);
  const auto index = Indices(23, 11, 52);
  CheckSavers<2, half_t>("take of f16", [&] { return take(index, x); });
  Check<2, half_t>("take of f16, inside", [&] { return F<op::exp>(take(index, x)) * half_t(0.5f); });
  Check<2, half_t>("slice of f16", [&] { return F<op::exp>(slice(x, Shape2(1, 3), Shape2(9, 69))); });
  Check<2, half_t>("every other of f16",
                   [&] { return slice_ex(x, Shape2(0, 1), Shape2(11, 70), Shape2(1, 2)) * half_t(2.0f); });
  Check<2, half_t>("reversed f16", [&] { return flip(x, 1) * half_t(2.0f); });
  Check<2, half_t>("f16 again and again", [&] { return upsampling_nearest(x, 2) * half_t(2.0f); });
  Check<2, half_t>("padded f16", [&] { return pad(x, 1, 2) * half_t(2.0f); });
  Check<2, half_t>("rows of f16 across", [&] { return swapaxis<0, 1>(take(index, x)) * half_t(2.0f); });
  Check<2, half_t>("take_grad of f16", [&] { return take_grad(index, take(index, x), 9); });
}

TEST(IndexMapData, TakeGradIsTheTransposeOfTake) {
  const auto index = Indices(40, 9, 8);
  const auto x = Drawn<2>(Shape2(9, 5), 9), grad = Drawn<2>(Shape2(40, 5), 10);
  TensorContainer<cpu, 2> taken(Shape2(40, 5)), back(Shape2(9, 5));
  taken = take(index, x);
  back = take_grad(index, grad, 9);
  double left = 0, right = 0;
  for (index_t i = 0; i < 40; ++i)
    for (index_t j = 0; j < 5; ++j) left += static_cast<double>(taken[i][j]) * static_cast<double>(grad[i][j]);
  for (index_t i = 0; i < 9; ++i)
    for (index_t j = 0; j < 5; ++j) right += static_cast<double>(x[i][j]) * static_cast<double>(back[i][j]);
  EXPECT_NEAR(left, right, 1e-6);
}

TEST(IndexMapData, Channels) {
  const auto x = Drawn<4>(Shape4(2, 7, 3, 19), 11);
  Check<4>("chpool sum", [&] { return chpool<red::sum>(x, 3); });
  Check<4>("chpool max", [&] { return chpool<red::maximum>(x, 3, 2, 1); });
  TensorContainer<cpu, 4> pooled(Shape4(2, 3, 3, 19));
  pooled = chpool<red::maximum>(x, 3, 2, 1);
  const auto grad = Drawn<4>(pooled.shape_, 12);
  Check<4>("ch_unpool max", [&] { return ch_unpool<red::maximum>(x, pooled, grad, 3, 2, 1); });
  Check<4>("ch_unpool sum", [&] { return ch_unpool<red::sum>(x, pooled, grad, 3, 2, 1); });
  TensorContainer<cpu, 4> around(x.shape_), given(x.shape_);
  around = ch_unpool<red::sum>(x, x, x, 3);
  given = ch_unpool<red::sum>(x, x, x, 3, 1, 1);
  ExpectSame(around, given, "ch_unpool of a size");
}

TEST(IndexMapData, AdaptivePooling) {
  const auto x = Drawn<4>(Shape4(2, 2, 7, 23), 13);
  Check<4>("ada_pool max", [&] { return ada_pool<red::maximum>(x, 3, 5); });
  Check<4>("ada_pool sum", [&] { return ada_pool<red::sum>(x, 2, 23); });
  TensorContainer<cpu, 4> all(Shape4(2, 2, 1, 1));
  all = ada_pool<red::maximum>(x, 1, 1);
  float most = x[0][0][0][0];
  for (int y = 0; y < 7; ++y)
    for (int k = 0; k < 23; ++k) most = std::max(most, x[0][0][y][k]);
  EXPECT_EQ(all[0][0][0][0], most);
}

TEST(IndexMapData, MeansAndProductsOfWindows) {
  const auto x = Drawn<4>(Shape4(2, 7, 5, 23), 31);
  Check<4>("pool mean", [&] { return pool<red::mean>(x, 3, 2, 2, 3); });
  Check<4>("pool product", [&] { return pool<red::product>(x, 1, 2, 2); });
  Check<4>("chpool mean", [&] { return chpool<red::mean>(x, 3, 2, 1); });
  Check<4>("chpool product", [&] { return chpool<red::product>(x, 2, 2, 1); });
  Check<4>("ada_pool mean", [&] { return ada_pool<red::mean>(x, 3, 5); });
  const auto i = Drawn<3, std::int32_t>(Shape3(2, 7, 21), 32);
  CheckSavers<3, std::int32_t>("pool mean of i32", [&] { return pool<red::mean>(i, 2, 2, 3); });
  Check<3, std::int32_t>("pool product of i32", [&] { return pool<red::product>(i, 2, 2, 3); });
  TensorContainer<cpu, 4> pooled(Shape4(2, 7, 2, 8));
  pooled = pool<red::mean>(x, 3, 2, 2, 3);
  const auto grad = Drawn<4>(pooled.shape_, 33), channels = Drawn<4>(Shape4(2, 3, 5, 23), 34);
  Check<4>("unpool mean", [&] { return unpool<red::mean>(x, pooled, grad, 3, 2, 2, 3); });
  Check<4>("ch_unpool mean", [&] { return ch_unpool<red::mean>(x, channels, channels, 3, 2, 1); });
}

// mshadow's numbers of windows: whole ones, unless a shape is given.
TEST(IndexMapData, NumbersOfWindows) {
  const auto x = Drawn<4>(Shape4(2, 7, 5, 23), 31);
  const auto whole = pool<red::maximum>(x, 2, 2, 2);
  EXPECT_EQ(whole.shape_, Shape4(2, 7, 2, 11));
  const auto given = pool<red::maximum>(x, Shape2(3, 12), 2, 2, 2, 2);
  EXPECT_EQ(given.shape_, Shape4(2, 7, 3, 12));
  Check<4>("pool of a shape", [&] { return pool<red::maximum>(x, Shape2(3, 12), 2, 2, 2, 2); });
  Check<4>("mean of a shape", [&] { return pool<red::mean>(x + 1.0f, Shape2(2, 8), 3, 2, 2, 3); });
  const auto i = Drawn<2, std::int64_t>(Shape2(5, 7), 32);
  Check<2, std::int64_t>("pool of a shape of i64", [&] { return pool<red::minimum>(i, Shape2(3, 3), 2, 4, 2, 2); });
  EXPECT_SAYS("pool: an extent of 5, but 7 is the least that fits",
              pool<red::sum>(x, Shape2(4, 11), 2, 2, 2, 2));  // nothing in the fourth row
  EXPECT_SAYS("pool: an extent of 5, but 6 is the least that fits", pool<red::sum>(x, 6, 2, 1));
  EXPECT_EQ(chpool<red::sum>(x, 3, 2, 1).shape_[1], 3);
  EXPECT_EQ(chpool<red::sum>(x, 3, 2, 2).shape_[1], 4);
  EXPECT_EQ(chpool<red::sum>(x, 3).shape_[1], 7);
  EXPECT_SAYS("chpool: 4 channels have none in the middle", chpool<red::sum>(x, 4));
  TensorContainer<cpu, 4> sums(Shape4(2, 3, 5, 23));
  sums = chpool<red::sum>(x, 3, 2, 1);  // where mshadow's last window lacks channel 5, beyond the number of windows
  EXPECT_EQ(sums[1][2][3][4], x[1][3][3][4] + x[1][4][3][4] + x[1][5][3][4]);
}

// The mean of a window that is cut is that of the elements it has; its gradient is the transpose.
TEST(IndexMapData, MeanOfACutWindow) {
  TensorContainer<cpu, 2> x(Shape2(2, 5)), pooled(Shape2(1, 3)), grad(Shape2(1, 3)), back(Shape2(2, 5));
  for (index_t k = 0; k < 10; ++k) x[k / 5][k % 5] = static_cast<float>(k);
  pooled = pool<red::mean>(x, Shape2(1, 3), 2, 2, 2, 2);
  EXPECT_EQ(pooled[0][0], (0 + 1 + 5 + 6) / 4.0f);
  EXPECT_EQ(pooled[0][2], (4 + 9) / 2.0f);
  grad[0][0] = 4, grad[0][1] = 8, grad[0][2] = 16;
  back = unpool<red::mean>(x, pooled, grad, 2, 2, 2, 2);
  EXPECT_EQ(back[1][1], 1.0f);
  EXPECT_EQ(back[0][3], 2.0f);
  EXPECT_EQ(back[1][4], 8.0f);
  pooled = pool<red::product>(x + 1.0f, Shape2(1, 3), 2, 2, 2, 2);
  EXPECT_EQ(pooled[0][2], 50.0f);
}

TEST(IndexMapData, Patches) {
  const auto x = Drawn<4>(Shape4(2, 3, 8, 11), 14);
  Check<2>("patch2col", [&] { return unpack_patch2col(x, 3, 3, 2); });
  Check<2>("patch2col dilated", [&] { return unpack_patch2col(x, 2, 3, 2, 1, 3, 2); });
  Check<2>("patch2col padded", [&] { return unpack_patch2col(pad(x, 1), 3, 3, 1); });
  TensorContainer<cpu, 2> columns(Shape2(3 * 9, 2 * 3 * 5)), apart(Shape2(3 * 6, 2 * 2 * 5));
  apart = unpack_patch2col(x, 3, 2, 2, 2);  // mshadow's: one stride, one dilation
  EXPECT_EQ(apart[3][0], x[0][0][2][2]);
  EXPECT_EQ(apart[3][5], x[0][0][4][2]);
  EXPECT_EQ(apart[0][1], x[0][0][0][2]);
  columns = unpack_patch2col(x, 3, 3, 2);
  const auto weight = Drawn<2>(columns.shape_, 15);
  CheckSavers<4>("col2patch", [&] { return pack_col2patch(weight, x.shape_, 3, 3, 2); });
  // <unpack(x), w> = <x, pack(w)>
  TensorContainer<cpu, 4> packed(x.shape_);
  packed = pack_col2patch(weight, x.shape_, 3, 3, 2);
  double left = 0, right = 0;
  for (index_t i = 0; i < columns.shape_[0]; ++i)
    for (index_t j = 0; j < columns.shape_[1]; ++j)
      left += static_cast<double>(columns[i][j]) * static_cast<double>(weight[i][j]);
  for (index_t n = 0; n < 2; ++n)
    for (index_t c = 0; c < 3; ++c)
      for (index_t i = 0; i < 8; ++i)
        for (index_t j = 0; j < 11; ++j)
          right += static_cast<double>(x[n][c][i][j]) * static_cast<double>(packed[n][c][i][j]);
  EXPECT_NEAR(left, right, 1e-6);
}

TEST(IndexMapData, OneDtypeForData) {
  EXPECT_SAYS(
      "concat(a, b, ..., axis): the operands have one dtype, but 'a' is i32 and 'b' is f32; convert one with tcast<f32>(...)",
      graph::ParseText("kernel k(a: i32[n], b: f32[4]) -> (y: f32[m]) { y = concat(a, b, 0) }"));
  EXPECT_SAYS(
      "but 'x' is f64 and 'v' is i32; convert one with tcast<f64>",
      graph::ParseText(
          "kernel k(x: f64[n, 4], v: i32[n], i: i64[n]) -> (y: f64[n, 4]) { y = mat_fill_row_element(x, v, i) }"));
  EXPECT_EQ(graph::ParseText("kernel k(i: i8[n], x: f16[3, 4]) -> (y: f16[n, 4]) { y = take(i, x) }").size(), 1u);
}

TEST(IndexMapData, ReducersOfWindows) {
  const auto with = [](const std::string& call) {
    return graph::ParseText("kernel k(x: f32[8, 8]) -> (y: f32[4, 4]) { y = " + call + " }");
  };
  EXPECT_EQ(with("pool<sum>(x, 2, 2, 2, 2)").size(), 1u);
  EXPECT_EQ(with("pool<mean>(x, 2, 2, 2, 2)").size(), 1u);
  EXPECT_SAYS(
      "pool takes the reducer sum, maximum, minimum, mean or product, as in pool<sum>(...); pool<median> is none of them",
      with("pool<median>(x, 2, 2, 2, 2)"));
  EXPECT_SAYS("pool takes the reducer sum, maximum, minimum, mean or product, as in pool<sum>(...)",
              with("pool(x, 2, 2, 2, 2)"));
  EXPECT_SAYS("unpool takes the reducer sum, maximum, minimum or mean", with("unpool<product>(x, x, x, 2, 2, 2, 2)"));
  graph::Builder builder("b");
  const graph::Value x = builder.Input("x", DType::kFloat32, {8, 8});
  EXPECT_SAYS("ada_pool<argmax> is none of them", graph::IndexMap("ada_pool<argmax>", {x}, {2, 2}));
}

TEST(IndexMapData, ImplicitDot) {
  const auto a = Drawn<2>(Shape2(5, 7), 18), b = Drawn<2>(Shape2(7, 21), 19);
  Check<2>("implicit_dot", [&] { return implicit_dot(a, b * 2.0f); });
  TensorContainer<cpu, 2> by_blas(Shape2(5, 21)), by_map(Shape2(5, 21));
  by_blas = dot(a, b);
  by_map = implicit_dot(a, b);
  ExpectSame(by_blas, by_map, "dot");  // small quarters: every sum is exact
}

TEST(IndexMapData, BadUse) {
  const auto x = Drawn<2>(Shape2(3, 4), 1);
  const auto v = Drawn<1>(Shape1(5), 2);
  TensorContainer<cpu, 2> y(Shape2(3, 4));
  EXPECT_NE(MessageOf([&] { y = mask(v, x); }).find("mask: the extents 5 and 3 differ"), std::string::npos);
  EXPECT_NE(MessageOf([&] { jit(y) = transpose(x, Shape2(0, 0)); }).find("axis 0 is given twice"), std::string::npos);
  EXPECT_NE(MessageOf([&] { range(0.0f, 5.0f, -1.0f); }).find("range: no steps"), std::string::npos);
  const auto five = Drawn<5>(Shape5(1, 1, 1, 1, 2), 3);
  EXPECT_SAYS("take(index, x) of ranks 5 and 5", take(five, five));
}

}  // namespace
}  // namespace umbra

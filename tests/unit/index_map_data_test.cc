// Index maps whose positions come from data, windows over channels, patches, complex numbers.
#include "tests/unit/index_map_common.h"

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
  Check<3>("slice_ex", [&] { return slice_ex(x, Shape3(1, 0, 2), Shape3(3, 5, 36), Shape3(1, 2, 3)); });
  Check<3>("transpose", [&] { return transpose(x, Shape3(2, 0, 1)); });
  Check<4>("broadcast_with_axis", [&] { return broadcast_with_axis(x, 1, 3); });
  const auto one = Drawn<3>(Shape3(3, 1, 37), 2);
  Check<3>("broadcast_keepdim", [&] { return broadcast_keepdim(one, 1, 4); });
  Check<1>("range", [&] { return range(2.0f, 40.0f, 1.5f, 3); });
  Check<1, std::int32_t>("range i32", [&] { return range<std::int32_t>(10, -10, -3); });
}

TEST(IndexMapData, FromData) {
  const auto x = Drawn<2>(Shape2(11, 37), 3);
  auto index = Indices(23, 11, 4);
  Check<2>("take", [&] { return take(index, x); });
  index[3] = -5;
  index[4] = 400;
  Check<2>("take beyond", [&] { return take(index, x * 2.0f); });
  const auto vector = Drawn<1>(Shape1(11), 9);
  Check<1>("take of a vector", [&] { return take(index, vector); });
  Check<1>("take of a vector, inside", [&] { return F<op::exp>(take(index, vector) * 0.5f) - take(index, vector + 1.0f); });
  const auto cube = Drawn<3>(Shape3(11, 3, 5), 8);
  Check<3>("take of a tensor", [&] { return take(index, cube); });
  const auto grad = Drawn<2>(Shape2(23, 37), 5);
  Check<2>("take_grad", [&] { return take_grad(index, grad, 11); });
  Check<2>("one_hot_encode", [&] { return one_hot_encode(index, 13); });
  const auto rows = Indices(11, 37, 6), values = Drawn<1>(Shape1(11), 7);
  Check<1>("choose", [&] { return mat_choose_row_element(x, rows); });
  Check<2>("fill", [&] { return mat_fill_row_element(x, values, rows); });
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
  Check<2, std::int64_t>("one_hot_encode of i64", [&] { return one_hot_encode(index, 3); });
  TensorContainer<cpu, 1> odd(Shape1(4));
  odd[0] = std::numeric_limits<float>::quiet_NaN(), odd[1] = 1e30f, odd[2] = -1e30f, odd[3] = 1.9f;
  Check<2, std::int32_t>("take at no number", [&] { return take(odd, ints); });
  TensorContainer<cpu, 2, std::int32_t> rows(Shape2(4, 33));
  rows = take(odd, ints);
  EXPECT_EQ(rows[1][5], ints[8][5]);
  EXPECT_EQ(rows[3][5], ints[1][5]);
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
  TensorContainer<cpu, 4> pooled(Shape4(2, 4, 3, 19));
  pooled = chpool<red::maximum>(x, 3, 2, 1);
  const auto grad = Drawn<4>(pooled.shape_, 12);
  Check<4>("ch_unpool max", [&] { return ch_unpool<red::maximum>(x, pooled, grad, 3, 2, 1); });
  Check<4>("ch_unpool sum", [&] { return ch_unpool<red::sum>(x, pooled, grad, 3, 2, 1); });
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
  Check<3, std::int32_t>("pool mean of i32", [&] { return pool<red::mean>(i, 2, 2, 3); });
  Check<3, std::int32_t>("pool product of i32", [&] { return pool<red::product>(i, 2, 2, 3); });
  TensorContainer<cpu, 4> pooled(Shape4(2, 7, 2, 8));
  pooled = pool<red::mean>(x, 3, 2, 2, 3);
  const auto grad = Drawn<4>(pooled.shape_, 33), channels = Drawn<4>(Shape4(2, 4, 5, 23), 34);
  Check<4>("unpool mean", [&] { return unpool<red::mean>(x, pooled, grad, 3, 2, 2, 3); });
  Check<4>("ch_unpool mean", [&] { return ch_unpool<red::mean>(x, channels, channels, 3, 2, 1); });
}

// The mean of a window that is cut is that of the elements it has; its gradient is the transpose.
TEST(IndexMapData, MeanOfACutWindow) {
  TensorContainer<cpu, 2> x(Shape2(2, 5)), pooled(Shape2(1, 3)), grad(Shape2(1, 3)), back(Shape2(2, 5));
  for (index_t k = 0; k < 10; ++k) x[k / 5][k % 5] = static_cast<float>(k);
  pooled = pool<red::mean>(x, 2, 2, 2);
  EXPECT_EQ(pooled[0][0], (0 + 1 + 5 + 6) / 4.0f);
  EXPECT_EQ(pooled[0][2], (4 + 9) / 2.0f);
  grad[0][0] = 4, grad[0][1] = 8, grad[0][2] = 16;
  back = unpool<red::mean>(x, pooled, grad, 2, 2, 2, 2);
  EXPECT_EQ(back[1][1], 1.0f);
  EXPECT_EQ(back[0][3], 2.0f);
  EXPECT_EQ(back[1][4], 8.0f);
  pooled = pool<red::product>(x + 1.0f, 2, 2, 2);
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
  Check<4>("col2patch", [&] { return pack_col2patch(weight, x.shape_, 3, 3, 2); });
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

TEST(IndexMapData, ComplexNumbers) {
  const auto a = Drawn<2>(Shape2(3, 38), 16), b = Drawn<2>(Shape2(3, 38), 17);
  Check<2>("conj", [&] { return complex_conj(a); });
  Check<2>("real", [&] { return complex_toreal(a); });
  Check<2>("imag", [&] { return complex_toimag(a + b); });
  Check<2>("abs", [&] { return complex_abs(a); });
  Check<2>("mul", [&] { return complex_mul(a, b); });
  Check<2>("pack", [&] { return complex_pack(a, b); });
  TensorContainer<cpu, 2> product(Shape2(3, 38));
  product = complex_mul(a, b);
  EXPECT_EQ(product[1][4], a[1][4] * b[1][4] - a[1][5] * b[1][5]);
  EXPECT_EQ(product[1][5], a[1][4] * b[1][5] + a[1][5] * b[1][4]);
}

TEST(IndexMapData, ComplexNumbersComeInPairs) {
  const auto a = Drawn<2>(Shape2(3, 7), 16), b = Drawn<2>(Shape2(3, 7), 17);
  const auto says = [](const char* name) { return std::string(name) + ": the last axis must be even"; };
  EXPECT_SAYS(says("complex_mul"), complex_mul(a, b));
  EXPECT_SAYS(says("complex_conj"), complex_conj(a));
  EXPECT_SAYS(says("complex_toreal"), complex_toreal(a));
  EXPECT_SAYS(says("complex_toimag"), complex_toimag(a));
  EXPECT_SAYS(says("complex_abs2"), complex_abs(a));
  TensorContainer<cpu, 2> in(Shape2(3, 7)), out(Shape2(3, 7));
  const auto ref = [](Tensor<cpu, 2>& t) {
    return runtime::TensorRef{t.dptr_, DType::kFloat32, {t.shape_[0], t.shape_[1]}, {t.stride_, 1}};
  };
  for (const char* map : {"complex_mul", "complex_conj", "complex_toreal", "complex_toimag", "complex_abs2"}) {
    const std::string call = map + std::string(map == std::string("complex_mul") ? "(x, x)" : "(x)");
    EXPECT_SAYS(says(map), graph::ParseText("kernel k(x: f32[3, 7]) -> (y: f32[3, p]) { y = " + call + " }"));
    for (const CompileOptions& route : Routes()) {
      const Function f = Compile(graph::ParseText("kernel k(x: f32[n, m]) -> (y: f32[n, p]) { y = " + call + " }")[0], route);
      EXPECT_SAYS(says(map) + ": an extent is 7 (dimension 1 of input 'x'", f({{ref(in)}, {ref(out)}, {}}));
    }
  }
}

TEST(IndexMapData, OneDtypeForData) {
  EXPECT_SAYS("concat(a, b, axis): the operands have one dtype, but 'a' is i32 and 'b' is f32; convert one with tcast<f32>(...)",
              graph::ParseText("kernel k(a: i32[n], b: f32[4]) -> (y: f32[m]) { y = concat(a, b, 0) }"));
  EXPECT_SAYS("but 'x' is f64 and 'v' is i32; convert one with tcast<f64>",
              graph::ParseText("kernel k(x: f64[n, 4], v: i32[n], i: i64[n]) -> (y: f64[n, 4]) { y = mat_fill_row_element(x, v, i) }"));
  EXPECT_EQ(graph::ParseText("kernel k(i: i8[n], x: f16[3, 4]) -> (y: f16[n, 4]) { y = take(i, x) }").size(), 1u);
}

TEST(IndexMapData, ReducersOfWindows) {
  const auto with = [](const std::string& call) {
    return graph::ParseText("kernel k(x: f32[8, 8]) -> (y: f32[4, 4]) { y = " + call + " }");
  };
  EXPECT_EQ(with("pool<sum>(x, 2, 2, 2, 2)").size(), 1u);
  EXPECT_EQ(with("pool<mean>(x, 2, 2, 2, 2)").size(), 1u);
  EXPECT_SAYS("pool takes the reducer sum, maximum, minimum, mean or product, as in pool<sum>(...); pool<median> is none of them",
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

TEST(IndexMapData, SliceOnTheLeft) {
  const auto x = Drawn<3, float>(Shape3(3, 5, 7), 1);
  const auto v = Drawn<3, float>(Shape3(3, 2, 7), 2);
  TensorContainer<cpu, 3, float> a(Shape3(3, 5, 7));
  a = x * 1.0f;
  slice<1>(a, 1, 3) = v * 2.0f;
  slice<1>(a, 3, 5) += slice<1>(a, 0, 2);  // reads what it does not write
  slice<2>(a, 2, 4) -= 1.0f;
  slice<0>(a, 1, 2) *= flip(slice<0>(a, 1, 2), 2);  // reads what it writes
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 5; ++j)
      for (index_t k = 0; k < 7; ++k) {
        const auto first = [&](index_t column) {
          const auto base = [&](index_t row) { return row == 1 || row == 2 ? v[i][row - 1][column] * 2.0f : x[i][row][column]; };
          float value = base(j);
          if (j >= 3) value += base(j - 3);
          return column == 2 || column == 3 ? value - 1.0f : value;
        };
        EXPECT_EQ(a[i][j][k], i == 1 ? first(k) * first(6 - k) : first(k)) << i << j << k;
      }
  TensorContainer<cpu, 1, float> line(Shape1(5), 1.0f);
  slice<0>(line, 1, 3) = 4.0f;
  EXPECT_EQ(line[0], 1);
  EXPECT_EQ(line[2], 4);
  EXPECT_EQ(line[3], 1);
  EXPECT_NE(MessageOf([&] { slice<1>(a, 0, 3) = v * 1.0f; }).find("(3,3,7)"), std::string::npos);
}

TEST(IndexMapData, ConcatAsTarget) {
  TensorContainer<cpu, 2> a(Shape2(3, 4), 0.0f), b(Shape2(3, 9), 1.0f);
  const auto x = Drawn<2>(Shape2(3, 13), 20);
  concat<1>(a, b) = x * 2.0f;
  EXPECT_EQ(a[2][3], 2 * x[2][3]);
  EXPECT_EQ(b[1][0], 2 * x[1][4]);
  concat<1>(a, b) += flip(concat<1>(a, b), 1);  // reads what it writes
  EXPECT_EQ(a[0][0], 2 * x[0][0] + 2 * x[0][12]);
  EXPECT_EQ(b[0][8], 2 * x[0][12] + 2 * x[0][0]);
  concat<1>(a, b) = 3.0f;
  EXPECT_EQ(b[2][8], 3.0f);
  EXPECT_NE(MessageOf([&] { concat<1>(a, b) = a * 1.0f; }).find("(3,13)"), std::string::npos);
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

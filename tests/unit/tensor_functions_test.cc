#include "umbra/tensor_functions.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tests/support/testing.h"
#include "umbra/layout.h"
#include "umbra/tensor_io.h"

namespace umbra {
namespace {

TensorContainer<cpu, 2> Counted(index_t rows, index_t columns) {
  TensorContainer<cpu, 2> t(Shape2(rows, columns));
  for (index_t y = 0; y < rows; ++y)
    for (index_t x = 0; x < columns; ++x) t[y][x] = static_cast<float>(y * 10 + x);
  return t;
}
TensorContainer<cpu, 1> Vector(std::initializer_list<float> values) {
  TensorContainer<cpu, 1> t(Shape1(static_cast<index_t>(values.size())));
  std::copy(values.begin(), values.end(), t.dptr_);
  return t;
}

TEST(TensorFunctions, EngineAndStreams) {
  InitTensorEngine<cpu>();
  SetDevice<cpu>(0);
  EXPECT_NE(MessageOf([] { SetDevice<cpu>(1); }).find("one CPU"), std::string::npos);
  Stream<cpu>* stream = NewStream<cpu>();
  stream->CreateBlasHandle();
  stream->DestroyBlasHandle();
  stream->Wait();
  EXPECT_TRUE(stream->CheckIdle());
  DeleteStream(stream);
  ShutdownTensorEngine<cpu>();
}

TEST(TensorFunctions, Softmax) {
  const auto x = Counted(3, 17);
  TensorContainer<cpu, 2> y(x.shape_);
  Softmax(y, x);
  for (index_t i = 0; i < 3; ++i) {
    double sum = 0;
    for (index_t j = 0; j < 17; ++j) sum += std::exp(static_cast<double>(x[i][j]) - static_cast<double>(x[i][16]));
    for (index_t j = 0; j < 17; ++j)
      EXPECT_NEAR(y[i][j], std::exp(static_cast<double>(x[i][j]) - static_cast<double>(x[i][16])) / sum, 1e-6);
  }
  TensorContainer<cpu, 2> grad(x.shape_);
  const auto label = Vector({0, 16, 3});
  SoftmaxGrad(grad, y, label);
  EXPECT_EQ(grad[0][0], y[0][0] - 1);
  EXPECT_EQ(grad[1][15], y[1][15]);
  SoftmaxGrad(grad, y, label, 16.0f);
  EXPECT_EQ(grad[1][16], 0.0f);
  EXPECT_EQ(grad[2][3], y[2][3] - 1);
  const auto wrong = Vector({0, 17, 3});
  EXPECT_NE(MessageOf([&] { SoftmaxGrad(grad, y, wrong); }).find("label 17 of row 1"), std::string::npos);
}

TEST(TensorFunctions, SmoothSoftmaxGrad) {
  const auto p = Counted(3, 5);
  TensorContainer<cpu, 2> grad(p.shape_);
  const auto label = Vector({0, 4, 2});
  SmoothSoftmaxGrad(grad, p, label, 0.5f);
  EXPECT_EQ(grad[1][4], p[1][4] - 0.5f);
  EXPECT_EQ(grad[1][3], p[1][3] - 0.125f);
  SmoothSoftmaxGrad(grad, p, label, 4.0f, 0.5f);  // a label to ignore
  EXPECT_EQ(grad[1][3], 0.0f);
  EXPECT_EQ(grad[2][2], p[2][2] - 0.5f);
  TensorContainer<cpu, 2> plain(p.shape_);
  SoftmaxGrad(plain, p, label);
  SmoothSoftmaxGrad(grad, p, label, 0.0f);
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 5; ++j) EXPECT_EQ(grad[i][j], plain[i][j]);
  const auto one = Counted(2, 1);
  TensorContainer<cpu, 2> alone(one.shape_);
  SmoothSoftmaxGrad(alone, one, Vector({0, 0}), 0.25f);  // nobody to share with
  EXPECT_EQ(alone[1][0], one[1][0] - 0.75f);
  TensorContainer<cpu, 3, half_t> x(Shape3(2, 3, 2), half_t(1.0f)), y(x.shape_);
  const TensorContainer<cpu, 2, half_t> classes(Shape2(2, 2), half_t(2.0f));
  SmoothSoftmaxGrad<3, half_t>(y, x, classes, 0.5f);
  EXPECT_EQ(static_cast<float>(y[1][2][0]), 0.5f);
  EXPECT_EQ(static_cast<float>(y[1][0][1]), 0.75f);
  EXPECT_SAYS("label 4 of row 1 is none of 4 classes",
              (SmoothSoftmaxGrad<2, float>(Counted(3, 4), Counted(3, 4), label, 0.5f)));
}

// The labels of rows that are still to come must not be written over.
TEST(TensorFunctions, SoftmaxGradAndItsLabels) {
  TensorContainer<cpu, 2> memory(Shape2(4, 3), 1.0f, false);
  const Tensor<cpu, 2> grad = memory.Slice(0, 3);
  const Tensor<cpu, 1> label(memory.dptr_ + 3, Shape1(3));
  const TensorContainer<cpu, 2> p(Shape2(3, 3), 0.5f);
  EXPECT_SAYS("SoftmaxGrad: the destination overlaps an operand", (SoftmaxGrad<2, float>(grad, p, label)));
  EXPECT_EQ(memory[0][1], 1.0f);
}

TEST(TensorFunctions, RowsByIndex) {
  TensorContainer<cpu, 2> sum(Shape2(3, 4), 0.0f);
  const auto src = Counted(5, 4);
  const auto index = Vector({2, 0, 2, -7, 99});
  AddTakeGrad(sum, index, src);
  EXPECT_EQ(sum[0][1], src[1][1] + src[3][1]);
  EXPECT_EQ(sum[2][3], src[0][3] + src[2][3] + src[4][3]);
  EXPECT_EQ(sum[1][0], 0.0f);
  TensorContainer<cpu, 2> large(Shape2(3, 4), 0.0f);
  const auto sorted = Vector({0, 0, 2, 2, 2}), from = Vector({1, 3, 0, 2, 4});
  AddTakeGradLargeBatch(large, sorted, from, src);
  for (index_t y = 0; y < 3; ++y)
    for (index_t x = 0; x < 4; ++x) EXPECT_EQ(large[y][x], sum[y][x]);
  TensorContainer<cpu, 2> filled(Shape2(6, 4), -1.0f);
  const auto places = Vector({5, 1, 0, 2, 3});
  IndexFill(filled, places, src);
  EXPECT_EQ(filled[5][2], src[0][2]);
  EXPECT_EQ(filled[4][2], -1.0f);
  EXPECT_NE(MessageOf([&] { IndexFill(filled, index, src); }).find("IndexFill: row -7"), std::string::npos);
}

TEST(TensorFunctions, Sorting) {
  auto keys = Vector({3, 1, 2, 1});
  auto values = Vector({0, 1, 2, 3});
  SortByKey<float, float>(keys, values);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], 3.0f);
  EXPECT_EQ(keys[3], 3.0f);
  SortByKey<float, float>(keys, values, false);
  EXPECT_EQ(keys[0], 3.0f);
  EXPECT_EQ(values[2], 1.0f);
  auto data = Vector({5, 4, 3, 2, 1}), segments = Vector({1, 0, 1, 0, 1});
  VectorizedSort<float, float>(data, segments);
  const float wanted[] = {2, 4, 1, 3, 5};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(data[i], wanted[i]);
  EXPECT_EQ(segments[1], 0.0f);
}

TEST(TensorFunctions, Products) {
  const auto a = Vector({1, 2, 3}), b = Vector({4, 5, 6});
  TensorContainer<cpu, 1> dot((Shape1(1)));
  VectorDot<float>(dot, a, b);
  EXPECT_EQ(dot[0], 32.0f);
  TensorContainer<cpu, 3> x(Shape3(2, 3, 4), 1.0f), y(Shape3(2, 5, 4), 2.0f), z(Shape3(2, 3, 5), 1.0f);
  x[1][0][0] = 3.0f;
  BatchGEMM<false, true, float>(z, x, y, 0.5f, 1.0f);
  EXPECT_EQ(z[0][0][0], 5.0f);
  EXPECT_EQ(z[1][0][4], 7.0f);
  EXPECT_NE(MessageOf([&] { BatchGEMM<false, false, float>(z, x, y, 1.0f, 0.0f); }), "no error");
}

TEST(TensorFunctions, BatchDot) {
  TensorContainer<cpu, 3> x(Shape3(2, 4, 3), 1.0f), y(Shape3(2, 4, 5), 2.0f), z(Shape3(2, 3, 5), 1.0f);
  x[1][0][0] = 3.0f;
  z += 0.5f * batch_dot<true, false>(x, y);
  EXPECT_EQ(z[0][2][4], 5.0f);
  EXPECT_EQ(z[1][0][4], 7.0f);
  z = batch_dot<true, false>(x, y);
  EXPECT_EQ(z[0][0][0], 8.0f);
  TensorContainer<cpu, 3> wrong(Shape3(3, 3, 5));
  EXPECT_NE(MessageOf([&] { wrong = batch_dot<true, false>(x, y); }).find("batch_dot: shapes"), std::string::npos);
}

TEST(TensorFunctions, MapReduce) {
  const auto x = Counted(3, 5);
  TensorContainer<cpu, 1> lowest(Shape1(5), 1.0f), kept(Shape1(3), 0.0f);
  MapReduceKeepLowest<sv::plusto, red::sum>(&lowest, x * 2.0f, 0.5f);
  EXPECT_EQ(lowest[2], 1.0f + 2 + 12 + 22);
  MapReduceKeepHighDim<sv::saveto, red::maximum, 0>(&kept, x + 1.0f);
  EXPECT_EQ(kept[1], 15.0f);
}

TEST(TensorIo, RoundTripAndDamage) {
  const auto x = Counted(3, 5);
  MemoryStream file;
  SaveBinary(file, x);
  EXPECT_EQ(file.bytes.size(), 8 + 15 * sizeof(float));
  Tensor<cpu, 2> read;
  LoadBinary(file, &read, false);
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 5; ++j) EXPECT_EQ(read[i][j], x[i][j]);
  FreeSpace(&read);
  for (std::size_t length = 0; length < file.bytes.size(); ++length) {
    MemoryStream cut{file.bytes.substr(0, length)};
    Tensor<cpu, 2> none;
    EXPECT_THROW(LoadBinary(cut, &none, false), Error) << length;
    EXPECT_EQ(none.dptr_, nullptr);
  }
  MemoryStream hostile{std::string(8, '\xff')};
  EXPECT_THROW(LoadBinary(hostile, &read, false), Error);
  MemoryStream again{file.bytes};
  TensorContainer<cpu, 2> other(Shape2(5, 3));
  EXPECT_NE(MessageOf([&] { LoadBinary<2, float>(again, &other, true); }).find("(3,5)"), std::string::npos);
}

TEST(TensorFunctions, SoftmaxOfEveryRankAndDType) {
  TensorContainer<cpu, 3> x(Shape3(2, 4, 3), 0.0f), p(x.shape_), grad(x.shape_);
  x[1][2][0] = std::log(5.0f);
  Softmax<3, float>(p, x);
  EXPECT_NEAR(p[0][1][2], 0.25f, 1e-6);
  EXPECT_NEAR(p[1][2][0], 5.0f / 8, 1e-6);  // over axis 1
  EXPECT_NEAR(p[1][0][0], 1.0f / 8, 1e-6);
  TensorContainer<cpu, 2> label(Shape2(2, 3), 1.0f);
  label[1][0] = 2.0f;
  label[0][2] = -1.0f;
  SoftmaxGrad<3, float>(grad, p, label, -1.0f);
  EXPECT_NEAR(grad[1][2][0], 5.0f / 8 - 1, 1e-6);
  EXPECT_NEAR(grad[1][1][1], 0.25f - 1, 1e-6);
  EXPECT_EQ(grad[0][1][2], 0.0f);
  EXPECT_SAYS("label -1 of row 0 is none of 4 classes", (SoftmaxGrad<3, float>(grad, p, label)));
  label[0][2] = std::nanf("");
  EXPECT_SAYS("label nan", (SoftmaxGrad<3, float>(grad, p, label)));
  EXPECT_SAYS("do not fit together", (SoftmaxGrad<3, float>(grad, p, TensorContainer<cpu, 2>(Shape2(3, 2)))));

  TensorContainer<cpu, 1, half_t> h(Shape1(3), half_t(1.0f));
  Softmax<1, half_t>(h, h);  // in place
  EXPECT_NEAR(static_cast<float>(h[1]), 1.0f / 3, 1e-3);
  TensorContainer<cpu, 2, double> d(Shape2(2, 5), 3.0);
  d[1][4] = std::numeric_limits<double>::infinity();
  Softmax<2, double>(d.Slice(0, 1), d.Slice(0, 1));
  EXPECT_NEAR(d[0][3], 0.2, 1e-15);
  Softmax<2, double>(d, d);
  EXPECT_TRUE(std::isnan(d[1][4]));
  TensorContainer<cpu, 2> none(Shape2(3, 0));
  Softmax<2, float>(none, none);
  EXPECT_SAYS("overlaps the operand in part", (Softmax<2, float>(p[0].Slice(1, 3), p[0].Slice(0, 2))));
}

// Positions as numbers of narrow dtypes, which cannot name the last row, and as numbers out of range.
TEST(TensorFunctions, PositionsOfAnyDType) {
  TensorContainer<cpu, 2> src(Shape2(1, 2), 1.0f);
  const auto row_of = [&](auto position, index_t rows) {
    TensorContainer<cpu, 2> dst(Shape2(rows, 2), 0.0f);
    TensorContainer<cpu, 1, decltype(position)> index(Shape1(1), position);
    AddTakeGrad(static_cast<Tensor<cpu, 2>&>(dst), static_cast<Tensor<cpu, 1, decltype(position)>&>(index),
                static_cast<Tensor<cpu, 2>&>(src));
    for (index_t y = 0; y < rows; ++y)
      if (dst[y][1] != 0) return y;
    return index_t{-1};
  };
  EXPECT_EQ(row_of(std::uint8_t{50}, 300), 50);
  EXPECT_EQ(row_of(std::int8_t{50}, 300), 50);
  EXPECT_EQ(row_of(std::int8_t{-5}, 300), 0);
  EXPECT_EQ(row_of(half_t(2048.0f), 2050), 2048);
  EXPECT_EQ(row_of(bf16_t(256.0f), 258), 256);
  EXPECT_EQ(row_of(16777216.0f, (1 << 24) + 2), 16777216);
  EXPECT_EQ(row_of(1e30f, 7), 6);
  EXPECT_EQ(row_of(std::nanf(""), 7), 0);
  TensorContainer<cpu, 1> far(Shape1(1), 1e30f), first(Shape1(1), 0.0f);
  TensorContainer<cpu, 2> dst(Shape2(3, 2), 0.0f), nothing(Shape2(0, 2));
  EXPECT_SAYS("IndexFill: row 1", (IndexFill<float, float>(dst, far, src)));
  EXPECT_SAYS("AddTakeGradLargeBatch: row 1", (AddTakeGradLargeBatch<float, float>(dst, first, far, src)));
  AddTakeGradLargeBatch<float, float>(nothing, first, first, src);
  AddTakeGrad<float, float>(nothing, first, src);
  EXPECT_SAYS("IndexFill: row 0 of a tensor of shape (0,2)", (IndexFill<float, float>(nothing, first, src)));
}

TEST(TensorFunctions, MemoryIsCheckedAndApart) {
  const Tensor<cpu, 2> none = Shape2(2, 3);
  const Tensor<cpu, 1> line = Shape1(3);
  const Tensor<cpu, 3> cube = Shape3(2, 2, 2);
  TensorContainer<cpu, 2> here(Shape2(2, 3), 1.0f);
  EXPECT_SAYS("has no memory", (Softmax<2, float>(none, here)));
  EXPECT_SAYS("has no memory", (SortByKey<float, float>(line, line)));
  EXPECT_SAYS("has no memory", (IndexFill<float, float>(none, Vector({0, 1}), here)));
  EXPECT_SAYS("has no memory", (BatchGEMM<false, false, float>(cube, cube, cube, 1, 0)));
  EXPECT_SAYS("has no memory", (Copy<2, float>(none, here)));
  Tensor<cpu, 2> unset = none;
  Random<cpu> random(1);
  EXPECT_SAYS("has no memory", random.SampleUniform(&unset));
  EXPECT_SAYS("has no memory", random.Shuffle(&unset));
  MemoryStream stream;
  EXPECT_SAYS("has no memory", SaveBinary(stream, none));
  EXPECT_SAYS("a negative extent", (Copy<2, float>(Tensor<cpu, 2>(Shape2(-1, -1)), Tensor<cpu, 2>(Shape2(-1, -1)))));
  const TensorContainer<cpu, 3> a(Shape3(1, 2, 2), 2.0f), b(Shape3(1, 2, 2), 3.0f);
  EXPECT_SAYS("BatchGEMM: the destination overlaps", (BatchGEMM<false, false, float>(a, a, b, 1, 0)));
  const auto v = Vector({2, 3, 4});
  EXPECT_SAYS("VectorDot: the destination overlaps", (VectorDot<float>(v.Slice(0, 1), v, v)));
}

TEST(TensorFunctions, CopiesOverlappingRows) {
  const auto numbers = [] {
    TensorContainer<cpu, 2> t(Shape2(4, 3), 0.0f);
    for (index_t y = 0; y < 4; ++y) t[y] = static_cast<float>(y);
    return t;
  };
  auto down = numbers(), up = numbers();
  Copy<2, float>(down.Slice(1, 4), down.Slice(0, 3));
  Copy<2, float>(up.Slice(0, 3), up.Slice(1, 4));
  const float after_down[] = {0, 0, 1, 2}, after_up[] = {1, 2, 3, 3};
  for (index_t y = 0; y < 4; ++y) {
    EXPECT_EQ(down[y][2], after_down[y]);
    EXPECT_EQ(up[y][2], after_up[y]);
  }
  // Rows at different distances of one memory.
  float data[12];
  for (int k = 0; k < 12; ++k) data[k] = static_cast<float>(k);
  Copy<2, float>(Tensor<cpu, 2>(data, Shape2(3, 2), 3, nullptr), Tensor<cpu, 2>(data, Shape2(3, 2), 2, nullptr));
  const float wanted[] = {0, 1, 2, 2, 3, 5, 4, 5};
  for (int k = 0; k < 8; ++k) EXPECT_EQ(data[k], wanted[k]) << k;
}

TEST(TensorIo, ShapesAndMemory) {
  // A hostile shape: rows without elements that nobody could count to the end.
  MemoryStream hostile;
  for (const std::uint32_t extent : {0x7fffffffu, 0x7fffffffu, 0u}) hostile.Write(&extent, sizeof extent);
  Tensor<cpu, 3> rows;
  LoadBinary(hostile, &rows, false);
  EXPECT_EQ(rows.shape_, Shape3(0x7fffffff, 0x7fffffff, 0));
  MemoryStream again;
  SaveBinary(again, rows);
  EXPECT_EQ(again.bytes.size(), 12u);
  FreeSpace(&rows);

  const auto x = Counted(4, 3);
  MemoryStream file;
  SaveBinary(file, x);
  MemoryStream cut{file.bytes.substr(0, file.bytes.size() - 4)}, second{file.bytes}, third{file.bytes};
  TensorContainer<cpu, 2> target(x.shape_, 9.0f), grows(Shape2(50, 50), 1.0f);
  EXPECT_SAYS("the input ends within", LoadBinary(cut, &target, true));
  EXPECT_EQ(target[0][0], 9.0f);  // as before
  LoadBinary(second, &target, true);
  EXPECT_EQ(target[3][2], 32.0f);
  LoadBinary(third, &grows, false);
  EXPECT_EQ(grows.shape_, x.shape_);
  EXPECT_EQ(grows[3][2], 32.0f);

  TensorContainer<cpu, 4, half_t> halves(Shape4(2, 1, 3, 5), half_t(1.5f)), read;
  MemoryStream narrow;
  SaveBinary(narrow, halves);
  EXPECT_EQ(narrow.bytes.size(), 4 * sizeof(std::uint32_t) + 60);
  LoadBinary(narrow, &read, false);
  EXPECT_EQ(static_cast<float>(read[1][0][2][4]), 1.5f);
  const Tensor<cpu, 1> wide(nullptr, Shape1(index_t{1} << 32));
  EXPECT_SAYS("does not fit 32 bits", SaveBinary(narrow, wide));
}

TEST(Layout, AllPairs) {
  const Shape<4> nchw = Shape4(1, 2, 3, 4);
  EXPECT_EQ(ConvertLayout(nchw, kNCHW, kNHWC), Shape4(1, 3, 4, 2));
  EXPECT_EQ(ConvertLayout(nchw, kNCHW, kCHWN), Shape4(2, 3, 4, 1));
  const Shape<5> ncdhw = Shape5(1, 2, 3, 4, 5);
  EXPECT_EQ(ConvertLayout(ncdhw, kNCDHW, kNDHWC), Shape5(1, 3, 4, 5, 2));
  EXPECT_EQ(ConvertLayout(ncdhw, kNCDHW, kCDHWN), Shape5(2, 3, 4, 5, 1));
  EXPECT_EQ(ConvertLayout(Shape3(1, 2, 3), kNCW, kCWN), Shape3(2, 3, 1));
  for (int a : {kNCHW, kNHWC, kCHWN})
    for (int b : {kNCHW, kNHWC, kCHWN}) EXPECT_EQ(ConvertLayout(ConvertLayout(nchw, a, b), b, a), nchw);
  EXPECT_NE(MessageOf([&] { ConvertLayout(nchw, kNCHW, kNWC); }).find("expected kNCHW, kNHWC or kCHWN"),
            std::string::npos);
}

TEST(TensorFunctions, OfNothingAndOfOne) {
  const TensorContainer<cpu, 1> none(Shape1(0)), one(Shape1(1), 3.0f);
  SortByKey<float, float>(none, none);
  VectorizedSort<float, float>(none, none);
  TensorContainer<cpu, 1> key(Shape1(1), 2.0f), value(Shape1(1), 5.0f), sum(Shape1(1), 9.0f);
  SortByKey<float, float>(key, value, false);
  EXPECT_EQ(key[0] + value[0], 7.0f);
  VectorDot<float>(sum, none, none);
  EXPECT_EQ(sum[0], 0.0f);
  VectorDot<float>(sum, one, one);
  EXPECT_EQ(sum[0], 9.0f);
  const TensorContainer<cpu, 3> batch(Shape3(0, 2, 2)), thin(Shape3(2, 3, 0)), flat(Shape3(2, 0, 4));
  TensorContainer<cpu, 3> product(Shape3(2, 3, 4), 2.0f);
  BatchGEMM<false, false, float>(batch, batch, batch, 1.0f, 0.0f);
  BatchGEMM<false, false, float>(product, thin, flat, 1.0f, 0.5f);
  EXPECT_EQ(product[1][2][3], 1.0f);
  const TensorContainer<cpu, 2> rows(Shape2(0, 3)), row(Shape2(1, 3), 4.0f);
  TensorContainer<cpu, 1> lowest(Shape1(3), 1.0f);
  MapReduceKeepLowest<sv::plusto, red::sum>(&lowest, rows * 1.0f);
  EXPECT_EQ(lowest[2], 1.0f);
  MapReduceKeepLowest<sv::saveto, red::maximum>(&lowest, row * 2.0f);
  EXPECT_EQ(lowest[0], 8.0f);
  Softmax<2, float>(rows, rows);
  Softmax<2, float>(row, row);
  EXPECT_NEAR(row[0][1], 1.0f / 3, 1e-7);
  Copy<2, float>(rows, rows);
  TensorContainer<cpu, 2> to(Shape2(3, 2), 1.0f), from(Shape2(0, 2));
  AddTakeGrad<float, float>(to, none, from);
  IndexFill<float, float>(to, none, from);
  EXPECT_EQ(to[2][1], 1.0f);
}

// Every layout brought to every other, by names of axes written out here.
template <int rank>
void ExpectLayouts(const std::array<std::pair<int, const char*>, 3>& layouts) {
  for (const auto& [from, given] : layouts)
    for (const auto& [to, wanted] : layouts) {
      Shape<rank> shape, expected;
      for (int d = 0; d < rank; ++d) {
        shape[d] = given[d];  // the letter is the extent
        expected[d] = wanted[d];
      }
      EXPECT_EQ(ConvertLayout(shape, from, to), expected) << given << " to " << wanted;
    }
}

TEST(Layout, EveryPairOfEveryRank) {
  ExpectLayouts<3>({{{kNCW, "ncw"}, {kNWC, "nwc"}, {kCWN, "cwn"}}});
  ExpectLayouts<4>({{{kNCHW, "nchw"}, {kNHWC, "nhwc"}, {kCHWN, "chwn"}}});
  ExpectLayouts<5>({{{kNCDHW, "ncdhw"}, {kNDHWC, "ndhwc"}, {kCDHWN, "cdhwn"}}});
  EXPECT_SAYS("expected kNCW, kNWC or kCWN", ConvertLayout(Shape3(1, 2, 3), kNCHW, kNCW));
  EXPECT_SAYS("expected kNCDHW, kNDHWC or kCDHWN", ConvertLayout(Shape5(1, 2, 3, 4, 5), kNCDHW, kNHWC));
}

}  // namespace
}  // namespace umbra

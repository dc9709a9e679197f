#include "umbra/tensor_functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "umbra/layout.h"
#include "umbra/random.h"
#include "tests/support/testing.h"
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

TEST(Random, KnownAnswer) {  // of Random123's kat_vectors for philox4x32-10
  const auto zero = Philox(0, 0);
  EXPECT_EQ(zero[0], 0x6627e8d5u);
  EXPECT_EQ(zero[1], 0xe169c58du);
  EXPECT_EQ(zero[2], 0xbc57ac4cu);
  EXPECT_EQ(zero[3], 0x9b00dbd8u);
}

TEST(Random, Distributions) {
  Random<cpu> random(17), same(17), other(18);
  TensorContainer<cpu, 2> a(Shape2(100, 1003)), b(a.shape_), c(a.shape_);
  random.SampleUniform<2>(&a, -1, 3);
  same.SampleUniform<2>(&b, -1, 3);
  other.SampleUniform<2>(&c, -1, 3);
  double mean = 0, differs = 0;
  for (index_t i = 0; i < 100; ++i)
    for (index_t j = 0; j < 1003; ++j) {
      ASSERT_EQ(a[i][j], b[i][j]);
      ASSERT_TRUE(a[i][j] >= -1 && a[i][j] < 3);
      differs += a[i][j] != c[i][j];
      mean += static_cast<double>(a[i][j]) / 100300;
    }
  EXPECT_NEAR(mean, 1, 0.02);
  EXPECT_GT(differs, 100000);
  random.SampleGaussian<2>(&a, 2, 3);
  double m = 0, v = 0;
  for (index_t i = 0; i < 100; ++i)
    for (index_t j = 0; j < 1003; ++j) m += static_cast<double>(a[i][j]) / 100300;
  for (index_t i = 0; i < 100; ++i)
    for (index_t j = 0; j < 1003; ++j) v += std::pow(static_cast<double>(a[i][j]) - m, 2) / 100300;
  EXPECT_NEAR(m, 2, 0.05);
  EXPECT_NEAR(std::sqrt(v), 3, 0.05);
  b = random.uniform(b.shape_) * 2.0f;
  EXPECT_LT(b[0][0], 2.0f);
  TensorContainer<cpu, 1> deck((Shape1(52)));
  for (int i = 0; i < 52; ++i) deck[i] = static_cast<float>(i);
  random.Shuffle<1, float>(&deck);
  double sum = 0, moved = 0;
  for (int i = 0; i < 52; ++i) sum += deck[i], moved += deck[i] != static_cast<float>(i);
  EXPECT_EQ(sum, 51 * 26);
  EXPECT_GT(moved, 40);
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
    for (int b : {kNCHW, kNHWC, kCHWN})
      EXPECT_EQ(ConvertLayout(ConvertLayout(nchw, a, b), b, a), nchw);
  EXPECT_NE(MessageOf([&] { ConvertLayout(nchw, kNCHW, kNWC); }).find("expected kNCHW, kNHWC or kCHWN"),
            std::string::npos);
}

}  // namespace
}  // namespace umbra

// Index maps on the left of an assignment.
#include "tests/unit/index_map_common.h"

namespace umbra {
namespace {

TEST(Target, Slice) {
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
          const auto base = [&](index_t row) {
            return row == 1 || row == 2 ? v[i][row - 1][column] * 2.0f : x[i][row][column];
          };
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

TEST(Target, Concat) {
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
  TensorContainer<cpu, 2> c(Shape2(3, 2), 0.0f), all(Shape2(3, 28), 0.0f);
  concat<1>(a, b, c) = concat<1>(x * 1.0f, slice<1>(x, 4, 6));
  EXPECT_EQ(b[2][8], x[2][12]);
  EXPECT_EQ(c[1][1], x[1][5]);
  all = concat<1>(c, x * 2.0f, b, a);
  EXPECT_EQ(all[0][1], c[0][1]);
  EXPECT_EQ(all[1][14], 2 * x[1][12]);
  EXPECT_EQ(all[2][15], b[2][0]);
  EXPECT_EQ(all[2][27], a[2][3]);
}

TEST(Target, SliceOfEveryAxis) {
  const auto x = Drawn<4>(Shape4(3, 4, 5, 7), 1);
  const Shape<4> begin = Shape4(1, 0, 2, 3), end = Shape4(3, 4, 4, 7);
  const auto v = Drawn<4>(Shape4(2, 4, 2, 4), 2);
  TensorContainer<cpu, 4> a(x), rest(x.shape_);
  slice(a, begin, end) = v * 2.0f;
  for (index_t n = 0; n < 3; ++n)
    for (index_t c = 0; c < 4; ++c)
      for (index_t i = 0; i < 5; ++i)
        for (index_t j = 0; j < 7; ++j) {
          const bool inside = n >= 1 && i >= 2 && i < 4 && j >= 3;
          ASSERT_EQ(a[n][c][i][j], inside ? 2 * v[n - 1][c][i - 2][j - 3] : x[n][c][i][j]) << n << c << i << j;
        }
  a += 0.0f * x;
  slice(a, begin, end) -= slice(a, begin, end);
  TensorContainer<cpu, 4> zeros(v.shape_);
  zeros = slice(a, begin, end);
  EXPECT_EQ(zeros[1][3][1][3], 0.0f);
  EXPECT_EQ(a[1][0][2][2], x[1][0][2][2]);
  slice(a, Shape4(0, 0, 0, 0), Shape4(0, 4, 5, 7)) = 9.0f;  // nothing
  EXPECT_EQ(a[0][0][0][0], x[0][0][0][0]);
  slice(a, Shape4(0, 0, 0, 0), a.shape_) = 9.0f;
  EXPECT_EQ(a[2][3][4][6], 9.0f);
  EXPECT_SAYS("slice_ex: an extent of 5, but 6 is the least that fits", slice(a, begin, Shape4(3, 4, 6, 7)) = 1.0f);
  EXPECT_SAYS("slice_ex: the range 3 to 2 is none", slice(a, begin, Shape4(3, 4, 5, 2)) = 1.0f);
  TensorContainer<cpu, 1> line(Shape1(5), 1.0f);
  slice(line, Shape1(1), Shape1(3)) = 4.0f;
  EXPECT_EQ(line[0] + line[1] + line[2] + line[3], 10.0f);
}

TEST(Target, Flip) {
  const auto x = Drawn<3>(Shape3(3, 4, 5), 3);
  TensorContainer<cpu, 3> a(x.shape_, 1.0f);
  flip(a, 1) = x * 2.0f;
  EXPECT_EQ(a[2][0][3], 2 * x[2][3][3]);
  flip(a, 2) += a;  // reads what it writes
  EXPECT_EQ(a[1][1][0], 2 * x[1][2][0] + 2 * x[1][2][4]);
  flip(a, 0) *= 0.0f;
  EXPECT_EQ(a[0][0][0], 0.0f);
  EXPECT_SAYS("flip: axis 3 of a tensor of rank 3", flip(a, 3) = 1.0f);
  EXPECT_SAYS("assignment to a map of shape (3,4,5) from an expression of shape (3,4,4)",
              flip(a, 0) = slice<2>(x, 0, 4));
}

// The stride of a vector is nobody's.
TEST(Target, OfVectorsWithoutAStride) {
  const auto x = Drawn<1>(Shape1(9), 5);
  float memory[9] = {};
  Tensor<cpu, 1> a, b;
  a.dptr_ = memory, a.shape_ = Shape1(4), a.stride_ = 0;
  b.dptr_ = memory + 4, b.shape_ = Shape1(5), b.stride_ = 0;
  concat<0>(a, b) = x * 2.0f;
  for (index_t k = 0; k < 9; ++k) EXPECT_EQ(memory[k], 2 * x[k]);
  slice<0>(b, 1, 3) = 7.0f;
  EXPECT_EQ(memory[6], 7.0f);
  EXPECT_EQ(memory[7], 2 * x[7]);
}

// mshadow's targets are what their operands may be.
TEST(Target, OfTargets) {
  const auto x = Drawn<2>(Shape2(4, 6), 4);
  TensorContainer<cpu, 2> a(x.shape_, 0.0f), b(x.shape_, 0.0f);
  slice<1>(flip(a, 1), 0, 2) = slice<1>(x, 0, 2) * 1.0f;  // the last two columns
  EXPECT_EQ(a[1][5], x[1][0]);
  EXPECT_EQ(a[1][4], x[1][1]);
  EXPECT_EQ(a[1][3], 0.0f);
  flip(slice<0>(a, 1, 3), 0) += slice<0>(x, 0, 2) * 4.0f;
  EXPECT_EQ(a[2][0], 4 * x[0][0]);
  EXPECT_EQ(a[1][5], x[1][0] + 4 * x[1][5]);
  slice<0>(slice<1>(a, 1, 5), 3, 4) = 7.0f;
  EXPECT_EQ(a[3][1] + a[3][4], 14.0f);
  EXPECT_EQ(a[3][0], 0.0f);
  concat<1>(flip(a, 0), b) = concat<1>(x * 1.0f, x * 3.0f);
  EXPECT_EQ(a[0][2], x[3][2]);
  EXPECT_EQ(b[0][2], 3 * x[0][2]);
  slice<1>(concat<1>(a, b), 5, 7) = -1.0f;
  EXPECT_EQ(a[2][5], -1.0f);
  EXPECT_EQ(b[2][0], -1.0f);
  EXPECT_EQ(b[2][1], 3 * x[2][1]);
}

// The implicit copy of a handle would change no element.
TEST(Target, OneAsAnother) {
  const auto x = Drawn<2>(Shape2(4, 6), 5);
  TensorContainer<cpu, 2> a(x.shape_, 0.0f), b(x), c(x.shape_, 0.0f);
  slice<1>(a, 0, 2) = slice<1>(b, 3, 5);
  EXPECT_EQ(a[3][1], x[3][4]);
  slice(a, Shape2(0, 4), Shape2(2, 6)) = slice(b, Shape2(1, 0), Shape2(3, 2));
  EXPECT_EQ(a[1][5], x[2][1]);
  flip(c, 0) = flip(b, 0);
  EXPECT_EQ(c[1][2], x[1][2]);
  concat<0>(a, c) = concat<0>(c, a);
  EXPECT_EQ(a[1][2], x[1][2]);
  EXPECT_EQ(c[1][5], x[2][1]);
  auto named = slice<0>(a, 0, 1);
  named = slice<0>(b, 2, 3);
  named = 5.0f;
  EXPECT_EQ(a[0][0], 5.0f);
  EXPECT_EQ(b[2][0], x[2][0]);
}

TEST(Target, OfAProduct) {
  const auto x = Drawn<2>(Shape2(3, 4), 7), y = Drawn<2>(Shape2(4, 6), 8);
  TensorContainer<cpu, 2> a(Shape2(5, 6), 1.0f), product(Shape2(3, 6));
  product = dot(x, y);
  slice<0>(a, 1, 4) = dot(x, y);
  slice<0>(a, 1, 4) += 2.0f * dot(x, y);
  EXPECT_EQ(a[1][5], 3 * product[0][5]);
  EXPECT_EQ(a[4][0], 1.0f);
  EXPECT_SAYS("do not give shape (2,6)", (slice<0>(a, 1, 3) = dot(x, y)));
}

TEST(Target, Compiled) {
  const auto x = Drawn<2>(Shape2(4, 6), 9);
  TensorContainer<cpu, 2> a(x.shape_, 1.0f), b(x.shape_, 2.0f), wanted(a), rest(b);
  slice<1>(wanted, 1, 3) = F<op::exp>(slice<1>(x, 0, 2));
  concat<0>(flip(wanted, 0), rest) -= concat<0>(x * 2.0f, x);
  flip(wanted, 1) *= 3.0f;
  jit(slice<1>(a, 1, 3)) = F<op::exp>(slice<1>(x, 0, 2));
  jit(concat<0>(flip(a, 0), b)) -= concat<0>(x * 2.0f, x);
  jit(flip(a, 1)) *= 3.0f;
  ExpectSame(wanted, a, "a");
  ExpectSame(rest, b, "b");
  EXPECT_SAYS("assignment to a map of shape (4,2) from an expression of shape (4,6)", jit(slice<1>(a, 1, 3)) = x);
}

TEST(Target, InTheOrderOfAStream) {
  Stream<cpu>* const stream = NewStream<cpu>();
  const auto x = Drawn<2>(Shape2(40, 60), 6);
  TensorContainer<cpu, 2> a(x.shape_, 0.0f);
  a.set_stream(stream);
  for (int k = 0; k < 50; ++k) {
    a += x;
    slice<1>(a, 10, 20) = 1.0f;
    flip(a, 0) -= slice(x, Shape2(0, 0), x.shape_);
  }
  stream->Wait();
  TensorContainer<cpu, 2> wanted(x.shape_, 0.0f);
  for (int k = 0; k < 50; ++k) {
    wanted += x;
    slice<1>(wanted, 10, 20) = 1.0f;
    flip(wanted, 0) -= x;
  }
  ExpectSame(wanted, a, "a stream");
  slice<1>(a, 10, 20) = 2.0f;
  DeleteStream(stream);
}

}  // namespace
}  // namespace umbra

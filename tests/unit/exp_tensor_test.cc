// Shapes, tensors as handles, containers that own, and copies.
#include <sstream>
#include <utility>

#include "exp_common.h"

namespace umbra {
namespace {

using testing::kSizes;

TEST(ExpShape, ExtentsAndProducts) {
  const Shape<4> s = Shape4(2, 3, 5, 7);
  EXPECT_EQ(s.Size(), 210u);
  EXPECT_EQ(s.ProdShape(1, 3), 15);
  EXPECT_EQ(s.FlatTo1D(), Shape1(210));
  EXPECT_EQ(s.FlatTo2D(), Shape2(30, 7));
  EXPECT_EQ(s.SubShape(), Shape3(3, 5, 7));
  EXPECT_EQ((s.Slice<1, 3>()), Shape2(3, 5));
  EXPECT_NE(s, Shape4(2, 3, 5, 8));
  EXPECT_EQ(Shape5(1, 2, 3, 4, 5).Size(), 120u);
  std::ostringstream text;
  text << Shape1(3) << Shape2(3, 4);
  EXPECT_EQ(text.str(), "(3,)(3,4)");
}

TEST(ExpShape, OverflowThrows) {
  const index_t huge = index_t{1} << 40;
  EXPECT_SAYS("overflows", Shape2(huge, huge).Size());
}

TEST(ExpTensor, HandleAndElements) {
  float data[12] = {};
  const Tensor<cpu, 2> t(data, Shape2(2, 5), 6, nullptr);
  t[1][4] = 3;
  EXPECT_EQ(data[10], 3);
  EXPECT_EQ(t.size(0), 2);
  EXPECT_EQ(t.MSize(), 12u);
  EXPECT_FALSE(t.CheckContiguous());
  EXPECT_TRUE((Tensor<cpu, 2>(data, Shape2(2, 6)).CheckContiguous()));
  Tensor<cpu, 2> other;
  other = t;
  EXPECT_EQ(other.dptr_, data);
  EXPECT_EQ(other.stride_, 6);
}

TEST(ExpTensor, SlicesAndSubTensorsShareMemory) {
  const TensorContainer<cpu, 3> t(Shape3(4, 3, 5), 1.0f);
  const Tensor<cpu, 3> middle = t.Slice(1, 3);
  EXPECT_EQ(middle.shape_, Shape3(2, 3, 5));
  middle[1][2][4] = 9;
  EXPECT_EQ(t[2][2][4], 9);
  const Tensor<cpu, 1> row = t[3][1];
  EXPECT_EQ(row.Slice(2, 5).shape_, Shape1(3));
  EXPECT_EQ(&row.Slice(2, 5)[0], &row[2]);
  EXPECT_EQ(t.Slice(2, 2).shape_, Shape3(0, 3, 5));
}

TEST(ExpTensor, SliceBeyondTheTensorThrows) {
  const TensorContainer<cpu, 2> t(Shape2(4, 3), 1.0f);
  EXPECT_SAYS("Slice(1, 5) of a tensor of shape (4,3)", t.Slice(1, 5));
  EXPECT_SAYS("within axis 0", t.Slice(-1, 2));
  EXPECT_SAYS("within axis 0", t.Slice(3, 2));
}

TEST(ExpTensor, FlatViews) {
  const TensorContainer<cpu, 3> tight(Shape3(2, 3, 5), 1.0f, false);
  EXPECT_EQ(tight.FlatTo1D().shape_, Shape1(30));
  EXPECT_EQ(tight.FlatTo2D().shape_, Shape2(6, 5));
  const TensorContainer<cpu, 3> padded(Shape3(2, 3, 5), 1.0f);
  EXPECT_EQ(padded.FlatTo2D().stride_, 16);
  EXPECT_SAYS("padded rows", padded.FlatTo1D());
}

TEST(ExpContainer, RowsAreAlignedAndPadded) {
  for (const index_t n : kSizes) {
    const TensorContainer<cpu, 2, double> t(Shape2(3, n), 2.5);
    for (index_t y = 0; y < 3; ++y) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t[y].dptr_) % 64, 0u);
    EXPECT_GE(t.stride_, n);
    EXPECT_EQ(t[2][n - 1], 2.5);
    const TensorContainer<cpu, 2, double> tight(Shape2(3, n), 2.5, false);
    EXPECT_EQ(tight.stride_, n);
    EXPECT_EQ(tight[2][n - 1], 2.5);
  }
}

TEST(ExpContainer, CopiesAreDeepAndMovesTakeTheMemory) {
  TensorContainer<cpu, 2> a(Shape2(3, 17), 1.0f);
  TensorContainer<cpu, 2> b(a);
  b[1][1] = 5;
  EXPECT_EQ(a[1][1], 1);
  TensorContainer<cpu, 2> c;
  c = b;
  EXPECT_EQ(c.shape_, Shape2(3, 17));
  EXPECT_EQ(c[1][1], 5);
  EXPECT_NE(c.dptr_, b.dptr_);
  const float* memory = b.dptr_;
  const TensorContainer<cpu, 2> d(std::move(b));
  EXPECT_EQ(d.dptr_, memory);
  c = *&c;
  EXPECT_EQ(c[1][1], 5);
}

TEST(ExpContainer, ResizeKeepsEqualShapes) {
  TensorContainer<cpu, 1> t(Shape1(4), 7.0f);
  const float* memory = t.dptr_;
  t.Resize(Shape1(4));
  EXPECT_EQ(t.dptr_, memory);
  EXPECT_EQ(t[3], 7);
  t.Resize(Shape1(1000), 2.0f);
  EXPECT_EQ(t[999], 2);
}

TEST(ExpContainer, ImpossibleSizesThrow) {
  // Products that wrap around to small numbers of bytes must not pass for small tensors.
  EXPECT_SAYS("larger than memory", (TensorContainer<cpu, 1>(Shape1(index_t{1} << 62))));
  EXPECT_SAYS("overflows", (TensorContainer<cpu, 2>(Shape2(2, (index_t{1} << 62) + 16))));
  EXPECT_SAYS("rows of", (TensorContainer<cpu, 2>(Shape2(index_t{1} << 40, index_t{1} << 22))));
  EXPECT_SAYS("overflows", (TensorContainer<cpu, 2>(Shape2(index_t{1} << 40, index_t{1} << 40))));
  EXPECT_SAYS("shape (3,-1) has a negative extent", (TensorContainer<cpu, 2>(Shape2(3, -1))));
}

TEST(ExpContainer, KeepsItsShapeWhenAResizeFails) {
  TensorContainer<cpu, 1> t(Shape1(4), 7.0f);
  EXPECT_SAYS("larger than memory", t.Resize(Shape1(index_t{1} << 62)));
  EXPECT_EQ(t.shape_, Shape1(4));
  EXPECT_EQ(t[3], 7);
}

TEST(ExpContainer, CopiesMovesAndReleases) {
  Stream<cpu> stream;
  TensorContainer<cpu, 2> a(Shape2(2, 3), 5.0f);
  a.set_stream(&stream);
  const TensorContainer<cpu, 2> copy(a);
  EXPECT_EQ(copy.stream_, &stream);
  EXPECT_NE(copy.dptr_, a.dptr_);
  TensorContainer<cpu, 2> moved(std::move(a));
  EXPECT_EQ(moved[1][2], 5);
  EXPECT_EQ(a.dptr_, nullptr);
  const TensorContainer<cpu, 2> of_nothing(a);
  EXPECT_EQ(of_nothing.dptr_, nullptr);
  a = moved;  // a moved-from container is as good as new
  EXPECT_EQ(a[1][2], 5);
  a = static_cast<const TensorContainer<cpu, 2>&>(a);
  EXPECT_EQ(a[1][2], 5);
  a.Release();
  EXPECT_EQ(a.shape_, Shape2(0, 0));
  a.set_pad(false);
  a.Resize(Shape2(2, 3), 1.0f);
  EXPECT_TRUE(a.CheckContiguous());
  EXPECT_EQ(a.FlatTo1D()[5], 1);
  const TensorContainer<cpu, 3> empty(Shape3(index_t{1} << 40, index_t{1} << 40, 0)), again(empty);
  EXPECT_EQ(again.shape_, empty.shape_);
}

template <typename T>
void ExpectFilled(T value) {
  const TensorContainer<cpu, 2, T> padded(Shape2(3, 4), value), tight(Shape2(3, 4), value, false);
  for (index_t y = 0; y < 3; ++y)
    for (index_t x = 0; x < 4; ++x) {
      EXPECT_TRUE(padded[y][x] == value);
      EXPECT_TRUE(tight[y][x] == value);
    }
}

TEST(ExpContainer, InitialValuesOfEveryDType) {
  ExpectFilled(1.5f);
  ExpectFilled(1.5);
  ExpectFilled(half_t(1.5f));
  ExpectFilled(bf16_t(1.5f));
  ExpectFilled(std::int8_t{-3});
  ExpectFilled(std::uint8_t{200});
  ExpectFilled(std::int16_t{-300});
  ExpectFilled(std::int32_t{1} << 30);
  ExpectFilled(std::int64_t{1} << 40);
  ExpectFilled(true);
  EXPECT_EQ((TensorContainer<cpu, 1>(Shape1(2), 1)[1]), 1.0f);  // a number of another dtype is converted
  EXPECT_EQ((TensorContainer<cpu, 1>(Shape1(2), 1.0)[1]), 1.0f);
}

// A row of a padded matrix is a vector without padding, whatever the distance to the next row.
TEST(ExpTensor, VectorsHaveNoPadding) {
  const TensorContainer<cpu, 2> m(Shape2(3, 5), 0.0f);
  const Tensor<cpu, 1> row = m[1];
  EXPECT_TRUE(row.CheckContiguous());
  EXPECT_EQ(row.MSize(), 5u);
  EXPECT_EQ(row.MemSize<0>(), 5u);
  EXPECT_EQ(row.size(0), 5);
  EXPECT_EQ(row.size(1), 5);
  EXPECT_EQ(row.FlatTo1D().shape_, Shape1(5));
  EXPECT_EQ(row.FlatTo2D().shape_, Shape2(1, 5));
  static_assert(Tensor<cpu, 3>::kDimension == 3 && Tensor<cpu, 3>::kSubdim == 2 && Tensor<cpu, 3>::kDevCPU);
  const Tensor<cpu, 2> from_shape = Shape2(2, 3);
  EXPECT_EQ(from_shape.dptr_, nullptr);
}

// Positions beyond 2^31, of memory that is not there.
TEST(ExpTensor, LargeIndices) {
  const index_t rows = index_t{3} << 30;
  float* const base = reinterpret_cast<float*>(std::uintptr_t{1} << 44);
  const Tensor<cpu, 3> t(base, Shape3(2, rows, 5), 8, nullptr);
  EXPECT_EQ(t.MSize(), static_cast<std::size_t>(2 * rows * 8));
  EXPECT_EQ(t.MemSize<1>(), static_cast<std::size_t>(rows * 8));
  EXPECT_EQ(t[1].dptr_, base + rows * 8);
  EXPECT_EQ(t[1][rows - 1].dptr_, base + (2 * rows - 1) * 8);
  EXPECT_EQ(t[1].Slice(rows - 2, rows).dptr_, base + (2 * rows - 2) * 8);
  EXPECT_EQ(t.FlatTo2D().shape_, Shape2(2 * rows, 5));
  EXPECT_SAYS("overflows", (Tensor<cpu, 2>(base, Shape2(index_t{1} << 40, 1), index_t{1} << 40, nullptr).MSize()));
}

TEST(ExpShape, Corners) {
  static_assert(Shape<4>::kDimension == 4 && Shape<4>::kSubdim == 3);
  EXPECT_EQ((Shape5(1, 2, 3, 4, 5).Slice<0, 2>()), Shape2(1, 2));
  EXPECT_EQ((Shape5(1, 2, 3, 4, 5).Slice<3, 5>()), Shape2(4, 5));
  EXPECT_EQ(Shape<0>().Size(), 1u);
  EXPECT_SAYS("shape (-2,-3) has a negative extent", Shape2(-2, -3).Size());
  EXPECT_SAYS("has a negative extent", Shape2(-2, 0).Size());
  EXPECT_SAYS("ProdShape(0, 5) of shape (2,3): it has 2 axes", Shape2(2, 3).ProdShape(0, 5));
  EXPECT_SAYS("ProdShape(-1, 1)", Shape2(2, 3).ProdShape(-1, 1));
  EXPECT_EQ(Shape2(2, 3).ProdShape(1, 1), 1);
  EXPECT_EQ(Shape2(index_t{3} << 30, 2).Size(), std::size_t{3} << 31);
  EXPECT_EQ(Shape3(4, 5, 0).FlatTo2D(), Shape2(20, 0));
  std::ostringstream text;
  text << std::hex << Shape3(10, 11, 12) << Shape5(1, 2, 3, 4, 16);
  EXPECT_EQ(text.str(), "(10,11,12)(1,2,3,4,16)");
}

TEST(ExpSpace, NewCopyFree) {
  Tensor<cpu, 2> a = NewTensor<cpu>(Shape2(3, 5), 4.0f);
  EXPECT_EQ(a[2][4], 4);
  TensorContainer<cpu, 2> b(Shape2(3, 5), 0.0f, false);
  Copy(static_cast<Tensor<cpu, 2>&>(b), a);
  EXPECT_EQ(b[2][4], 4);
  FreeSpace(&a);
  EXPECT_EQ(a.dptr_, nullptr);
  const TensorContainer<cpu, 2> c(Shape2(5, 3), 0.0f);
  EXPECT_SAYS("Copy: the shapes differ: (3,5) and (5,3)", (Copy<2, float>(b, c)));
}

TEST(ExpSpace, RowsArePaddedUnlessToldNot) {
  Tensor<cpu, 2> padded = Shape2(3, 5), tight = Shape2(3, 5), none = Shape2(0, 5), flat = Shape2(5, 0);
  AllocSpace(&padded);
  AllocSpace(&tight, false);
  AllocSpace(&none);
  AllocSpace(&flat);
  EXPECT_EQ(padded.stride_, 16);
  EXPECT_EQ(padded.MSize(), 48u);
  EXPECT_EQ(tight.stride_, 5);
  EXPECT_TRUE(tight.CheckContiguous());
  EXPECT_EQ(none.MSize() + flat.shape_.Size(), 0u);
  for (Tensor<cpu, 2>* t : {&padded, &tight, &none, &flat}) {
    FreeSpace(t);
    EXPECT_EQ(t->dptr_, nullptr);
    FreeSpace(t);  // nothing left to give back
  }
}

// `=` of a tensor makes a handle; `=` of anything else, and of any expression of a tensor, writes elements.
TEST(ExpTensor, HandlesAndElementsAreAssignedApart) {
  float here[6] = {}, there[6] = {1, 2, 3, 4, 5, 6};
  Tensor<cpu, 2> a(here, Shape2(2, 3)), b(there, Shape2(2, 3));
  const Tensor<cpu, 2> kept = a;
  a = b * 1.0f;
  EXPECT_EQ(a.dptr_, here);
  EXPECT_EQ(here[5], 6);
  a = b;
  EXPECT_EQ(a.dptr_, there);
  a = *&a;
  EXPECT_EQ(a.dptr_, there);
  a = std::move(b);
  EXPECT_EQ(b.dptr_, there);  // NOLINT: a handle is copied
  a = kept;
  a += Tensor<cpu, 2>(there, Shape2(2, 3));
  EXPECT_EQ(here[0], 2);
  a[0] = a[1];  // the handle of a row: nothing is written
  EXPECT_EQ(here[0], 2);
  a = 7.0f;
  EXPECT_EQ(here[5], 7);
  TensorContainer<cpu, 2> owner(Shape2(2, 3), 1.0f);
  const float* const memory = owner.dptr_;
  owner = a + 1.0f;
  EXPECT_EQ(owner.dptr_, memory);
  EXPECT_EQ(owner[1][2], 8);
}

TEST(ExpTensor, OneRowAndNone) {
  float data[32] = {};
  const Tensor<cpu, 3> one(data, Shape3(1, 1, 5), 8, nullptr), none(data, Shape3(2, 0, 5), 8, nullptr),
      thin(data, Shape3(2, 3, 1), 4, nullptr);
  EXPECT_EQ(one[0][0].FlatTo1D().shape_, Shape1(5));
  EXPECT_SAYS("padded rows", one.FlatTo1D());
  EXPECT_EQ(none.FlatTo2D().shape_, Shape2(0, 5));
  EXPECT_EQ(none.MSize(), 0u);
  EXPECT_EQ(none[1].shape_, Shape2(0, 5));
  EXPECT_EQ(&thin[1][2][0], data + 5 * 4);
  EXPECT_EQ(none.Slice(0, 0).shape_, Shape3(0, 0, 5));
}

// The names by which programs for mshadow know the nodes, the engine and the savers.
TEST(ExpNames, NodesEngineAndSavers) {
  using Matrix = Tensor<cpu, 2>;
  TensorContainer<cpu, 2> c(Shape2(2, 3), 2.0f);
  Matrix a = c;
  const Matrix b = a;
  static_assert(std::is_base_of_v<expr::RValueExp<Matrix, float>, Matrix>);
  static_assert(std::is_same_v<decltype(a.T()), expr::TransposeExp<Matrix, float>>);
  static_assert(
      std::is_same_v<decltype(tcast<double>(a)), expr::TypecastExp<double, float, Matrix, expr::type::kMapper>>);
  static_assert(std::is_same_v<decltype(dot(a.T(), b)), expr::DotExp<Matrix, Matrix, true, false, float>>);
  static_assert(std::is_same_v<index_t, std::int64_t>);
  MapExp<sv::divto>(&a, b * 0.0f + 4.0f);
  EXPECT_EQ(a[1][2], 0.5f);
  MapExp<sv::saveto>(&a, expr::ScalarExp<float>(3.0f));
  EXPECT_EQ(a[0][0], 3.0f);
  expr::ExpEngine<sv::multo, Matrix, float>::Eval(&a, b + 1.0f);
  EXPECT_EQ(a[1][0], 12.0f);
  float x = 8;
  sv::plusto::Save(x, 2.0f);
  sv::multo::Save(x, 3.0f);
  sv::minusto::Save(x, 6.0f);
  sv::divto::Save(x, 4.0f);
  EXPECT_EQ(x, 6.0f);
  sv::saveto::Save(x, 1.0f);
  EXPECT_EQ(x, 1.0f);
}

TEST(ExpStream, IsDoneWhenCallsReturn) {
  Stream<cpu> stream;
  stream.Wait();
  EXPECT_TRUE(stream.CheckIdle());
  float data[4] = {};
  const Tensor<cpu, 1> t(data, Shape1(4), &stream);
  EXPECT_EQ((expr::StreamInfo<cpu, Tensor<cpu, 1>>::Get(t)), &stream);
  const auto e = t + 1.0f;
  EXPECT_EQ((expr::StreamInfo<cpu, std::decay_t<decltype(e)>>::Get(e)), nullptr);
}

TEST(ExpTensor, EmptyShapesHaveNoElementsInAnyOrder) {
  const index_t large = index_t{1} << 40;
  EXPECT_EQ(Shape3(large, large, 0).Size(), 0u);
  EXPECT_EQ(Shape3(0, large, large).Size(), 0u);
  EXPECT_THROW(Shape3(large, large, 1).Size(), Error);
}

}  // namespace
}  // namespace umbra

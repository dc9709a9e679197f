// Parts of larger tensors, passed on as TBlobs, as sources and as destination of extensions by every route: rows that
// lie further apart than they are long, at any address, and nothing else is written or has a say.
#include "tests/unit/index_map_common.h"
#include "umbra/tblob.h"

namespace umbra {
namespace {

constexpr std::int32_t kOutside = 1 << 20;  // of what is no part

/// A tensor, and the same elements as a part of a larger one: all of its axes but the first and the last in full.
template <int dim, typename T>
struct Part {
  TensorContainer<cpu, dim, T> dense, whole;
  TBlob blob;

  Part(const Shape<dim>& shape, unsigned seed)
      : dense(Drawn<dim, T>(shape, seed)),
        whole(Larger(shape), T(kOutside)),
        blob(Window(shape)) {
    tensor() = expr::MakeExp<op::identity>(dense);
  }
  Tensor<cpu, dim, T> tensor() const { return blob.get<cpu, dim, T>(); }
  /// Is all that is no part as it was?
  void ExpectUntouched(const std::string& what) const {
    const auto all = whole.FlatTo2D();
    index_t outside = 0;
    for (index_t y = 0; y < all.size(0); ++y)
      for (index_t x = 0; x < all.size(1); ++x) outside += all[y][x] == T(kOutside);
    ASSERT_EQ(outside, static_cast<index_t>(whole.shape_.Size() - dense.shape_.Size())) << what;
  }

 private:
  static Shape<dim> Larger(Shape<dim> shape) {
    if (dim > 1) shape[0] += 2;
    shape[dim - 1] += 5;
    return shape;
  }
  TBlob Window(const Shape<dim>& shape) {
    const auto rows = [&] {
      if constexpr (dim > 1) return whole.Slice(1, 1 + shape[0]);
      else return whole.Slice(0, whole.size(0));
    }();
    return TBlob(Tensor<cpu, dim, T>(rows.dptr_ + 3, shape, dim == 1 ? shape[0] : rows.stride_, nullptr));
  }
};

/// make(x, y) of parts, alone and in an expression, is into parts what it is of dense tensors.
template <int dim, typename T, typename Make, int dimx, int dimy>
void CheckParts(const std::string& name, const Part<dimx, T>& x, const Part<dimy, T>& y, const Make& make) {
  using Exp = decltype(make(x.tensor(), y.tensor()));
  const Tensor<cpu, dimx, T> dense_x = x.dense;
  const Tensor<cpu, dimy, T> dense_y = y.dense;
  const auto shape = expr::ShapeCheck<dim, Exp>::Check(make(dense_x, dense_y));
  TensorContainer<cpu, dim, T> wanted(shape), sum(shape);
  wanted = make(dense_x, dense_y);
  const Part<dim, T> other(shape, 7);
  sum = other.dense;
  sum += make(dense_x, dense_y) * T(2) - other.dense;
  const auto check = [&](const std::string& route, const auto& assign, const auto& add) {
    const Part<dim, T> dst(shape, 8), joined(shape, 7);
    assign(dst.tensor(), make(x.tensor(), y.tensor()));
    ExpectSame<dim, T>(wanted, dst.tensor(), name + " " + route);
    dst.ExpectUntouched(name + " " + route);
    add(joined.tensor(), make(x.tensor(), y.tensor()) * T(2) - other.tensor());
    ExpectSame<dim, T>(sum, joined.tensor(), name + " += " + route);
    joined.ExpectUntouched(name + " += " + route);
  };
  check(
      "eager", [](auto dst, const auto& exp) { dst = exp; }, [](auto dst, const auto& exp) { dst += exp; });
  for (const CompileOptions& route : Routes()) {
    jit::SetOptions(route);
    check(
        route.engine == Engine::kInterpreter ? "interpreter" : route.target,
        [](auto dst, const auto& exp) { jit(dst) = exp; }, [](auto dst, const auto& exp) { jit(dst) += exp; });
  }
  jit::SetOptions({});
  x.ExpectUntouched(name + " source");
  y.ExpectUntouched(name + " source");
}

template <typename T>
void CheckExtensions(index_t n, index_t m) {
  const Part<2, T> x(Shape2(n, m), 1), y(Shape2(n, 5), 2);
  const Part<3, T> cube(Shape3(3, n, m), 3), thin(Shape3(3, 1, m), 4);
  const Part<4, T> pictures(Shape4(2, 3, n + 2, m + 2), 5);
  const Part<1, T> rows(Shape1(n), 6), columns(Shape1(m), 7), one(Shape1(1), 8);
  const Shape<2> shape = Shape2(n, m);
  CheckParts<2, T>("map", x, x, [](auto a, auto b) { return F<op::maximum>(a, b) + a; });
  CheckParts<2, T>("broadcast 0", rows, rows, [&](auto a, auto) { return broadcast<0>(a, shape); });
  CheckParts<2, T>("broadcast 1", columns, x, [&](auto a, auto b) { return broadcast<1>(a, shape) * b; });
  CheckParts<2, T>("broadcast_scalar", one, x, [&](auto a, auto b) { return broadcast_scalar(a, shape) - b; });
  CheckParts<1, T>("sum_rows", x, x, [](auto a, auto) { return sum_rows(a); });
  CheckParts<1, T>("sumall_except_dim", cube, cube, [](auto a, auto) { return sumall_except_dim<1>(a); });
  CheckParts<2, T>("reduce_with_axis", cube, cube, [](auto a, auto) { return reduce_with_axis<red::maximum>(a, 1); });
  CheckParts<1, T>("argmin", x, x, [](auto a, auto) { return reduce_with_axis<red::argmin>(a, 1); });
  CheckParts<3, T>("reduce_keepdim", cube, cube, [](auto a, auto) { return reduce_keepdim<red::sum>(a, 2); });
  CheckParts<2, T>("T", x, x, [](auto a, auto) { return a.T(); });
  CheckParts<3, T>("transpose", cube, cube, [](auto a, auto) { return transpose(a, Shape3(1, 2, 0)); });
  CheckParts<2, T>("flip", x, x, [](auto a, auto b) { return flip(a, 1) * b; });
  CheckParts<1, T>("reshape", cube, cube, [&](auto a, auto) { return reshape(a, Shape1(3 * n * m)); });
  CheckParts<2, T>("slice", x, x, [&](auto a, auto) { return slice<1>(a + a, m / 3, m); });
  CheckParts<2, T>("concat", x, y, [](auto a, auto b) { return concat<1>(a * T(2), b); });
  CheckParts<2, T>("pad", x, x, [](auto a, auto) { return pad(a, 2, 1); });
  CheckParts<3, T>("broadcast_keepdim", thin, thin, [&](auto a, auto) { return broadcast_keepdim(a, 1, n); });
  CheckParts<2, T>("mask", rows, x, [](auto a, auto b) { return mask(a, b); });
  CheckParts<2, T>("implicit_dot", x, x, [](auto a, auto b) { return implicit_dot(a, b.T()); });
  CheckParts<4, T>("pool", pictures, pictures, [](auto a, auto) { return pool<red::maximum>(a, 2, 3, 2, 1); });
  CheckParts<2, T>("unpack_patch2col", pictures, pictures, [](auto a, auto) { return unpack_patch2col(a, 2, 2, 1); });
}

TEST(SubTensor, OfFloatsThroughBlobsByEveryRoute) {
  CheckExtensions<float>(1, 1);
  CheckExtensions<float>(5, 37);
}
TEST(SubTensor, OfDoublesThroughBlobsByEveryRoute) { CheckExtensions<double>(7, 16); }
TEST(SubTensor, OfIntegersThroughBlobsByEveryRoute) { CheckExtensions<std::int32_t>(3, 33); }

// What one part is assigned of another of the same tensor: rows that lie between each other's have no byte in common.
TEST(SubTensor, PartsOfOneTensorAreApartIfTheirColumnsAre) {
  TensorContainer<cpu, 2> whole(Shape2(6, 40), 0.0f);
  for (index_t y = 0; y < 6; ++y)
    for (index_t x = 0; x < 40; ++x) whole[y][x] = static_cast<float>(y * 40 + x);
  const auto part = [&](index_t column, index_t width) {
    return TBlob(Tensor<cpu, 2>(whole.dptr_ + column, Shape2(6, width), whole.stride_, nullptr)).get<cpu, 2, float>();
  };
  Tensor<cpu, 2> left = part(0, 20), right = part(20, 20), across = part(10, 20);
  right = flip(left, 0) * 2.0f;
  for (index_t y = 0; y < 6; ++y)
    for (index_t x = 0; x < 20; ++x) ASSERT_EQ(right[y][x], 2.0f * static_cast<float>((5 - y) * 40 + x));
  jit(left) = flip(right, 1) + 1.0f;
  for (index_t y = 0; y < 6; ++y)
    for (index_t x = 0; x < 20; ++x) ASSERT_EQ(left[y][x], 2.0f * static_cast<float>((5 - y) * 40 + 19 - x) + 1.0f);
  // A call site that has found two parts apart looks again where they lie otherwise.
  const auto twice = [](const Tensor<cpu, 2>& to, const Tensor<cpu, 2>& from) { jit(to) = from.T() * 2.0f; };
  TensorContainer<cpu, 2> square(Shape2(8, 40), 1.0f);
  const auto corner = [&](index_t column) {
    return Tensor<cpu, 2>(square.dptr_ + column, Shape2(8, 8), square.stride_, nullptr);
  };
  for (int k = 0; k < 3; ++k) twice(corner(8), corner(0));
  twice(corner(24), corner(0));
  twice(corner(0), corner(24));
  EXPECT_EQ(square[7][0], 4.0f);
  EXPECT_EQ(square[7][15], 2.0f);
  EXPECT_EQ(square[7][16], 1.0f);
  EXPECT_THROW(twice(corner(4), corner(0)), Error);
  EXPECT_THROW(twice(corner(0), corner(0)), Error);
  twice(corner(8), corner(0));
  EXPECT_EQ(square[7][15], 8.0f);
  EXPECT_THROW(across = flip(left, 0), Error);
  EXPECT_THROW(jit(across) = flip(left, 0), Error);
  EXPECT_THROW(across = left + 1.0f, Error);
}

TEST(SubTensor, SlicesThroughBlobs) {
  TensorContainer<cpu, 3> t(Shape3(4, 3, 7), 1.0f);
  t.stride_ = t.shape_[2];
  t = 1.0f;
  const TBlob slice(t.Slice(1, 3)), sub(t[2]), row(t[2][1]);
  EXPECT_EQ(slice.dptr_, t[1].dptr_);
  EXPECT_EQ(slice.shape_, Shape3(2, 3, 7));
  EXPECT_EQ(sub.shape_, Shape2(3, 7));
  EXPECT_EQ(row.shape_, Shape1(7));
  EXPECT_TRUE(slice.CheckContiguous() && sub.CheckContiguous() && row.CheckContiguous());
  slice.FlatTo1D<cpu, float>() = 2.0f;
  EXPECT_EQ(t[0][2][6], 1.0f);
  EXPECT_EQ(t[1][0][0], 2.0f);
  EXPECT_EQ(t[2][2][6], 2.0f);
  EXPECT_EQ(t[3][0][0], 1.0f);

  Part<3, float> part(Shape3(2, 3, 7), 3);
  EXPECT_FALSE(part.blob.CheckContiguous());
  EXPECT_EQ(part.blob.stride_, part.whole.stride_);
  const Tensor<cpu, 2> flat = part.blob.FlatTo2D<cpu, float>();
  EXPECT_EQ(flat.shape_, Shape2(6, 7));
  EXPECT_EQ(flat.stride_, part.whole.stride_);
  TensorContainer<cpu, 2> wanted(flat.shape_);
  wanted = part.dense.FlatTo2D();
  ExpectSame<2, float>(wanted, flat, "FlatTo2D");
  const std::string why = MessageOf([&] { part.blob.FlatTo1D<cpu, float>(); });
  EXPECT_NE(why.find("rows of shape (2,3,7) lie " + std::to_string(part.whole.stride_) + " elements apart"),
            std::string::npos)
      << why;
  EXPECT_THROW((part.blob.FlatTo3D<cpu, float>(1)), Error);
  EXPECT_THROW((part.blob.get_with_shape<cpu, 2, float>(Shape2(6, 7))), Error);
  // A single row has nothing between rows, whatever the stride says.
  const TBlob line(Tensor<cpu, 2>(part.tensor().dptr_, Shape2(1, 7), part.whole.stride_, nullptr));
  EXPECT_TRUE(line.CheckContiguous());
  EXPECT_EQ((line.get_with_shape<cpu, 1, float>(Shape1(7)).dptr_), part.tensor().dptr_);
  // Parts of parts.
  const TBlob inner(part.tensor()[1].Slice(1, 3));
  EXPECT_EQ(inner.stride_, part.whole.stride_);
  jit(inner.get<cpu, 2, float>()) = 9.0f;
  EXPECT_EQ(part.tensor()[1][1][0], 9.0f);
  EXPECT_EQ(part.tensor()[1][2][6], 9.0f);
  EXPECT_NE(part.tensor()[1][0][6], 9.0f);
  part.ExpectUntouched("parts of parts");
  // No row, and rows of no element.
  const TBlob none(part.tensor().Slice(1, 1));
  EXPECT_EQ(none.Size(), 0);
  EXPECT_TRUE(none.CheckContiguous());
  none.get<cpu, 3, float>() = 5.0f;
  jit(none.get<cpu, 3, float>()) += none.get<cpu, 3, float>() * 2.0f;
  part.ExpectUntouched("no row");
}

}  // namespace
}  // namespace umbra

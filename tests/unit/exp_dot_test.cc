// Matrix products: ranks, transposes, scales, savers, layouts and bad input.
#include "exp_common.h"

namespace umbra {
namespace {

using testing::Padded;

template <typename T>
class ExpDot : public ::testing::Test {};
using DTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ExpDot, DTypes);

// Element (i, j) of op(a) . op(b). Samples are small integers: every order of summing is exact.
template <typename T>
T Product(const Tensor<cpu, 2, T>& a, bool ta, const Tensor<cpu, 2, T>& b, bool tb, index_t i, index_t j) {
  T sum = 0;
  const index_t k = ta ? a.shape_[0] : a.shape_[1];
  for (index_t p = 0; p < k; ++p) sum += (ta ? a[p][i] : a[i][p]) * (tb ? b[j][p] : b[p][j]);
  return sum;
}

TYPED_TEST(ExpDot, TransposesSaversAndLayouts) {
  using T = TypeParam;
  for (const index_t gap : {0, 3})
    for (const Shape<3>& s : {Shape3(1, 1, 1), Shape3(3, 17, 5), Shape3(33, 2, 16), Shape3(7, 9, 300)}) {
      const index_t m = s[0], n = s[1], k = s[2];
      const Padded<T> a(m, k, gap), at(k, m, gap), b(k, n, gap), bt(n, k, gap), c(m, n, gap);
      Tensor<cpu, 2, T> dst = c.tensor();
      const auto expect = [&](const Padded<T>& l, bool lt, const Padded<T>& r, bool rt, T before, T scale) {
        for (index_t i = 0; i < m; ++i)
          for (index_t j = 0; j < n; ++j)
            ASSERT_EQ(dst[i][j], before + scale * Product(l.tensor(), lt, r.tensor(), rt, i, j))
                << s << " at " << i << ", " << j << (lt ? " left.T" : "") << (rt ? " right.T" : "");
      };
      dst = NAN;  // '=' does not read the destination
      dst = dot(a.tensor(), b.tensor());
      expect(a, false, b, false, 0, 1);
      dst = dot(at.tensor().T(), b.tensor());
      expect(at, true, b, false, 0, 1);
      dst = dot(a.tensor(), bt.tensor().T());
      expect(a, false, bt, true, 0, 1);
      dst = dot(at.tensor().T(), bt.tensor().T());
      expect(at, true, bt, true, 0, 1);
      dst = T(2) * dot(a.tensor(), b.tensor()) * T(2);
      expect(a, false, b, false, 0, 4);
      dst = -dot(a.tensor(), b.tensor());
      expect(a, false, b, false, 0, -1);
      dst = T(5);
      dst += dot(a.tensor(), b.tensor());
      expect(a, false, b, false, 5, 1);
      dst = T(5);
      dst -= 2 * dot(a.tensor(), bt.tensor().T());
      expect(a, false, bt, true, 5, -2);
      EXPECT_TRUE(c.GuardsHold()) << s;
    }
}

TYPED_TEST(ExpDot, VectorsAreRowsAndOuterProducts) {
  using T = TypeParam;
  TensorContainer<cpu, 1, T> x(Shape1(3)), y(Shape1(17)), z(Shape1(3));
  for (index_t i = 0; i < 3; ++i) x[i] = testing::Sample<T>(i);
  for (index_t i = 0; i < 17; ++i) y[i] = testing::Sample<T>(i + 5);
  const Padded<T> w(3, 17, 2);
  TensorContainer<cpu, 1, T> out(Shape1(17));
  out = dot(x, w.tensor());
  for (index_t j = 0; j < 17; ++j)
    EXPECT_EQ(out[j], x[0] * w.tensor()[0][j] + x[1] * w.tensor()[1][j] + x[2] * w.tensor()[2][j]);
  z = T(1);
  z += dot(y, w.tensor().T());
  for (index_t i = 0; i < 3; ++i) {
    T sum = 1;
    for (index_t j = 0; j < 17; ++j) sum += y[j] * w.tensor()[i][j];
    EXPECT_EQ(z[i], sum);
  }
  TensorContainer<cpu, 2, T> outer(Shape2(3, 17), T(1));
  outer -= dot(x.T(), y);
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 17; ++j) EXPECT_EQ(outer[i][j], 1 - x[i] * y[j]);
}

TYPED_TEST(ExpDot, OfNothing) {
  using T = TypeParam;
  const TensorContainer<cpu, 2, T> a(Shape2(3, 0)), b(Shape2(0, 4)), none(Shape2(0, 3)), d(Shape2(3, 4), T(1));
  TensorContainer<cpu, 2, T> c(Shape2(3, 4), T(7)), empty(Shape2(0, 4));
  c = dot(a, b);
  EXPECT_EQ(c[2][3], 0);
  c += dot(a, b);
  EXPECT_EQ(c[0][0], 0);
  empty = dot(none, d);
}

TYPED_TEST(ExpDot, BadInputThrows) {
  using T = TypeParam;
  TensorContainer<cpu, 2, T> a(Shape2(3, 3), T(1)), b(Shape2(4, 3), T(1)), c(Shape2(3, 3));
  EXPECT_SAYS("dot: shapes (3,3) and (4,3) do not give shape (3,3): 3 columns of the left meet 4 rows of the right",
              c = dot(a, b));
  EXPECT_SAYS(
      "dot: shapes (3,3) and (4,3).T do not give shape (3,3): 3 columns of the left meet 3 rows of the right, in a product of shape (3,4)",
      c = dot(a, b.T()));
  EXPECT_SAYS("dot: the destination overlaps an operand", a = dot(a, c));
  EXPECT_SAYS("dot: the destination overlaps an operand", a += dot(c, a.T()));
  EXPECT_SAYS("has no memory", c = dot(a, Tensor<cpu, 2, T>(nullptr, Shape2(3, 3))));
}

}  // namespace
}  // namespace umbra

// Complex numbers as pairs along the last axis: the routes agree, and the numbers are those of std::complex.
#include <complex>

#include "tests/support/as_interpreted.h"
#include "tests/unit/index_map_common.h"

namespace umbra {
namespace {

template <typename T>
void CheckComplex(index_t n, index_t m) {
  const auto a = Drawn<2, T>(Shape2(n, 2 * m), 16), b = Drawn<2, T>(Shape2(n, 2 * m), 17);
  const auto r = Drawn<2, T>(Shape2(n, m), 18), s = Drawn<2, T>(Shape2(n, m), 19);
  Check<2, T>("conj", [&] { return conj(a); });
  Check<2, T>("exchange", [&] { return complex_exchange(a + b); });
  CheckSavers<2, T>("toreal", [&] { return complex_toreal(a); });
  Check<2, T>("toimag", [&] { return complex_toimag(a + b); });
  Check<2, T>("abs_square", [&] { return complex_abs_square(a); });
  Check<2, T>("sum_real_imag", [&] { return complex_sum_real_imag(a); });
  Check<2, T>("pad_imag", [&] { return complex_pad_imag(r); });
  Check<2, T>("pack", [&] { return complex_pack(r, s); });
  CheckSavers<2, T>("mul_cc", [&] { return complex_mul_cc(a, b); });
  Check<2, T>("mul_cr", [&] { return complex_mul_cr(a, r); });
  Check<2, T>("mul_rc", [&] { return complex_mul_rc(r * T(2), b); });
  Check<2, T>("div_cc", [&] { return complex_div_cc(a, b); });
  Check<2, T>("div_cr", [&] { return complex_div_cr(a, r); });
  Check<2, T>("div_rc", [&] { return complex_div_rc(r, b); });
  if (m > 1) {  // pairs that begin at an odd place of the tensor, and some of which are not read
    Check<2, T>("conj of a slice", [&] { return conj(slice<1>(a, 1, 2 * m - 1)); });
    Check<2, T>("mul_cc of slices", [&] { return complex_mul_cc(slice<1>(a, 1, 2 * m - 1), slice<1>(b, 2, 2 * m)); });
  }
  if constexpr (!std::is_integral_v<T>) Check<2, T>("abs", [&] { return complex_abs(a); });
}

TEST(Complex, F32) { CheckComplex<float>(3, 19); }

TEST(Complex, OnADrawnShape) {
  std::mt19937 random(20261121);
  CheckComplex<float>(1 + static_cast<index_t>(random() % 9), 1 + static_cast<index_t>(random() % 33));
}

TEST(Complex, OneNumberAndNone) {
  CheckComplex<float>(1, 1);
  CheckComplex<float>(0, 3);
  CheckComplex<float>(3, 0);
}

TEST(Complex, WholePackets) {
  CheckComplex<float>(3, 16);
  CheckComplex<float>(2, 40);
  CheckComplex<double>(2, 12);
  CheckComplex<std::int8_t>(2, 70);
}

TEST(Complex, Integers) { CheckComplex<std::int32_t>(5, 17); }  // with zeros to divide by

// Parts of a row are put together: pairs begin at known places of a run, or at others than packets do.
TEST(Complex, Butterflies) {
  const std::string text =
      "kernel k(x: T[n, N], w: T[H]) -> (y: T[n, N], z: T[n, N]) {\n  a = slice(x, 1, 0, H)\n  h = slice(x, 1, H, N)\n"
      "  b = complex_mul_cc(h, broadcast<1>(w, h))\n  y = concat(a + b, a - b, 1)\n"
      "  z = concat(slice(conj(x), 1, 6, N), complex_exchange(slice(x, 1, 0, 6)), 1)\n}";
  for (const index_t columns : {16, 76, 96, 128})
    for (const char* type : {"f32", "f64", "i32"})
      drawn::ExpectAsInterpreted(
          drawn::With(drawn::With(drawn::With(text, "T[", std::string(type) + "["), "N", std::to_string(columns)), "H",
                      std::to_string(columns / 2)),
          {{3}}, 0);
}

// A run has a row of its own, begins where no group does, or ends where quotients of negative numbers do.
TEST(Complex, PartsOfOtherRows) {
  for (const char* body :
       {"(x: f32[24, 60]) -> (y: f32[4, 360]) { y = reshape(complex_exchange(x), 4, 360) }",
        "(x: f64[16, 24]) -> (y: f64[8, 48]) {\n  v = reshape(x, 8, 48)\n  y = complex_mul_cc(v, flip(v, 1))\n}",
        "(x: f32[n, 24]) -> (y: f32[n, ?]) {\n"
        "  y = concat(x, reshape(complex_exchange(reshape(x, n, 3, 8)), n, 24), 1)\n}",
        "(x: f32[n, 24]) -> (y: f32[n, ?]) {\n"
        "  y = pad(concat(complex_exchange(x), reshape(flip(reshape(x, n, 3, 8), 2), n, 24), 1), 0, 16)\n}",
        "(x: f32[n, 48]) -> (y: f32[n, 48]) {\n  b = broadcast<1>(steps<i64>(48, 1), x)\n"
        "  y = complex_exchange(x) + tcast<f32>((b - 20) / 12 * 3) + ((b - 8) / 8 == 0 ? x : 7)\n}"})
    drawn::ExpectAsInterpreted(std::string("kernel k") + body, {{3}}, 0);
}

// Which part a row is of is asked in each packet.
TEST(Complex, RowsOfSeveral) {
  const std::string text =
      "kernel k(x: f32[n, 322], z: f32[m, 322]) -> (s: f32[?]) {\n"
      "  s = reduce_with_axis<minimum>(concat(complex_exchange(x) * 2, complex_exchange(z), 0), 1)\n}";
  drawn::ExpectAsInterpreted(text, {{3, 2}, {0, 1}, {2, 0}}, 0);
  drawn::ExpectAsInterpreted(drawn::With(text, "322", "320"), {{3, 2}}, 0);
}

TEST(Complex, AsStdComplex) {
  using Number = std::complex<double>;
  const index_t n = 3, m = 19;
  const auto a = Drawn<2, double>(Shape2(n, 2 * m), 20), r = Drawn<2, double>(Shape2(n, m), 21);
  TensorContainer<cpu, 2, double> b(a.shape_), y(a.shape_), half(r.shape_);
  b = Drawn<2, double>(a.shape_, 22) + 0.125;  // nowhere 0
  const auto at = [](const Tensor<cpu, 2, double>& z, index_t i, index_t j) {
    return Number(z[i][2 * j], z[i][2 * j + 1]);
  };
  const auto expect = [&](const char* name, auto wanted) {
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < m; ++j) {
        const Number w = wanted(i, j);
        EXPECT_NEAR(std::abs(at(y, i, j) - w), 0, 1e-15 * (1 + std::abs(w))) << name;
      }
  };
  y = conj(a);
  expect("conj", [&](index_t i, index_t j) { return std::conj(at(a, i, j)); });
  y = complex_exchange(a);
  expect("exchange", [&](index_t i, index_t j) { return Number(at(a, i, j).imag(), at(a, i, j).real()); });
  y = complex_pad_imag(r);
  expect("pad_imag", [&](index_t i, index_t j) { return Number(r[i][j]); });
  y = complex_mul_cc(a, b);
  expect("mul_cc", [&](index_t i, index_t j) { return at(a, i, j) * at(b, i, j); });
  y = complex_mul_cr(a, r);
  expect("mul_cr", [&](index_t i, index_t j) { return at(a, i, j) * r[i][j]; });
  y = complex_mul_rc(r, b);
  expect("mul_rc", [&](index_t i, index_t j) { return r[i][j] * at(b, i, j); });
  y = complex_div_cc(a, b);
  expect("div_cc", [&](index_t i, index_t j) { return at(a, i, j) / at(b, i, j); });
  y = complex_div_cr(a, r + 0.125);
  expect("div_cr", [&](index_t i, index_t j) { return at(a, i, j) / (r[i][j] + 0.125); });
  y = complex_div_rc(r, b);
  expect("div_rc", [&](index_t i, index_t j) { return r[i][j] / at(b, i, j); });
  half = complex_abs_square(a);
  EXPECT_EQ(half[1][4], std::norm(at(a, 1, 4)));
  half = complex_sum_real_imag(a);
  EXPECT_EQ(half[2][5], a[2][10] + a[2][11]);
  // The factors are real: no infinity times 0, no square beyond the range.
  TensorContainer<cpu, 1, double> z(Shape1(2), 1.0), big(Shape1(1), 1e300), q(Shape1(2));
  z[0] = HUGE_VAL;
  q = complex_mul_cr(z, big);
  EXPECT_EQ(q[1], 1e300);
  z[0] = 2.0;
  q = complex_div_cr(z, big);
  EXPECT_EQ(q[0], 2e-300);
}

TEST(Complex, NumbersComeInPairs) {
  const auto a = Drawn<2>(Shape2(3, 7), 16), b = Drawn<2>(Shape2(3, 7), 17);
  const auto says = [](const char* name) { return std::string(name) + ": the last axis must be even"; };
  EXPECT_SAYS(says("complex_mul_cc"), complex_mul_cc(a, b));
  EXPECT_SAYS(says("conj"), conj(a));
  EXPECT_SAYS(says("complex_toreal"), complex_toreal(a));
  EXPECT_SAYS(says("complex_toimag"), complex_toimag(a));
  EXPECT_SAYS(says("complex_abs_square"), complex_abs(a));
  EXPECT_SAYS(says("complex_exchange"), complex_exchange(a));
  EXPECT_SAYS(says("complex_div_rc"), complex_div_rc(b, a));
  EXPECT_SAYS("complex_mul_cr: the extents 8 and 14 differ", complex_mul_cr(complex_pad_imag(slice<1>(a, 0, 4)), b));
  EXPECT_SAYS("complex_div_cc: the extents 3 and 2 differ",
              complex_div_cc(complex_pack(a, b), slice<0>(complex_pack(a, b), 0, 2)));
  TensorContainer<cpu, 2> in(Shape2(3, 7)), out(Shape2(3, 7));
  const auto ref = [](Tensor<cpu, 2>& t) {
    return runtime::TensorRef{t.dptr_, DType::kFloat32, {t.shape_[0], t.shape_[1]}, {t.stride_, 1}};
  };
  for (const char* map : {"complex_mul_cc", "conj", "complex_toreal", "complex_toimag", "complex_abs_square"}) {
    const std::string call = map + std::string(map == std::string("complex_mul_cc") ? "(x, x)" : "(x)");
    EXPECT_SAYS(says(map), graph::ParseText("kernel k(x: f32[3, 7]) -> (y: f32[3, p]) { y = " + call + " }"));
    for (const CompileOptions& route : Routes()) {
      const Function f =
          Compile(graph::ParseText("kernel k(x: f32[n, m]) -> (y: f32[n, p]) { y = " + call + " }")[0], route);
      EXPECT_SAYS(says(map) + ": an extent is 7 (dimension 1 of input 'x'", f({{ref(in)}, {ref(out)}, {}}));
    }
  }
}

}  // namespace
}  // namespace umbra

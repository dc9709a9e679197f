// exp, expm1, log, log1p and tanh as polynomials, f32 and f64. No fused multiply-add, so that the
// bits are the same at every width and on every instruction set. docs/numerics.md has the errors.
#ifndef UMBRA_PRELUDE_MATH_H_
#define UMBRA_PRELUDE_MATH_H_

#include "umbra/prelude/arith.h"

namespace umbra::simd {

namespace detail {

template <typename V>
UMBRA_INLINE V c(double x) { return fill<V>(static_cast<Elem<V>>(x)); }

// Horner's rule, the highest power first.
template <typename V>
UMBRA_INLINE V poly(V, V sum) { return sum; }
template <typename V, typename... Rest>
UMBRA_INLINE V poly(V x, V sum, double next, Rest... rest) {
  return poly(x, sum * x + c<V>(next), rest...);
}

// 2^n for an integer n in the normal range.
template <typename V>
UMBRA_INLINE V pow2(Bits<V> n) {
  if constexpr (sizeof(Elem<V>) == 4) return from_bits<V>((n + 127) << 23);
  else return from_bits<V>((n + 1023) << 52);
}

// x = n ln 2 + r with |r| <= ln 2 / 2; p = e^r - 1.
template <typename V>
struct ExpParts { V p, n; Bits<V> k; };

template <typename V>
UMBRA_INLINE ExpParts<V> exp_parts(V x) {
  if constexpr (sizeof(Elem<V>) == 4) {
    const V magic = c<V>(12582912.0);  // 1.5 * 2^23: adding it rounds to an integer
    const V t = x * c<V>(1.44269504088896341) + magic;
    const V n = t - magic;
    const V r = (x - n * c<V>(0.693359375)) - n * c<V>(-2.12194440e-4);
    const V q = poly(r, c<V>(1.9875691500e-4), 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                     1.6666665459e-1, 5.0000001201e-1);
    return {r * r * q + r, n, bits(t) - bits(magic)};
  } else {
    const V magic = c<V>(6755399441055744.0);  // 1.5 * 2^52
    const V t = x * c<V>(1.44269504088896338700) + magic;
    const V n = t - magic;
    const V hi = x - n * c<V>(6.93147180369123816490e-01);
    const V lo = n * c<V>(1.90821492927058770002e-10);
    const V r = hi - lo;
    const V rr = r * r;
    const V q = r - rr * poly(rr, c<V>(4.13813679705723846039e-08), -1.65339022054652515390e-06,
                              6.61375632143793436117e-05, -2.77777777770155933842e-03,
                              1.66666666666666019037e-01);
    return {hi - (lo - r * q / (c<V>(2) - q)), n, bits(t) - bits(magic)};
  }
}

// y * 2^k, rounded once, for k that may leave the normal range.
template <typename V>
UMBRA_INLINE V scale2(V y, Bits<V> k) {
  const Bits<V> half = k >> 1;
  return y * pow2<V>(half) * pow2<V>(k - half);
}

// x held within what exp can tell apart; NaN stays.
template <typename V>
UMBRA_INLINE V exp_clamp(V x) {
  const V high = c<V>(sizeof(Elem<V>) == 4 ? 89.0 : 710.0);
  const V low = c<V>(sizeof(Elem<V>) == 4 ? -104.0 : -746.0);
  return x > high ? high : x < low ? low : x;
}

template <typename V>
UMBRA_INLINE V infinity() { return fill<V>(static_cast<Elem<V>>(__builtin_inf())); }

}  // namespace detail

template <typename V>
UMBRA_INLINE V exp(V x) {
  const detail::ExpParts<V> e = detail::exp_parts(detail::exp_clamp(x));
  return detail::scale2(e.p + detail::c<V>(1), e.k);
}

template <typename V>
UMBRA_INLINE V expm1(V x) {
  using namespace detail;
  const V one = c<V>(1);
  const V low = c<V>(sizeof(Elem<V>) == 4 ? -18.0 : -38.0);  // e^x - 1 rounds to -1
  const V clamped = exp_clamp(x);
  const ExpParts<V> e = exp_parts(clamped < low ? low : clamped);
  // 2^k (p + 1) - 1 as 2 (2^(k-1) p + (2^(k-1) - 1/2)), which overflows only where the result does.
  const V half = pow2<V>(e.k - 1);
  const V y = (half * e.p + (half - c<V>(0.5))) * c<V>(2);
  return e.n == c<V>(0) ? (x == c<V>(0) ? x : e.p) : (x > c<V>(sizeof(Elem<V>) == 4 ? 60.0 : 100.0)
      ? scale2(e.p + one, e.k) : y);
}

template <typename V>
UMBRA_INLINE V log(V x) {
  using namespace detail;
  const V zero = c<V>(0);
  V result;
  if constexpr (sizeof(Elem<V>) == 4) {
    const Mask<V> tiny = x < c<V>(1.17549435e-38);
    const V y = tiny ? x * c<V>(33554432.0) : x;
    const Bits<V> i = bits(y) - 0x3f3504f3;  // sqrt(1/2): the mantissa ends up in [0.707, 1.414)
    const V m = from_bits<V>((i & 0x7fffff) + 0x3f3504f3);
    const V e = convert<V>(i >> 23) - (tiny ? c<V>(25) : zero);
    const V f = m - c<V>(1);
    const V z = f * f;
    V p = poly(f, c<V>(7.0376836292e-2), -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
               1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
               3.3333331174e-1);
    p = p * f * z + e * c<V>(-2.12194440e-4) - c<V>(0.5) * z;
    result = f + p + e * c<V>(0.693359375);
  } else {
    const Mask<V> tiny = x < c<V>(2.2250738585072014e-308);
    const V y = tiny ? x * c<V>(18014398509481984.0) : x;  // 2^54
    const Bits<V> i = bits(y) - 0x3fe6a09e667f3bcdLL;
    const V m = from_bits<V>((i & 0xfffffffffffffLL) + 0x3fe6a09e667f3bcdLL);
    // The exponent fits 11 bits: a conversion through the mantissa of a double, on any machine.
    const Bits<V> k = i >> 52;
    const V magic = c<V>(6755399441055744.0);
    const V e = (from_bits<V>(bits(magic) + k) - magic) - (tiny ? c<V>(54) : zero);
    const V f = m - c<V>(1);
    const V s = f / (c<V>(2) + f);
    const V z = s * s;
    const V r = z * poly(z, c<V>(1.479819860511658591e-01), 1.531383769920937332e-01,
                         1.818357216161805012e-01, 2.222219843214978396e-01,
                         2.857142874366239149e-01, 3.999999999940941908e-01,
                         6.666666666666735130e-01);
    const V h = c<V>(0.5) * f * f;
    result = (s * (h + r) + e * c<V>(1.90821492927058770002e-10) - h) + f +
             e * c<V>(6.93147180369123816490e-01);
  }
  const V limit = infinity<V>();
  result = x == limit ? limit : result;
  result = x == zero ? -limit : result;
  return x < zero ? limit - limit : x != x ? x : result;
}

template <typename V>
UMBRA_INLINE V log1p(V x) {
  using namespace detail;
  const V one = c<V>(1);
  const V u = one + x;
  const V lost = (x - (u - one)) / u;  // what the sum above rounded away
  const V whole = log(u);  // right as it is for u = 0, infinity and below
  V result = u > c<V>(0) ? whole + lost : whole;
  result = u < infinity<V>() ? result : whole;
  return x == c<V>(0) ? x : result;
}

template <typename V>
UMBRA_INLINE V tanh(V x) {
  using namespace detail;
  const V a = abs(x);
  const V z = x * x;
  V small;
  if constexpr (sizeof(Elem<V>) == 4) {
    small = x + x * z * poly(z, c<V>(-5.70498872745e-3), 2.06390887954e-2, -5.37397155531e-2,
                             1.33314422036e-1, -3.33332819422e-1);
  } else {
    const V p = poly(z, c<V>(-9.64399179425052238628e-1), -9.92877231001918586564e1,
                     -1.61468768441708447952e3);
    const V q = poly(z, z + c<V>(1.12811678491632931402e2), 2.23548839060100448583e3,
                     4.84406305325125486048e3);
    small = x + x * z * (p / q);
  }
  // Beyond 22 the result rounds to one; NaN passes the comparison as itself.
  const V bounded = a > c<V>(22) ? c<V>(22) : a;
  const ExpParts<V> e = exp_parts(bounded + bounded);
  const V large = c<V>(1) - c<V>(2) / ((e.p + c<V>(1)) * pow2<V>(e.k) + c<V>(1));
  return a < c<V>(0.625) ? (x == c<V>(0) ? x : small) : with_sign_of(large, x);
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_MATH_H_

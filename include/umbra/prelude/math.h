// exp, expm1, log, log1p and tanh as polynomials, f32 and f64. No fused multiply-add but of products that are exact
// (add_product), so that the bits are the same at every width and on every instruction set. docs/numerics.md has the
// errors.
#ifndef UMBRA_PRELUDE_MATH_H_
#define UMBRA_PRELUDE_MATH_H_

#include "umbra/prelude/arith.h"

namespace umbra::simd {

namespace detail {

// Horner's rule, the highest power first.
template <typename V, typename... Rest>
UMBRA_INLINE V poly(V x, double first, Rest... rest) {
  V sum = fill<V>(static_cast<Elem<V>>(first));
  ((sum = sum * x + static_cast<Elem<V>>(rest)), ...);
  return sum;
}

// 1.5 * 2^(mantissa bits): adding it rounds to an integer, which is in the low bits of the sum.
template <typename E>
UMBRA_INLINE E round_magic() {
  return sizeof(E) == 4 ? E(12582912) : E(6755399441055744);
}

// 2^n for an integer n in the normal range.
template <typename V>
UMBRA_INLINE V pow2(Bits<V> n) {
  if constexpr (sizeof(Elem<V>) == 4) return from_bits<V>((n + 127) << 23);
  else return from_bits<V>((n + 1023) << 52);
}

// The nearest integer, ties to even, to a number between -2^22 and 2^22; the sign of a zero is any.
#if defined(__AVX512F__)
UMBRA_INLINE f32x16 nearest(f32x16 x) {
  return __builtin_ia32_rndscaleps_mask(x, 8, x, static_cast<unsigned short>(-1), 4);
}
UMBRA_INLINE f64x8 nearest(f64x8 x) {
  return __builtin_ia32_rndscalepd_mask(x, 8, x, static_cast<unsigned char>(-1), 4);
}
#endif
template <typename V>
UMBRA_INLINE V nearest(V x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(V) > 64) {
    typedef packet<Elem<V>, kWidth<V> / 2> Half;
    const Pair<Half> two = __builtin_bit_cast(Pair<Half>, x);
    return __builtin_bit_cast(V, Pair<Half>{nearest(two.low), nearest(two.high)});
  } else
#endif
    return (x + round_magic<Elem<V>>()) - round_magic<Elem<V>>();
}

// Does `scale` take any n, infinities and NaN among them? Then exponentials hold x within no bounds.
#if defined(__AVX512F__) && defined(__AVX512DQ__)
template <typename V>
inline constexpr bool kScalesAny = sizeof(V) >= 64;
#else
template <typename V>
inline constexpr bool kScalesAny = false;
#endif

// x = n ln 2 + r with |r| <= ln 2 / 2; p = e^r - 1; k is n as an integer.
template <typename V>
struct ExpParts {
  V p, n;
  Bits<V> k;
};

template <typename E>
UMBRA_INLINE E log2_of_e() {
  return sizeof(E) == 4 ? E(1.44269504088896341) : E(1.44269504088896338700);
}

// Of the sum of x and what follows it, which is small; n is nearest to t.
template <typename V, typename... Rest>
UMBRA_INLINE ExpParts<V> exp_parts_at(V t, V x, Rest... rest) {
  typedef Elem<V> E;
  const V n = nearest(t);
  if constexpr (sizeof(Elem<V>) == 4) {
    // ln 2 in two parts of 16 bits, whose products by n are exact.
    const V r = add_product((add_product(x, n, E(-0.693145751953125)) + ... + rest), n, E(-1.42861972562968731e-6));
    // Powers in pairs: fewer steps wait for each other than in Horner's rule.
    const V rr = r * r;
    const V q = (rr * E(1.393496990203857421875e-3) +
                 (r * E(8.36325250566005706787109375e-3) + E(4.16664667427539825439453125e-2))) *
                    rr +
                (r * E(0.1666657626628875732421875) + E(0.5));
    return {rr * q + r, n, bits(t + round_magic<E>()) - bits(round_magic<E>())};
  } else {
    const V hi = (add_product(x, n, E(-6.93147180369123816490e-01)) + ... + rest);
    const V lo = n * E(1.90821492927058770002e-10);
    const V r = hi - lo;
    const V rr = r * r;
    const V q = r - rr * poly(rr, 4.13813679705723846039e-08, -1.65339022054652515390e-06, 6.61375632143793436117e-05,
                              -2.77777777770155933842e-03, 1.66666666666666019037e-01);
    return {hi - (lo - r * q / (E(2) - q)), n, bits(t + round_magic<E>()) - bits(round_magic<E>())};
  }
}

template <typename V, typename... Rest>
UMBRA_INLINE ExpParts<V> exp_parts(V x, Rest... rest) {
  return exp_parts_at((x + ... + rest) * log2_of_e<Elem<V>>(), x, rest...);
}

// y * 2^n, rounded once, for n that may leave the normal range.
template <typename V>
UMBRA_INLINE V scale(V y, const ExpParts<V>& e) {
#if defined(__AVX512F__)
  if constexpr (IsSame<V, f32x16>::value) {
    return __builtin_ia32_scalefps512_mask(y, e.n, y, static_cast<unsigned short>(-1), 4);
  } else if constexpr (IsSame<V, f64x8>::value) {
    return __builtin_ia32_scalefpd512_mask(y, e.n, y, static_cast<unsigned char>(-1), 4);
  } else if constexpr (sizeof(V) > 64) {
    typedef packet<Elem<V>, 64 / sizeof(Elem<V>)> Part;
    struct Registers {
      Part at[sizeof(V) / 64];
    };
    Registers a = __builtin_bit_cast(Registers, y);
    const Registers n = __builtin_bit_cast(Registers, e.n);
    for (unsigned k = 0; k < sizeof(V) / 64; ++k)
      a.at[k] = scale(a.at[k], ExpParts<Part>{a.at[k], n.at[k], Bits<Part>{}});
    return __builtin_bit_cast(V, a);
  } else
#endif
  {
    const Bits<V> half = e.k >> 1;
    return y * pow2<V>(half) * pow2<V>(e.k - half);
  }
}

// n of the largest power of two that rounds to 0.
template <typename E>
UMBRA_INLINE E exp2_of_0() {
  return sizeof(E) == 4 ? E(-151) : E(-1076);
}

// The same of y > 0, and 0 where n is below `least`. Processors take long for products that round to 0 on the way, not
// for those of 0.
template <typename V>
UMBRA_INLINE V scale_or_0(V y, const ExpParts<V>& e, Elem<V> least) {
  if constexpr (kScalesAny<V>) y = e.n < least ? V{} : y;
  return scale(y, e);
}

#if defined(__CUDACC__)
// As below. One multiply-add is both, as a power of two in the normal range rounds nothing, and another power, which
// the sign of n tells, makes it 2^n.
template <typename V>
UMBRA_INLINE V scale_past_1(V p, const ExpParts<V>& e, bool below) {
  constexpr bool is_f32 = sizeof(V) == 4;
  constexpr int digits = is_f32 ? 23 : 52, bias = is_f32 ? 127 : 1023, apart = is_f32 ? 64 : 512;
  const V power = from_bits<V>(Bits<V>(static_cast<unsigned long long>(e.k) << digits) +
                               (Bits<V>(below ? bias + apart : bias - apart) << digits));
  return fma(p, power, power) * from_bits<V>(Bits<V>(below ? bias - apart : bias + apart) << digits);
}
#endif

// (p + 1) * 2^n, the sum rounded as it is, and the product once.
template <typename V>
UMBRA_INLINE V scale_past_1(V p, const ExpParts<V>& e) {
#if defined(__CUDACC__)
  return scale_past_1(p, e, e.n < V(0));
#else
  return scale(p + Elem<V>(1), e);
#endif
}

// x held within what exp can tell apart. Processors take long for products near the least number there is, not for
// those far below it.
template <typename V>
UMBRA_INLINE V exp_clamp_low(V x) {
#if defined(__CUDACC__)
  return no_less(x, Elem<V>(sizeof(Elem<V>) == 4 ? -104 : -746));
#else
  return no_less(x, Elem<V>(sizeof(Elem<V>) == 4 ? -170 : -1400));
#endif
}
template <typename V>
UMBRA_INLINE V exp_clamp_high(V x) {
  return no_more(x, Elem<V>(sizeof(Elem<V>) == 4 ? 89 : 710));
}
template <typename V>
UMBRA_INLINE V exp_clamp(V x) {
  return exp_clamp_low(exp_clamp_high(x));
}

template <typename E>
UMBRA_INLINE E infinity() {
  return static_cast<E>(__builtin_inf());
}

}  // namespace detail

namespace detail {

// exp(x) where `scale` takes any n, and 0 where n is below `least`. In f32 what is beyond 2^2000 stays with r, and p is
// no less then.
template <typename V>
UMBRA_INLINE V exp_of_any(V x, Elem<V> least) {
  typedef Elem<V> E;
  ExpParts<V> e;
  if constexpr (sizeof(E) == 4) e = exp_parts_at(no_more(x * log2_of_e<E>(), E(2000)), x);
  else e = exp_parts(no_more(x, E(1000)));
  return scale_or_0(e.p + E(1), e, least);
}

}  // namespace detail

template <typename V>
UMBRA_INLINE V exp(V x) {
  using namespace detail;
  if constexpr (kScalesAny<V>) {
    return exp_of_any(x, exp2_of_0<Elem<V>>());
  } else {
    const ExpParts<V> e = exp_parts(exp_clamp(x));
    return scale_past_1(e.p, e);
  }
}

#if !defined(__CUDACC__)
// exp(x), or another number that is rounded away in a sum with 1 as exp(x) is: none that processors take long for.
template <typename V>
UMBRA_INLINE V exp_beside_1(V x) {
  typedef Elem<V> E;
  using namespace detail;
  if constexpr (kScalesAny<V>) {
    return exp_of_any(x, E(-90));
  } else {
    const ExpParts<V> e = exp_parts(no_less(exp_clamp_high(x), E(-64)));
    return scale_past_1(e.p, e);
  }
}
#endif

#if defined(__CUDACC__)
// exp(x) of no x above 0, for less.
template <typename V>
UMBRA_INLINE V exp_at_most_0(V x) {
  const detail::ExpParts<V> e = detail::exp_parts(detail::exp_clamp_low(x));
  return detail::scale_past_1(e.p, e, true);
}
#endif

template <typename V>
UMBRA_INLINE V expm1(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const E low = sizeof(E) == 4 ? -18 : -38;  // e^x - 1 rounds to -1
  const V clamped = exp_clamp(x);
  const ExpParts<V> e = exp_parts(clamped < low ? low : clamped);
  // 2^k (p + 1) - 1 as 2 (2^(k-1) p + (2^(k-1) - 1/2)), which overflows only where the result does.
  const V half = pow2<V>(e.k - 1);
  const V y = add_product(half - E(0.5), half, e.p) * E(2);
  return e.n == E(0) ? (x == E(0) ? x : e.p) : (x > E(sizeof(E) == 4 ? 60.0 : 100.0) ? scale_past_1(e.p, e) : y);
}

namespace detail {

// x = 2^e m for x > 0, also a subnormal one, with m in [0.75, 1.5).
template <typename V>
struct LogParts {
  V m, e;
};

#if defined(__AVX512F__)
// These instructions also give what makes the logarithm of 0, infinity, NaN and numbers below 0
// come out as it should without a selection.
inline constexpr int kMantissa = 2 << 2 | 3;  // in [0.75, 1.5); NaN below 0
UMBRA_INLINE LogParts<f32x16> log_parts(f32x16 x) {
  const unsigned short all = static_cast<unsigned short>(-1);
  const f32x16 m = __builtin_ia32_getmantps512_mask(x, kMantissa, x, all, 4);
  return {m, __builtin_ia32_getexpps512_mask(x, x, all, 4) - __builtin_ia32_getexpps512_mask(m, m, all, 4)};
}
UMBRA_INLINE LogParts<f64x8> log_parts(f64x8 x) {
  const unsigned char all = static_cast<unsigned char>(-1);
  const f64x8 m = __builtin_ia32_getmantpd512_mask(x, kMantissa, x, all, 4);
  return {m, __builtin_ia32_getexppd512_mask(x, x, all, 4) - __builtin_ia32_getexppd512_mask(m, m, all, 4)};
}
UMBRA_INLINE f32x16 log_edges(f32x16, f32x16 result) { return result; }
UMBRA_INLINE f64x8 log_edges(f64x8, f64x8 result) { return result; }
#endif

template <typename V>
UMBRA_INLINE LogParts<V> log_parts(V x) {
  typedef Elem<V> E;
#if defined(__AVX512F__)
  if constexpr (sizeof(V) > 64) {
    typedef packet<Elem<V>, kWidth<V> / 2> Half;
    const Pair<Half> two = __builtin_bit_cast(Pair<Half>, x);
    const LogParts<Half> a = log_parts(two.low), b = log_parts(two.high);
    return {__builtin_bit_cast(V, Pair<Half>{a.m, b.m}), __builtin_bit_cast(V, Pair<Half>{a.e, b.e})};
  } else
#endif
      if constexpr (sizeof(Elem<V>) == 4) {
    const Mask<V> tiny = x < E(1.17549435e-38);
    const V y = tiny ? x * E(33554432.0) : x;  // 2^25
    const Bits<V> i = bits(y) - 0x3f400000;
    return {from_bits<V>((i & 0x7fffff) + 0x3f400000), convert<V>(i >> 23) - (tiny ? E(25) : E(0))};
  } else {
    const Mask<V> tiny = x < E(2.2250738585072014e-308);
    const V y = tiny ? x * E(18014398509481984.0) : x;  // 2^54
    const Bits<V> i = bits(y) - 0x3fe8000000000000LL;
    // The exponent fits 11 bits: a conversion through the mantissa of a double, on any machine.
    const E magic = 6755399441055744.0;
    return {from_bits<V>((i & 0xfffffffffffffLL) + 0x3fe8000000000000LL),
            (from_bits<V>(bits(magic) + (i >> 52)) - magic) - (tiny ? E(54) : E(0))};
  }
}

// The logarithm where it is not finite.
template <typename V>
UMBRA_INLINE V log_edges(V x, V result) {
  typedef Elem<V> E;
#if defined(__AVX512F__)
  if constexpr (sizeof(V) > 64) return result;
#endif
  const E limit = infinity<E>();
  result = x == limit ? limit : result;
  result = x == E(0) ? -limit : result;
  return x < E(0) ? limit - limit : x != x ? x : result;
}

}  // namespace detail

namespace detail {

// For z = f^2: log(1 + f) - f + z / 2.
template <typename V>
UMBRA_INLINE V log_series(V f, V z) {
  typedef Elem<V> E;
  if constexpr (sizeof(Elem<V>) == 4) {
    const V low = (f * E(-0.1664771) + E(0.19988658)) * z + (f * E(-0.25000024) + E(0.33333498));
    const V high = (f * E(-0.04346596) + E(0.10341317)) * z + (f * E(-0.13184921) + E(0.14508834));
    return (high * (z * z) + low) * (f * z);
  } else {
    const V s = f / (E(2) + f);
    const V y = s * s;
    const V r = y * poly(y, 0.13616220945969156, 0.132085913190922416, 0.15388936898905650, 0.18181735460320758,
                         0.22222223084505335, 0.28571428566968371, 0.40000000000009084, 0.66666666666666663);
    return s * (E(0.5) * z + r);
  }
}

}  // namespace detail

template <typename V>
UMBRA_INLINE V log(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const LogParts<V> parts = log_parts(x);
  const V f = parts.m - E(1);
  const V z = f * f;
  const V series = log_series(f, z);
  if constexpr (sizeof(Elem<V>) == 4) {
    const V p = add_product(add_product(series, parts.e, E(1.42861972562968731e-6)), z, E(-0.5));
    return log_edges(x, add_product(f + p, parts.e, E(0.693145751953125)));
  } else {
    const V p = add_product(series + parts.e * E(1.90821492927058770002e-10), z, E(-0.5));
    return log_edges(x, add_product(p + f, parts.e, E(6.93147180369123816490e-01)));
  }
}

template <typename V>
UMBRA_INLINE V log1p(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const E one = 1;
  const V u = one + x;
  const V lost = (x - (u - one)) / u;  // what the sum above rounded away
  const V whole = log(u);  // right as it is for u = 0, infinity and below
  V result = u > E(0) ? whole + lost : whole;
  result = u < infinity<E>() ? result : whole;
  return x == E(0) ? x : result;
}

namespace detail {

// tanh of x >= 0 in f32: (1 - e) / (1 + e) for e = e^(-2x) = s (1 - 2h), where s = 2^n and x = r - n ln 2 / 2.
template <typename V>
UMBRA_INLINE V tanh_by_exp(V x) {
  typedef Elem<V> E;
  const V t = round_magic<E>() - x * E(2.88539008177792681472);
  const V n = t - round_magic<E>();
  // ln 2 / 2 in two parts of 16 bits, whose products by n are exact.
  const V r = add_product(add_product(x, n, E(0.3465728759765625)), n, E(7.143098628148437e-07));
  const V rr = r * r;
  const V q = (rr * E(0.0445919036865234375) + (E(0.33333173394203186) - r * E(0.1338120400905609))) * rr +
              (E(1) - r * E(0.6666630506515503));
  const V h = r - rr * q;
  const V half_s = from_bits<V>((bits(t) << 23) + (126 << 23));
  const V d = (half_s + half_s) * h;
  return ((E(0.5) - half_s) + d) / ((E(0.5) + half_s) - d);
}

// tanh of x >= 0 in f64: with x = n ln 2 + r and s = 4^n, tanh r for n = 0, else
// 1 + (tanh r - 1) / ((s + 1) / 2 + (s - 1) / 2 tanh r); n stays 0 up to 0.56, where the
// difference from one is no more than the result.
template <typename V>
UMBRA_INLINE V tanh_by_sum(V x) {
  typedef Elem<V> E;
  const V t = (x * E(1.44269504088896338700) - E(0.308)) + round_magic<E>();
  const V n = t - round_magic<E>();
  const V r = x - n * E(0.69314718055994530942);  // exact for n of 1 and 2; where n is larger the error does not matter
  const V z = r * r;
  const V zz = z * z;
  const V even = poly(zz, -2.0134913583925613e-05, -0.00023420302150007358, -0.0014556304446104432,
                      -0.008863234071534115, -0.053968253967061286, -0.3333333333333333);
  const V odd = poly(zz, 8.442357604831602e-05, 0.0005887863983682246, 0.0035921062919377997, 0.021869488478469423,
                     0.13333333333332323);
  const V th = z * r * (odd * z + even) + r;
  const V half_s = from_bits<V>((bits(t) << 53) + (1022LL << 52));
  const V one = n < E(1) ? n : E(1);  // 0 for n = 0
  const E half = 0.5;
  return one + (th - one) / ((half_s + half) + (half_s - half) * th);
}

}  // namespace detail

template <typename V>
UMBRA_INLINE V tanh(V x) {
  typedef Elem<V> E;
  constexpr bool single = sizeof(Elem<V>) == 4;
  const E limit = single ? 10.0 : 22.0;  // the result rounds to one from here on
  const V a = abs(x);
  const V b = no_more(a, limit);
  if constexpr (single) return detail::with_sign_of(detail::tanh_by_exp(b), x);
  else return detail::with_sign_of(detail::tanh_by_sum(b), x);
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_MATH_H_

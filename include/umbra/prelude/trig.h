// Sines, cosines, tangents and their inverses, f32 and f64. Polynomials are minimax ones for the coefficients'
// precision (Sollya's fpminimax). Only exact products are fused with sums, as in math.h.
#ifndef UMBRA_PRELUDE_TRIG_H_
#define UMBRA_PRELUDE_TRIG_H_

#include "umbra/prelude/math.h"

namespace umbra::simd {

namespace detail {

// x = n pi / 2 + hi + lo, with n among first, first + step, ... and |hi + lo| at most step pi / 4, or a little more;
// turn is (n - first) / step, of which the low bits count. Where n is large, lo may be as large as a small hi.
template <typename V>
struct Angle {
  V hi, lo;
  Bits<V> turn;
};

// From where on n = x 2 / pi has too many bits for products with parts of pi / 2 to be exact.
template <typename E>
UMBRA_INLINE E angle_limit() {
  return sizeof(E) == 4 ? E(8192) : E(1048576);
}

// The upper half of a product.
UMBRA_INLINE unsigned long long high_product(unsigned long long a, unsigned long long b) {
#if defined(__CUDACC__)
  return __umul64hi(a, b);
#else
  __extension__ typedef unsigned __int128 Product;
  return static_cast<unsigned long long>((static_cast<Product>(a) * b) >> 64);
#endif
}

// Zeros before the first digit of x > 0.
UMBRA_INLINE int leading_zeros(unsigned long long x) {
#if defined(__CUDACC__)
  return __clzll(static_cast<i64>(x));
#else
  return __builtin_clzll(x);
#endif
}

// Payne and Hanek's reduction of one x >= 0 beyond the limit: of 2 / pi only the bits that matter are multiplied.
template <int first, int step, typename E>
UMBRA_OUTLINE Angle<E> far_angle(E x) {
  typedef unsigned long long u64;
  static constexpr u64 two_over_pi[] = {0,
                                        0xa2f9836e4e441529,
                                        0xfc2757d1f534ddc0,
                                        0xdb6295993c439041,
                                        0xfe5163abdebbc561,
                                        0xb7246e3a424dd2e0,
                                        0x06492eea09d1921c,
                                        0xfe1deb1cb129a73e,
                                        0xe88235f52ebb4484,
                                        0xe99c7026b45f7e41,
                                        0x3991d639835339f4,
                                        0x9c845f8bbdf9283b,
                                        0x1ff897ffde05980f,
                                        0xef2f118b5a0a6d1f,
                                        0x6d367ecf27cb09b7,
                                        0x4f463f669e5fea2d,
                                        0x7527bac7ebe5f17b,
                                        0x3d0739f78a5292ea,
                                        0x6bfb5fb11f8d5d08,
                                        0x56033046fc7b6bab};  // the first 64 bits stand before the point
  constexpr int digits = sizeof(E) == 4 ? 23 : 52, bias = sizeof(E) == 4 ? 127 : 1023;
  const auto pattern = bits(x);
  const int exponent = static_cast<int>(pattern >> digits);
  if (exponent == 2 * bias + 1) return {x - x, x - x, 0};
  // x = m 2^(exponent - bias - 52)
  const u64 m = static_cast<u64>((i64{pattern} & ((1LL << digits) - 1)) | (1LL << digits)) << (52 - digits);
  const int skipped = exponent - bias + 10, shift = skipped % 64;
  u64 window[3];
  for (int i = 0; i < 3; ++i) {
    const u64 upper = two_over_pi[skipped / 64 + i], lower = two_over_pi[skipped / 64 + i + 1];
    window[i] = shift == 0 ? upper : upper << shift | lower >> (64 - shift);
  }
  // m times the window: steps above, then their fraction, which counts from the middle of a step if first is 1.
  const u64 low = m * window[2], carried = high_product(m, window[2]);
  const u64 middle = m * window[1] + carried;
  const u64 high = m * window[0] + high_product(m, window[1]) + (middle < carried ? 1 : 0);
  constexpr int bits_above = step == 1 ? 2 : 1;
  u64 fraction = high << bits_above | middle >> (64 - bits_above);
  u64 rest = middle << bits_above | low >> (64 - bits_above);
  const u64 turn_above = (high >> (64 - bits_above)) + (first == 0 ? fraction >> 63 : 0);
  if (first != 0) fraction ^= 1ull << 63;
  const bool negative = fraction >> 63 != 0;
  if (negative) {
    rest = 0 - rest;
    fraction = ~fraction + (rest == 0 ? 1 : 0);
  }
  const int zeros = leading_zeros(fraction | 1);
  const u64 top = zeros == 0 ? fraction : fraction << zeros | rest >> (64 - zeros);
  const i64 turn = static_cast<i64>(high_product(top, 0xc90fdaa22168c234) >> 1);
  const E unit = from_bits<E>(static_cast<Bits<E>>(bias - 63 + step - zeros) << digits);
  const E most = static_cast<E>(turn);
  const E hi = most * unit, lo = static_cast<E>(turn - static_cast<i64>(most)) * unit;
  return {negative ? -hi : hi, negative ? -lo : lo, static_cast<Bits<E>>(turn_above)};
}

// For x >= 0. The products n P are exact but for the last (Cody and Waite).
template <int first, int step, typename V>
UMBRA_INLINE Angle<V> angle(V x) {
  typedef Elem<V> E;
  const E magic = round_magic<E>() * E(step);
  V turns = x * E(0.6366197723675814);
  if constexpr (first != 0) turns = turns - E(first);
  const V t = turns + magic;
  V n = t - magic;
  if constexpr (first != 0) n = n + E(first);
  V r;
  E low, next, last;
  if constexpr (sizeof(Elem<V>) == 4) {
    r = add_product(add_product(x, n, E(-1.5703125)), n, E(-0.00048351288));
    low = -3.138557e-07;
    next = -6.070877e-11;
    last = 6.223372e-14;
  } else {
    r = add_product(x, n, E(-1.5707963267341256));
    low = -6.077100506303966e-11;
    next = -2.0222662487111665e-21;
    last = 8.4784276603689e-32;
  }
  const V most = add_product(r, n, low);
  const V rest = add_product(add_product(r - most, n, low), n, next);
  Angle<V> result{most, rest - n * last, bits(t)};
  if (__builtin_expect(any(x >= angle_limit<E>()), 0)) {
    if constexpr (kWidth<V> == 1) {
      result = far_angle<first, step>(x);
    } else {
      E xs[kWidth<V>], his[kWidth<V>], los[kWidth<V>];
      Elem<Bits<V>> turns_of[kWidth<V>];
      store(xs, x);
      store(his, result.hi);
      store(los, result.lo);
      store(turns_of, result.turn);
      for (int k = 0; k < kWidth<V>; ++k) {
        if (!(xs[k] >= angle_limit<E>())) continue;
        const Angle<E> far = far_angle<first, step>(xs[k]);
        his[k] = far.hi;
        los[k] = far.lo;
        turns_of[k] = far.turn;
      }
      result = {load<V>(his), load<V>(los), load<Bits<V>>(turns_of)};
    }
  }
  return result;
}

// The sine of an angle of even n, with `sign` (sign bits) turned over.
template <typename V>
UMBRA_INLINE V sine(const Angle<V>& a, Bits<V> sign) {
  typedef Elem<V> E;
  const V z = a.hi * a.hi, zz = z * z;
  // Powers in pairs: fewer steps wait for each other than in Horner's rule. In f32 the two middle coefficients are
  // three and twenty units away from the best fit: so no result is more than 1, and few of those that round to it are
  // less.
  V rest, first;
  if constexpr (sizeof(Elem<V>) == 4) {
    first = fill<V>(-0.1666666);
    rest = poly(z, 2.6060534e-06, -0.000198097972) * zz + z * E(0.00833307207);
  } else {
    first = fill<V>(-0.16666666666666666);
    rest = (poly(z, 2.7216676406685856e-15, -7.643042615432069e-13) * zz +
            poly(z, 1.6058941876522403e-10, -2.505210692120541e-08)) *
               (zz * zz) +
           (poly(z, 2.7557319211741417e-06, -0.0001984126984121336) * zz + z * E(0.008333333333333208));
  }
  // The cosine takes what follows hi.
  const V cosine = poly(z, 0.0371, -0.4967, 1);
  const V result = a.hi + (a.hi * z * (rest + first) + a.lo * cosine);
  return from_bits<V>(bits(result) ^ (a.turn << (8 * sizeof(E) - 1)) ^ sign);
}

}  // namespace detail

template <typename V>
UMBRA_INLINE V sin(V x) {
  return detail::sine(detail::angle<0, 2>(abs(x)), bits(x) & detail::sign_bit<V>());
}

template <typename V>
UMBRA_INLINE V cos(V x) {
  return detail::sine(detail::angle<1, 2>(abs(x)), detail::sign_bit<V>());
}

template <typename V>
UMBRA_INLINE V tan(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const Angle<V> a = angle<0, 1>(abs(x));
  const V hi = a.hi + a.lo, lo = (a.hi - hi) + a.lo;
  const V z = hi * hi;
  V p;
  if constexpr (sizeof(Elem<V>) == 4) {
    p = poly(z, 0.0044484907, -5.603306e-05, 0.010950327, 0.021237906, 0.05406859, 0.13332585, 0.33333352);
  } else {
    p = poly(z, 9.704887043010978e-06, -2.3849033598747196e-05, 4.777373648342275e-05, -2.4594565737280463e-05,
             6.639402645629403e-05, 8.401782111510785e-05, 0.0002435696191342245, 0.0005889161911568063,
             0.001456035036379511, 0.0035921023909912604, 0.008863237773730777, 0.021869488408872456,
             0.05396825397253336, 0.13333333333326086, 0.33333333333333376);
  }
  const V rest = hi * z * p + (lo + lo * z);
  const V t = hi + rest;
  // Of odd n -1 / (t + what t has lost).
  const V lost = (hi - t) + rest;
  const V inverse = E(-1) / t;
  const V result = (a.turn & 1) != 0 ? inverse + inverse * inverse * lost : t;
  return from_bits<V>(bits(result) ^ (bits(x) & sign_bit<V>()));
}

namespace detail {

// pi / 4 as a sum; multiples of the first part up to 4 are exact.
template <typename E>
UMBRA_INLINE E quarter_pi() {
  return sizeof(E) == 4 ? E(0.785398) : E(0.7853981633974483);
}
template <typename E>
UMBRA_INLINE E quarter_pi_rest() {
  return sizeof(E) == 4 ? E(1.5695824e-07) : E(3.061616997868383e-17);
}

// eighths pi / 4 + arc tangent of t, |t| <= tan(pi / 8).
template <typename V>
UMBRA_INLINE V arc(V eighths, V t) {
  typedef Elem<V> E;
  const V z = t * t;
  V p;
  if constexpr (sizeof(Elem<V>) == 4) {
    p = poly(z, -0.060906272, 0.10599417, -0.14244425, 0.1999853, -0.33333316);
  } else {
    p = poly(z, -0.01790405259107765, 0.038061681615489805, -0.05039192398980789, 0.058478648893672304,
             -0.06663100821435643, 0.07692059950331327, -0.09090897744739489, 0.11111110783123702, -0.14285714280194006,
             0.1999999999995364, -0.333333333333332);
  }
  return add_product(t + (t * z * p + eighths * quarter_pi_rest<E>()), eighths, quarter_pi<E>());
}

}  // namespace detail

template <typename V>
UMBRA_INLINE V atan(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const E zero = 0, one = 1, two = 2;
  const V a = abs(x);
  const Mask<V> second = a > E(0.41421356237309503), third = a > E(2.414213562373095);
  const V over = second ? a - one : a, under = second ? a + one : fill<V>(one);
  const V t = (third ? fill<V>(-one) : over) / (third ? a : under);
  const V eighths = third ? fill<V>(two) : second ? fill<V>(one) : fill<V>(zero);
  return with_sign_of(abs(arc(eighths, t)), x);
}

template <typename V>
UMBRA_INLINE V atan2(V y, V x) {
  typedef Elem<V> E;
  using namespace detail;
  const E zero = 0, one = 1, two = 2, four = 4;
  // The sum of two must not overflow.
  const E large = sizeof(E) == 4 ? E(8.507059173023462e+37) : E(4.49423283715579e+307);
  V a = abs(y), b = abs(x);
  const V shrink = (a > b ? a : b) > large ? fill<V>(E(0.25)) : fill<V>(one);
  const auto endless = logical_and(a == infinity<E>(), b == infinity<E>());
  a = endless ? fill<V>(one) : a * shrink;
  b = endless ? fill<V>(one) : b * shrink;
  const Mask<V> second = a > b * E(0.41421356237309503), third = a > b * E(2.414213562373095);
  const V over = third ? -b : second ? a - b : a;
  const V under = third ? a : second ? a + b : b;
  const V t = over / (under == zero ? fill<V>(one) : under);  // under is zero where both are
  const V eighths = third ? fill<V>(two) : second ? fill<V>(one) : fill<V>(zero);
  const Mask<V> left = (bits(x) & sign_bit<V>()) != 0;
  const V result = arc(left ? four - eighths : eighths, left ? -t : t);
  return with_sign_of(abs(result), y);
}

namespace detail {

// The arc sine of a = |x| is asin(s) for a <= 1/2, else pi / 2 - 2 asin(s); asin(s) = s + rest.
template <typename V>
struct ArcSine {
  V s, rest;
  Mask<V> big;
};

template <typename V>
UMBRA_INLINE ArcSine<V> arc_sine(V a) {
  typedef Elem<V> E;
  const Mask<V> big = a > E(0.5);
  const V z = big ? (E(1) - a) * E(0.5) : a * a;
  const V s = big ? sqrt(z) : a;
  V p;
  if constexpr (sizeof(Elem<V>) == 4) {
    p = poly(z, 0.042165037, 0.024181534, 0.045469638, 0.07495307, 0.16666752);
  } else {
    p = poly(z, 0.03193445007717225, -0.01625600108548465, 0.019548089617464657, 0.006520888313299961,
             0.012170811658851165, 0.013884998102890981, 0.017359728094639093, 0.02237175655486858, 0.03038195919689617,
             0.04464285682694448, 0.07500000000338587, 0.16666666666665403);
  }
  return {s, s * z * p, big};
}

}  // namespace detail

template <typename V>
UMBRA_INLINE V asin(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const ArcSine<V> a = arc_sine(abs(x));
  const V far = (quarter_pi<E>() - (a.s + (a.rest - quarter_pi_rest<E>()))) * E(2);
  return with_sign_of(a.big ? far : a.s + a.rest, x);
}

template <typename V>
UMBRA_INLINE V acos(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const ArcSine<V> a = arc_sine(abs(x));
  const E two = 2, four = 4;
  // From 0, pi / 2 or pi, up or down.
  const V from = a.big ? (x > E(0) ? V{} : fill<V>(four)) : fill<V>(two);
  const Bits<V> down = (a.big ? bits(x) : ~bits(x)) & sign_bit<V>();
  const V s = from_bits<V>(bits(a.big ? two * a.s : a.s) ^ down);
  const V rest = from_bits<V>(bits(a.big ? two * a.rest : a.rest) ^ down);
  return add_product(s, from, quarter_pi<E>()) + add_product(rest, from, quarter_pi_rest<E>());
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_TRIG_H_

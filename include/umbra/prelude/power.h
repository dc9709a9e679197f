// Powers, roots, remainders and exponents, f32 and f64: exp2, log2, pow, cbrt, sinh, cosh, fmod, remainder, ldexp, logb
// and nextafter. Polynomials are minimax ones for the coefficients' precision (Sollya's fpminimax). Only
// exact products are fused with sums, as in math.h.
#ifndef UMBRA_PRELUDE_POWER_H_
#define UMBRA_PRELUDE_POWER_H_

#include "umbra/prelude/math.h"

namespace umbra::simd {

namespace detail {

// x with half of the digits, so that the product of two such numbers is exact.
template <typename V>
UMBRA_INLINE V half_digits(V x) {
  if constexpr (sizeof(Elem<V>) == 4) return from_bits<V>(bits(x) & -4096);
  else return from_bits<V>(bits(x) & -134217728);
}

// Held within the least power of two whose double is no number, and one that rounds to 0, as for exp.
template <typename V>
UMBRA_INLINE V exp2_clamp_high(V x) {
  return no_more(x, Elem<V>(sizeof(Elem<V>) == 4 ? 129 : 1025));
}
template <typename V>
UMBRA_INLINE V exp2_clamp(V x) {
#if defined(__CUDACC__)
  const Elem<V> low = sizeof(Elem<V>) == 4 ? -151 : -1076;
#else
  const Elem<V> low = sizeof(Elem<V>) == 4 ? -245 : -2020;
#endif
  return no_less(exp2_clamp_high(x), low);
}

// 2^f - 1 for |f| <= 1/2.
template <typename V>
UMBRA_INLINE V exp2_less_1(V f) {
  if constexpr (sizeof(Elem<V>) == 4) {
    // In pairs, as in exp: fewer steps wait for each other.
    typedef Elem<V> E;
    const V ff = f * f;
    const V rest =
        (ff * E(0.00015241285) + (f * E(0.0013391302) + E(0.009618834))) * ff + (f * E(0.05550359) + E(0.24022645));
    return f * (f * rest + E(0.6931472));
  } else {
    return f * poly(f, 4.451517992739643e-10, 7.073894181145976e-09, 1.0178076598297676e-07, 1.3215434563163586e-06,
                    1.5252733828893405e-05, 0.00015403530458754546, 0.0013333558146358634, 0.009618129107592587,
                    0.05550410866482233, 0.24022650695910136, 0.6931471805599453);
  }
}

// x less the nearest integer; 0 of an infinity.
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#if defined(__clang__)
#define UMBRA_ROUNDING_NOW , 4  // GCC has the same built-in function without it
#else
#define UMBRA_ROUNDING_NOW
#endif
UMBRA_INLINE f32x16 beyond_nearest(f32x16 x) {
  return __builtin_ia32_reduceps512_mask(x, 8, x, static_cast<unsigned short>(-1) UMBRA_ROUNDING_NOW);
}
UMBRA_INLINE f64x8 beyond_nearest(f64x8 x) {
  return __builtin_ia32_reducepd512_mask(x, 8, x, static_cast<unsigned char>(-1) UMBRA_ROUNDING_NOW);
}
#undef UMBRA_ROUNDING_NOW
template <typename V>
UMBRA_INLINE V beyond_nearest(V x) {
  typedef packet<Elem<V>, kWidth<V> / 2> Half;
  const Pair<Half> two = __builtin_bit_cast(Pair<Half>, x);
  return __builtin_bit_cast(V, Pair<Half>{beyond_nearest(two.low), beyond_nearest(two.high)});
}
#endif

}  // namespace detail

namespace detail {

// 2^x in parts, of x that is held within bounds unless `scale` takes any.
template <typename V>
UMBRA_INLINE ExpParts<V> exp2_parts(V x) {
  typedef Elem<V> E;
  const V n = nearest(x);
  if constexpr (kScalesAny<V>) return ExpParts<V>{exp2_less_1(beyond_nearest(x)), n, Bits<V>{}};
  else return ExpParts<V>{exp2_less_1(x - n), n, bits(x + round_magic<E>()) - bits(round_magic<E>())};
}

}  // namespace detail

template <typename V>
UMBRA_INLINE V exp2(V x) {
  using namespace detail;
  if constexpr (kScalesAny<V>) {
    const ExpParts<V> e = exp2_parts(x);
    return scale_or_0(e.p + Elem<V>(1), e, exp2_of_0<Elem<V>>());
  } else {
    const ExpParts<V> e = exp2_parts(exp2_clamp(x));
    return scale_past_1(e.p, e);
  }
}

#if !defined(__CUDACC__)
// The same beside 1, as exp_beside_1.
template <typename V>
UMBRA_INLINE V exp2_beside_1(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const ExpParts<V> e = exp2_parts(kScalesAny<V> ? x : no_less(exp2_clamp_high(x), E(-90)));
  return scale_or_0(e.p + E(1), e, E(-90));
}
#endif

template <typename V>
UMBRA_INLINE V log2(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const LogParts<V> parts = log_parts(x);
  const V f = parts.m - E(1);
  const V z = f * f;
  const V rest = add_product(log_series(f, z), z, E(-0.5));
  // log2(e) is 1 and less than a half: f itself is exact.
  return log_edges(x, (f + parts.e) + (f * E(0.4426950408889634) + rest * E(1.4426950408889634)));
}

namespace detail {

// The logarithm of x > 0 to the base 2: `most` has half of the digits.
template <typename V>
struct LongLog {
  V most, rest;
};

// With s = (m - 1) / (m + 1): log2(m) = 2 / (3 ln 2) s (3 + s^2 + s^4 L(s^2)), after fdlibm's e_pow.c.
template <typename V>
UMBRA_INLINE LongLog<V> long_log2(V x) {
  typedef Elem<V> E;
  const LogParts<V> parts = log_parts(x);
  const V over = parts.m - E(1);
  const V inverse = E(1) / (parts.m + E(1));
  const V s = over * inverse;
  const V s_most = half_digits(s);
  const V under = half_digits(parts.m + E(1));
  const V under_rest = parts.m - (under - E(1));
  const V s_rest = inverse * ((over - s_most * under) - s_most * under_rest);
  const V z = s * s, z_most = s_most * s_most;
  V series;
  if constexpr (sizeof(Elem<V>) == 4) {
    series = poly(z, 0.3580829, 0.42788467, 0.60000587);
  } else {
    series = poly(z, 0.20642655831814571, 0.19780522524076366, 0.23085310844955184, 0.27272546796335256,
                  0.33333335497033983, 0.4285714284399631, 0.6000000000003036);
  }
  series = z * z * series + s_rest * (s_most + s);
  const V sum = half_digits((E(3) + z_most) + series);
  const V sum_rest = series - ((sum - E(3)) - z_most);
  const V u = s_most * sum, v = s_rest * sum + sum_rest * s;
  const V p = half_digits(u + v);
  const V p_rest = v - (p - u);
  const bool single = sizeof(E) == 4;
  const V y = p * E(single ? 0.9616699 : 0.9617966860532761);
  const V y_rest = p * E(single ? 0.00012677205 : 7.872699542894897e-09) + p_rest * E(0.9617966939259756);
  const V most = half_digits((y + y_rest) + parts.e);
  return {most, y_rest - ((most - parts.e) - y)};
}

}  // namespace detail

template <typename V>
UMBRA_INLINE V pow(V x, V y) {
  typedef Elem<V> E;
  using namespace detail;
  const E one = 1, zero = 0, limit = infinity<E>();
  const V a = abs(x);
  const LongLog<V> l = long_log2(a);
  // Beyond these the power of any number but 1 leaves the range.
  const E large = sizeof(E) == 4 ? E(8589934592.0) : E(7.378697629483821e+19);
  const V below = y > large ? large : y;
  const V exponent = below < -large ? -large : below;
  const V y_most = half_digits(exponent);
  const V p_rest = (exponent - y_most) * l.most + exponent * l.rest, p = y_most * l.most;
  const V z = p + p_rest;
  const V clamped = exp2_clamp(z);
  const V t = clamped + round_magic<E>();
  const V n = t - round_magic<E>();
  const V whole = p - n;
  const V f = whole + p_rest;
  const V lost = (whole - f) + p_rest;
  const V part = exp2_less_1(clamped == z ? f : V{});
  V result = scale_or_0(E(1) + (part + (clamped == z ? lost * E(0.6931471805599453) : V{})),
                        ExpParts<V>{part, n, bits(t) - bits(round_magic<E>())}, exp2_of_0<E>());
  const V end = (a > one) == (y > zero) ? limit : V{};
  result = logical_or(a == zero, a == limit) ? end : result;
  const Mask<V> whole_y = rint(y) == y;
  const V half = y * E(0.5);
  const Bits<V> odd = logical_and(whole_y, rint(half) != half) ? sign_bit<V>() : Bits<V>{};
  const V signed_result = from_bits<V>(bits(result) | (bits(x) & odd));
  result = logical_and(logical_and(x < zero, a < limit), logical_not(whole_y)) ? fill<V>(limit - limit) : signed_result;
  result = logical_or(x != x, y != y) ? x + y : result;
  result = logical_or(y == zero, x == one) ? fill<V>(one) : result;
  // Powers that a few steps give, to most of which programs raise: where they are known to a compiler, nothing else is
  // left.
  const V halves = y * E(2);
  if (any(logical_and(abs(halves) <= E(8), rint(halves) == halves))) {
    const V of = x == -limit ? fill<V>(limit) : x + zero, rooted = sqrt(of), square = x * x, inverse = one / x;
    // Squares and products as an exact product and what it lacks.
    const V x_most = half_digits(x), x_rest = x - x_most, rest = x_rest * (x + x_most), most = x_most * x_most;
    const V near = half_digits(most),
            fourth = near * near + ((most - near) * (most + near) + rest * (most + most + rest));
    const V upper = half_digits(square), lower = (most - upper) + rest, root = half_digits(rooted);
    const V root_5 = upper * root + (upper * (rooted - root) + lower * rooted);
    const V i_most = half_digits(inverse), i_rest = inverse - i_most;
    const V over = ((x_most * i_most - one) + (x_most * i_rest + x_rest * i_most)) + x_rest * i_rest;
    const V i_square = inverse * inverse,
            close = i_most * i_most + (i_rest * (inverse + i_most) - i_square * (over + over));
    const V square_2 = square * square, square_root = square * rooted;
    result = y == E(2) ? square : result;
    result = y == E(3) ? square * x : result;
    result = y == E(4) ? (square_2 < limit ? fourth : square_2) : result;
    result = y == E(-1) ? inverse : result;
    result = y == E(-2) ? (logical_and(i_square > zero, i_square < limit) ? close : i_square) : result;
    result = y == E(0.5) ? rooted : result;
    result = y == E(-0.5) ? one / rooted : result;
    result = y == E(1.5) ? of * rooted : result;
    result = y == E(2.5) ? (square_root < limit ? root_5 : square_root) : result;
  }
  return result;
}

// After fdlibm's s_cbrt.c: a third of the exponent, a polynomial to 20 bits, and one step of Halley's from
// half of the digits.
template <typename V>
UMBRA_INLINE V cbrt(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const bool single = sizeof(E) == 4;
  const V a = abs(x);
  const Mask<V> tiny = a < E(single ? 1.1754943508222875e-38 : 2.2250738585072014e-308);
  const V y = tiny ? a * E(single ? 16777216.0 : 1.8014398509481984e+16) : a;
  V t;
  if constexpr (sizeof(Elem<V>) == 4) {
    t = from_bits<V>(convert<Bits<V>>(convert<V>(bits(y)) * E(0.3333333333333333)) + 709958130);
  } else {
    const E magic = 4503599627370496.0;
    const V integer = from_bits<V>((bits(y) >> 12) | bits(magic)) - magic;
    t = from_bits<V>((bits(integer * E(0.3333333333333333) + magic) << 12) + 3071306046250219845LL);
  }
  const V r = t * t * (t / y);
  if constexpr (sizeof(Elem<V>) == 4) {
    t = half_digits(t * poly(r, 0.14505494, -0.75683755, 1.6224226, -1.8878629, 1.8772229));
  } else {
    t = half_digits(
        t * poly(r, 0.1450873272741337, -0.7569662560622842, 1.622613325567456, -1.887987876008194, 1.877253426432383));
  }
  const V q = y / (t * t);
  t = t + t * ((q - t) / (t + t + q));
  t = tiny ? t * E(single ? 0.00390625 : 3.814697265625e-06) : t;
  return logical_and(a > E(0), a < infinity<E>()) ? with_sign_of(t, x) : x + x;
}

namespace detail {

// (e^x + sign e^-x) / 2 for x >= 0 where that does not cancel.
template <typename V>
UMBRA_INLINE V half_sum(V x, Elem<V> sign) {
  typedef Elem<V> E;
  const E limit = sizeof(E) == 4 ? 90 : 711;
  const Elem<Bits<V>> enough = sizeof(E) == 4 ? 30 : 60;
  const ExpParts<V> e = exp_parts(no_more(x, limit));
  const V grown = e.p + E(1);
  const V lost = (E(1) - grown) + e.p;
  const V shrunk = pow2<V>(-2 * (e.k > enough ? enough : e.k)) / grown;
  return scale(grown + (lost + sign * shrunk), ExpParts<V>{e.p, e.n - E(1), e.k - 1});
}

}  // namespace detail

template <typename V>
UMBRA_INLINE V sinh(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const V a = abs(x);
  const V z = x * x;
  V p;
  if constexpr (sizeof(Elem<V>) == 4) {
    p = poly(z, 2.789984e-06, 0.00019841666, 0.008333315, 0.16666667);
  } else {
    p = poly(z, 4.448995073979093e-15, 7.580157504091657e-13, 1.6060174315015305e-10, 2.5052098350165263e-08,
             2.755731927390287e-06, 0.00019841269841133232, 0.008333333333333519, 0.16666666666666666);
  }
  return a < E(1) ? x + x * z * p : with_sign_of(half_sum(a, E(-1)), x);
}

template <typename V>
UMBRA_INLINE V cosh(V x) {
  return detail::half_sum(abs(x), Elem<V>(1));
}

namespace detail {

// x > 0 as mantissa times 2^exponent, the mantissa with all of its digits though x be subnormal.
template <typename V>
struct Scaled {
  V mantissa;
  Bits<V> exponent;
};

template <typename V>
UMBRA_INLINE Scaled<V> scaled(V x) {
  typedef Elem<V> E;
  const int digits = sizeof(E) == 4 ? 23 : 52;
  const Mask<V> tiny = x < E(sizeof(E) == 4 ? 1.1754943508222875e-38 : 2.2250738585072014e-308);
  const V y = tiny ? x * E(sizeof(E) == 4 ? 16777216.0 : 1.8014398509481984e+16) : x;
  const Bits<V> shift = tiny ? fill<Bits<V>>(sizeof(E) == 4 ? 24 : 54) : Bits<V>{};
  const Bits<V> exponent = bits(y) >> digits;
  const Elem<Bits<V>> bias = sizeof(E) == 4 ? 127 : 1023;
  return {from_bits<V>(bits(y) - ((exponent - bias) << digits)), exponent - bias - shift};
}

// y * 2^n for numbers that may be subnormal; rounded once if the result is.
template <typename V>
UMBRA_INLINE V shifted(V y, Bits<V> n) {
  const Bits<V> half = n >> 1;
  return y * pow2<V>(half) * pow2<V>(n - half);
}

}  // namespace detail

// Division by hand, half of the digits of the quotient a round: what a round leaves is exact.
template <typename V>
UMBRA_INLINE V fmod(V x, V y) {
  typedef Elem<V> E;
  using namespace detail;
  const Elem<Bits<V>> digits = sizeof(E) == 4 ? 11 : 24;
  const V b = abs(y);
  V a = abs(x);
  const auto number = logical_and(a<infinity<E>(), b> E(0));
  const Scaled<V> divisor = scaled(number ? b : fill<V>(E(1)));
  auto more = logical_and(number, a >= b);
  while (any(more)) {
    const Bits<V> above = scaled(more ? a : fill<V>(E(1))).exponent - divisor.exponent - digits;
    const V d = shifted(divisor.mantissa, (above > 0 ? above : Bits<V>{}) + divisor.exponent);
    const V q = trunc(a / d), most = half_digits(d);
    const V left = (a - q * most) - q * (d - most);
    a = more ? (left < E(0) ? left + d : left) : a;
    more = logical_and(number, a >= b);
  }
  return number ? with_sign_of(a, x) : fill<V>(infinity<E>() - infinity<E>());
}

// What two divisors leave says whether the quotient is odd, and every difference is exact.
template <typename V>
UMBRA_INLINE V remainder(V x, V y) {
  using namespace detail;
  const V b = abs(y);
  const V a = fmod(abs(x), b + b), less = a - b;
  const V nearest = a + a > b ? (less + less >= b ? less - b : less) : a;
  return from_bits<V>(bits(nearest) ^ (bits(x) & sign_bit<V>()));
}

// Exponents that are far beyond the range are as good as any there.
template <typename V>
UMBRA_INLINE V ldexp(V x, V n) {
  typedef Elem<V> E;
  typedef Elem<Bits<V>> Int;
  using namespace detail;
  const V a = abs(x);
  const auto number = logical_and(logical_and(a > E(0), a < infinity<E>()), n == n);
  const E far = sizeof(E) == 4 ? 500 : 5000;
  const Int most = sizeof(E) == 4 ? 240 : 2000;
  const V below = number ? (n > far ? fill<V>(far) : n) : V{};
  const Scaled<V> parts = scaled(number ? a : fill<V>(E(1)));
  const Bits<V> sum = parts.exponent + convert<Bits<V>>(below < -far ? fill<V>(-far) : below);
  const Bits<V> high = sum > most ? fill<Bits<V>>(most) : sum;
  const V moved = shifted(parts.mantissa, high < -most ? fill<Bits<V>>(-most) : high);
  return number ? with_sign_of(moved, x) : n == n ? x + x : n;
}

template <typename V>
UMBRA_INLINE V logb(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const V a = abs(x);
  const auto number = logical_and(a > E(0), a < infinity<E>());
  const V exponent = convert<V>(scaled(number ? a : fill<V>(E(1))).exponent);
  return number ? exponent : a == E(0) ? fill<V>(-infinity<E>()) : a;
}

// The bits of numbers of one sign are in the order of their magnitudes.
template <typename V>
UMBRA_INLINE V nextafter(V x, V y) {
  typedef Elem<V> E;
  using namespace detail;
  const Bits<V> one = fill<Bits<V>>(1);
  const V beside = from_bits<V>(bits(x) + ((x < y) == (x > E(0)) ? one : -one));
  const V next = x == E(0) ? with_sign_of(from_bits<V>(one), y) : beside;
  return logical_or(x != x, y != y) ? x + y : x == y ? y : next;
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_POWER_H_

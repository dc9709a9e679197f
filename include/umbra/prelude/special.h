// erf, erfc, gelu_erf, erfinv, asinh, acosh, atanh, lgamma and tgamma, f32 and f64. Polynomials are minimax ones for
// the coefficients' precision (Sollya's fpminimax), those of erfinv and lgamma interpolate at Chebyshev's points. Only
// exact products are fused with sums, as in math.h.
#ifndef UMBRA_PRELUDE_SPECIAL_H_
#define UMBRA_PRELUDE_SPECIAL_H_

#include "umbra/prelude/power.h"
#include "umbra/prelude/trig.h"

namespace umbra::simd {

namespace detail {

// erf(x) - x for |x| <= 0.86.
template <typename V>
UMBRA_INLINE V erf_less_x(V x) {
  const V z = x * x;
  if constexpr (sizeof(Elem<V>) == 4) {
    return x * poly(z, -0.00062947423, 0.0050486913, -0.026802063, 0.11282744, -0.3761258, 0.12837917);
  } else {
    return x * poly(z, 3.5301414996056694e-10, -2.5022353977869383e-09, 1.7454801719770945e-08, -1.6681590155093798e-07,
                    1.6486134073202689e-06, -1.4926869732265915e-05, 0.00012055374892376931, -0.0008548327991760944,
                    0.00522397764006351, -0.026866170646496844, 0.11283791670962272, -0.37612638903183926,
                    0.1283791670955126);
  }
}

// erfc(x) for x >= 0.86 as the fourth power of a polynomial of x - 1, in f32: good for 1 - erfc(x).
template <typename V>
UMBRA_INLINE V erfc_middle(V x) {
  typedef Elem<V> E;
  const E limit = 4;  // 1 - erfc(x) rounds to one from here on
  const V u = no_more(x, limit) - E(1);
  const V uu = u * u;
  const V even = poly(uu, -3.60408194e-05, 0.0010975094, -0.003956181, 0.00431434996);
  const V odd = poly(uu, 0.000103011291, -0.00517156255, 0.0508871451);
  const V root = ((odd * u + even) * u + E(-0.415485293)) * u + E(0.629769504);
  const V square = root * root;
  return square * square;
}

// From here on, or before, erfc rounds to 0: e^(-a^2) is far from the least number there is.
template <typename E>
UMBRA_INLINE E erfc_limit() {
#if defined(__CUDACC__)
  return sizeof(E) == 4 ? E(10.2) : E(27.5);
#else
  return sizeof(E) == 4 ? E(13) : E(37);
#endif
}

// x y - p, which a number holds where p is the product rounded, or x is p / y rounded.
template <typename V>
UMBRA_INLINE V product_rest(V x, V y, V p) {
#if defined(__FMA__) || defined(__CUDACC__)
  return fma(x, y, -p);
#else
  // Of halves that are rounded, the rests have a bit less than half of the digits.
  constexpr auto unit = sizeof(Elem<V>) == 4 ? 0x1000LL : 0x8000000LL;
  const auto most = [&](V of) { return half_digits(from_bits<V>(bits(of) + static_cast<Elem<Bits<V>>>(unit / 2))); };
  const V x_most = most(x), x_rest = x - x_most, y_most = most(y), y_rest = y - y_most;
  return (((x_most * y_most - p) + x_most * y_rest) + x_rest * y_most) + x_rest * y_rest;
#endif
}

// e^(a^2 / 2) times the integral of the normal distribution from a >= 0 on, of a = b / unit, in two parts.
template <typename V>
struct NormalTail {
  V most, rest;
};
template <typename V>
UMBRA_INLINE NormalTail<V> normal_tail(V b, Elem<V> unit) {
  typedef Elem<V> E;
  const E k = (sizeof(E) == 4 ? E(3.5) : E(6)) * unit;
  const V sum = b + k, t = k / sum;  // 1 at 0, and 0 at infinity
  // A relative error of t is one of the integral, times 1 for large b and up to 3 (in f64 5) for small ones.
  const V off = product_rest(t, sum, fill<V>(k)) + t * (no_more(b, k) - (sum - no_less(b, k)));
  const V by =
      sizeof(E) == 4 ? poly(t, -2.001 / k, -0.7873 / k) : poly(t, -2.794 / k, 0.181 / k, -1.227 / k, -0.986 / k);
  const V q = E(1) - (t + t), qq = q * q;
  E first;
  V linear, above;
  // Powers in pairs: fewer steps wait for each other than in Horner's rule.
  if constexpr (sizeof(Elem<V>) == 4) {
    const V high = poly(q, 3.297528e-05, 0.00012266728) * qq + poly(q, -0.00014194219, -0.0009090502);
    const V low = poly(q, 0.0018551172, 0.004973793) * qq + poly(q, -0.033157982, 0.09012138);
    first = E(0.21269031);
    linear = q * E(-0.16158907);
    above = (high * (qq * qq) + low) * qq;
  } else {
    const V q4 = qq * qq;
    const V high = (poly(q, 1.1169120233017337e-10, 7.77802524293347e-10, 8.218423710049596e-12) * qq +
                    poly(q, -7.130333041469688e-09, 1.6554293539647523e-09)) *
                       q4 +
                   (poly(q, 5.167344824422001e-08, -7.18805980183027e-08) * qq +
                    poly(q, -2.9991405155731255e-07, 1.1328673614072804e-06));
    const V middle = (poly(q, 1.7924848594699028e-07, -1.0792045764612807e-05) * qq +
                      poly(q, 3.022674187038283e-05, 5.478346499300042e-06)) *
                         q4 +
                     (poly(q, -0.0003552675361688074, 0.0016716367720211742) * qq +
                      poly(q, -0.005164219251120821, 0.012528652611611176));
    linear = q * E(-0.11683483826514426);
    above = ((high * (q4 * q4) + middle) * q4 + (poly(q, -0.025446705344093195, 0.04466237430693693) * qq +
                                                 poly(q, -0.06898393096259797, 0.0948281486357974))) *
            qq;
    first = E(0.1295586286488937);
  }
  const V rest = linear + above, p = first + rest, most = t * p;
  const V lost = ((first - p) + rest) + ((linear - rest) + above);
  return {most, (t * lost + product_rest(t, p, most)) + most * (off * by)};
}

// The integral of the normal distribution from a on, of which `tail` is, times `factor`: of 2 exactly. square is
// -a^2 / 2, and rest what that has lost.
template <typename V>
UMBRA_INLINE V normal_integral(const NormalTail<V>& tail, V square, V rest, V factor) {
  const ExpParts<V> e = exp_parts(square, rest);
  const V y = tail.most + (tail.most * e.p + (tail.rest + tail.rest * e.p));
  return scale_or_0(factor * y, e, exp2_of_0<Elem<V>>());
}

// erfc(x) for x >= 0.
template <typename V>
UMBRA_INLINE V erfc_large(V x) {
  typedef Elem<V> E;
  const V a = no_more(x, erfc_limit<E>()), square = -a * a;
  return normal_integral(normal_tail(a, E(0.7071067811865476)), square, product_rest(-a, a, square), fill<V>(E(2)));
}

}  // namespace detail

template <typename V>
UMBRA_INLINE V erf(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const V a = abs(x);
  V rest;
  if constexpr (sizeof(Elem<V>) == 4) {
    rest = erfc_middle(a);
  } else {
    const E limit = 6;
    rest = erfc_large(no_more(a, limit));
  }
  // Both are computed, as a GPU's threads have neighbours that need the other.
  return select(a < E(0.86), x + erf_less_x(x), with_sign_of(E(1) - rest, x));
}

template <typename V>
UMBRA_INLINE V erfc(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const V a = abs(x);
  const V tail = erfc_large(a);
  return a < E(0.5) ? E(1) - (x + erf_less_x(x)) : x < E(0) ? E(2) - tail : tail;
}

// x erfc(-x / sqrt(2)) / 2, with the exponential of -x^2 / 2 itself, as the rounding of x / sqrt(2) would count x^2
// times.
template <typename V>
UMBRA_INLINE V gelu_erf(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const E limit = erfc_limit<E>() * E(1.4142135623730951), half = 0.5;
  const V a = no_more(abs(x), limit), half_of_a = a * -half, square = a * half_of_a;
  const V less = normal_integral(normal_tail(a, E(1)), square, product_rest(a, half_of_a, square), a);
  return x < E(0) ? -less : x - less;
}

// With w = -log(1 - x^2) it is x times a function of w, and of sqrt(w) for larger w (after M. Giles); f64 goes on
// from there by one step of Halley's. The first polynomial is less by one.
template <typename V>
UMBRA_INLINE V erfinv(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const E one = 1;
  const V a = abs(x);
  const V w = -log((one - a) * (one + a));
  const V near = w - one;
  const V root = sqrt(w);
  V y;
  if constexpr (sizeof(Elem<V>) == 4) {
    const V far = root - E(3);
    const V p = poly(near, 1.2346577e-10, -1.6031225e-09, -2.0938122e-09, 1.3833126e-07, -5.686871e-07, -4.3051627e-06,
                     3.822995e-05, 0.000100135716, -0.0023763906, 0.0042507076, 0.24783288, 0.1273744);
    const V q = poly(far, -1.0609395e-05, -1.6467597e-05, 0.00017729467, -0.00029849797, -0.00013027186, 0.0014870651,
                     -0.0035640053, 0.005684919, -0.0076432126, 0.009445526, 1.0016752, 2.8329768);
    y = w < E(5) ? a + a * p : a * q;
  } else {
    const V far = root - E(4);
    const V p = poly(near, -8.931925970244222e-09, 1.439169677940051e-07, -5.35386261882938e-07,
                     -4.3769974763206066e-06, 3.82147038366021e-05, 0.00010025087743139696, -0.0023764059218931302,
                     0.004250649751238458, 0.24783287746290628, 0.12737439857966876);
    const V q = poly(far, -1.4863780333035938e-07, -2.5743670864891604e-06, 2.2306276450229434e-05,
                     -5.9034371175841525e-05, 6.765801884236556e-05, -8.056129587960455e-05, 0.0002948273665769313,
                     -0.0008883410433053073, 0.0012730484791930005, 1.0094958033545993, 3.8397828568131556);
    y = w < E(5) ? a + a * p : a * q;
    const V error = y < E(0.86) ? (y - a) + erf_less_x(y) : (one - a) - erfc_large(y);
    const V step = error * E(0.886226925452758) * exp(y * y);
    y = y - step / (one + y * step);
  }
  return with_sign_of(a < one ? y : a == one ? fill<V>(infinity<E>()) : fill<V>(infinity<E>() - infinity<E>()), x);
}

namespace detail {

// log(a + sqrt(a^2 + sign)) for a >= 1/2, or 2 if sign is -1; the root's last digits count.
template <typename V>
UMBRA_INLINE V log_of_sum(V a, Elem<V> sign) {
  typedef Elem<V> E;
  const V s = sqrt(a * a + sign);
  const V a_most = half_digits(a), s_most = half_digits(s);
  const V remainder =
      ((a_most * a_most - s_most * s_most) + sign) + ((a - a_most) * (a + a_most) - (s - s_most) * (s + s_most));
  const V u = a + s;
  const V lost = (sign > E(0) ? a - (u - s) : s - (u - a)) + remainder / (s + s);
  const E limit = sizeof(E) == 4 ? E(65536.0) : E(4294967296.0);  // the root is a from here on
  const V large = a > limit ? a : u;
  return log(large) + (a > limit ? fill<V>(E(0.6931471805599453)) : lost / u);
}

}  // namespace detail

template <typename V>
UMBRA_INLINE V asinh(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const V a = abs(x), z = x * x;
  V p;
  if constexpr (sizeof(Elem<V>) == 4) {
    p = poly(z, -0.0132311145, 0.0281649921, -0.0443835817, 0.0749864355, -0.166666433);
  } else {
    p = poly(z, 0.001718075775252121, -0.004747502336467145, 0.007465594163030735, -0.009534140558347096,
             0.011512983565221372, -0.013960232159574596, 0.017352386942983977, -0.022372138357327716,
             0.030381943716354193, -0.044642857127830685, 0.07499999999984416, -0.1666666666666661);
  }
  return with_sign_of(a < E(0.5) ? a + a * z * p : log_of_sum(a, E(1)), x);
}

template <typename V>
UMBRA_INLINE V acosh(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const V t = x - E(1);
  const V root = sqrt(t + t);
  V p;
  if constexpr (sizeof(Elem<V>) == 4) {
    p = poly(t, -2.69281718e-05, 0.000175584646, -0.000631788629, 0.00187095976, -0.00557394978, 0.0187492874,
             -0.083333306);
  } else {
    p = poly(t, 2.3643949880066792e-09, -2.528272465428249e-08, 1.3372962846157575e-07, -4.799052667722318e-07,
             1.3648578206710595e-06, -3.4178860766707237e-06, 8.108208784611428e-06, -1.902917868569554e-05,
             4.511249494798e-05, -0.00010909754582053942, 0.0002711364622387141, -0.0006991299137601468,
             0.0018988715232098642, -0.005580357142640052, 0.018749999999994705, -0.08333333333333329);
  }
  return x < E(2) ? root + root * t * p : log_of_sum(x, E(-1));
}

template <typename V>
UMBRA_INLINE V atanh(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const E one = 1;
  const V a = abs(x), z = x * x;
  V p;
  if constexpr (sizeof(Elem<V>) == 4) {
    p = poly(z, 0.176356837, 0.0516194887, 0.118160062, 0.142238259, 0.200024515, 0.333333015);
  } else {
    p = poly(z, 0.2405518523839791, -0.19516939487892584, 0.17424549250476692, -0.005037723720095027,
             0.05948228513352136, 0.050595826901596044, 0.05907221658111313, 0.06664506299587705, 0.07692439198977212,
             0.09090903648136808, 0.11111111256594428, 0.14285714283411236, 0.2000000000001843, 0.3333333333333328);
  }
  const V over = one + a, lost = a - (over - one);
  const V far = E(0.5) * (log(over / (one - a)) + lost / over);
  return a < E(0.5) ? x + x * z * p : with_sign_of(far, x);
}

namespace detail {

// gamma(a) for a = |x| < 8 is e^log times `factors`; where a is below 1/2, gamma(x) is e^log / x.
template <typename V>
struct NearGamma {
  V log, factors;
};

// `factors` times gamma(y), and the logarithm of that is t times a polynomial where y is 1 + t or 2 + t. Near zero
// gamma(x) is gamma(1 + x) / x.
template <typename V>
UMBRA_INLINE NearGamma<V> near_gamma(V x, V a) {
  V y = a, factors = fill<V>(1.0);
  for (int k = 0; k < 6; ++k) {
    const Mask<V> more = y >= 2.5;
    y = more ? y - 1.0 : y;
    factors = more ? factors * y : factors;
  }
  const Mask<V> one = a < 1.5;
  const V t = a < 0.5 ? x : one ? a - 1.0 : y - 2.0;
  const V first =
      poly(t, -0.2106405763765977, 0.21776403193444024, 0.13006481043406623, -0.13389890300455196, -0.12863326202503333,
           0.13334404147615248, -0.02132915302005397, 0.022869643945069157, -0.0580155874579924, 0.0611112824523265,
           -0.05807017435985679, 0.061723175739861164, -0.06674131081857668, 0.07150785679581952, -0.07692776487592225,
           0.0833489383057135, -0.09095422181604683, 0.10009966866876528, -0.11133426039277511, 0.12550966387451346,
           -0.14404989685114675, 0.16955717708231396, -0.2073855510280998, 0.27058080842719223, -0.4006856343865326,
           0.8224670334241144, -0.5772156649015329);
  const V second = poly(t, 2.7475390051909663e-07, -5.811277768921246e-07, 9.242852225162277e-07,
                        -1.9743106888421067e-06, 4.3828545383846665e-06, -9.45628851510172e-06, 2.050601970174762e-05,
                        -4.4923727564247656e-05, 9.945761692157133e-05, -0.00022315497746292723, 0.0005096695196526673,
                        -0.0011927539009983087, 0.002890510330865901, -0.007385551028935545, 0.02058080842778338,
                        -0.06735230105319563, 0.3224670334241132, 0.42278433509846713);
  return {t * (one ? first : second), factors};
}

// What Stirling's formula leaves of the logarithm of gamma(a) for a >= 8.
template <typename V>
UMBRA_INLINE V stirling_rest(V a) {
  const V inverse = 1.0 / a;
  return inverse * poly(inverse * inverse, -0.029550653594771242, 0.00641025641025641, -0.0019175269175269176,
                        0.0008417508417508417, -0.0005952380952380953, 0.0007936507936507937, -0.002777777777777778,
                        0.08333333333333333);
}

}  // namespace detail

// The logarithm of |gamma(x)|; f32 is computed in f64, whose digits the zeros below 0 take.
template <typename V>
UMBRA_INLINE V lgamma(V x) {
  using namespace detail;
  if constexpr (sizeof(Elem<V>) == 4) {
    return convert<V>(lgamma(convert<Rebind<V, double>>(x)));
  } else {
    const V a = abs(x);
    const Mask<V> small = a < 0.5, near = a < 8.0;
    const NearGamma<V> parts = near_gamma(x, a);
    const V l = log(near ? (small ? a : parts.factors) : a);
    const V far = (a - 0.5) * (l - 1.0) + (0.4189385332046727 + stirling_rest(a));
    const V right = near ? parts.log + (small ? -l : l) : far;
    if (!any(x <= -0.5)) return right;
    // gamma(x) gamma(-x) = -pi / (x sin(pi x)); whole numbers are poles.
    const V part = a - rint(a);
    const V left = log(3.141592653589793 / (a * abs(sin(3.141592653589793 * part)))) - right;
    const auto pole = logical_or(part == 0.0, a >= 4503599627370496.0);
    return x <= -0.5 ? (pole ? fill<V>(infinity<double>()) : left) : right;
  }
}

// f32 is computed in f64. For a >= 8 gamma(a) is sqrt(2 pi) a^(a - 1/2) e^(rest - a), whose power is a square.
template <typename V>
UMBRA_INLINE V tgamma(V x) {
  using namespace detail;
  if constexpr (sizeof(Elem<V>) == 4) {
    return convert<V>(tgamma(convert<Rebind<V, double>>(x)));
  } else {
    const V a = abs(x), most = a > 200.0 ? fill<V>(200.0) : a;
    const Mask<V> small = a < 0.5, near = a < 8.0;
    const NearGamma<V> parts = near_gamma(x, a);
    const ExpParts<V> e = exp_parts(near ? parts.log : -most, near ? V{} : stirling_rest(most));
    const V power = near ? fill<V>(1.0) : pow(most, most * 0.5 - 0.25);
    const V rest = scale(e.p + 1.0, e) * (near ? (small ? 1.0 / x : parts.factors) : 2.5066282746310002 * power);
    const V whole = rint(a), part = a - whole, half = whole * 0.5;
    const V sine = sin(3.141592653589793 * part);
    const V left = ((3.141592653589793 / (a * (rint(half) == half ? -sine : sine))) / rest) / power;
    const auto pole = logical_or(part == 0.0, a >= 4503599627370496.0);
    const V right = a < infinity<double>() ? rest * power : x;
    return x <= -0.5 ? (pole ? fill<V>(infinity<double>() - infinity<double>()) : left) : right;
  }
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_SPECIAL_H_

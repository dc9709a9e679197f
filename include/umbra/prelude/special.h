// erf, erfc and erfinv, f32 and f64. Polynomials are minimax ones for the coefficients' precision (Sollya's
// fpminimax), those of erfinv interpolate at Chebyshev's points.
// No fused multiply-add, as in math.h.
#ifndef UMBRA_PRELUDE_SPECIAL_H_
#define UMBRA_PRELUDE_SPECIAL_H_

#include "umbra/prelude/power.h"

namespace umbra::simd {

namespace detail {

// erf(x) - x for |x| <= 0.86.
template <typename V>
UMBRA_INLINE V erf_less_x(V x) {
  const V z = x * x;
  if constexpr (sizeof(Elem<V>) == 4) {
    return x * poly(z, -0.00062947423, 0.0050486913, -0.026802063, 0.11282744, -0.3761258, 0.12837917);
  } else {
    return x * poly(z, 3.5301414996056694e-10, -2.5022353977869383e-09, 1.7454801719770945e-08,
                    -1.6681590155093798e-07, 1.6486134073202689e-06, -1.4926869732265915e-05,
                    0.00012055374892376931, -0.0008548327991760944, 0.00522397764006351, -0.026866170646496844,
                    0.11283791670962272, -0.37612638903183926, 0.1283791670955126);
  }
}

// erfc(x) for x >= 0.49: e^(-x^2) / (1 + 2 x) times a polynomial of (x - k) / (x + k).
template <typename V>
UMBRA_INLINE V erfc_large(V x) {
  typedef Elem<V> E;
  const E k = sizeof(E) == 4 ? 2 : 3, limit = sizeof(E) == 4 ? E(10.2) : E(27.5);
  const V a = x > limit ? limit : x;
  const V q = (a - k) / (a + k);
  V p;
  if constexpr (sizeof(Elem<V>) == 4) {
    p = q * poly(q, -0.0002113713, -0.0012777261, 0.0011340874, 0.008670185, -0.008002049, -0.054214586, 0.16404834,
                 -0.16603045, -0.09276375);
  } else {
    p = q * poly(q, 8.363167087905607e-09, 7.152437402229264e-08, -8.341308084308459e-08, -5.849363462420746e-07,
                 3.02014003080868e-07, 3.4535933669311164e-06, -7.005292629498299e-07, -2.0093698860747886e-05,
                 4.938510868024931e-06, 0.00012509776981286868, -0.00010515734517941197, -0.0007798320436616746,
                 0.0018886900207061028, 0.002529391796206575, -0.023770514891610525, 0.06830802734493331,
                 -0.11927366341641057, 0.12964515870273932, -0.047562294353433336, -0.13562110612458103);
  }
  const E first = sizeof(E) == 4 ? E(1.2769784) : E(1.2530080582697296);
  const V over = first + p;
  const V twice = a + a;
  const V under = E(1) + twice;
  const V ratio = over / under;
  // What the sums and the quotient have rounded away, relative to the ratio; `over` is near 1 / 0.82.
  const V u = half_digits(under), r = half_digits(ratio);
  const V remainder = ((over - r * u) - r * (under - u)) - (ratio - r) * under;
  const V lost = (((first - over) + p) + remainder - ratio * (E(1) - (under - twice))) * E(0.82);
  const V most = half_digits(a);
  const ExpParts<V> e = exp_parts(-(most * most), (most - a) * (most + a));
  return scale(ratio + ratio * (e.p + (lost + lost * e.p)), e);
}

}  // namespace detail

template <typename V>
UMBRA_INLINE V erf(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const V a = abs(x);
  V rest;
  if constexpr (sizeof(Elem<V>) == 4) {
    const E limit = 4;  // the result rounds to one from here on
    const V b = a > limit ? limit : a;
    const ExpParts<V> e = exp_parts(poly(b, -1.5738182e-05, 0.00035924997, -0.0037338613, 0.023758119, -0.105832234,
                                         -0.6358857, -1.1281093, -0.00014591689));
    rest = scale(e.p + E(1), e);
  } else {
    const E limit = 6;
    rest = erfc_large(a > limit ? limit : a);
  }
  return a < E(0.86) ? x + erf_less_x(x) : with_sign_of(E(1) - rest, x);
}

template <typename V>
UMBRA_INLINE V erfc(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const V a = abs(x);
  const V tail = erfc_large(a);
  return a < E(0.5) ? E(1) - (x + erf_less_x(x)) : x < E(0) ? E(2) - tail : tail;
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
    const V p = poly(near, 1.2346577e-10, -1.6031225e-09, -2.0938122e-09, 1.3833126e-07, -5.686871e-07,
                     -4.3051627e-06, 3.822995e-05, 0.000100135716, -0.0023763906, 0.0042507076, 0.24783288,
                     0.1273744);
    const V q = poly(far, -1.0609395e-05, -1.6467597e-05, 0.00017729467, -0.00029849797, -0.00013027186,
                     0.0014870651, -0.0035640053, 0.005684919, -0.0076432126, 0.009445526, 1.0016752, 2.8329768);
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

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_SPECIAL_H_

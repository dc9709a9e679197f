// erf and erfc, f32 and f64. Polynomials are minimax ones for the coefficients' precision (Sollya's fpminimax).
// No fused multiply-add, as in math.h.
#ifndef UMBRA_PRELUDE_SPECIAL_H_
#define UMBRA_PRELUDE_SPECIAL_H_

#include "umbra/prelude/power.h"

namespace umbra::simd {

namespace detail {

// erf(x) for |x| <= 0.86.
template <typename V>
UMBRA_INLINE V erf_small(V x) {
  const V z = x * x;
  if constexpr (sizeof(Elem<V>) == 4) {
    return x + x * poly(z, -0.00062947423, 0.0050486913, -0.026802063, 0.11282744, -0.3761258, 0.12837917);
  } else {
    return x + x * poly(z, 3.5301414996056694e-10, -2.5022353977869383e-09, 1.7454801719770945e-08,
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
  return a < E(0.86) ? erf_small(x) : with_sign_of(E(1) - rest, x);
}

template <typename V>
UMBRA_INLINE V erfc(V x) {
  typedef Elem<V> E;
  using namespace detail;
  const V a = abs(x);
  const V tail = erfc_large(a);
  return a < E(0.5) ? E(1) - erf_small(x) : x < E(0) ? E(2) - tail : tail;
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_SPECIAL_H_

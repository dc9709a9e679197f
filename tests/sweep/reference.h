// References of the sweep for f32: glibc's vector functions of f64, which are right to 4 units of f64.
#ifndef UMBRA_TESTS_SWEEP_REFERENCE_H_
#define UMBRA_TESTS_SWEEP_REFERENCE_H_

#include "umbra/prelude/arith.h"

#if defined(__AVX512F__)
#define UMBRA_VEC_NAME(args, name) _ZGVeN8##args##_##name
typedef umbra::simd::f64x8 Doubles;
#elif defined(__AVX2__)
#define UMBRA_VEC_NAME(args, name) _ZGVdN4##args##_##name
typedef umbra::simd::f64x4 Doubles;
#else
#define UMBRA_VEC_NAME(args, name) _ZGVbN2##args##_##name
typedef umbra::simd::f64x2 Doubles;
#endif

#define UMBRA_REFERENCE1(name)                                          \
  extern "C" Doubles UMBRA_VEC_NAME(v, name)(Doubles);                  \
  namespace reference {                                                 \
  inline Doubles name(Doubles a) { return UMBRA_VEC_NAME(v, name)(a); } \
  }
#define UMBRA_REFERENCE2(name)                                                         \
  extern "C" Doubles UMBRA_VEC_NAME(vv, name)(Doubles, Doubles);                       \
  namespace reference {                                                                \
  inline Doubles name(Doubles a, Doubles b) { return UMBRA_VEC_NAME(vv, name)(a, b); } \
  }

UMBRA_REFERENCE1(acos)
UMBRA_REFERENCE1(acosh)
UMBRA_REFERENCE1(asin)
UMBRA_REFERENCE1(asinh)
UMBRA_REFERENCE1(atan)
UMBRA_REFERENCE1(atanh)
UMBRA_REFERENCE1(cbrt)
UMBRA_REFERENCE1(cos)
UMBRA_REFERENCE1(cosh)
UMBRA_REFERENCE1(erf)
UMBRA_REFERENCE1(erfc)
UMBRA_REFERENCE1(exp)
UMBRA_REFERENCE1(exp2)
UMBRA_REFERENCE1(expm1)
UMBRA_REFERENCE1(log)
UMBRA_REFERENCE1(log1p)
UMBRA_REFERENCE1(log2)
UMBRA_REFERENCE1(sin)
UMBRA_REFERENCE1(sinh)
UMBRA_REFERENCE1(tan)
UMBRA_REFERENCE1(tanh)
UMBRA_REFERENCE2(atan2)
UMBRA_REFERENCE2(pow)

namespace reference {
inline Doubles sqrt(Doubles a) { return umbra::simd::sqrt(a); }
}  // namespace reference

#include "tests/sweep/networks.h"

#endif  // UMBRA_TESTS_SWEEP_REFERENCE_H_

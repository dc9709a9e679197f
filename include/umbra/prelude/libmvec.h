// Rarer functions: packets go through glibc's vector math library, always by its widest variant for
// the instruction set, so that an element gets the same bits in every packet of a build; scalars go
// through libm.
#ifndef UMBRA_PRELUDE_LIBMVEC_H_
#define UMBRA_PRELUDE_LIBMVEC_H_

#include "umbra/prelude/types.h"

#if defined(__AVX512F__)
#define UMBRA_VEC_F32 umbra::simd::f32x16
#define UMBRA_VEC_F64 umbra::simd::f64x8
#define UMBRA_VEC_NAME32(args, name) _ZGVeN16##args##_##name##f
#define UMBRA_VEC_NAME64(args, name) _ZGVeN8##args##_##name
#elif defined(__AVX2__)
#define UMBRA_VEC_F32 umbra::simd::f32x8
#define UMBRA_VEC_F64 umbra::simd::f64x4
#define UMBRA_VEC_NAME32(args, name) _ZGVdN8##args##_##name##f
#define UMBRA_VEC_NAME64(args, name) _ZGVdN4##args##_##name
#else
#define UMBRA_VEC_F32 umbra::simd::f32x4
#define UMBRA_VEC_F64 umbra::simd::f64x2
#define UMBRA_VEC_NAME32(args, name) _ZGVbN4##args##_##name##f
#define UMBRA_VEC_NAME64(args, name) _ZGVbN2##args##_##name
#endif

namespace umbra::simd {

namespace detail {

// Applies f, a function of packets of type Native, to operands of any width.
template <typename Native, typename V, typename F>
UMBRA_INLINE V apply(F f, V a, V b) {
  if constexpr (kWidth<V> == kWidth<Native>) {
    return f(a, b);
  } else if constexpr (kWidth<V> < kWidth<Native>) {
    Native x{}, y{};
    __builtin_memcpy(&x, &a, sizeof a);
    __builtin_memcpy(&y, &b, sizeof b);
    const Native r = f(x, y);
    V result;
    __builtin_memcpy(&result, &r, sizeof result);
    return result;
  } else {
    typedef packet<Elem<V>, kWidth<V> / 2> Half;
    Half part[2][2];
    __builtin_memcpy(&part[0], &a, sizeof a);
    __builtin_memcpy(&part[1], &b, sizeof b);
    const Half r[2] = {apply<Native>(f, part[0][0], part[1][0]),
                       apply<Native>(f, part[0][1], part[1][1])};
    V result;
    __builtin_memcpy(&result, r, sizeof result);
    return result;
  }
}

}  // namespace detail

#define UMBRA_LIBM1(name)                                                                      \
  extern "C" UMBRA_VEC_F32 UMBRA_VEC_NAME32(v, name)(UMBRA_VEC_F32);                           \
  extern "C" UMBRA_VEC_F64 UMBRA_VEC_NAME64(v, name)(UMBRA_VEC_F64);                           \
  template <typename V>                                                                        \
  UMBRA_INLINE V name(V a) {                                                                   \
    if constexpr (IsSame<V, float>::value) return __builtin_##name##f(a);                      \
    else if constexpr (IsSame<V, double>::value) return __builtin_##name(a);                   \
    else if constexpr (sizeof(Elem<V>) == 4)                                                   \
      return detail::apply<UMBRA_VEC_F32>(                                                     \
          [](auto x, auto) { return UMBRA_VEC_NAME32(v, name)(x); }, a, a);                    \
    else                                                                                       \
      return detail::apply<UMBRA_VEC_F64>(                                                     \
          [](auto x, auto) { return UMBRA_VEC_NAME64(v, name)(x); }, a, a);                    \
  }

#define UMBRA_LIBM2(name)                                                                      \
  extern "C" UMBRA_VEC_F32 UMBRA_VEC_NAME32(vv, name)(UMBRA_VEC_F32, UMBRA_VEC_F32);           \
  extern "C" UMBRA_VEC_F64 UMBRA_VEC_NAME64(vv, name)(UMBRA_VEC_F64, UMBRA_VEC_F64);           \
  template <typename V>                                                                        \
  UMBRA_INLINE V name(V a, V b) {                                                              \
    if constexpr (IsSame<V, float>::value) return __builtin_##name##f(a, b);                   \
    else if constexpr (IsSame<V, double>::value) return __builtin_##name(a, b);                \
    else if constexpr (sizeof(Elem<V>) == 4)                                                   \
      return detail::apply<UMBRA_VEC_F32>(                                                     \
          [](auto x, auto y) { return UMBRA_VEC_NAME32(vv, name)(x, y); }, a, b);              \
    else                                                                                       \
      return detail::apply<UMBRA_VEC_F64>(                                                     \
          [](auto x, auto y) { return UMBRA_VEC_NAME64(vv, name)(x, y); }, a, b);              \
  }

UMBRA_LIBM1(erf)
UMBRA_LIBM1(sin)
UMBRA_LIBM1(cos)
UMBRA_LIBM1(tan)
UMBRA_LIBM1(asin)
UMBRA_LIBM1(acos)
UMBRA_LIBM1(atan)
UMBRA_LIBM1(sinh)
UMBRA_LIBM1(cosh)
UMBRA_LIBM1(cbrt)
UMBRA_LIBM2(pow)
UMBRA_LIBM2(atan2)

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_LIBMVEC_H_

// Loads and stores of some lanes of packets.
#ifndef UMBRA_PRELUDE_MASKED_H_
#define UMBRA_PRELUDE_MASKED_H_

#include "umbra/prelude/types.h"

namespace umbra::simd {

// The halves of a packet, for __builtin_bit_cast.
template <typename Half>
struct Pair {
  Half low, high;
};

// A bit for each of the first n lanes, 0 <= n <= 64.
UMBRA_INLINE unsigned long long head_bits(i64 n) { return n < 64 ? (1ull << n) - 1 : ~0ull; }

// Has the target instructions that take a mask, for elements of any size?
inline constexpr bool kMasks =
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    true;
#else
    false;
#endif

// Those of AVX-512, by bytes of an element and of a packet.
#if defined(__AVX512BW__) && defined(__AVX512VL__)
namespace detail {
template <int element, int bytes>
struct Masked;
// Compilers differ in what the instructions are said to read and write.
#if defined(__clang__)
#define UMBRA_MASKED_POINTEE(Scalar, P) P
#else
#define UMBRA_MASKED_POINTEE(Scalar, P) Scalar
#endif
#define UMBRA_MASKED(name, Scalar, lanes, Pointee, Mask)                                                   \
  template <>                                                                                              \
  struct Masked<sizeof(Scalar), sizeof(Scalar) * lanes> {                                                  \
    typedef Scalar P __attribute__((vector_size(sizeof(Scalar) * lanes)));                                 \
    static UMBRA_INLINE P load(const void* p, unsigned long long bits, P rest) {                           \
      typedef Pointee Read;                                                                                \
      return __builtin_ia32_load##name##_mask(static_cast<const Read*>(p), rest, static_cast<Mask>(bits)); \
    }                                                                                                      \
    static UMBRA_INLINE void store(void* p, unsigned long long bits, P v) {                                \
      typedef Pointee Written;                                                                             \
      __builtin_ia32_store##name##_mask(static_cast<Written*>(p), v, static_cast<Mask>(bits));             \
    }                                                                                                      \
  };
UMBRA_MASKED(dquqi128, char, 16, UMBRA_MASKED_POINTEE(char, P), unsigned short)
UMBRA_MASKED(dquqi256, char, 32, UMBRA_MASKED_POINTEE(char, P), unsigned)
UMBRA_MASKED(dquqi512, char, 64, UMBRA_MASKED_POINTEE(char, P), unsigned long long)
UMBRA_MASKED(dquhi128, short, 8, UMBRA_MASKED_POINTEE(short, P), unsigned char)
UMBRA_MASKED(dquhi256, short, 16, UMBRA_MASKED_POINTEE(short, P), unsigned short)
UMBRA_MASKED(dquhi512, short, 32, UMBRA_MASKED_POINTEE(short, P), unsigned)
UMBRA_MASKED(ups128, float, 4, UMBRA_MASKED_POINTEE(float, P), unsigned char)
UMBRA_MASKED(ups256, float, 8, UMBRA_MASKED_POINTEE(float, P), unsigned char)
UMBRA_MASKED(ups512, float, 16, float, unsigned short)
UMBRA_MASKED(upd128, double, 2, UMBRA_MASKED_POINTEE(double, P), unsigned char)
UMBRA_MASKED(upd256, double, 4, UMBRA_MASKED_POINTEE(double, P), unsigned char)
UMBRA_MASKED(upd512, double, 8, double, unsigned char)
#undef UMBRA_MASKED
#undef UMBRA_MASKED_POINTEE
}  // namespace detail
#endif

// The lanes from p that have a bit, of the others those of `rest`; what has no bit is not read.
template <typename V>
UMBRA_INLINE V load_masked(const Elem<V>* p, unsigned long long bits, V rest = V{}) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (sizeof(V) > 64) {
    typedef packet<Elem<V>, kWidth<V> / 2> Half;
    const Pair<Half> part = __builtin_bit_cast(Pair<Half>, rest);
    return __builtin_bit_cast(V, Pair<Half>{load_masked<Half>(p, bits, part.low),
                                            load_masked<Half>(p + kWidth<Half>, bits >> kWidth<Half>, part.high)});
  } else if constexpr (sizeof(V) < 16) {
    packet<Elem<V>, 16 / sizeof(Elem<V>)> wide{};
    __builtin_memcpy(&wide, &rest, sizeof rest);
    wide = load_masked(p, bits & head_bits(kWidth<V>), wide);
    __builtin_memcpy(&rest, &wide, sizeof rest);
    return rest;
  } else {
    typedef detail::Masked<sizeof(Elem<V>), sizeof(V)> M;
    return __builtin_bit_cast(V, M::load(p, bits, __builtin_bit_cast(typename M::P, rest)));
  }
#else
  for (int k = 0; k < kWidth<V>; ++k)
    if (bits >> k & 1) rest[k] = p[k];
  return rest;
#endif
}

// Stores the lanes that have a bit; nothing else is written.
template <typename V>
UMBRA_INLINE void store_masked(Elem<V>* p, V v, unsigned long long bits) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  if constexpr (sizeof(V) > 64) {
    typedef packet<Elem<V>, kWidth<V> / 2> Half;
    const Pair<Half> part = __builtin_bit_cast(Pair<Half>, v);
    store_masked<Half>(p, part.low, bits);
    store_masked<Half>(p + kWidth<Half>, part.high, bits >> kWidth<Half>);
  } else if constexpr (sizeof(V) < 16) {
    packet<Elem<V>, 16 / sizeof(Elem<V>)> wide{};
    __builtin_memcpy(&wide, &v, sizeof v);
    store_masked(p, wide, bits & head_bits(kWidth<V>));
  } else {
    typedef detail::Masked<sizeof(Elem<V>), sizeof(V)> M;
    M::store(p, bits, __builtin_bit_cast(typename M::P, v));
  }
#else
  for (int k = 0; k < kWidth<V>; ++k)
    if (bits >> k & 1) p[k] = v[k];
#endif
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_MASKED_H_

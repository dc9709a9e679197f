// Random numbers from a counter: number i of the sequence of a key is a function of i and the key (Philox 4x32-10,
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). Counter and key are i64.
#ifndef UMBRA_PRELUDE_RANDOM_H_
#define UMBRA_PRELUDE_RANDOM_H_

#include "umbra/prelude/trig.h"

namespace umbra::simd {

namespace detail {

// The four words of a block, 32 bits each.
template <typename V>
struct RandomWords {
  V word[4];
};

// The products of the lower halves of unsigned lanes: one instruction, which g++ does not find.
template <typename U>
UMBRA_INLINE U times_low(U a, unsigned b) {
  const U factor = U{} + b;
#if !defined(__clang__) && defined(__SSE2__)
  if constexpr (sizeof(U) == 16)
    return __builtin_bit_cast(
        U, __builtin_ia32_pmuludq128(__builtin_bit_cast(i32x4, a), __builtin_bit_cast(i32x4, factor)));
#if defined(__AVX2__)
  if constexpr (sizeof(U) == 32)
    return __builtin_bit_cast(
        U, __builtin_ia32_pmuludq256(__builtin_bit_cast(i32x8, a), __builtin_bit_cast(i32x8, factor)));
#endif
  if constexpr (sizeof(U) >= 32) {
    typedef packet<unsigned long long, sizeof(U) / 16> Half;
    const auto halves = __builtin_bit_cast(Pair<Half>, a);
    return __builtin_bit_cast(U, Pair<Half>{times_low(halves.low, b), times_low(halves.high, b)});
  }
#endif
  return (a & 0xffffffffull) * factor;
}

// The block of a sequence; sequences of different `kind` have no block in common. What stands above the lower 32
// bits of a lane does not count.
template <typename V>
UMBRA_INLINE RandomWords<V> philox(V block, V key, unsigned kind) {
  typedef packet<unsigned long long, kWidth<V>> U;
  U c0 = __builtin_bit_cast(U, block), c1 = c0 >> 32, c2 = U{} + kind, c3 = U{};
  U k0 = __builtin_bit_cast(U, key), k1 = k0 >> 32;
  for (int round = 0; round < 10; ++round) {
    const U p0 = times_low(c0, 0xD2511F53), p1 = times_low(c2, 0xCD9E8D57);
    c0 = (p1 >> 32) ^ c1 ^ k0;
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ k1;
    c3 = p0;
    k0 = k0 + 0x9E3779B9u;
    k1 = k1 + 0xBB67AE85u;
  }
  const auto word = [](U c) { return __builtin_bit_cast(V, c & 0xffffffffull); };
  return {{word(c0), word(c1), word(c2), word(c3)}};
}

// The leading bits of two words as a number of T in [0, 1).
template <typename T, typename V>
UMBRA_INLINE Rebind<V, T> unit(V first, V second) {
  typedef Rebind<V, T> R;
  typedef Rebind<V, int> Int;
  if constexpr (sizeof(T) == 4) {
    return convert<R>(convert<Int>(first >> 8)) * T(0x1p-24);
  } else {
    return (convert<R>(convert<Int>(first >> 5)) * T(0x1p26) + convert<R>(convert<Int>(second >> 6))) * T(0x1p-53);
  }
}

}  // namespace detail

// Uniform in [0, 1), with 24 bits in f32 and 53 in f64.
template <typename T, typename V>
UMBRA_INLINE Rebind<V, T> random_uniform(V counter, V key) {
  const detail::RandomWords<V> random = detail::philox<V>(counter >> 1, key, 0);
  const auto odd = (counter & fill<V>(1)) != fill<V>(0);
  return detail::unit<T>(select(odd, random.word[2], random.word[0]), select(odd, random.word[3], random.word[1]));
}

// Standard normal, by the method of Box and Muller; the largest are 6.6 in f32 and 8.5 in f64.
template <typename T, typename V>
UMBRA_INLINE Rebind<V, T> random_gaussian(V counter, V key) {
  typedef Rebind<V, T> R;
  const detail::RandomWords<V> random = detail::philox<V>(counter, key, 1);
  R above;  // in (0, 1]
  if constexpr (sizeof(T) == 4)
    above = (convert<R>(convert<Rebind<V, int>>(random.word[0] >> 1)) + T(0.5)) * T(0x1p-31);
  else above = T(1) - detail::unit<T>(random.word[0], random.word[1]);
  const R angle = T(6.283185307179586) * detail::unit<T>(random.word[2], random.word[3]);
  return sqrt(T(-2) * log(above)) * cos(angle);
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_RANDOM_H_

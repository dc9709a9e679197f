// Arithmetic that the language's operators do not give: selection, NaN-keeping extremes, safe
// integer division, conversions, roots and rounding.
#ifndef UMBRA_PRELUDE_ARITH_H_
#define UMBRA_PRELUDE_ARITH_H_

#include "umbra/prelude/memory.h"

namespace umbra::simd {

template <typename V>
UMBRA_INLINE Bits<V> bits(V v) {
  return __builtin_bit_cast(Bits<V>, v);
}
template <typename V>
UMBRA_INLINE V from_bits(Bits<V> b) {
  return __builtin_bit_cast(V, b);
}

// Lane by lane conversion; g++ has no __builtin_convertvector for dependent types.
template <typename To, typename From>
UMBRA_INLINE To convert(From v) {
  if constexpr (IsSame<To, From>::value) {
    return v;
  } else if constexpr (kWidth<From> == 1) {
    return static_cast<To>(v);
  } else {
#if defined(__clang__)
    return __builtin_convertvector(v, To);
#else
    To r{};
    for (int k = 0; k < kWidth<To>; ++k) r[k] = static_cast<Elem<To>>(v[k]);
#if !defined(__CUDACC__)
    // g++ 12 takes f64 to f32 to f64 for the identity.
    if constexpr (sizeof(Elem<To>) == 4 && IsSame<Elem<From>, double>::value) {
      if constexpr (static_cast<int>(sizeof(To)) <= kRegisterBytes) __asm__("" : "+v"(r));
      else __asm__("" : "+m"(r));
    }
#endif
    return r;
#endif
  }
}

// mask ? a : b, also for a mask that comes from lanes of another size, or one for all lanes.
template <typename M, typename V>
UMBRA_INLINE V select(M mask, V a, V b) {
  if constexpr (IsSame<M, bool>::value || sizeof(M) == sizeof(V)) return mask ? a : b;
  else return convert<Bits<V>>(mask) ? a : b;
}

// Logic of conditions: of two bools, of two masks, or of a bool with every lane of a mask.
template <typename A, typename B>
UMBRA_INLINE auto logical_and(A a, B b) {
  if constexpr (IsSame<A, bool>::value && IsSame<B, bool>::value) return a && b;
  else if constexpr (IsSame<A, bool>::value) return a ? b : B{};
  else if constexpr (IsSame<B, bool>::value) return b ? a : A{};
  else return a & convert<A>(b);
}
template <typename M>
UMBRA_INLINE M logical_not(M mask) {
  if constexpr (IsSame<M, bool>::value) return !mask;
  else return ~mask;
}
template <typename A, typename B>
UMBRA_INLINE auto logical_or(A a, B b) {
  return logical_not(logical_and(logical_not(a), logical_not(b)));
}

namespace detail {
// Does the condition hold in some lane?
template <typename M>
UMBRA_INLINE bool any(M mask) {
  if constexpr (IsSame<M, bool>::value) {
    return mask;
  } else {
#if defined(__clang__)
    return __builtin_reduce_or(mask) != 0;
#else
    i64 parts[sizeof(M) / 8], all = 0;
    __builtin_memcpy(parts, &mask, sizeof mask);
    for (i64 part : parts) all |= part;
    return all != 0;
#endif
  }
}
}  // namespace detail

// The first n lanes of v; `other` in the rest.
template <typename V>
UMBRA_INLINE V keep(V v, i64 n, Elem<V> other) {
  if constexpr (kWidth<V> == 1) return n > 0 ? v : other;
  else return iota<Bits<V>>() < static_cast<Elem<Bits<V>>>(n) ? v : fill<V>(other);
}

namespace detail {
template <typename T>
struct IsFloatElem {
  static constexpr bool value = IsSame<T, float>::value || IsSame<T, double>::value;
};
}  // namespace detail

template <typename V>
UMBRA_INLINE V abs(V a) {
  if constexpr (IsSame<Elem<V>, float>::value) return from_bits<V>(bits(a) & 0x7fffffff);
  else if constexpr (IsSame<Elem<V>, double>::value) return from_bits<V>(bits(a) & 0x7fffffffffffffffLL);
  else if constexpr (kWidth<V> == 1) return a < 0 ? static_cast<V>(0ull - static_cast<unsigned long long>(a)) : a;
  else return a < 0 ? -a : a;
}

namespace detail {

// a where that is NaN, made quiet with AVX-512, else what was chosen of a and another.
#if defined(__AVX512F__)
inline constexpr int kNanOfSource = 0x22;  // a table of vfixupimm: NaN comes from the second operand
UMBRA_INLINE f32x16 nan_or(f32x16 a, f32x16 chosen) {
  return __builtin_ia32_fixupimmps512_mask(chosen, a, fill<i32x16>(kNanOfSource), 0, static_cast<unsigned short>(-1),
                                           4);
}
UMBRA_INLINE f64x8 nan_or(f64x8 a, f64x8 chosen) {
  return __builtin_ia32_fixupimmpd512_mask(chosen, a, fill<i64x8>(kNanOfSource), 0, static_cast<unsigned char>(-1), 4);
}
#endif
template <typename V>
UMBRA_INLINE V nan_or(V a, V chosen) {
  return a != a ? a : chosen;
}

// The larger and the smaller, b where one is NaN, by the instructions themselves: compilers make one longer chain of
// two selections.
template <typename V>
UMBRA_INLINE V more_of(V a, V b) {
  return a > b ? a : b;
}
template <typename V>
UMBRA_INLINE V less_of(V a, V b) {
  return a < b ? a : b;
}
#if !defined(__CUDACC__) && defined(__SSE2__)
UMBRA_INLINE f32x4 more_of(f32x4 a, f32x4 b) { return __builtin_ia32_maxps(a, b); }
UMBRA_INLINE f64x2 more_of(f64x2 a, f64x2 b) { return __builtin_ia32_maxpd(a, b); }
UMBRA_INLINE f32x4 less_of(f32x4 a, f32x4 b) { return __builtin_ia32_minps(a, b); }
UMBRA_INLINE f64x2 less_of(f64x2 a, f64x2 b) { return __builtin_ia32_minpd(a, b); }
#if defined(__AVX__)
UMBRA_INLINE f32x8 more_of(f32x8 a, f32x8 b) { return __builtin_ia32_maxps256(a, b); }
UMBRA_INLINE f64x4 more_of(f64x4 a, f64x4 b) { return __builtin_ia32_maxpd256(a, b); }
UMBRA_INLINE f32x8 less_of(f32x8 a, f32x8 b) { return __builtin_ia32_minps256(a, b); }
UMBRA_INLINE f64x4 less_of(f64x4 a, f64x4 b) { return __builtin_ia32_minpd256(a, b); }
#endif
#endif

#if defined(__AVX512F__)
inline constexpr unsigned long kWidestPacket = 64;
#elif defined(__AVX__)
inline constexpr unsigned long kWidestPacket = 32;
#else
inline constexpr unsigned long kWidestPacket = 16;
#endif

}  // namespace detail

// The larger and the smaller; NaN if either operand is NaN: the selection is one instruction that keeps a NaN in b.
template <typename V>
UMBRA_INLINE V maximum(V a, V b) {
  if constexpr (!detail::IsFloatElem<Elem<V>>::value) {
    return a > b ? a : b;
  } else if constexpr (sizeof(V) > detail::kWidestPacket) {
    typedef packet<Elem<V>, kWidth<V> / 2> Half;
    const Pair<Half> x = __builtin_bit_cast(Pair<Half>, a), y = __builtin_bit_cast(Pair<Half>, b);
    return __builtin_bit_cast(V, Pair<Half>{maximum(x.low, y.low), maximum(x.high, y.high)});
  } else {
    return detail::nan_or(a, detail::more_of(a, b));
  }
}
template <typename V>
UMBRA_INLINE V minimum(V a, V b) {
  if constexpr (!detail::IsFloatElem<Elem<V>>::value) {
    return a < b ? a : b;
  } else if constexpr (sizeof(V) > detail::kWidestPacket) {
    typedef packet<Elem<V>, kWidth<V> / 2> Half;
    const Pair<Half> x = __builtin_bit_cast(Pair<Half>, a), y = __builtin_bit_cast(Pair<Half>, b);
    return __builtin_bit_cast(V, Pair<Half>{minimum(x.low, y.low), minimum(x.high, y.high)});
  } else {
    return detail::nan_or(a, detail::less_of(a, b));
  }
}

#if defined(__CUDACC__)
// maximum and minimum in one instruction, where the GPU has it. Of zeros +0 is the larger one.
UMBRA_INLINE float maximum_at_once(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float most;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
  return most;
#else
  return maximum(a, b);
#endif
}
UMBRA_INLINE float minimum_at_once(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  float least;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(a), "f"(b));
  return least;
#else
  return minimum(a, b);
#endif
}
#endif

// x held within a bound that is not 0; NaN stays.
template <typename V>
UMBRA_INLINE V no_less(V x, Elem<V> low) {
#if defined(__CUDACC__)
  if constexpr (IsSame<V, float>::value) return maximum_at_once(x, low);
#endif
  return x < low ? low : x;
}
template <typename V>
UMBRA_INLINE V no_more(V x, Elem<V> high) {
#if defined(__CUDACC__)
  if constexpr (IsSame<V, float>::value) return minimum_at_once(x, high);
#endif
  return x > high ? high : x;
}

// Quotient. Integers truncate, x / 0 is 0 and the smallest integer / -1 is itself: no trap. Packets have an instruction
// for f64 alone: i32 are exact in it, and a quotient of two is no nearer to the next integer than 1 / |b|, more than
// its error.
template <typename V>
UMBRA_INLINE V div(V a, V b) {
  if constexpr (detail::IsFloatElem<Elem<V>>::value) {
    return a / b;
  } else if constexpr (kWidth<V> == 1) {
    return b == 0 ? 0 : b == -1 ? static_cast<V>(0ull - static_cast<unsigned long long>(a)) : a / b;
  } else if constexpr (sizeof(Elem<V>) == 4) {
    typedef Rebind<V, double> D;
    const V zero{};
    const auto none = b == zero, negative = b == zero - 1;
    const V by = none | negative ? zero + 1 : b;
    return none ? zero : negative ? zero - a : convert<V>(convert<D>(a) / convert<D>(by));
  } else {
    const V zero{};
    const auto none = b == zero, negative = b == zero - 1;
    const V by = none | negative ? zero + 1 : b;
    V q{};
    for (int k = 0; k < kWidth<V>; ++k) q[k] = a[k] / by[k];  // g++ 12 makes x / x of -1 where it chooses by lane
    return none ? zero : negative ? zero - a : q;
  }
}

// The same of a packet of integers, by a number that is known when compiling: compilers multiply.
template <typename V>
UMBRA_INLINE V div_by(V a, Elem<V> number) {
  if (number == 0) return V{};
  return number == -1 ? V{} - a : a / number;
}

namespace detail {
// Of an integer type: its ends, the end plus one, and the largest floats that convert to it.
template <typename T>
struct Limits {
  static constexpr bool is_signed = T(-1) < T(0);
  static constexpr double above =
      is_signed ? double(1ull << (8 * sizeof(T) - 1)) : double(1ull << (8 * sizeof(T) % 64));
  static constexpr double low = is_signed ? -above : 0.0;
  static constexpr T high = T(is_signed ? (~0ull >> 1) >> (64 - 8 * sizeof(T)) : ~0ull);
  static constexpr double high_f32 = sizeof(T) == 8 ? 9223371487098961920.0 : sizeof(T) == 4 ? 2147483520.0 : above - 1;
  static constexpr double high_f64 = sizeof(T) == 8 ? 9223372036854774784.0 : above - 1;
};
}  // namespace detail

// Bits of integers. Counts of shifts are taken modulo the number of bits, so that every shift has a meaning.
template <typename V>
UMBRA_INLINE V bit_and(V a, V b) {
  return a & b;
}

template <typename V>
UMBRA_INLINE V bit_or(V a, V b) {
  return a | b;
}

template <typename V>
UMBRA_INLINE V bit_xor(V a, V b) {
  return a ^ b;
}

template <typename V>
UMBRA_INLINE V shift_left(V a, V b) {
  const V count = b & Elem<V>(8 * sizeof(Elem<V>) - 1);
  if constexpr (kWidth<V> == 1) return static_cast<V>(static_cast<unsigned long long>(a) << count);
  else return a << count;
}

template <typename V>
UMBRA_INLINE V shift_right(V a, V b) {
  return a >> (b & Elem<V>(8 * sizeof(Elem<V>) - 1));
}

// Numbers between dtypes: floats to integers truncate and saturate, NaN becomes 0; integers to
// narrower ones wrap around.
template <typename To, typename From>
UMBRA_INLINE To cast(From v) {
  typedef Elem<To> T;
  typedef Elem<From> F;
  if constexpr (IsSame<F, bool>::value) {
    return v ? T(1) : T(0);
  } else if constexpr (detail::IsFloatElem<F>::value && !detail::IsFloatElem<T>::value) {
    constexpr F above = F(detail::Limits<T>::above);
    constexpr F high = sizeof(F) == 4 ? F(detail::Limits<T>::high_f32) : F(detail::Limits<T>::high_f64);
    const From limit = fill<From>(high);
    const From low = fill<From>(F(detail::Limits<T>::low));
    const From most = v > limit ? limit : v, inside = most < low ? low : most;  // minimum and maximum, which leave NaN
    const To number = convert<To>(v == v ? inside : fill<From>(F(0)));
    if constexpr (sizeof(T) < sizeof(F) || sizeof(T) < 4) return number;
    else return select(v >= above, fill<To>(detail::Limits<T>::high), number);
  } else {
    return convert<To>(v);
  }
}

// A condition as a number: 1 where it holds.
template <typename To, typename M>
UMBRA_INLINE To cast_mask(M mask) {
  return select(mask, fill<To>(Elem<To>(1)), fill<To>(Elem<To>(0)));
}

#if !defined(__CUDACC__) && !defined(__clang__) && defined(__SSE2__)
// g++ takes the roots of lanes one by one, since each may set errno.
UMBRA_INLINE f32x4 sqrt(f32x4 a) { return __builtin_ia32_sqrtps(a); }
UMBRA_INLINE f64x2 sqrt(f64x2 a) { return __builtin_ia32_sqrtpd(a); }
#if defined(__AVX__)
UMBRA_INLINE f32x8 sqrt(f32x8 a) { return __builtin_ia32_sqrtps256(a); }
UMBRA_INLINE f64x4 sqrt(f64x4 a) { return __builtin_ia32_sqrtpd256(a); }
#endif
#if defined(__AVX512F__)
UMBRA_INLINE f32x16 sqrt(f32x16 a) { return __builtin_ia32_sqrtps512_mask(a, a, static_cast<unsigned short>(-1), 4); }
UMBRA_INLINE f64x8 sqrt(f64x8 a) { return __builtin_ia32_sqrtpd512_mask(a, a, static_cast<unsigned char>(-1), 4); }
#endif
#endif
template <typename V>
UMBRA_INLINE V sqrt(V a) {
#if defined(__CUDACC__)
  if constexpr (IsSame<V, float>::value) return __fsqrt_rn(a);
  else return __dsqrt_rn(a);
#else
  if constexpr (IsSame<V, float>::value) {
    return __builtin_sqrtf(a);
  } else if constexpr (IsSame<V, double>::value) {
    return __builtin_sqrt(a);
  } else {
#if __has_builtin(__builtin_elementwise_sqrt)
    return __builtin_elementwise_sqrt(a);
#else
    V r{};
    for (int k = 0; k < kWidth<V>; ++k) r[k] = sqrt<Elem<V>>(a[k]);
    return r;
#endif
  }
#endif
}

// a * b + c, rounded once. Where there is no such instruction the C library's fma does it, a lane at a time.
template <typename V>
UMBRA_INLINE V fma(V a, V b, V c) {
#if defined(__CUDACC__)
  if constexpr (IsSame<V, float>::value) return __fmaf_rn(a, b, c);
  else return __fma_rn(a, b, c);
#else
  if constexpr (IsSame<V, float>::value) {
    return __builtin_fmaf(a, b, c);
  } else if constexpr (IsSame<V, double>::value) {
    return __builtin_fma(a, b, c);
  } else {
#if __has_builtin(__builtin_elementwise_fma)
    return __builtin_elementwise_fma(a, b, c);
#else
    V r{};
    for (int k = 0; k < kWidth<V>; ++k) r[k] = fma<Elem<V>>(a[k], b[k], c[k]);
    return r;
#endif
  }
#endif
}

// total + a * b, the product rounded or not: whichever the target does at once. Where the product is exact that is the
// same to the bit.
template <typename V>
UMBRA_INLINE V add_product(V total, V a, V b) {
#if !defined(__FMA__) && !defined(__CUDACC__)
  return total + a * b;
#else
  return fma(a, b, total);
#endif
}
template <typename V>
UMBRA_INLINE V add_product(V total, V a, Elem<V> b) {
  return add_product(total, a, fill<V>(b));
}

// What many packets are divided by: x / Divisor(y) is x / y to the bit, by multiplications where that is sooner.
template <typename T>
struct Divisor {
  UMBRA_INLINE explicit Divisor(T divisor) : value(divisor), reciprocal(1 / divisor) {
    if (!(divisor >= kLeastDivisor && divisor <= kMostDivisor)) return;
    shift = kShift;
    end = kEnd;
  }

  typedef typename IntOfSize<T>::type Int;
  static constexpr Int kLeast = static_cast<Int>(1ull << (8 * sizeof(Int) - 1));
  static constexpr T kLeastDivisor = T(sizeof(T) == 4 ? 0x1p-30 : 0x1p-200),
                     kMostDivisor = T(sizeof(T) == 4 ? 0x1p30 : 0x1p200);
  // The bits of the least and the most dividend, and what takes them to kLeast and kEnd.
  static constexpr Int kLeastDividend = __builtin_bit_cast(Int, T(sizeof(T) == 4 ? 0x1p-90 : 0x1p-800));
  static constexpr Int kMostDividend = __builtin_bit_cast(Int, T(sizeof(T) == 4 ? 0x1p90 : 0x1p800));
  static constexpr Int kShift =
      static_cast<Int>((1ull << (8 * sizeof(Int) - 1)) - static_cast<unsigned long long>(kLeastDividend));
  static constexpr Int kEnd = kLeast + (kMostDividend - kLeastDividend);
  T value, reciprocal;
  // No step leaves the normal range for dividends of which bits(abs(x)) + shift <= end, one comparison for both ends,
  // nor for zeros; a shift of 0 takes neither.
  Int shift = 0, end = kLeast;
};
// The nearest quotient of the nearest reciprocal: docs/numerics.md says why. Its sign is that of x, also for zeros.
template <typename V, typename T>
UMBRA_INLINE V operator/(V x, const Divisor<T>& by) {
  const V divisor = fill<V>(by.value);
#if defined(__FMA__)
  const V reciprocal = fill<V>(by.reciprocal);
  const auto beyond = bits(abs(x)) + fill<Bits<V>>(by.shift) > fill<Bits<V>>(by.end);
  if (!__builtin_expect(detail::any(beyond), 0) || (by.shift != 0 && !detail::any(beyond & (x != 0)))) {
    const V close = x * reciprocal;
    // Not fma(-e, reciprocal, close): g++ moves that sign into e, where it is another of a remainder of zero.
    return fma(fma(close, divisor, -x), -reciprocal, close);
  }
#endif
  return x / divisor;
}

// The same of a divisor that is known, if that is so for each dividend (codegen::IsKnownDivisor): the product with its
// reciprocal as the sum of two numbers, of which neither is negative, so that infinite dividends give no NaN.
template <typename T>
struct KnownDivisor {
  UMBRA_INLINE explicit KnownDivisor(T divisor) : value(divisor), high(1 / divisor) {
    if (fma(-high, divisor, T(1)) < 0) high = from_bits<T>(bits(high) - 1);
    low = fma(-high, divisor, T(1)) / divisor;
  }

  typedef typename IntOfSize<T>::type Int;
  // Twice the bits of a number have no sign; those of less than this, the least dividend for which no step leaves the
  // normal range, and one less, are less than kLeast as whole numbers without a sign, but not those of 0.
  static constexpr Int kHalf = static_cast<Int>((1ull << (8 * sizeof(Int) - 1)) - 1);
  static constexpr Int kLeast =
      static_cast<Int>(2 * __builtin_bit_cast(Int, T(sizeof(T) == 4 ? 0x1p-48 : 0x1p-700)) - 1 - kHalf - 1);
  T value, high, low = 0;
};
template <typename V, typename T>
UMBRA_INLINE V operator/(V x, const KnownDivisor<T>& by) {
#if defined(__FMA__)
  typedef KnownDivisor<T> Limits;
  if (__builtin_expect(!detail::any(bits(x) + bits(x) + fill<Bits<V>>(Limits::kHalf) < fill<Bits<V>>(Limits::kLeast)),
                       1))
    return fma(x, fill<V>(by.high), x * fill<V>(by.low));
#endif
  return x / fill<V>(by.value);
}

// The same of a packet of divisors, by each of which many dividends are divided.
template <typename V>
struct Divisors {
  typedef Divisor<Elem<V>> Limits;
  Divisors() = default;
  UMBRA_INLINE explicit Divisors(V divisors) : value(divisors) {
    const auto fits = (divisors >= fill<V>(Limits::kLeastDivisor)) & (divisors <= fill<V>(Limits::kMostDivisor));
    reciprocal = fits ? Elem<V>(1) / divisors : fill<V>(__builtin_nan(""));
  }
  V value, reciprocal;  // the reciprocal is no number where it is of no use
};
template <typename V>
UMBRA_INLINE V operator/(V x, const Divisors<V>& by) {
#if defined(__FMA__)
  typedef Divisor<Elem<V>> Limits;
  const auto none = by.reciprocal != by.reciprocal;
  const auto beyond = bits(abs(x)) + fill<Bits<V>>(Limits::kShift) > fill<Bits<V>>(Limits::kEnd);
  if (!__builtin_expect(detail::any(beyond | none), 0) || !detail::any((beyond & (x != 0)) | none)) {
    const V close = x * by.reciprocal;
    return fma(fma(close, by.value, -x), -by.reciprocal, close);
  }
#endif
  return x / by.value;
}

namespace detail {
// 2^(mantissa bits): every float of this magnitude is an integer.
template <typename V>
UMBRA_INLINE V whole() {
  if constexpr (sizeof(Elem<V>) == 4) return fill<V>(Elem<V>(8388608.0));
  else return fill<V>(Elem<V>(4503599627370496.0));
}
template <typename V>
UMBRA_INLINE Bits<V> sign_bit() {
  if constexpr (sizeof(Elem<V>) == 4) return fill<Bits<V>>(-2147483647 - 1);
  else return fill<Bits<V>>(-9223372036854775807LL - 1);
}
template <typename V>
UMBRA_INLINE V with_sign_of(V magnitude, V sign) {
  return from_bits<V>(bits(magnitude) | (bits(sign) & sign_bit<V>()));
}
}  // namespace detail

template <typename V>
UMBRA_INLINE V copysign(V a, V b) {
  return detail::with_sign_of(abs(a), b);
}

// Nearest integer, halves to even (rint); towards zero (trunc); down (floor); up (ceil). They keep the sign of zero.
// Processors with AVX have an instruction for each.
#if defined(__clang__) && defined(__AVX__) && !defined(__CUDACC__)
template <typename V>
UMBRA_INLINE V rint(V a) {
  return __builtin_elementwise_roundeven(a);
}
template <typename V>
UMBRA_INLINE V trunc(V a) {
  return __builtin_elementwise_trunc(a);
}
template <typename V>
UMBRA_INLINE V floor(V a) {
  return __builtin_elementwise_floor(a);
}
template <typename V>
UMBRA_INLINE V ceil(V a) {
  return __builtin_elementwise_ceil(a);
}
#else
template <typename V>
UMBRA_INLINE V rint(V a) {
  const V big = detail::whole<V>();
  const V magnitude = abs(a);
  const V rounded = (magnitude + big) - big;
  return magnitude < big ? detail::with_sign_of(rounded, a) : a;
}
template <typename V>
UMBRA_INLINE V trunc(V a) {
  const V one = fill<V>(Elem<V>(1));
  const V magnitude = abs(a);
  const V nearest = abs(rint(a));
  const V down = nearest > magnitude ? nearest - one : nearest;
  return magnitude < detail::whole<V>() ? detail::with_sign_of(down, a) : a;
}
template <typename V>
UMBRA_INLINE V floor(V a) {
  const V nearest = rint(a);
  const V down = nearest > a ? nearest - fill<V>(Elem<V>(1)) : nearest;
  return abs(a) < detail::whole<V>() ? detail::with_sign_of(abs(down), down == fill<V>(Elem<V>(0)) ? a : down) : a;
}
template <typename V>
UMBRA_INLINE V ceil(V a) {
  return -floor(-a);
}
#if defined(__AVX__) && !defined(__CUDACC__)
#define UMBRA_ROUNDS(V, instruction)                                       \
  UMBRA_INLINE V rint(V a) { return __builtin_ia32_##instruction(a, 8); }  \
  UMBRA_INLINE V floor(V a) { return __builtin_ia32_##instruction(a, 9); } \
  UMBRA_INLINE V ceil(V a) { return __builtin_ia32_##instruction(a, 10); } \
  UMBRA_INLINE V trunc(V a) { return __builtin_ia32_##instruction(a, 11); }
UMBRA_ROUNDS(f32x4, roundps)
UMBRA_ROUNDS(f64x2, roundpd)
UMBRA_ROUNDS(f32x8, roundps256)
UMBRA_ROUNDS(f64x4, roundpd256)
#undef UMBRA_ROUNDS
#endif
#if defined(__AVX512F__) && !defined(__CUDACC__)
#define UMBRA_ROUNDS(V, instruction, mask)                                                              \
  UMBRA_INLINE V rint(V a) { return __builtin_ia32_##instruction(a, 8, a, static_cast<mask>(-1), 4); }  \
  UMBRA_INLINE V floor(V a) { return __builtin_ia32_##instruction(a, 9, a, static_cast<mask>(-1), 4); } \
  UMBRA_INLINE V ceil(V a) { return __builtin_ia32_##instruction(a, 10, a, static_cast<mask>(-1), 4); } \
  UMBRA_INLINE V trunc(V a) { return __builtin_ia32_##instruction(a, 11, a, static_cast<mask>(-1), 4); }
UMBRA_ROUNDS(f32x16, rndscaleps_mask, unsigned short)
UMBRA_ROUNDS(f64x8, rndscalepd_mask, unsigned char)
#undef UMBRA_ROUNDS
#endif
#endif

// Nearest integer, halves away from zero.
template <typename V>
UMBRA_INLINE V round(V a) {
  const V whole = trunc(a);
  const V next = whole + detail::with_sign_of(fill<V>(Elem<V>(1)), a);
  return abs(a - whole) >= Elem<V>(0.5) ? next : whole;
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_ARITH_H_

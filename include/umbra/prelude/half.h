// The 16-bit floats: IEEE's half (f16) and the upper half of an f32 (bf16). They are only stored; the
// arithmetic is f32's. Conversions are integer arithmetic, or instructions that give the same bits.
#ifndef UMBRA_PRELUDE_HALF_H_
#define UMBRA_PRELUDE_HALF_H_

#include "umbra/prelude/arith.h"

namespace umbra::simd {

struct f16 {
  unsigned short bits;
};
struct bf16 {
  unsigned short bits;
};

#if !defined(__CUDACC__)
template <typename T, int N>
struct HalfPacket {
  typename PacketOf<unsigned short, N>::type bits;
};

template <int N>
struct PacketOf<f16, N> {
  typedef HalfPacket<f16, N> type;
};
template <int N>
struct PacketOf<bf16, N> {
  typedef HalfPacket<bf16, N> type;
};
#endif
template <>
struct PacketOf<f16, 1> {
  typedef f16 type;
};
template <>
struct PacketOf<bf16, 1> {
  typedef bf16 type;
};
template <>
struct Traits<f16> {
  typedef f16 elem;
  static constexpr int width = 1;
};
template <>
struct Traits<bf16> {
  typedef bf16 elem;
  static constexpr int width = 1;
};
#if !defined(__CUDACC__)
template <typename T, int N>
struct Traits<HalfPacket<T, N>> {
  typedef T elem;
  static constexpr int width = N;
};
#endif

template <>
inline constexpr bool kIsHalf<f16> = true;
template <>
inline constexpr bool kIsHalf<bf16> = true;
#if !defined(__CUDACC__)
template <typename T, int N>
inline constexpr bool kIsHalf<HalfPacket<T, N>> = true;

#define UMBRA_HALF_PACKETS(N)                     \
  typedef HalfPacket<f16, N> f16x##N;             \
  typedef HalfPacket<bf16, N> bf16x##N;           \
  typedef HalfPacket<f16, N * kGroup> f16x##N##w; \
  typedef HalfPacket<bf16, N * kGroup> bf16x##N##w;
UMBRA_HALF_PACKETS(2)
UMBRA_HALF_PACKETS(4)
UMBRA_HALF_PACKETS(8)
UMBRA_HALF_PACKETS(16)
#endif

namespace detail {

// The bit patterns of 16-bit floats as integers, and back.
template <typename V, typename H>
UMBRA_INLINE Bits<V> wide_bits(H h) {
  return convert<Bits<V>>(h.bits);
}
template <typename H, typename Int>
UMBRA_INLINE H narrow_bits(Int i) {
  return H{convert<decltype(H::bits)>(i)};
}

template <typename V>
UMBRA_INLINE V widen_bf16(Bits<V> h) {
  return from_bits<V>(h << 16);
}

template <typename V>
UMBRA_INLINE V widen_f16(Bits<V> h) {
  const Bits<V> magnitude = h & 0x7fff;
  const Bits<V> sign = (h & 0x8000) << 16;
  const Bits<V> moved = magnitude << 13;
  const V subnormal = convert<V>(magnitude) * 5.9604644775390625e-8f;  // 2^-24
  const Bits<V> special = moved | (0x7f800000 | (magnitude > 0x7c00 ? fill<Bits<V>>(0x400000) : fill<Bits<V>>(0)));
  const Bits<V> finite = magnitude < 0x400 ? bits(subnormal) : moved + (112 << 23);
  return from_bits<V>((magnitude >= 0x7c00 ? special : finite) | sign);
}

template <typename V>
UMBRA_INLINE Bits<V> narrow_bf16(V v) {
  const Bits<V> u = bits(v);
  const Bits<V> magnitude = u & 0x7fffffff;
  // A negative pattern is shifted with its sign; the conversion to 16 bits drops what is above.
  const Bits<V> rounded = (u + (((u >> 16) & 1) + 0x7fff)) >> 16;
  return magnitude > 0x7f800000 ? (u >> 16) | 0x40 : rounded;
}

template <typename V>
UMBRA_INLINE Bits<V> narrow_f16(V v) {
  const Bits<V> u = bits(v);
  const Bits<V> magnitude = u & 0x7fffffff;
  const Bits<V> sign = (u >> 16) & 0x8000;
  const Bits<V> normal = ((magnitude + (((magnitude >> 13) & 1) + 0xfff)) >> 13) - (112 << 10);
  // Adding 1/2 rounds to multiples of 2^-24, the spacing of subnormal halves.
  const Bits<V> subnormal = bits(from_bits<V>(magnitude) + 0.5f) - 0x3f000000;
  const Bits<V> finite = magnitude < 0x38800000 ? subnormal : normal;
  const Bits<V> over = magnitude > 0x7f800000 ? ((magnitude >> 13) & 0x3ff) | 0x7e00 : fill<Bits<V>>(0x7c00);
  return (magnitude >= 0x477ff000 ? over : finite) | sign;
}

// f64 to f32 so that a second rounding to fewer bits gives what one would: where digits are lost,
// towards zero with the last bit set.
template <typename W>
UMBRA_INLINE Rebind<W, float> round_to_odd(W w) {
  typedef Rebind<W, float> V;
  const V near = convert<V>(w);
  const W back = convert<W>(near);
  const Bits<V> up = cast_mask<Bits<V>>(abs(back) > abs(w));
  const Bits<V> lost = cast_mask<Bits<V>>(logical_and(back != w, w == w));
  return from_bits<V>((bits(near) - up) | lost);
}

// Bytes of the widest f32 packet that an instruction converts to and from f16. (Those for bf16 take
// subnormals for zero.)
#if defined(__AVX512F__)
inline constexpr unsigned long kMostWidened = 64;
#else
inline constexpr unsigned long kMostWidened = 32;
#endif

template <typename H>
struct IsBf16 {
  static constexpr bool value = IsSame<Elem<H>, bf16>::value;
};

}  // namespace detail

#if defined(__CUDACC__)
// The instructions of f16, from the library of every CUDA compiler: loops around asm are not unrolled.
extern "C" __device__ float __nv_half2float(unsigned short);
extern "C" __device__ unsigned short __nv_float2half_rn(float);
#endif

// f32 of a 16-bit float; exact. LLVM would rather compare and round f16, lane by lane, than what it is widened to, if
// it knew of it.
template <typename V, typename H>
UMBRA_INLINE V widen(H h) {
  if constexpr (detail::IsBf16<H>::value) {
    return detail::widen_bf16<V>(detail::wide_bits<V>(h));
  } else {
#if defined(__CUDA_ARCH__)
    return __nv_half2float(h.bits);
#else
#if defined(__F16C__)
    if constexpr (sizeof(V) > detail::kMostWidened) {
      typedef packet<f16, kWidth<V> / 2> From;
      typedef packet<float, kWidth<V> / 2> To;
      const Pair<From> part = __builtin_bit_cast(Pair<From>, h);
      return __builtin_bit_cast(V, Pair<To>{widen<To>(part.low), widen<To>(part.high)});
    } else if constexpr (IsSame<V, f32x8>::value) {
      return in_register(__builtin_ia32_vcvtph2ps256(__builtin_bit_cast(i16x8, h.bits)));
    } else
#if defined(__AVX512F__)
        if constexpr (IsSame<V, f32x16>::value)
      return in_register(__builtin_ia32_vcvtph2ps512_mask(__builtin_bit_cast(i16x16, h.bits), f32x16{},
                                                          static_cast<unsigned short>(-1), 4));
    else
#endif
#endif
      return detail::widen_f16<V>(detail::wide_bits<V>(h));
#endif
  }
}

// A 16-bit float of an f32 or f64, rounded once to nearest, ties to even.
template <typename H, typename V>
UMBRA_INLINE H narrow(V v) {
  if constexpr (sizeof(Elem<V>) == 8) {
    return narrow<H>(detail::round_to_odd(v));
  } else if constexpr (detail::IsBf16<H>::value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    H h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(v));
    return h;
#else
    return detail::narrow_bits<H>(detail::narrow_bf16(v));
#endif
  } else {
#if defined(__CUDA_ARCH__)
    return H{__nv_float2half_rn(v)};
#else
#if defined(__F16C__)
    if constexpr (sizeof(V) > detail::kMostWidened) {
      typedef packet<float, kWidth<V> / 2> From;
      typedef packet<f16, kWidth<V> / 2> To;
      const Pair<From> part = __builtin_bit_cast(Pair<From>, v);
      return __builtin_bit_cast(H, Pair<To>{narrow<To>(part.low), narrow<To>(part.high)});
    } else if constexpr (IsSame<V, f32x8>::value) {
      return H{__builtin_bit_cast(decltype(H::bits), __builtin_ia32_vcvtps2ph256(v, 0))};
    } else
#if defined(__AVX512F__)
        if constexpr (IsSame<V, f32x16>::value)
      return H{__builtin_bit_cast(decltype(H::bits),
                                  __builtin_ia32_vcvtps2ph512_mask(v, 0, i16x16{}, static_cast<unsigned short>(-1)))};
    else
#endif
#endif
      return detail::narrow_bits<H>(detail::narrow_f16(v));
#endif
  }
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_HALF_H_

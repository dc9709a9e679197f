// Packet types and their traits.
#ifndef UMBRA_PRELUDE_TYPES_H_
#define UMBRA_PRELUDE_TYPES_H_

#if defined(__CUDACC__)
#define UMBRA_INLINE __device__ __forceinline__
#define UMBRA_OUTLINE __device__ __noinline__
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000LL)
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_nan(text) __longlong_as_double(0x7ff8000000000000LL)
#define __builtin_nanf(text) __int_as_float(0x7fc00000)
#else
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif
#if defined(__AVX512F__)
#define UMBRA_ISA "avx512"
#elif defined(__AVX2__) && defined(__FMA__)
#define UMBRA_ISA "avx2"
#elif defined(__AVX__)
#define UMBRA_ISA "avx"
#elif defined(__SSE3__)
#define UMBRA_ISA "sse3"
#else
#define UMBRA_ISA "sse2"
#endif
#define UMBRA_INLINE __attribute__((always_inline)) inline
// The name has the instruction set, so that no linker takes one's code for another's.
#define UMBRA_OUTLINE __attribute__((noinline, visibility("hidden"), abi_tag(UMBRA_ISA)))
// A function of its own that is given packets in registers, and gives up to 16 of them so. g++ has no such calls.
#if defined(__clang__)
#define UMBRA_REGISTER_CALL __attribute__((regcall))
#define UMBRA_IN_REGISTERS UMBRA_OUTLINE UMBRA_REGISTER_CALL
#else
#define UMBRA_IN_REGISTERS UMBRA_INLINE
#endif
// Before a loop of 16 steps or fewer that is written out, and one that stays a loop.
#if defined(__clang__)
#define UMBRA_UNROLL _Pragma("clang loop unroll(full)")
#define UMBRA_ROLL _Pragma("clang loop unroll(disable)")
#else
#define UMBRA_UNROLL _Pragma("GCC unroll 16")
#define UMBRA_ROLL _Pragma("GCC unroll 1")
#endif
#endif

namespace umbra::simd {

typedef long long i64;
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;

template <typename T>
struct NoReference {
  typedef T type;
};
template <typename T>
struct NoReference<T&> {
  typedef T type;
};
template <typename T>
struct NoReference<T&&> {
  typedef T type;
};

// Element and number of lanes of a packet or scalar.
template <typename V>
struct Traits {
  typedef typename NoReference<decltype(V()[0])>::type elem;
  static constexpr int width = sizeof(V) / sizeof(elem);
};
// Is V, a scalar or packet, one of the 16-bit floats of umbra/prelude/half.h?
template <typename V>
inline constexpr bool kIsHalf = false;

// The packet of N lanes of T; N = 1 is T itself, and all that there is on a GPU.
#if defined(__CUDACC__)
template <typename T, int N>
struct PacketOf;
#else
template <typename T, int N>
struct PacketOf {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
#endif
template <typename T>
struct PacketOf<T, 1> {
  typedef T type;
};
template <typename T, int N>
using packet = typename PacketOf<T, N>::type;

template <typename T>
struct IntOfSize;  // the integer type that masks and bit patterns of T use
template <>
struct IntOfSize<float> {
  typedef int type;
};
template <>
struct IntOfSize<int> {
  typedef int type;
};
template <>
struct IntOfSize<double> {
  typedef i64 type;
};
template <>
struct IntOfSize<i64> {
  typedef i64 type;
};
template <>
struct IntOfSize<long> {
  typedef long type;
};
template <>
struct IntOfSize<short> {
  typedef short type;
};
template <>
struct IntOfSize<unsigned short> {
  typedef short type;
};
template <>
struct IntOfSize<signed char> {
  typedef signed char type;
};
template <>
struct IntOfSize<unsigned char> {
  typedef signed char type;
};

// The bits of an element of so many bytes.
template <int bytes>
struct BitsOfSize {
  typedef unsigned char type;
};
template <>
struct BitsOfSize<2> {
  typedef unsigned short type;
};
template <>
struct BitsOfSize<4> {
  typedef int type;
};
template <>
struct BitsOfSize<8> {
  typedef i64 type;
};

#if !defined(__CUDACC__)
// A few packets worked on side by side, as one wider packet, f32x16w: a long chain of steps that wait for each other
// leaves room for other chains. g++ spills what is wider than a register; there a group is one packet.
#if defined(__clang__)
inline constexpr int kGroup = 4;
#else
inline constexpr int kGroup = 1;
#endif

#define UMBRA_VECTORS(suffix, N)                                               \
  typedef float f32##suffix __attribute__((vector_size(N * sizeof(float))));   \
  typedef double f64##suffix __attribute__((vector_size(N * sizeof(double)))); \
  typedef int i32##suffix __attribute__((vector_size(N * sizeof(int))));       \
  typedef i64 i64##suffix __attribute__((vector_size(N * sizeof(i64))));       \
  typedef signed char i8##suffix __attribute__((vector_size(N)));              \
  typedef unsigned char u8##suffix __attribute__((vector_size(N)));            \
  typedef short i16##suffix __attribute__((vector_size(2 * N)));
#define UMBRA_PACKETS(N) UMBRA_VECTORS(x##N, N) UMBRA_VECTORS(x##N##w, N* kGroup)

UMBRA_PACKETS(2)
UMBRA_PACKETS(4)
UMBRA_PACKETS(8)
UMBRA_PACKETS(16)
UMBRA_PACKETS(32)
#endif

#define UMBRA_SCALAR(T)             \
  template <>                       \
  struct Traits<T> {                \
    typedef T elem;                 \
    static constexpr int width = 1; \
  };
UMBRA_SCALAR(float)
UMBRA_SCALAR(double)
UMBRA_SCALAR(int)
UMBRA_SCALAR(i64)
UMBRA_SCALAR(long)
UMBRA_SCALAR(short)
UMBRA_SCALAR(unsigned short)
UMBRA_SCALAR(signed char)
UMBRA_SCALAR(unsigned char)
template <>
struct Traits<bool> {
  typedef bool elem;
  static constexpr int width = 1;
};

template <typename V>
using Elem = typename Traits<V>::elem;
template <typename V>
inline constexpr int kWidth = Traits<V>::width;
// The packet of T with as many lanes as V.
template <typename V, typename T>
using Rebind = packet<T, kWidth<V>>;
// Bit patterns of V.
template <typename V>
using Bits = Rebind<V, typename IntOfSize<Elem<V>>::type>;
// What a comparison of V gives: bool for a scalar, all-ones or zero lanes for a packet.
template <typename V, int N = kWidth<V>>
struct MaskOf {
  typedef Bits<V> type;
};
template <typename V>
struct MaskOf<V, 1> {
  typedef bool type;
};
template <typename V>
using Mask = typename MaskOf<V>::type;

// Bytes of the widest register.
#if defined(__AVX512F__)
inline constexpr int kRegisterBytes = 64;
#elif defined(__AVX__)
inline constexpr int kRegisterBytes = 32;
#else
inline constexpr int kRegisterBytes = 16;
#endif

template <typename A, typename B>
struct IsSame {
  static constexpr bool value = false;
};
template <typename A>
struct IsSame<A, A> {
  static constexpr bool value = true;
};

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_TYPES_H_

// Loads and stores of packets: whole, of the first n lanes, strided, and past the caches.
#ifndef UMBRA_PRELUDE_MEMORY_H_
#define UMBRA_PRELUDE_MEMORY_H_

#include "umbra/prelude/masked.h"
#include "umbra/prelude/types.h"

namespace umbra::simd {

template <typename V>
UMBRA_INLINE V load(const Elem<V>* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <typename V>
UMBRA_INLINE void store(Elem<V>* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// A packet with `x` in every lane.
template <typename V>
UMBRA_INLINE V fill(Elem<V> x) {
  if constexpr (kWidth<V> == 1) return x;
  else if constexpr (kIsHalf<V>) return V{fill<decltype(V::bits)>(x.bits)};
  else return x - V();
}

// Lane numbers 0, 1, 2, ... of an integer packet.
template <typename V>
UMBRA_INLINE V iota() {
  V v{};
  for (int k = 0; k < kWidth<V>; ++k) v[k] = static_cast<Elem<V>>(k);
  return v;
}

// first, first + step, first + 2 step, ...
template <typename V>
UMBRA_INLINE V ramp(Elem<V> first, Elem<V> step) {
  if constexpr (kWidth<V> == 1) return first;
  else return fill<V>(first) + iota<V>() * step;
}

// Lane k is f(k); the head of n lanes, zero in the rest.
template <typename V, typename F>
UMBRA_INLINE V by_lane_head(i64 n, F f) {
  if constexpr (kWidth<V> == 1) {
    return n > 0 ? f(0) : V();
  } else {
    Elem<V> part[kWidth<V>] = {};
    for (i64 k = 0; k < n; ++k) part[k] = f(k);
    V v;
    __builtin_memcpy(&v, part, sizeof v);
    return v;
  }
}
template <typename V, typename F>
UMBRA_INLINE V by_lane(F f) {
  constexpr int width = kWidth<V>, written_out = width < 16 ? width : 16;
  Elem<V> part[width];
  for (i64 first = 0; first < width; first += written_out) {
    UMBRA_UNROLL
    for (i64 k = first; k < first + written_out; ++k) part[k] = f(k);
  }
  V v;
  __builtin_memcpy(&v, part, sizeof v);
  return v;
}

// Eight bytes from p, of which those from the n-th on are zero and not read, by two loads that overlap.
UMBRA_INLINE unsigned long long load_bytes(const void* p, i64 n) {
  const char* from = static_cast<const char*>(p);
  const auto part = [&](auto type, i64 at) {
    __builtin_memcpy(&type, from + at, sizeof type);
    return static_cast<unsigned long long>(type);
  };
  if (n >= 8) return part(0ull, 0);
  if (n >= 4) return part(0u, 0) | part(0u, n - 4) << 8 * (n - 4);
  const auto two = static_cast<unsigned short>(0);
  if (n >= 2) return part(two, 0) | part(two, n - 2) << 8 * (n - 2);
  return n > 0 ? part(static_cast<unsigned char>(0), 0) : 0;
}

// The first n lanes from p (0 <= n <= width), the others zero. Nothing past p + n is read.
template <typename V>
UMBRA_INLINE V load_head(const Elem<V>* p, i64 n) {
  if constexpr (kWidth<V> == 1) {
    return n > 0 ? *p : Elem<V>();
  } else if constexpr (kIsHalf<V>) {
    return V{load_head<decltype(V::bits)>(reinterpret_cast<const unsigned short*>(p), n)};
  } else if constexpr (kMasks) {
    if (sizeof(V) > 64 && n == kWidth<V>) return load<V>(p);
    return load_masked<V>(p, head_bits(n));
  } else {
#if defined(__AVX__)
    if constexpr (sizeof(V) == 32 && sizeof(Elem<V>) >= 4) {
      if constexpr (sizeof(Elem<V>) == 4) {
        const i32x8 mask = iota<i32x8>() < static_cast<int>(n);
        return __builtin_bit_cast(V, __builtin_ia32_maskloadps256(reinterpret_cast<const f32x8*>(p), mask));
      } else {
        const i64x4 mask = iota<i64x4>() < n;
        return __builtin_bit_cast(V, __builtin_ia32_maskloadpd256(reinterpret_cast<const f64x4*>(p), mask));
      }
    } else
#endif
        if constexpr (sizeof(V) <= 8 && sizeof(Elem<V>) <= 2) {
      const unsigned long long bytes = load_bytes(p, n * static_cast<i64>(sizeof(Elem<V>)));
      V v;
      __builtin_memcpy(&v, &bytes, sizeof v);
      return v;
    } else if constexpr (sizeof(V) > 8 && sizeof(Elem<V>) <= 2) {
      packet<i64, sizeof(V) / 8> parts;
      for (int k = 0; k < static_cast<int>(sizeof(V) / 8); ++k)
        parts[k] = static_cast<i64>(
            load_bytes(reinterpret_cast<const char*>(p) + 8 * k, n * static_cast<i64>(sizeof(Elem<V>)) - 8 * k));
      return __builtin_bit_cast(V, parts);
    } else {
      V v{};
      for (int k = 0; k < kWidth<V>; ++k)
        if (k < n) v[k] = p[k];
      return v;
    }
  }
}

// Calls f(k, lane k) for the first n lanes.
template <typename V, typename F>
UMBRA_INLINE void each_lane(V v, i64 n, F f) {
  Elem<V> part[kWidth<V>];
  __builtin_memcpy(part, &v, sizeof v);
  for (i64 k = 0; k < n; ++k) f(k, part[k]);
}

// Stores the first n lanes; nothing past p + n is written. Without the masks of AVX-512 by halves: some processors take
// long for a masked store of AVX2.
template <typename V>
UMBRA_INLINE void store_head(Elem<V>* p, V v, i64 n) {
  if constexpr (kWidth<V> == 1) {
    if (n > 0) *p = v;
  } else if constexpr (kIsHalf<V>) {
    store_head(reinterpret_cast<unsigned short*>(p), v.bits, n);
  } else if constexpr (kMasks) {
    if (sizeof(V) > 64 && n == kWidth<V>) store(p, v);
    else store_masked(p, v, head_bits(n));
  } else {
    typedef packet<Elem<V>, kWidth<V> / 2> Half;
    const Pair<Half> part = __builtin_bit_cast(Pair<Half>, v);
    const bool whole = n >= kWidth<Half>;
    if (whole) store<Half>(p, part.low);
    store_head<Half>(whole ? p + kWidth<Half> : p, whole ? part.high : part.low, whole ? n - kWidth<Half> : n);
  }
}

UMBRA_INLINE i64 smaller(i64 a, i64 b) { return a < b ? a : b; }

UMBRA_INLINE i64 larger(i64 a, i64 b) { return a < b ? b : a; }

// Prefetches the cache line at p.
template <typename T>
UMBRA_INLINE void prefetch(const T* p) {
  __builtin_prefetch(p, 0, 2);
}

// The same address, in a register of its own: where one has two, a multiply-add that reads memory is two operations.
template <typename T>
UMBRA_INLINE T* in_register(T* p) {
  asm("" : "+r"(p));
  return p;
}
template <typename V>
UMBRA_INLINE V in_register(V v) {
  asm("" : "+v"(v));
  return v;
}

// The same packet, and what memory holds, at this place among all that is in order: compilers do not move it across
// others.
template <typename V>
UMBRA_INLINE V in_order(V v) {
  asm volatile("" : "+v"(v));
  return v;
}

template <typename T>
UMBRA_INLINE T load_in_order(const T* p) {
  return *static_cast<const volatile T*>(p);
}

// Prefetches `lines` cache lines side by side, the first of which lies `ahead` bytes after p, into the first cache or
// the second.
template <int lines, int cache, typename T>
UMBRA_INLINE void prefetch_lines(const T* p, i64 ahead = 0) {
  for (int k = 0; k < lines; ++k) __builtin_prefetch(reinterpret_cast<const char*>(p) + ahead + 64 * k, 0, 4 - cache);
}

// Prefetches the lines of p[0], p[stride], ...: of so many rows.
template <int rows, typename T>
UMBRA_INLINE void prefetch_column(const T* p, i64 stride) {
  for (int row = 0; row < rows; ++row, p += stride) prefetch(p);
}

// Prefetches `count` cache lines of rows that have `lines` each, from p on, after the first `before`, which are a
// multiple of `count`; these are powers of two.
template <int count, int lines, typename T>
UMBRA_INLINE void prefetch_part(const T* p, i64 stride, i64 before) {
  constexpr int kRows = count > lines ? count / lines : 1;
  p += before / lines * stride + before % lines * (64 / static_cast<i64>(sizeof(T)));
  for (int row = 0; row < kRows; ++row, p += stride) prefetch_lines<count / kRows, 2>(p);
}

// How many rows ahead to prefetch one of n elements, where `together` are walked at a time, so that it lies `ahead`
// bytes ahead. 0 where that is 0, or rows are so long that they would push each other out of the caches.
template <typename T>
UMBRA_INLINE i64 rows_ahead(i64 n, i64 together, i64 ahead) {
  const i64 bytes = larger(n * static_cast<i64>(sizeof(T)), 1);
  return ahead == 0 || bytes > 524288 ? 0 : larger(ahead / bytes, 1) + together - 1;
}

// Rows to walk at a time, phase by phase, of so many bytes each: as many as there is room for in a first-level cache.
inline constexpr int kRowsAtOnce = 4;
UMBRA_INLINE i64 rows_at_once(i64 bytes, i64 room) { return larger(smaller(room / larger(bytes, 1), kRowsAtOnce), 1); }

// Stores past the caches; p is aligned to the packet. A kernel that streams ends with stream_fence.
template <typename V>
UMBRA_INLINE void stream(Elem<V>* p, V v) {
#if defined(__clang__)
  if constexpr (kIsHalf<V>) {
    stream(reinterpret_cast<unsigned short*>(p), v.bits);
  } else if constexpr (sizeof(V) > 64) {
    typedef packet<Elem<V>, kWidth<V> / 2> Half;
    const Pair<Half> part = __builtin_bit_cast(Pair<Half>, v);
    stream<Half>(p, part.low);
    stream<Half>(p + kWidth<Half>, part.high);
  } else {
    __builtin_nontemporal_store(v, reinterpret_cast<V*>(p));
  }
#else
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64) {
    __builtin_ia32_movntps512(reinterpret_cast<float*>(p), __builtin_bit_cast(f32x16, v));
    return;
  }
#endif
#if defined(__AVX__)
  if constexpr (sizeof(V) == 32) {
    __builtin_ia32_movntps256(reinterpret_cast<float*>(p), __builtin_bit_cast(f32x8, v));
    return;
  }
#endif
  if constexpr (sizeof(V) == 16) __builtin_ia32_movntps(reinterpret_cast<float*>(p), __builtin_bit_cast(f32x4, v));
  else store(p, v);
#endif
}

UMBRA_INLINE void stream_fence() { __builtin_ia32_sfence(); }

// Lane k from p[k * stride].
template <typename V>
UMBRA_INLINE V gather(const Elem<V>* p, i64 stride) {
  if constexpr (kWidth<V> == 1) {
    return *p;
  } else if constexpr (kIsHalf<V>) {
    return by_lane<V>([&](i64 k) { return p[k * stride]; });
  } else if constexpr (kWidth<V> > 16) {  // of more lanes compilers make loops, and keep packets in memory
    typedef packet<Elem<V>, kWidth<V> / 2> Half;
    return __builtin_bit_cast(V, Pair<Half>{gather<Half>(p, stride), gather<Half>(p + kWidth<Half> * stride, stride)});
  } else {
    V v{};
    for (int k = 0; k < kWidth<V>; ++k) v[k] = p[k * stride];
    return v;
  }
}

template <typename V>
UMBRA_INLINE V gather_head(const Elem<V>* p, i64 stride, i64 n) {
  if constexpr (kWidth<V> == 1) {
    return n > 0 ? *p : Elem<V>();
  } else if constexpr (kIsHalf<V>) {
    return by_lane_head<V>(n, [&](i64 k) { return p[k * stride]; });
  } else if constexpr (kWidth<V> > 16) {
    typedef packet<Elem<V>, kWidth<V> / 2> Half;
    return __builtin_bit_cast(V, Pair<Half>{gather_head<Half>(p, stride, n),
                                            gather_head<Half>(p + kWidth<Half> * stride, stride, n - kWidth<Half>)});
  } else {
    V v{};
    for (int k = 0; k < kWidth<V>; ++k)
      if (k < n) v[k] = p[k * stride];
    return v;
  }
}

// The lower, or upper, halves of two packets of 2 to 16 lanes, lane by lane in turn.
template <typename V>
UMBRA_INLINE V zip_low(V a, V b) {
  if constexpr (kWidth<V> == 2) return __builtin_shufflevector(a, b, 0, 2);
  else if constexpr (kWidth<V> == 4) return __builtin_shufflevector(a, b, 0, 4, 1, 5);
  else if constexpr (kWidth<V> == 8) return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  else return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

template <typename V>
UMBRA_INLINE V zip_high(V a, V b) {
  if constexpr (kWidth<V> == 2) return __builtin_shufflevector(a, b, 1, 3);
  else if constexpr (kWidth<V> == 4) return __builtin_shufflevector(a, b, 2, 6, 3, 7);
  else if constexpr (kWidth<V> == 8) return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  else return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

namespace detail {

// The numbers 0 to count - 1, for the lanes of a shuffle.
template <int... lane>
struct Lanes {};
template <int count, int... lane>
struct LanesTo : LanesTo<count - 1, count - 1, lane...> {};
template <int... lane>
struct LanesTo<0, lane...> {
  typedef Lanes<lane...> type;
};

// The parts of packets that instructions zip: 16 bytes, or all of a shorter packet, or of four numbers of 8 bytes,
// which blends help to zip.
template <typename V>
inline constexpr int kPart = kWidth<V>* static_cast<int>(sizeof(Elem<V>)) > (sizeof(Elem<V>) == 8 ? 32 : 16)
                                 ? 16 / static_cast<int>(sizeof(Elem<V>))
                                 : kWidth<V>;

// As zip_low and zip_high, part by part.
template <bool high, typename V, int... lane>
UMBRA_INLINE V zip_parts(V a, V b, Lanes<lane...>) {
  constexpr int part = kPart<V>;
  return __builtin_shufflevector(
      a, b, (lane / part * part + lane % part / 2 + (high ? part / 2 : 0) + lane % 2 * kWidth<V>)...);
}

// The parts of two packets whose numbers are even, or odd.
template <bool odd, typename V, int... lane>
UMBRA_INLINE V each_second_part(V a, V b, Lanes<lane...>) {
  constexpr int part = kPart<V>, half = kWidth<V> / 2;
  return __builtin_shufflevector(
      a, b, ((lane < half ? 0 : kWidth<V>)+lane % half / part * 2 * part + (odd ? part : 0) + lane % part)...);
}

// row[k * step] from next[k].
template <int step, typename V, int... k>
UMBRA_INLINE void put_rows(V* row, const V (&next)[sizeof...(k)], Lanes<k...>) {
  ((row[k * step] = next[k]), ...);
}

// Lane j of each part of row k becomes lane k of this part of row j, of as many rows as a part has lanes: `left` zips
// of halves.
template <int left, typename V, int... k>
UMBRA_INLINE void transpose_parts(V* row, Lanes<k...> pairs) {
  if constexpr (left > 1) {
    constexpr int half = sizeof...(k);
    constexpr typename LanesTo<kWidth<V>>::type lanes;
    V next[2 * half];
    ((next[2 * k] = zip_parts<false>(row[k], row[k + half], lanes),
      next[2 * k + 1] = zip_parts<true>(row[k], row[k + half], lanes)),
     ...);
    put_rows<1>(row, next, typename LanesTo<2 * half>::type());
    transpose_parts<left / 2>(row, pairs);
  }
}

// Part j of row[k * step] becomes part k of row[j * step], of as many rows as a packet has parts.
template <int left, int step, typename V, int... k>
UMBRA_INLINE void exchange_parts(V* row, Lanes<k...> pairs) {
  if constexpr (left > 1) {
    constexpr int half = sizeof...(k);
    constexpr typename LanesTo<kWidth<V>>::type lanes;
    V next[2 * half];
    ((next[k] = each_second_part<false>(row[2 * k * step], row[(2 * k + 1) * step], lanes),
      next[k + half] = each_second_part<true>(row[2 * k * step], row[(2 * k + 1) * step], lanes)),
     ...);
    put_rows<step>(row, next, typename LanesTo<2 * half>::type());
    exchange_parts<left / 2, step>(row, pairs);
  }
}

template <typename V, int... part, int... row>
UMBRA_INLINE void zip_tile(V* tile, Lanes<part...>, Lanes<row...>) {
  constexpr int parts = sizeof...(part), rows = sizeof...(row);
  (transpose_parts<rows>(tile + part * rows, typename LanesTo<rows / 2>::type()), ...);
  (exchange_parts<parts, rows>(tile + row, typename LanesTo<parts / 2>::type()), ...);
}

}  // namespace detail

// Lane j of tile[k] becomes lane k of tile[j].
template <typename V>
UMBRA_INLINE void zip_tile(V (&tile)[kWidth<V>]) {
  constexpr int part = detail::kPart<V>;
  detail::zip_tile(tile, typename detail::LanesTo<kWidth<V> / part>::type(), typename detail::LanesTo<part>::type());
}

// As many packets as they have lanes.
template <typename V>
struct Tile {
  V row[kWidth<V>];
};

// The bits of a packet.
template <typename V>
using Bit = typename BitsOfSize<sizeof(Elem<V>)>::type;
template <typename V>
using BitPacket = packet<Bit<V>, kWidth<V>>;

// Is a tile of them worth a function of its own?
template <typename V>
inline constexpr bool kCallsForTiles = kWidth<V> >= 8 && sizeof(V) >= 16 && sizeof(V) <= kRegisterBytes;

// Functions of their own, which no kernel has to be compiled with: a tile transposed; lane j of row k from p[j * stride
// + k]; the same of the first n rows in memory, and of the first `lanes` elements of each: nothing else is read, other
// lanes are zero.
template <typename V>
UMBRA_IN_REGISTERS Tile<V> transposed_tile(Tile<V> tile) {
  zip_tile(tile.row);
  return tile;
}
template <typename V>
UMBRA_IN_REGISTERS Tile<V> load_tile(const Elem<V>* p, i64 stride) {
  Tile<V> tile;
  for (int k = 0; k < kWidth<V>; ++k, p += stride) tile.row[k] = load<V>(p);
  zip_tile(tile.row);
  return tile;
}
template <typename V>
UMBRA_IN_REGISTERS Tile<V> load_tile_head(const Elem<V>* p, i64 stride, i64 n, i64 lanes) {
  Tile<V> tile = {};
  if (n < 4 || lanes < 4) {  // fewer steps one by one
    char* const lane = reinterpret_cast<char*>(&tile);
    for (i64 j = 0; j < n; ++j)
      for (i64 k = 0; k < lanes; ++k)
        __builtin_memcpy(lane + (k * kWidth<V> + j) * static_cast<i64>(sizeof(Elem<V>)), p + j * stride + k,
                         sizeof(Elem<V>));
    return tile;
  }
  for (i64 k = 0; k < n; ++k) tile.row[k] = load_head<V>(p + k * stride, lanes);
  zip_tile(tile.row);
  return tile;
}

// The same by the instances for bits, and where they stand if that takes few steps.
template <typename V>
UMBRA_INLINE void transpose_tile(V (&tile)[kWidth<V>]) {
  Tile<BitPacket<V>> bits;
  __builtin_memcpy(&bits, &tile, sizeof bits);
  if constexpr (kCallsForTiles<V>) bits = transposed_tile(bits);
  else zip_tile(bits.row);
  __builtin_memcpy(&tile, &bits, sizeof bits);
}
template <typename V>
UMBRA_INLINE void load_transposed(const Elem<V>* p, i64 stride, V (&tile)[kWidth<V>]) {
  if constexpr (kCallsForTiles<V>) {
    const Tile<BitPacket<V>> bits = load_tile<BitPacket<V>>(reinterpret_cast<const Bit<V>*>(p), stride);
    __builtin_memcpy(&tile, &bits, sizeof bits);
  } else {
    for (int k = 0; k < kWidth<V>; ++k, p += stride) tile[k] = load<V>(p);
    transpose_tile(tile);
  }
}
template <typename V>
UMBRA_INLINE void load_transposed_head(const Elem<V>* p, i64 stride, i64 n, i64 lanes, V (&tile)[kWidth<V>]) {
  const Tile<BitPacket<V>> bits = load_tile_head<BitPacket<V>>(reinterpret_cast<const Bit<V>*>(p), stride, n, lanes);
  __builtin_memcpy(&tile, &bits, sizeof bits);
}

template <typename V>
UMBRA_INLINE void scatter(Elem<V>* p, i64 stride, V v) {
  if constexpr (kWidth<V> == 1) *p = v;
  else each_lane(v, kWidth<V>, [&](i64 k, Elem<V> x) { p[k * stride] = x; });
}

template <typename V>
UMBRA_INLINE void scatter_head(Elem<V>* p, i64 stride, V v, i64 n) {
  if constexpr (kWidth<V> == 1) {
    if (n > 0) *p = v;
  } else {
    each_lane(v, n, [&](i64 k, Elem<V> x) { p[k * stride] = x; });
  }
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_MEMORY_H_

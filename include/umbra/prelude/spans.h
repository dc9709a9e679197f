// Loads at positions that move evenly from lane to lane, of the lanes that a guard leaves.
#ifndef UMBRA_PRELUDE_SPANS_H_
#define UMBRA_PRELUDE_SPANS_H_

#include "umbra/prelude/arith.h"

namespace umbra::simd {

// For how many numbers, from `a` on, the quotient by d is the same, or a part of them: those below 0, where some are.
UMBRA_INLINE i64 quotient_run(i64 a, i64 d) {
  if (d < 1) return 1;
  if (a >= 0) return d - a % d;
  return a > -d ? -a : -a % d + 1;
}

// The quotients a / d of a loop in which a grows: they are counted, and divided for only where a jumps.
struct QuotientWalk {
  i64 d, a = 0, q = 0, left;  // the quotient stays for `left` numbers from a on, or for more
  UMBRA_INLINE explicit QuotientWalk(i64 divisor) : d(divisor), left(quotient_run(0, divisor)) {}
  UMBRA_INLINE i64 quotient_at(i64 to) {
    const unsigned long long step = static_cast<unsigned long long>(to - a);
    a = to;
    if (step < static_cast<unsigned long long>(left)) {
      left -= static_cast<i64>(step);
    } else if (step == static_cast<unsigned long long>(left) && to > 0 && d > 0) {
      ++q;
      left = d;
    } else {
      q = div(to, d);
      left = quotient_run(to, d);
    }
    return q;
  }
};

// For how many positions a choice stays that turns `flip` positions ahead, if that is ahead.
UMBRA_INLINE i64 choice_run(i64 flip) { return flip > 0 ? flip : static_cast<i64>(~0ull >> 1); }

// How many k >= 0 have step * k < bound.
UMBRA_INLINE i64 lanes_below(i64 bound, i64 step) { return bound <= 0 ? 0 : (bound - 1) / step + 1; }

// -1 in the lanes [first, last), 0 in the others.
template <typename V>
UMBRA_INLINE V lanes_between(i64 first, i64 last) {
  typedef Elem<V> E;
  const auto within = [](i64 lane) { return static_cast<E>(smaller(larger(lane, 0), kWidth<V>)); };
  const E low = within(first), high = within(last);
  return __builtin_bit_cast(V, (iota<V>() >= low) & (iota<V>() < high));
}

// -1 in the lanes k with first <= (rest + k) % period - rest < last, 0 in the others; |rest| < period.
template <typename V, int period>
UMBRA_INLINE V lanes_of_period(i64 rest, i64 first, i64 last) {
  typedef Elem<V> E;
  const auto within = [rest](i64 lane) { return static_cast<E>(smaller(larger(lane + rest, -period), period)); };
  const E low = within(first), high = within(last);
  const V at = (iota<V>() + static_cast<E>(rest)) % period;
  return __builtin_bit_cast(V, (at >= low) & (at < high));
}

// Lane k from p[k * stride] where first <= k < last, `outside` in the others; nothing else is read.
template <typename V>
UMBRA_INLINE V gather_span(const Elem<V>* p, i64 stride, i64 first, i64 last, Elem<V> outside) {
  if (first <= 0 && last >= kWidth<V>) return gather<V>(p, stride);
  Elem<V> part[kWidth<V>];
  for (int k = 0; k < kWidth<V>; ++k) part[k] = outside;
  for (i64 k = larger(first, 0); k < smaller(last, kWidth<V>); ++k) part[k] = p[k * stride];
  V v;
  __builtin_memcpy(&v, part, sizeof v);
  return v;
}

// The same of elements side by side.
template <typename V>
UMBRA_INLINE V load_span(const Elem<V>* p, i64 first, i64 last, Elem<V> outside) {
  if (first <= 0 && last >= kWidth<V>) return load<V>(p);
  if (last <= 0 || first >= kWidth<V>) return fill<V>(outside);
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (sizeof(V) == 32 && sizeof(Elem<V>) >= 4) {
    const Bits<V> inside = lanes_between<Bits<V>>(first, last);
    V v;
    if constexpr (sizeof(Elem<V>) == 4)
      v = __builtin_bit_cast(
          V, __builtin_ia32_maskloadps256(reinterpret_cast<const f32x8*>(p), __builtin_bit_cast(i32x8, inside)));
    else
      v = __builtin_bit_cast(
          V, __builtin_ia32_maskloadpd256(reinterpret_cast<const f64x4*>(p), __builtin_bit_cast(i64x4, inside)));
    return inside ? v : fill<V>(outside);
  } else
#elif defined(__AVX512F__)
  if constexpr (kIsHalf<V>) {
    return V{load_span<decltype(V::bits)>(reinterpret_cast<const unsigned short*>(p), first, last, outside.bits)};
  } else if constexpr (kMasks && sizeof(V) <= 64) {
    const unsigned long long inside = head_bits(smaller(last, kWidth<V>)) & ~head_bits(larger(first, 0));
    return load_masked<V>(p, inside, fill<V>(outside));
  } else
#endif
  {
    return gather_span<V>(p, 1, first, last, outside);
  }
}

// The halves of a packet of more than 16 lanes: f(0) and f(lanes of a half).
template <typename V, typename F>
UMBRA_INLINE V by_halves(F f) {
  typedef packet<Elem<V>, kWidth<V> / 2> Half;
  return __builtin_bit_cast(V, Pair<Half>{f(Half{}, 0), f(Half{}, kWidth<Half>)});
}

// Every other lane of a and b, the first of a included.
template <typename V>
UMBRA_INLINE V even_lanes(V a, V b) {
  if constexpr (kIsHalf<V>) return V{even_lanes(a.bits, b.bits)};
  else if constexpr (kWidth<V> == 2) return __builtin_shufflevector(a, b, 0, 2);
  else if constexpr (kWidth<V> == 4) return __builtin_shufflevector(a, b, 0, 2, 4, 6);
  else if constexpr (kWidth<V> == 8) return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
  else return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}

// Every other lane of a and b, from the second of a on.
template <typename V>
UMBRA_INLINE V odd_lanes(V a, V b) {
  if constexpr (kIsHalf<V>) return V{odd_lanes(a.bits, b.bits)};
  else if constexpr (kWidth<V> == 2) return __builtin_shufflevector(a, b, 1, 3);
  else if constexpr (kWidth<V> == 4) return __builtin_shufflevector(a, b, 1, 3, 5, 7);
  else if constexpr (kWidth<V> == 8) return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
  else return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}

// Every other lane of a, and of b from the second on.
template <typename V>
UMBRA_INLINE V even_odd_lanes(V a, V b) {
  if constexpr (kIsHalf<V>) return V{even_odd_lanes(a.bits, b.bits)};
  else if constexpr (kWidth<V> == 2) return __builtin_shufflevector(a, b, 0, 3);
  else if constexpr (kWidth<V> == 4) return __builtin_shufflevector(a, b, 0, 2, 5, 7);
  else if constexpr (kWidth<V> == 8) return __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
  else return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
}

template <typename V>
UMBRA_INLINE V reversed_lanes(V a) {
  if constexpr (kIsHalf<V>) return V{reversed_lanes(a.bits)};
  else if constexpr (kWidth<V> == 2) return __builtin_shufflevector(a, a, 1, 0);
  else if constexpr (kWidth<V> == 4) return __builtin_shufflevector(a, a, 3, 2, 1, 0);
  else if constexpr (kWidth<V> == 8) return __builtin_shufflevector(a, a, 7, 6, 5, 4, 3, 2, 1, 0);
  else return __builtin_shufflevector(a, a, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
}

// Of each group of `size` lanes, lane first + step * r as lane r.
template <typename V, int size, int first, int step>
UMBRA_INLINE V in_groups(V a) {
  struct From {
    static constexpr int lane(int k) { return k / size * size + first + step * (k % size); }
  };
#define UMBRA_LANES(k) From::lane(k), From::lane(k + 1)
  if constexpr (kIsHalf<V>) return V{in_groups<decltype(V::bits), size, first, step>(a.bits)};
  else if constexpr (kWidth<V> == 2) return __builtin_shufflevector(a, a, UMBRA_LANES(0));
  else if constexpr (kWidth<V> == 4) return __builtin_shufflevector(a, a, UMBRA_LANES(0), UMBRA_LANES(2));
  else if constexpr (kWidth<V> == 8)
    return __builtin_shufflevector(a, a, UMBRA_LANES(0), UMBRA_LANES(2), UMBRA_LANES(4), UMBRA_LANES(6));
  else
    return __builtin_shufflevector(a, a, UMBRA_LANES(0), UMBRA_LANES(2), UMBRA_LANES(4), UMBRA_LANES(6), UMBRA_LANES(8),
                                   UMBRA_LANES(10), UMBRA_LANES(12), UMBRA_LANES(14));
#undef UMBRA_LANES
}

// Does a load of some lanes cost as little as one of all?
template <typename V>
inline constexpr bool kMasksSpans =
#if defined(__AVX512F__)
    sizeof(V) == 64 && sizeof(Elem<V>) >= 4;
#elif defined(__AVX2__)
    sizeof(V) == 32 && sizeof(Elem<V>) >= 4;
#else
    false;
#endif

// Of each group of `size` elements from p on, element first + step * r as lane r.
template <typename V, int size, int first, int step>
UMBRA_INLINE V load_in_groups(const Elem<V>* p) {
  return in_groups<V, size, first, step>(load<V>(p));
}
template <typename V, int size, int first, int step>
UMBRA_INLINE V load_in_groups_head(const Elem<V>* p, i64 lanes) {
  return in_groups<V, size, first, step>(load_head<V>(p, lanes));
}

// Lane k from p[2 k]. The last packet begins where nothing past the last lane is read.
template <typename V>
UMBRA_INLINE V load_even(const Elem<V>* p) {
  if constexpr (kWidth < V >> 16)
    return by_halves<V>([&](auto half, int at) { return load_even<decltype(half)>(p + 2 * at); });
  else return even_odd_lanes(load<V>(p), load<V>(p + (kWidth<V> - 1)));
}
template <typename V>
UMBRA_INLINE V load_even_span(const Elem<V>* p, i64 first, i64 last, Elem<V> outside) {
  if (first <= 0 && last >= kWidth<V>) return load_even<V>(p);
  if constexpr (kMasksSpans<V>)
    return even_lanes(load_span<V>(p, 2 * first, 2 * last - 1, outside),
                      load_span<V>(p + kWidth<V>, 2 * first - kWidth<V>, 2 * last - 1 - kWidth<V>, outside));
  else return gather_span<V>(p, 2, first, last, outside);
}

// The same of pairs that are all there, each element as `at` of its pair, 0 or 1: loads of one packet serve for both.
template <typename V>
UMBRA_INLINE V load_of_pairs(const Elem<V>* p, i64 at) {
  if constexpr (kWidth < V >> 16) {
    return by_halves<V>([&](auto half, int lane) { return load_of_pairs<decltype(half)>(p + 2 * lane, at); });
  } else {
    const V a = load<V>(p - at), b = load<V>(p - at + kWidth<V>);
    return at == 0 ? even_lanes(a, b) : odd_lanes(a, b);
  }
}
template <typename V>
UMBRA_INLINE V load_of_pairs_head(const Elem<V>* p, i64 at, i64 lanes) {
  if constexpr (kMasksSpans<V>) {
    const V a = load_head<V>(p - at, smaller(2 * lanes, kWidth<V>)),
            b = load_head<V>(p - at + kWidth<V>, larger(2 * lanes - kWidth<V>, 0));
    return at == 0 ? even_lanes(a, b) : odd_lanes(a, b);
  } else {
    return gather_head<V>(p, 2, lanes);
  }
}

// Lane k from p[-k].
template <typename V>
UMBRA_INLINE V load_reversed(const Elem<V>* p) {
  if constexpr (kWidth < V >> 16)
    return by_halves<V>([&](auto half, int at) { return load_reversed<decltype(half)>(p - at); });
  else return reversed_lanes(load<V>(p - (kWidth<V> - 1)));
}
template <typename V>
UMBRA_INLINE V load_reversed_span(const Elem<V>* p, i64 first, i64 last, Elem<V> outside) {
  if (first <= 0 && last >= kWidth<V>) return load_reversed<V>(p);
  if constexpr (kMasksSpans<V>)
    return reversed_lanes(load_span<V>(p - (kWidth<V> - 1), kWidth<V> - last, kWidth<V> - first, outside));
  else return gather_span<V>(p, -1, first, last, outside);
}

#if defined(__AVX2__)
// Lane k is lane from[k] of a packet of a whole register.
template <typename V>
UMBRA_INLINE V permuted_lanes(V a, Bits<V> from) {
#if defined(__clang__)
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64 && sizeof(Elem<V>) == 4)
    return __builtin_bit_cast(
        V, __builtin_ia32_permvarsf512(__builtin_bit_cast(f32x16, a), __builtin_bit_cast(i32x16, from)));
  else if constexpr (sizeof(V) == 64)
    return __builtin_bit_cast(
        V, __builtin_ia32_permvardf512(__builtin_bit_cast(f64x8, a), __builtin_bit_cast(i64x8, from)));
  else
#endif
      if constexpr (sizeof(Elem<V>) == 8) {  // of its halves
    const i64x4 low = __builtin_bit_cast(i64x4, from) * 2;
    return __builtin_bit_cast(
        V, permuted_lanes(__builtin_bit_cast(f32x8, a), __builtin_bit_cast(i32x8, low | ((low + 1) << 32))));
  } else {
    return __builtin_bit_cast(
        V, __builtin_ia32_permvarsf256(__builtin_bit_cast(f32x8, a), __builtin_bit_cast(i32x8, from)));
  }
#else
  return __builtin_shuffle(a, from);
#endif
}
#endif

#if defined(__AVX2__)
// A table of `count` elements that registers hold.
template <int count, typename V, int registers>
UMBRA_INLINE void load_table(const Elem<V>* from, V (&table)[registers]) {
  for (int k = 0; k < registers; ++k)
    table[k] =
        load_head<V>(from + k * kWidth<V>, count - k * kWidth<V> < kWidth<V> ? count - k * kWidth<V> : kWidth<V>);
}
#endif

#if defined(__AVX2__)
// Elements of such a table at these places, which are within it.
template <typename V, int registers>
UMBRA_INLINE V look_up(const V (&table)[registers], Bits<V> places) {
  V found = permuted_lanes(table[0], places);
  for (int k = 1; k < registers; ++k) found = select(places >= k * kWidth<V>, permuted_lanes(table[k], places), found);
  return found;
}
#endif

#if defined(__AVX2__)
// Writes a row, or rows that follow each other, past the caches from front to back, by packets that begin anywhere:
// what fills a register is put together there. The first row begins with a line, or `anywhere`: of its first line only
// what is its own is written, and nothing where what came before has written it.
template <typename V, bool anywhere = false>
struct StreamedRow {
  typedef Bits<V> Int;
  Elem<V>* p = nullptr;
  V line{};  // of the line at p, what is known
  i64 filled = 0;  // lanes of it
  i64 before = 0;  // of these, those before the row
  Int from = iota<Int>();
  StreamedRow() = default;
  UMBRA_INLINE explicit StreamedRow(Elem<V>* row, bool resumes = false) : p(row) {
    if constexpr (anywhere) {
      before = filled = static_cast<i64>(__builtin_bit_cast(unsigned long long, row) / sizeof(Elem<V>) % kWidth<V>);
      p -= filled;
      if (resumes && filled > 0) before = kWidth<V>;
      turn();
    }
  }
  UMBRA_INLINE void turn() { from = (iota<Int>() - static_cast<Elem<Int>>(filled)) & (kWidth<V> - 1); }
  UMBRA_INLINE V joined(V turned) const { return iota<Int>() < static_cast<Elem<Int>>(filled) ? line : turned; }
  UMBRA_INLINE void put_line(V v) {
    if (anywhere && before > 0) {
      if (before < kWidth<V>) store_masked(p, v, ~0ULL << before);
      before = 0;
    } else {
      stream(p, v);
    }
    p += kWidth<V>;
  }
  UMBRA_INLINE void put_packet(V v) {
    const V turned = permuted_lanes(v, from);
    put_line(joined(turned));
    line = turned;
  }
  UMBRA_INLINE void put_head(V v, i64 n) {
    const V turned = permuted_lanes(v, from);
    const V next = joined(turned);
    filled += n;
    if (filled < kWidth<V>) {
      line = next;
    } else {
      put_line(next);
      filled -= kWidth<V>;
      line = turned;
    }
    turn();
  }
  template <typename G>
  UMBRA_INLINE void put_group(const G& group) {
    V packets[kGroup];
    __builtin_memcpy(packets, &group, sizeof packets);
    for (const V& v : packets) put_packet(v);
  }
  UMBRA_INLINE void finish() {
    if constexpr (anywhere) store_masked(p, line, head_bits(filled) & ~0ULL << before);
    else store_head(p, line, filled);
  }
};
#endif

// A packet that repeats `part`.
template <typename V, typename P>
UMBRA_INLINE V widened(P part) {
  if constexpr (sizeof(P) == sizeof(V)) return part;
  else return widened<V>(__builtin_bit_cast(packet<Elem<V>, 2 * kWidth<P>>, Pair<P>{part, part}));
}

// Lane k from p[(rest + k) / times] where first <= k < last, `outside` in the others; 0 <= rest < times.
template <typename V, int times>
UMBRA_INLINE V load_repeated_span(const Elem<V>* p, i64 rest, i64 first, i64 last, Elem<V> outside) {
  first = larger(first, 0);
  last = smaller(last, kWidth<V>);
  if (first >= last) return fill<V>(outside);
#if defined(__AVX512F__)
  if constexpr (kIsHalf<V>) {
    return V{load_repeated_span<decltype(V::bits), times>(reinterpret_cast<const unsigned short*>(p), rest, first, last,
                                                          outside.bits)};
  } else if constexpr (kMasks && sizeof(Elem<V>) <= 2 && kWidth<V> == 16) {
    typedef i32x16 Int;
    const V part = load_span<V>(p, (rest + first) / times, (rest + last - 1) / times + 1, outside);
    const Int v = permuted_lanes(__builtin_convertvector(part, Int), (iota<Int>() + static_cast<int>(rest)) / times);
    const Int inside = (iota<Int>() >= static_cast<int>(first)) & (iota<Int>() < static_cast<int>(last));
    return __builtin_convertvector(inside ? v : fill<Int>(outside), V);
  } else
#endif
#if defined(__AVX2__)
      if constexpr (kMasksSpans<V>) {
    typedef Bits<V> Int;
    // The common case reads as many elements every time; where a smaller packet holds them, that is loaded sooner than
    // some lanes of a whole one.
    const bool whole = rest == 0 && last - first == kWidth<V>;
    if constexpr (kWidth<V> % times == 0 && kWidth<V> / times > 1)
      if (whole) return permuted_lanes(widened<V>(load<packet<Elem<V>, kWidth<V> / times>>(p)), iota<Int>() / times);
    const V part = whole ? load_span<V>(p, 0, (kWidth<V> - 1) / times + 1, outside)
                         : load_span<V>(p, (rest + first) / times, (rest + last - 1) / times + 1, outside);
    const Int from = (iota<Int>() + static_cast<Elem<Int>>(rest)) / times;
    const V v = permuted_lanes(part, from);
    if (last - first == kWidth<V>) return v;
    const Int inside = (iota<Int>() >= static_cast<Elem<Int>>(first)) & (iota<Int>() < static_cast<Elem<Int>>(last));
    return inside ? v : fill<V>(outside);
  } else
#endif
  {
    Elem<V> part[kWidth<V>];
    for (int k = 0; k < kWidth<V>; ++k) part[k] = k < first || k >= last ? outside : p[(rest + k) / times];
    V v;
    __builtin_memcpy(&v, part, sizeof v);
    return v;
  }
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_SPANS_H_

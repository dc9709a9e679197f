// Reductions across the lanes of packets, by a fixed tree of halves: lane i meets lane i + width/2.
#ifndef UMBRA_PRELUDE_REDUCE_H_
#define UMBRA_PRELUDE_REDUCE_H_

#include "umbra/prelude/arith.h"

namespace umbra::simd {

struct Sum {
  template <typename V>
  static UMBRA_INLINE V join(V a, V b) {
    return a + b;
  }
};
struct Product {
  template <typename V>
  static UMBRA_INLINE V join(V a, V b) {
    return a * b;
  }
};
// The newcomer b goes first: its test for NaN then waits for nothing.
struct Maximum {
  template <typename V>
  static UMBRA_INLINE V join(V a, V b) {
    return maximum(b, a);
  }
};
struct Minimum {
  template <typename V>
  static UMBRA_INLINE V join(V a, V b) {
    return minimum(b, a);
  }
};

// Joins packet m of a group with partial result k + m; after the last comes the first.
template <typename Join, typename V, int n, typename Group>
UMBRA_INLINE void join_group(V (&parts)[n], Group group, int k) {
  struct {
    V at[sizeof(Group) / sizeof(V)];
  } packets;
  static_assert(sizeof packets == sizeof group);
  __builtin_memcpy(&packets, &group, sizeof group);
  for (unsigned m = 0; m < sizeof(Group) / sizeof(V); ++m) {
    V& part = parts[(static_cast<unsigned>(k) + m) % n];
    part = Join::join(part, packets.at[m]);
  }
}

// The value of all lanes of `v` joined.
template <typename Join, typename V>
UMBRA_INLINE Elem<V> across(V v) {
  if constexpr (kWidth<V> == 1) {
    return v;
  } else {
    typedef packet<Elem<V>, kWidth<V> / 2> Half;
    Half low, high;
    __builtin_memcpy(&low, &v, sizeof low);
    __builtin_memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof low, sizeof high);
    return across<Join>(Join::join(low, high));
  }
}

// Those of n packets (a power of two) that lie `step` apart, joined by halves.
template <typename Join, int n, int step = 1, typename V>
UMBRA_INLINE V joined(const V* parts) {
  if constexpr (step >= n) return *parts;
  else return Join::join(joined<Join, n, 2 * step>(parts), joined<Join, n, 2 * step>(parts + step));
}

// Joins n accumulators pairwise by halves, then their lanes.
template <typename Join, typename V, int n>
UMBRA_INLINE Elem<V> fold(const V (&parts)[n]) {
  return across<Join>(joined<Join, n>(parts));
}

// `parts` has the elements of `steps` steps (a power of two), each of n columns, one step behind the other, and room
// for a packet more: joins those of each column by halves of the steps. They are those of the first step then.
template <typename Join, int steps, typename V, int count>
UMBRA_INLINE void fold_columns(V (&parts)[count], i64 n) {
  Elem<V>* const at = reinterpret_cast<Elem<V>*>(parts);
  for (i64 c = 0; c < n; c += kWidth<V>) {
    V step[steps];
    for (int k = 0; k < steps; ++k) step[k] = load<V>(at + k * n + c);
    for (int half = steps / 2; half > 0; half /= 2)
      for (int k = 0; k < half; ++k) step[k] = Join::join(step[k], step[k + half]);
    store(at + c, step[0]);
  }
}

// Those of the first step for all others.
template <int steps, typename V, int count>
UMBRA_INLINE void repeat_columns(V (&parts)[count], i64 n) {
  Elem<V>* const at = reinterpret_cast<Elem<V>*>(parts);
  if (n <= kWidth<V>) {
    const V first = load<V>(at);
    for (int k = 1; k < steps; ++k) store(at + k * n, first);
    return;
  }
  for (int k = 1; k < steps; ++k)
    for (i64 c = 0; c < n; c += kWidth<V>) store(at + k * n + c, load<V>(at + c));
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_REDUCE_H_

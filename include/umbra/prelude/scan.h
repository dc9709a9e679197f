// Running reductions along the lanes of packets: each lane joined with all before it.
#ifndef UMBRA_PRELUDE_SCAN_H_
#define UMBRA_PRELUDE_SCAN_H_

#include "umbra/prelude/memory.h"
#include "umbra/prelude/reduce.h"

#if !defined(__CUDACC__)
namespace umbra::simd {

namespace detail {

// The last lane of each group of `by` lanes, in all lanes of the next group, if that is an odd one; in others
// `outside`.
template <int by, typename V, int... lane>
UMBRA_INLINE V last_before(V v, V outside, Lanes<lane...>) {
  return __builtin_shufflevector(v, outside, (lane / by % 2 == 1 ? lane / by * by - 1 : kWidth<V> + lane)...);
}

// Each lane joined with all before it in its group of `by` lanes, then of twice as many, until the group is all.
template <typename Join, int by, typename V>
UMBRA_INLINE V prefix(V v, V identity) {
  if constexpr (by >= kWidth<V>) {
    return v;
  } else {
    constexpr typename LanesTo<kWidth<V>>::type lanes;
    return prefix<Join, 2 * by>(Join::join(last_before<by>(v, identity, lanes), v), identity);
  }
}

template <typename V>
UMBRA_INLINE V last_lane(V v) {
  if constexpr (kWidth<V> == 1) return v;
  else return fill<V>(v[kWidth<V> - 1]);
}

}  // namespace detail

// What the elements of a row have come to, packet by packet. Those of a block of 16 are joined by halves, whatever the
// width of packets, and then with what the blocks before have come to, which waits for these alone.
template <typename Join, typename V>
struct Scan {
  static constexpr int kPackets = 16 / kWidth<V>;  // of a block
  Elem<V> identity;
  V carry = fill<V>(identity);  // in all lanes, as are those of `before`
  V before[4] = {carry, carry, carry,
                 carry};  // what the last 1, 2, 4 and 8 packets have come to, if such a group is full
  int packet = 0;  // of the block

  UMBRA_INLINE explicit Scan(Elem<V> of_nothing) : identity(of_nothing) {}

  UMBRA_INLINE V next(V v) {
    V within = detail::prefix<Join, 1>(v, fill<V>(identity));
    for (int level = 0; 1 << level < kPackets; ++level)
      if ((packet >> level & 1) != 0) within = Join::join(before[level], within);
      else before[level] = detail::last_lane(within);
    const V scanned = Join::join(carry, within);
    if (++packet == kPackets) {
      carry = Join::join(carry, detail::last_lane(within));
      packet = 0;
    }
    return scanned;
  }

  // The packets of a group, one after the other.
  template <typename Group>
  UMBRA_INLINE Group next_group(Group group) {
    struct {
      V at[sizeof(Group) / sizeof(V)];
    } packets;
    static_assert(sizeof packets == sizeof group);
    __builtin_memcpy(&packets, &group, sizeof group);
    for (V& of : packets.at) of = next(of);
    __builtin_memcpy(&group, &packets, sizeof group);
    return group;
  }
};

}  // namespace umbra::simd
#endif

#endif  // UMBRA_PRELUDE_SCAN_H_

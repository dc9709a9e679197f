// Rows of a few elements, as many as a packet has lanes, as a packet for each of their columns.
#ifndef UMBRA_PRELUDE_COLUMNS_H_
#define UMBRA_PRELUDE_COLUMNS_H_

#include "umbra/prelude/spans.h"

namespace umbra::simd {

// Elements one after the other, in as many packets as rows have elements: lane j of to[k] is element j * count + k.
template <typename V, int count>
UMBRA_INLINE void unzip(const V (&from)[count], V (&to)[count]) {
  if constexpr (count == 1) {
    to[0] = from[0];
  } else {
    V even[count / 2], odd[count / 2], a[count / 2], b[count / 2];
    for (int k = 0; k < count / 2; ++k) {
      even[k] = even_lanes(from[2 * k], from[2 * k + 1]);
      odd[k] = odd_lanes(from[2 * k], from[2 * k + 1]);
    }
    unzip(even, a);
    unzip(odd, b);
    for (int k = 0; k < count / 2; ++k) to[2 * k] = a[k], to[2 * k + 1] = b[k];
  }
}

// Back again.
template <typename V, int count>
UMBRA_INLINE void zip(const V (&from)[count], V (&to)[count]) {
  if constexpr (count == 1) {
    to[0] = from[0];
  } else {
    V even[count / 2], odd[count / 2], a[count / 2], b[count / 2];
    for (int k = 0; k < count / 2; ++k) a[k] = from[2 * k], b[k] = from[2 * k + 1];
    zip(a, even);
    zip(b, odd);
    for (int k = 0; k < count / 2; ++k) {
      to[2 * k] = zip_low(even[k], odd[k]);
      to[2 * k + 1] = zip_high(even[k], odd[k]);
    }
  }
}

// Rows of a power of two elements go through few steps if they lie one after the other; any others through as many as a
// square, which is worth it if more than half of that is there.
template <typename V, int count>
inline constexpr bool kZips = (count & (count - 1)) == 0 && count <= kWidth<V> / 2;
template <typename V, int count>
inline constexpr bool kTurns = count <= kWidth<V> && count * 2 > kWidth<V>;

// Of a packet's rows of `count` elements, one after the other, those from each of which on a whole packet lies among them.
// (Packets of which parts are loaded or stored take longer than whole ones, above all far from the caches.)
template <typename V, int count>
inline constexpr int kWholeRows = kWidth<V> - (kWidth<V> + count - 1) / count + 1;

// Lane j of columns[k] from p[j * by_row + k * by_column].
template <typename V, int count>
UMBRA_INLINE void load_columns(const Elem<V>* p, i64 by_row, i64 by_column, V (&columns)[count]) {
  constexpr int width = kWidth<V>;
  if constexpr (kZips<V, count>) {
    if (by_column == 1 && by_row == count) {
      V packets[count];
      for (int k = 0; k < count; ++k) packets[k] = load<V>(p + k * width);
      return unzip(packets, columns);
    }
  }
  if constexpr (kTurns<V, count>) {
    if (by_column == 1 && by_row >= count) {
      V tile[width];
      for (int k = 0; k < kWholeRows<V, count>; ++k) tile[k] = load<V>(p + k * by_row);
      for (int k = kWholeRows<V, count>; k < width; ++k) tile[k] = load_head<V>(p + k * by_row, count);
      transpose_tile(tile);
      for (int k = 0; k < count; ++k) columns[k] = tile[k];
      return;
    }
  }
  for (int k = 0; k < count; ++k) columns[k] = gather<V>(p + k * by_column, by_row);
}

// columns[k] to p[j * by_row + k * by_column], lane by lane.
template <typename V, int count>
UMBRA_INLINE void store_columns(Elem<V>* p, i64 by_row, i64 by_column, const V (&columns)[count]) {
  constexpr int width = kWidth<V>;
  const bool is_dense = by_column == 1 && by_row == count;
  if constexpr (kZips<V, count>) {
    if (is_dense) {
      V packets[count];
      zip(columns, packets);
      for (int k = 0; k < count; ++k) store(p + k * width, packets[k]);
      return;
    }
  }
  if constexpr (kTurns<V, count>) {
    if (is_dense) {
      V tile[width] = {};
      for (int k = 0; k < count; ++k) tile[k] = columns[k];
      transpose_tile(tile);
      // What a row leaves beyond its end is written over by the next ones.
      for (int k = 0; k < kWholeRows<V, count>; ++k) store(p + k * by_row, tile[k]);
      for (int k = kWholeRows<V, count>; k < width; ++k) store_head(p + k * by_row, tile[k], count);
      return;
    }
  }
  for (int k = 0; k < count; ++k) scatter(p + k * by_column, by_row, columns[k]);
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_COLUMNS_H_

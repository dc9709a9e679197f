// Rows of a few elements, as many as a packet has lanes, as a packet for each of their columns.
#ifndef UMBRA_PRELUDE_COLUMNS_H_
#define UMBRA_PRELUDE_COLUMNS_H_

#include "umbra/prelude/spans.h"

#if !defined(__CUDACC__)
namespace umbra::simd {

namespace detail {

// The numbers 0 to count - 1, for the lanes of a shuffle.
template <int... lane>
struct Lanes {};
template <int count, int... lane>
struct LanesTo : LanesTo<count - 1, count - 1, lane...> {};
template <int... lane>
struct LanesTo<0, lane...> { typedef Lanes<lane...> type; };

// `made`, but for the lanes that packets from number `next` on have of a column, or columns of a packet: where rows of `count`
// elements lie one after the other in packets, lane k of packet p is of column (width * p + k) % count.
template <int count, int column, int next, typename V, int... lane>
UMBRA_INLINE V lanes_of_column(const V (&packets)[count], V made, Lanes<lane...> lanes) {
  constexpr int width = kWidth<V>;
  if constexpr (next == count) return made;
  else return lanes_of_column<count, column, next + 1>(packets, __builtin_shufflevector(made, packets[next], ((width * next + lane) % count == column ? width + lane : lane)...), lanes);
}
template <int count, int packet, int next, typename V, int... lane>
UMBRA_INLINE V lanes_of_packet(const V (&columns)[count], V made, Lanes<lane...> lanes) {
  constexpr int width = kWidth<V>;
  if constexpr (next == count) return made;
  else return lanes_of_packet<count, packet, next + 1>(columns, __builtin_shufflevector(made, columns[next], ((width * packet + lane) % count == next ? width + lane : lane)...), lanes);
}

// Element j of a column is where the packets have it, which is a place of its own for each, as count is odd; and back.
template <int count, int column, typename V, int... lane>
UMBRA_INLINE V in_order(V v, Lanes<lane...>) {
  return __builtin_shufflevector(v, v, ((lane * count + column) % kWidth<V>)...);
}
template <int count, int column, int width>
constexpr int row_at(int lane) {
  int row = 0;
  while ((row * count + column) % width != lane) ++row;
  return row;
}
template <int count, int column, typename V, int... lane>
UMBRA_INLINE V in_places(V v, Lanes<lane...>) {
  return __builtin_shufflevector(v, v, row_at<count, column, kWidth<V>>(lane)...);
}

template <typename V, int count, int... k>
UMBRA_INLINE void deal(const V (&from)[count], V (&to)[count], Lanes<k...>) {
  constexpr typename LanesTo<kWidth<V>>::type lanes;
  ((to[k] = in_order<count, k>(lanes_of_column<count, k, 1>(from, from[0], lanes), lanes)), ...);
}
template <typename V, int count, int... k>
UMBRA_INLINE void collect(const V (&from)[count], V (&to)[count], Lanes<k...>) {
  constexpr typename LanesTo<kWidth<V>>::type lanes;
  V placed[count];
  ((placed[k] = in_places<count, k>(from[k], lanes)), ...);
  ((to[k] = lanes_of_packet<count, k, 1>(placed, placed[0], lanes)), ...);
}

// Where the packet of columns begins that `first` is in: the last one overlaps the one before it.
template <typename V, int count>
constexpr int begin_of_columns(int first) { return first + kWidth<V> <= count ? first : count - kWidth<V>; }

}  // namespace detail

// Elements one after the other, in as many packets as rows have elements: lane j of to[k] is element j * count + k.
template <typename V, int count>
UMBRA_INLINE void unzip(const V (&from)[count], V (&to)[count]) {
  if constexpr (count == 1) {
    to[0] = from[0];
  } else if constexpr (count % 2 == 1) {
    detail::deal(from, to, typename detail::LanesTo<count>::type());
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
  } else if constexpr (count % 2 == 1) {
    detail::collect(from, to, typename detail::LanesTo<count>::type());
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

// Rows of up to half a packet, one after the other, are sorted lane by lane; longer ones are turned a packet of columns at
// a time.
template <typename V, int count>
inline constexpr bool kZips = count * 2 <= kWidth<V>;

// Of a packet's rows of `count` elements, one after the other, those from each of which on a whole packet lies among them.
// (Packets of which parts are loaded or stored take longer than whole ones, above all far from the caches.)
template <typename V, int count>
inline constexpr int kWholeRows = kWidth<V> - (kWidth<V> + count - 1) / count + 1;

// Lane j of columns[k] from p[j * by_row + k * by_column].
template <typename V, int count>
UMBRA_INLINE void load_columns(const Elem<V>* p, i64 by_row, i64 by_column, V (&columns)[count]) {
  constexpr int width = kWidth<V>;
  if constexpr (kIsHalf<V>) {
    decltype(V::bits) bits[count];
    load_columns(reinterpret_cast<const unsigned short*>(p), by_row, by_column, bits);
    for (int k = 0; k < count; ++k) columns[k] = V{bits[k]};
    return;
  } else if constexpr (kZips<V, count>) {
    if (by_column == 1 && by_row == count) {
      V packets[count];
      for (int k = 0; k < count; ++k) packets[k] = load<V>(p + k * width);
      return unzip(packets, columns);
    }
  } else if (by_column == 1 && by_row >= count) {
    V tile[width];
    if constexpr (count < width) {
      for (int k = 0; k < kWholeRows<V, count>; ++k) tile[k] = load<V>(p + k * by_row);
      for (int k = kWholeRows<V, count>; k < width; ++k) tile[k] = load_head<V>(p + k * by_row, count);
      transpose_tile(tile);
      for (int k = 0; k < count; ++k) columns[k] = tile[k];
    } else {
      for (int first = 0; first < count; first += width) {
        const int begin = detail::begin_of_columns<V, count>(first);
        load_transposed(p + begin, by_row, tile);
        for (int k = 0; k < width; ++k) columns[begin + k] = tile[k];
      }
    }
    return;
  }
  for (int k = 0; k < count; ++k) columns[k] = gather<V>(p + k * by_column, by_row);
}

// columns[k] to p[j * by_row + k * by_column], lane by lane.
template <typename V, int count>
UMBRA_INLINE void store_columns(Elem<V>* p, i64 by_row, i64 by_column, const V (&columns)[count]) {
  constexpr int width = kWidth<V>;
  const bool is_dense = by_column == 1 && by_row == count;
  V tile[width];
  if constexpr (kIsHalf<V>) {
    decltype(V::bits) bits[count];
    for (int k = 0; k < count; ++k) bits[k] = columns[k].bits;
    return store_columns(reinterpret_cast<unsigned short*>(p), by_row, by_column, bits);
  } else if constexpr (kZips<V, count>) {
    if (is_dense) {
      V packets[count];
      zip(columns, packets);
      for (int k = 0; k < count; ++k) store(p + k * width, packets[k]);
      return;
    }
  } else if constexpr (count < width) {
    if (is_dense) {
      for (int k = 0; k < width; ++k) tile[k] = k < count ? columns[k] : V{};
      transpose_tile(tile);
      // What a row leaves beyond its end is written over by the next ones.
      for (int k = 0; k < kWholeRows<V, count>; ++k) store(p + k * by_row, tile[k]);
      for (int k = kWholeRows<V, count>; k < width; ++k) store_head(p + k * by_row, tile[k], count);
      return;
    }
  } else if (by_column == 1) {
    for (int first = 0; first < count; first += width) {
      const int begin = detail::begin_of_columns<V, count>(first);
      for (int k = 0; k < width; ++k) tile[k] = columns[begin + k];
      transpose_tile(tile);
      for (int k = 0; k < width; ++k) store(p + begin + k * by_row, tile[k]);
    }
    return;
  }
  for (int k = 0; k < count; ++k) scatter(p + k * by_column, by_row, columns[k]);
}

}  // namespace umbra::simd
#endif

#endif  // UMBRA_PRELUDE_COLUMNS_H_

// Rows of a few elements, as many as a packet has lanes, as a packet for each of their columns.
#ifndef UMBRA_PRELUDE_COLUMNS_H_
#define UMBRA_PRELUDE_COLUMNS_H_

#include "umbra/prelude/spans.h"

#if !defined(__CUDACC__)
namespace umbra::simd {

namespace detail {

// `made`, but for the lanes that packets from number `next` on have of a column, or columns of a packet: where rows of
// `count` elements lie one after the other in packets, lane k of packet p is of column (width * p + k) % count.
template <int count, int column, int next, typename V, int... lane>
UMBRA_INLINE V lanes_of_column(const V (&packets)[count], V made, Lanes<lane...> lanes) {
  constexpr int width = kWidth<V>;
  if constexpr (next == count) return made;
  else
    return lanes_of_column<count, column, next + 1>(
        packets,
        __builtin_shufflevector(made, packets[next],
                                ((width * next + lane) % count == column ? width + lane : lane)...),
        lanes);
}
template <int count, int packet, int next, typename V, int... lane>
UMBRA_INLINE V lanes_of_packet(const V (&columns)[count], V made, Lanes<lane...> lanes) {
  constexpr int width = kWidth<V>;
  if constexpr (next == count) return made;
  else
    return lanes_of_packet<count, packet, next + 1>(
        columns,
        __builtin_shufflevector(made, columns[next],
                                ((width * packet + lane) % count == next ? width + lane : lane)...),
        lanes);
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

// Lane k + `by` as lane k, as far as there is one.
template <int by, typename V, int... lane>
UMBRA_INLINE V moved_lanes(V v, Lanes<lane...>) {
  return __builtin_shufflevector(v, v, (lane + by < kWidth<V> ? lane + by : lane)...);
}
// The last packet of rows of `count` elements that end with these two, of at least half a packet each.
template <int count, typename V, int... lane>
UMBRA_INLINE V last_packet(V before, V last, Lanes<lane...>) {
  constexpr int rest = kWidth<V> - count;
  return __builtin_shufflevector(before, last, (lane < rest ? count - rest + lane : kWidth<V> + lane - rest)...);
}

// Where the packet of columns begins that `first` is in: the last one overlaps the one before it.
template <typename V, int count>
constexpr int begin_of_columns(int first) {
  return first + kWidth<V> <= count ? first : count - kWidth<V>;
}

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

// Rows of up to half a packet, one after the other, are sorted lane by lane; longer ones are turned a packet of columns
// at a time.
template <typename V, int count>
inline constexpr bool kZips = count * 2 <= kWidth<V>;

// Memory that load_columns comes to a few times later: where rows and their packets begin at other places of lines each
// time, processors do not look far enough ahead themselves.
template <typename V, int count>
UMBRA_INLINE void prefetch_rows(const Elem<V>* p) {
  constexpr int ahead = 4096, line = 64;
  prefetch_lines<(count * kWidth<V> * static_cast<int>(sizeof(Elem<V>)) + line - 1) / line, 1>(p, ahead);
}

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
      prefetch_rows<V, count>(p);
      V packets[count];
      for (int k = 0; k < count; ++k) packets[k] = load<V>(p + k * width);
      return unzip(packets, columns);
    }
  } else if (by_column == 1 && by_row >= count) {
    V tile[width];
    if constexpr (count < width) {
      prefetch_rows<V, count>(p);
      // Packets of which parts are loaded or stored take longer than whole ones, above all far from the caches. A whole
      // one lies among the rows from all of them but the last on.
      for (int k = 0; k < width - 1; ++k) tile[k] = load<V>(p + k * by_row);
      tile[width - 1] = detail::moved_lanes<width - count>(load<V>(p + (width - 1) * by_row - (width - count)),
                                                           typename detail::LanesTo<width>::type());
      transpose_tile(tile);
      for (int k = 0; k < count; ++k) columns[k] = tile[k];
    } else {
      if (by_row == count) prefetch_rows<V, count>(p);
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
template <bool past_caches = false, typename V, int count>
UMBRA_INLINE void store_columns(Elem<V>* p, i64 by_row, i64 by_column, const V (&columns)[count]) {
  constexpr int width = kWidth<V>;
  const bool is_dense = by_column == 1 && by_row == count;
  V tile[width];
  if constexpr (kIsHalf<V>) {
    decltype(V::bits) bits[count];
    for (int k = 0; k < count; ++k) bits[k] = columns[k].bits;
    return store_columns<past_caches>(reinterpret_cast<unsigned short*>(p), by_row, by_column, bits);
  } else if constexpr (kZips<V, count>) {
    if (is_dense) {
      V packets[count];
      zip(columns, packets);
      for (int k = 0; k < count; ++k)
        if constexpr (past_caches) stream(p + k * width, packets[k]);
        else store(p + k * width, packets[k]);
      return;
    }
  } else if constexpr (count < width) {
    if (is_dense) {
      for (int k = 0; k < count; ++k) tile[k] = columns[k];
      for (int k = count; k < width; ++k) tile[k] = V{};
      transpose_tile(tile);
      // What a row leaves beyond its end is written over by the next ones.
      for (int k = 0; k < width - 1; ++k) store(p + k * by_row, tile[k]);
      store(p + width * (count - 1),
            detail::last_packet<count>(tile[width - 2], tile[width - 1], typename detail::LanesTo<width>::type()));
      return;
    }
  } else if (by_column == 1) {
    for (int first = 0; first < count; first += width) {
      const int begin = detail::begin_of_columns<V, count>(first);
      for (int k = 0; k < width; ++k) tile[k] = columns[begin + k];
      transpose_tile(tile);
      for (int k = 0; k < width; ++k)
        if constexpr (past_caches && count % width == 0) stream(p + begin + k * by_row, tile[k]);
        else store(p + begin + k * by_row, tile[k]);
    }
    return;
  }
  for (int k = 0; k < count; ++k) scatter(p + k * by_column, by_row, columns[k]);
}

// The same past the caches, where rows follow each other as packets do; p is aligned to the packet.
template <typename V, int count>
UMBRA_INLINE void stream_columns(Elem<V>* p, i64 by_row, i64 by_column, const V (&columns)[count]) {
  store_columns<true>(p, by_row, by_column, columns);
}

namespace detail {

template <typename V, int count>
UMBRA_INLINE void copy_row(const Elem<V>* from, Elem<V>* to) {
  constexpr int whole = count - count % kWidth<V>;
  for (int k = 0; k < whole; k += kWidth<V>) store(to + k, load<V>(from + k));
  for (int k = whole; k < count; ++k) to[k] = from[k];
}

}  // namespace detail

// The first `lanes` rows alone, whose elements lie side by side; other lanes have 0.
template <typename V, int count>
UMBRA_INLINE void load_columns_head(const Elem<V>* p, i64 by_row, V (&columns)[count], i64 lanes) {
  Elem<V> rows[count * kWidth<V>];
  for (int k = 0; k < count; ++k) store(rows + k * kWidth<V>, V{});
  for (i64 k = 0; k < lanes; ++k) detail::copy_row<V, count>(p + k * by_row, rows + k * count);
  load_columns(rows, count, 1, columns);
}
template <typename V, int count>
UMBRA_INLINE void store_columns_head(Elem<V>* p, i64 by_row, const V (&columns)[count], i64 lanes) {
  Elem<V> rows[count * kWidth<V>];
  store_columns(rows, count, 1, columns);
  for (i64 k = 0; k < lanes; ++k) detail::copy_row<V, count>(rows + k * count, p + k * by_row);
}

}  // namespace umbra::simd
#endif

#endif  // UMBRA_PRELUDE_COLUMNS_H_

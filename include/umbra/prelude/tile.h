// Tiles of products of matrices: what rows of a left factor, `by_row` elements apart, give with packets of columns of a
// right one, one step after the other. Where fewer than all rows of a tile are `there`, the last of them is taken for
// the others. Sums are in registers meanwhile. Functions of their own, which no kernel has to be compiled with.
#ifndef UMBRA_PRELUDE_TILE_H_
#define UMBRA_PRELUDE_TILE_H_

#include "umbra/prelude/arith.h"
#include "umbra/prelude/memory.h"

namespace umbra::simd {

// Sums go on from where they are `kept`, rows `kept_row` elements apart, if they are `resumed`, else they begin with
// zero.
template <int rows, int packets, typename V>
UMBRA_INLINE void begin_sums(V (&total)[rows][packets], const Elem<V>* kept, i64 kept_row, bool resumed, int there) {
  UMBRA_UNROLL
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < packets; ++c) total[r][c] = fill<V>(0);
  if (!resumed) return;
  UMBRA_UNROLL
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < packets; ++c) total[r][c] = load<V>(kept + smaller(r, there - 1) * kept_row + c * kWidth<V>);
}

// They are kept there if they are `unfinished`, else they are the tile's.
template <int rows, int packets, typename V>
UMBRA_INLINE void end_sums(V* tile, const V (&total)[rows][packets], Elem<V>* kept, i64 kept_row, bool unfinished,
                           int there) {
  if (unfinished) {
    UMBRA_UNROLL
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < packets; ++c)
        if (r < there) store(kept + r * kept_row + c * kWidth<V>, total[r][c]);
  } else {
    UMBRA_UNROLL
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < packets; ++c) tile[r * packets + c] = total[r][c];
  }
}

template <int rows, typename T>
UMBRA_INLINE void find_rows(const T* (&row)[rows], const T* x, i64 by_row, int there) {
  for (int r = 0; r < rows; ++r) row[r] = x + smaller(r, there - 1) * by_row;
}

// Adds x[r * by_row + k * x_step] * packet c of w + k * w_step, for each k below count, to the sum of row r and packet
// c. `ahead`: the columns after these are asked for.
template <bool ahead, int rows, int packets, typename V>
UMBRA_OUTLINE void add_products(V (&tile)[rows][packets], Elem<V>* kept, i64 kept_row, bool resumed, bool unfinished,
                                const Elem<V>* x, i64 by_row, int there, i64 x_step, const Elem<V>* w, i64 w_step,
                                i64 count) {
  constexpr int columns = packets * kWidth<V>, lines = (columns * static_cast<int>(sizeof(Elem<V>)) + 63) / 64;
  V total[rows][packets];
  begin_sums(total, kept, kept_row, resumed, there);
  const Elem<V>* row[rows];
  find_rows(row, x, by_row, there);
  for (i64 k = 0; k < count; ++k) {
    if constexpr (ahead) prefetch_lines<lines, 1>(w + k * w_step + columns);
    V column[packets];
    for (int c = 0; c < packets; ++c) column[c] = load<V>(w + k * w_step + c * kWidth<V>);
    UMBRA_UNROLL
    for (int r = 0; r < rows; ++r) {
      const V factor = fill<V>(load_in_order(row[r] + k * x_step));
      for (int c = 0; c < packets; ++c) total[r][c] = in_order(add_product(total[r][c], factor, column[c]));
    }
  }
  end_sums(&tile[0][0], total, kept, kept_row, unfinished, there);
}

// The same of one packet. Rows whose elements lie side by side are read by whole lines, while those of the next tile,
// as many rows of `by_row` elements below, are asked for. Lines of more rows than a first cache has ways, which all
// begin at the same place of a page, are copied first. `pairs`: all rows lie so far apart, and one half of the tile has
// the addresses of the other.
template <bool pairs, int rows, typename V>
UMBRA_OUTLINE void add_products_by_line(V (&tile)[rows], Elem<V>* kept, i64 kept_row, bool resumed, bool unfinished,
                                        const Elem<V>* x, i64 by_row, int there, i64 x_step, const Elem<V>* w,
                                        i64 w_step, i64 count) {
  constexpr int line = 64 / sizeof(Elem<V>), addresses = pairs ? rows / 2 : rows;
  const Elem<V>* row[rows];
  find_rows(row, x, by_row, there);
  V total[rows][1];
  begin_sums(total, kept, kept_row, resumed, there);
  const bool copies = pairs && by_row * static_cast<i64>(sizeof(Elem<V>)) % 4096 == 0;
  alignas(64) Elem<V> copy[rows * line];
  // Registers have room for these, and for nothing that is found again for each line.
  const Elem<V>* at[addresses];
  for (int r = 0; r < addresses; ++r) at[r] = copies ? copy + r * line : row[r];
  const i64 half = addresses * (copies ? line : by_row), step = copies ? 0 : line;
  const Elem<V>* from = w;
  i64 k = 0;
  for (; x_step == 1 && k + line <= count; k += line) {
    if (copies) {
      for (int r = 0; r < rows; ++r) {
        prefetch(row[r] + rows * by_row + k);
        __builtin_memcpy(copy + r * line, row[r] + k, 64);
      }
    } else {
      for (int r = 0; r < addresses; ++r)
        for (int next = rows; next < 2 * rows; next += addresses) prefetch(at[r] + next * by_row);
    }
    for (int r = 0; r < addresses; ++r) at[r] = in_register(at[r]);
    UMBRA_UNROLL
    for (int m = 0; m < line; ++m) {
      const V column = load<V>(from);
      from += w_step;
      UMBRA_UNROLL
      for (int r = 0; r < rows; ++r) {
        const Elem<V>* const x_row = r < addresses ? at[r] : at[r - addresses] + half;
        total[r][0] = in_order(add_product(total[r][0], fill<V>(x_row[m]), column));
      }
    }
    for (int r = 0; r < addresses; ++r) at[r] += step;
  }
  for (; k < count; ++k) {
    const V column = load<V>(w + k * w_step);
    UMBRA_UNROLL
    for (int r = 0; r < rows; ++r)
      total[r][0] = in_order(add_product(total[r][0], fill<V>(row[r][k * x_step]), column));
  }
  end_sums(tile, total, kept, kept_row, unfinished, there);
}

// The same of the first `lanes` columns of a packet; nothing else is read of w.
template <int rows, typename V>
UMBRA_OUTLINE void add_products_head(V (&tile)[rows], Elem<V>* kept, i64 kept_row, bool resumed, bool unfinished,
                                     const Elem<V>* x, i64 by_row, int there, i64 x_step, const Elem<V>* w, i64 w_step,
                                     i64 count, i64 lanes) {
  V total[rows][1];
  begin_sums(total, kept, kept_row, resumed, there);
  const Elem<V>* row[rows];
  find_rows(row, x, by_row, there);
  for (i64 k = 0; k < count; ++k) {
    const V column = load_head<V>(w + k * w_step, lanes);
    UMBRA_UNROLL
    for (int r = 0; r < rows; ++r)
      total[r][0] = in_order(add_product(total[r][0], fill<V>(row[r][k * x_step]), column));
  }
  end_sums(tile, total, kept, kept_row, unfinished, there);
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_TILE_H_

// Panels: the columns that the rows of tiles share, copied so that those of a tile lie side by side. In a matrix they
// would lie rows apart, on as many pages and in few sets of the caches.
#ifndef UMBRA_PRELUDE_PANEL_H_
#define UMBRA_PRELUDE_PANEL_H_

#include "umbra/prelude/memory.h"

namespace umbra::simd {

// Of `count` steps, `packets` packets of `width` columns: panel[(k * packets + c) * width + j] from p[k * by_step +
// (c * width + j) * by_column], or 0 of a column beyond the first `columns`, of which nothing is read.
template <int width, int packets, typename T>
UMBRA_OUTLINE void pack_panel(T* to, const T* from, i64 count, i64 by_step, i64 by_column, i64 columns) {
  typedef typename BitsOfSize<sizeof(T)>::type Bit;
  typedef packet<Bit, width> V;
  constexpr i64 step = width * packets;
  Bit* panel = reinterpret_cast<Bit*>(to);
  const Bit* p = reinterpret_cast<const Bit*>(from);
  if (by_column == 1 && columns == step) {
    for (i64 k = 0; k < count; ++k)
      for (int c = 0; c < packets; ++c) store(panel + k * step + c * width, load<V>(p + k * by_step + c * width));
    return;
  }
  for (int c = 0; c < packets; ++c) {
    const Bit* first = p + c * width * by_column;
    const i64 lanes = smaller(larger(columns - c * width, 0), width);
    i64 k = 0;
    if (by_column == 1) {
      for (; k < count; ++k) store(panel + k * step + c * width, load_head<V>(first + k * by_step, lanes));
    } else if (by_step == 1) {
      for (; lanes == width && k + width <= count; k += width) {
        V tile[width];
        for (int m = 0; m < width; ++m) tile[m] = load<V>(first + k + m * by_column);
        zip_tile(tile);
        for (int m = 0; m < width; ++m) store(panel + (k + m) * step + c * width, tile[m]);
      }
      for (; k < count; k += width) {  // parts of tiles: columns that are not there are zero
        const i64 left = smaller(count - k, width);
        V tile[width];
        for (int m = 0; m < width; ++m) tile[m] = load_head<V>(first + k + m * by_column, m < lanes ? left : 0);
        zip_tile(tile);
        for (int m = 0; m < width; ++m)
          if (m < left) store(panel + (k + m) * step + c * width, tile[m]);
      }
    }
    for (; k < count; ++k)
      for (i64 j = 0; j < width; ++j)
        panel[k * step + c * width + j] = j < lanes ? first[k * by_step + j * by_column] : Bit();
  }
}

}  // namespace umbra::simd

#endif  // UMBRA_PRELUDE_PANEL_H_

// Layouts of batches of signals, pictures and volumes, and shapes brought from one to another, as mshadow's.
#ifndef UMBRA_LAYOUT_H_
#define UMBRA_LAYOUT_H_

#include <array>

#include "umbra/shape.h"

namespace umbra {

/// Order of the axes: n batch, c channels, d depth, h height, w width. Names and meaning as mshadow's.
enum LayoutFlag { kNCHW = 0, kNHWC, kCHWN, kNCW = 1 << 3, kNWC, kCWN, kNCDHW = 1 << 5, kNDHWC, kCDHWN };

namespace detail {
// Where n, c and the spatial axes stand in a layout of `rank` axes: 0 first, 1 second ...; the batch
// and the channels lead (NC...), enclose (N...C), or the batch is last (C...N).
template <int rank>
inline std::array<int, rank> PlacesIn(int layout) {
  const int first = rank == 3 ? kNCW : rank == 4 ? kNCHW : kNCDHW;
  Require(layout >= first && layout <= first + 2, "ConvertLayout: layout ", layout, " is none of a shape of ", rank,
          " axes; expected ",
          rank == 3   ? "kNCW, kNWC or kCWN"
          : rank == 4 ? "kNCHW, kNHWC or kCHWN"
                      : "kNCDHW, kNDHWC or kCDHWN");
  std::array<int, rank> place{};
  const int form = layout - first;
  place[0] = form == 2 ? rank - 1 : 0;
  place[1] = form == 0 ? 1 : form == 1 ? rank - 1 : 0;
  for (int s = 2; s < rank; ++s) place[static_cast<std::size_t>(s)] = form == 0 ? s : s - 1;
  return place;
}
}  // namespace detail

/// The shape `src` of layout `src_layout` in layout `dst_layout`: (n, c, h, w) of kNCHW is (n, h, w, c) of kNHWC.
/// Throws umbra::Error if a layout is not one of as many axes. mshadow's ConvertLayout.
template <int rank>
inline Shape<rank> ConvertLayout(const Shape<rank>& src, int src_layout, int dst_layout) {
  static_assert(rank >= 3 && rank <= 5, "umbra: layouts are of shapes of 3, 4 or 5 axes");
  const auto from = detail::PlacesIn<rank>(src_layout), to = detail::PlacesIn<rank>(dst_layout);
  Shape<rank> dst;
  for (std::size_t s = 0; s < rank; ++s) dst[to[s]] = src[from[s]];
  return dst;
}

}  // namespace umbra

#endif  // UMBRA_LAYOUT_H_

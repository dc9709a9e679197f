// Running reductions: each element is what those before it and itself come to.
#ifndef UMBRA_INDEX_MAP_SCAN_H_
#define UMBRA_INDEX_MAP_SCAN_H_

#include "umbra/index_map/window.h"

namespace umbra::index_map {

/// scan<R>(x, axis): R over the elements up to this one along an axis.
template <typename R>
struct scan : Elementwise {
  static constexpr bool kScans = true;
  static constexpr int kParams = 1;
  int axis;
  explicit scan(const index_t* p) : axis(static_cast<int>(p[0])) {}
  void Check(const int* ranks) const { RequireAxis("scan", axis, ranks[0]); }
  template <typename C>
  auto Value(C& c) const {
    const auto join = [&](auto by) { return c.template Scan<decltype(by)>(axis); };
    return Joined<R>(c, join, [&] { return c.FromPosition(c.at(axis) + 1); });
  }
};

}  // namespace umbra::index_map

#endif  // UMBRA_INDEX_MAP_SCAN_H_

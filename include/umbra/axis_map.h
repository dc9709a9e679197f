// Axis maps: what broadcasts, reductions and the transpose mean. Each is one function that says which axis of its
// source every axis of its result is; from it follow eager plans, and graphs, the interpreter and every generator.
// Axes of the source that are none of the result's are joined by a reducer; without one they have extent 1.
#ifndef UMBRA_AXIS_MAP_H_
#define UMBRA_AXIS_MAP_H_

#include <string_view>

namespace umbra::index_map {

/// Of an axis of a result: it is none of the source's, whose elements repeat along it.
inline constexpr int kRepeated = -1;
/// Of an axis of a result: it is none of the source's, and of extent 1.
inline constexpr int kOne = -2;

/// From(d, axis, source_rank, rank) of an axis map: the axis of a source of rank `source_rank` that axis d of the
/// result, of rank `rank`, is; or kRepeated, or kOne. `axis` is the one that the map takes.
using AxisMap = int (*)(int d, int axis, int source_rank, int rank);

/// broadcast<axis>(v, shape): the axes of v as axes `axis`, axis + 1, ... of a larger shape.
struct broadcast {
  /// See AxisMap; so of all below.
  static constexpr int From(int d, int axis, int source_rank, int) {
    return axis <= d && d < axis + source_rank ? d - axis : kRepeated;
  }
};
/// broadcast_scalar(v, shape): the only element of v everywhere.
struct broadcast_scalar {
  /// kRepeated, always.
  static constexpr int From(int, int, int, int) { return kRepeated; }
};
/// x.T(): all axes reversed.
struct transpose {
  /// Counted from the other end.
  static constexpr int From(int d, int, int, int rank) { return rank - 1 - d; }
};
/// reduce_with_axis<R>(x, axis): joined along one axis, which is gone; of a vector as a tensor, one element is left.
struct reduce_with_axis {
  /// Those behind `axis` move up.
  static constexpr int From(int d, int axis, int source_rank, int) {
    const int from = d < axis ? d : d + 1;
    return from < source_rank ? from : kOne;
  }
};
/// reduce_keepdim<R>(x, axis): the same with extent 1 left in its place.
struct reduce_keepdim {
  /// Itself, but for `axis`.
  static constexpr int From(int d, int axis, int, int) { return d == axis ? kOne : d; }
};
/// reduce_except_dim<axis, R>(x): joined along all axes but one.
struct reduce_except_dim {
  /// `axis`.
  static constexpr int From(int, int axis, int, int) { return axis; }
};

/// Is axis `from` of a source of rank `source_rank` none of the result's?
constexpr bool Joins(AxisMap map, int from, int axis, int source_rank, int rank) {
  for (int d = 0; d < rank; ++d)
    if (map(d, axis, source_rank, rank) == from) return false;
  return true;
}

/// The axis map of that name; null if there is none.
inline AxisMap FindAxisMap(std::string_view name) {
  constexpr struct {
    std::string_view name;
    AxisMap map;
  } kMaps[] = {{"broadcast", broadcast::From},           {"broadcast_scalar", broadcast_scalar::From},
               {"transpose", transpose::From},           {"reduce_with_axis", reduce_with_axis::From},
               {"reduce_keepdim", reduce_keepdim::From}, {"reduce_except_dim", reduce_except_dim::From}};
  for (const auto& known : kMaps)
    if (known.name == name) return known.map;
  return nullptr;
}

}  // namespace umbra::index_map

#endif  // UMBRA_AXIS_MAP_H_

// Gathers whose positions move evenly along a packet: they are loads, of the lanes that a guard leaves.
#ifndef UMBRA_COMPILER_CODEGEN_SPANS_H_
#define UMBRA_COMPILER_CODEGEN_SPANS_H_

#include <functional>
#include <optional>
#include <vector>

#include "compiler/plan/plan.h"

namespace umbra::codegen {

/// The lanes k of a packet with `less` < `greater` (or equal), where less - greater grows by `slope` from
/// lane to lane; `slope` is not 0.
struct LaneBound {
  int less = 0, greater = 0;  ///< values, i64
  bool or_equal = false;
  long long slope = 0;
};

/// A condition on positions as one run of lanes: all of `uniform` hold, and each of `bounds`.
struct LaneRun {
  std::vector<int> uniform;  ///< conditions that are the same for all lanes
  std::vector<LaneBound> bounds;
};

/// A gather as a walk through memory: from lane to lane its position in dimension d grows by slopes[d].
struct Span {
  std::vector<long long> slopes;
  LaneRun run;  ///< of its guard
};

using IsAlike = std::function<bool(int value)>;

/// By how much the i64 `id` grows from lane to lane, if evenly.
std::optional<long long> FindSlope(const plan::Kernel& kernel, int id, const IsAlike& is_alike);
/// The condition `id` as a run of lanes, if it is one.
std::optional<LaneRun> FindLaneRun(const plan::Kernel& kernel, int id, const IsAlike& is_alike);
/// The gather `id` as a span, if it is one.
std::optional<Span> FindSpan(const plan::Kernel& kernel, int id, const IsAlike& is_alike);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_SPANS_H_

// Gathers whose positions move evenly along a packet: they are loads, of the lanes that a guard leaves.
#ifndef UMBRA_COMPILER_CODEGEN_SPANS_H_
#define UMBRA_COMPILER_CODEGEN_SPANS_H_

#include <cstddef>
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
  bool of_equation = false;  ///< of two, the other the other way round: where their difference wraps around, none holds
};

/// A condition on positions as one run of lanes: all of `uniform` hold, and each of `bounds`. If `period` is not 0, the
/// run is one of remainders: that of lane k is what `dividend`, which grows by 1 from lane to lane, leaves of `period`.
struct LaneRun {
  std::vector<int> uniform;  ///< conditions that are the same for all lanes
  std::vector<LaneBound> bounds;
  int period = 0, dividend = 0;
};

/// A gather as a walk through memory: from lane to lane its position in dimension d grows by slopes[d]. If
/// `repeats` is not 1, the last one's grows by 1 each time that `dividend`, which grows from lane to lane and
/// is not negative where the guard holds, passes a multiple of `repeats`. If `group` is not 0, a group of lanes reads
/// one group of elements: index i of the vector axis, r past a multiple of `group`, has the position begin + first +
/// step * r in the last dimension, where begin is a multiple of `group`, and what is added is less. It is i - r + away,
/// if `away` is known.
struct Span {
  std::vector<long long> slopes;
  int repeats = 1, dividend = 0;
  int group = 0;
  long long first = 0, step = 0;
  std::optional<long long> away;
  int pairs = -1;  ///< where the last slope is 2, an axis of 2 along which only the last position grows, by 1
  LaneRun run;  ///< of its guard
};

/// Do its lanes lie side by side, if elements of the operand's last dimension do?
bool IsByOne(const Span& span);

/// Where positions are divided, as a reshape does, or choose between sources, as a concatenation does, the
/// quotients and the choices stay the same for a run of the vector axis: within it all other positions grow
/// evenly.
struct Runs {
  std::vector<int> quotients;  ///< divisions whose dividend grows by 1
  std::vector<int> walks;  ///< divisions that stay the same, by what stays the same from run to run, too
  std::vector<LaneBound> choices;  ///< conditions that choose, with a slope of 1 or -1
  std::vector<int> alike;  ///< all values that are the same along a run, in order of evaluation
  long long granule = 0;  ///< runs begin and end at multiples of it, or where the axis ends; 0: of any number
  bool empty() const { return quotients.empty() && choices.empty(); }
};

/// A condition that is the hardest to meet at a corner of some axes: `less` < `greater` (or equal), where
/// less - greater grows by slopes[k] along the k-th of them; or any condition that is the same for all points, `less`,
/// if there is no `greater`.
struct BoxBound {
  int less = 0, greater = -1;
  bool or_equal = false;
  std::vector<long long> slopes;
  bool operator==(const BoxBound&) const = default;
};

using IsAlike = std::function<bool(int value)>;

/// By how much the i64 `id` grows from lane to lane, if evenly.
std::optional<long long> FindSlope(const plan::Kernel& kernel, int id, const IsAlike& is_alike);
/// Is the i64 `id` 0 wherever the vector axis stands at a multiple of the period with which it returns to that?
bool IsRemainder(const plan::Kernel& kernel, int id, const IsAlike& is_alike);
/// The runs of a phase's vector loop; empty if there is nothing to gain. `in_packets`: is the value needed as a
/// packet?
Runs FindRuns(const plan::Kernel& kernel, const plan::Phase& phase, const IsAlike& is_alike,
              const std::function<bool(int value)>& in_packets);
/// Adds what the condition `id` comes to for all points of the `axes`; false if that is not known. `is_alike`: is the
/// value the same along the axis?
bool FindBoxBounds(const plan::Kernel& kernel, int id, const std::vector<int>& axes,
                   const std::function<bool(int value, int axis)>& is_alike, std::vector<BoxBound>* bounds);
/// The condition `id` as a run of lanes, if it is one.
std::optional<LaneRun> FindLaneRun(const plan::Kernel& kernel, int id, const IsAlike& is_alike);
/// The gather `id` as a span, if it is one.
std::optional<Span> FindSpan(const plan::Kernel& kernel, int id, const IsAlike& is_alike);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_SPANS_H_

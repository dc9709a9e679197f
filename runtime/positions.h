// What the positions that a kernel computes with can be in a launch.
#ifndef UMBRA_RUNTIME_POSITIONS_H_
#define UMBRA_RUNTIME_POSITIONS_H_

#include <cstddef>
#include <vector>

#include "umbra/program.h"

namespace umbra::runtime {

/// What 32-bit offsets and positions stay below: there is room for several steps beyond the end.
inline constexpr index_t kIndexLimit = (index_t{1} << 31) - (index_t{1} << 27);

/// Are the positions, and all that they are computed from, above -limit and below limit, which is 2^31 at most?
/// `extents` are those of the `rank` axes, then the numbers. May say no of some that are, and does where an axis is
/// empty.
bool PositionsStayWithin(index_t limit, const std::vector<Position>& positions, std::size_t rank,
                         const std::vector<index_t>& extents);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_POSITIONS_H_

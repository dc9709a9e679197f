// What the positions that a kernel computes with can be in a launch.
#ifndef UMBRA_RUNTIME_CUDA_POSITIONS_H_
#define UMBRA_RUNTIME_CUDA_POSITIONS_H_

#include <cstddef>
#include <vector>

#include "umbra/cuda_launch.h"

namespace umbra::runtime {

/// Are the positions, and all that they are computed from, above -limit and below limit, which is 2^31 at most? `extents`
/// are those of the `rank` axes, then the numbers. May say no of some that are.
bool PositionsStayWithin(index_t limit, const std::vector<CudaPosition>& positions, std::size_t rank,
                         const std::vector<index_t>& extents);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_CUDA_POSITIONS_H_

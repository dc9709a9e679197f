// Extents that a call brings, and that a kernel which knows them is faster for.
#ifndef UMBRA_COMPILER_PLAN_OPEN_ROWS_H_
#define UMBRA_COMPILER_PLAN_OPEN_ROWS_H_

#include <cstdint>
#include <vector>

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Axes that are to have so many points at most, all of them together.
struct FewPoints {
  std::vector<runtime::Extent> axes;
  std::int64_t most = 0;
};

/// An open extent of rows, or of what a window moves over: where calls bring few elements, or no more than the window
/// has, a kernel that knows how many is faster.
struct OpenRows {
  int symbol = 0;  ///< of the extent
  std::vector<runtime::Extent> axes;  ///< all of the kernel's
  std::int64_t least = 0, most = 0;  ///< elements of rows for which that is so
  std::vector<FewPoints> few = {};  ///< and what else has to be so
};

/// Those of the plan's kernels.
std::vector<OpenRows> FindOpenRows(const Plan& plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_OPEN_ROWS_H_

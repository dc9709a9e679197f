// Which axes of a kernel that computes with positions may be shared out among threads.
#ifndef UMBRA_COMPILER_PLAN_RANGES_H_
#define UMBRA_COMPILER_PLAN_RANGES_H_

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Fills KernelSignature::ranged of positional kernels: all their row axes, so that pictures of one batch are shared
/// out by channels or rows, and the axis of long rows that nothing is reduced along.
void FindRanges(Plan* plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_RANGES_H_

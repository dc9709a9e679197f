// Products of matrices by a BLAS, or by a generated kernel where that is faster.
#ifndef UMBRA_COMPILER_PLAN_SUM_STEPS_H_
#define UMBRA_COMPILER_PLAN_SUM_STEPS_H_

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Puts a kernel behind each product that computes the same, and with it what one elementwise kernel makes of it, while
/// sums are in registers, and what a cheap one does to make the right factor for it alone (KernelSignature::replaces);
/// unless the extents that are known say that no call would choose it. A launch runs one or the other.
void AddSums(Plan* plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_SUM_STEPS_H_

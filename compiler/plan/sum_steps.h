// Products of matrices whose extents only a call brings: such that BLAS is faster, or a generated kernel.
#ifndef UMBRA_COMPILER_PLAN_SUM_STEPS_H_
#define UMBRA_COMPILER_PLAN_SUM_STEPS_H_

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Puts a kernel behind each product that computes the same (KernelSignature::product), unless the extents that are
/// known say that no call would choose it. A launch runs one of the two.
void AddSums(Plan* plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_SUM_STEPS_H_

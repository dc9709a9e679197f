// Which steps of a plan run as one: a product of matrices with what makes its rows and what reads them, block
// of rows by block; kernels that do not need each other, in one parallel region.
#ifndef UMBRA_COMPILER_PLAN_GROUP_STEPS_H_
#define UMBRA_COMPILER_PLAN_GROUP_STEPS_H_

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Orders the steps into `plan->groups`, and gives results of products that the next kernel overwrites their
/// place in an output.
void GroupSteps(Plan* plan);

/// Each step of a group of rows by itself, in the same order, as a GPU runs them: there a temporary has memory of its
/// own.
void UngroupRows(Plan* plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_GROUP_STEPS_H_

// Reductions of columns that may be few.
#ifndef UMBRA_COMPILER_PLAN_FEW_COLUMNS_H_
#define UMBRA_COMPILER_PLAN_FEW_COLUMNS_H_

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Marks the kernels (KernelSignature::few_columns) whose packets may hold several steps of few columns, as the three
/// channels of pixels are: what moves from step to step does so along the columns, too, and nothing depends on which
/// step it is.
void FindFewColumns(Plan* plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_FEW_COLUMNS_H_

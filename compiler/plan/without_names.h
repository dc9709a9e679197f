// What the machine code of a kernel depends on.
#ifndef UMBRA_COMPILER_PLAN_WITHOUT_NAMES_H_
#define UMBRA_COMPILER_PLAN_WITHOUT_NAMES_H_

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// A kernel alone in its plan, neither with names of the user's. Kernels of one plan that differ in their operands only
/// are the same then.
struct Unnamed {
  Plan plan;
  Kernel kernel;
};
Unnamed WithoutNames(const Plan& plan, const Kernel& kernel);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_WITHOUT_NAMES_H_

// Runs a Plan as it stands, one point after the other: the meaning that every generator is checked
// against.
#ifndef UMBRA_COMPILER_PLAN_INTERPRET_H_
#define UMBRA_COMPILER_PLAN_INTERPRET_H_

#include "compiler/plan/plan.h"
#include "umbra/function.h"

namespace umbra::plan {

/// Computes the outputs of `plan`. Arithmetic is done in each value's own dtype, with the prelude's
/// functions; float sums go through f64 (long double for f64) and are rounded once.
/// Checks the operands as a launch does.
void Interpret(const Plan& plan, const runtime::Arguments& arguments);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_INTERPRET_H_

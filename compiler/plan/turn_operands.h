// Operands that a kernel would read across memory, an element at a time.
#ifndef UMBRA_COMPILER_PLAN_TURN_OPERANDS_H_
#define UMBRA_COMPILER_PLAN_TURN_OPERANDS_H_

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Has operands whose elements lie across the packets of a kernel that reduces, or computes with positions, turned to
/// memory before, by tiles: an element at a time, each from a line of its own, takes many times as long. Not those that
/// tiles turn themselves (KernelSignature::panels), nor short rows. For processors.
void TurnOperands(Plan* plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_TURN_OPERANDS_H_

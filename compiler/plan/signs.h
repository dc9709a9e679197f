// What is known of numbers of a kernel, whatever the operands.
#ifndef UMBRA_COMPILER_PLAN_SIGNS_H_
#define UMBRA_COMPILER_PLAN_SIGNS_H_

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Is the value, a float, at most 0, or NaN? Such are x less the maximum of all x, as softmax has it, -abs(x), and what
/// is made of them so that it stays so.
bool IsAtMostZero(const Kernel& kernel, int value);

/// Is the value, a float, used for nothing but sums with constants of 1 and more?
bool IsAddedToOne(const Kernel& kernel, int value);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_SIGNS_H_

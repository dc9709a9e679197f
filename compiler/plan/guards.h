// Reductions in which a step counts for the rows that have its key, as in `sum(select(key[i] == row, x[i, c], 0))`: a
// loop over steps asks once for each whether it counts, and goes on to the next if it does not.
#ifndef UMBRA_COMPILER_PLAN_GUARDS_H_
#define UMBRA_COMPILER_PLAN_GUARDS_H_

#include <optional>

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// A number that each step brings, and the row axis: the step counts for the row at that position, at most.
struct StepKey {
  int value, row_axis;
};
std::optional<StepKey> FindStepKey(const Kernel& kernel, const Phase& phase);

/// Gives phases their guards. What they reduce is then what it is where the guard holds; elsewhere it was what leaves
/// any result as it is, to the bit. Packets may come to go along the last row axis, so that a guard is one for all
/// lanes, or, `across_one`, along one of one index behind it: the rows are many then, as those of a histogram, and to
/// count a step for its row takes less than to ask all rows.
void FindGuards(Kernel* kernel, bool across_one);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_GUARDS_H_

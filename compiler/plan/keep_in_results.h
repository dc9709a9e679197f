// What a kernel of columns computes, and needs again in a later phase, is kept where a result will be, instead of being
// computed again.
#ifndef UMBRA_COMPILER_PLAN_KEEP_IN_RESULTS_H_
#define UMBRA_COMPILER_PLAN_KEEP_IN_RESULTS_H_

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Of kernels whose packets go across what they reduce: values of elements that are dear (the exponentials of a
/// softmax) are stored in the place of a result of the same dtype, and read there by the phase that stores this. For
/// CPUs: a GPU computes them sooner than it writes and reads them.
void KeepInResults(Plan* plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_KEEP_IN_RESULTS_H_

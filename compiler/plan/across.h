// Values that are better in memory, as their readers go across what they gather along.
#ifndef UMBRA_COMPILER_PLAN_ACROSS_H_
#define UMBRA_COMPILER_PLAN_ACROSS_H_

#include <set>

#include "compiler/graph/graph.h"
#include "compiler/plan/fuse.h"

namespace umbra::plan {

/// The operands of transposes that the kernels of `fusion` without reductions would gather across memory, lane by lane,
/// though they lie along it (a flip, a slice, patches, pictures side by side): from memory they are turned by tiles.
/// And columns of matrices that they would gather again for each row of their results. For CPUs.
std::set<int> FindAcross(const graph::Graph& graph, const Fusion& fusion);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_ACROSS_H_

// How large one kernel may become: a larger one takes minutes to compile and more registers and operands
// than any machine has.
#ifndef UMBRA_COMPILER_PLAN_BUDGET_H_
#define UMBRA_COMPILER_PLAN_BUDGET_H_

#include <set>
#include <vector>

#include "compiler/graph/graph.h"

namespace umbra::plan {

/// Work per element, in additions, that one kernel does at most. A kernel of this size is far from waiting
/// for memory; a larger one takes disproportionately long to compile.
inline constexpr int kMaxWork = 1024;
/// Tensors that one kernel reads at most: of many more streams the caches and prefetchers lose track, and
/// pointers no longer fit in registers. (A sum of 500 tensors takes a third longer in kernels of 64.)
inline constexpr int kMaxOperands = 16;
/// And those that the kernels read which one with more is cut into: fewer streams are faster, if there has to be more
/// than one kernel anyway.
inline constexpr int kMaxOperandsOfPart = 8;

/// Work of one node for one element.
int WorkOf(const graph::Node& node);

/// Adds to `roots`, the values that live in memory, as many as it takes that the computation of each `live`
/// node from others is within the budget.
void KeepWithinBudget(const graph::Graph& graph, const std::vector<bool>& live, std::set<int>* roots);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_BUDGET_H_

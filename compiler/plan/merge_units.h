// Which units become one kernel: those over one domain that share operands or feed each other at one point.
#ifndef UMBRA_COMPILER_PLAN_MERGE_UNITS_H_
#define UMBRA_COMPILER_PLAN_MERGE_UNITS_H_

#include "compiler/plan/fuse.h"

namespace umbra::plan {

/// The nodes in memory that a unit reads: inputs and roots of other units.
std::set<int> NodesRead(const graph::Graph& graph, const Fusion& fusion, const Unit& unit);

/// Joins what fits of `fusion->units`, orders them so that they can run, and notes why neighbours stay apart.
void MergeUnits(const graph::Graph& graph, Fusion* fusion);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_MERGE_UNITS_H_

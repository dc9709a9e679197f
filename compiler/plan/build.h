// Graph to Plan: shapes become loops, values are gathered into kernels.
#ifndef UMBRA_COMPILER_PLAN_BUILD_H_
#define UMBRA_COMPILER_PLAN_BUILD_H_

#include "compiler/graph/graph.h"
#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Plans every output of `graph`: elementwise chains, broadcasts and transposes are inlined,
/// reductions are fused with the work on the same rows, dots become GEMM steps.
Plan Build(const graph::Graph& graph, bool on_gpu);

/// What the runtime needs to know of `plan`; the kernels are without code.
runtime::Program ToProgram(const Plan& plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_BUILD_H_

// Graph to Plan: the list of passes, from top to bottom.
#ifndef UMBRA_COMPILER_DRIVER_LOWER_H_
#define UMBRA_COMPILER_DRIVER_LOWER_H_

#include "compiler/graph/graph.h"
#include "compiler/plan/plan.h"
#include "umbra/compile.h"

namespace umbra {

/// Simplifies and plans `graph`. With UMBRA_TRACE=1 in the environment, what each pass made and
/// the time that it took go to standard error. On a GPU, products of 16-bit floats need no wider copies,
/// and may do what follows them; `math` says which of that.
plan::Plan Lower(const graph::Graph& graph, bool on_gpu = false, Math math = Math::kStrict);

}  // namespace umbra

#endif  // UMBRA_COMPILER_DRIVER_LOWER_H_

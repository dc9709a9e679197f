// Programs for the extents that a call brings, where it pays to know them when compiling.
#ifndef UMBRA_COMPILER_DRIVER_KNOWN_EXTENTS_H_
#define UMBRA_COMPILER_DRIVER_KNOWN_EXTENTS_H_

#include <memory>

#include "compiler/plan/plan.h"
#include "umbra/compile.h"

namespace umbra {

/// Gives `program`, which is that of `plan` and `graph`, Program::for_extents if the plan has open extents of rows. Where a
/// call has many rows and they are short, it compiles the graph with those extents known, once for each of their values.
void KnowShortRows(const std::shared_ptr<const graph::Graph>& graph, const plan::Plan& plan, const CompileOptions& options,
                   runtime::Program* program);

}  // namespace umbra

#endif  // UMBRA_COMPILER_DRIVER_KNOWN_EXTENTS_H_

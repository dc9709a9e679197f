// Programs for the extents that a call brings, where it pays to know them when compiling.
#ifndef UMBRA_COMPILER_DRIVER_KNOWN_EXTENTS_H_
#define UMBRA_COMPILER_DRIVER_KNOWN_EXTENTS_H_

#include <memory>
#include <vector>

#include "compiler/plan/plan.h"
#include "umbra/compile.h"

namespace umbra {

/// The graph with those extents known that it pays to know for calls with the extents `symbols` of its plan (-1: not
/// known); null if there are none. It pays where rows are many and short.
std::shared_ptr<const graph::Graph> WithKnownRows(const graph::Graph& graph, const plan::Plan& plan,
                                                  const std::vector<index_t>& symbols);

/// Gives `program`, which is that of `plan` and `graph`, Program::for_extents if the plan has open extents of rows: the
/// program of WithKnownRows, compiled once for each of the extents that are known.
void KnowShortRows(const std::shared_ptr<const graph::Graph>& graph, const plan::Plan& plan,
                   const CompileOptions& options, runtime::Program* program);

}  // namespace umbra

#endif  // UMBRA_COMPILER_DRIVER_KNOWN_EXTENTS_H_

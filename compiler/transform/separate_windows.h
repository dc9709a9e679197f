// Windows of two dimensions that are reduced along one after the other.
#ifndef UMBRA_COMPILER_TRANSFORM_SEPARATE_WINDOWS_H_
#define UMBRA_COMPILER_TRANSFORM_SEPARATE_WINDOWS_H_

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// A sum, maximum or minimum over large overlapping windows, as a pool takes, becomes that of columns of what rows of
/// the windows come to: of k by k elements, k and k are read for each result, and one is kept in memory.
Graph SeparateWindows(const Graph& graph);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_SEPARATE_WINDOWS_H_

// Local rewrites that keep every bit of the result.
#ifndef UMBRA_COMPILER_TRANSFORM_SIMPLIFY_H_
#define UMBRA_COMPILER_TRANSFORM_SIMPLIFY_H_

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// Folds constants in their dtype, removes x * 1, x / 1, x - 0, double negations, transposes of
/// transposes, selections by a condition that is decided already, comparisons of positions that
/// always hold and quotients of them that need no division (Positions) and values that no output needs. No floats are
/// reassociated. Inputs and scalars stay, read or not, because callers pass them by position.
Graph Simplify(const Graph& graph);

/// The rewrites of whole numbers alone, which positions are made of.
Graph SimplifyPositions(const Graph& graph);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_SIMPLIFY_H_

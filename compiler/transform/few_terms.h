// Sums of a few terms that need no loop of their own.
#ifndef UMBRA_COMPILER_TRANSFORM_FEW_TERMS_H_
#define UMBRA_COMPILER_TRANSFORM_FEW_TERMS_H_

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// A sum along a dimension of at most kFewTerms of what is computed for all pairs of two sets, as the square of the
/// distance of each point to each other one is, becomes its terms, one added to the other, of the columns of what these
/// sets are. What reads it may then be reduced along other dimensions by the same kernel.
Graph SumFewTerms(const Graph& graph);

/// Coordinates of points, and of rays and planes.
inline constexpr index_t kFewTerms = 4;

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_FEW_TERMS_H_

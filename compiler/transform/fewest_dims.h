// What is dear is computed in the dimensions along which it differs.
#ifndef UMBRA_COMPILER_TRANSFORM_FEWEST_DIMS_H_
#define UMBRA_COMPILER_TRANSFORM_FEWEST_DIMS_H_

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// A dear map (more than kCheap) of what broadcasts, indices and numbers make alike along some dimensions, as the sine
/// of positions times frequencies is for each head, becomes a broadcast of the same map without these dimensions: what
/// it costs is weighed against keeping it, and no one computes it anew along them unless that is cheaper.
Graph InFewestDims(const Graph& graph);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_FEWEST_DIMS_H_

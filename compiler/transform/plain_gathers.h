// Index maps that are plain nodes of a graph.
#ifndef UMBRA_COMPILER_TRANSFORM_PLAIN_GATHERS_H_
#define UMBRA_COMPILER_TRANSFORM_PLAIN_GATHERS_H_

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// A gather that only exchanges axes becomes a transpose; one that repeats its source along new axes, or along those of
/// extent 1 that reductions have kept, a broadcast of the value without them. One with a guard becomes a selection of
/// that, but, not on GPUs, of parts that are written where they lie in the whole (GathersOfSharedParts).
Graph PlainGathers(const Graph& graph, bool on_gpu);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_PLAIN_GATHERS_H_

// Index maps of index maps read the first source directly.
#ifndef UMBRA_COMPILER_TRANSFORM_COMPOSE_GATHERS_H_
#define UMBRA_COMPILER_TRANSFORM_COMPOSE_GATHERS_H_

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// A gather whose source only moves elements, or computes little with them, becomes that computation at the
/// gather's positions: the concatenation of four tensors, or the patches of a padded picture, need no tensor
/// in between. A source that is an output, or costs more than reading it from memory, stays.
Graph ComposeGathers(const Graph& graph);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_COMPOSE_GATHERS_H_

// Index maps of index maps read the first source directly.
#ifndef UMBRA_COMPILER_TRANSFORM_COMPOSE_GATHERS_H_
#define UMBRA_COMPILER_TRANSFORM_COMPOSE_GATHERS_H_

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// Of concatenations of concatenations one, which takes each element from the operand that has it: what of several
/// operands is to be computed before is told apart so, and none is copied once for each that comes after it.
Graph JoinAtOnce(const Graph& graph);

/// A gather whose source only moves elements, or computes little with them, becomes that computation at the
/// gather's positions: the concatenation of four tensors, or the patches of a padded picture, need no tensor
/// in between. So does one of more work whose elements gathers alone read, each about once: a slice, or a reversed or
/// padded one; and one of a few elements for each index of the first axes, which are at hand together: columns that are
/// put side by side. A source that is an output, or would be computed more often, stays, and so does a transpose that
/// would be read against the order of memory, and, but on GPUs, what is joined in memory (IsJoinedInMemory) or is an
/// input with more dimensions (PartsOfSource), or is there with dimensions joined (PartsOfResult).
Graph ComposeGathers(const Graph& graph, bool on_gpu);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_COMPOSE_GATHERS_H_

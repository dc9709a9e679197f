// The part that all passes share which write a graph anew.
#ifndef UMBRA_COMPILER_TRANSFORM_COPY_NODE_H_
#define UMBRA_COMPILER_TRANSFORM_COPY_NODE_H_

#include <vector>

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// Adds `node` of another graph to `graph`, with its operands' numbers there.
int CopyNode(Graph* graph, const Node& node, std::vector<int> inputs);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_COPY_NODE_H_

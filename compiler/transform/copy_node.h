// The part that all passes share which write a graph anew.
#ifndef UMBRA_COMPILER_TRANSFORM_COPY_NODE_H_
#define UMBRA_COMPILER_TRANSFORM_COPY_NODE_H_

#include <functional>
#include <vector>

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// Adds `node` of another graph to `graph`, with its operands' numbers there.
int CopyNode(Graph* graph, const Node& node, std::vector<int> inputs);

/// By node: do outputs need it? Inputs and scalars stay, whoever reads them.
std::vector<bool> LiveNodes(const Graph& graph);

/// What becomes of a node of the source, of these operands in the new graph: its number there.
using Rewrite = std::function<int(const Node& node, std::vector<int> inputs)>;
/// Fills `result`, which is new, with what `rewrite` makes of the nodes of `source` that an output needs, and of all of
/// its operands, in order, under their names. `output`, if given, makes of a node of the source, and of what became of
/// it, the output.
void RewriteNodes(const Graph& source, const Rewrite& rewrite, Graph* result,
                  const std::function<int(const Node& node, int made)>& output = nullptr);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_COPY_NODE_H_

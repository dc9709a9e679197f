#include "compiler/plan/views.h"

#include <algorithm>
#include <set>

#include "compiler/transform/axis_parts.h"

namespace umbra::plan {

using graph::Node;

Views FindViews(const graph::Graph& graph) {
  Views views;
  graph::PositionForms forms(graph);
  std::set<int> outputs;
  for (const graph::Output& output : graph.outputs()) outputs.insert(output.node);
  std::set<int> computed = outputs;  // though they may be others with more dimensions
  // A computed value that is gathered is in memory anyway.
  const auto is_in_memory = [&](int id) {
    const int from = graph.node(id).inputs[0];
    const Node::Kind kind = graph.node(from).kind;
    return kind != Node::Kind::kInput && kind != Node::Kind::kGather && outputs.count(id) + outputs.count(from) == 0;
  };
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (graph.node(id).kind != Node::Kind::kGather) continue;
    // What is such a view itself nothing computes, as that could be written elsewhere, too.
    if (views.writes.count(graph.node(id).inputs[0]) != 0) continue;
    if (!is_in_memory(id) && !graph::IsJoinedInMemory(graph, id, &forms)) continue;
    const auto parts = graph::PartsOfResult(graph, graph.node(id), &forms);
    if (!parts) continue;
    views.writes.emplace(id, *parts);
    computed.insert(graph.node(id).inputs[0]);
  }
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.kind != Node::Kind::kGather || computed.count(id) != 0) continue;
    if (const auto parts = graph::PartsOfSource(graph, node, &forms)) views.reads.emplace(id, *parts);
  }
  return views;
}

}  // namespace umbra::plan

#include "compiler/plan/views.h"

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "compiler/transform/axis_parts.h"

namespace umbra::plan {

using graph::Node;

namespace {

std::uint32_t GoesOn(const std::vector<int>& part_of) {
  std::uint32_t goes_on = 0;
  for (std::size_t d = 1; d < part_of.size(); ++d)
    if (part_of[d] == part_of[d - 1]) goes_on |= std::uint32_t{1} << d;
  return goes_on;
}

}  // namespace

Views FindViews(const graph::Graph& graph) {
  Views views;
  graph::PositionForms forms(graph);
  std::set<int> outputs;
  for (const graph::Output& output : graph.outputs()) outputs.insert(output.node);
  std::set<int> computed = outputs;  // though they may be others with more dimensions
  // A computed value that is gathered is in memory anyway.
  const auto is_computed_in_memory = [&](int id) {
    const Node::Kind kind = graph.node(graph.node(id).inputs[0]).kind;
    return kind != Node::Kind::kInput && kind != Node::Kind::kGather && outputs.count(graph.node(id).inputs[0]) == 0;
  };
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (graph.node(id).kind != Node::Kind::kGather) continue;
    // What is such a view itself nothing computes, as that could be written elsewhere, too.
    if (views.writes.count(graph.node(id).inputs[0]) != 0) continue;
    const bool output = outputs.count(id) != 0, in_memory = is_computed_in_memory(id);
    if ((in_memory && !output) || graph::IsJoinedInMemory(graph, id, &forms)) {
      const auto parts = graph::PartsOfResult(graph, graph.node(id), &forms);
      if (!parts) continue;
      views.writes.emplace(id, View{GoesOn(*parts), 0});
    } else {
      const Node& node = graph.node(id);
      const bool all = in_memory && forms.HaveAsMany(node.shape, graph.node(node.inputs[0]).shape);
      const auto parts = all ? graph::PartsOfReshape(graph, node, &forms) : std::nullopt;
      if (!parts) continue;
      views.writes.emplace(id, View{parts->source, parts->result});
    }
    computed.insert(graph.node(id).inputs[0]);
  }
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.kind != Node::Kind::kGather || computed.count(id) != 0) continue;
    if (const auto parts = graph::PartsOfSource(graph, node, &forms)) {
      views.reads.emplace(id, View{GoesOn(*parts), 0});
    } else if (graph.node(node.inputs[0]).kind == Node::Kind::kInput) {
      if (const auto same = graph::PartsOfReshape(graph, node, &forms))
        views.reads.emplace(id, View{same->result, same->source});
    }
  }
  return views;
}

}  // namespace umbra::plan

#include "compiler/plan/views.h"

#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/transform/axis_parts.h"
#include "compiler/transform/joined_parts.h"

namespace umbra::plan {

using graph::Node;

namespace {

std::uint32_t GoesOn(const std::vector<int>& part_of) {
  std::uint32_t goes_on = 0;
  for (std::size_t d = 1; d < part_of.size(); ++d)
    if (part_of[d] == part_of[d - 1]) goes_on |= std::uint32_t{1} << d;
  return goes_on;
}

// The parts of a value that is put together of others; products write one place alone, and so does what has the memory
// of a reshape, whose dimensions may not follow each other in a part.
std::vector<Written> PartsOf(const graph::Graph& graph, int id, const Views& views, graph::PositionForms* forms,
                             std::map<int, int>* copies) {
  const std::vector<graph::JoinedPart> parts = graph::PartsOfJoin(graph, id, forms);
  std::vector<Written> written;
  if (parts.empty()) return written;
  std::map<int, int> times = *copies;
  for (const graph::JoinedPart& part : parts) {
    const Node::Kind kind = graph.node(part.source).kind;
    if (views.writes.count(part.source) != 0 || (times[part.source]++ > 0 && kind == Node::Kind::kDot)) return {};
    written.push_back({part.source, View{0, 0, part.dim, part.begin}});
  }
  *copies = std::move(times);
  return written;
}

}  // namespace

std::vector<int> Views::SourcesOf(const graph::Graph& graph, int node) const {
  const auto found = writes.find(node);
  if (found == writes.end())
    return reads.count(node) != 0 ? std::vector<int>{graph.node(node).inputs[0]} : std::vector<int>();
  std::vector<int> sources;
  for (const Written& written : found->second) sources.push_back(written.node);
  return sources;
}

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
      views.writes[id] = {{graph.node(id).inputs[0], View{GoesOn(*parts), 0, -1, {}}}};
    } else {
      const Node& node = graph.node(id);
      const bool all = in_memory && forms.HaveAsMany(node.shape, graph.node(node.inputs[0]).shape);
      const auto parts = all ? graph::PartsOfReshape(graph, node, &forms) : std::nullopt;
      if (!parts) continue;
      views.writes[id] = {{node.inputs[0], View{parts->source, parts->result, -1, {}}}};
    }
    computed.insert(graph.node(id).inputs[0]);
  }
  std::map<int, int> copies;  // of a value: the places where it is written
  for (const int id : outputs) ++copies[id];
  std::vector<bool> in_memory = graph::InMemory(graph);
  for (const auto& [holder, written] : views.writes) in_memory[static_cast<std::size_t>(written[0].node)] = true;
  for (int id = static_cast<int>(graph.nodes().size()); id-- > 0;) {
    if (!in_memory[static_cast<std::size_t>(id)]) continue;
    std::vector<Written> parts = PartsOf(graph, id, views, &forms, &copies);
    if (parts.empty()) continue;
    for (const Written& part : parts) {
      computed.insert(part.node);
      in_memory[static_cast<std::size_t>(part.node)] = true;
    }
    views.writes.emplace(id, std::move(parts));
  }
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.kind != Node::Kind::kGather || computed.count(id) != 0) continue;
    if (const auto parts = graph::PartsOfSource(graph, node, &forms)) {
      views.reads.emplace(id, View{GoesOn(*parts), 0, -1, {}});
    } else if (graph.node(node.inputs[0]).kind == Node::Kind::kInput) {
      if (const auto same = graph::PartsOfReshape(graph, node, &forms))
        views.reads.emplace(id, View{same->result, same->source, -1, {}});
    }
  }
  return views;
}

}  // namespace umbra::plan

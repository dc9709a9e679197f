#include "compiler/transform/column_of.h"

#include <cstddef>
#include <set>
#include <utility>

#include "compiler/transform/copy_node.h"

namespace umbra::graph {

using Kind = Node::Kind;

namespace {

constexpr std::size_t kMostValues = 64;

}  // namespace

std::optional<std::vector<int>> Columns::ValuesOf(int id) const {
  std::vector<int> values, open{id};
  std::set<int> seen{id};
  while (!open.empty()) {
    const int next = open.back();
    const Node& node = graph_.node(next);
    open.pop_back();
    if (node.shape.size() == 0) continue;
    values.push_back(next);
    if (values.size() > kMostValues) return std::nullopt;
    if (node.kind != Kind::kMap && node.kind != Kind::kCast) continue;
    for (const int input : node.inputs)
      if (seen.insert(input).second) open.push_back(input);
  }
  return values;
}

int Columns::Of(int id, int axis, index_t k) {
  const PartialShape shape = Without(graph_.node(id).shape, axis);
  const int column = Term(id, axis, k);
  if (graph_.node(column).shape.size() == shape.size()) return column;
  return graph_.Broadcast(column, std::vector<int>(shape.size(), -1), shape);  // the same everywhere
}

int Columns::Term(int id, int axis, index_t k) {
  const auto key = std::make_tuple(id, axis, k);
  if (const auto found = terms_.find(key); found != terms_.end()) return found->second;
  const int term = MakeTerm(graph_.node(id), id, axis, k);
  terms_.emplace(key, term);
  return term;
}

int Columns::MakeTerm(Node node, int id, int axis, index_t k) {  // a copy: nodes are added
  if (node.shape.size() == 0) return id;
  switch (node.kind) {
    case Kind::kMap:
    case Kind::kCast: {
      std::vector<int> inputs;
      for (const int input : node.inputs) inputs.push_back(Term(input, axis, k));
      return CopyNode(&graph_, node, std::move(inputs));
    }
    case Kind::kIndex:
      if (node.axes[0] == axis) return graph_.Constant(static_cast<double>(k), DType::kInt64);
      return graph_.Index(node.axes[0] - (node.axes[0] > axis), Without(node.shape, axis));
    case Kind::kGather: {
      std::vector<int> inputs{node.inputs[0]};
      for (std::size_t d = 1; d < node.inputs.size(); ++d) inputs.push_back(Term(node.inputs[d], axis, k));
      return CopyNode(&graph_, node, std::move(inputs));
    }
    case Kind::kBroadcast: {
      const int of = node.axes[static_cast<std::size_t>(axis)];
      const PartialShape shape = Without(node.shape, axis);
      node.axes.erase(node.axes.begin() + axis);
      for (int& from : node.axes)
        if (of >= 0 && from > of) --from;
      return graph_.Broadcast(of < 0 ? node.inputs[0] : InMemory(node.inputs[0], of, k), std::move(node.axes), shape);
    }
    default: return InMemory(id, axis, k);
  }
}

// A gather that others may find better ways for.
int Columns::InMemory(int id, int axis, index_t k) {
  const PartialShape whole = graph_.node(id).shape, shape = Without(whole, axis);
  std::vector<int> positions;
  int next = 0;
  for (std::size_t d = 0; d < whole.size(); ++d)
    positions.push_back(static_cast<int>(d) == axis ? graph_.Constant(static_cast<double>(k), DType::kInt64)
                                                    : graph_.Index(next++, shape));
  return graph_.Gather(id, std::move(positions), -1, 0);
}

PartialShape Columns::Without(const PartialShape& shape, int axis) const {
  std::vector<Dimension> left;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (static_cast<int>(d) != axis) left.push_back(shape[d]);
  return PartialShape(std::move(left));
}

}  // namespace umbra::graph

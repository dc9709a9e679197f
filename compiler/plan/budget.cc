#include "compiler/plan/budget.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "compiler/graph/op.h"

namespace umbra::plan {

using graph::Graph;
using graph::Node;
using Kind = graph::Node::Kind;

namespace {

// What computing a value takes: the nodes that it inlines and the memory that it reads, in order.
struct Reach {
  std::vector<int> nodes, leaves;
  int work = 0;
};

std::vector<int> Union(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  both.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

bool CanBeRoot(const Node& node) {
  return node.shape.size() > 0 && node.kind != Kind::kInput && node.kind != Kind::kConstant &&
         node.kind != Kind::kScalar && node.kind != Kind::kIndex && node.kind != Kind::kExtent &&
         node.kind != Kind::kBroadcast;
}

bool IsLeaf(const Graph& graph, const std::set<int>& roots, int id) {
  return roots.count(id) != 0 || graph.node(id).kind == Kind::kInput;
}

// Of each node: is it inlined into one that would read more than kMaxOperands tensors, or does it so itself?
std::vector<bool> ReadTooMuch(const Graph& graph, const std::vector<bool>& live, const std::set<int>& roots) {
  const auto count = graph.nodes().size();
  std::vector<std::vector<int>> leaves(count);  // of which some are left out where there are too many
  std::vector<bool> too_much(count, false);
  for (std::size_t id = 0; id < count; ++id) {
    if (!live[id] || graph.node(static_cast<int>(id)).kind == Kind::kInput) continue;
    for (const int input : graph.node(static_cast<int>(id)).inputs)
      leaves[id] = IsLeaf(graph, roots, input) ? Union(leaves[id], {input})
                                               : Union(leaves[id], leaves[static_cast<std::size_t>(input)]);
    too_much[id] = leaves[id].size() > kMaxOperands;
    if (too_much[id]) leaves[id].resize(kMaxOperands + 1);
  }
  for (std::size_t id = count; id-- > 0;)
    if (too_much[id])
      for (const int input : graph.node(static_cast<int>(id)).inputs)
        if (!IsLeaf(graph, roots, input)) too_much[static_cast<std::size_t>(input)] = true;
  return too_much;
}

}  // namespace

int WorkOf(const Node& node) {
  constexpr int kLoop = 32;  // of a reduction, which compiles as slowly as a long expression
  if (node.kind == Kind::kReduce || node.kind == Kind::kScan) return kLoop;
  return node.kind == Kind::kMap ? static_cast<int>(graph::Info(node.op).cost) : 1;
}

void KeepWithinBudget(const Graph& graph, const std::vector<bool>& live, std::set<int>* roots) {
  const auto count = graph.nodes().size();
  const std::vector<bool> parts = ReadTooMuch(graph, live, *roots);
  std::vector<Reach> reaches(count);
  std::vector<int> readers(count, 0);
  for (std::size_t id = 0; id < count; ++id)
    for (const int input : graph.node(static_cast<int>(id)).inputs)
      readers[static_cast<std::size_t>(input)] += live[id];
  for (int id = 0; id < static_cast<int>(count); ++id) {
    if (!live[static_cast<std::size_t>(id)]) continue;
    const Node& node = graph.node(id);
    Reach& reach = reaches[static_cast<std::size_t>(id)];
    while (node.kind != Kind::kInput) {
      reach = {};
      int heaviest = -1, most = 0;
      for (const int input : node.inputs) {
        const Reach& read = reaches[static_cast<std::size_t>(input)];
        if (IsLeaf(graph, *roots, input)) {
          reach.leaves = Union(reach.leaves, {input});
          continue;
        }
        reach.nodes = Union(reach.nodes, read.nodes);
        reach.leaves = Union(reach.leaves, read.leaves);
        const int weight = read.work + static_cast<int>(read.leaves.size());
        if (weight > most && CanBeRoot(graph.node(input))) heaviest = input, most = weight;
      }
      reach.nodes.push_back(id);  // the largest of all
      for (const int inlined : reach.nodes) reach.work += WorkOf(graph.node(inlined));
      const std::size_t most_leaves = parts[static_cast<std::size_t>(id)] ? kMaxOperandsOfPart : kMaxOperands;
      const bool fits = reach.work <= kMaxWork && reach.leaves.size() <= most_leaves;
      if (fits || heaviest < 0) break;
      roots->insert(heaviest);
    }
    for (const int input : node.inputs)
      if (--readers[static_cast<std::size_t>(input)] == 0) reaches[static_cast<std::size_t>(input)] = {};
  }
}

}  // namespace umbra::plan

#include "compiler/plan/fuse.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "compiler/plan/budget.h"
#include "umbra/error.h"

namespace umbra::plan {

using graph::Graph;
using graph::Node;
using Kind = graph::Node::Kind;

namespace {

constexpr int kElsewhere = -2;  // the map of what is read at computed positions

std::size_t Rank(const Node& node) { return node.shape.size(); }

AxisMap Identity(std::size_t rank) {
  AxisMap map(rank);
  for (std::size_t d = 0; d < rank; ++d) map[d] = static_cast<int>(d);
  return map;
}

bool IsStaticOne(const Dimension& dim) {
  return dim.is_static() && static_cast<std::int64_t>(dim) == 1;
}

// One row would be all there is: element work is better off in a kernel of its own.
bool HasParallelAxis(const Domain& domain) {
  for (int axis : domain.KeptAxes())
    if (!IsStaticOne(domain.dims[static_cast<std::size_t>(axis)])) return true;
  return false;
}

bool IsReduced(const Node& node, std::size_t dim) {
  return std::find(node.axes.begin(), node.axes.end(), static_cast<int>(dim)) != node.axes.end();
}

}  // namespace

std::vector<int> Domain::KeptAxes() const {
  std::vector<int> axes;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (!inner[d]) axes.push_back(static_cast<int>(d));
  return axes;
}

std::vector<int> Domain::InnerAxes() const {
  std::vector<int> axes;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (inner[d]) axes.push_back(static_cast<int>(d));
  return axes;
}

bool IsGathered(const Node& node, std::size_t index) {
  return node.kind == Kind::kGather && index == 0;
}

AxisMap OperandMap(const Graph& graph, const Node& node, std::size_t index, const AxisMap& map) {
  const Node& operand = graph.node(node.inputs[index]);
  if (node.kind == Kind::kBroadcast || node.kind == Kind::kTranspose) {
    AxisMap inputs(Rank(operand), -1);
    for (std::size_t d = 0; d < node.axes.size(); ++d)
      if (node.axes[d] >= 0) inputs[static_cast<std::size_t>(node.axes[d])] = map[d];
    return inputs;
  }
  if (Rank(operand) == 0) return {};
  return map;
}

std::optional<AxisMap> ReducedOperandMap(const Graph& graph, const Node& node, const AxisMap& map,
                                         const Domain& domain) {
  const Node& operand = graph.node(node.inputs[0]);
  const std::vector<int> kept = domain.KeptAxes();
  const std::vector<int> inner = domain.InnerAxes();
  if (node.axes.size() != inner.size()) return std::nullopt;
  AxisMap result(Rank(operand), -1);
  std::vector<int> used;
  std::size_t next_inner = 0, next_kept = 0;
  for (std::size_t d = 0; d < Rank(operand); ++d) {
    if (IsReduced(node, d)) {
      if (node.keepdim) ++next_kept;
      result[d] = inner[next_inner++];
    } else {
      result[d] = map[next_kept++];
      if (result[d] < 0) return std::nullopt;
      used.push_back(result[d]);
    }
    if (!graph.SameDimension(operand.shape[d],
                             domain.dims[static_cast<std::size_t>(result[d])]))
      return std::nullopt;
  }
  std::sort(used.begin(), used.end());
  if (used != kept) return std::nullopt;
  return result;
}

namespace {

// Finds the domain of one root; a reduction on the way that does not fit is reported.
class DomainFinder {
 public:
  DomainFinder(const Graph& graph, const std::set<int>& roots, int root)
      : graph_(graph), roots_(roots), root_(root) {}

  // The unit of the root, or the node of a reduction that has to become a root first.
  std::optional<Unit> Find(int* conflict) {
    const Node& node = graph_.node(root_);
    Unit unit;
    if (const int first = FirstReduction(); first >= 0) {
      if (!AdoptDomain(graph_.node(first), first_map_, &unit)) {
        *conflict = first;
        return std::nullopt;
      }
    } else {
      unit.domain.dims.assign(node.shape.begin(), node.shape.end());
      unit.domain.inner.assign(Rank(node), false);
      if (Rank(node) > 0) unit.domain.inner.back() = true;
      unit.roots.push_back({root_, Identity(Rank(node))});
      return unit;
    }
    visited_.clear();
    if (const int misfit = FindMisfit(root_, unit.roots[0].map, unit.domain); misfit >= 0) {
      *conflict = misfit;
      return std::nullopt;
    }
    return unit;
  }

 private:
  // The first reduction met on the way from the root to memory, with its map in the root's axes.
  int FirstReduction() { return Search(root_, Identity(Rank(graph_.node(root_)))); }

  int Search(int id, const AxisMap& map) {
    const Node& node = graph_.node(id);
    if (!visited_.insert({id, map}).second) return -1;
    if (id != root_ && roots_.count(id)) return -1;
    if (node.kind == Kind::kReduce) {
      first_map_ = map;
      return id;
    }
    if (node.kind == Kind::kDot) return -1;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (IsGathered(node, k)) continue;
      const int found = Search(node.inputs[k], OperandMap(graph_, node, k, map));
      if (found >= 0) return found;
    }
    return -1;
  }

  // Chooses the domain from the first reduction: that of the root if the reduction's operand has
  // the root's shape (row fusion), else the root's axes followed by the reduced ones.
  bool AdoptDomain(const Node& reduce, const AxisMap& map, Unit* unit) {
    const Node& operand = graph_.node(reduce.inputs[0]);
    const Node& root = graph_.node(root_);
    Domain domain;
    domain.flexible = false;
    for (std::size_t d = 0; d < Rank(operand); ++d) {
      domain.dims.push_back(operand.shape[d]);
      domain.inner.push_back(IsReduced(reduce, d));
    }
    const std::vector<int> kept = domain.KeptAxes();
    AxisMap kept_map = map;  // without the dimensions of extent 1 that keepdim leaves
    if (reduce.keepdim) {
      kept_map.clear();
      for (std::size_t d = 0; d < map.size(); ++d)
        if (!IsReduced(reduce, d)) kept_map.push_back(map[d]);
    }
    const bool same_shape =
        Rank(root) == Rank(operand) && kept_map == AxisMap(kept.begin(), kept.end()) &&
        std::equal(root.shape.begin(), root.shape.end(), operand.shape.begin(),
                   [&](const Dimension& a, const Dimension& b) { return graph_.SameDimension(a, b); });
    if (same_shape && !IsKeptRoot(reduce)) {
      if (!HasParallelAxis(domain)) return false;
      unit->domain = std::move(domain);
      unit->roots.push_back({root_, Identity(Rank(root))});
      return true;
    }
    // The root has one element a row: each of its axes is one kept axis, in order; the axes that
    // keepdim leaves have extent 1.
    AxisMap root_map(Rank(root), -1);
    for (std::size_t k = 0; k < kept_map.size(); ++k) {
      if (kept_map[k] < 0 || (k > 0 && kept_map[k] <= kept_map[k - 1])) return false;
      root_map[static_cast<std::size_t>(kept_map[k])] = kept[k];
    }
    for (std::size_t d = 0; d < Rank(root); ++d)
      if (root_map[d] < 0 && !IsStaticOne(root.shape[d])) return false;
    unit->domain = std::move(domain);
    unit->roots.push_back({root_, root_map});
    return true;
  }

  // A keepdim reduction over axes of extent 1 has the shape of its operand, yet is a row value.
  bool IsKeptRoot(const Node& reduce) const {
    return &graph_.node(root_) == &reduce;
  }

  // The first reduction that does not fit `domain`.
  int FindMisfit(int id, const AxisMap& map, const Domain& domain) {
    const Node& node = graph_.node(id);
    if (!visited_.insert({id, map}).second) return -1;
    if (id != root_ && roots_.count(id)) return -1;
    if (node.kind == Kind::kDot) return -1;
    if (node.kind == Kind::kReduce) {
      const auto operand_map = ReducedOperandMap(graph_, node, map, domain);
      if (!operand_map) return id;
      return FindMisfit(node.inputs[0], *operand_map, domain);
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (IsGathered(node, k)) continue;
      const int found = FindMisfit(node.inputs[k], OperandMap(graph_, node, k, map), domain);
      if (found >= 0) return found;
    }
    return -1;
  }

  const Graph& graph_;
  const std::set<int>& roots_;
  int root_;
  AxisMap first_map_;
  std::set<std::pair<int, AxisMap>> visited_;
};

// Memory that a unit reads: roots of other units and inputs, each with its map; and what it computes.
std::set<std::pair<int, AxisMap>> Leaves(const Graph& graph, const std::set<int>& roots,
                                         const Unit& unit, int* work = nullptr) {
  std::set<std::pair<int, AxisMap>> leaves, visited;
  std::set<int> own;
  for (const Root& root : unit.roots) own.insert(root.node);
  std::function<void(int, const AxisMap&)> visit = [&](int id, const AxisMap& map) {
    const Node& node = graph.node(id);
    if (!visited.insert({id, map}).second) return;
    if (node.kind == Kind::kInput || (roots.count(id) && !own.count(id))) {
      leaves.insert({id, map});
      return;
    }
    if (work != nullptr) *work += WorkOf(node);
    if (node.kind == Kind::kReduce) {
      const auto operand = ReducedOperandMap(graph, node, map, unit.domain);
      Ensure(operand.has_value(), "a fused reduction does not fit its kernel's domain");
      visit(node.inputs[0], *operand);
      return;
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      // Other points than this one are read: never of the kernel that computes them.
      if (IsGathered(node, k)) leaves.insert({node.inputs[k], AxisMap{kElsewhere}});
      else visit(node.inputs[k], OperandMap(graph, node, k, map));
    }
  };
  for (const Root& root : unit.roots) {
    if (unit.gemm) {
      for (int input : graph.node(root.node).inputs) {
        int operand = input;
        while (graph.node(operand).kind == Kind::kTranspose && !roots.count(operand))
          operand = graph.node(operand).inputs[0];
        leaves.insert({operand, {}});
      }
    } else {
      visit(root.node, root.map);
    }
  }
  return leaves;
}

// Joins kernels over one domain that share operands or feed each other at the same point.
class Merger {
 public:
  Merger(const Graph& graph, Fusion* fusion) : graph_(graph), fusion_(*fusion) {}

  void Run() {
    Order();
    bool merged = true;
    while (merged) {
      merged = false;
      for (std::size_t i = 0; i < fusion_.units.size() && !merged; ++i)
        for (std::size_t j = i + 1; j < fusion_.units.size() && !merged; ++j)
          if (auto unit = TryMerge(i, j)) {
            fusion_.units[i] = std::move(*unit);
            fusion_.units.erase(fusion_.units.begin() + static_cast<std::ptrdiff_t>(j));
            merged = true;
            Order();
          }
    }
  }

 private:
  using LeafSet = std::set<std::pair<int, AxisMap>>;

  bool Reads(const LeafSet& leaves, const Unit& producer) const {
    for (const auto& [node, map] : leaves)
      for (const Root& root : producer.roots)
        if (root.node == node) return true;
    return false;
  }

  // Sorts the units so that each comes after those it reads, keeping the given order otherwise.
  void Order() {
    std::vector<Unit> sorted;
    std::vector<Unit> rest = std::move(fusion_.units);
    while (!rest.empty()) {
      bool moved = false;
      for (std::size_t i = 0; i < rest.size(); ++i) {
        const LeafSet leaves = Leaves(graph_, fusion_.roots, rest[i]);
        bool ready = true;
        for (std::size_t j = 0; j < rest.size() && ready; ++j)
          ready = i == j || !Reads(leaves, rest[j]);
        if (!ready) continue;
        sorted.push_back(std::move(rest[i]));
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
        moved = true;
        break;
      }
      Ensure(moved, "units of a plan depend on each other in a circle");
    }
    fusion_.units = std::move(sorted);
    leaves_.clear();
    for (const Unit& unit : fusion_.units) leaves_.push_back(Leaves(graph_, fusion_.roots, unit));
  }

  // Does unit j depend on unit i through some other unit?
  bool DependsThroughOthers(std::size_t i, std::size_t j) const {
    std::vector<bool> reaches(fusion_.units.size(), false);
    reaches[i] = true;
    for (std::size_t k = i + 1; k < j; ++k)
      for (std::size_t p = i; p < k; ++p)
        if (reaches[p] && Reads(leaves_[k], fusion_.units[p])) reaches[k] = true;
    for (std::size_t k = i + 1; k < j; ++k)
      if (reaches[k] && Reads(leaves_[j], fusion_.units[k])) return true;
    return false;
  }

  bool SameDims(const std::vector<Dimension>& a, const std::vector<Dimension>& b) const {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [&](const Dimension& x, const Dimension& y) {
             return graph_.SameDimension(x, y);
           });
  }

  // The roots of `guest` placed in the domain of `host`, if they fit.
  std::optional<std::vector<Root>> Place(const Unit& guest, const Unit& host) const {
    if (SameDims(guest.domain.dims, host.domain.dims) &&
        (guest.domain.flexible ? host.domain.flexible || HasParallelAxis(host.domain)
                               : guest.domain.inner == host.domain.inner))
      return guest.roots;
    if (!guest.domain.flexible || host.domain.flexible) return std::nullopt;
    const std::vector<int> kept = host.domain.KeptAxes();
    std::vector<Dimension> rows;
    for (int axis : kept) rows.push_back(host.domain.dims[static_cast<std::size_t>(axis)]);
    if (!SameDims(guest.domain.dims, rows)) return std::nullopt;
    std::vector<Root> placed = guest.roots;
    for (Root& root : placed)
      for (int& axis : root.map)
        if (axis >= 0) axis = kept[static_cast<std::size_t>(axis)];
    return placed;
  }

  std::optional<Unit> TryMerge(std::size_t i, std::size_t j) const {
    const Unit& first = fusion_.units[i];
    const Unit& second = fusion_.units[j];
    if (first.gemm || second.gemm || DependsThroughOthers(i, j)) return std::nullopt;
    const bool second_is_host = !second.domain.flexible;
    const Unit& host = second_is_host ? second : first;
    const Unit& guest = second_is_host ? first : second;
    const auto placed = Place(guest, host);
    if (!placed) return std::nullopt;
    Unit merged = host;
    merged.roots.insert(second_is_host ? merged.roots.begin() : merged.roots.end(),
                        placed->begin(), placed->end());
    // A root that is read within the unit is read at the point where it is computed.
    Unit reader = second;
    reader.domain = merged.domain;
    reader.roots = second_is_host ? host.roots : *placed;
    const std::vector<Root>& written = second_is_host ? *placed : host.roots;
    bool related = false;
    for (const auto& [node, map] : Leaves(graph_, fusion_.roots, reader)) {
      for (const Root& root : written) {
        if (root.node != node) continue;
        if (root.map != map) return std::nullopt;
        related = true;
      }
    }
    for (const auto& [node, map] : leaves_[i])
      for (const auto& [other, other_map] : leaves_[j]) related = related || node == other;
    if (!related) return std::nullopt;
    int work = 0;
    const std::size_t operands = Leaves(graph_, fusion_.roots, merged, &work).size() + merged.roots.size();
    if (work > kMaxWork || operands > kMaxOperands) return std::nullopt;
    return merged;
  }

  const Graph& graph_;
  Fusion& fusion_;
  std::vector<LeafSet> leaves_;
};

}  // namespace

DotOperand DotOperandOf(const Graph& graph, int id) {
  DotOperand operand{id, false};
  for (const Node* node = &graph.node(id); node->kind == Kind::kTranspose; node = &graph.node(operand.node)) {
    const bool matrices = node->axes == std::vector<int>{1, 0} || node->axes == std::vector<int>{0, 2, 1};
    if (!matrices && !std::is_sorted(node->axes.begin(), node->axes.end())) break;
    operand = {node->inputs[0], operand.transposed != matrices};
  }
  return operand;
}

Fusion Fuse(const Graph& graph) {
  Fusion fusion;
  std::vector<bool> live(graph.nodes().size(), false);
  for (const graph::Output& output : graph.outputs()) {
    fusion.roots.insert(output.node);
    live[static_cast<std::size_t>(output.node)] = true;
  }
  for (int id = static_cast<int>(graph.nodes().size()) - 1; id >= 0; --id) {
    if (!live[static_cast<std::size_t>(id)]) continue;
    const Node& node = graph.node(id);
    for (int input : node.inputs) live[static_cast<std::size_t>(input)] = true;
    if (node.kind == Kind::kGather && graph.node(node.inputs[0]).kind != Kind::kInput)
      fusion.roots.insert(node.inputs[0]);
    if (node.kind != Kind::kDot) continue;
    fusion.roots.insert(id);
    for (int input : node.inputs) {
      const int operand = DotOperandOf(graph, input).node;
      if (graph.node(operand).kind != Kind::kInput) fusion.roots.insert(operand);
    }
  }
  KeepWithinBudget(graph, live, &fusion.roots);
  bool stable = false;
  while (!stable) {
    stable = true;
    fusion.units.clear();
    for (int root : fusion.roots) {
      if (graph.node(root).kind == Kind::kDot) {
        Unit unit;
        unit.gemm = true;
        unit.roots.push_back({root, {}});
        fusion.units.push_back(std::move(unit));
        continue;
      }
      int conflict = -1;
      auto unit = DomainFinder(graph, fusion.roots, root).Find(&conflict);
      if (!unit) {
        Ensure(conflict != root, "a reduction does not fit its own domain");
        fusion.roots.insert(conflict);
        stable = false;
        break;
      }
      fusion.units.push_back(std::move(*unit));
    }
  }
  Merger(graph, &fusion).Run();
  return fusion;
}

}  // namespace umbra::plan

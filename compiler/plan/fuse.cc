#include "compiler/plan/fuse.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "compiler/plan/across.h"
#include "compiler/plan/budget.h"
#include "compiler/plan/merge_units.h"
#include "compiler/transform/copy_node.h"
#include "umbra/error.h"

namespace umbra::plan {

using graph::Graph;
using graph::Node;
using Kind = graph::Node::Kind;

namespace {

std::size_t Rank(const Node& node) { return node.shape.size(); }

bool IsStaticOne(const Dimension& dim) { return dim.is_static() && static_cast<std::int64_t>(dim) == 1; }

bool IsReduced(const Node& node, std::size_t dim) {
  return std::find(node.axes.begin(), node.axes.end(), static_cast<int>(dim)) != node.axes.end();
}

}  // namespace

AxisMap Identity(std::size_t rank) {
  AxisMap map(rank);
  for (std::size_t d = 0; d < rank; ++d) map[d] = static_cast<int>(d);
  return map;
}

bool Domain::HasParallelAxis() const {
  for (int axis : KeptAxes())
    if (!IsStaticOne(dims[static_cast<std::size_t>(axis)])) return true;
  return false;
}

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

bool IsGathered(const Node& node, std::size_t index) { return node.kind == Kind::kGather && index == 0; }

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
    if (!graph.SameDimension(operand.shape[d], domain.dims[static_cast<std::size_t>(result[d])])) return std::nullopt;
  }
  std::sort(used.begin(), used.end());
  if (used != kept) return std::nullopt;
  return result;
}

namespace {

// Fusion::in_lanes
std::vector<bool> FindInLanes(const Graph& graph) {
  const auto scans = [](const Node& node) { return node.kind == Kind::kScan; };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), scans)) return {};
  std::vector<bool> in_lanes;
  for (const Node& node : graph.nodes()) {
    const auto counts = [&](int input) {
      return in_lanes[static_cast<std::size_t>(input)] &&
             (node.dtype != DType::kInt32 || graph.node(input).dtype == DType::kInt32);
    };
    const bool whole = node.dtype == DType::kInt32 || node.dtype == DType::kInt64 || node.dtype == DType::kBool;
    in_lanes.push_back(node.kind == Kind::kIndex || node.kind == Kind::kExtent ||
                       (whole && std::any_of(node.inputs.begin(), node.inputs.end(), counts)));
  }
  return in_lanes;
}

// Are lanes of what the node reads computed one by one?
bool TakesLanes(const Node& node, int id, const std::vector<bool>& in_lanes) {
  return node.kind == Kind::kGather ||
         (node.kind == Kind::kMap && !in_lanes.empty() && in_lanes[static_cast<std::size_t>(id)]);
}

// Finds the domain of one root; a reduction or a scan on the way that does not fit is reported.
class DomainFinder {
 public:
  DomainFinder(const Graph& graph, const std::set<int>& roots, const std::vector<bool>& in_lanes, int root)
      : graph_(graph),
        roots_(roots),
        in_lanes_(in_lanes),
        root_(root) {}

  // The unit of the root, or the node of a reduction or a scan that has to become a root first.
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
    if (const int misfit = FindMisfit(root_, unit.roots[0].map, unit.domain, false); misfit >= 0) {
      *conflict = misfit;
      return std::nullopt;
    }
    return unit;
  }

 private:
  // The first reduction or scan met on the way from the root to memory, with its map in the root's axes.
  int FirstReduction() { return Search(root_, Identity(Rank(graph_.node(root_)))); }

  int Search(int id, const AxisMap& map) {
    const Node& node = graph_.node(id);
    if (!visited_.insert({id, map}).second) return -1;
    if (id != root_ && roots_.count(id)) return -1;
    if (node.kind == Kind::kReduce || node.kind == Kind::kScan) {
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
    if (reduce.kind == Kind::kScan) {  // whose elements are the root's own
      unit->domain = std::move(domain);
      unit->roots.push_back({root_, Identity(Rank(root))});
      return map == unit->roots[0].map && Rank(root) == Rank(reduce);
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
      if (!domain.HasParallelAxis()) return false;
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
  bool IsKeptRoot(const Node& reduce) const { return &graph_.node(root_) == &reduce; }

  // Is each element of the domain one of the scan, whose rows are those of the domain?
  static bool FitsScan(const Node& scan, const AxisMap& map, const Domain& domain) {
    AxisMap axes = map;
    std::sort(axes.begin(), axes.end());
    return axes == Identity(domain.dims.size()) &&
           domain.InnerAxes() == std::vector<int>{map[static_cast<std::size_t>(scan.axes[0])]};
  }

  // The first reduction or scan that does not fit `domain`. `in_lanes`: lanes of what is read are computed one by one.
  int FindMisfit(int id, const AxisMap& map, const Domain& domain, bool in_lanes) {
    const Node& node = graph_.node(id);
    if (!seen_.insert({id, map, in_lanes}).second) return -1;
    if (id != root_ && roots_.count(id)) return -1;
    if (node.kind == Kind::kDot) return -1;
    if (node.kind == Kind::kScan && (in_lanes || !FitsScan(node, map, domain))) return id;
    if (node.kind == Kind::kReduce) {
      const auto operand_map = ReducedOperandMap(graph_, node, map, domain);
      if (!operand_map) return id;
      return FindMisfit(node.inputs[0], *operand_map, domain, in_lanes);
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (IsGathered(node, k)) continue;
      const int found = FindMisfit(node.inputs[k], OperandMap(graph_, node, k, map), domain,
                                   in_lanes || TakesLanes(node, id, in_lanes_));
      if (found >= 0) return found;
    }
    return -1;
  }

  const Graph& graph_;
  const std::set<int>& roots_;
  const std::vector<bool>& in_lanes_;
  int root_;
  AxisMap first_map_;
  std::set<std::pair<int, AxisMap>> visited_;  // by Search
  std::set<std::tuple<int, AxisMap, bool>> seen_;  // by FindMisfit
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

namespace {

// A unit for each root; a reduction that fits no other's domain becomes a root of its own.
void FormUnits(const Graph& graph, Fusion* fusion) {
  bool stable = false;
  while (!stable) {
    stable = true;
    fusion->units.clear();
    for (int root : fusion->roots) {
      if (fusion->views.Has(root)) continue;
      if (graph.node(root).kind == Kind::kDot) {
        Unit unit;
        unit.gemm = true;
        unit.roots.push_back({root, {}});
        fusion->units.push_back(std::move(unit));
        continue;
      }
      int conflict = -1;
      auto unit = DomainFinder(graph, fusion->roots, fusion->in_lanes, root).Find(&conflict);
      if (!unit) {
        Ensure(conflict != root, "a reduction or a scan does not fit its own domain");
        fusion->roots.insert(conflict);
        stable = false;
        break;
      }
      fusion->units.push_back(std::move(*unit));
    }
  }
}

// What would be gathered across memory becomes a root; was there any?
bool KeepAcross(const Graph& graph, Fusion* fusion) {
  const std::set<int> across = FindAcross(graph, *fusion);
  for (const int id : across) {
    fusion->roots.insert(id);
    fusion->choices[id] = {id, Why::kAcross, 1, {}, {}};
  }
  return !across.empty();
}

// Notes why the roots that are new live in memory.
void Note(const Graph& graph, Why why, Fusion* fusion) {
  for (int root : fusion->roots) {
    if (fusion->views.Has(root) || graph.node(root).kind == Kind::kInput) continue;
    const auto [choice, fresh] = fusion->choices.try_emplace(root);
    const bool scan = why == Why::kReduction && graph.node(root).kind == Kind::kScan;
    if (fresh || choice->second.why == Why::kCheap) choice->second = {root, scan ? Why::kScan : why, 1, {}, {}};
  }
}

}  // namespace

bool ScansInLanes(const Graph& graph, const Fusion& fusion, const Unit& unit) {
  if (fusion.in_lanes.empty()) return false;
  std::set<std::pair<int, bool>> seen;
  std::vector<std::pair<int, bool>> open;
  const auto is_own = [&](int id) {
    return std::any_of(unit.roots.begin(), unit.roots.end(), [id](const Root& root) { return root.node == id; });
  };
  for (const Root& root : unit.roots) open.emplace_back(root.node, false);
  while (!open.empty()) {
    const auto [id, lanes] = open.back();
    const Node& node = graph.node(id);
    open.pop_back();
    if (!seen.insert({id, lanes}).second || (fusion.roots.count(id) > 0 && !is_own(id))) continue;
    if (node.kind == Kind::kScan && lanes) return true;
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      if (!IsGathered(node, k)) open.emplace_back(node.inputs[k], lanes || TakesLanes(node, id, fusion.in_lanes));
  }
  return false;
}

Fusion Fuse(const Graph& graph, bool on_gpu) {
  Fusion fusion;
  fusion.in_lanes = FindInLanes(graph);
  if (!on_gpu) fusion.views = FindViews(graph);
  const std::vector<bool> live = graph::LiveNodes(graph);
  const auto add = [&](int id, Why why) {
    if (fusion.roots.insert(id).second) fusion.choices[id] = {id, why, 1, {}, {}};
  };
  for (const graph::Output& output : graph.outputs()) add(output.node, Why::kOutput);
  for (int id = static_cast<int>(graph.nodes().size()) - 1; id >= 0; --id) {
    if (!live[static_cast<std::size_t>(id)]) continue;
    const Node& node = graph.node(id);
    if (fusion.views.Has(id)) fusion.roots.insert(id);
    if (const auto written = fusion.views.writes.find(id); written != fusion.views.writes.end()) {
      const auto joined = fusion.choices.find(id);  // what lives in its memory does so for the same reason
      for (const Written& part : written->second)
        if (graph.node(part.node).kind == Kind::kInput) fusion.roots.insert(part.node);
        else add(part.node, joined != fusion.choices.end() ? joined->second.why : Why::kGathered);
    }
    if (node.kind == Kind::kGather && graph.node(node.inputs[0]).kind != Kind::kInput)
      add(node.inputs[0], Why::kGathered);
    if (node.kind != Kind::kDot) continue;
    add(id, Why::kProduct);
    for (int input : node.inputs) {
      const int operand = DotOperandOf(graph, input).node;
      if (graph.node(operand).kind != Kind::kInput) add(operand, Why::kFactor);
    }
  }
  KeepWithinBudget(graph, live, &fusion.roots);
  Note(graph, Why::kBudget, &fusion);
  bool chosen = true;
  while (chosen) {
    FormUnits(graph, &fusion);
    Note(graph, Why::kReduction, &fusion);
    if (!on_gpu && KeepAcross(graph, &fusion)) continue;
    MergeUnits(graph, &fusion);
    std::erase_if(fusion.choices, [](const auto& choice) { return choice.second.why == Why::kCheap; });
    chosen = ChooseRoots(graph, fusion.units, &fusion.roots, &fusion.choices);
  }
  return fusion;
}

}  // namespace umbra::plan

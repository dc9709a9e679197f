#include "compiler/plan/merge_units.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "compiler/plan/budget.h"
#include "umbra/error.h"

namespace umbra::plan {

using graph::Graph;
using graph::Node;
using Kind = graph::Node::Kind;

namespace {

constexpr int kElsewhere = -2;  // the map of what is read at computed positions

// What else is written when what a unit reads is: the values that a view is of.
enum class Sources { kToo, kNot };

// Memory that a unit reads: roots of other units and inputs, each with its map; and what it computes.
std::set<std::pair<int, AxisMap>> Leaves(const Graph& graph, const Fusion& fusion, const Unit& unit,
                                         Sources sources = Sources::kToo, int* work = nullptr) {
  const std::set<int>& roots = fusion.roots;
  std::set<std::pair<int, AxisMap>> leaves, visited;
  std::set<int> own;
  for (const Root& root : unit.roots) own.insert(root.node);
  const std::function<void(int, const AxisMap&)> add = [&](int id, const AxisMap& map) {
    if (leaves.insert({id, map}).second && sources == Sources::kToo)
      for (const int source : fusion.views.SourcesOf(graph, id)) add(source, AxisMap{kElsewhere});
  };
  std::function<void(int, const AxisMap&)> visit = [&](int id, const AxisMap& map) {
    const Node& node = graph.node(id);
    if (!visited.insert({id, map}).second) return;
    if (node.kind == Kind::kInput || (roots.count(id) && !own.count(id))) {
      add(id, map);
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
      if (IsGathered(node, k)) add(node.inputs[k], AxisMap{kElsewhere});
      else visit(node.inputs[k], OperandMap(graph, node, k, map));
    }
  };
  for (const Root& root : unit.roots) {
    if (unit.gemm) {
      for (int input : graph.node(root.node).inputs) {
        int operand = input;
        while (graph.node(operand).kind == Kind::kTranspose && !roots.count(operand))
          operand = graph.node(operand).inputs[0];
        add(operand, {});
      }
    } else {
      visit(root.node, root.map);
    }
  }
  return leaves;
}

// Joins kernels over one domain that share operands or feed each other at the same point. Units keep their
// number while they are joined and moved.
class Merger {
 public:
  Merger(const Graph& graph, Fusion* fusion) : graph_(graph), fusion_(*fusion), units_(std::move(fusion->units)) {
    leaves_.resize(units_.size());
    for (int id = 0; id < static_cast<int>(units_.size()); ++id) {
      order_.push_back(id);  // roots are in the order of nodes, so each unit comes after those it reads
      Enter(id);
    }
    NumberPlaces();
  }

  void Run() {
    for (bool merged = true; merged;) {
      merged = false;
      for (std::size_t place = 0; place < order_.size(); ++place)
        while (MergeOne(order_[place])) merged = true;
    }
    fusion_.apart.clear();
    for (const int id : order_)
      for (const auto& [where, other] : Neighbours(id)) {
        const auto tried = TryMerge(id, other);
        const Apart* why = std::get_if<Apart>(&tried);
        fusion_.apart.push_back(
            {static_cast<int>(place(id)), static_cast<int>(where), why != nullptr ? *why : Apart::kBetween});
      }
    fusion_.units.clear();
    for (const int id : order_) fusion_.units.push_back(std::move(unit(id)));
  }

 private:
  using LeafSet = std::set<std::pair<int, AxisMap>>;

  Unit& unit(int id) { return units_[static_cast<std::size_t>(id)]; }
  const Unit& unit(int id) const { return units_[static_cast<std::size_t>(id)]; }
  const LeafSet& leaves(int id) const { return leaves_[static_cast<std::size_t>(id)]; }
  std::size_t place(int id) const { return place_[static_cast<std::size_t>(id)]; }

  void Enter(int id) {
    leaves_[static_cast<std::size_t>(id)] = Leaves(graph_, fusion_, unit(id));
    for (const auto& [node, map] : leaves(id)) readers_[node].insert(id);
    for (const Root& root : unit(id).roots)
      if (graph_.node(root.node).kind != Kind::kInput) writer_[root.node] = id;
  }

  void Leave(int id) {
    for (const auto& [node, map] : leaves(id)) readers_[node].erase(id);
  }

  void NumberPlaces() {
    place_.resize(units_.size());
    for (std::size_t k = 0; k < order_.size(); ++k) place_[static_cast<std::size_t>(order_[k])] = k;
  }

  // The later units that share operands with `id` or read its roots, in order: their places and numbers.
  std::set<std::pair<std::size_t, int>> Neighbours(int id) {
    std::set<std::pair<std::size_t, int>> neighbours;
    const auto add = [&](int node) {
      for (const int other : readers_[node])
        if (place(other) > place(id)) neighbours.insert({place(other), other});
    };
    for (const auto& [node, map] : leaves(id)) add(node);
    for (const Root& root : unit(id).roots) add(root.node);
    return neighbours;
  }

  // Joins a later unit into `id`, if one fits.
  bool MergeOne(int id) {
    for (const auto& [where, other] : Neighbours(id)) {
      std::set<int> before;
      auto tried = TryMerge(id, other);
      Unit* const merged = std::get_if<Unit>(&tried);
      if (merged == nullptr || !FindUnitsBetween(id, other, &before)) continue;
      Leave(id);
      Leave(other);
      unit(id) = std::move(*merged);
      Enter(id);
      // What the joined unit reads comes before it, everything else stays after it.
      const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(place(id));
      order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(where));
      const auto end = order_.begin() + static_cast<std::ptrdiff_t>(where);
      const auto stays = [&](int between) { return before.count(between) == 0; };
      std::vector<int> after;
      std::copy_if(begin, end, std::back_inserter(after), stays);
      std::copy(after.begin(), after.end(), std::remove_if(begin, end, stays));
      NumberPlaces();
      return true;
    }
    return false;
  }

  // The units after `first` that `last` needs; false if one of them needs `first`.
  bool FindUnitsBetween(int first, int last, std::set<int>* between) const {
    std::vector<int> open = {last};
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      for (const auto& [node, map] : leaves(id)) {
        const auto writer = writer_.find(node);
        if (writer == writer_.end()) continue;
        if (writer->second == first && id != last) return false;
        if (place(writer->second) > place(first) && between->insert(writer->second).second)
          open.push_back(writer->second);
      }
    }
    return true;
  }

  bool SameDims(const std::vector<Dimension>& a, const std::vector<Dimension>& b) const {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(),
                      [&](const Dimension& x, const Dimension& y) { return graph_.SameDimension(x, y); });
  }

  // The roots of `guest` placed in the domain of `host`, if they fit.
  std::optional<std::vector<Root>> Place(const Unit& guest, const Unit& host) const {
    if (SameDims(guest.domain.dims, host.domain.dims) &&
        (guest.domain.flexible ? host.domain.flexible || host.domain.HasParallelAxis()
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

  // Does the unit compute functions? Of one number for each row of another unit they take as long as of a packet.
  bool HasFunctions(const Unit& unit) const {
    std::vector<int> nodes;
    for (const Root& root : unit.roots) nodes.push_back(root.node);
    return plan::HasFunctions(graph_, std::move(nodes), [this](int id) { return fusion_.roots.count(id) > 0; });
  }

  // The two units as one, or why they stay apart.
  std::variant<Unit, Apart> TryMerge(int i, int j) const {
    const Unit& first = unit(i);
    const Unit& second = unit(j);
    if (first.gemm || second.gemm) return Apart::kBlas;
    const bool second_is_host = !second.domain.flexible;
    const Unit& host = second_is_host ? second : first;
    const Unit& guest = second_is_host ? first : second;
    const auto placed = Place(guest, host);
    if (!placed) return Apart::kDomain;
    const bool of_rows = guest.domain.dims.size() < host.domain.dims.size();
    if (of_rows && host.domain.inner.back() && HasFunctions(guest)) return Apart::kPackets;
    Unit merged = host;
    merged.roots.insert(second_is_host ? merged.roots.begin() : merged.roots.end(), placed->begin(), placed->end());
    // A root that is read within the unit is read at the point where it is computed.
    Unit reader = second;
    reader.domain = merged.domain;
    reader.roots = second_is_host ? host.roots : *placed;
    const std::vector<Root>& written = second_is_host ? *placed : host.roots;
    for (const auto& [node, map] : Leaves(graph_, fusion_, reader))
      for (const Root& root : written)
        if (root.node == node && root.map != map && graph_.node(node).kind != Kind::kInput) return Apart::kOtherPoints;
    if (ScansInLanes(graph_, fusion_, merged)) return Apart::kLanes;
    int work = 0;
    const std::size_t operands = Leaves(graph_, fusion_, merged, Sources::kNot, &work).size() + merged.roots.size();
    if (work > kMaxWork || operands > kMaxOperands) return Apart::kBudget;
    return merged;
  }

  const Graph& graph_;
  Fusion& fusion_;
  std::vector<Unit> units_;
  std::vector<LeafSet> leaves_;
  std::map<int, std::set<int>> readers_;  // of a node in memory: the units
  std::map<int, int> writer_;
  std::vector<int> order_;
  std::vector<std::size_t> place_;  // of each unit in the order
};

}  // namespace

std::set<int> NodesRead(const Graph& graph, const Fusion& fusion, const Unit& unit) {
  std::set<int> nodes;
  for (const auto& [node, map] : Leaves(graph, fusion, unit)) nodes.insert(node);
  return nodes;
}

void MergeUnits(const Graph& graph, Fusion* fusion) { Merger(graph, fusion).Run(); }

}  // namespace umbra::plan

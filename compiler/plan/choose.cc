#include "compiler/plan/choose.h"

#include <algorithm>

#include "compiler/plan/budget.h"
#include "compiler/plan/fuse.h"
#include "compiler/plan/short_rows.h"

namespace umbra::plan {

using graph::Graph;
using graph::Node;
using Kind = graph::Node::Kind;

namespace {

// A byte written or read takes as long as this many additions in packets (measured in gelu and triad).
constexpr double kAdditionsPerByte = 3;
// Less work for an element than this is done while waiting for memory, less in all is not worth a kernel.
constexpr double kLeastEach = 8, kLeastSaved = 65536;
// What stands at an index that memory holds takes as long to find as this many.
constexpr double kByIndex = 8;

double Assumed(const Graph& graph, const Dimension& dim) {
  const Dimension known = graph.Known(dim);
  return known.is_static() ? static_cast<double>(static_cast<std::int64_t>(known)) : graph::kAssumedExtent;
}

bool IsFunction(const Node& node) { return node.kind == Kind::kMap && graph::Info(node.op).cost >= kFunction; }

class Chooser {
 public:
  Chooser(const Graph& graph, const std::vector<Unit>& units, const std::set<int>& roots)
      : graph_(graph),
        roots_(roots),
        units_of_(graph.nodes().size()),
        packets_in_(graph.nodes().size()),
        steps_in_(graph.nodes().size()),
        readers_of_(graph.nodes().size()) {
    for (const Node& node : graph.nodes()) {
      const auto has = [&](const std::vector<bool>& are) {
        return std::any_of(node.inputs.begin(), node.inputs.end(),
                           [&](int input) { return are[static_cast<std::size_t>(input)]; });
      };
      gathers_.push_back(node.kind == Kind::kGather || has(gathers_));
      by_index_.push_back(node.kind == Kind::kGather &&
                          std::any_of(node.inputs.begin() + 1, node.inputs.end(),
                                      [this](int input) { return gathers_[static_cast<std::size_t>(input)]; }));
      functions_.push_back(IsFunction(node) || has(functions_));
      const bool is_float = node.dtype == DType::kFloat32 || node.dtype == DType::kFloat64;
      positions_.push_back(!is_float && (node.kind == Kind::kIndex || node.kind == Kind::kExtent || has(positions_)));
    }
    for (std::size_t k = 0; k < units.size(); ++k)
      for (const Root& root : units[k].roots) {
        unit_of_root_[root.node] = static_cast<int>(k);
        if (!units[k].gemm) Visit(root.node, static_cast<int>(k), true, {IsOfRow(root, units[k].domain), false});
      }
  }

  std::vector<Choice> Run() const {
    std::vector<Choice> choices;
    std::set<int> kept;
    for (int id = 0; id < static_cast<int>(graph_.nodes().size()); ++id) {
      const Node& node = graph_.node(id);
      const auto& units = units_of_[static_cast<std::size_t>(id)];
      if (units.empty() || roots_.count(id) != 0 || IsPositional(id)) continue;
      if (node.kind != Kind::kMap && node.kind != Kind::kReduce && node.kind != Kind::kScan &&
          node.kind != Kind::kCast && !IsByIndex(id))
        continue;
      if (node.shape.size() == 0) continue;
      Choice choice;
      choice.node = id;
      choice.readers = static_cast<int>(units.size());
      const auto &packets = packets_in_[static_cast<std::size_t>(id)], &steps = steps_in_[static_cast<std::size_t>(id)];
      if (!packets.empty()) choice.of_rows = static_cast<int>(units.size() - packets.size());
      else if (!steps.empty() && !FollowsReduction(id)) choice.of_rows = static_cast<int>(steps.size());
      // A function that no one has packets of, unless it is made of one that is kept.
      const bool alone = choice.of_rows == 0 && packets.empty() && ComputesFunctions(id, kept) &&
                         !FollowsReduction(id) && !IsOfShortRows(id);
      if (alone) choice.of_rows = choice.readers;
      choice.spread = node.shape;
      bool last = false;  // is it read by something that is computed elsewhere, or less often?
      for (const int reader : readers_of_[static_cast<std::size_t>(id)]) {
        last = last || units_of_[static_cast<std::size_t>(reader)] != units;
        last = last || steps_in_[static_cast<std::size_t>(reader)] != steps;
        last = last || (alone && packets_in_[static_cast<std::size_t>(reader)] != packets);
        last = last || Spreads(reader, &choice);
      }
      if (choice.readers < 2 && !choice.repeated && choice.of_rows == 0 && graph_.label(id).empty()) continue;
      choice.work = WorkOf(id);
      const auto extent = [&](const Dimension& dim) { return Assumed(graph_, dim); };
      const Weight weight = Weigh(choice, node.shape, SizeOf(node.dtype), extent);
      choice.why = last && weight.MemoryPays() ? Why::kRepeated : Why::kCheap;
      if (choice.why == Why::kRepeated) kept.insert(id);
      choices.push_back(std::move(choice));
    }
    return choices;
  }

 private:
  // Is it made of positions, or no more than gathered?
  bool IsPositional(int id) const {
    const auto node = static_cast<std::size_t>(id);
    return (gathers_[node] && !functions_[node] && !by_index_[node]) || positions_[node];
  }
  bool IsByIndex(int id) const { return by_index_[static_cast<std::size_t>(id)]; }

  // What a unit needs of a value.
  struct Need {
    bool of_row = false;  // one number for a row
    bool of_columns = false;  // for each step of a reduction of columns, whose rows are joined in packets
  };

  // Does the unit, whose packets go along rows, store one number of each?
  static bool IsOfRow(const Root& root, const Domain& domain) {
    if (domain.flexible || domain.inner.empty() || !domain.inner.back()) return false;
    return std::none_of(root.map.begin(), root.map.end(),
                        [&](int axis) { return axis >= 0 && domain.inner[static_cast<std::size_t>(axis)]; });
  }

  void Visit(int id, int unit, bool is_root, Need need) {
    const Node& node = graph_.node(id);
    if (node.kind == Kind::kInput || (!is_root && roots_.count(id) != 0)) return;
    if (!is_root) {
      const auto add = [&](bool is, std::vector<std::set<int>>* units) {
        return is && (*units)[static_cast<std::size_t>(id)].insert(unit).second;
      };
      const bool first = add(true, &units_of_), packets = add(!need.of_row, &packets_in_),
                 steps = add(need.of_row && need.of_columns, &steps_in_);
      if (!first && !packets && !steps) return;
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (IsGathered(node, k)) continue;
      readers_of_[static_cast<std::size_t>(node.inputs[k])].insert(id);
      Visit(node.inputs[k], unit, false, NeedOf(node, need));
    }
  }

  // Of the operands of a value.
  Need NeedOf(const Node& node, Need need) const {
    if (node.axes.empty()) return need;
    if (node.kind == Kind::kBroadcast) return {need.of_row || node.axes.back() < 0, need.of_columns};
    if (node.kind != Kind::kReduce) return need;
    const bool reduces_rows = node.axes.back() + 1 == static_cast<int>(graph_.node(node.inputs[0]).shape.size());
    return {need.of_row && !reduces_rows, !reduces_rows && !need.of_row};
  }

  // Is the reader a broadcast along dimensions outside of the operand's own, so that a kernel computes the operand's
  // elements for each of its rows? Along dimensions behind all of them it computes them once.
  bool Spreads(int reader, Choice* choice) const {
    const Node& node = graph_.node(reader);
    if (node.kind != Kind::kBroadcast) return false;
    std::size_t rank = node.axes.size();
    while (rank > 0 && node.axes[rank - 1] < 0) --rank;
    if (std::find(node.axes.begin(), node.axes.begin() + static_cast<std::ptrdiff_t>(rank), -1) ==
        node.axes.begin() + static_cast<std::ptrdiff_t>(rank))
      return false;
    const PartialShape spread(
        std::vector<Dimension>(node.shape.begin(), node.shape.begin() + static_cast<std::ptrdiff_t>(rank)));
    const auto elements = [this](const PartialShape& shape) {
      return Elements(shape, [this](const Dimension& d) { return Assumed(graph_, d); });
    };
    if (elements(spread) > elements(choice->spread)) choice->spread = spread;
    choice->repeated = true;
    return true;
  }

  // Is it repeated along rows that are known to be short, which packets go across?
  bool IsOfShortRows(int id) const {
    const auto& readers = readers_of_[static_cast<std::size_t>(id)];
    return std::any_of(readers.begin(), readers.end(), [this](int reader) {
      const Node& node = graph_.node(reader);
      return node.kind == Kind::kBroadcast && Assumed(graph_, node.shape[node.shape.size() - 1]) <= kShortRow;
    });
  }

  // Is it made of functions, down to what is in memory, or is going to be?
  bool ComputesFunctions(int id, const std::set<int>& kept) const {
    return functions_[static_cast<std::size_t>(id)] &&
           HasFunctions(graph_, {id}, [&](int of) { return roots_.count(of) + kept.count(of) > 0; });
  }

  // What is computed for the value, and what that reads.
  std::set<int> MadeFrom(int id) const {
    std::set<int> made;
    std::vector<int> open = {id};
    while (!open.empty()) {
      const int next = open.back();
      open.pop_back();
      if (!made.insert(next).second || (next != id && roots_.count(next) != 0)) continue;
      const std::vector<int>& inputs = graph_.node(next).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return made;
  }

  std::vector<std::pair<double, PartialShape>> WorkOf(int id) const {
    std::vector<std::pair<double, PartialShape>> terms;
    for (const int of : MadeFrom(id)) {
      const Node& node = graph_.node(of);
      if (of != id && roots_.count(of) != 0) continue;
      if (node.kind == Kind::kReduce) terms.emplace_back(1, graph_.node(node.inputs[0]).shape);
      else if (node.kind == Kind::kScan) terms.emplace_back(kScannedCost, node.shape);
      else if (node.kind == Kind::kMap) terms.emplace_back(graph::Info(node.op).cost, node.shape);
      else if (IsByIndex(of)) terms.emplace_back(kByIndex, node.shape);
    }
    return terms;
  }

  // Would the kernel that reduces what the value is made of compute it, as a number of each row?
  bool FollowsReduction(int id) const {
    const std::set<int> made = MadeFrom(id);
    const std::set<int>& units = units_of_[static_cast<std::size_t>(id)];
    return std::any_of(made.begin(), made.end(), [&](int of) {
      if (graph_.node(of).kind != Kind::kReduce) return false;
      const auto root = unit_of_root_.find(of);
      return root == unit_of_root_.end() || units.count(root->second) > 0;
    });
  }

  const Graph& graph_;
  const std::set<int>& roots_;
  std::vector<bool> gathers_, positions_;  // is it made of what is gathered; of positions, and no float?
  std::vector<bool> by_index_, functions_;  // is it gathered at positions that are; made of functions?
  std::map<int, int> unit_of_root_;
  std::vector<std::set<int>> units_of_;  // of a node that is inlined: the units
  std::vector<std::set<int>> packets_in_;  // of these: those that have packets of it
  std::vector<std::set<int>> steps_in_;  // of these: those that have one number of it for each step of columns
  std::vector<std::set<int>> readers_of_;
};

}  // namespace

std::string_view Name(Why why) {
  static constexpr std::string_view kNames[] = {"an output",
                                                "a product of matrices, which BLAS writes, or a kernel",
                                                "a factor of a product, which BLAS reads",
                                                "read at computed positions",
                                                "gathered along memory, and read across it",
                                                "the kernel that reads it would become too large",
                                                "reduced over other axes than the kernel that reads it",
                                                "scanned along another axis than its reader goes, or read lane by lane",
                                                "dearer to compute again than to keep",
                                                "cheaper than to write and to read it"};
  return kNames[static_cast<int>(why)];
}

std::string_view Name(Apart why) {
  static constexpr std::string_view kNames[] = {
      "BLAS computes one of them, unless a kernel does both",
      "their loops differ",
      "one has a function of each row of the other, which takes packets of rows",
      "one computes lanes of packets one by one of what the other scans",
      "one reads other points of the other's result than it is at",
      "together they would be too large",
      "a step between them needs the one and is needed by the other"};
  return kNames[static_cast<int>(why)];
}

bool HasFunctions(const Graph& graph, std::vector<int> nodes, const std::function<bool(int)>& is_kept) {
  std::set<int> seen(nodes.begin(), nodes.end());
  while (!nodes.empty()) {
    const Node& node = graph.node(nodes.back());
    nodes.pop_back();
    if (IsFunction(node)) return true;
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      if (!IsGathered(node, k) && !is_kept(node.inputs[k]) && seen.insert(node.inputs[k]).second)
        nodes.push_back(node.inputs[k]);
  }
  return false;
}

bool Weight::MemoryPays() const {
  return each >= kLeastEach && operations > std::max(kLeastSaved, kAdditionsPerByte * bytes);
}

bool ChooseRoots(const Graph& graph, const std::vector<Unit>& units, std::set<int>* roots,
                 std::map<int, Choice>* choices) {
  bool added = false;
  for (Choice& choice : Chooser(graph, units, *roots).Run()) {
    if (choice.why == Why::kRepeated) added = roots->insert(choice.node).second || added;
    (*choices)[choice.node] = std::move(choice);
  }
  return added;
}

}  // namespace umbra::plan

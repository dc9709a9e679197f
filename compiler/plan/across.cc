#include "compiler/plan/across.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace umbra::plan {

using graph::Graph;
using graph::Node;
using Kind = graph::Node::Kind;

namespace {

// Of each value that a kernel would compute, by dimension: along which other dimensions a gather differs whose place in
// memory moves with the dimension, so that a walk along it goes along memory.
class Gathered {
 public:
  Gathered(const Graph& graph, const std::set<int>& roots) {
    for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
      const Node& node = graph.node(id);
      const std::size_t rank = node.shape.size();
      Dims differs = 0, index = 0;
      std::vector<Dims> beside(rank, 0);
      if (node.kind == Kind::kIndex) differs = index = Dims{1} << node.axes[0];
      else if (node.kind == Kind::kInput || roots.count(id) > 0) differs = (Dims{1} << rank) - 1;
      else
        for (std::size_t k = 0; k < node.inputs.size(); ++k) {
          if (IsGathered(node, k)) continue;
          const auto input = static_cast<std::size_t>(node.inputs[k]);
          const AxisMap map = OperandMap(graph, node, k, Identity(rank));
          const auto in_node = [&map](Dims of) { return InResult(of, map); };
          differs |= in_node(differs_[input]);
          if (MovesBySteps(graph, node, k)) index |= in_node(index_[input]);
          for (std::size_t d = 0; d < map.size(); ++d)
            if (map[d] >= 0) beside[static_cast<std::size_t>(map[d])] |= in_node(beside_[input][d]);
        }
      if (node.kind == Kind::kGather && roots.count(id) == 0)
        if (const std::size_t place = graph.node(node.inputs[0]).shape.size(); place > 0) {
          const AxisMap map = OperandMap(graph, node, place, Identity(rank));
          const Dims along = InResult(index_[static_cast<std::size_t>(node.inputs[place])], map);
          for (std::size_t d = 0; d < rank; ++d)
            if ((along >> d & 1) != 0) beside[d] |= differs;
        }
      differs_.push_back(differs);
      index_.push_back(index);
      beside_.push_back(std::move(beside));
    }
  }

  bool Along(int id, int dim, int other) const {
    return (beside_[static_cast<std::size_t>(id)][static_cast<std::size_t>(dim)] >> other & 1) != 0;
  }
  bool Differs(int id, int dim) const { return (differs_[static_cast<std::size_t>(id)] >> dim & 1) != 0; }

 private:
  using Dims = std::uint64_t;  // a bit for each

  // Where its operand number k walks along memory, does the value, too? A quotient stays, a multiple leaps.
  static bool MovesBySteps(const Graph& graph, const Node& node, std::size_t k) {
    constexpr double kFew = 16;
    if (node.kind != Kind::kMap || (node.op != graph::Op::div && node.op != graph::Op::mul)) return true;
    if (node.op == graph::Op::div) return false;
    const int by = node.inputs[1 - k];
    const Node& number = graph.node(graph.node(by).kind == Kind::kBroadcast ? graph.node(by).inputs[0] : by);
    return number.kind == Kind::kConstant && std::abs(number.constant) < kFew;
  }

  static Dims InResult(Dims of, const AxisMap& map) {
    Dims dims = 0;
    for (std::size_t d = 0; d < map.size(); ++d)
      if (map[d] >= 0 && (of >> d & 1) != 0) dims |= Dims{1} << map[d];
    return dims;
  }

  std::vector<Dims> differs_, index_;  // by node: the dimensions along which it differs, and does so by an index
  std::vector<std::vector<Dims>> beside_;  // by node and dimension
};

// What a kernel would read across memory though it gathers along it: if it has no reductions, the operand of a
// transpose whose last axis is not the kernel's, along which packets lie; or a column of a matrix, for each of its
// rows. Lane by lane it takes as many lines of memory as elements, unless they are so few that they stay in the first
// cache; from memory it is turned by tiles. Short rows that are known have packets go across them anyway.
class AcrossFinder {
 public:
  AcrossFinder(const Graph& graph, const std::set<int>& roots, const Gathered& gathered, const Domain& domain)
      : graph_(graph),
        roots_(roots),
        gathered_(gathered),
        domain_(domain),
        vector_(static_cast<int>(domain.dims.size()) - 1) {}

  // Of more than a few the temporaries would take longer.
  std::set<int> Find(const Root& root) {
    constexpr std::size_t kFew = 4;
    if (vector_ > 0) Visit(root.node, root.map, true);
    return found_.size() <= kFew ? std::move(found_) : std::set<int>();
  }

 private:
  void Visit(int id, const AxisMap& map, bool is_root) {
    const Node& node = graph_.node(id);
    if (node.kind == Kind::kInput || (!is_root && roots_.count(id) > 0) || !visited_.insert({id, map}).second) return;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (IsGathered(node, k)) continue;
      const AxisMap inputs = node.kind == Kind::kReduce ? ReducedOperandMap(graph_, node, map, domain_).value_or(map)
                                                        : OperandMap(graph_, node, k, map);
      const int input = node.inputs[k];
      const bool across = node.kind == Kind::kTranspose
                              ? domain_.flexible && GoesAcross(input, inputs)
                              : node.kind == Kind::kBroadcast && IsColumnOfRows(input, inputs);
      if (across) found_.insert(input);
      else Visit(input, inputs, false);
    }
  }

  bool GoesAcross(int id, const AxisMap& map) const {
    constexpr std::int64_t kManyLines = 128, kLongLine = 32;
    const auto packets = std::find(map.begin(), map.end(), vector_);
    if (!IsLong(vector_, kManyLines) || packets == map.end() || packets + 1 == map.end() || map.back() < 0 ||
        !IsLong(map.back(), kLongLine))
      return false;
    return gathered_.Along(id, static_cast<int>(map.size()) - 1, static_cast<int>(packets - map.begin()));
  }

  // A column of a matrix, of which packets have an element of each row, again for each index of another axis.
  bool IsColumnOfRows(int id, const AxisMap& map) const {
    constexpr std::int64_t kLongRow = 32, kManyTimes = 16;
    const Node& node = graph_.node(id);
    const auto packets = std::find(map.begin(), map.end(), vector_);
    if (!IsLong(vector_, kLongRow) || node.kind != Kind::kGather || node.guarded || roots_.count(id) > 0 ||
        packets == map.end())
      return false;
    bool repeats = false;
    for (int axis = 0; axis < vector_; ++axis)
      repeats = repeats || (IsLong(axis, kManyTimes) && std::find(map.begin(), map.end(), axis) == map.end());
    const std::size_t rank = graph_.node(node.inputs[0]).shape.size();
    const auto moves = [&](std::size_t dim) {
      return gathered_.Differs(node.inputs[dim + 1], static_cast<int>(packets - map.begin()));
    };
    return repeats && rank > 1 && !moves(rank - 1) && moves(rank - 2);
  }

  bool IsLong(int axis, std::int64_t least) const {
    const Dimension extent = graph_.Known(domain_.dims[static_cast<std::size_t>(axis)]);
    return !extent.is_static() || static_cast<std::int64_t>(extent) >= least;
  }

  const Graph& graph_;
  const std::set<int>& roots_;
  const Gathered& gathered_;
  const Domain& domain_;
  const int vector_;
  std::set<int> found_;
  std::set<std::pair<int, AxisMap>> visited_;
};

}  // namespace

std::set<int> FindAcross(const Graph& graph, const Fusion& fusion) {
  const Gathered gathered(graph, fusion.roots);
  std::set<int> across;
  for (const Unit& unit : fusion.units)
    if (!unit.gemm && (unit.domain.flexible || unit.domain.inner.back()))
      across.merge(AcrossFinder(graph, fusion.roots, gathered, unit.domain).Find(unit.roots[0]));
  return across;
}

}  // namespace umbra::plan

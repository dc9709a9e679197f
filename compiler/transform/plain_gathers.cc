#include "compiler/transform/plain_gathers.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/transform/copy_node.h"
#include "compiler/transform/gather_reads.h"
#include "compiler/transform/joined_parts.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

// Longer chains of values are not followed for what gave them a dimension of extent 1.
constexpr int kLongestChain = 64;

class Rewriter {
 public:
  Rewriter(const Graph& source, bool on_gpu)
      : source_(source),
        result_(source.name()),
        reads_(source, {}),
        parts_(on_gpu ? std::set<int>() : GathersOfSharedParts(source)) {}

  Graph Run() {
    FindReaders();
    RewriteNodes(
        source_,
        [&](const Node& node, std::vector<int> inputs) {
          if (node.kind == Kind::kGather && node.guarded && IsEmpty(source_.node(node.inputs[0]))) return Outside(node);
          const bool selects =
              node.guarded && Selects(node) && !reads_.SharesWork(node.inputs[0]) && parts_.count(NumberOf(node)) == 0;
          const auto plain =
              node.kind == Kind::kGather && selects == node.guarded ? Plain(node, inputs[0]) : std::nullopt;
          if (!plain) return CopyNode(&result_, node, std::move(inputs));
          return node.guarded ? result_.Map(Op::select, {inputs.back(), *plain, Outside(node)}) : *plain;
        },
        &result_);
    return std::move(result_);
  }

 private:
  int NumberOf(const Node& node) const { return static_cast<int>(&node - source_.nodes().data()); }

  void FindReaders() {
    const std::size_t count = source_.nodes().size();
    places_.assign(count, false);
    beside_.assign(count, false);
    for (const Output& output : source_.outputs()) beside_[static_cast<std::size_t>(output.node)] = true;
    for (std::size_t id = count; id-- > 0;) {
      const Node& node = source_.node(static_cast<int>(id));
      for (std::size_t k = 0; k < node.inputs.size(); ++k) {
        const auto input = static_cast<std::size_t>(node.inputs[k]);
        const bool gathered = node.kind == Kind::kGather && k == 0;
        if (!gathered) beside_[input] = true;
        if (node.kind == Kind::kGather ? !gathered : places_[id]) places_[input] = true;
      }
    }
  }

  bool IsEmpty(const Node& node) const {
    for (std::size_t d = 0; d < node.shape.size(); ++d)
      if (const Dimension known = source_.Known(node.shape[d]); known.is_static() && static_cast<index_t>(known) == 0)
        return true;
    return false;
  }

  // What the gather is where its guard fails.
  int Outside(const Node& gather) {
    const int constant = result_.Constant(gather.constant, ComputeType(gather.dtype));
    return result_.Cast(result_.Broadcast(constant, std::vector<int>(gather.shape.size(), -1), gather.shape),
                        gather.dtype);
  }

  // Can the guard be a selection's condition? Narrow dtypes are only moved.
  bool Selects(const Node& gather) const {
    const bool computed = gather.dtype == ComputeType(gather.dtype) && gather.dtype != DType::kBool;
    return computed && source_.node(gather.inputs.back()).shape.size() == gather.shape.size();
  }

  // What the gather reads where it has no guard, or where that holds.
  std::optional<int> Plain(const Node& gather, int source) {
    if (const auto axes = Permutation(gather)) return result_.Transpose(source, *axes);
    return Repeated(gather, source);
  }

  // The axis whose index the position is, or comes to as windows that are as large as their axis stand at 0.
  std::optional<int> IndexOf(int position) const {
    const Node& node = source_.node(position);
    if (node.kind == Kind::kIndex) return node.axes[0];
    if (node.kind != Kind::kMap || node.op != Op::plus) return std::nullopt;
    if (IsZero(node.inputs[0])) return IndexOf(node.inputs[1]);
    return IsZero(node.inputs[1]) ? IndexOf(node.inputs[0]) : std::nullopt;
  }

  bool IsZero(int position) const {
    const Node& node = source_.node(position);
    if (node.kind == Kind::kConstant) return node.constant == 0;
    if (node.kind == Kind::kIndex) {
      const Dimension extent = source_.Known(node.shape[static_cast<std::size_t>(node.axes[0])]);
      return extent.is_static() && static_cast<index_t>(extent) == 1;
    }
    if (node.kind != Kind::kMap) return false;
    if (node.op == Op::mul) return IsZero(node.inputs[0]) || IsZero(node.inputs[1]);
    return node.op == Op::plus && IsZero(node.inputs[0]) && IsZero(node.inputs[1]);
  }

  // The axes of a transpose that the gather is: it reads each element of its source, at its own positions in another
  // order.
  std::optional<std::vector<int>> Permutation(const Node& gather) const {
    const PartialShape& from = source_.node(gather.inputs[0]).shape;
    if (from.size() != gather.shape.size()) return std::nullopt;
    std::vector<int> axes(from.size(), -1);
    for (std::size_t d = 0; d < from.size(); ++d) {
      const auto index = IndexOf(gather.inputs[d + 1]);
      if (!index) return std::nullopt;
      const auto axis = static_cast<std::size_t>(*index);
      if (axes[axis] >= 0 || !source_.SameDimension(from[d], gather.shape[axis])) return std::nullopt;
      axes[axis] = static_cast<int>(d);
    }
    return axes;
  }

  // The gather as a broadcast, of a transpose only where a guard may leave few of its elements, or where it is of what
  // a kernel reads from memory anyway, as what is transposed is computed for each reader: it reads its source at its
  // own positions, of dimensions of extent 1 the only one.
  std::optional<int> Repeated(const Node& gather, int source) {
    const PartialShape& from = source_.node(gather.inputs[0]).shape;
    if (places_[static_cast<std::size_t>(NumberOf(gather))]) return std::nullopt;
    std::vector<int> axes(gather.shape.size(), -1);
    std::set<int> single;
    std::map<int, int> dims;  // of the source that are left, by the gather's axis
    for (std::size_t d = 0; d < from.size(); ++d) {
      const Dimension extent = source_.Known(from[d]);
      const auto index = IndexOf(gather.inputs[d + 1]);
      if (index && source_.SameDimension(from[d], gather.shape[static_cast<std::size_t>(*index)]) &&
          dims.emplace(*index, static_cast<int>(d - single.size())).second)
        continue;
      if (!extent.is_static() || static_cast<index_t>(extent) != 1) return std::nullopt;
      single.insert(static_cast<int>(d));
    }
    std::vector<int> order;
    for (const auto& [axis, dim] : dims) {
      axes[static_cast<std::size_t>(axis)] = static_cast<int>(order.size());
      order.push_back(dim);
    }
    const bool alone = !beside_[static_cast<std::size_t>(gather.inputs[0])];  // else it would be computed twice
    const auto found = single.empty() ? std::optional(source) : alone ? Without(source, single) : std::nullopt;
    if (!found) return std::nullopt;
    const int value = *found;
    const bool sorted = std::is_sorted(order.begin(), order.end());
    if (!sorted && !gather.guarded && !IsOfMemory(value)) return std::nullopt;
    return result_.Broadcast(sorted ? value : result_.Transpose(value, order), axes, gather.shape);
  }

  // Is it elementwise work on inputs, or one of them?
  bool IsOfMemory(int id) {
    const auto known = of_memory_.find(id);
    if (known != of_memory_.end()) return known->second;
    std::vector<int> open = {id};
    std::set<int> seen;
    bool all = true;
    while (!open.empty() && all) {
      const Node& node = result_.node(open.back());
      open.pop_back();
      all = node.kind == Kind::kInput || node.kind == Kind::kConstant || node.kind == Kind::kScalar ||
            node.kind == Kind::kMap || node.kind == Kind::kCast || node.kind == Kind::kBroadcast ||
            node.kind == Kind::kTranspose;
      for (const int input : node.inputs)
        if (seen.insert(input).second) open.push_back(input);
    }
    return of_memory_[id] = all;
  }

  // The value without dimensions of extent 1 that reductions or broadcasts gave it.
  std::optional<int> Without(int id, const std::set<int>& dims) {
    const auto key = std::make_pair(id, dims);
    const auto [found, fresh] = without_.try_emplace(key);  // none for those at the end of long chains
    if (!fresh || depth_ > kLongestChain) return found->second;
    ++depth_;
    const auto value = MakeWithout(id, dims);
    --depth_;
    return without_[key] = value;
  }
  std::optional<int> MakeWithout(int id, const std::set<int>& dims) {
    const Node node = result_.node(id);
    const auto left_of = [](const std::set<int>& gone, int dim) {
      return dim - static_cast<int>(std::distance(gone.begin(), gone.lower_bound(dim)));
    };
    switch (node.kind) {
      case Kind::kMap:
      case Kind::kCast: {
        std::vector<int> inputs;
        for (const int input : node.inputs) {
          const auto value = result_.node(input).shape.size() == 0 ? std::optional(input) : Without(input, dims);
          if (!value) return std::nullopt;
          inputs.push_back(*value);
        }
        return CopyNode(&result_, node, std::move(inputs));
      }
      case Kind::kReduce: {
        std::set<int> inner = dims;
        std::vector<int> axes;
        for (const int axis : node.axes)
          if (!node.keepdim || inner.erase(axis) == 0) return std::nullopt;
        for (const int axis : node.axes) axes.push_back(left_of(inner, axis));
        const auto value = inner.empty() ? std::optional(node.inputs[0]) : Without(node.inputs[0], inner);
        return value ? std::optional(result_.Reduce(node.reducer, *value, axes, false, node.contract)) : std::nullopt;
      }
      case Kind::kBroadcast: {
        std::vector<int> axes;
        std::vector<Dimension> shape;
        for (std::size_t d = 0; d < node.axes.size(); ++d) {
          const bool gone = dims.count(static_cast<int>(d)) > 0;
          if (gone && node.axes[d] >= 0) return std::nullopt;
          if (!gone) axes.push_back(node.axes[d]), shape.push_back(node.shape[d]);
        }
        return result_.Broadcast(node.inputs[0], axes, PartialShape(std::move(shape)));
      }
      case Kind::kGather: {  // as a reshape that adds dimensions is
        if (node.guarded) return std::nullopt;
        std::vector<int> axes;
        std::vector<Dimension> shape;
        for (std::size_t d = 0; d < node.shape.size(); ++d) {
          const bool gone = dims.count(static_cast<int>(d)) > 0;
          axes.push_back(gone ? -1 : static_cast<int>(shape.size()));
          if (!gone) shape.push_back(node.shape[d]);
        }
        const PartialShape left(std::move(shape));
        std::vector<int> positions;
        bool moves = false;
        for (std::size_t k = 1; k < node.inputs.size(); ++k) {
          const auto position = PositionIn(left, axes, node.inputs[k]);
          if (!position) return std::nullopt;
          positions.push_back(*position);
          moves = moves || result_.node(*position).shape.size() > 0;
        }
        return moves ? std::optional(result_.Gather(node.inputs[0], std::move(positions), -1, 0)) : std::nullopt;
      }
      default: return std::nullopt;
    }
  }

  // The position in a shape, of which axes[k] is axis k of the one that it is in, or -1: that is of extent 1.
  std::optional<int> PositionIn(const PartialShape& shape, const std::vector<int>& axes, int id) {
    const Node node = result_.node(id);
    if (node.shape.size() == 0) return id;
    if (node.kind == Kind::kIndex) {
      const int axis = axes[static_cast<std::size_t>(node.axes[0])];
      return axis < 0 ? result_.Constant(0, DType::kInt64) : result_.Index(axis, shape);
    }
    if (node.kind != Kind::kMap) return std::nullopt;
    std::vector<int> inputs;
    for (const int input : node.inputs) {
      const auto position = PositionIn(shape, axes, input);
      if (!position) return std::nullopt;
      inputs.push_back(*position);
    }
    return result_.Map(node.op, std::move(inputs));
  }

  const Graph& source_;
  Graph result_;
  GatherReads reads_;
  const std::set<int> parts_;  // of the source
  std::vector<bool>
      places_;  // does a value of the source serve as a position? Such gathers stay, prefetching looks for them
  std::vector<bool> beside_;  // is it read by something else than gathers?
  std::map<int, bool> of_memory_;
  std::map<std::pair<int, std::set<int>>, std::optional<int>> without_;
  int depth_ = 0;  // of Without
};

}  // namespace

Graph PlainGathers(const Graph& graph, bool on_gpu) { return Rewriter(graph, on_gpu).Run(); }

}  // namespace umbra::graph

#include "compiler/transform/plain_gathers.h"

#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/transform/copy_node.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

// Longer chains of values are not followed for what gave them a dimension of extent 1.
constexpr int kLongestChain = 64;

class Rewriter {
 public:
  explicit Rewriter(const Graph& source) : source_(source), result_(source.name()) {}

  Graph Run() {
    FindReaders();
    RewriteNodes(source_, [&](const Node& node, std::vector<int> inputs) {
      if (node.kind == Kind::kGather && !node.guarded) {
        if (const auto axes = Permutation(node)) return result_.Transpose(inputs[0], *axes);
        if (const auto repeated = Repeated(node, inputs[0])) return *repeated;
      }
      return CopyNode(&result_, node, std::move(inputs));
    }, &result_);
    return std::move(result_);
  }

 private:
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

  // The axes of a transpose that the gather is: it reads each element of its source, at its own positions in another order.
  std::optional<std::vector<int>> Permutation(const Node& gather) const {
    const PartialShape& from = source_.node(gather.inputs[0]).shape;
    if (from.size() != gather.shape.size()) return std::nullopt;
    std::vector<int> axes(from.size(), -1);
    for (std::size_t d = 0; d < from.size(); ++d) {
      const Node& position = source_.node(gather.inputs[d + 1]);
      if (position.kind != Kind::kIndex) return std::nullopt;
      const auto axis = static_cast<std::size_t>(position.axes[0]);
      if (axes[axis] >= 0 || !source_.SameDimension(from[d], gather.shape[axis])) return std::nullopt;
      axes[axis] = static_cast<int>(d);
    }
    return axes;
  }

  // The gather as a broadcast: it reads its source at its own positions, of dimensions of extent 1 the only one.
  std::optional<int> Repeated(const Node& gather, int source) {
    const PartialShape& from = source_.node(gather.inputs[0]).shape;
    if (places_[static_cast<std::size_t>(&gather - source_.nodes().data())]) return std::nullopt;
    std::vector<int> axes(gather.shape.size(), -1);
    std::set<int> single;
    int last = -1;
    for (std::size_t d = 0; d < from.size(); ++d) {
      const Dimension extent = source_.Known(from[d]);
      const Node& position = source_.node(gather.inputs[d + 1]);
      if (extent.is_static() && static_cast<index_t>(extent) == 1) {
        single.insert(static_cast<int>(d));
        continue;
      }
      if (position.kind != Kind::kIndex || position.axes[0] <= last) return std::nullopt;
      last = position.axes[0];
      if (!source_.SameDimension(from[d], gather.shape[static_cast<std::size_t>(last)])) return std::nullopt;
      axes[static_cast<std::size_t>(last)] = static_cast<int>(d - single.size());
    }
    const bool alone = !beside_[static_cast<std::size_t>(gather.inputs[0])];  // else it would be computed twice
    const auto value = single.empty() ? std::optional(source) : alone ? Without(source, single) : std::nullopt;
    return value ? std::optional(result_.Broadcast(*value, axes, gather.shape)) : std::nullopt;
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
    const auto left_of = [](const std::set<int>& gone, int dim) { return dim - static_cast<int>(std::distance(gone.begin(), gone.lower_bound(dim))); };
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
      default: return std::nullopt;
    }
  }

  const Graph& source_;
  Graph result_;
  std::vector<bool> places_;  // does a value of the source serve as a position? Such gathers stay, prefetching looks for them
  std::vector<bool> beside_;  // is it read by something else than gathers?
  std::map<std::pair<int, std::set<int>>, std::optional<int>> without_;
  int depth_ = 0;  // of Without
};

}  // namespace

Graph PlainGathers(const Graph& graph) { return Rewriter(graph).Run(); }

}  // namespace umbra::graph

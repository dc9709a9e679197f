#include "compiler/transform/fewest_dims.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "compiler/transform/copy_node.h"
#include "compiler/transform/gather_reads.h"
#include "umbra/error.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

// Values of more maps, one after the other, stay as they are.
constexpr int kMostMaps = 1000;

class Rewriter {
 public:
  explicit Rewriter(const Graph& source) : source_(source), result_(source.name()) {}

  Graph Run() {
    RewriteNodes(
        source_,
        [this](const Node& node, std::vector<int> inputs) {
          const int made = CopyNode(&result_, node, std::move(inputs));
          Look(made);
          return node.kind == Kind::kMap && Info(node.op).cost > kCheap && IsFloat(node.dtype) ? InFewest(made) : made;
        },
        &result_);
    return std::move(result_);
  }

 private:
  using Dims = std::set<int>;

  // The dimensions along which a value may differ, and how many maps it is made by, one after the other.
  struct Known {
    Dims dims;
    int maps = 0;
  };

  // Of the value, whose operands were looked at.
  const Known& Look(int id) {
    if (const auto found = known_.find(id); found != known_.end()) return found->second;
    const Node& node = result_.node(id);
    Known known;
    switch (node.kind) {
      case Kind::kIndex: known.dims.insert(node.axes[0]); break;
      case Kind::kBroadcast:
        for (std::size_t d = 0; d < node.axes.size(); ++d)
          if (node.axes[d] >= 0) known.dims.insert(static_cast<int>(d));
        break;
      case Kind::kMap:
      case Kind::kCast:
        for (const int input : node.inputs) {
          const Known& of = Look(input);
          known.dims.insert(of.dims.begin(), of.dims.end());
          known.maps = std::max(known.maps, of.maps + 1);
        }
        break;
      default:
        for (std::size_t d = 0; d < node.shape.size(); ++d) known.dims.insert(static_cast<int>(d));
    }
    return known_.emplace(id, std::move(known)).first->second;
  }

  int InFewest(int id) {
    const PartialShape shape = result_.node(id).shape;
    const Dims dims = Look(id).dims;
    bool fewer = false;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool one = result_.SameDimension(shape[d], Dimension(1));
      fewer = fewer || (!one && dims.count(static_cast<int>(d)) == 0);
    }
    if (!fewer || Look(id).maps > kMostMaps) return id;
    const int value = In(id, dims);
    std::vector<int> axes(shape.size(), -1);
    int axis = 0;
    for (const int d : dims) axes[static_cast<std::size_t>(d)] = axis++;
    return result_.Broadcast(value, std::move(axes), shape);
  }

  // The value in these of its dimensions, along the others of which it is alike.
  int In(int id, const Dims& dims) {
    const auto key = std::pair(id, dims);
    if (const auto found = made_.find(key); found != made_.end()) return found->second;
    const int made = MakeIn(result_.node(id), id, dims);
    made_.emplace(key, made);
    return made;
  }

  int MakeIn(Node node, int id, const Dims& dims) {  // a copy: nodes are added
    if (node.shape.size() == 0) return id;
    std::vector<Dimension> left;
    for (const int d : dims) left.push_back(node.shape[static_cast<std::size_t>(d)]);
    const PartialShape shape(std::move(left));
    switch (node.kind) {
      case Kind::kIndex:
        return result_.Index(static_cast<int>(std::distance(dims.begin(), dims.find(node.axes[0]))), shape);
      case Kind::kBroadcast: {  // along ascending axes of all that its operand has
        std::vector<int> axes;
        for (const int d : dims) axes.push_back(node.axes[static_cast<std::size_t>(d)]);
        const bool all = result_.node(node.inputs[0]).shape.size() == axes.size();
        return all || axes.empty() ? node.inputs[0] : result_.Broadcast(node.inputs[0], std::move(axes), shape);
      }
      case Kind::kMap:
      case Kind::kCast: {
        std::vector<int> inputs;
        for (const int input : node.inputs) inputs.push_back(In(input, dims));
        return CopyNode(&result_, node, std::move(inputs));
      }
      default: throw InternalError("a value that differs along all dimensions has fewer");
    }
  }

  const Graph& source_;
  Graph result_;
  std::map<int, Known> known_;
  std::map<std::pair<int, Dims>, int> made_;
};

}  // namespace

Graph InFewestDims(const Graph& graph) { return Rewriter(graph).Run(); }

}  // namespace umbra::graph

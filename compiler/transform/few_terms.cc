#include "compiler/transform/few_terms.h"

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "compiler/transform/column_of.h"
#include "compiler/transform/copy_node.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

class Rewriter {
 public:
  explicit Rewriter(const Graph& source) : source_(source), result_(source.name()), columns_(&result_) {}

  Graph Run() {
    RewriteNodes(
        source_,
        [this](const Node& node, std::vector<int> inputs) {
          return node.kind == Kind::kReduce && IsOfPairs(node, inputs[0]) ? SumOf(inputs[0], node.axes[0])
                                                                          : CopyNode(&result_, node, std::move(inputs));
        },
        &result_);
    return std::move(result_);
  }

 private:
  // Is it a sum of a few, each computed of broadcasts of which none has all dimensions?
  bool IsOfPairs(const Node& reduce, int operand) const {
    const PartialShape& shape = result_.node(operand).shape;
    if (reduce.reducer != Reducer::sum || reduce.axes.size() != 1 || reduce.keepdim || shape.size() < 3) return false;
    const Dimension terms = result_.Known(shape[static_cast<std::size_t>(reduce.axes[0])]);
    if (!terms.is_static() || static_cast<index_t>(terms) < 1 || static_cast<index_t>(terms) > kFewTerms) return false;
    const auto values = columns_.ValuesOf(operand);
    if (!values) return false;
    std::set<std::vector<int>> along;  // by which axes broadcasts are
    for (const int id : *values) {
      const Node& node = result_.node(id);
      if (node.kind == Kind::kMap || node.kind == Kind::kCast) continue;
      if (node.kind != Kind::kBroadcast) return false;
      if (result_.node(node.inputs[0]).shape.size() > 0) along.insert(node.axes);
    }
    return along.size() > 1;
  }

  int SumOf(int operand, int axis) {
    const Dimension terms = result_.Known(result_.node(operand).shape[static_cast<std::size_t>(axis)]);
    int sum = columns_.Of(operand, axis, 0);
    for (index_t k = 1; k < static_cast<index_t>(terms); ++k)
      sum = result_.Map(Op::plus, {sum, columns_.Of(operand, axis, k)});
    return sum;
  }

  const Graph& source_;
  Graph result_;
  Columns columns_;
};

}  // namespace

Graph SumFewTerms(const Graph& graph) { return Rewriter(graph).Run(); }

}  // namespace umbra::graph

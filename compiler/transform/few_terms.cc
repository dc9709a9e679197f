#include "compiler/transform/few_terms.h"

#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/transform/copy_node.h"
#include "umbra/error.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

// Terms of more values stay in their loop.
constexpr std::size_t kMostValues = 64;

class Rewriter {
 public:
  explicit Rewriter(const Graph& source) : source_(source), result_(source.name()) {}

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
    std::set<int> seen;
    std::set<std::vector<int>> along;  // by which axes broadcasts are
    std::vector<int> open{operand};
    while (!open.empty()) {
      const int id = open.back();
      const Node& node = result_.node(id);
      open.pop_back();
      if (!seen.insert(id).second || node.shape.size() == 0) continue;
      if (seen.size() > kMostValues) return false;
      if (node.kind == Kind::kMap || node.kind == Kind::kCast) {
        open.insert(open.end(), node.inputs.begin(), node.inputs.end());
      } else {
        if (node.kind != Kind::kBroadcast) return false;
        if (result_.node(node.inputs[0]).shape.size() > 0) along.insert(node.axes);
      }
    }
    return along.size() > 1;
  }

  int SumOf(int operand, int axis) {
    const Dimension terms = result_.Known(result_.node(operand).shape[static_cast<std::size_t>(axis)]);
    int sum = TermOf(operand, axis, 0);
    for (index_t k = 1; k < static_cast<index_t>(terms); ++k)
      sum = result_.Map(Op::plus, {sum, TermOf(operand, axis, k)});
    return sum;
  }

  // Element k of the value along the axis, which it does not have.
  int TermOf(int id, int axis, index_t k) {
    const auto key = std::make_tuple(id, axis, k);
    if (const auto found = terms_.find(key); found != terms_.end()) return found->second;
    const int term = MakeTerm(result_.node(id), id, axis, k);
    terms_.emplace(key, term);
    return term;
  }

  int MakeTerm(Node node, int id, int axis, index_t k) {  // a copy: nodes are added
    if (node.shape.size() == 0) return id;
    std::vector<Dimension> left;
    for (std::size_t d = 0; d < node.shape.size(); ++d)
      if (static_cast<int>(d) != axis) left.push_back(node.shape[d]);
    const PartialShape shape(std::move(left));
    if (node.kind == Kind::kMap || node.kind == Kind::kCast) {
      std::vector<int> inputs;
      for (const int input : node.inputs) inputs.push_back(TermOf(input, axis, k));
      return CopyNode(&result_, node, std::move(inputs));
    }
    if (node.kind == Kind::kBroadcast) {
      const int of = node.axes[static_cast<std::size_t>(axis)];
      node.axes.erase(node.axes.begin() + axis);
      for (int& from : node.axes)
        if (of >= 0 && from > of) --from;
      return result_.Broadcast(of < 0 ? node.inputs[0] : Column(node.inputs[0], of, k), std::move(node.axes), shape);
    }
    throw InternalError("a term of what is neither computed nor a broadcast");
  }

  // Of what has fewer dimensions: a gather that others may find better ways for.
  int Column(int id, int axis, index_t k) {
    const PartialShape whole = result_.node(id).shape;
    std::vector<Dimension> left;
    for (std::size_t d = 0; d < whole.size(); ++d)
      if (static_cast<int>(d) != axis) left.push_back(whole[d]);
    const PartialShape shape(std::move(left));
    std::vector<int> positions;
    int next = 0;
    for (std::size_t d = 0; d < whole.size(); ++d)
      positions.push_back(static_cast<int>(d) == axis ? result_.Constant(static_cast<double>(k), DType::kInt64)
                                                      : result_.Index(next++, shape));
    return result_.Gather(id, std::move(positions), -1, 0);
  }

  const Graph& source_;
  Graph result_;
  std::map<std::tuple<int, int, index_t>, int> terms_;
};

}  // namespace

Graph SumFewTerms(const Graph& graph) { return Rewriter(graph).Run(); }

}  // namespace umbra::graph

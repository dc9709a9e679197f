#include "compiler/transform/narrow_products.h"

#include <optional>
#include <vector>

#include "compiler/transform/copy_node.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

class Narrower {
 public:
  explicit Narrower(const Graph& source) : source_(source), result_(source.name()), users_(source.nodes().size()) {
    for (const Node& node : source.nodes())
      for (const int input : node.inputs) ++users_[static_cast<std::size_t>(input)];
    for (const Output& output : source.outputs()) ++users_[static_cast<std::size_t>(output.node)];
  }

  Graph Run() {
    RewriteNodes(
        source_,
        [&](const Node& node, std::vector<int> inputs) {
          const std::optional<int> narrow = Narrow(node, inputs);
          return narrow ? *narrow : CopyNode(&result_, node, std::move(inputs));
        },
        &result_);
    return std::move(result_);
  }

 private:
  // The 16-bit value that the node, or what it transposes, widens; -1 if it does not.
  int Widens(int id) {
    const Node node = result_.node(id);
    if (node.kind == Kind::kTranspose) {
      const int inner = Widens(node.inputs[0]);
      return inner < 0 ? -1 : result_.Transpose(inner, node.axes);
    }
    return node.kind == Kind::kCast && IsHalf(result_.node(node.inputs[0]).dtype) ? node.inputs[0] : -1;
  }

  // `node`, with these operands, as a product of 16-bit floats.
  std::optional<int> Narrow(const Node& node, const std::vector<int>& inputs) {
    if (node.kind == Kind::kDot && node.dtype == DType::kFloat32) {
      const int a = Widens(inputs[0]), b = Widens(inputs[1]);
      if (a < 0 || b < 0 || result_.node(a).dtype != result_.node(b).dtype) return std::nullopt;
      return result_.NarrowDot(a, b, node.transpose_a, node.transpose_b, node.constant, DType::kFloat32);
    }
    if (node.kind != Kind::kCast || users_[static_cast<std::size_t>(node.inputs[0])] != 1) return std::nullopt;
    const Node product = result_.node(inputs[0]);
    if (product.kind != Kind::kDot || result_.node(product.inputs[0]).dtype != node.dtype) return std::nullopt;
    return result_.NarrowDot(product.inputs[0], product.inputs[1], product.transpose_a, product.transpose_b,
                             product.constant, node.dtype);
  }

  const Graph& source_;
  Graph result_;
  std::vector<int> users_;  // of the source's nodes
};

}  // namespace

Graph NarrowProducts(const Graph& graph) { return Narrower(graph).Run(); }

}  // namespace umbra::graph

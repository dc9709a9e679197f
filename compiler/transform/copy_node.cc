#include "compiler/transform/copy_node.h"

#include <utility>

#include "umbra/error.h"

namespace umbra::graph {

int CopyNode(Graph* graph, const Node& node, std::vector<int> inputs) {
  using Kind = Node::Kind;
  switch (node.kind) {
    case Kind::kInput: return graph->Input(node.name, node.dtype, node.shape);
    case Kind::kScalar: return graph->Scalar(node.name, node.dtype);
    case Kind::kConstant: return graph->Constant(node.constant, node.dtype);
    case Kind::kMap: return graph->Map(node.op, std::move(inputs));
    case Kind::kCast: return graph->Cast(inputs[0], node.dtype);
    case Kind::kBroadcast: return graph->Broadcast(inputs[0], node.axes, node.shape);
    case Kind::kTranspose: return graph->Transpose(inputs[0], node.axes);
    case Kind::kReduce: return graph->Reduce(node.reducer, inputs[0], node.axes, node.keepdim, node.contract);
    case Kind::kScan: return graph->Scan(node.reducer, inputs[0], node.axes[0]);
    case Kind::kDot:
      if (IsHalf(graph->node(inputs[0]).dtype))
        return graph->NarrowDot(inputs[0], inputs[1], node.transpose_a, node.transpose_b, node.constant, node.dtype);
      return graph->Dot(inputs[0], inputs[1], node.transpose_a, node.transpose_b, node.constant);
    case Kind::kIndex: return graph->Index(node.axes[0], node.shape);
    case Kind::kExtent: return graph->ExtentOf(node.extent);
    case Kind::kGather: {
      const int guard = node.guarded ? inputs.back() : -1;
      if (node.guarded) inputs.pop_back();
      const int from = inputs[0];
      return graph->Gather(from, {inputs.begin() + 1, inputs.end()}, guard, node.constant);
    }
  }
  throw InternalError("unknown kind of node");
}

std::vector<bool> LiveNodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes().size());
  for (const Output& output : graph.outputs()) live[static_cast<std::size_t>(output.node)] = true;
  for (std::size_t id = live.size(); id-- > 0;) {
    const Node& node = graph.nodes()[id];
    if (node.kind == Node::Kind::kInput || node.kind == Node::Kind::kScalar) live[id] = true;
    if (!live[id]) continue;
    for (const int input : node.inputs) live[static_cast<std::size_t>(input)] = true;
  }
  return live;
}

void RewriteNodes(const Graph& source, const Rewrite& rewrite, Graph* result,
                  const std::function<int(const Node& node, int made)>& output) {
  result->CopySymbols(source);
  const std::size_t count = source.nodes().size();
  const std::vector<bool> live = LiveNodes(source);
  std::vector<int> made(count, -1);
  for (std::size_t id = 0; id < count; ++id) {
    if (!live[id]) continue;
    const Node& node = source.nodes()[id];
    std::vector<int> inputs;
    for (const int input : node.inputs) inputs.push_back(made[static_cast<std::size_t>(input)]);
    made[id] = rewrite(node, std::move(inputs));
    result->TakeNames(made[id], source, static_cast<int>(id));
  }
  for (const Output& of : source.outputs()) {
    const int node = made[static_cast<std::size_t>(of.node)];
    result->AddOutput(of.name, output ? output(source.node(of.node), node) : node);
  }
}

}  // namespace umbra::graph

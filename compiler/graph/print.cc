#include <fmt/format.h>

#include "compiler/graph/graph.h"
#include "compiler/graph/literal.h"
#include "compiler/graph/shape_text.h"
#include "umbra/error.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

std::string Operands(const Node& node) {
  std::string text;
  for (int input : node.inputs) text += fmt::format("{}%{}", text.empty() ? "" : ", ", input);
  return text;
}

std::string Content(const Graph& graph, const Node& node) {
  switch (node.kind) {
    case Kind::kInput: return "input " + node.name;
    case Kind::kScalar: return "scalar " + node.name;
    case Kind::kConstant: return "constant " + LiteralText(node.constant);
    case Kind::kMap: return fmt::format("{} {}", Info(node.op).name, Operands(node));
    case Kind::kCast: return fmt::format("tcast<{}> {}", Name(node.dtype), Operands(node));
    case Kind::kBroadcast: return fmt::format("broadcast {} axes=[{}]", Operands(node), fmt::join(node.axes, ", "));
    case Kind::kTranspose: return fmt::format("transpose {} axes=[{}]", Operands(node), fmt::join(node.axes, ", "));
    case Kind::kReduce:
      return fmt::format("reduce<{}> {} axes=[{}]{}{}", Name(node.reducer), Operands(node), fmt::join(node.axes, ", "),
                         node.keepdim ? " keepdim" : "", node.contract ? " contract" : "");
    case Kind::kScan: return fmt::format("scan<{}> {} axis={}", Name(node.reducer), Operands(node), node.axes[0]);
    case Kind::kDot:
      return fmt::format("{} %{}{}, %{}{}{}", node.shape.size() == 3 ? "batch_dot" : "dot", node.inputs[0],
                         node.transpose_a ? ".T" : "", node.inputs[1], node.transpose_b ? ".T" : "",
                         node.constant == 1 ? "" : " scale=" + LiteralText(node.constant));
    case Kind::kIndex: return fmt::format("index axis={}", node.axes[0]);
    case Kind::kExtent: return "extent " + DimensionText(graph, node.extent);
    case Kind::kGather:
      return fmt::format("gather {}{}", Operands(node), node.guarded ? " else " + LiteralText(node.constant) : "");
  }
  return "";
}

}  // namespace

std::string DimensionText(const Graph& graph, const Dimension& dim) {
  if (dim.is_dynamic() && dim.symbol() < 0) return "?";
  const Dimension known = graph.Known(dim);
  if (known.is_static()) return std::to_string(static_cast<std::int64_t>(known));
  const std::string& name = graph.symbol_name(known.symbol());
  return name.empty() ? fmt::format("?{}", known.symbol()) : name;
}

std::string DTypeNames() {
  std::string text;
  for (const DType type : kAllDTypes)
    text += (text.empty() ? "" : type == std::end(kAllDTypes)[-1] ? " or " : ", ") + std::string(Name(type));
  return text;
}

std::string TypeText(const Graph& graph, DType dtype, const PartialShape& shape) {
  std::string text(Name(dtype));
  if (shape.size() == 0) return text;
  text += '[';
  for (std::size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + DimensionText(graph, shape[d]);
  return text + ']';
}

std::string Describe(const Graph& graph, int id) {
  const Node& node = graph.node(id);
  const std::string_view label = graph.label(id);
  const std::string name = !node.name.empty() ? "'" + node.name + "' "
                           : !label.empty()   ? "'" + std::string(label) + "' "
                                              : "";
  return name + TypeText(graph, node.dtype, node.shape);
}

std::string LiteralText(double value) {
  if (value != value) return "nan";
  if (value - value != 0) return value > 0 ? "inf" : "-inf";
  return fmt::format("{}", value);
}

std::string Print(const Graph& graph) {
  std::string text = fmt::format("graph {}\n", graph.name());
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    std::string line = fmt::format("%{} = {}", id, Content(graph, node));
    line = fmt::format("{:<30} : {}", line, TypeText(graph, node.dtype, node.shape));
    const std::string_view label = graph.label(static_cast<int>(id));
    if (!label.empty()) line += fmt::format("   # {}", label);
    text += line + '\n';
  }
  for (const Graph::Derived& derived : graph.derived()) {
    static constexpr std::string_view kOps[] = {"+", "-", "*", "/", "min", "max"};
    if (derived.op.kind == ExtentOp::kScalar) {
      const int scalar = graph.scalars()[static_cast<std::size_t>(static_cast<std::int64_t>(derived.a))];
      text += fmt::format("where {} = %{}\n", DimensionText(graph, derived.result), scalar);
      continue;
    }
    text += fmt::format("where {} = {} {} {}   # {}\n", DimensionText(graph, derived.result),
                        DimensionText(graph, derived.a), kOps[static_cast<int>(derived.op.kind)],
                        DimensionText(graph, derived.b), derived.op.origin);
  }
  for (const Output& output : graph.outputs()) text += fmt::format("output {} = %{}\n", output.name, output.node);
  return text;
}

std::string PrintDot(const Graph& graph) {
  std::string text = fmt::format("digraph {} {{\n  node [shape=box, fontname=\"monospace\"];\n", graph.name());
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    const bool leaf = node.kind == Kind::kInput || node.kind == Kind::kScalar;
    const std::string what = leaf                      ? node.name
                             : node.kind == Kind::kMap ? std::string(Info(node.op).name)
                                                       : Content(graph, node);
    text += fmt::format("  n{} [label=\"{}\\n{}\"{}];\n", id, what, TypeText(graph, node.dtype, node.shape),
                        leaf ? ", style=rounded" : "");
    for (int input : node.inputs) text += fmt::format("  n{} -> n{};\n", input, id);
  }
  for (std::size_t k = 0; k < graph.outputs().size(); ++k)
    text += fmt::format("  out{0} [label=\"{1}\", style=bold];\n  n{2} -> out{0};\n", k, graph.outputs()[k].name,
                        graph.outputs()[k].node);
  return text + "}\n";
}

void Verify(const Graph& graph) {
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    for (int input : node.inputs)
      Ensure(input >= 0 && input < static_cast<int>(id), "node %", id, " reads a later node");
    const std::size_t arity =
        node.kind == Kind::kMap      ? static_cast<std::size_t>(Info(node.op).arity)
        : node.kind == Kind::kGather ? 1 + graph.node(node.inputs[0]).shape.size() + (node.guarded ? 1 : 0)
        : node.kind == Kind::kDot    ? 2
        : node.kind == Kind::kInput || node.kind == Kind::kScalar || node.kind == Kind::kConstant ||
                node.kind == Kind::kIndex || node.kind == Kind::kExtent
            ? 0
            : 1;
    Ensure(node.inputs.size() == arity, "node %", id, " has ", node.inputs.size(), " operands");
    Ensure(node.shape.rank().is_static(), "node %", id, " has no rank");
    for (const Dimension& dim : node.shape)
      Ensure(dim.is_static() || (dim.symbol() >= 0 && dim.symbol() < graph.num_symbols()), "node %", id,
             " has a dimension without a symbol");
    if (node.kind == Kind::kMap)
      for (int input : node.inputs)
        Ensure(graph.node(input).shape.size() == 0 || graph.node(input).shape.size() == node.shape.size(), "node %", id,
               " maps over different ranks");
  }
  for (const Output& output : graph.outputs())
    Ensure(output.node >= 0 && output.node < static_cast<int>(graph.nodes().size()), "an output of no node");
}

}  // namespace umbra::graph

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "compiler/driver/backend.h"
#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/lexer.h"
#include "compiler/graph/lower_ast.h"
#include "compiler/graph/parse.h"
#include "compiler/graph/parser.h"
#include "tools/umbra/commands.h"
#include "tools/umbra/files.h"
#include "tools/umbra/load.h"
#include "umbra/error.h"

namespace umbra::tools {

UMBRA_REGISTER_PARAMETER(EmitOptions);

namespace {

// Names that an expression reads: operands of broadcast<k> are vectors, all others matrices.
void CollectNames(const graph::Expression& e, bool vector, std::vector<std::string>* order,
                  std::set<std::string>* vectors) {
  if (e.kind == graph::Expression::Kind::kName && e.name != "inf" && e.name != "nan") {
    if (std::find(order->begin(), order->end(), e.name) == order->end()) order->push_back(e.name);
    if (vector) vectors->insert(e.name);
  }
  for (std::size_t k = 0; k < e.operands.size(); ++k)
    CollectNames(e.operands[k], vector || (e.name == "broadcast" && k == 0), order, vectors);
}

// Text without the spaces around it.
std::string Trim(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// "y = expression", or an expression alone, which is called y.
struct Named {
  std::string output = "y", body;
  graph::OperatorAst tree;
  std::vector<std::pair<std::string, OperandType>> operands;
};

Named ReadExpression(const std::string& text, const OperandTypes& types) {
  Named e;
  e.body = Trim(text);
  const std::size_t equals = e.body.find('=');
  if (equals != std::string::npos && e.body.substr(equals, 2) != "==" &&
      e.body.find_first_of("<>!(") > equals) {
    e.output = Trim(e.body.substr(0, equals));
    e.body = Trim(e.body.substr(equals + 1));
  }
  e.tree = graph::ParseOperator("expression", "(x)", e.body);
  std::vector<std::string> names;
  std::set<std::string> vectors;
  CollectNames(e.tree.body, false, &names, &vectors);
  for (const std::string& name : names) {
    const auto known = types.find(name);
    e.operands.emplace_back(name, known != types.end() ? known->second
                                                       : OperandType{DType::kFloat32,
                                                                     vectors.count(name) != 0 ? 1 : 2});
  }
  return e;
}

std::string TypeText(const OperandType& type) {
  std::string dims;
  for (int d = 0; d < type.rank; ++d) dims += d == 0 ? "?" : ", ?";
  return std::string(Name(type.dtype)) + (type.rank > 0 ? "[" + dims + "]" : "");
}

// What the expression gives; f32 matrices if it is wrong, which its text as a kernel will show.
OperandType TypeOf(const Named& e) {
  try {
    graph::Graph graph("expression");
    graph::Composer composer(&graph);
    graph::OperatorAst tree = e.tree;
    tree.arguments.clear();
    std::vector<graph::Operand> operands;
    for (const auto& [name, type] : e.operands) {
      tree.arguments.push_back(name);
      operands.push_back(graph::Operand::Node(
          type.rank == 0 ? graph.Scalar(name, type.dtype)
                         : graph.Input(name, type.dtype, PartialShape::dynamic(type.rank))));
    }
    const int node = composer.Resolve(graph::ApplyOperator(&composer, tree, operands, {}), "the result");
    return {graph.node(node).dtype, static_cast<int>(graph.node(node).shape.size())};
  } catch (const Error&) {
    return {DType::kFloat32, 2};
  }
}

// The kernel of an expression as text.
std::string KernelText(const std::string& text, const OperandTypes& types) {
  const Named e = ReadExpression(text, types);
  std::string parameters;
  for (const auto& [name, type] : e.operands)
    parameters += fmt::format("{}{}: {}", parameters.empty() ? "" : ", ", name, TypeText(type));
  return fmt::format("kernel expression({}) -> ({}: {}) {{\n  {} = {}\n}}\n", parameters, e.output,
                     TypeText(TypeOf(e)), e.output, e.body);
}

OperandTypes Scalars(const std::vector<std::string>& names) {
  OperandTypes types;
  for (const std::string& name : names) types[name] = {DType::kFloat32, 0};
  return types;
}

bool IsFile(const std::string& input) {
  std::error_code ignored;
  return input.ends_with(".umb") || std::filesystem::exists(input, ignored);
}

}  // namespace

std::shared_ptr<const graph::Graph> LoadKernel(const std::string& input, const std::string& kernel,
                                               const OperandTypes& types) {
  if (!IsFile(input)) {
    Require(kernel.empty(), "--kernel chooses from a .umb file; '", input, "' is an expression");
    return graph::Parse(KernelText(input, types), "expression").front();
  }
  const auto graphs = graph::Parse(ReadFile(input), input);
  Require(!graphs.empty(), input, " has no kernel");
  std::string names;
  for (const auto& graph : graphs) {
    if (graph->name() == kernel || (kernel.empty() && graphs.size() == 1)) return graph;
    names += (names.empty() ? "" : ", ") + graph->name();
  }
  throw Error(kernel.empty() ? input + " has several kernels: choose one with --kernel: " + names
                             : input + " has no kernel '" + kernel + "'; it has: " + names);
}

void Emit(const EmitOptions& options) {
  if (options.as == "text") {
    WriteFile(options.output, IsFile(options.input)
                                  ? ReadFile(options.input)
                                  : KernelText(options.input, Scalars(options.scalar)));
    return;
  }
  const auto graph = LoadKernel(options.input, options.kernel, Scalars(options.scalar));
  if (options.as == "graph" || options.as == "dot") {
    WriteFile(options.output,
              options.as == "dot" ? graph::PrintDot(*graph) : graph::Print(*graph));
    return;
  }
  const plan::Plan plan = Lower(*graph);
  if (options.as == "plan") {
    WriteFile(options.output, plan::Print(plan));
    return;
  }
  codegen::SourceOptions source_options;
  source_options.target = options.target.empty() ? HostTarget() : *codegen::FindTarget(options.target);
  source_options.spelling = options.spelling == "intrinsics" ? codegen::Spelling::kIntrinsics
                                                             : codegen::Spelling::kPackets;
  const codegen::Source source = codegen::Generate(plan, source_options);
  if (options.as == "source") {
    WriteFile(options.output, source.text);
    return;
  }
  Require(!source.functions.empty(), "kernel '", graph->name(),
          "' is a product of matrices only: BLAS runs it, there is no code to show");
  Require(options.spelling == "packets", "--as ", options.as,
          " compiles the packets spelling; leave --spelling away");
  WriteFile(options.output, ClangBackend().Print(source, source_options.target, options.as));
}

}  // namespace umbra::tools

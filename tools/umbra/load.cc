#include "tools/umbra/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <utility>

#include "compiler/graph/lexer.h"
#include "compiler/graph/lower_ast.h"
#include "compiler/graph/parse.h"
#include "compiler/graph/parser.h"
#include "tools/umbra/files.h"
#include "tools/umbra/usage.h"
#include "umbra/error.h"

namespace umbra::tools {

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

// The output of an expression that names none.
constexpr const char* kOutput = "y";

// "y = expression", or an expression alone.
struct Named {
  bool named = false;
  graph::Statement statement;
  std::vector<std::pair<std::string, OperandType>> operands;
};

Named ReadExpression(const graph::SourceText& text, const OperandTypes& types) {
  Named e;
  e.statement = graph::ParseStatement(text);
  e.named = !e.statement.name.empty();
  if (!e.named) e.statement.name = kOutput;
  std::vector<std::string> names;
  std::set<std::string> vectors;
  CollectNames(e.statement.value, false, &names, &vectors);
  for (const std::string& name : names) {
    if (name == e.statement.name)
      text.Fail(e.statement.position,
                fmt::format("'{}' is the result and cannot be an operand; {}", name,
                            e.named ? "give the result another name"
                                    : "name the result otherwise, as in 'result = ...', or rename the operand"));
    const auto known = types.find(name);
    e.operands.emplace_back(
        name, known != types.end() ? known->second : OperandType{DType::kFloat32, vectors.count(name) != 0 ? 1 : 2});
  }
  return e;
}

std::string TypeText(const OperandType& type) {
  std::string dims;
  for (int d = 0; d < type.rank; ++d) dims += d == 0 ? "?" : ", ?";
  return std::string(Name(type.dtype)) + (type.rank > 0 ? "[" + dims + "]" : "");
}

// What the expression gives; f32 matrices if it is wrong, which lowering it will show.
OperandType TypeOf(const Named& e) {
  try {
    graph::Graph graph("expression");
    graph::Composer composer(&graph);
    graph::OperatorAst tree;
    tree.name = "expression";
    tree.body = e.statement.value;
    std::vector<graph::Operand> operands;
    for (const auto& [name, type] : e.operands) {
      tree.arguments.push_back(name);
      operands.push_back(graph::Operand::Node(type.rank == 0
                                                  ? graph.Scalar(name, type.dtype)
                                                  : graph.Input(name, type.dtype, PartialShape::dynamic(type.rank))));
    }
    const int node = composer.Resolve(graph::ApplyOperator(&composer, tree, operands, {}), "the result");
    return {graph.node(node).dtype, static_cast<int>(graph.node(node).shape.size())};
  } catch (const Error&) { return {DType::kFloat32, 2}; }
}

graph::Parameter ToParameter(const std::string& name, const OperandType& type) {
  graph::Parameter parameter;
  parameter.name = name;
  parameter.type.dtype = type.dtype;
  parameter.type.has_shape = type.rank > 0;
  parameter.type.dims.assign(static_cast<std::size_t>(type.rank), "?");
  return parameter;
}

// The graph of an expression, whose errors are shown at their place in it.
std::shared_ptr<const graph::Graph> ExpressionGraph(const std::string& input, const OperandTypes& types) {
  const graph::SourceText text(input, "expression");
  Named e = ReadExpression(text, types);
  graph::KernelAst kernel;
  kernel.name = "expression";
  for (const auto& [name, type] : e.operands) kernel.inputs.push_back(ToParameter(name, type));
  kernel.outputs.push_back(ToParameter(e.statement.name, TypeOf(e)));
  kernel.statements.push_back(std::move(e.statement));
  return std::make_shared<const graph::Graph>(graph::LowerKernel(kernel, {}, text));
}

OperandTypes Numbers(const std::vector<std::string>& names) {
  OperandTypes types;
  for (const std::string& name : names) types[name] = {DType::kFloat32, 0};
  return types;
}

void CheckNumbers(const std::string& input, const std::vector<std::string>& numbers) {
  RequireUsage(numbers.empty() || !IsFile(input), "--scalar says which names of an expression are numbers; ", input,
               " is a file, which says so itself");
}

// Letters, digits and signs of paths that end with an extension; x.T is a transpose.
bool LooksLikeFile(const std::string& input) {
  const std::size_t dot = input.rfind('.');
  const auto of_path = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/' || c == '-';
  };
  return dot != std::string::npos && dot + 2 < input.size() && std::all_of(input.begin(), input.end(), of_path) &&
         std::all_of(input.begin() + static_cast<std::ptrdiff_t>(dot) + 1, input.end(),
                     [](unsigned char c) { return std::islower(c) != 0; });
}

}  // namespace

bool IsFile(const std::string& input) {
  std::error_code ignored;
  return input.ends_with(".umb") || std::filesystem::exists(input, ignored);
}

std::shared_ptr<const graph::Graph> LoadKernel(const std::string& input, const std::string& kernel,
                                               const OperandTypes& types) {
  std::error_code ignored;
  if (!IsFile(input)) {
    Require(!std::filesystem::exists(input + ".umb", ignored), "there is no file ", input, "; did you mean ", input,
            ".umb?");
    Require(!LooksLikeFile(input), "there is no file ", input, "; files of kernels end with .umb");
    RequireUsage(kernel.empty(), "--kernel chooses from a .umb file; '", input, "' is an expression");
    return ExpressionGraph(input, types);
  }
  const auto graphs = graph::Parse(ReadFile(input), input);
  std::string names;
  for (const auto& graph : graphs) {
    if (graph->name() == kernel || (kernel.empty() && graphs.size() == 1)) return graph;
    names += (names.empty() ? "" : ", ") + graph->name();
  }
  throw Error(kernel.empty() ? input + " has several kernels: choose one with --kernel: " + names
                             : input + " has no kernel '" + kernel + "'; it has: " + names);
}

std::string OperandNames(const graph::Graph& graph) {
  std::string names;
  for (const auto* list : {&graph.inputs(), &graph.scalars()})
    for (int id : *list) names += (names.empty() ? "" : ", ") + graph.node(id).name;
  return names.empty() ? "none" : names;
}

std::shared_ptr<const graph::Graph> LoadKernel(const std::string& input, const std::string& kernel,
                                               const std::vector<std::string>& numbers) {
  CheckNumbers(input, numbers);
  auto graph = LoadKernel(input, kernel, Numbers(numbers));
  for (const std::string& name : numbers)
    Require(std::any_of(graph->scalars().begin(), graph->scalars().end(),
                        [&](int id) { return graph->node(id).name == name; }),
            "--scalar ", name, ": the expression has no such operand; its operands: ", OperandNames(*graph));
  return graph;
}

std::string KernelText(const std::string& input, const std::vector<std::string>& numbers) {
  if (IsFile(input)) {
    CheckNumbers(input, numbers);
    std::string text = ReadFile(input);
    graph::Parse(text, input);
    return text;
  }
  LoadKernel(input, "", numbers);
  const Named e = ReadExpression(graph::SourceText(input, "expression"), Numbers(numbers));
  std::string parameters;
  for (const auto& [name, type] : e.operands)
    parameters += fmt::format("{}{}: {}", parameters.empty() ? "" : ", ", name, TypeText(type));
  return fmt::format("kernel expression({}) -> ({}: {}) {{\n  {}{}\n}}\n", parameters, e.statement.name,
                     TypeText(TypeOf(e)), e.named ? "" : e.statement.name + " = ", input);
}

}  // namespace umbra::tools

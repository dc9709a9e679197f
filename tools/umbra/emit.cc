#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "compiler/driver/backend.h"
#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/lexer.h"
#include "compiler/graph/parse.h"
#include "compiler/graph/parser.h"
#include "tools/umbra/commands.h"
#include "tools/umbra/files.h"
#include "tools/umbra/load.h"
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

// Text without the spaces around it.
std::string Trim(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// The kernel text of "y = expression" or of an expression alone, with an output of `rank`.
std::string WrapExpression(const std::string& text, const std::vector<std::string>& scalars,
                           int rank) {
  std::string output = "y", body = Trim(text);
  const std::size_t equals = body.find('=');
  if (equals != std::string::npos && body.substr(equals, 2) != "==" &&
      body.find_first_of("<>!(") > equals) {
    output = Trim(body.substr(0, equals));
    body = Trim(body.substr(equals + 1));
  }
  const graph::OperatorAst tree = graph::ParseOperator("expression", "(x)", body);
  std::vector<std::string> names;
  std::set<std::string> vectors;
  CollectNames(tree.body, false, &names, &vectors);
  std::string parameters;
  for (const std::string& name : names) {
    const bool scalar = std::find(scalars.begin(), scalars.end(), name) != scalars.end();
    parameters += fmt::format("{}{}: f32{}", parameters.empty() ? "" : ", ", name,
                              scalar                     ? ""
                              : vectors.count(name) != 0 ? "[?]"
                                                         : "[?, ?]");
  }
  const char* shapes[] = {"", "[?]", "[?, ?]"};
  return fmt::format("kernel expression({}) -> ({}: f32{}) {{\n  {} = {}\n}}\n", parameters, output,
                     shapes[rank], output, body);
}

// The kernel of an expression and its text. The rank of the result is found by trying: a matrix,
// or what a reduction leaves of it.
std::pair<std::shared_ptr<const graph::Graph>, std::string> ParseExpression(
    const std::string& text, const std::vector<std::string>& scalars) {
  for (int rank = 2;; --rank) {
    const std::string kernel = WrapExpression(text, scalars, rank);
    try {
      return {graph::Parse(kernel, "expression").front(), kernel};
    } catch (const graph::ParseError&) {
      if (rank == 0) break;
    }
  }
  const std::string kernel = WrapExpression(text, scalars, 2);
  return {graph::Parse(kernel, "expression").front(), kernel};
}

bool IsFile(const std::string& input) {
  std::error_code ignored;
  return input.ends_with(".umb") || std::filesystem::exists(input, ignored);
}

}  // namespace

std::shared_ptr<const graph::Graph> LoadKernel(const std::string& input, const std::string& kernel,
                                               const std::vector<std::string>& scalars) {
  if (!IsFile(input)) {
    Require(kernel.empty(), "--kernel chooses from a .umb file; '", input, "' is an expression");
    return ParseExpression(input, scalars).first;
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
  if (options.form == "text") {
    WriteFile(options.output, IsFile(options.input)
                                  ? ReadFile(options.input)
                                  : ParseExpression(options.input, options.scalars).second);
    return;
  }
  const auto graph = LoadKernel(options.input, options.kernel, options.scalars);
  if (options.form == "graph" || options.form == "dot") {
    WriteFile(options.output,
              options.form == "dot" ? graph::PrintDot(*graph) : graph::Print(*graph));
    return;
  }
  const plan::Plan plan = Lower(*graph);
  if (options.form == "plan") {
    WriteFile(options.output, plan::Print(plan));
    return;
  }
  codegen::SourceOptions source_options;
  if (options.target.empty()) {
    source_options.target = HostTarget();
  } else {
    const auto target = codegen::FindTarget(options.target);
    Require(target.has_value(), "unknown target '", options.target,
            "': expected plain, sse2, avx2 or avx512");
    source_options.target = *target;
  }
  source_options.spelling = options.spelling == "intrinsics" ? codegen::Spelling::kIntrinsics
                                                             : codegen::Spelling::kPackets;
  const codegen::Source source = codegen::Generate(plan, source_options);
  if (options.form == "source") {
    WriteFile(options.output, source.text);
    return;
  }
  Require(!source.functions.empty(), "kernel '", graph->name(),
          "' is a product of matrices only: BLAS runs it, there is no code to show");
  Require(options.spelling == "packets", "--as ", options.form,
          " compiles the packets spelling; leave --spelling away");
  WriteFile(options.output, ClangBackend().Print(source, source_options.target, options.form));
}

}  // namespace umbra::tools

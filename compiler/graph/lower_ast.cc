#include "compiler/graph/lower_ast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "compiler/graph/index_map.h"
#include "compiler/graph/parse.h"
#include "compiler/graph/parser.h"
#include "compiler/graph/shape_text.h"
#include "umbra/error.h"

namespace umbra::graph {

namespace {

constexpr int kMaxCalls = 64;  // operators that call operators
constexpr int kMaxSteps = 1 << 21;  // expressions evaluated for one kernel, operators expanded

class ExpressionLowering {
 public:
  ExpressionLowering(Composer* composer, const std::vector<OperatorAst>& operators, const SourceText* source)
      : composer_(*composer),
        operators_(operators),
        source_(source),
        steps_(&own_steps_) {}
  ExpressionLowering(const ExpressionLowering&) = delete;
  ExpressionLowering& operator=(const ExpressionLowering&) = delete;

  std::map<std::string, Operand> names;
  std::map<std::string, Dimension> extents;  // what has no value goes by the name of an extent
  std::function<void()> after_call = [] {};  // what is checked when the kernel's own expressions have called something

  // Errors of the graph are shown where the expression stands, if it stands in a file.
  Operand Lower(const Expression& e) {
    if (source_ == nullptr) return LowerHere(e);
    try {
      return LowerHere(e);
    } catch (const ParseError&) { throw; } catch (const Error& error) {
      source_->Fail(e.position, error.what());
    }
  }

 private:
  // The body of an operator that `caller` calls.
  explicit ExpressionLowering(const ExpressionLowering* caller)
      : composer_(caller->composer_),
        operators_(caller->operators_),
        source_(caller->source_),
        depth_(caller->depth_ + 1),
        steps_(caller->steps_) {}

  Operand LowerHere(const Expression& e) {
    Require(++*steps_ <= kMaxSteps, "the operators that this calls expand to more than ", kMaxSteps,
            " operations: operators that call others several times multiply; call fewer, or split the kernel");
    switch (e.kind) {
      case Expression::Kind::kNumber: return Operand::Literal(e.number, e.literal);
      case Expression::Kind::kName: return Named(e);
      case Expression::Kind::kCall: break;
    }
    std::vector<Operand> operands;
    for (const Expression& operand : e.operands) operands.push_back(Lower(operand));
    Operand made = Call(e, operands);
    after_call();
    if (e.conditional && operands[1].literal == LiteralType::kInteger && operands[2].literal == LiteralType::kInteger) {
      made.literal = LiteralType::kInteger;
      made.number = std::max(std::abs(operands[1].number), std::abs(operands[2].number));
    }
    return made;
  }

  Operand Named(const Expression& e) const {
    if (const auto found = names.find(e.name); found != names.end()) return found->second;
    if (e.name == "inf") return Operand::Literal(std::numeric_limits<double>::infinity());
    if (e.name == "nan") return Operand::Literal(std::numeric_limits<double>::quiet_NaN());
    if (const auto found = extents.find(e.name); found != extents.end()) return composer_.Extent(found->second);
    throw Error("'" + e.name + "' is not defined here");
  }

  int Number(const Expression& e, std::size_t index) const {
    Require(index < e.parameters.size(), e.name, " needs a number between < and >");
    const std::string& text = e.parameters[index];
    Require(text.find_first_not_of("0123456789") == std::string::npos && text.size() < 4, e.name, "<", text,
            ">: expected the number of a dimension");
    return std::stoi(text);
  }

  // The only one.
  int Axis(const Expression& e) const {
    const int axis = Number(e, 0);
    Require(e.parameters.size() == 1, e.name, " takes the number of one dimension between < and >, ",
            e.parameters.size(), " given");
    return axis;
  }

  // The last operand of a reduction: the number of a dimension.
  static int AxisOperand(const Expression& e, const std::vector<Operand>& operands) {
    Require(operands.size() == 2 && operands[1].kind == Operand::Kind::kLiteral && operands[1].number >= 0 &&
                operands[1].number < 1000 && operands[1].number == static_cast<int>(operands[1].number),
            e.name, " takes a value and the number of a dimension, 0 or more, as in ", e.name, "<sum>(x, 1)");
    return static_cast<int>(operands[1].number);
  }

  int Rank(const Expression& e, const Operand& value) {
    return static_cast<int>(composer_.graph().node(composer_.Resolve(value, "the operand of " + e.name)).shape.size());
  }

  static void Arity(const Expression& e, const std::vector<Operand>& operands, std::size_t least, std::size_t most) {
    Require(operands.size() >= least && operands.size() <= most, e.name, " takes ", least,
            most > least ? " or " + std::to_string(most) : "", " operand", most > 1 ? "s" : "", ", ", operands.size(),
            " given");
  }

  static std::string MapName(const Expression& e) {
    return e.parameters.size() == 1 ? e.name + "<" + e.parameters[0] + ">" : e.name;
  }

  // Sources first, then whole numbers. Without sources, the dtype of the numbers that it gives may stand between < and
  // >.
  const IndexMapInfo* FindMap(const Expression& e, std::optional<DType>* dtype) {
    const IndexMapInfo* map = FindIndexMap(e.name);
    if (map == nullptr || map->sources > 0 || e.parameters.empty()) return FindIndexMap(MapName(e));
    Require(e.parameters.size() == 1, e.name, " takes one dtype between < and >, ", e.parameters.size(), " given");
    *dtype = FindDType(e.parameters[0]);
    return map;
  }
  Operand IndexMap(const IndexMapInfo& map, const std::vector<Operand>& operands, DType dtype) {
    const auto sources = static_cast<std::size_t>(map.sources);
    const bool count_fits =
        map.params < 0 ? operands.size() >= sources : operands.size() == sources + static_cast<std::size_t>(map.params);
    Require(count_fits, "expected ", map.form);
    std::vector<Dimension> params;
    for (std::size_t k = sources; k < operands.size(); ++k)
      params.push_back(composer_.Size(operands[k], detail::Concat("number ", k - sources + 1, " of ", map.form)));
    return composer_.IndexMap(map.name, {operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(sources)},
                              params, dtype);
  }

  // Of more than two tensors: the first two, and what they are joined with the next one.
  Operand Concat(const IndexMapInfo& map, std::vector<Operand> operands) {
    for (; operands.size() > 3; operands.erase(operands.begin()))
      operands[1] = IndexMap(map, {operands[0], operands[1], operands.back()}, DType::kFloat32);
    return IndexMap(map, operands, DType::kFloat32);
  }

  Operand Call(const Expression& e, const std::vector<Operand>& operands) {
    if (e.name == "__builtin_inff" && operands.empty())
      return Operand::Literal(std::numeric_limits<double>::infinity(), LiteralType::kFloat);
    if (e.name == "extent") {
      Arity(e, operands, 1, 1);
      return composer_.Extent(operands[0], Axis(e));
    }
    if (e.name == "broadcast") {
      Arity(e, operands, 1, 2);
      std::vector<int> axes;
      for (std::size_t k = 0; k < std::max<std::size_t>(e.parameters.size(), 1); ++k) axes.push_back(Number(e, k));
      return composer_.Broadcast(operands[0], axes, operands.size() > 1 ? &operands[1] : nullptr);
    }
    if (e.name == "reduce_with_axis" || e.name == "reduce_keepdim") {
      Require(e.parameters.size() == 1, e.name, " needs a reducer, as in ", e.name, "<sum>(x, 1)");
      const int axis = AxisOperand(e, operands), left = e.name == "reduce_keepdim" ? 0 : 1;
      return composer_.MapAxes(index_map::FindAxisMap(e.name), axis, operands[0], Rank(e, operands[0]) - left,
                               e.parameters[0]);
    }
    if (e.name == "sum_rows") {
      Arity(e, operands, 1, 1);
      return composer_.MapAxes(index_map::reduce_with_axis::From, 0, operands[0], Rank(e, operands[0]) - 1, "sum");
    }
    if (e.name == "sumall_except_dim") {
      Arity(e, operands, 1, 1);
      return composer_.MapAxes(index_map::reduce_except_dim::From, Axis(e), operands[0], 1, "sum");
    }
    if (e.name == "transpose") {
      Arity(e, operands, 1, 1);
      std::vector<int> axes;
      for (std::size_t k = 0; k < e.parameters.size(); ++k) axes.push_back(Number(e, k));
      return composer_.Transpose(operands[0], std::move(axes));
    }
    if (e.name == "dot" || e.name == "batch_dot") {
      Arity(e, operands, 2, 2);
      const Operand product = composer_.Dot(operands[0], operands[1]);
      const std::size_t rank = composer_.graph().node(product.node).shape.size();
      Require((rank == 3) == (e.name == "batch_dot"), e.name,
              rank == 3 ? " of two batches of matrices: write batch_dot" : " takes operands of rank 3: write dot");
      return product;
    }
    if (e.name == "uniform" || e.name == "gaussian") {
      Arity(e, operands, 3, 3);
      return composer_.Draw(e.name, operands[0], operands[1], operands[2]);
    }
    if (e.name == "tcast") {
      Arity(e, operands, 1, 1);
      if (const auto type = e.parameters.size() == 1 ? FindDType(e.parameters[0]) : std::nullopt)
        return composer_.Cast(operands[0], *type);
      throw Error("tcast needs a dtype, " + DTypeNames() + ", as in tcast<f32>(x)");
    }
    std::optional<DType> dtype;
    if (const IndexMapInfo* map = FindMap(e, &dtype))
      return e.name == "concat" ? Concat(*map, operands) : IndexMap(*map, operands, dtype.value_or(DType::kFloat32));
    RequireReducer(MapName(e));
    for (const OperatorAst& op : operators_) {
      if (op.name != e.name) continue;
      Require(depth_ < kMaxCalls, "operator '", op.name, "' calls itself, or too many others");
      try {
        return Apply(op, operands);
      } catch (const ParseError& error) {  // in the body
        if (depth_ > 0 || source_ == nullptr) throw;
        throw ParseError(source_->Note(error.what(), e.position, "called here"), error.line(), error.column());
      }
    }
    if (source_ != nullptr) RequireNoneToRepeat(e, operands);
    return composer_.Apply(e.name, operands);
  }

  // Is the value made of what reduce_keepdim leaves? `seen`: values that are not.
  bool KeepsDimension(int id, std::set<int>* seen) const {
    const Node& node = composer_.graph().node(id);
    const bool is_map = node.kind == Node::Kind::kMap || node.kind == Node::Kind::kCast;
    if (node.keepdim || !is_map || !seen->insert(id).second) return node.keepdim;
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](int input) { return KeepsDimension(input, seen); });
  }

  // Graphs take an open extent that meets 1 to be 1. Who writes it with reduce_keepdim has left out a broadcast.
  void RequireNoneToRepeat(const Expression& e, const std::vector<Operand>& operands) const {
    const Graph& graph = composer_.graph();
    for (const Operand& one : operands)
      for (const Operand& other : operands) {
        if (one.kind != Operand::Kind::kNode || other.kind != Operand::Kind::kNode) continue;
        const PartialShape& a = graph.node(one.node).shape;
        const PartialShape& b = graph.node(other.node).shape;
        for (std::size_t d = 0; d < a.size() && a.size() == b.size(); ++d) {
          std::set<int> seen;
          if (!graph.Known(a[d]).same_scheme(Dimension(1)) || graph.Known(b[d]).is_static() ||
              !KeepsDimension(one.node, &seen))
            continue;
          throw Error(fmt::format(
              "{0}: the extent 1 of {1} meets an open one of {2}; write broadcast_keepdim(..., {3}, extent<{3}>(...)) to repeat it, "
              "reduce_with_axis and broadcast<axis>(...) in place of reduce_keepdim, or 1 for the extent that is open",
              e.name, Describe(graph, one.node), Describe(graph, other.node), d));
        }
      }
  }

 public:
  Operand Apply(const OperatorAst& op, const std::vector<Operand>& operands) {
    Require(operands.size() == op.arguments.size(), op.name, " takes ", op.arguments.size(), " operand",
            op.arguments.size() == 1 ? "" : "s", ", ", operands.size(), " given");
    ExpressionLowering body(this);
    for (std::size_t k = 0; k < operands.size(); ++k) body.names[op.arguments[k]] = operands[k];
    return body.Lower(op.body);
  }

 private:
  Composer& composer_;
  const std::vector<OperatorAst>& operators_;
  const SourceText* source_;
  int depth_ = 0;
  int own_steps_ = 0;
  int* steps_;  // of the outermost
};

class KernelBuilder {
 public:
  KernelBuilder(const KernelAst& ast, const std::vector<OperatorAst>& operators, const SourceText& source)
      : ast_(ast),
        source_(source),
        graph_(ast.name),
        composer_(&graph_),
        lowering_(&composer_, operators, &source) {
    lowering_.after_call = [this] { RequireNamesApart(); };
  }

  Graph Run() {
    for (const Parameter& input : ast_.inputs)
      At(input.position, [&] {
        const int node = input.type.has_shape ? graph_.Input(input.name, input.type.dtype, Shape(input.type))
                                              : graph_.Scalar(input.name, input.type.dtype);
        lowering_.names[input.name] = Operand::Node(node);
      });
    named_ = symbols_;
    for (const auto& [name, symbol] : named_) lowering_.extents.emplace(name, Dimension::WithSymbol(symbol));
    for (const Statement& statement : ast_.statements) Assign(statement);
    for (const Parameter& output : ast_.outputs) {
      const auto found = outputs_.find(output.name);
      if (found == outputs_.end()) source_.Fail(output.position, "output '" + output.name + "' is never assigned");
      At(output.position, [&] { graph_.AddOutput(output.name, found->second); });
    }
    return std::move(graph_);
  }

 private:
  template <typename Body>
  void At(Position position, const Body& body) {
    try {
      body();
    } catch (const ParseError&) { throw; } catch (const Error& error) {
      source_.Fail(position, error.what());
    }
  }

  // Extents of inputs that have names of their own differ, as far as the text says: that two are one, or a number, is
  // mostly a mistake in an axis.
  void RequireNamesApart() const {
    std::map<int, std::string> names;
    for (const auto& [name, symbol] : named_) {
      const Dimension known = graph_.Known(Dimension::WithSymbol(symbol));
      if (known.is_static())
        throw Error(fmt::format(
            "this makes the extent '{0}' {1}: write {1} instead of '{0}', or ? where the text need not say it", name,
            static_cast<std::int64_t>(known)));
      const auto [other, fresh] = names.emplace(graph_.FindSymbol(symbol), name);
      if (!fresh)
        throw Error(fmt::format(
            "this makes the extents '{}' and '{}' one: write one name for both, or ? where the text need not say it",
            other->second, name));
    }
  }

  PartialShape Shape(const Type& type) {
    std::vector<Dimension> dims;
    for (const std::string& text : type.dims) {
      if (text == "?") {
        dims.push_back(Dimension::WithSymbol(graph_.NewSymbol()));
      } else if (text[0] >= '0' && text[0] <= '9') {
        dims.push_back(Dimension(std::stoll(text)));
      } else {
        auto [found, fresh] = symbols_.emplace(text, -1);
        if (fresh) found->second = graph_.NewSymbol(text);
        dims.push_back(Dimension::WithSymbol(found->second));
      }
    }
    return PartialShape(std::move(dims));
  }

  void Assign(const Statement& statement) {
    const Parameter* output = nullptr;
    for (const Parameter& candidate : ast_.outputs)
      if (candidate.name == statement.name) output = &candidate;
    if (lowering_.names.count(statement.name) != 0)
      source_.Fail(statement.position, "'" + statement.name + "' already has a value");
    const int first = static_cast<int>(graph_.nodes().size());
    Operand value = lowering_.Lower(statement.value);
    if (output != nullptr) {
      At(statement.position, [&] {
        value = Operand::Node(ToOutput(*output, value));
        RequireNamesApart();
      });
      outputs_[statement.name] = value.node;
    }
    if (value.kind != Operand::Kind::kLiteral && graph_.label(value.node).empty() &&
        graph_.node(value.node).kind != Node::Kind::kInput && graph_.node(value.node).kind != Node::Kind::kScalar)
      graph_.SetLabel(value.node, statement.name);
    graph_.SetPlaces(first, ":" + std::to_string(statement.position.line));
    lowering_.names[statement.name] = value;
  }

  int ToOutput(const Parameter& output, const Operand& value) {
    const PartialShape declared = Shape(output.type);
    int id = composer_.ResolveTo(value, output.type.dtype, declared);
    // A narrow output is rounded at its store.
    if (graph_.node(id).dtype == ComputeType(output.type.dtype)) id = graph_.Cast(id, output.type.dtype);
    const DType dtype = graph_.node(id).dtype;
    Require(dtype == output.type.dtype, "output '", output.name, "' is declared ", Name(output.type.dtype),
            ", but its value has dtype ", Name(dtype), "; write tcast<", Name(output.type.dtype), ">(...)");
    const PartialShape shape = graph_.node(id).shape;
    bool fits = shape.size() == declared.size();
    for (std::size_t d = 0; fits && d < shape.size(); ++d)
      fits = graph_.Known(shape[d]).compatible(graph_.Known(declared[d]));
    Require(fits, "output '", output.name, "' is declared ", TypeText(graph_, output.type.dtype, declared),
            ", but its value is ", TypeText(graph_, dtype, shape));
    for (std::size_t d = 0; d < shape.size(); ++d) graph_.Unify(shape[d], declared[d], output.name);
    return id;
  }

  const KernelAst& ast_;
  const SourceText& source_;
  Graph graph_;
  Composer composer_;
  ExpressionLowering lowering_;
  std::map<std::string, int> symbols_, named_;  // by name: of extents; of those, the inputs'
  std::map<std::string, int> outputs_;
};

}  // namespace

Operand ApplyOperator(Composer* composer, const OperatorAst& op, const std::vector<Operand>& operands,
                      const std::vector<OperatorAst>& operators) {
  return ExpressionLowering(composer, operators, nullptr).Apply(op, operands);
}

Graph LowerKernel(const KernelAst& kernel, const std::vector<OperatorAst>& operators, const SourceText& source) {
  return KernelBuilder(kernel, operators, source).Run();
}

std::vector<std::shared_ptr<const Graph>> Parse(std::string_view text, std::string_view name) {
  const SourceText source(text, name);
  const FileAst file = ParseFile(source);
  std::vector<std::shared_ptr<const Graph>> graphs;
  for (const KernelAst& kernel : file.kernels) {
    for (const auto& other : graphs)
      if (other->name() == kernel.name) source.Fail(kernel.position, "two kernels are called '" + kernel.name + "'");
    graphs.push_back(std::make_shared<const Graph>(LowerKernel(kernel, file.operators, source)));
  }
  if (graphs.empty())
    source.Fail({}, "no kernel in this text: expected kernel name(x: f32[?]) -> (y: f32[?]) { y = expression }");
  return graphs;
}

}  // namespace umbra::graph

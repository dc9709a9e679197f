#include "umbra/graph.h"

#include <algorithm>

#include "compiler/graph/compose.h"
#include "compiler/graph/parse.h"
#include "compiler/graph/shape_text.h"
#include "umbra/error.h"

namespace umbra::graph {

struct Value::State {
  explicit State(std::string name) : graph(std::move(name)), composer(&graph) {}
  Graph graph;
  Composer composer;
};

struct ValueAccess {
  static graph::Operand Operand(const Value& v) {
    return {static_cast<graph::Operand::Kind>(v.kind_), v.node_, v.number_, v.dims_};
  }
  static Value Make(const std::shared_ptr<Value::State>& state, const graph::Operand& o) {
    if (o.kind == graph::Operand::Kind::kLiteral) return Value(o.number);
    return Value(state, static_cast<int>(o.kind), o.node, o.dims);
  }
  static const std::shared_ptr<Value::State>& State(const Value& v) { return v.state_; }
};

namespace {

static_assert(static_cast<int>(Operand::Kind::kLiteral) == 1, "Value's default kind is a number");

// The graph that the operands belong to; numbers belong to any.
std::shared_ptr<Value::State> Common(const std::vector<Value>& values) {
  std::shared_ptr<Value::State> state;
  for (const Value& value : values) {
    const auto& own = ValueAccess::State(value);
    if (!own) continue;
    Require(!state || state == own, "two values of different Builders meet in one expression; build both in one");
    state = own;
  }
  Require(state != nullptr,
          "an expression of numbers only: compute it in C++, or use "
          "Builder::Constant to give it a dtype");
  return state;
}

// Of a value that the Builder with this graph was given.
Operand OwnOperand(const std::shared_ptr<Value::State>& state, const Value& value) {
  const auto& own = ValueAccess::State(value);
  Require(!own || own == state, "a Builder was given a value of another one; build both in one");
  return ValueAccess::Operand(value);
}

// An enumerator may have been made of any number.
void RequireDType(DType dtype, std::string_view what) {
  Require(std::find(std::begin(kAllDTypes), std::end(kAllDTypes), dtype) != std::end(kAllDTypes), what,
          ": there is no dtype ", static_cast<int>(dtype), "; expected ", DTypeNames());
}

template <typename Body>
Value With(const std::vector<Value>& values, const Body& body) {
  const auto state = Common(values);
  std::vector<Operand> operands;
  for (const Value& value : values) operands.push_back(ValueAccess::Operand(value));
  return ValueAccess::Make(state, body(state->composer, operands));
}

std::vector<Dimension> Sizes(Composer* composer, std::string_view map, const std::vector<Operand>& numbers) {
  std::vector<Dimension> sizes;
  for (const Operand& number : numbers)
    sizes.push_back(composer->Size(number, detail::Concat("number ", sizes.size() + 1, " of ", map)));
  return sizes;
}

}  // namespace

Value Apply(std::string_view op, const std::vector<Value>& operands) {
  return With(operands, [&](Composer& c, const auto& o) { return c.Apply(op, o); });
}

Value ApplyText(std::string_view name, std::string_view args, std::string_view text,
                const std::vector<Value>& operands) {
  return With(operands, [&](Composer& c, const auto& o) { return c.Apply(Composite{name, args, text, ""}, o); });
}

Value ApplyNumeric(std::string_view op, const std::vector<Value>& operands) {
  return With(operands, [&](Composer& c, const auto& o) { return c.ApplyNumeric(op, o); });
}

Value ApplyNumericText(std::string_view name, std::string_view args, std::string_view text,
                       const std::vector<Value>& operands) {
  return With(operands, [&](Composer& c, const auto& o) { return c.ApplyNumeric(Composite{name, args, text, ""}, o); });
}

Value operator+(const Value& a, const Value& b) { return Apply("plus", {a, b}); }
Value operator-(const Value& a, const Value& b) { return Apply("minus", {a, b}); }
Value operator*(const Value& a, const Value& b) { return Apply("mul", {a, b}); }
Value operator/(const Value& a, const Value& b) { return Apply("div", {a, b}); }
Value operator-(const Value& a) { return Apply("negative", {a}); }
Value operator<(const Value& a, const Value& b) { return Apply("lt", {a, b}); }
Value operator<=(const Value& a, const Value& b) { return Apply("le", {a, b}); }
Value operator>(const Value& a, const Value& b) { return Apply("gt", {a, b}); }
Value operator>=(const Value& a, const Value& b) { return Apply("ge", {a, b}); }
Value operator==(const Value& a, const Value& b) { return Apply("eq", {a, b}); }
Value operator!=(const Value& a, const Value& b) { return Apply("ne", {a, b}); }
Value operator&&(const Value& a, const Value& b) { return Apply("logical_and", {a, b}); }
Value operator||(const Value& a, const Value& b) { return Apply("logical_or", {a, b}); }
Value operator!(const Value& a) { return Apply("logical_not", {a}); }

Value Broadcast(int axis, const Value& value) {
  return With({value}, [&](Composer& c, const auto& o) { return c.Broadcast(o[0], {axis}, nullptr); });
}

Value Broadcast(int axis, const Value& value, const Value& like) {
  return With({value, like}, [&](Composer& c, const auto& o) { return c.Broadcast(o[0], {axis}, &o[1]); });
}

Value Spread(const Value& value, const Value& like) {
  return With({value, like}, [&](Composer& c, const auto& o) { return c.Spread(o[0], o[1]); });
}

Value Reduce(std::string_view reducer, const Value& value, std::vector<int> axes, bool keepdim) {
  return With({value}, [&](Composer& c, const auto& o) { return c.Reduce(reducer, o[0], axes, keepdim); });
}

Value Transpose(const Value& value, std::vector<int> axes) {
  return With({value}, [&](Composer& c, const auto& o) { return c.Transpose(o[0], axes); });
}

Value MapAxes(index_map::AxisMap map, int axis, const Value& value, int rank, std::string_view reducer) {
  return With({value}, [&](Composer& c, const auto& o) { return c.MapAxes(map, axis, o[0], rank, reducer); });
}

Value Dot(const Value& a, const Value& b, bool transpose_a, bool transpose_b, double scale) {
  return With({a, b}, [&](Composer& c, const auto& o) { return c.Dot(o[0], o[1], transpose_a, transpose_b, scale); });
}

Value IndexMap(std::string_view name, const std::vector<Value>& sources, const std::vector<Value>& params) {
  std::vector<Value> all = sources;
  all.insert(all.end(), params.begin(), params.end());
  return With(all, [&](Composer& c, const auto& o) {
    const auto from = o.begin() + static_cast<std::ptrdiff_t>(sources.size());
    return c.IndexMap(name, {o.begin(), from}, Sizes(&c, name, {from, o.end()}));
  });
}

Value Extent(const Value& value, int axis) {
  return With({value}, [&](Composer& c, const auto& o) { return c.Extent(o[0], axis); });
}

Value Draw(std::string_view distribution, const Value& like, const Value& key, const Value& first) {
  return With({like, key, first}, [&](Composer& c, const auto& o) { return c.Draw(distribution, o[0], o[1], o[2]); });
}

Value Cast(const Value& value, DType dtype) {
  RequireDType(dtype, "a conversion");
  return With({value}, [&](Composer& c, const auto& o) { return c.Cast(o[0], dtype); });
}

namespace {

// The node that `value` is with extents as declared.
int Shaped(Composer* composer, Graph* graph, const std::string& name, const Operand& value, PartialShape declared) {
  for (std::size_t d = 0; d < declared.size(); ++d)
    if (declared[d].is_dynamic() && declared[d].symbol() < 0) declared[d] = Dimension::WithSymbol(graph->NewSymbol());
  const int node = composer->ResolveTo(value, DType::kFloat32, declared);
  const PartialShape actual = graph->node(node).shape;
  Require(actual.size() == declared.size(), "output '", name, "' is declared ",
          TypeText(*graph, graph->node(node).dtype, declared), ", but its value is ",
          TypeText(*graph, graph->node(node).dtype, actual));
  for (std::size_t d = 0; d < actual.size(); ++d) graph->Unify(actual[d], declared[d], "output '" + name + "'");
  return node;
}

}  // namespace

Builder::Builder(std::string name) : state_(std::make_shared<Value::State>(std::move(name))) {}

Value Builder::Input(std::string name, DType dtype, PartialShape shape) {
  RequireDType(dtype, "input '" + name + "'");
  return ValueAccess::Make(state_, Operand::Node(state_->graph.Input(std::move(name), dtype, std::move(shape))));
}

Value Builder::Scalar(std::string name, DType dtype) {
  RequireDType(dtype, "scalar '" + name + "'");
  return ValueAccess::Make(state_, Operand::Node(state_->graph.Scalar(std::move(name), dtype)));
}

Value Builder::Constant(double value, DType dtype) {
  RequireDType(dtype, "a constant");
  return ValueAccess::Make(state_, state_->composer.Cast(Operand::Literal(value), dtype));
}

Value Builder::IndexMap(std::string_view name, const std::vector<Value>& params, DType dtype) {
  RequireDType(dtype, name);
  std::vector<Operand> numbers;
  for (const Value& param : params) numbers.push_back(OwnOperand(state_, param));
  return ValueAccess::Make(state_, state_->composer.IndexMap(name, {}, Sizes(&state_->composer, name, numbers), dtype));
}

void Builder::SetOpenShape(const PartialShape& shape) { state_->composer.SetOpenShape(shape); }

PartialShape Builder::AnyShape(int rank) {
  PartialShape shape = PartialShape::dynamic(rank);
  for (std::size_t d = 0; d < shape.size(); ++d) shape[d] = Dimension::WithSymbol(state_->graph.NewSymbol());
  return shape;
}

Value Builder::Shaped(const std::string& name, const Value& value, const PartialShape& shape) {
  return ValueAccess::Make(
      state_, Operand::Node(graph::Shaped(&state_->composer, &state_->graph, name, OwnOperand(state_, value), shape)));
}

void Builder::Output(std::string name, const Value& value, const std::optional<PartialShape>& shape) {
  const Operand operand = OwnOperand(state_, value);
  Graph& graph = state_->graph;
  const int node = shape ? graph::Shaped(&state_->composer, &graph, name, operand, *shape)
                         : state_->composer.Resolve(operand, "output '" + name + "'");
  if (graph.label(node).empty() && graph.node(node).kind != Node::Kind::kInput) graph.SetLabel(node, name);
  graph.AddOutput(std::move(name), node);
}

std::shared_ptr<const Graph> Builder::Build() const {
  Require(!state_->graph.outputs().empty(), "graph '", state_->graph.name(),
          "' has no output: call Output(name, value)");
  return std::make_shared<const Graph>(state_->graph);
}

std::vector<std::shared_ptr<const Graph>> ParseText(std::string_view text, std::string_view name) {
  return Parse(text, name);
}

}  // namespace umbra::graph

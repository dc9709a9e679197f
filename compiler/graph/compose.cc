#include "compiler/graph/compose.h"

#include "compiler/graph/call.h"
#include "compiler/graph/index_map.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "compiler/graph/lower_ast.h"
#include "compiler/graph/parser.h"
#include "compiler/graph/shape_text.h"
#include "umbra/error.h"
#include "umbra/op.h"

namespace umbra::graph {

namespace {

using Kind = Operand::Kind;

constexpr double kExactIntegers = 9007199254740992.0;  // of f64

std::optional<Operand> FoldLiterals(Op op, const std::vector<Operand>& operands) {
  const LiteralType type =
      operands.size() > 1 ? std::min(operands[0].literal, operands[1].literal) : operands[0].literal;
  const auto rounded = [&](double number) {
    return type == LiteralType::kFloat ? static_cast<double>(static_cast<float>(number)) : number;
  };
  const double a = rounded(operands[0].number), b = operands.size() > 1 ? rounded(operands[1].number) : 0;
  double result = 0;
  switch (op) {
    case Op::plus: result = a + b; break;
    case Op::minus: result = a - b; break;
    case Op::mul: result = a * b; break;
    case Op::div:
      Require(type != LiteralType::kInteger || b != 0, "the whole number ", a,
              " is divided by 0, which C++ leaves undefined; write ", a, ".0 / 0");
      result = type == LiteralType::kInteger ? std::trunc(a / b) : a / b;
      break;
    case Op::negative: result = -a; break;
    default: return std::nullopt;
  }
  if (type == LiteralType::kInteger) {
    constexpr double kEnd = 2147483648.0;
    Require(std::abs(result) < kEnd || std::abs(a) >= kEnd || std::abs(b) >= kEnd, "whole numbers give ", result,
            ", which an int of C++ does not hold; write one of them with a point");
    Require(std::abs(result) <= kExactIntegers, "whole numbers give ", result,
            ", too large to be exact; write one of them with a point");
    result += 0.0;  // an int has no -0
  }
  return Operand::Literal(rounded(result), type);
}

constexpr std::size_t kMostDims = 31;  // of Operand::dims

bool HasDim(std::uint32_t dims, std::size_t d) { return d < kMostDims && (dims >> d & 1) != 0; }

// A broadcast into a shape of the dimensions `all` alone.
Operand Among(const Operand& pending, std::uint32_t all) {
  std::uint32_t dims = 0;
  for (std::size_t d = 0, place = 0; d < kMostDims; ++d) {
    if (!HasDim(all, d)) continue;
    if (HasDim(pending.dims, d)) dims |= std::uint32_t{1} << place;
    ++place;
  }
  return Operand::Pending(pending.node, dims);
}

}  // namespace

int Composer::Spread(const Operand& pending, const PartialShape& shape) {
  Require(pending.dims >> std::min<std::size_t>(shape.size(), kMostDims) == 0, BroadcastText(pending),
          " of a value of rank ", graph_.node(pending.node).shape.size(), " does not fit into a shape of rank ",
          shape.size());
  std::vector<int> axes;
  int next = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) axes.push_back(HasDim(pending.dims, d) ? next++ : -1);
  return graph_.Broadcast(pending.node, std::move(axes), shape);
}

// The dimensions that broadcasts have together, `dims` of the result.
PartialShape Composer::ShapeOfAll(const std::vector<Operand>& pending, std::uint32_t* dims) const {
  std::map<std::size_t, Dimension> all;
  for (const Operand& operand : pending) {
    if (operand.kind != Kind::kPending) continue;
    const PartialShape& shape = graph_.node(operand.node).shape;
    for (std::size_t d = 0, k = 0; k < shape.size(); ++d)
      if (HasDim(operand.dims, d)) all.try_emplace(d, shape[k++]);
  }
  std::vector<Dimension> shape;
  for (const auto& [d, dim] : all) {
    *dims |= std::uint32_t{1} << d;
    shape.push_back(dim);
  }
  return PartialShape(std::move(shape));
}

std::string Composer::BroadcastText(const Operand& pending) const {
  std::string axes;
  for (std::size_t d = 0; d < kMostDims; ++d)
    if (HasDim(pending.dims, d)) axes += detail::Concat(axes.empty() ? "" : ", ", d);
  return "broadcast<" + (axes.empty() ? "0" : axes) + ">";
}

Operand Composer::Map(Op op, const std::vector<Operand>& operands) {
  const OpInfo& info = Info(op);
  Require(static_cast<int>(operands.size()) == info.arity, info.name, " takes ", info.arity, " operand",
          info.arity == 1 ? "" : "s", ", ", operands.size(), " given");
  if (std::all_of(operands.begin(), operands.end(), [](const Operand& o) { return o.kind == Kind::kLiteral; }))
    if (auto folded = FoldLiterals(op, operands)) return *folded;

  const auto is_condition = [this](const Operand& o) {
    return o.kind != Kind::kLiteral && graph_.node(o.node).dtype == DType::kBool;
  };
  if ((op == Op::eq || op == Op::ne) && std::all_of(operands.begin(), operands.end(), is_condition)) {
    const Operand other = Map(Op::logical_not, {operands[1]});
    return op == Op::eq ? Map(Op::select, {operands[0], operands[1], other})
                        : Map(Op::select, {operands[0], other, operands[1]});
  }

  DType dtype = number_dtype_;
  for (std::size_t k = operands.size(); k-- > (op == Op::select ? 1u : 0u);)
    if (operands[k].kind != Kind::kLiteral) dtype = ComputeType(graph_.node(operands[k].node).dtype);

  PartialShape shape;
  for (const Operand& operand : operands)
    if (operand.kind == Kind::kNode && shape.size() == 0) shape = graph_.node(operand.node).shape;
  const Operand* pending = nullptr;
  std::uint32_t together = 0;  // the result's dimensions, where they are those of all broadcasts together
  const auto rank = [this](const Operand& of) { return graph_.node(of.node).shape.size(); };
  for (const Operand& operand : operands) {
    if (operand.kind != Kind::kPending) continue;
    if (pending != nullptr && rank(operand) == 0) continue;  // a number is alike along any axes
    const bool alike = pending == nullptr || rank(*pending) == 0 || pending->dims == operand.dims;
    if (!alike && shape.size() == 0) {
      shape = OpenShape();
      if (shape.size() == 0) shape = ShapeOfAll(operands, &together);
    }
    pending = &operand;
  }
  std::vector<int> nodes;
  for (const Operand& operand : operands) {
    if (operand.kind == Kind::kLiteral) nodes.push_back(graph_.Constant(operand.number, dtype));
    else if (operand.kind == Kind::kPending && shape.size() > 0)
      nodes.push_back(Spread(together == 0 ? operand : Among(operand, together), shape));
    else nodes.push_back(operand.node);
  }
  int made = graph_.Map(op, std::move(nodes));
  const bool whole = info.types == OpTypes::kNumeric &&
                     std::all_of(operands.begin(), operands.end(),
                                 [](const Operand& o) { return o.literal == LiteralType::kInteger; });
  if (whole && IsFloat(dtype)) made = AsWholeNumber(op, made, operands);
  if (pending != nullptr && shape.size() == 0) together = pending->dims;
  const bool stays = pending != nullptr && (shape.size() == 0 || (together & (together + 1)) != 0);
  Operand result = stays ? Operand::Pending(made, together) : Operand::Node(made);
  if (whole) result.literal = LiteralType::kInteger;
  return result;
}

// Whole numbers of C++ that a condition chose, in floats: quotients truncate, and none is -0.
int Composer::AsWholeNumber(Op op, int made, const std::vector<Operand>& operands) {
  const DType dtype = graph_.node(made).dtype;
  for (const Operand& operand : operands)
    Require(dtype != DType::kFloat32 || std::abs(operand.number) <= 16777216, "the whole number ", operand.number,
            " is too large to be computed with in f32; write it with a point");
  if (op == Op::div) made = graph_.Map(Op::trunc, {made});
  const bool may_be_negative_zero = op == Op::div || op == Op::mul || op == Op::negative;
  return may_be_negative_zero ? graph_.Map(Op::plus, {made, graph_.Constant(0, dtype)}) : made;
}

Operand Composer::IndexMap(std::string_view name, const std::vector<Operand>& sources,
                           const std::vector<Dimension>& params, DType dtype) {
  std::vector<int> nodes;
  const IndexMapInfo* info = FindIndexMap(name);
  const auto model =
      std::find_if(sources.begin(), sources.end(), [](const Operand& o) { return o.kind == Kind::kNode; });
  const bool spreads = info != nullptr && info->of_one_shape() && model != sources.end();
  for (const Operand& source : sources)
    nodes.push_back(spreads && source.kind == Kind::kPending ? Spread(source, graph_.node(model->node).shape)
                                                             : Resolve(source, "an operand of " + std::string(name)));
  // Sources of one narrow dtype are moved as they are; others meet in what they are computed in.
  std::vector<int*> data;
  for (std::size_t k = 0; k < nodes.size(); ++k)
    if (info == nullptr || static_cast<int>(k) != info->index_source) data.push_back(&nodes[k]);
  const bool alike = std::all_of(data.begin(), data.end(),
                                 [&](int* node) { return graph_.node(*node).dtype == graph_.node(*data[0]).dtype; });
  if (!alike)
    for (int* node : data) *node = graph_.Cast(*node, ComputeType(graph_.node(*node).dtype));
  return Operand::Node(BuildIndexMap(&graph_, name, nodes, params, dtype));
}

Operand Composer::Extent(const Operand& value, int axis) {
  const PartialShape shape = graph_.node(Resolve(value, "the operand of extent")).shape;
  Require(axis >= 0 && axis < static_cast<int>(shape.size()), "extent: axis ", axis, " of a tensor of rank ",
          shape.size());
  return Extent(shape[static_cast<std::size_t>(axis)]);
}

Operand Composer::Extent(const Dimension& dim) { return Operand::Node(graph_.ExtentOf(dim)); }

Dimension Composer::Size(const Operand& number, std::string_view what) {
  if (number.kind == Operand::Kind::kLiteral) {
    Require(number.number == static_cast<double>(static_cast<index_t>(number.number)), what, " is ", number.number,
            "; it has to be a whole number");
    return Dimension(static_cast<index_t>(number.number));
  }
  const bool is_node = number.kind == Operand::Kind::kNode;
  const std::size_t rank = is_node ? graph_.node(number.node).shape.size() : 0;
  Require(rank == 0, what, " is a tensor of rank ", rank, "; numbers stand behind all tensors");
  const auto size = is_node ? graph_.DimensionOf(number.node, what) : std::nullopt;
  Require(
      size.has_value(), what,
      " does not follow from the extents of operands and whole numbers of the call by + - * /, minimum and maximum");
  return *size;
}

Operand Composer::Draw(std::string_view distribution, const Operand& like, const Operand& key, const Operand& first) {
  const int model = Resolve(like, "the model of " + std::string(distribution));
  const PartialShape shape = graph_.node(model).shape;
  const DType dtype = ComputeType(graph_.node(model).dtype);
  const auto op = FindOp(detail::Concat(distribution, "_", Name(dtype)));
  Require(op.has_value(), distribution, "(x, key, first) draws numbers of the dtype of x, f32 or f64; x is ",
          Name(graph_.node(model).dtype));
  int position = shape.size() == 0 ? graph_.Constant(0, DType::kInt64) : graph_.Index(0, shape);
  for (std::size_t d = 1; d < shape.size(); ++d) {
    const int before = graph_.Map(Op::mul, {position, graph_.ExtentOf(shape[d])});
    position = graph_.Map(Op::plus, {before, graph_.Index(static_cast<int>(d), shape)});
  }
  const auto number = [&](const Operand& o, const char* what) {
    const int node = Cast(o, DType::kInt64).node;
    Require(graph_.node(node).shape.size() == 0, distribution, ": ", what, " is one whole number");
    return node;
  };
  const int counter = graph_.Map(Op::plus, {number(first, "the first counter"), position});
  return Operand::Node(graph_.Map(*op, {counter, number(key, "the key")}));
}

Operand Composer::Apply(std::string_view name, const std::vector<Operand>& operands) {
  if (const auto op = FindOp(name)) return Map(*op, operands);
  if (const Composite* composite = FindComposite(name)) return Apply(*composite, operands);
  throw Error(UnknownOperator(name));
}

Operand Composer::Apply(const Composite& composite, const std::vector<Operand>& operands) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const OperatorAst>> parsed;
  std::shared_ptr<const OperatorAst> ast;
  {
    const std::lock_guard lock(mutex);
    auto& entry = parsed[std::string(composite.args) + std::string(composite.text)];
    if (!entry)
      entry = std::make_shared<const OperatorAst>(ParseOperator(composite.name, composite.args, composite.text));
    ast = entry;
  }
  struct Restored {
    DType& number_dtype;
    const DType outer = number_dtype;
    ~Restored() { number_dtype = outer; }
  } const restored{number_dtype_};
  for (std::size_t k = operands.size(); k-- > 0;)
    if (operands[k].kind != Kind::kLiteral && graph_.node(operands[k].node).dtype != DType::kBool)
      number_dtype_ = ComputeType(graph_.node(operands[k].node).dtype);
  try {
    return ApplyOperator(this, *ast, operands, {});
  } catch (const Error& error) { throw Error(detail::Concat("operator '", composite.name, "': ", error.what())); }
}

Operand Composer::ApplyNumeric(std::string_view name, const std::vector<Operand>& operands) {
  std::vector<Operand> ready = operands;
  const auto primitive = FindOp(name);
  const bool logic = primitive && Info(*primitive).types == OpTypes::kBool;
  for (std::size_t k = 0; k < ready.size(); ++k)
    if (logic || (primitive == Op::select && k == 0)) ready[k] = Map(Op::ne, {ready[k], Operand::Literal(0)});
  return AsNumber(Apply(name, ready), operands);
}

Operand Composer::ApplyNumeric(const Composite& composite, const std::vector<Operand>& operands) {
  return AsNumber(Apply(composite, operands), operands);
}

// A number, or a comparison's 1 or 0, takes the dtype of the operands, and what reads none of them their shape.
Operand Composer::AsNumber(const Operand& value, const std::vector<Operand>& operands) {
  DType dtype = DType::kFloat32;
  PartialShape shape;
  bool numbers = true;
  for (std::size_t k = operands.size(); k-- > 0;) {
    if (operands[k].kind == Kind::kLiteral) continue;
    numbers = false;
    dtype = ComputeType(graph_.node(operands[k].node).dtype);
    if (operands[k].kind == Kind::kNode && graph_.node(operands[k].node).shape.size() > 0)
      shape = graph_.node(operands[k].node).shape;
  }
  if (value.kind == Kind::kLiteral && numbers) return value;
  Operand result = value;
  if (value.kind == Kind::kLiteral || graph_.node(value.node).dtype == DType::kBool) result = Cast(value, dtype);
  return result.kind == Kind::kNode ? Operand::Node(ResolveTo(result, dtype, shape)) : result;
}

Operand Composer::Cast(const Operand& value, DType dtype) {
  if (value.kind == Kind::kLiteral)
    return Cast(Operand::Node(graph_.Constant(value.number, ComputeType(dtype))), dtype);
  Operand cast = value;
  cast.node = graph_.Cast(value.node, dtype);
  return cast;
}

Operand Composer::Broadcast(const Operand& value, const std::vector<int>& axes, const Operand* like) {
  const int node = Resolve(value, "the operand of broadcast");
  const std::size_t rank = graph_.node(node).shape.size();
  Require(axes.size() == 1 || axes.size() == rank, "broadcast of a value of rank ", rank, " takes ",
          rank < 2 ? std::string("one dimension")
                   : detail::Concat("the first of the dimensions that it goes along, or ", rank, ","),
          " between < and >");
  std::uint32_t dims = 0;
  for (std::size_t k = 0; k < rank; ++k) {
    const int axis = axes.size() == 1 ? axes[0] + static_cast<int>(k) : axes[k];
    Require(axis >= 0 && axis < static_cast<int>(kMostDims), "broadcast along dimension ", axis, ": they are 0 to ",
            kMostDims - 1);
    Require(dims >> axis == 0, "broadcast along dimension ", axis, " behind ", axes[k == 0 ? 0 : k - 1],
            ": they have to ascend; exchange those of the value by transpose");
    dims |= std::uint32_t{1} << axis;
  }
  const Operand pending = Operand::Pending(node, dims);
  const bool is_model =
      like == nullptr || rank == 0 ||
      (like->kind != Kind::kLiteral && (like->kind == Kind::kPending || graph_.node(like->node).shape.size() > 0));
  Require(
      is_model, BroadcastText(pending),
      "(value, like): `like` is a number; expected a value that has the shape of the result, or nothing where that follows from what it meets");
  return like == nullptr ? pending : Spread(pending, *like);
}

PartialShape Composer::OpenShape() {
  for (std::size_t d = 0; d < open_.size(); ++d)
    if (open_[d].is_dynamic() && open_[d].symbol() < 0) open_[d] = Dimension::WithSymbol(graph_.NewSymbol());
  return open_;
}

Operand Composer::Spread(const Operand& value, const Operand& like) {
  const Node& model = graph_.node(Resolve(like, "the model of broadcast"));
  const PartialShape shape = model.shape;
  return Operand::Node(ResolveTo(value, model.dtype, shape));
}

namespace {

void RequireAxis(const Graph& graph, int node, int axis) {
  const PartialShape& shape = graph.node(node).shape;
  const int rank = static_cast<int>(shape.size());
  Require(axis >= 0 && axis < rank, "reduction over axis ", axis, " of ",
          TypeText(graph, graph.node(node).dtype, shape),
          rank == 0 ? std::string(": it has none") : detail::Concat(": its axes are 0 to ", rank - 1));
}

// The elements of a node along `axes`, for a reducer that is made of others; see red::Made. What is joined keeps its
// axes as `keepdim` says where it is a result, and repeats along them beside an element.
class Joiner {
 public:
  struct Joined {
    Reducer reducer;
    int of;
  };
  Joiner(Graph* graph, int input, std::vector<int> axes, bool keepdim)
      : graph_(*graph),
        input_(graph->Cast(input, ComputeType(graph->node(input).dtype))),
        axes_(std::move(axes)),
        keepdim_(keepdim) {
    for (int axis : axes_) RequireAxis(graph_, input_, axis);
  }

  template <typename R>
  Joined Join() const {
    return {*FindReducer(R::kName), input_};
  }
  template <typename R, typename Position>
  Joined JoinPositions(const Position& position) const {
    return {*FindReducer(R::kName), position(input_, graph_.Index(Axis(), shape()))};
  }
  int Count() const {
    int count = graph_.Constant(1, DType::kInt64);
    for (int axis : std::set<int>(axes_.begin(), axes_.end())) count = graph_.Map(Op::mul, {count, Extent(axis)});
    return count;
  }
  int Last() const {
    const int last = graph_.Map(Op::minus, {Extent(Axis()), graph_.Constant(1, DType::kInt64)});
    return graph_.Map(Op::maximum, {last, graph_.Constant(0, DType::kInt64)});
  }
  bool HasNaN() const { return IsFloat(graph_.node(input_).dtype); }
  int Over(const Joined& a, int count) const {
    const int joined = Result(a);
    return graph_.Map(Op::div, {joined, graph_.Cast(count, graph_.node(joined).dtype)});
  }
  int Equal(int x, const Joined& joined) const {
    const int node = graph_.Reduce(joined.reducer, joined.of, axes_, false);
    std::vector<int> axes;
    for (int d = 0, from = 0; d < static_cast<int>(shape().size()); ++d) axes.push_back(d == Axis() ? -1 : from++);
    return graph_.Map(Op::eq, {x, graph_.Broadcast(node, std::move(axes), shape())});
  }
  int Differ(int a, int b) const { return graph_.Map(Op::ne, {a, b}); }
  int Or(int a, int b) const { return graph_.Map(Op::logical_or, {a, b}); }
  int If(int condition, int a, int b) const { return graph_.Map(Op::select, {condition, a, b}); }
  int Least(const Joined& a, int b) const { return graph_.Map(Op::minimum, {Result(a), b}); }

 private:
  PartialShape shape() const { return graph_.node(input_).shape; }
  int Axis() const {
    Require(axes_.size() == 1, "positions go along one axis, ", axes_.size(), " given");
    return axes_[0];
  }
  int Extent(int axis) const { return graph_.ExtentOf(shape()[static_cast<std::size_t>(axis)]); }
  int Result(const Joined& joined) const { return graph_.Reduce(joined.reducer, joined.of, axes_, keepdim_); }

  Graph& graph_;
  int input_;
  std::vector<int> axes_;
  bool keepdim_;
};

}  // namespace

Operand Composer::Reduce(std::string_view reducer, const Operand& value, std::vector<int> axes, bool keepdim) {
  const int input = Resolve(value, "the operand of a reduction");
  if (const auto kind = FindReducer(reducer))
    return Operand::Node(graph_.Reduce(*kind, input, std::move(axes), keepdim));
  const Joiner joiner(&graph_, input, std::move(axes), keepdim);
  if (reducer == red::mean::kName) return Operand::Node(red::mean::Value(joiner));
  if (reducer == red::argmax::kName) return Operand::Node(red::argmax::Value(joiner));
  if (reducer == red::argmin::kName) return Operand::Node(red::argmin::Value(joiner));
  throw Error("unknown reducer '" + std::string(reducer) +
              "': expected sum, maximum, minimum, product, mean, argmax or argmin");
}

Operand Composer::MapAxes(index_map::AxisMap map, int axis, const Operand& value, int rank, std::string_view reducer) {
  Operand made =
      Operand::Node(Resolve(value, reducer.empty() ? "the operand of broadcast" : "the operand of a reduction"));
  const PartialShape shape = graph_.node(made.node).shape;
  const int source_rank = static_cast<int>(shape.size());
  if (!reducer.empty()) RequireAxis(graph_, made.node, axis);
  std::vector<int> joined;
  for (int k = 0; k < source_rank; ++k)
    if (index_map::Joins(map, k, axis, source_rank, rank)) joined.push_back(k);
  bool ones = false;
  int first = -1;  // of the result's dimensions that are the source's
  std::vector<int> axes;  // those, as what is left of the source's
  for (int d = 0; d < rank; ++d) {
    const int from = map(d, axis, source_rank, rank);
    ones = ones || from == index_map::kOne;
    if (from < 0) continue;
    if (first < 0) first = d;
    axes.push_back(from - static_cast<int>(std::lower_bound(joined.begin(), joined.end(), from) - joined.begin()));
  }
  if (!joined.empty()) {
    // The product over the only element is that element, to the bit.
    for (std::size_t k = 0; reducer.empty() && k < joined.size(); ++k)
      graph_.Unify(shape[static_cast<std::size_t>(joined[k])], Dimension(1), "broadcast_scalar");
    made = Reduce(reducer.empty() ? "product" : reducer, made, joined, ones);
  }
  if (ones) {
    Ensure(rank == source_rank, "an axis map has axes of extent 1 that stand for none that is joined");
    return made;
  }
  if (!std::is_sorted(axes.begin(), axes.end())) made = Transpose(made, axes);
  if (axes.empty() || static_cast<int>(axes.size()) == rank) return made;
  return Broadcast(made, {first}, nullptr);
}

Operand Composer::Transpose(const Operand& value, std::vector<int> axes) {
  const int node = Resolve(value, "the operand of transpose");
  const int rank = static_cast<int>(graph_.node(node).shape.size());
  if (axes.empty())
    for (int d = 0; d < rank; ++d) axes.push_back(index_map::transpose::From(d, 0, rank, rank));
  return Operand::Node(graph_.Transpose(node, std::move(axes)));
}

Operand Composer::Dot(const Operand& a, const Operand& b, bool transpose_a, bool transpose_b, double alpha) {
  const int x = Resolve(a, "an operand of dot"), y = Resolve(b, "an operand of dot");
  return Operand::Node(graph_.Dot(x, y, transpose_a, transpose_b, alpha));
}

int Composer::Resolve(const Operand& value, std::string_view what) {
  if (value.kind == Kind::kLiteral) return graph_.Constant(value.number, DType::kFloat32);
  if (value.kind == Kind::kPending)
    throw Error(detail::Concat(what, ": the shape of ", BroadcastText(value), "(...) is not known here; write ",
                               BroadcastText(value), "(value, like)"));
  return value.node;
}

int Composer::ResolveTo(const Operand& value, DType dtype, const PartialShape& shape) {
  if (value.kind == Kind::kLiteral) {
    const int constant = graph_.Constant(value.number, ComputeType(dtype));
    return shape.size() == 0 ? constant : graph_.Broadcast(constant, std::vector<int>(shape.size(), -1), shape);
  }
  if (value.kind == Kind::kPending) return Spread(value, shape);
  if (graph_.node(value.node).shape.size() == 0 && shape.size() > 0)
    return graph_.Broadcast(value.node, std::vector<int>(shape.size(), -1), shape);
  return value.node;
}

}  // namespace umbra::graph

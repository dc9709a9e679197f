#include "compiler/graph/graph.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>

#include "compiler/graph/shape_text.h"
#include "umbra/error.h"

namespace umbra::graph {

namespace {

using Kind = Node::Kind;

std::uint64_t Mix(std::uint64_t hash, const void* data, std::size_t size) {
  return XXH3_64bits_withSeed(data, size, hash);
}

template <typename T>
std::uint64_t Mix(std::uint64_t hash, const T& value) {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
  return Mix(hash, &value, sizeof value);
}

// Dimensions enter by value or by the representative of their symbol.
std::int64_t DimensionKey(const Graph& graph, const Dimension& dim) {
  if (dim.is_dynamic() && dim.symbol() < 0) return std::numeric_limits<std::int64_t>::min();
  const Dimension known = graph.Known(dim);
  return known.is_static() ? static_cast<std::int64_t>(known) : -1 - known.symbol();
}

// Everything of a node but its name and its operands.
std::uint64_t HashContent(const Graph& graph, const Node& node) {
  std::uint64_t hash = Mix(0, node.kind);
  hash = Mix(hash, node.dtype);
  hash = Mix(hash, node.op);
  hash = Mix(hash, node.reducer);
  hash = Mix(hash, node.keepdim);
  hash = Mix(hash, node.contract);
  hash = Mix(hash, node.transpose_a);
  hash = Mix(hash, node.transpose_b);
  hash = Mix(hash, node.guarded);
  hash = Mix(hash, DimensionKey(graph, node.extent));
  hash = Mix(hash, std::bit_cast<std::uint64_t>(node.constant));
  for (int axis : node.axes) hash = Mix(hash, axis);
  for (const Dimension& dim : node.shape) hash = Mix(hash, DimensionKey(graph, dim));
  return hash;
}

bool SameContent(const Graph& graph, const Node& a, const Node& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.inputs == b.inputs && a.op == b.op && a.reducer == b.reducer &&
         a.axes == b.axes && a.keepdim == b.keepdim && a.contract == b.contract && a.transpose_a == b.transpose_a &&
         a.transpose_b == b.transpose_b && a.name == b.name && a.guarded == b.guarded &&
         DimensionKey(graph, a.extent) == DimensionKey(graph, b.extent) &&
         std::bit_cast<std::uint64_t>(a.constant) == std::bit_cast<std::uint64_t>(b.constant) &&
         std::equal(
             a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(),
             [&](const Dimension& x, const Dimension& y) { return DimensionKey(graph, x) == DimensionKey(graph, y); });
}

std::string_view TypesText(OpTypes types) {
  switch (types) {
    case OpTypes::kNumeric: return "numbers";
    case OpTypes::kFloat: return "floating-point numbers";
    case OpTypes::kInteger: return "integers";
    case OpTypes::kBool: return "a condition";
    case OpTypes::kInt64: return "i64";
    case OpTypes::kAny: return "anything";
  }
  return "";
}

void RequireNumbers(const Node& operand, const char* joins) {
  Require(operand.dtype != DType::kBool, joins,
          " of a condition: use tcast<i32>(...) first to count, or tcast<f32>(...)");
}

}  // namespace

int Graph::Add(Node node) {
  std::uint64_t hash = HashContent(*this, node);
  for (int input : node.inputs) hash = Mix(hash, input);
  const auto [begin, end] = by_hash_.equal_range(hash);
  if (node.kind != Kind::kInput && node.kind != Kind::kScalar)
    for (auto it = begin; it != end; ++it)
      if (SameContent(*this, nodes_[static_cast<std::size_t>(it->second)], node)) return it->second;
  Require(nodes_.size() < kMaxNodes, "graph '", name_, "' would have more than ", kMaxNodes,
          " nodes: split it, or check operators that call others several times, whose copies multiply");
  const int id = static_cast<int>(nodes_.size());
  nodes_.push_back(std::move(node));
  labels_.emplace_back();
  places_.emplace_back();
  by_hash_.emplace(hash, id);
  return id;
}

int Graph::NewSymbol(std::string name) {
  symbol_parent_.push_back(num_symbols());
  symbol_value_.emplace_back();
  symbol_name_.push_back(std::move(name));
  return num_symbols() - 1;
}

int Graph::FindSymbol(int symbol) const {
  while (symbol_parent_[static_cast<std::size_t>(symbol)] != symbol)
    symbol = symbol_parent_[static_cast<std::size_t>(symbol)];
  return symbol;
}

bool Graph::SameDimension(const Dimension& a, const Dimension& b) const {
  return DimensionKey(*this, a) == DimensionKey(*this, b);
}

Dimension Graph::Known(const Dimension& dim) const {
  if (dim.is_static()) return dim;
  const int symbol = FindSymbol(dim.symbol());
  const Dimension& value = symbol_value_[static_cast<std::size_t>(symbol)];
  return value.is_static() ? value : Dimension::WithSymbol(symbol);
}

Dimension Graph::Unify(const Dimension& a, const Dimension& b, std::string_view where) {
  const Dimension x = Known(a), y = Known(b);
  if (x.is_static() && y.is_static()) {
    Require(x.same_scheme(y), where, ": the extents ", x, " and ", y, " differ");
    return x;
  }
  if (x.is_dynamic() && y.is_dynamic()) {
    const int low = std::min(x.symbol(), y.symbol()), high = std::max(x.symbol(), y.symbol());
    symbol_parent_[static_cast<std::size_t>(high)] = low;
    std::string& name = symbol_name_[static_cast<std::size_t>(low)];
    if (name.empty()) name = symbol_name_[static_cast<std::size_t>(high)];
    return Dimension::WithSymbol(low);
  }
  const Dimension& extent = x.is_static() ? x : y;
  symbol_value_[static_cast<std::size_t>((x.is_static() ? y : x).symbol())] = extent;
  return extent;
}

int Graph::Input(std::string name, DType dtype, PartialShape shape) {
  Require(shape.rank().is_static(), "input '", name,
          "' has a dynamic rank: give its number of dimensions, each may be '?'");
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d].is_dynamic() && shape[d].symbol() < 0) shape[d] = Dimension::WithSymbol(NewSymbol());
    Require(shape[d].is_dynamic() || static_cast<std::int64_t>(shape[d]) >= 0, "input '", name,
            "' has the negative extent ", shape[d], " in dimension ", d);
  }
  for (const auto* list : {&inputs_, &scalars_})
    for (int id : *list) Require(node(id).name != name, "two operands are called '", name, "': rename one");
  Node node;
  node.kind = Kind::kInput;
  node.dtype = dtype;
  node.shape = std::move(shape);
  node.name = std::move(name);
  inputs_.push_back(Add(std::move(node)));
  return inputs_.back();
}

int Graph::Scalar(std::string name, DType dtype) {
  for (const auto* list : {&inputs_, &scalars_})
    for (int id : *list) Require(node(id).name != name, "two operands are called '", name, "': rename one");
  Require(dtype != DType::kBool, "scalar '", name, "' has dtype bool: use i32");
  Node node;
  node.kind = Kind::kScalar;
  node.dtype = ComputeType(dtype);
  node.name = std::move(name);
  scalars_.push_back(Add(std::move(node)));
  return scalars_.back();
}

int Graph::Constant(double value, DType dtype) {
  if (dtype == DType::kFloat32) value = static_cast<double>(static_cast<float>(value));
  if (dtype == DType::kInt32) {
    const bool is_whole = value == std::trunc(value), has_bits = is_whole && value >= 0x1p31 && value < 0x1p32;
    Require(is_whole && value >= -0x1p31 && value < 0x1p31, "the literal ",
            has_bits ? std::to_string(static_cast<std::int64_t>(value)) : detail::Concat(value), " is not an i32: ",
            has_bits
                ? detail::Concat("write ", static_cast<std::int64_t>(value - 0x1p32), ", which has its bits, or use ")
                : std::string("use tcast<f32>(...) on the other operand, or, of whole numbers, "),
            "tcast<i64>(...)", has_bits ? " on the other operand" : "");
  }
  if (dtype == DType::kInt64)
    Require(std::fabs(value) < 9007199254740992.0 && value == std::trunc(value), "the literal ", value,
            " is not a whole number below 2^53: pass larger ones as a scalar or a tensor");
  Ensure(dtype == ComputeType(dtype), "a constant of a narrow dtype");
  Node node;
  node.kind = Kind::kConstant;
  node.dtype = dtype;
  node.constant = value;
  return Add(std::move(node));
}

int Graph::Map(Op op, std::vector<int> inputs) {
  const OpInfo& info = Info(op);
  Require(static_cast<int>(inputs.size()) == info.arity, info.name, " takes ", info.arity, " operand",
          info.arity == 1 ? "" : "s", ", ", inputs.size(), " given");
  const std::size_t first_value = op == Op::select ? 1 : 0;
  for (int& input : inputs) input = Widened(input);
  if (op == Op::select)
    Require(node(inputs[0]).dtype == DType::kBool, "select: the condition must be a comparison, ",
            Describe(*this, inputs[0]), " given; write e.g. x != 0");
  const DType dtype = node(inputs[first_value]).dtype;
  Require(Accepts(info.types, dtype), info.name, " takes ", TypesText(info.types), ", but ",
          Describe(*this, inputs[first_value]), " was given; convert it with tcast<",
          info.types == OpTypes::kInt64     ? "i64"
          : info.types == OpTypes::kInteger ? "i32"
                                            : "f32",
          ">(...)");
  for (std::size_t k = first_value; k < inputs.size(); ++k)
    Require(node(inputs[k]).dtype == dtype, info.name,
            ": the operands have different dtypes: ", Describe(*this, inputs[first_value]), " and ",
            Describe(*this, inputs[k]), "; convert one with tcast<", Name(dtype), ">(...)");
  Node made;
  made.kind = Kind::kMap;
  made.op = op;
  made.dtype = ResultType(info, dtype);
  int shaped = -1;
  for (int input : inputs) {
    const PartialShape& shape = node(input).shape;
    if (shape.size() == 0) continue;
    if (shaped < 0) {
      shaped = input;
      made.shape = shape;
      continue;
    }
    bool fits = shape.size() == made.shape.size();
    for (std::size_t d = 0; fits && d < shape.size(); ++d) fits = Known(shape[d]).compatible(Known(made.shape[d]));
    Require(fits, info.name, ": the shapes of the operands differ: ", Describe(*this, shaped), " and ",
            Describe(*this, input), "; use broadcast<axis>(...) to bring one to the shape of the other");
    for (std::size_t d = 0; d < shape.size(); ++d) made.shape[d] = Unify(made.shape[d], shape[d], info.name);
  }
  made.inputs = std::move(inputs);
  return Add(std::move(made));
}

int Graph::Widened(int id) { return Cast(id, ComputeType(node(id).dtype)); }

int Graph::Cast(int input, DType dtype) {
  const DType from = node(input).dtype;
  if (from == dtype) return input;
  // A 16-bit float widens to f32 and is rounded from f32 or f64; an integer is exact in f64.
  if (IsHalf(from) && dtype != DType::kFloat32) return Cast(Cast(input, DType::kFloat32), dtype);
  if (IsHalf(dtype) && !IsFloat(from)) return Cast(Cast(input, DType::kFloat64), dtype);
  Node made;
  made.kind = Kind::kCast;
  made.dtype = dtype;
  made.shape = node(input).shape;
  made.inputs = {input};
  return Add(std::move(made));
}

int Graph::Broadcast(int input, std::vector<int> axes, const PartialShape& shape) {
  const Node& operand = node(input);
  Require(axes.size() == shape.size(), "broadcast: ", axes.size(), " axes given for a result of rank ", shape.size());
  Node made;
  made.kind = Kind::kBroadcast;
  made.dtype = operand.dtype;
  made.shape = shape;
  std::set<int> used;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (axes[d] < 0) continue;
    Require(axes[d] < static_cast<int>(operand.shape.size()) && used.insert(axes[d]).second,
            "broadcast: ", Describe(*this, input), " has no free dimension ", axes[d]);
    const Dimension& from = operand.shape[static_cast<std::size_t>(axes[d])];
    Require(Known(from).compatible(Known(shape[d])), "broadcast: ", Describe(*this, input), " does not fit dimension ",
            d, " of ", TypeText(*this, operand.dtype, shape));
    made.shape[d] = Unify(shape[d], from, "broadcast");
  }
  Require(used.size() == operand.shape.size(), "broadcast: every dimension of ", Describe(*this, input),
          " needs a place in the result of rank ", shape.size());
  made.axes = std::move(axes);
  made.inputs = {input};
  return Add(std::move(made));
}

int Graph::Transpose(int input, std::vector<int> axes) {
  const Node& operand = node(input);
  const std::size_t rank = operand.shape.size();
  std::vector<int> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  bool permutation = sorted.size() == rank;
  for (std::size_t d = 0; permutation && d < rank; ++d) permutation = sorted[d] == static_cast<int>(d);
  Require(permutation, "transpose: the axes must be a permutation of 0..", rank == 0 ? 0 : rank - 1, " for ",
          Describe(*this, input));
  Node made;
  made.kind = Kind::kTranspose;
  made.dtype = operand.dtype;
  std::vector<Dimension> dims;
  for (int axis : axes) dims.push_back(operand.shape[static_cast<std::size_t>(axis)]);
  made.shape = PartialShape(std::move(dims));
  made.axes = std::move(axes);
  made.inputs = {input};
  return Add(std::move(made));
}

int Graph::Reduce(Reducer reducer, int input, std::vector<int> axes, bool keepdim, bool contract) {
  input = Widened(input);
  const Node& operand = node(input);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  Require(!axes.empty(), "a reduction needs at least one axis; ", Describe(*this, input),
          operand.shape.size() == 0 ? " has none" : " was given none");
  Require(axes.front() >= 0 && axes.back() < static_cast<int>(operand.shape.size()), "reduction over axis ",
          axes.front() < 0 ? axes.front() : axes.back(), " of ", Describe(*this, input), ": its axes are 0 to ",
          operand.shape.size() - 1);
  RequireNumbers(operand, "reduction");
  Node made;
  made.kind = Kind::kReduce;
  made.dtype = operand.dtype;
  made.reducer = reducer;
  made.keepdim = keepdim;
  made.contract = contract;
  std::vector<Dimension> dims;
  for (std::size_t d = 0; d < operand.shape.size(); ++d) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), static_cast<int>(d));
    if (!reduced) dims.push_back(operand.shape[d]);
    else if (keepdim) dims.push_back(Dimension(1));
  }
  made.shape = PartialShape(std::move(dims));
  made.axes = std::move(axes);
  made.inputs = {input};
  return Add(std::move(made));
}

int Graph::Scan(Reducer reducer, int input, int axis) {
  input = Widened(input);
  const Node& operand = node(input);
  Require(axis >= 0 && axis < static_cast<int>(operand.shape.size()), "scan over axis ", axis, " of ",
          Describe(*this, input), ": its axes are 0 to ", operand.shape.size() - 1);
  RequireNumbers(operand, "scan");
  Node made;
  made.kind = Kind::kScan;
  made.dtype = operand.dtype;
  made.shape = operand.shape;
  made.reducer = reducer;
  made.axes = {axis};
  made.inputs = {input};
  return Add(std::move(made));
}

int Graph::Index(int axis, const PartialShape& shape) {
  Ensure(axis >= 0 && axis < static_cast<int>(shape.size()), "position along axis ", axis, " of rank ", shape.size());
  Node made;
  made.kind = Kind::kIndex;
  made.dtype = DType::kInt64;
  made.shape = shape;
  made.axes = {axis};
  return Add(std::move(made));
}

int Graph::ExtentOf(const Dimension& dim) {
  const Dimension known = Known(dim);
  if (known.is_static()) return Constant(static_cast<double>(static_cast<std::int64_t>(known)), DType::kInt64);
  Node made;
  made.kind = Kind::kExtent;
  made.dtype = DType::kInt64;
  made.extent = known;
  return Add(std::move(made));
}

int Graph::Gather(int source, std::vector<int> positions, int guard, double outside) {
  const Node& operand = node(source);
  Ensure(positions.size() == operand.shape.size(), "gather: ", positions.size(), " positions in ",
         Describe(*this, source));
  Node made;
  made.kind = Kind::kGather;
  made.dtype = operand.dtype;
  made.guarded = guard >= 0;
  made.constant = outside;
  made.inputs = {source};
  for (int position : positions) {
    Ensure(node(position).dtype == DType::kInt64, "gather: a position that is no i64");
    made.inputs.push_back(position);
  }
  if (guard >= 0) made.inputs.push_back(guard);
  for (std::size_t k = 1; k < made.inputs.size(); ++k) {
    const PartialShape& shape = node(made.inputs[k]).shape;
    if (shape.size() == 0) continue;
    if (made.shape.size() == 0) made.shape = shape;
    Ensure(shape.size() == made.shape.size(), "gather: positions of different ranks");
    for (std::size_t d = 0; d < shape.size(); ++d) made.shape[d] = Unify(made.shape[d], shape[d], "gather");
  }
  return Add(std::move(made));
}

Dimension Graph::Derive(ExtentOp op, const Dimension& a, const Dimension& b, std::string_view origin) {
  const Dimension x = Known(a), y = Known(b);
  if (x.is_static() && y.is_static())
    return Dimension(runtime::Compute(op, static_cast<std::int64_t>(x), static_cast<std::int64_t>(y)));
  const auto is = [](const Dimension& dim, std::int64_t value) {
    return dim.is_static() && static_cast<std::int64_t>(dim) == value;
  };
  if ((op == ExtentOp::kPlus || op == ExtentOp::kMinus) && is(y, 0)) return x;
  if ((op == ExtentOp::kTimes || op == ExtentOp::kOver) && is(y, 1)) return x;
  if ((op == ExtentOp::kPlus && is(x, 0)) || (op == ExtentOp::kTimes && is(x, 1))) return y;
  // What numbers are added to and taken from is so at once: (x' + 2) - 3 + 1 is x'.
  if ((op == ExtentOp::kPlus || op == ExtentOp::kMinus) && y.is_static())
    for (const Derived& sum : derived_) {
      const bool adds = sum.op.kind == ExtentOp::kPlus;
      if ((!adds && sum.op.kind != ExtentOp::kMinus) || !sum.b.is_static() || !SameDimension(sum.result, x)) continue;
      const auto number = [](const Dimension& dim, bool plus) {
        return static_cast<std::int64_t>(dim) * (plus ? 1 : -1);
      };
      std::int64_t all;
      if (__builtin_add_overflow(number(sum.b, adds), number(y, op == ExtentOp::kPlus), &all)) break;
      const Dimension of = sum.a;  // `derived_` may move
      return Derive(all < 0 ? ExtentOp::kMinus : ExtentOp::kPlus, of, Dimension(all < 0 ? -all : all), origin);
    }
  // (x' + y) - y and (y + x') - y are x'.
  if (op == ExtentOp::kMinus)
    for (const Derived& sum : derived_)
      if (sum.op.kind == ExtentOp::kPlus && SameDimension(sum.result, x)) {
        if (SameDimension(sum.b, y)) return Known(sum.a);
        if (SameDimension(sum.a, y)) return Known(sum.b);
      }
  for (Derived& known : derived_) {
    if (known.op.kind != op || !SameDimension(known.a, x) || !SameDimension(known.b, y)) continue;
    std::string& origins = known.op.origin;
    if (origins.find(origin) == std::string::npos) origins.append("; ").append(origin);
    return Known(known.result);
  }
  const Dimension result = Dimension::WithSymbol(NewSymbol());
  derived_.push_back({result, {op, std::string(origin)}, x, y});
  return result;
}

Dimension Graph::ExtentOfScalar(int scalar) {
  const auto at = std::find(scalars_.begin(), scalars_.end(), scalar);
  Ensure(at != scalars_.end() && !IsFloat(node(scalar).dtype), "an extent that is no whole number of the call");
  const Dimension number(at - scalars_.begin());
  for (const Derived& known : derived_)
    if (known.op.kind == ExtentOp::kScalar && known.a.same_scheme(number)) return Known(known.result);
  const Dimension result = Dimension::WithSymbol(NewSymbol());
  derived_.push_back({result, {ExtentOp::kScalar, detail::Concat("scalar '", node(scalar).name, "'")}, number, number});
  return result;
}

std::optional<Dimension> Graph::DimensionOf(int id, std::string_view origin) {
  int budget = 1000;  // what is used twice is looked at twice
  return DimensionOf(id, origin, &budget);
}

std::optional<Dimension> Graph::DimensionOf(int id, std::string_view origin, int* budget) {
  const Node made = node(id);
  if (made.shape.size() != 0 || IsFloat(made.dtype) || made.dtype == DType::kBool || --*budget < 0) return std::nullopt;
  switch (made.kind) {
    case Node::Kind::kConstant: return Dimension(static_cast<std::int64_t>(made.constant));
    case Node::Kind::kExtent: return Known(made.extent);
    case Node::Kind::kScalar: return ExtentOfScalar(id);
    case Node::Kind::kCast: return DimensionOf(made.inputs[0], origin, budget);
    case Node::Kind::kMap: break;
    default: return std::nullopt;
  }
  static const std::map<Op, ExtentOp> kOps = {{Op::plus, ExtentOp::kPlus},       {Op::minus, ExtentOp::kMinus},
                                              {Op::mul, ExtentOp::kTimes},       {Op::div, ExtentOp::kOver},
                                              {Op::minimum, ExtentOp::kMinimum}, {Op::maximum, ExtentOp::kMaximum}};
  const auto op = kOps.find(made.op);
  if (op == kOps.end()) return std::nullopt;
  const auto a = DimensionOf(made.inputs[0], origin, budget);
  if (!a) return std::nullopt;
  const auto b = DimensionOf(made.inputs[1], origin, budget);
  if (!b) return std::nullopt;
  return Derive(op->second, *a, *b, origin);
}

void Graph::CopySymbols(const Graph& other) {
  symbol_parent_ = other.symbol_parent_;
  symbol_value_ = other.symbol_value_;
  symbol_name_ = other.symbol_name_;
  derived_ = other.derived_;
}

int Graph::Dot(int a, int b, bool transpose_a, bool transpose_b, double alpha) {
  a = Widened(a);
  b = Widened(b);
  const DType dtype = node(a).dtype;
  Require(dtype == node(b).dtype && IsFloat(dtype), "dot takes two operands of f32 or two of f64, ", Describe(*this, a),
          " and ", Describe(*this, b), " given; ",
          IsFloat(dtype) || IsFloat(node(b).dtype) ? "convert with tcast"
                                                   : "convert with tcast, or write implicit_dot, which takes integers");
  return AddDot(a, b, transpose_a, transpose_b, alpha, dtype);
}

int Graph::NarrowDot(int a, int b, bool transpose_a, bool transpose_b, double alpha, DType dtype) {
  const DType from = node(a).dtype;
  Require(IsHalf(from) && node(b).dtype == from && (dtype == from || dtype == DType::kFloat32),
          "a product of 16-bit floats takes two operands of one of them and is f32 or that, ", Describe(*this, a),
          " and ", Describe(*this, b), " and ", Name(dtype), " given");
  return AddDot(a, b, transpose_a, transpose_b, alpha, dtype);
}

int Graph::AddDot(int a, int b, bool transpose_a, bool transpose_b, double alpha, DType dtype) {
  const Node &x = node(a), &y = node(b);
  const std::size_t rank_a = x.shape.size(), rank_b = y.shape.size();
  Require((rank_a == 2 && rank_b == 2) || (rank_a == 1 && rank_b == 2) || (rank_a == 1 && rank_b == 1) ||
              (rank_a == 3 && rank_b == 3),
          "dot takes matrix . matrix, vector . matrix, or vector . vector (outer product), batch_dot two "
          "batches of matrices; ",
          Describe(*this, a), " and ", Describe(*this, b), " given");
  const std::size_t batch = rank_a == 3 ? 1 : 0;
  Node made;
  made.kind = Kind::kDot;
  made.dtype = dtype;
  made.constant = alpha;
  made.inputs = {a, b};
  if (rank_b == 1) {
    made.shape = PartialShape{x.shape[0], y.shape[0]};
  } else {
    made.transpose_a = transpose_a && rank_a > 1;
    made.transpose_b = transpose_b;
    const Dimension inner_a = x.shape[rank_a == 1 ? 0 : batch + (transpose_a ? 0 : 1)];
    const Dimension inner_b = y.shape[batch + (transpose_b ? 1 : 0)];
    Require(Known(inner_a).compatible(Known(inner_b)), "dot: the inner extents differ, ", inner_a, " and ", inner_b,
            ": ", Describe(*this, a), transpose_a ? ".T" : "", " and ", Describe(*this, b), transpose_b ? ".T" : "");
    const Dimension columns = y.shape[batch + (transpose_b ? 0 : 1)];
    const Dimension rows = rank_a == 1 ? Dimension(1) : x.shape[batch + (transpose_a ? 1 : 0)];
    made.shape = rank_a == 1 ? PartialShape{columns} : PartialShape{rows, columns};
    if (batch != 0) {
      Require(Known(x.shape[0]).compatible(Known(y.shape[0])), "batch_dot: the batches differ: ", Describe(*this, a),
              " and ", Describe(*this, b));
      made.shape = PartialShape{x.shape[0], rows, columns};
      Unify(x.shape[0], y.shape[0], "batch_dot");
    }
    Unify(inner_a, inner_b, "dot");
  }
  return Add(std::move(made));
}

void Graph::AddOutput(std::string name, int node) {
  for (const Output& output : outputs_) Require(output.name != name, "two outputs are called '", name, "': rename one");
  outputs_.push_back({std::move(name), node});
}

void Graph::SetLabel(int node, std::string label) { labels_[static_cast<std::size_t>(node)] = std::move(label); }

std::string_view Graph::label(int node) const { return labels_[static_cast<std::size_t>(node)]; }

void Graph::SetPlaces(int first, std::string_view place) {
  for (auto at = places_.begin() + first; at != places_.end(); ++at)
    if (at->empty()) *at = place;
}

std::string_view Graph::place(int node) const { return places_[static_cast<std::size_t>(node)]; }

void Graph::TakeNames(int made, const Graph& other, int node) {
  if (label(made).empty()) labels_[static_cast<std::size_t>(made)] = other.label(node);
  if (place(made).empty()) places_[static_cast<std::size_t>(made)] = other.place(node);
}

const Graph::Identity& Graph::identity() const {
  std::call_once(memo_.once, [this] { memo_.identity = {StructuralHash(), Print(*this)}; });
  return memo_.identity;
}

std::uint64_t Graph::StructuralHash() const {
  std::uint64_t hash = Mix(0, nodes_.size());
  for (const Node& node : nodes_) {
    hash = Mix(hash, HashContent(*this, node));
    for (int input : node.inputs) hash = Mix(hash, input);
  }
  for (const Output& output : outputs_) hash = Mix(hash, output.node);
  return hash;
}

}  // namespace umbra::graph

#include "compiler/graph/index_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "umbra/error.h"
#include "umbra/index_map.h"

namespace umbra::graph {

namespace {

// ---- symbols ------------------------------------------------------------------------------------

// An extent of a map's shape: a dimension of the graph under construction. `whose` says which map
// and operand it is of, and `axis` which axis, -1 for what several make.
struct SymbolicExtent {
  Graph* graph = nullptr;
  Dimension dim;
  std::string whose;
  int axis = -1;

  SymbolicExtent() = default;
  SymbolicExtent(index_t value) : dim(value) {}  // NOLINT: numbers are extents
  SymbolicExtent(Graph* g, Dimension d, std::string of = "", int along = -1)
      : graph(g),
        dim(std::move(d)),
        whose(std::move(of)),
        axis(along) {}
  std::string Origin() const { return axis < 0 ? whose : detail::Concat(whose, ", axis ", axis); }
};

SymbolicExtent Combine(ExtentOp op, const SymbolicExtent& a, const SymbolicExtent& b) {
  if (a.graph == nullptr && b.graph == nullptr)
    return SymbolicExtent(runtime::Compute(op, static_cast<std::int64_t>(a.dim), static_cast<std::int64_t>(b.dim)));
  SymbolicExtent made = a.graph != nullptr ? a : b;
  if (a.graph == b.graph) made.axis = -1;
  made.dim = made.graph->Derive(op, a.dim, b.dim, made.Origin());
  return made;
}

SymbolicExtent operator+(const SymbolicExtent& a, const SymbolicExtent& b) { return Combine(ExtentOp::kPlus, a, b); }
SymbolicExtent operator-(const SymbolicExtent& a, const SymbolicExtent& b) { return Combine(ExtentOp::kMinus, a, b); }
SymbolicExtent operator*(const SymbolicExtent& a, const SymbolicExtent& b) { return Combine(ExtentOp::kTimes, a, b); }
SymbolicExtent operator/(const SymbolicExtent& a, const SymbolicExtent& b) { return Combine(ExtentOp::kOver, a, b); }
[[maybe_unused]] SymbolicExtent Min(const SymbolicExtent& a, const SymbolicExtent& b) {
  return Combine(ExtentOp::kMinimum, a, b);
}

// What is known of an extent: a number, or a symbol of `graph`.
Dimension Known(const SymbolicExtent& extent) {
  return extent.graph != nullptr ? extent.graph->Known(extent.dim) : extent.dim;
}

bool IsStatic(const SymbolicExtent& extent) { return Known(extent).is_static(); }
index_t Static(const SymbolicExtent& extent) { return static_cast<std::int64_t>(Known(extent)); }

// What is not known yet is 0 or more, and a call throws if a difference is negative.
void RequireNotNegative(const char* name, const char* what, const SymbolicExtent& extent) {
  if (IsStatic(extent)) index_map::RequireNumber(name, what, Static(extent), 0);
}
void RequireAtLeast(const char* name, const SymbolicExtent& extent, const SymbolicExtent& least) {
  if (IsStatic(extent) && IsStatic(least)) index_map::RequireAtLeast(name, Static(extent), Static(least));
  else extent - least;
}
void RequireNumber(const char* name, const char* what, const SymbolicExtent& value, index_t least) {
  RequireNotNegative(name, what, value);
  if (IsStatic(value)) index_map::RequireNumber(name, what, Static(value), least);
  else value - SymbolicExtent(least);
}
void RequireRange(const char* name, const SymbolicExtent& begin, const SymbolicExtent& end,
                  const SymbolicExtent& extent) {
  if (IsStatic(begin) && IsStatic(end) && IsStatic(extent))
    return index_map::RequireRange(name, Static(begin), Static(end), Static(extent));
  if (IsStatic(begin) && IsStatic(end)) index_map::RequireRange(name, Static(begin), Static(end), Static(end));
  else RequireNotNegative(name, "begin", begin);
  RequireAtLeast(name, end, begin);
  RequireAtLeast(name, extent, end);
}
void RequireEqual(const char* name, const SymbolicExtent& a, const SymbolicExtent& b) {
  Graph* graph = a.graph != nullptr ? a.graph : b.graph;
  if (graph != nullptr) graph->Unify(a.dim, b.dim, name);
  else index_map::RequireEqual(name, static_cast<std::int64_t>(a.dim), static_cast<std::int64_t>(b.dim));
}
void RequireEven(const char* name, const SymbolicExtent& extent) {
  const Dimension known = Known(extent);
  if (known.is_static()) return index_map::RequireEven(name, static_cast<std::int64_t>(known));
  const SymbolicExtent even(extent.graph, known, std::string(name) + ": the last axis must be even");
  RequireEqual(name, even / 2 * 2, even);
}

// A position, a condition or an element: a node of the graph, or a number that has no dtype yet.
struct Symbol {
  Graph* graph = nullptr;
  int node = -1;
  double number = 0;

  Symbol() = default;
  Symbol(index_t value) : number(static_cast<double>(value)) {}  // NOLINT: numbers are symbols
  Symbol(int value) : number(value) {}  // NOLINT
  Symbol(Graph* g, int n) : graph(g), node(n) {}
  static Symbol Number(double value) {
    Symbol s;
    s.number = value;
    return s;
  }
};

// `node` at every point of `shape`, whose first dimensions are those of the node.
int Spread(Graph* graph, int node, const PartialShape& shape) {
  const std::size_t rank = graph->node(node).shape.size();
  if (rank == shape.size()) return node;
  std::vector<int> axes(shape.size(), -1);
  for (std::size_t d = 0; d < rank; ++d) axes[d] = static_cast<int>(d);
  return graph->Broadcast(node, std::move(axes), shape);
}

// Brings nodes to the largest of their shapes; those of rank 0 may stay.
void Align(Graph* graph, std::vector<int>* nodes) {
  PartialShape largest;
  for (int node : *nodes)
    if (graph->node(node).shape.size() > largest.size()) largest = graph->node(node).shape;
  for (int& node : *nodes)
    if (graph->node(node).shape.size() > 0) node = Spread(graph, node, largest);
}

Symbol Apply(Op op, const std::vector<Symbol>& operands) {
  Graph* graph = nullptr;
  DType dtype = DType::kInt64;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].graph == nullptr || (op == Op::select && k == 0)) continue;
    graph = operands[k].graph;
    dtype = graph->node(operands[k].node).dtype;
  }
  if (graph == nullptr && op == Op::select) graph = operands[0].graph;
  Ensure(graph != nullptr, "an index map computes with numbers only");
  std::vector<int> nodes;
  for (const Symbol& operand : operands)
    nodes.push_back(operand.graph != nullptr ? operand.node : graph->Constant(operand.number, ComputeType(dtype)));
  Align(graph, &nodes);
  return {graph, graph->Map(op, std::move(nodes))};
}

#define UMBRA_SYMBOL_OPERATOR(symbol, op) \
  [[maybe_unused]] Symbol operator symbol(const Symbol& a, const Symbol& b) { return Apply(Op::op, {a, b}); }
UMBRA_SYMBOL_OPERATOR(+, plus)
UMBRA_SYMBOL_OPERATOR(-, minus)
UMBRA_SYMBOL_OPERATOR(*, mul)
UMBRA_SYMBOL_OPERATOR(/, div)
UMBRA_SYMBOL_OPERATOR(<, lt)
UMBRA_SYMBOL_OPERATOR(<=, le)
UMBRA_SYMBOL_OPERATOR(>, gt)
UMBRA_SYMBOL_OPERATOR(>=, ge)
UMBRA_SYMBOL_OPERATOR(==, eq)
UMBRA_SYMBOL_OPERATOR(&&, logical_and)
#undef UMBRA_SYMBOL_OPERATOR
[[maybe_unused]] Symbol Min(const Symbol& a, const Symbol& b) { return Apply(Op::minimum, {a, b}); }
[[maybe_unused]] Symbol Max(const Symbol& a, const Symbol& b) { return Apply(Op::maximum, {a, b}); }

// ---- context ------------------------------------------------------------------------------------

class Context {
 public:
  using Index = Symbol;
  using Sum = red::sum;

  Context(Graph* graph, const std::vector<int>& sources, const std::vector<Dimension>& params, DType dtype,
          PartialShape shape)
      : graph_(graph),
        sources_(sources),
        params_(params),
        dtype_(dtype),
        shape_(shape),
        domain_(std::move(shape)) {}

  int rank() const { return static_cast<int>(shape_.size()); }
  int rank(int k) const { return static_cast<int>(Source(k).shape.size()); }
  Symbol at(int d) const { return {graph_, graph_->Index(d, domain_)}; }
  Symbol extent(int k, int d) const { return {graph_, graph_->ExtentOf(Source(k).shape[static_cast<std::size_t>(d)])}; }
  SymbolicExtent size(index_t n) const { return n; }
  // Is number n known to be 0?
  bool IsNothing(int n) const {
    const Dimension param = graph_->Known(params_[static_cast<std::size_t>(n)]);
    return param.is_static() && static_cast<std::int64_t>(param) == 0;
  }
  // Is it known to be the extent of dimension d of source k?
  bool HasParam(int n, int k, int d) const {
    return graph_->SameDimension(params_[static_cast<std::size_t>(n)], Source(k).shape[static_cast<std::size_t>(d)]);
  }
  Symbol param(int k) const { return {graph_, graph_->ExtentOf(params_[static_cast<std::size_t>(k)])}; }
  SymbolicExtent size(int k, int d) const { return {graph_, Source(k).shape[static_cast<std::size_t>(d)]}; }
  Symbol Literal(double value) const { return Symbol::Number(value); }
  Symbol One() const { return {graph_, graph_->Constant(1, ComputeType(dtype_))}; }

  Symbol Load(int k, const index_map::Position<Symbol>& position) const { return Gather(k, position, -1, 0); }
  Symbol LoadIf(const Symbol& condition, int k, const index_map::Position<Symbol>& position, double outside) const {
    return Gather(k, position, condition.node, outside);
  }
  Symbol If(const Symbol& condition, const Symbol& a, const Symbol& b) const {
    return Apply(Op::select, {condition, a, b});
  }
  Symbol Over(const Symbol& a, const Symbol& b) const { return a / b; }
  Symbol FromPosition(const Symbol& position) const {
    return {graph_, graph_->Cast(position.node, ComputeType(dtype_))};
  }
  Symbol LoadPosition(int k, const index_map::Position<Symbol>& position) const {
    return {graph_, graph_->Cast(Load(k, position).node, DType::kInt64)};
  }

  // A constant is a double, which no extreme of i64 is.
  template <typename R>
  bool HasIdentity() const {
    return dtype_ != DType::kInt64 || red::InitialOf<R, index_t>() == 0 || red::InitialOf<R, index_t>() == 1;
  }
  template <typename R>
  double Identity() const {
    return SwitchDType(dtype_, [](auto zero) { return static_cast<double>(red::InitialOf<R, decltype(zero)>()); });
  }

  template <typename R, typename Body>
  Symbol Reduce(std::initializer_list<SymbolicExtent> sizes, const Body& body) {
    const PartialShape outer = domain_;
    std::vector<Dimension> dims(outer.begin(), outer.end());
    for (const SymbolicExtent& size : sizes) dims.push_back(size.dim);
    domain_ = PartialShape(std::move(dims));
    std::vector<Symbol> window;
    std::vector<int> axes;
    for (std::size_t d = outer.size(); d < domain_.size(); ++d) {
      axes.push_back(static_cast<int>(d));
      window.push_back(at(static_cast<int>(d)));
    }
    const Symbol element = body(window);
    const int node = Spread(graph_, element.node, domain_);
    domain_ = outer;
    return {graph_, graph_->Reduce(*FindReducer(R::kName), node, std::move(axes), false)};
  }

  template <typename R>
  Symbol Scan(int axis) const {
    return {graph_, graph_->Scan(*FindReducer(R::kName), sources_[0], axis)};
  }

  int Finish(const Symbol& value) const { return Spread(graph_, value.node, shape_); }

 private:
  const Node& Source(int k) const { return graph_->node(sources_[static_cast<std::size_t>(k)]); }

  Symbol Gather(int k, const index_map::Position<Symbol>& position, int guard, double outside) const {
    std::vector<int> nodes;
    for (int d = 0; d < position.rank; ++d) {
      const Symbol& p = position[d];
      nodes.push_back(p.graph != nullptr ? p.node : graph_->Constant(p.number, DType::kInt64));
    }
    if (guard >= 0) nodes.push_back(guard);
    Align(graph_, &nodes);
    if (guard >= 0) {
      guard = nodes.back();
      nodes.pop_back();
    }
    return {graph_, graph_->Gather(sources_[static_cast<std::size_t>(k)], std::move(nodes), guard, outside)};
  }

  Graph* graph_;
  const std::vector<int>& sources_;
  const std::vector<Dimension>& params_;
  DType dtype_;
  PartialShape shape_, domain_;
};

// ---- building -----------------------------------------------------------------------------------

// `'x'`, or which operand it is if nobody named it.
std::string OperandText(const Graph& graph, int source, std::size_t k) {
  const std::string_view own = graph.node(source).name, label = graph.label(source);
  if (own.empty() && label.empty()) return detail::Concat("operand ", k + 1);
  return detail::Concat("'", own.empty() ? label : own, "'");
}

// Of a number that is not known yet, which a map does not read but through `in` and its context, stands 0.
template <typename Map>
Map Make(const Graph& graph, std::string_view name, const std::vector<Dimension>& params) {
  std::vector<index_t> known;
  for (std::size_t k = 0; k < params.size(); ++k) {
    const Dimension param = graph.Known(params[k]);
    Require(param.is_static() || index_map::OpenParams<Map>::Has(static_cast<int>(k)), name, ": number ", k + 1,
            " after its tensors has to be known when the kernel is compiled; use a literal");
    known.push_back(param.is_static() ? static_cast<std::int64_t>(param) : 0);
  }
  if constexpr (Map::kParams >= 0) return Map(known.data());
  else return Map(known.data(), static_cast<int>(known.size()));
}

template <typename Map>
int Build(Graph* graph, std::string_view name, const std::vector<int>& sources, const std::vector<Dimension>& params,
          DType dtype) {
  const Map map = Make<Map>(*graph, name, params);
  std::vector<int> ranks(sources.size());
  index_map::Extents<SymbolicExtent> in;
  std::string whose(name);
  for (std::size_t k = sources.size(); k-- > 0;) {
    const PartialShape& shape = graph->node(sources[k]).shape;
    Require(shape.size() <= index_map::kMaxRank, "an index map of a tensor of rank ", shape.size(), "; it can be ",
            index_map::kMaxRank, " at most");
    ranks[k] = in.rank[k] = static_cast<int>(shape.size());
    whose = detail::Concat(name, " of ", OperandText(*graph, sources[k], k));
    for (std::size_t d = 0; d < shape.size(); ++d) in.extent[k][d] = {graph, shape[d], whose, static_cast<int>(d)};
  }
  map.Check(ranks.data());
  for (std::size_t k = 0; k < params.size() && k < in.param.size(); ++k) {
    const Dimension param = graph->Known(params[k]);
    in.param[k] =
        param.is_static() ? SymbolicExtent(static_cast<std::int64_t>(param)) : SymbolicExtent(graph, param, whose);
  }
  std::array<SymbolicExtent, index_map::kMaxRank> out;
  map.Shape(in, out.data());
  std::vector<Dimension> dims;
  for (int d = 0; d < map.Rank(ranks.data()); ++d) dims.push_back(out[static_cast<std::size_t>(d)].dim);
  Context context(graph, sources, params, dtype, PartialShape(std::move(dims)));
  return context.Finish(map.Value(context));
}

template <typename Map>
constexpr std::optional<DType> ResultOf() {
  if constexpr (index_map::ResultDType<Map>::kOwn) return Map::kResult;
  else return std::nullopt;
}

template <typename Map>
bool IsOfOneShape() {
  if constexpr (std::is_base_of_v<index_map::ComplexBinary, Map>) {
    const Map map(nullptr);
    return map.paired[0] == map.paired[1];
  }
  return false;
}

#define UMBRA_ROW(type, name, form, doc) \
  {name,                                 \
   form,                                 \
   doc,                                  \
   type::kSources,                       \
   type::kParams,                        \
   &IsOfOneShape<type>,                  \
   index_map::IndexSource<type>::value,  \
   ResultOf<type>(),                     \
   &index_map::OpenParams<type>::Has,    \
   &Build<type>},
constexpr IndexMapInfo kMaps[] = {
#define UMBRA_INDEX_MAP(name, form, doc) UMBRA_ROW(index_map::name, #name, form, doc)
#define UMBRA_WINDOW_MAP(name, form, doc) \
  UMBRA_WINDOW_GRADIENT(name, form, doc)  \
  UMBRA_ROW(index_map::name<red::product>, #name "<product>", form, doc)
#define UMBRA_WINDOW_GRADIENT(name, form, doc)                           \
  UMBRA_ROW(index_map::name<red::sum>, #name "<sum>", form, doc)         \
  UMBRA_ROW(index_map::name<red::maximum>, #name "<maximum>", form, doc) \
  UMBRA_ROW(index_map::name<red::minimum>, #name "<minimum>", form, doc) \
  UMBRA_ROW(index_map::name<red::mean>, #name "<mean>", form, doc)
#include "umbra/index_maps.def"
};
#undef UMBRA_ROW

}  // namespace

std::span<const IndexMapInfo> IndexMaps() { return kMaps; }

const IndexMapInfo* FindIndexMap(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kMaps), std::end(kMaps), [&](const IndexMapInfo& info) { return info.name == name; });
  return found == std::end(kMaps) ? nullptr : &*found;
}

std::string ReducersOf(std::string_view name) {
  std::vector<std::string_view> reducers;
  for (const IndexMapInfo& info : kMaps)
    if (info.name.size() > name.size() && info.name.substr(0, name.size()) == name && info.name[name.size()] == '<')
      reducers.push_back(info.name.substr(name.size() + 1, info.name.size() - name.size() - 2));
  std::string text;
  for (std::size_t k = 0; k < reducers.size(); ++k)
    text += (k == 0 ? "" : k + 1 < reducers.size() ? ", " : " or ") + std::string(reducers[k]);
  return text;
}

void RequireReducer(std::string_view name) {
  const std::string_view map = name.substr(0, name.find('<'));
  const std::string reducers = ReducersOf(map);
  Require(reducers.empty() || FindIndexMap(name) != nullptr, map, " takes the reducer ", reducers, ", as in ", map,
          "<sum>(...)", map == name ? "" : "; " + std::string(name) + " is none of them");
}

int BuildIndexMap(Graph* graph, std::string_view name, const std::vector<int>& sources,
                  const std::vector<Dimension>& params, DType dtype) {
  RequireReducer(name);
  const IndexMapInfo* info = FindIndexMap(name);
  Require(info != nullptr, "unknown index map '", name, "'; `umbra ops` lists them");
  Require(static_cast<int>(sources.size()) == info->sources &&
              (info->params < 0 || static_cast<int>(params.size()) == info->params),
          name, ": expected ", info->form);
  int first = -1;  // of the sources that have the dtype of the result
  for (int k = 0; k < info->sources; ++k) {
    if (k == info->index_source && info->sources > 1) continue;
    const DType own = graph->node(sources[static_cast<std::size_t>(k)]).dtype;
    if (first < 0) {
      first = k;
      dtype = own;
    }
    Require(own == dtype, info->form, ": the operands have one dtype, but ",
            OperandText(*graph, sources[static_cast<std::size_t>(first)], static_cast<std::size_t>(first)), " is ",
            umbra::Name(dtype), " and ",
            OperandText(*graph, sources[static_cast<std::size_t>(k)], static_cast<std::size_t>(k)), " is ",
            umbra::Name(own), "; convert one with tcast<", umbra::Name(IsFloat(dtype) ? dtype : own), ">(...)");
  }
  return info->build(graph, name, sources, params, info->result.value_or(dtype));
}

}  // namespace umbra::graph

// What expressions are to the compiler: the operands and the structure of a call, and the graph that is built of them.
#ifndef UMBRA_BRIDGE_H_
#define UMBRA_BRIDGE_H_

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "umbra/gathered.h"
#include "umbra/graph.h"
#include "umbra/random.h"
#include "umbra/tensor.h"

namespace umbra::detail {

// Expressions compute with bool as with a number, 0 or 1.
template <typename DType>
inline graph::Value AsNumber(const graph::Value& value) {
  if constexpr (std::is_same_v<DType, bool>) return graph::Cast(value, umbra::DType::kInt32);
  else return value;
}

/// Builds the graph of an expression; `operand_of` maps the tensors of the walk to inputs.
struct GraphWalk {
  graph::Builder* builder;
  const std::int64_t* structure;  ///< axes and scales in the order of the walk
  std::vector<std::int64_t> operand_of;
  std::map<std::int64_t, graph::Value> tensors{};  ///< by operand: what it holds by now
  std::vector<std::int64_t> inputs{};  ///< operands that were read as the call passes them
  int next_operand = 0, next_scalar = 0;
  bool inside = false;  ///< as of Gatherer

  /// The graph of an E whose extents are not those of the result.
  template <typename E>
  graph::Value Inner() {
    const bool before = std::exchange(inside, true);
    graph::Value value = E::Build(this);
    inside = before;
    return value;
  }
  template <typename DType>
  graph::Value Input(int dim) {
    return Input(dim, DTypeOf<DType>::value);
  }
  template <typename DType>
  graph::Value Scalar() {
    return Scalar(DTypeOf<ComputeOf<DType>>::value);
  }

 private:
  graph::Value Input(int dim, DType dtype);
  graph::Value Scalar(DType dtype);
};

template <typename OP, typename = void>
struct HasText : std::false_type {};
template <typename OP>
struct HasText<OP, std::void_t<decltype(OP::kText)>> : std::true_type {};
template <typename OP, typename = void>
struct HasName : std::false_type {};
template <typename OP>
struct HasName<OP, std::void_t<decltype(OP::kName)>> : std::true_type {};

/// See op::detail::UnknownName; empty for operators without a text.
template <typename OP>
constexpr std::string_view UnknownNameOf() {
  if constexpr (HasText<OP>::value) return op::detail::UnknownName(OP::kArgs, OP::kText);
  else return {};
}

template <typename OP>
inline graph::Value ApplyOp(std::initializer_list<graph::Value> operands) {
  static_assert(HasName<OP>::value,
                "umbra: this operator has no text to generate code from: define "
                "it with UMBRA_OP(name, (args), expression)");
  static_assert(UnknownNameOf<OP>().empty(),
                "umbra: this operator's expression has a name that is neither an argument nor an "
                "operator of umbra/ops.def, or an unsigned number: give constants as operands, F<op>(x, scalar(c))");
  if constexpr (HasText<OP>::value) return graph::ApplyNumericText(OP::kName, OP::kArgs, OP::kText, operands);
  else return graph::ApplyNumeric(OP::kName, operands);
}

/// T as a program writes it.
template <typename T>
std::string TypeName() {
  const std::string_view text = __PRETTY_FUNCTION__;  // ... [with T = ...; ...], or [T = ...]
  const std::size_t begin = text.find("T = ") + 4;
  return std::string(text.substr(begin, text.find_first_of(";]", begin) - begin));
}

/// Why expressions cannot be compiled, each reason once.
using Obstacles = std::vector<std::string>;
inline void AddObstacle(Obstacles* all, std::string one) {
  if (std::find(all->begin(), all->end(), one) == all->end()) all->push_back(std::move(one));
}

/// What an expression consists of: it can be compiled if all of them can.
template <typename... Each>
struct Parts {
  static constexpr bool kKnown = (... && Each::kKnown);
  static void Explain([[maybe_unused]] Obstacles* why) { (Each::Explain(why), ...); }
};
/// An operator or a reducer, which generated code has to have a name for, or a text.
template <typename OP, bool kReduces = false>
struct Named {
  static constexpr bool kKnown = HasName<OP>::value && UnknownNameOf<OP>().empty();
  static void Explain(Obstacles* why) {
    if (HasName<OP>::value && !kKnown)
      AddObstacle(
          why,
          "'" + TypeName<OP>() + "' has '" + std::string(UnknownNameOf<OP>()) +
              "' in its expression, which is neither an argument of it nor an operator of umbra/ops.def: give it as an operand, F<" +
              TypeName<OP>() + ">(..., scalar(c)), or write the number");
    if (!HasName<OP>::value)
      AddObstacle(why, "'" + TypeName<OP>() +
                           "' is a function of C++ with no text to generate code from: define it with "
                           "UMBRA_OP(name, (args), expression), " +
                           (kReduces ? "or use a reducer of umbra::red"
                                     : "or mark a function that uses it UMBRA_KERNEL, for umbra-extract"));
  }
};

/// Gather and Build walk an expression in the same order. kKnown: can the expression be compiled? Explain says why not.
template <typename E>
struct Bridge {
  static constexpr bool kKnown = false;
  static void Explain(Obstacles* why) {
    AddObstacle(why, "'" + TypeName<E>() + "' is a class of expressions that the compiler does not know");
  }
  template <typename Any>
  static void Gather(const Any&, Gatherer*) {
    static_assert(sizeof(Any) == 0, "umbra: this expression cannot be compiled: no Bridge for its type");
  }
};

template <typename DType>
struct Bridge<expr::ScalarExp<DType>> : Parts<> {
  [[gnu::always_inline]] static void Gather(const expr::ScalarExp<DType>& e, Gatherer* g) {
    g->AddScalar<DType>(e.scalar_);
  }
  static graph::Value Build(GraphWalk* w) { return w->Scalar<DType>(); }
};
template <typename Device, int dim, typename DType>
struct Bridge<Tensor<Device, dim, DType>> : Parts<> {
  [[gnu::always_inline]] static void Gather(const Tensor<Device, dim, DType>& e, Gatherer* g) { g->Add(e); }
  static graph::Value Build(GraphWalk* w) { return w->Input<DType>(dim); }
};
// A tensor of random numbers: its shape comes as an operand of stride 0 whose elements nobody reads, its key, its first
// counter and what the distribution has as numbers, so that no call compiles anew.
template <typename Distribution, typename DType, int dim>
struct Bridge<expr::RandomExp<Distribution, DType, dim>> : Parts<> {
  using E = expr::RandomExp<Distribution, DType, dim>;
  static void Gather(const E& e, Gatherer* g) {
    g->AddShape<DType>(e.shape_);
    g->AddScalar<std::int64_t>(static_cast<std::int64_t>(e.key_));
    g->AddScalar<std::int64_t>(static_cast<std::int64_t>(e.first_));
    Add(e.distribution_, g);
  }
  static graph::Value Build(GraphWalk* w) {
    const graph::Value like = w->Input<DType>(dim), key = w->Scalar<std::int64_t>(), first = w->Scalar<std::int64_t>();
    return Apply(static_cast<const Distribution*>(nullptr), graph::Draw(Distribution::kName, like, key, first), w);
  }

 private:
  static void Add(const Uniform<DType>& d, Gatherer* g) {
    for (const DType number : {d.a, d.b, d.last}) g->AddScalar<DType>(number);
  }
  static graph::Value Apply(const Uniform<DType>*, const graph::Value& u, GraphWalk* w) {
    const graph::Value a = w->Scalar<DType>(), b = w->Scalar<DType>(), last = w->Scalar<DType>();
    return minimum(maximum(a * (1 - u) + b * u, a), last);
  }
  static void Add(const Gaussian<DType>& d, Gatherer* g) {
    for (const DType number : {d.mu, d.sigma}) g->AddScalar<DType>(number);
  }
  static graph::Value Apply(const Gaussian<DType>*, const graph::Value& n, GraphWalk* w) {
    const graph::Value mu = w->Scalar<DType>(), sigma = w->Scalar<DType>();
    return mu + sigma * n;
  }
};
template <typename Dst, typename Src, typename E, int etype>
struct Bridge<expr::TypecastExp<Dst, Src, E, etype>> : Parts<Bridge<E>> {
  [[gnu::always_inline]] static void Gather(const expr::TypecastExp<Dst, Src, E, etype>& e, Gatherer* g) {
    Bridge<E>::Gather(e.exp, g);
  }
  static graph::Value Build(GraphWalk* w) {
    return AsNumber<Dst>(graph::Cast(Bridge<E>::Build(w), DTypeOf<Dst>::value));
  }
};
template <typename E, typename DType>
struct Bridge<expr::TransposeExp<E, DType>> : Parts<Bridge<E>> {
  static void Gather(const expr::TransposeExp<E, DType>& e, Gatherer* g) {
    const Gatherer::Inside inside(g);
    Bridge<E>::Gather(e.exp, g);
  }
  static graph::Value Build(GraphWalk* w) {
    return graph::MapAxes(index_map::transpose::From, 0, w->Inner<Bridge<E>>(), 2);
  }
};
template <typename OP, typename TA, typename DType, int etype>
struct Bridge<expr::UnaryMapExp<OP, TA, DType, etype>> : Parts<Named<OP>, Bridge<TA>> {
  [[gnu::always_inline]] static void Gather(const expr::UnaryMapExp<OP, TA, DType, etype>& e, Gatherer* g) {
    Bridge<TA>::Gather(e.src_, g);
  }
  static graph::Value Build(GraphWalk* w) { return ApplyOp<OP>({Bridge<TA>::Build(w)}); }
};
template <typename OP, typename TA, typename TB, typename DType, int etype>
struct Bridge<expr::BinaryMapExp<OP, TA, TB, DType, etype>> : Parts<Named<OP>, Bridge<TA>, Bridge<TB>> {
  [[gnu::always_inline]] static void Gather(const expr::BinaryMapExp<OP, TA, TB, DType, etype>& e, Gatherer* g) {
    Bridge<TA>::Gather(e.lhs_, g);
    Bridge<TB>::Gather(e.rhs_, g);
  }
  static graph::Value Build(GraphWalk* w) { return ApplyOp<OP>({Bridge<TA>::Build(w), Bridge<TB>::Build(w)}); }
};
template <typename OP, typename TA, typename TB, typename TC, typename DType, int etype>
struct Bridge<expr::TernaryMapExp<OP, TA, TB, TC, DType, etype>>
    : Parts<Named<OP>, Bridge<TA>, Bridge<TB>, Bridge<TC>> {
  [[gnu::always_inline]] static void Gather(const expr::TernaryMapExp<OP, TA, TB, TC, DType, etype>& e, Gatherer* g) {
    Bridge<TA>::Gather(e.item1_, g);
    Bridge<TB>::Gather(e.item2_, g);
    Bridge<TC>::Gather(e.item3_, g);
  }
  static graph::Value Build(GraphWalk* w) {
    return ApplyOp<OP>({Bridge<TA>::Build(w), Bridge<TB>::Build(w), Bridge<TC>::Build(w)});
  }
};
template <typename TA, typename TB, bool lt, bool rt, typename DType>
struct Bridge<expr::DotExp<TA, TB, lt, rt, DType>> : Parts<Bridge<TA>, Bridge<TB>> {
  static void Gather(const expr::DotExp<TA, TB, lt, rt, DType>& e, Gatherer* g) {
    const auto scale = static_cast<double>(e.scale_);
    std::int64_t bits;
    std::memcpy(&bits, &scale, sizeof bits);
    g->AddStructure(bits);
    const Gatherer::Inside inside(g);
    Bridge<TA>::Gather(e.lhs_, g);
    Bridge<TB>::Gather(e.rhs_, g);
  }
  static graph::Value Build(GraphWalk* w) {
    double scale;
    std::memcpy(&scale, w->structure++, sizeof scale);
    const graph::Value lhs = w->Inner<Bridge<TA>>();
    return graph::Dot(lhs, w->Inner<Bridge<TB>>(), lt, rt, scale);
  }
};
template <typename Map, int axis, typename Reducer, typename Src, typename DType, int dim>
struct Bridge<expr::AxisMapExp<Map, axis, Reducer, Src, DType, dim>>
    : Parts<std::conditional_t<std::is_void_v<Reducer>, Parts<>, Named<Reducer, true>>, Bridge<Src>> {
  using E = expr::AxisMapExp<Map, axis, Reducer, Src, DType, dim>;
  [[gnu::always_inline]] static void Gather(const E& e, Gatherer* g) {
    if constexpr (axis == expr::kAtRunTime) g->AddStructure(e.axis_);
    if (Repeats(e.axis_)) g->AddTold<DType>(e.shape_);
    const Gatherer::Inside inside(g);
    Bridge<Src>::Gather(e.src_, g);
  }
  static graph::Value Build(GraphWalk* w) {
    const int at = axis == expr::kAtRunTime ? static_cast<int>(*w->structure++) : axis;
    std::optional<graph::Value> like;
    if (w->inside && Repeats(at)) like = w->Input<DType>(dim);
    const graph::Value source = w->Inner<Bridge<Src>>();
    if constexpr (std::is_void_v<Reducer>) {
      const graph::Value made = graph::MapAxes(Map::From, at, source, dim);
      return like ? graph::Spread(made, *like) : made;
    } else {
      return Joined(graph::MapAxes(Map::From, at, source, dim, Reducer::kName));
    }
  }

 private:
  static constexpr bool Repeats(int at) {
    bool repeats = false;
    for (int d = 0; d < dim; ++d)
      repeats = repeats || Map::From(d, axis == expr::kAtRunTime ? at : axis, E::kSrcDim, dim) == index_map::kRepeated;
    return repeats;
  }
  static graph::Value Joined(const graph::Value& value) {
    if constexpr (red::kGivesPosition<Reducer>) return graph::Cast(value, DTypeOf<ComputeOf<DType>>::value);
    else return value;
  }
};
// The name of a map in umbra/index_maps.def; others are a program's own.
template <typename Map>
struct IndexMapName : Bridge<Map> {
  static std::string Text() {
    static_assert(
        sizeof(Map) == 0,
        "umbra: an index map of a program's own is evaluated eagerly: assign without jit(...), or make it of maps "
        "that `umbra ops` lists");
    return {};
  }
};
#define UMBRA_INDEX_MAP(name, form, doc)           \
  template <>                                      \
  struct IndexMapName<index_map::name> : Parts<> { \
    static std::string Text() { return #name; }    \
  };
#define UMBRA_WINDOW_MAP(name, form, doc)                                         \
  template <typename R>                                                           \
  struct IndexMapName<index_map::name<R>> : Parts<Named<R, true>> {               \
    static std::string Text() { return #name "<" + std::string(R::kName) + ">"; } \
  };
#define UMBRA_WINDOW_GRADIENT(name, form, doc) UMBRA_WINDOW_MAP(name, form, doc)
#include "umbra/index_maps.def"

template <typename Map, typename DType, int dimdst, typename... Srcs>
struct Bridge<expr::IndexMapExp<Map, DType, dimdst, Srcs...>> : Parts<IndexMapName<Map>, Bridge<Srcs>...> {
  using E = expr::IndexMapExp<Map, DType, dimdst, Srcs...>;
  static void Gather(const E& e, Gatherer* g) {
    g->AddStructure(e.num_params_);
    for (int k = 0; k < e.num_params_; ++k) g->AddStructure(e.params_[static_cast<std::size_t>(k)]);
    const Gatherer::Inside inside(g);
    std::apply([&](const Srcs&... src) { (Bridge<Srcs>::Gather(src, g), ...); }, e.src_);
  }
  static graph::Value Build(GraphWalk* w) {
    std::vector<graph::Value> params;
    for (index_t count = *w->structure++; count > 0; --count) params.emplace_back(static_cast<double>(*w->structure++));
    std::vector<graph::Value> sources;
    (sources.push_back(w->Inner<Bridge<Srcs>>()), ...);
    if constexpr (sizeof...(Srcs) == 0)
      return w->builder->IndexMap(IndexMapName<Map>::Text(), params, DTypeOf<DType>::value);
    else return graph::IndexMap(IndexMapName<Map>::Text(), sources, params);
  }
};

/// What `dst Saver exp` writes.
template <typename Saver, typename DType, int dim, typename E>
graph::Value BuildAssigned(GraphWalk* walk) {
  walk->builder->SetOpenShape(PartialShape::dynamic(dim));
  graph::Value value = Bridge<E>::Build(walk);
  if constexpr (!std::is_same_v<Saver, sv::saveto>)
    value = ApplyOp<typename Saver::OPType>({walk->Input<DType>(dim), value});
  return graph::Cast(value, DTypeOf<DType>::value);
}

/// What the type of an assignment tells.
struct AssignmentType {
  int rank;  ///< of the destination
  graph::Value (*build)(GraphWalk*);  ///< what is written
};
template <typename Saver, typename DType, int dim, typename E>
inline constexpr AssignmentType kAssignmentType{dim, &BuildAssigned<Saver, DType, dim, E>};

/// The graph of an assignment, with operands as gathered.
std::shared_ptr<const graph::Graph> BuildGraph(const Gathered& g, const AssignmentType& type, std::string name);

}  // namespace umbra::detail

#endif  // UMBRA_BRIDGE_H_

// Operators of elementwise expressions, as functors with `Map` in mshadow's style: all of umbra/ops.def, and the
// user's own by UMBRA_OP; and the reducers.
#ifndef UMBRA_OP_H_
#define UMBRA_OP_H_

#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "umbra/dtype.h"
#include "umbra/kernel_prelude.h"
#include "umbra/prelude/math.h"
#include "umbra/prelude/power.h"
#include "umbra/prelude/reduce.h"
#include "umbra/prelude/special.h"
#include "umbra/prelude/trig.h"

namespace umbra::op {

/// Lanes of a value inside an operator: V is a scalar or one of the prelude's packets. Literals
/// next to a Lane take its element type, so that 0.5 * x is f32 arithmetic where x is f32.
namespace lane {

template <typename V>
struct Lane {
  V v;
  using Elem = simd::Elem<V>;
  Lane() = default;
  explicit Lane(V value) : v(value) {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, V>>>
  Lane(T number) : v(simd::fill<V>(static_cast<Elem>(number))) {}  // NOLINT: literals become lanes
};

/// What a comparison of lanes gives; one of scalars is a condition for `?:`.
template <typename V>
struct Truth {
  simd::Mask<V> m;
  template <typename W = V, typename = std::enable_if_t<simd::kWidth<W> == 1>>
  explicit operator bool() const {
    return m;
  }
};

template <typename T>
struct IsLane : std::false_type {};
template <typename V>
struct IsLane<Lane<V>> : std::true_type {};

/// The Lane among A and B; the other may be a literal.
template <typename A, typename B>
using Common = std::conditional_t<IsLane<A>::value, A, B>;
template <typename A, typename B>
using IfLanes =
    std::enable_if_t<(IsLane<A>::value || IsLane<B>::value) &&
                     (IsLane<A>::value || std::is_arithmetic_v<A>)&&(IsLane<B>::value || std::is_arithmetic_v<B>)>;

#define UMBRA_LANE_BINARY(symbol, name)                         \
  template <typename A, typename B, typename = IfLanes<A, B>>   \
  inline Common<A, B> operator symbol(const A& a, const B& b) { \
    return name(Common<A, B>(a), Common<A, B>(b));              \
  }
#define UMBRA_LANE_COMPARE(symbol, name)                      \
  template <typename V>                                       \
  inline Truth<V> name(const Lane<V>& a, const Lane<V>& b) {  \
    return {a.v symbol b.v};                                  \
  }                                                           \
  template <typename A, typename B, typename = IfLanes<A, B>> \
  inline auto operator symbol(const A& a, const B& b) {       \
    return name(Common<A, B>(a), Common<A, B>(b));            \
  }
template <typename V>
inline Lane<V> plus(const Lane<V>& a, const Lane<V>& b) {
  return Lane<V>(a.v + b.v);
}
template <typename V>
inline Lane<V> minus(const Lane<V>& a, const Lane<V>& b) {
  return Lane<V>(a.v - b.v);
}
template <typename V>
inline Lane<V> mul(const Lane<V>& a, const Lane<V>& b) {
  return Lane<V>(a.v * b.v);
}
template <typename V>
inline Lane<V> div(const Lane<V>& a, const Lane<V>& b) {
  return Lane<V>(simd::div(a.v, b.v));
}
template <typename V>
inline Lane<V> negative(const Lane<V>& a) {
  return Lane<V>(-a.v);
}
UMBRA_LANE_BINARY(+, plus)
UMBRA_LANE_BINARY(-, minus)
UMBRA_LANE_BINARY(*, mul)
UMBRA_LANE_BINARY(/, div)
UMBRA_LANE_COMPARE(<, lt)
UMBRA_LANE_COMPARE(<=, le)
UMBRA_LANE_COMPARE(>, gt)
UMBRA_LANE_COMPARE(>=, ge)
UMBRA_LANE_COMPARE(==, eq)
UMBRA_LANE_COMPARE(!=, ne)
#undef UMBRA_LANE_BINARY
#undef UMBRA_LANE_COMPARE
template <typename V>
inline Lane<V> operator-(const Lane<V>& a) {
  return negative(a);
}

template <typename V>
inline Truth<V> logical_and(const Truth<V>& a, const Truth<V>& b) {
  return {simd::logical_and(a.m, b.m)};
}
template <typename V>
inline Truth<V> logical_or(const Truth<V>& a, const Truth<V>& b) {
  return {simd::logical_or(a.m, b.m)};
}
template <typename V>
inline Truth<V> logical_not(const Truth<V>& a) {
  return {simd::logical_not(a.m)};
}
template <typename V>
inline Truth<V> operator&&(const Truth<V>& a, const Truth<V>& b) {
  return logical_and(a, b);
}
template <typename V>
inline Truth<V> operator||(const Truth<V>& a, const Truth<V>& b) {
  return logical_or(a, b);
}
template <typename V>
inline Truth<V> operator!(const Truth<V>& a) {
  return logical_not(a);
}

template <typename V, typename A, typename B, typename = IfLanes<Lane<V>, A>>
inline Lane<V> select(const Truth<V>& condition, const A& a, const B& b) {
  return Lane<V>(simd::select(condition.m, Lane<V>(a).v, Lane<V>(b).v));
}

// Functions of one to three lanes, next to which there may be literals, of elements for which `takes` holds.
#define UMBRA_LANE_TAKES(name, takes, what) static_assert(takes, "umbra: op::" #name " takes " what)
#define UMBRA_LANE_FUNCTION_1(name, takes, what)    \
  template <typename V>                             \
  inline Lane<V> name(const Lane<V>& a) {           \
    using Element [[maybe_unused]] = simd::Elem<V>; \
    UMBRA_LANE_TAKES(name, takes, what);            \
    return Lane<V>(simd::name(a.v));                \
  }
#define UMBRA_LANE_FUNCTION_2(name, takes, what)              \
  template <typename A, typename B, typename = IfLanes<A, B>> \
  inline Common<A, B> name(const A& a, const B& b) {          \
    using L = Common<A, B>;                                   \
    using Element [[maybe_unused]] = typename L::Elem;        \
    UMBRA_LANE_TAKES(name, takes, what);                      \
    return L(simd::name(L(a).v, L(b).v));                     \
  }
#define UMBRA_LANE_FUNCTION_3(name, takes, what)                                     \
  template <typename A, typename B, typename C, typename = IfLanes<Common<A, B>, C>> \
  inline Common<Common<A, B>, C> name(const A& a, const B& b, const C& c) {          \
    using L = Common<Common<A, B>, C>;                                               \
    using Element [[maybe_unused]] = typename L::Elem;                               \
    UMBRA_LANE_TAKES(name, takes, what);                                             \
    return L(simd::name(L(a).v, L(b).v, L(c).v));                                    \
  }
UMBRA_LANE_FUNCTION_1(abs, true, "numbers")
UMBRA_LANE_FUNCTION_2(maximum, true, "numbers")
UMBRA_LANE_FUNCTION_2(minimum, true, "numbers")
// The table has the others, whose text is the call of a function of their name.
#define UMBRA_LANE_kNumeric(name, arity)
#define UMBRA_LANE_kBool(name, arity)
#define UMBRA_LANE_kAny(name, arity)
#define UMBRA_LANE_kFloat(name, arity) \
  UMBRA_LANE_FUNCTION_##arity(name, std::is_floating_point_v<Element>, "f32 or f64: convert with tcast<float>(...)")
#define UMBRA_LANE_kInteger(name, arity) \
  UMBRA_LANE_FUNCTION_##arity(name, std::is_integral_v<Element>, "integers: convert with tcast<int>(...)")
#define UMBRA_PRIMITIVE(name, arity, dtypes, ...) UMBRA_LANE_##dtypes(name, arity)
#include "umbra/ops.def"
#undef UMBRA_LANE_TAKES
#undef UMBRA_LANE_FUNCTION_1
#undef UMBRA_LANE_FUNCTION_2
#undef UMBRA_LANE_FUNCTION_3
#undef UMBRA_LANE_kNumeric
#undef UMBRA_LANE_kBool
#undef UMBRA_LANE_kAny
#undef UMBRA_LANE_kFloat
#undef UMBRA_LANE_kInteger

}  // namespace lane

namespace detail {

/// A result of an operator's expression as lanes; a comparison becomes 1 or 0.
template <typename V>
inline V Plain(const lane::Lane<V>& a) {
  return a.v;
}
template <typename V>
inline V Plain(const lane::Truth<V>& a) {
  return simd::select(a.m, simd::fill<V>(1), simd::fill<V>(0));
}
template <typename V, typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
inline V Plain(T number) {
  return simd::fill<V>(static_cast<simd::Elem<V>>(number));
}

/// The operands that a list of arguments such as "(a, b)" names.
constexpr int CountOperands(std::string_view arguments) {
  int count = 1;
  for (const char c : arguments) count += c == ',' ? 1 : 0;
  return count;
}

/// The operators that the text of one may call.
inline constexpr std::string_view kTableNames[] = {
#define UMBRA_PRIMITIVE(name, arity, ...) #name,
#define UMBRA_COMPOSITE(name, args, expression, doc) #name,
#include "umbra/ops.def"
    "std", "__builtin_inff"};  // INFINITY

/// What generated code knows nothing of in the text of an operator with arguments `args`, "(a, b)": the first name that
/// is neither one of them nor an operator of umbra/ops.def, the first unsigned literal, or sign of C++; empty if there
/// is none.
constexpr std::string_view UnknownName(std::string_view args, std::string_view text) {
  const auto digit = [](char c) { return '0' <= c && c <= '9'; };
  const auto word = [&](char c) { return digit(c) || c == '_' || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z'); };
  const auto begins_at = [&](std::string_view in, std::size_t at) {
    return word(in[at]) && (at == 0 || !word(in[at - 1]));
  };
  const auto word_at = [&](std::string_view in, std::size_t at) {
    std::size_t end = at;
    while (end < in.size() && word(in[end])) ++end;
    return in.substr(at, end - at);
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' || text[at] == '^' || text[at] == '~') return text.substr(at, 1);
    if (!begins_at(text, at)) continue;
    const std::string_view name = word_at(text, at);
    if (digit(name[0]) || (at > 0 && (text[at - 1] == '.' || text[at - 1] == '\''))) {
      if (name.find_first_of("uU") != std::string_view::npos) return name;
      continue;
    }
    bool known = false;
    for (std::size_t k = 0; k < args.size() && !known; ++k) known = begins_at(args, k) && word_at(args, k) == name;
    for (const std::string_view table : kTableNames) known = known || table == name;
    if (!known) return name;
  }
  return {};
}

/// How many operands OP takes; `given` if it does not say, as mshadow's do not.
template <typename OP, int given, typename = void>
inline constexpr int kOperandsOf = given;
template <typename OP, int given>
inline constexpr int kOperandsOf<OP, given, std::void_t<decltype(OP::kOperands)>> = OP::kOperands;

/// What all operators share: Map on scalars, and on packets where their expression has packets.
template <typename Self>
struct Operator {
  /// The operator on values of one element type.
  template <typename T, typename... Rest>
  static T Map(T first, Rest... rest) {
    return static_cast<T>(Plain<T>(Self::On(lane::Lane<T>(first), lane::Lane<T>(static_cast<T>(rest))...)));
  }
  /// The operator on packets of the prelude.
  template <typename V, typename... Rest, typename S = Self>
  static auto MapPacket(V first, Rest... rest)
      -> decltype(Plain<V>(S::On(lane::Lane<V>(first), lane::Lane<V>(rest)...))) {
    return Plain<V>(S::On(lane::Lane<V>(first), lane::Lane<V>(rest)...));
  }
};

}  // namespace detail

// Spreads (a, b) into parameters of one type.
#define UMBRA_OP_P1(a) [[maybe_unused]] const L& a
#define UMBRA_OP_P2(a, b) UMBRA_OP_P1(a), UMBRA_OP_P1(b)
#define UMBRA_OP_P3(a, b, c) UMBRA_OP_P2(a, b), UMBRA_OP_P1(c)
#define UMBRA_OP_P4(a, b, c, d) UMBRA_OP_P3(a, b, c), UMBRA_OP_P1(d)
#define UMBRA_OP_PICK(a, b, c, d, pick, ...) pick
#define UMBRA_OP_PARAMS(...) \
  (UMBRA_OP_PICK(__VA_ARGS__, UMBRA_OP_P4, UMBRA_OP_P3, UMBRA_OP_P2, UMBRA_OP_P1, )(__VA_ARGS__))

// The text with its macros replaced.
#define UMBRA_OP_TEXT(...) #__VA_ARGS__

/// Defines an elementwise operator once, for every route: UMBRA_OP(maxoftwo, (a, b), a > b ? a :
/// b). One to four arguments; the expression uses + - * / comparisons, ?: or select, literals, and
/// the operators of umbra/ops.def. Literals mean what they mean in C++, so that 1 / 2 is 0, but that generated code
/// goes on with f32 and f64 literals that a `?:` chose in the dtype of the operands; macros are replaced. Other names
/// of C++ are known to eager expressions only: a constant becomes an operand, scalar(c). Written with `?:` it runs
/// eagerly on scalars; with select it has packets there too. Generated code has packets for both.
#define UMBRA_OP(name, args, ...)                                                            \
  struct name : ::umbra::op::detail::Operator<name> {                                        \
    [[maybe_unused]] static constexpr ::std::string_view kName = #name;                      \
    [[maybe_unused]] static constexpr ::std::string_view kArgs = #args;                      \
    [[maybe_unused]] static constexpr ::std::string_view kText = UMBRA_OP_TEXT(__VA_ARGS__); \
    static constexpr int kOperands = ::umbra::op::detail::CountOperands(kArgs);              \
    template <typename L>                                                                    \
    static auto On UMBRA_OP_PARAMS args->decltype(__VA_ARGS__) {                             \
      return __VA_ARGS__;                                                                    \
    }                                                                                        \
  };

namespace lane {
// Conditions of mshadow's style are numbers: 0 is false.
template <typename V>
inline Truth<V> Holds(const Lane<V>& a) {
  return ne(a, Lane<V>(simd::fill<V>(0)));
}
template <typename V>
inline Truth<V> logical_and(const Lane<V>& a, const Lane<V>& b) {
  return Holds(a) && Holds(b);
}
template <typename V>
inline Truth<V> logical_or(const Lane<V>& a, const Lane<V>& b) {
  return Holds(a) || Holds(b);
}
template <typename V>
inline Truth<V> logical_not(const Lane<V>& a) {
  return !Holds(a);
}
template <typename V>
inline Lane<V> select(const Lane<V>& condition, const Lane<V>& a, const Lane<V>& b) {
  return select(Holds(condition), a, b);
}
// The Lane among operands, next to which there are literals.
template <typename... A>
struct LaneAmong {};
template <typename A, typename... Rest>
struct LaneAmong<A, Rest...> : std::conditional_t<IsLane<A>::value, std::enable_if<true, A>, LaneAmong<Rest...>> {};
template <typename... A>
using IfLiterals = std::enable_if_t<!(IsLane<A>::value && ...) && ((IsLane<A>::value || std::is_arithmetic_v<A>)&&...),
                                    typename LaneAmong<A...>::type>;
#define UMBRA_COMPOSITE(name, args, expression, doc)                       \
  template <typename L>                                                    \
  inline auto name UMBRA_OP_PARAMS args->decltype(expression) {            \
    return expression;                                                     \
  }                                                                        \
  template <typename... A, typename L = IfLiterals<A...>>                  \
  inline auto name(const A&... operands)->decltype(name(L(operands)...)) { \
    return name(L(operands)...);                                           \
  }
#include "umbra/ops.def"
}  // namespace lane

#define UMBRA_TABLE_OPERATOR(name, operands_taken)                              \
  struct name : detail::Operator<name> {                                        \
    static constexpr std::string_view kName = #name;                            \
    static constexpr int kOperands = operands_taken;                            \
    template <typename... L>                                                    \
    static auto On(const L&... operands) -> decltype(lane::name(operands...)) { \
      return lane::name(operands...);                                           \
    }                                                                           \
  };
#define UMBRA_PRIMITIVE(name, arity, ...) UMBRA_TABLE_OPERATOR(name, arity)
#define UMBRA_COMPOSITE(name, args, ...) UMBRA_TABLE_OPERATOR(name, detail::CountOperands(#args))
#include "umbra/ops.def"
#undef UMBRA_TABLE_OPERATOR

}  // namespace umbra::op

/// Savers: how an assignment joins the destination and the value.
namespace umbra::sv {
/// a = b.
struct saveto {
  /// Stores `b`, whatever was there.
  template <typename T>
  static void Save(T& a, T b) {
    a = b;
  }
  using OPType = void;
};
/// a = a + b.
struct plusto {
  /// Stores the sum.
  template <typename T>
  static void Save(T& a, T b) {
    a = a + b;
  }
  using OPType = op::plus;
};
/// a = a - b.
struct minusto {
  /// Stores the difference.
  template <typename T>
  static void Save(T& a, T b) {
    a = a - b;
  }
  using OPType = op::minus;
};
/// a = a * b.
struct multo {
  /// Stores the product.
  template <typename T>
  static void Save(T& a, T b) {
    a = a * b;
  }
  using OPType = op::mul;
};
/// a = a / b; an integer divided by 0 is 0.
struct divto {
  /// Stores the quotient.
  template <typename T>
  static void Save(T& a, T b) {
    a = simd::div(a, b);
  }
  using OPType = op::div;
};
}  // namespace umbra::sv

/// Reducers: how the elements of a reduction are joined.
namespace umbra::red {
/// Ends of the range of an element type, which reducers begin with, as mshadow's.
namespace limits {
/// The largest finite value.
template <typename DType>
inline DType MaxValue() {
  if constexpr (std::is_same_v<DType, half_t>) return half_t::FromBits(0x7bff);
  else if constexpr (std::is_same_v<DType, bf16_t>) return bf16_t::FromBits(0x7f7f);
  else return std::numeric_limits<DType>::max();
}
/// The least finite value.
template <typename DType>
inline DType MinValue() {
  if constexpr (std::is_integral_v<DType>) return std::numeric_limits<DType>::min();
  else return DType(-MaxValue<DType>());
}
/// Infinity; of an integer MaxValue.
template <typename DType>
inline DType PosInfValue() {
  if constexpr (std::is_integral_v<DType>) return MaxValue<DType>();
  else return DType(__builtin_inf());
}
/// -infinity; of an integer MinValue.
template <typename DType>
inline DType NegInfValue() {
  if constexpr (std::is_integral_v<DType>) return MinValue<DType>();
  else return DType(-PosInfValue<DType>());
}
}  // namespace limits

/// The sum; of nothing 0.
struct sum {
  static constexpr std::string_view kName = "sum";  ///< in graphs and messages
  /// Joins `b` to `a`.
  template <typename T>
  static void Reduce(T& a, T b) {
    a = a + b;
  }
  /// Makes `a` what it is before the first element.
  template <typename T>
  static void SetInitValue(T& a) {
    a = T(0);
  }
};
/// The largest, NaN if one is; of nothing -infinity or the smallest integer.
struct maximum {
  static constexpr std::string_view kName = "maximum";  ///< in graphs and messages
  /// Joins `b` to `a`.
  template <typename T>
  static void Reduce(T& a, T b) {
    a = simd::maximum(b, a);
  }
  /// Makes `a` what it is before the first element.
  template <typename T>
  static void SetInitValue(T& a) {
    a = limits::NegInfValue<T>();
  }
};
/// The smallest, NaN if one is; of nothing infinity or the largest integer.
struct minimum {
  static constexpr std::string_view kName = "minimum";  ///< in graphs and messages
  /// Joins `b` to `a`.
  template <typename T>
  static void Reduce(T& a, T b) {
    a = simd::minimum(b, a);
  }
  /// Makes `a` what it is before the first element.
  template <typename T>
  static void SetInitValue(T& a) {
    a = limits::PosInfValue<T>();
  }
};
/// The product; of nothing 1.
struct product {
  static constexpr std::string_view kName = "product";  ///< in graphs and messages
  /// Joins `b` to `a`.
  template <typename T>
  static void Reduce(T& a, T b) {
    a = a * b;
  }
  /// Makes `a` what it is before the first element.
  template <typename T>
  static void SetInitValue(T& a) {
    a = T(1);
  }
};

/// What a reducer that is made of others derives from. Its Value(j) says what it gives of the elements that `j` has,
/// whether they are numbers or symbols: j.Join<R>() joins them by R, j.JoinPositions<R>(f) what f(x, i) makes of every
/// element x at position i; j.Count() is how many there are, j.Last() the last position, 0 of none, j.HasNaN() whether
/// one may be NaN; j.Over(a, count), j.Equal and j.Differ, j.Or, j.If(condition, i, k) and j.Least of two positions
/// compute with them.
struct Made {};
/// Is Reducer made of others?
template <typename Reducer>
inline constexpr bool kIsMade = std::is_base_of_v<Made, Reducer>;

/// The sum over the number of elements; of integers it truncates.
struct mean : Made {
  static constexpr std::string_view kName = "mean";  ///< in graphs and messages
  /// See Made.
  template <typename J>
  static auto Value(const J& j) {
    const auto total = j.template Join<sum>();
    return j.Over(total, j.Count());
  }
};
/// The position along the axis of the first element that is what Extreme joins all to, or of the first NaN; 0 of none.
template <typename Extreme>
struct PositionOf : Made {
  /// See Made.
  template <typename J>
  static auto Value(const J& j) {
    const auto extreme = j.template Join<Extreme>();
    const auto last = j.Last();
    const auto first = j.template JoinPositions<minimum>([&](const auto& x, const auto& i) {
      auto hit = j.Equal(x, extreme);
      if (j.HasNaN()) hit = j.Or(hit, j.Differ(x, x));
      return j.If(hit, i, last);
    });
    return j.Least(first, last);
  }
};
/// The position along the axis of the first largest element, or of the first NaN; 0 of none.
struct argmax : PositionOf<maximum> {
  static constexpr std::string_view kName = "argmax";  ///< in graphs and messages
};
/// The position along the axis of the first smallest element, or of the first NaN; 0 of none.
struct argmin : PositionOf<minimum> {
  static constexpr std::string_view kName = "argmin";  ///< in graphs and messages
};

namespace detail {
template <typename Extreme>
std::true_type GivesPosition(const PositionOf<Extreme>*);
std::false_type GivesPosition(const void*);
}  // namespace detail
/// Does Reducer give a position rather than a value?
template <typename Reducer>
inline constexpr bool kGivesPosition = decltype(detail::GivesPosition(static_cast<const Reducer*>(nullptr)))::value;
/// What a reduction by Reducer begins with: what its SetInitValue makes of a T.
template <typename Reducer, typename T>
inline T InitialOf() {
  T value{};
  Reducer::SetInitValue(value);
  return value;
}
}  // namespace umbra::red

#endif  // UMBRA_OP_H_

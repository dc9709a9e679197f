#include "tools/umbra-extract/numbers.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "umbra/half.h"

namespace umbra::extract {

using clang::QualType;
using graph::Op;
using graph::Operand;
using Kind = Number::Kind;

namespace {

// umbra::half_t and bf16_t are specialisations of one template.
std::optional<DType> HalfType(QualType type) {
  const auto* record = llvm::dyn_cast_or_null<clang::ClassTemplateSpecializationDecl>(type->getAsCXXRecordDecl());
  if (record == nullptr || record->getName() != "Half16") return std::nullopt;
  const bool ieee = record->getTemplateArgs()[0].getAsIntegral() == static_cast<int>(detail::Format16::kIeee);
  return ieee ? DType::kFloat16 : DType::kBFloat16;
}

std::optional<DType> FindType(const clang::ASTContext& context, QualType type) {
  type = type.getCanonicalType().getUnqualifiedType();
  if (const auto half = HalfType(type)) return half;
  if (const auto* enumeration = type->getAs<clang::EnumType>()) type = enumeration->getDecl()->getIntegerType();
  if (type->isBooleanType()) return DType::kBool;
  if (type->isSpecificBuiltinType(clang::BuiltinType::Float)) return DType::kFloat32;
  if (type->isSpecificBuiltinType(clang::BuiltinType::Double)) return DType::kFloat64;
  if (!type->isIntegerType()) return std::nullopt;
  const bool is_signed = type->isSignedIntegerType();
  switch (context.getTypeSize(type)) {
    case 8: return is_signed ? DType::kInt8 : DType::kUInt8;
    case 16:
      if (is_signed) return DType::kInt16;
      break;
    case 32:
      if (is_signed) return DType::kInt32;
      break;
    case 64:
      if (is_signed) return DType::kInt64;
      break;
  }
  return std::nullopt;
}

}  // namespace

Number Numbers::Integer(std::int64_t value, QualType type) const {
  Number number;
  number.type = type.getCanonicalType().getUnqualifiedType();
  const auto bits = number.type->isBooleanType() ? 1U : static_cast<unsigned>(context_.getTypeSize(number.type));
  if (bits == 1) value = value != 0;
  else if (bits < 64) {
    const auto low = static_cast<std::uint64_t>(value) << (64 - bits);
    value = number.type->isSignedIntegerOrEnumerationType() ? static_cast<std::int64_t>(low) >> (64 - bits)
                                                            : static_cast<std::int64_t>(low >> (64 - bits));
  }
  number.integer = value;
  return number;
}

Number Numbers::Real(double value, QualType type) const {
  Number number;
  number.type = type.getCanonicalType().getUnqualifiedType();
  number.kind = Kind::kReal;
  const auto dtype = FindType(context_, number.type);
  number.real =
      dtype == DType::kFloat64 ? value
      : dtype && IsHalf(*dtype)
          ? SwitchDType(*dtype, [&](auto tag) { return static_cast<double>(ConvertTo<decltype(tag)>(value)); })
          : static_cast<double>(static_cast<float>(value));
  return number;
}

Number Numbers::Extent(const Dimension& extent) const {
  if (extent.is_static()) return Integer(static_cast<std::int64_t>(extent), context_.LongTy);
  Number number;
  number.type = context_.LongTy;
  number.kind = Kind::kExtent;
  number.extent = extent;
  return number;
}

Number Numbers::Node(int node, QualType type) const {
  Number number;
  number.type = type.getCanonicalType().getUnqualifiedType();
  number.kind = Kind::kNode;
  number.node = node;
  return number;
}

std::optional<Number> Numbers::Of(const clang::APValue& value, QualType type) const {
  if (value.isInt()) return Integer(value.getInt().getExtValue(), type);
  if (!value.isFloat()) return std::nullopt;
  llvm::APFloat real = value.getFloat();
  bool inexact = false;
  real.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return Real(real.convertToDouble(), type);
}

DType Numbers::TypeOf(QualType type) const {
  if (const auto found = FindType(context_, type)) return *found;
  throw Unsupported(
      "a value of type '" + type.getAsString() + "' is no element of a tensor",
      type->isUnsignedIntegerType()
          ? "kernels have no unsigned numbers but uint8_t: compute with int or std::int64_t, and without suffix u"
          : "element types are float, double, half_t, bf16_t, signed integers, uint8_t and bool");
}

bool Numbers::IsNumber(QualType type) const {
  type = type.getNonReferenceType();
  return type->isArithmeticType() || type->isEnumeralType() || HalfType(type.getCanonicalType()).has_value();
}

QualType Numbers::ComputeOf(QualType type) const {
  switch (TypeOf(type)) {
    case DType::kFloat64: return context_.DoubleTy;
    case DType::kInt64: return context_.LongTy;
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16: return context_.FloatTy;
    default: return context_.IntTy;
  }
}

int Numbers::NodeOf(const Number& number) const {
  graph::Graph& graph = composer_.graph();
  if (number.kind == Kind::kNode) return number.node;
  const DType dtype = TypeOf(number.type);
  if (number.kind == Kind::kExtent) return graph.Cast(graph.ExtentOf(number.extent), dtype);
  if (number.kind == Kind::kReal) return composer_.Cast(Operand::Literal(number.real), dtype).node;
  const auto value = static_cast<double>(number.integer);
  if (std::fabs(value) > 0x1p53)
    throw Unsupported("the number " + std::to_string(number.integer) + " has more digits than a kernel's constant",
                      "constants are exact up to 2^53: compute it, or pass it as a parameter");
  if (dtype != DType::kBool) return composer_.Cast(Operand::Literal(value), dtype).node;
  const int one = graph.Constant(1, DType::kInt32);
  return graph.Map(number.integer != 0 ? Op::eq : Op::ne, {one, one});
}

Number Numbers::Convert(const Number& number, QualType type) const {
  type = type.getNonReferenceType().getCanonicalType().getUnqualifiedType();
  if (type == number.type) return number;
  if (number.known() && (type->isIntegerType() || type->isEnumeralType())) {
    if (number.kind == Kind::kInteger) return Integer(number.integer, type);
    if (type->isBooleanType()) return Integer(number.real != 0, type);
    return Integer(ConvertTo<std::int64_t>(number.real), type);
  }
  if (number.known()) {
    if (number.kind == Kind::kReal) return Real(number.real, type);
    const auto rounded = [&](auto integer) {  // once
      return type->isSpecificBuiltinType(clang::BuiltinType::Float) ? static_cast<double>(static_cast<float>(integer))
                                                                    : static_cast<double>(integer);
    };
    const bool natural = number.type->isUnsignedIntegerOrEnumerationType();
    return Real(natural ? rounded(static_cast<std::uint64_t>(number.integer)) : rounded(number.integer), type);
  }
  const DType to = TypeOf(type);
  if (number.kind == Kind::kExtent && to == DType::kInt64) {
    Number same = number;
    same.type = type;
    return same;
  }
  graph::Graph& graph = composer_.graph();
  const int node = NodeOf(number);
  if (to != DType::kBool) return Node(graph.Cast(node, to), type);
  return Node(composer_.Map(Op::ne, {Operand::Node(node), Operand::Literal(0)}).node, type);
}

int Numbers::Apply(Op op, const std::vector<int>& nodes) const {
  std::vector<Operand> operands;
  for (int node : nodes) operands.push_back(Operand::Node(node));
  return composer_.Map(op, operands).node;
}

namespace {

template <typename T>
std::optional<T> Fold(clang::BinaryOperatorKind kind, T a, T b) {
  switch (kind) {
    case clang::BO_Add: return a + b;
    case clang::BO_Sub: return a - b;
    case clang::BO_Mul: return a * b;
    case clang::BO_Div:
      if (std::is_floating_point_v<T> || b != 0) return a / b;
      break;
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (kind) {
      case clang::BO_Rem:
        if (b != 0) return a % b;
        break;
      case clang::BO_And: return a & b;
      case clang::BO_Or: return a | b;
      case clang::BO_Xor: return a ^ b;
      case clang::BO_Shl:
        if (b < 64) return static_cast<T>(static_cast<std::uint64_t>(a) << b);
        break;
      case clang::BO_Shr:
        if (b < 64) return a >> b;
        break;
      default: break;
    }
  }
  return std::nullopt;
}

template <typename T>
std::optional<bool> Compare(clang::BinaryOperatorKind kind, T a, T b) {
  switch (kind) {
    case clang::BO_LT: return a < b;
    case clang::BO_LE: return a <= b;
    case clang::BO_GT: return a > b;
    case clang::BO_GE: return a >= b;
    case clang::BO_EQ: return a == b;
    case clang::BO_NE: return a != b;
    default: return std::nullopt;
  }
}

}  // namespace

Number Numbers::Binary(clang::BinaryOperatorKind kind, const Number& a, const Number& b, QualType type) const {
  if (a.known() && b.known()) {
    if (a.kind == Kind::kInteger && b.kind == Kind::kInteger) {
      const auto x = static_cast<std::uint64_t>(a.integer), y = static_cast<std::uint64_t>(b.integer);
      const bool natural = a.type->isUnsignedIntegerOrEnumerationType();
      if (const auto truth = natural ? Compare(kind, x, y) : Compare(kind, a.integer, b.integer))
        return Integer(*truth, type);
      // Wraps around as -fwrapv does; the smallest number is its own opposite.
      const bool wraps = kind == clang::BO_Add || kind == clang::BO_Sub || kind == clang::BO_Mul;
      if (!natural && b.integer == -1 && kind == clang::BO_Div) return Unary(clang::UO_Minus, a, type);
      if (!natural && b.integer == -1 && kind == clang::BO_Rem) return Integer(0, type);
      if (b.integer < 0 && (kind == clang::BO_Shl || kind == clang::BO_Shr))
        throw Unsupported("a shift by a negative number", "shift the other way");
      if (wraps || natural) {
        if (const auto value = Fold(kind, x, y)) return Integer(static_cast<std::int64_t>(*value), type);
      } else if (const auto value = Fold(kind, a.integer, b.integer)) {
        return Integer(*value, type);
      }
    } else {
      const double x = a.kind == Kind::kReal ? a.real : static_cast<double>(a.integer);
      const double y = b.kind == Kind::kReal ? b.real : static_cast<double>(b.integer);
      if (const auto truth = Compare(kind, x, y)) return Integer(*truth, type);
      // A double holds the exact result of + - * of floats, and rounds their quotient harmlessly.
      if (const auto value = Fold(kind, x, y)) return Real(*value, type);
    }
  }
  if (a.kind == Kind::kExtent && b.kind == Kind::kExtent && composer_.graph().SameDimension(a.extent, b.extent))
    if (const auto truth = Compare(kind, 0, 0)) return Integer(*truth, type);
  static const std::map<clang::BinaryOperatorKind, Op> kOps = {
      {clang::BO_Add, Op::plus},    {clang::BO_Sub, Op::minus},      {clang::BO_Mul, Op::mul},
      {clang::BO_Div, Op::div},     {clang::BO_LT, Op::lt},          {clang::BO_LE, Op::le},
      {clang::BO_GT, Op::gt},       {clang::BO_GE, Op::ge},          {clang::BO_EQ, Op::eq},
      {clang::BO_NE, Op::ne},       {clang::BO_And, Op::bit_and},    {clang::BO_Or, Op::bit_or},
      {clang::BO_Xor, Op::bit_xor}, {clang::BO_Shl, Op::shift_left}, {clang::BO_Shr, Op::shift_right}};
  const bool shift = kind == clang::BO_Shl || kind == clang::BO_Shr;
  const int x = NodeOf(a), y = NodeOf(shift ? Convert(b, a.type) : b);
  if (kind == clang::BO_Rem) return Node(Apply(Op::minus, {x, Apply(Op::mul, {Apply(Op::div, {x, y}), y})}), type);
  const auto op = kOps.find(kind);
  if (op == kOps.end())
    throw Unsupported("'" + clang::BinaryOperator::getOpcodeStr(kind).str() +
                          "' of numbers that are not known when the kernel is generated",
                      "kernels compute with + - * / %, bits and comparisons");
  return Node(Apply(op->second, {x, y}), type);
}

Number Numbers::Unary(clang::UnaryOperatorKind kind, const Number& a, QualType type) const {
  switch (kind) {
    case clang::UO_Plus: return Convert(a, type);
    case clang::UO_Minus:
      if (a.kind == Kind::kReal) return Real(-a.real, type);
      if (a.kind == Kind::kInteger)
        return Integer(static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a.integer)), type);
      return Node(Apply(Op::negative, {NodeOf(a)}), type);
    case clang::UO_LNot:
      if (a.known()) return Integer(a.kind == Kind::kReal ? a.real == 0 : a.integer == 0, type);
      return Node(Apply(Op::logical_not, {NodeOf(a)}), type);
    case clang::UO_Not:
      if (a.kind == Kind::kInteger) return Integer(~a.integer, type);
      return Node(Apply(Op::bit_xor, {NodeOf(a), NodeOf(Integer(-1, type))}), type);
    default:
      throw Unsupported("'" + clang::UnaryOperator::getOpcodeStr(kind).str() +
                            "' of a number that is not known when the kernel is generated",
                        "kernels compute with + - * / %, bits and comparisons");
  }
}

Number Numbers::Select(const Condition& condition, const Number& a, const Number& b) const {
  if (condition.known()) return condition.never ? b : a;
  return Node(Select(condition, NodeOf(a), NodeOf(b), TypeOf(a.type)), a.type);
}

int Numbers::Select(const Condition& condition, int a, int b, DType dtype) const {
  const bool single = condition.all.size() == 1;
  if (single && condition.all[0].negated) std::swap(a, b);
  const int where = single ? condition.all[0].node : NodeOf(condition);
  // A narrow type is chosen in what it is computed in.
  return composer_.graph().Cast(Apply(Op::select, {where, a, b}), dtype);
}

Condition Numbers::Truth(const Number& number) const {
  const Number truth = Convert(number, context_.BoolTy);
  if (truth.known()) return {truth.integer == 0, {}};
  const int node = NodeOf(truth);
  const graph::Node& made = composer_.graph().node(node);
  if (made.kind == graph::Node::Kind::kMap && made.op == Op::logical_not) return {false, {{made.inputs[0], true}}};
  return {false, {{node, false}}};
}

int Numbers::NodeOf(const Condition& condition) const {
  int joined = -1;
  for (const Condition::Term& term : condition.all) {
    const int node = term.negated ? Apply(Op::logical_not, {term.node}) : term.node;
    joined = joined < 0 ? node : Apply(Op::logical_and, {joined, node});
  }
  return joined;
}

Condition Numbers::Not(Condition a) const {
  if (a.known()) return {!a.never, {}};
  if (a.all.size() > 1) return {false, {{NodeOf(a), true}}};
  a.all[0].negated = !a.all[0].negated;
  return a;
}

Condition Numbers::And(const Condition& a, const Condition& b) const {
  Condition both = a;
  both.never = a.never || b.never;
  for (const Condition::Term& term : b.all)
    if (std::find(both.all.begin(), both.all.end(), term) == both.all.end()) both.all.push_back(term);
  if (both.never) both.all.clear();
  return both;
}

Condition Numbers::Or(const Condition& a, const Condition& b) const { return Not(And(Not(a), Not(b))); }

namespace {

/// Functions of C whose text over other operators is their meaning.
constexpr graph::Composite kComposed[] = {
    {"log10", "(a)", "log2(a) * 0.30102999566398120", ""},
    {"hypot", "(a, b)",
     "abs(a) == inf || abs(b) == inf ? inf : abs(a) == abs(b) ? abs(a) * 1.4142135623730951 : maximum(abs(a), abs(b)) * "
     "sqrt(1 + minimum(abs(a), abs(b)) / maximum(abs(a), abs(b)) * (minimum(abs(a), abs(b)) / maximum(abs(a), abs(b))))",
     ""},
    {"fdim", "(a, b)", "a <= b ? 0 : a - b", ""},
    {"signbit", "(a)", "copysign(1, a) < 0", ""},
    {"scalbn", "(a, b)", "ldexp(a, b)", ""},
    {"scalbln", "(a, b)", "ldexp(a, b)", ""},
    {"ilogb", "(a)", "a != a ? -inf : logb(a)", ""},
    // What is written through the last operand is called *name.
    {"frexp", "(a)", "a == 0 || a - a != 0 ? a : ldexp(a, -1 - logb(a))", ""},
    {"*frexp", "(a)", "a == 0 || a - a != 0 ? 0 : 1 + logb(a)", ""},
    {"modf", "(a)", "copysign(a == trunc(a) ? 0 : a - trunc(a), a)", ""},
    {"*modf", "(a)", "trunc(a)", ""},
    // A NaN gives way to a number.
    {"fmax", "(a, b)", "a != a ? b : b != b ? a : maximum(a, b)", ""},
    {"fmin", "(a, b)", "a != a ? b : b != b ? a : minimum(a, b)", ""},
    {"isnan", "(a)", "a != a", ""},
    {"isinf", "(a)", "a == a && a - a != 0", ""},
    {"isfinite", "(a)", "a - a == 0", ""},
    {"isgreater", "(a, b)", "a > b", ""},
    {"isgreaterequal", "(a, b)", "a >= b", ""},
    {"isless", "(a, b)", "a < b", ""},
    {"islessequal", "(a, b)", "a <= b", ""},
    {"islessgreater", "(a, b)", "a < b || a > b", ""},
    {"isunordered", "(a, b)", "a != a || b != b", ""}};

/// The operators of the table that <cmath> has, too, by the names that it has for them.
std::optional<Op> OpOfC(std::string_view name) {
  static constexpr std::string_view kSame[] = {
      "sqrt",   "floor",  "ceil", "trunc", "round",    "rint",      "exp",   "expm1", "log",      "log1p",
      "tanh",   "sin",    "cos",  "tan",   "asin",     "acos",      "atan",  "atan2", "exp2",     "log2",
      "pow",    "fmod",   "cbrt", "sinh",  "cosh",     "erf",       "erfc",  "asinh", "acosh",    "atanh",
      "lgamma", "tgamma", "abs",  "fma",   "copysign", "remainder", "ldexp", "logb",  "nextafter"};
  static const std::map<std::string_view, std::string_view> kOurs = {
      {"fabs", "abs"},     {"labs", "abs"},      {"llabs", "abs"},  {"nearbyint", "rint"},
      {"lround", "round"}, {"llround", "round"}, {"lrint", "rint"}, {"llrint", "rint"}};
  if (const auto ours = kOurs.find(name); ours != kOurs.end()) name = ours->second;
  return std::find(std::begin(kSame), std::end(kSame), name) != std::end(kSame) ? graph::FindOp(name) : std::nullopt;
}

}  // namespace

std::optional<Number> Numbers::Function(std::string_view name, const std::vector<Number>& operands,
                                        QualType type) const {
  const std::size_t count = operands.size();
  const auto less = [&](const Number& a, const Number& b) {
    return Truth(Binary(clang::BO_LT, a, b, context_.BoolTy));
  };
  // As <algorithm> has them.
  if ((name == "max" || name == "min") && count > 0) {
    Number best = operands[0];
    for (std::size_t k = 1; k < count; ++k)
      best = Select(name == "max" ? less(best, operands[k]) : less(operands[k], best), operands[k], best);
    return best;
  }
  if (name == "clamp" && count == 3)
    return Select(less(operands[0], operands[1]), operands[1],
                  Select(less(operands[2], operands[0]), operands[2], operands[0]));

  if (name.substr(0, 10) == "__builtin_") name.remove_prefix(10);
  if (name == "hypot" && count == 3)
    return Function(name, {*Function(name, {operands[0], operands[1]}, type), operands[2]}, type);
  const graph::Composite* composed =
      std::find_if(std::begin(kComposed), std::end(kComposed), [&](const auto& c) { return c.name == name; });
  std::optional<Op> op = OpOfC(name);
  if (!op && composed == std::end(kComposed)) {
    // C's names of the float variants: expf.
    if (name.size() < 2 || name.back() != 'f') return std::nullopt;
    return Function(name.substr(0, name.size() - 1), operands, type);
  }
  std::vector<Number> given;
  for (const Number& operand : operands) {
    // C computes with integers as doubles.
    const bool whole = operand.type->isIntegerType() && op != Op::abs;
    given.push_back(Convert(operand, type->isRealFloatingType() ? type : whole ? context_.DoubleTy : operand.type));
  }
  // Functions that are exact, or rounded once, are the same wherever they are computed.
  static const std::map<Op, double (*)(double)> kExact = {
      {Op::abs, [](double x) { return std::fabs(x); }},    {Op::floor, [](double x) { return std::floor(x); }},
      {Op::ceil, [](double x) { return std::ceil(x); }},   {Op::trunc, [](double x) { return std::trunc(x); }},
      {Op::round, [](double x) { return std::round(x); }}, {Op::rint, [](double x) { return std::rint(x); }},
      {Op::sqrt, [](double x) { return std::sqrt(x); }}};
  if (const auto exact = kExact.find(op.value_or(Op::plus)); exact != kExact.end() && count == 1 && given[0].known()) {
    const Number& x = given[0];
    return Convert(x.kind == Kind::kReal ? Real(exact->second(x.real), x.type) : Integer(std::abs(x.integer), x.type),
                   type);
  }
  std::vector<Operand> nodes;
  for (const Number& number : given) nodes.push_back(Operand::Node(NodeOf(number)));
  return Node(composer_.Cast(op ? composer_.Map(*op, nodes) : composer_.Apply(*composed, nodes), TypeOf(type)).node,
              type);
}

}  // namespace umbra::extract

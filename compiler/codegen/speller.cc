#include "compiler/codegen/speller.h"

#include <fmt/format.h>

#include "umbra/error.h"

namespace umbra::codegen {

namespace {

// The table's text of an operator with its operands put in.
Expr Substitute(graph::Op op, DType type, const std::vector<Expr>& args) {
  std::string_view pattern = graph::Info(op).text;
  if (op == graph::Op::div && IsFloat(type)) pattern = "{0} / {1}";
  const bool call = pattern.back() == ')';
  std::string text;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '{') {
      text += pattern[i];
      continue;
    }
    const Expr& arg = args[static_cast<std::size_t>(pattern[i + 1] - '0')];
    text += call || arg.atomic ? arg.text : "(" + arg.text + ")";
    i += 2;
  }
  return {text, call};
}

bool IsInfix(graph::Op op, DType type) {
  return graph::Info(op).text.back() != ')' || (op == graph::Op::div && IsFloat(type));
}

std::string Parenthesised(const Expr& e) { return e.atomic ? e.text : "(" + e.text + ")"; }

}  // namespace

std::string ScalarType(DType type) {
  switch (type) {
    case DType::kFloat32: return "float";
    case DType::kFloat64: return "double";
    case DType::kInt32: return "int";
    case DType::kBool: return "bool";
    case DType::kInt64: return "long long";
    default: return std::string(Name(type));
  }
}

std::string ElementType(DType type) { return ScalarType(type == DType::kBool ? DType::kUInt8 : type); }

Expr SpellScalarMap(graph::Op op, DType type, const std::vector<Expr>& args) { return Substitute(op, type, args); }

Expr SpellScalarCast(DType from, DType to, const Expr& value) {
  return Speller(Target::kPlain, 1).Cast(from, to, value);
}

std::string Speller::Type(DType type) const {
  if (width_ == 1) return ScalarType(type);
  if (type == DType::kBool) return "auto";
  return fmt::format("{}{}", Name(type), suffix_);
}

Expr Speller::Fill(DType type, const std::string& scalar) const {
  if (width_ == 1 || type == DType::kBool) return {scalar};
  return {fmt::format("fill<{}>({})", Type(type), scalar)};
}

Expr Speller::AsBytes(const Expr& condition) const {
  return width_ == 1 ? condition : Cast(DType::kBool, DType::kUInt8, condition);
}

Expr Speller::FromBytes(const Expr& bytes) { return {bytes.text + " != 0", false}; }

Expr Speller::Load(DType type, const std::string& address) const {
  if (type == DType::kBool) return FromBytes(Load(DType::kUInt8, address));
  if (width_ > 1) return {fmt::format("load<{}>({})", Type(type), address)};
  // p + i + j reads better as p[i + j].
  const std::size_t plus = address.find(" + ");
  if (plus == std::string::npos) return {fmt::format("{}[0]", address)};
  return {fmt::format("{}[{}]", address.substr(0, plus), address.substr(plus + 3))};
}

Expr Speller::LoadHead(DType type, const std::string& address, const std::string& lanes) const {
  if (type == DType::kBool) return FromBytes(LoadHead(DType::kUInt8, address, lanes));
  return {fmt::format("load_head<{}>({}, {})", Type(type), address, lanes)};
}

Expr Speller::Gather(DType type, const std::string& address, const std::string& stride) const {
  if (width_ == 1) return Load(type, address);
  if (type == DType::kBool) return FromBytes(Gather(DType::kUInt8, address, stride));
  return {fmt::format("gather<{}>({}, {})", Type(type), address, stride)};
}

Expr Speller::GatherHead(DType type, const std::string& address, const std::string& stride,
                         const std::string& lanes) const {
  if (type == DType::kBool) return FromBytes(GatherHead(DType::kUInt8, address, stride, lanes));
  return {fmt::format("gather_head<{}>({}, {}, {})", Type(type), address, stride, lanes)};
}

std::string Speller::Store(DType type, const std::string& address, const Expr& value) const {
  if (type == DType::kBool) return Store(DType::kUInt8, address, AsBytes(value));
  if (width_ == 1) return fmt::format("{} = {}", Load(type, address).text, value.text);
  return fmt::format("store({}, {})", address, value.text);
}

std::string Speller::StoreHead(DType type, const std::string& address, const Expr& value,
                               const std::string& lanes) const {
  if (type == DType::kBool) return StoreHead(DType::kUInt8, address, AsBytes(value), lanes);
  return fmt::format("store_head({}, {}, {})", address, value.text, lanes);
}

std::string Speller::Stream(DType type, const std::string& address, const Expr& value) const {
  if (width_ == 1) return Store(type, address, value);
  if (type == DType::kBool) return Stream(DType::kUInt8, address, AsBytes(value));
  return fmt::format("stream({}, {})", address, value.text);
}

std::string Speller::Scatter(DType type, const std::string& address, const std::string& stride,
                             const Expr& value) const {
  if (width_ == 1) return Store(type, address, value);
  return fmt::format("scatter({}, {}, {})", address, stride, (type == DType::kBool ? AsBytes(value) : value).text);
}

std::string Speller::ScatterHead(DType type, const std::string& address, const std::string& stride, const Expr& value,
                                 const std::string& lanes) const {
  return fmt::format("scatter_head({}, {}, {}, {})", address, stride,
                     (type == DType::kBool ? AsBytes(value) : value).text, lanes);
}

Expr Speller::Map(graph::Op op, DType type, const std::vector<Expr>& args, const std::vector<bool>& literal) const {
  if (width_ == 1) return Substitute(op, type, args);
  if (op == graph::Op::div && !IsFloat(type) && literal[1] && !literal[0])
    return {fmt::format("div_by({}, {})", args[0].text, args[1].text)};
  // The language spreads a scalar next to a packet; named operations want packets throughout.
  bool packet_operand = false;
  for (std::size_t k = 0; k < args.size(); ++k) packet_operand = packet_operand || !literal[k];
  std::vector<Expr> spread = args;
  for (std::size_t k = 0; k < args.size(); ++k)
    if (literal[k] && !(IsInfix(op, type) && packet_operand)) spread[k] = Fill(type, args[k].text);
  return Substitute(op, type, spread);
}

Expr Speller::AddProduct(DType, const Expr& total, const Expr& a, const Expr& b) const {
  return {fmt::format("add_product({}, {}, {})", total.text, a.text, b.text)};
}

Expr Speller::Cast(DType from, DType to, const Expr& value) const {
  if (from == DType::kBool) return {fmt::format("cast_mask<{}>({})", Type(to), value.text)};
  if (to == DType::kBool) return {fmt::format("{} != 0", Parenthesised(value)), false};
  const char* form = IsHalf(from) ? "widen<{}>({})" : IsHalf(to) ? "narrow<{}>({})" : "cast<{}>({})";
  return {fmt::format(fmt::runtime(form), Type(to), value.text)};
}

std::unique_ptr<Speller> MakeSpeller(Spelling spelling, Target target, int width) {
  if (spelling == Spelling::kIntrinsics && width > 1) return MakeIntrinsicSpeller(target, width);
  return std::make_unique<Speller>(target, width);
}

}  // namespace umbra::codegen

#include "compiler/graph/op.h"

#include <array>

namespace umbra::graph {

namespace {

constexpr auto kNumeric = OpTypes::kNumeric;
constexpr auto kFloat = OpTypes::kFloat;
constexpr auto kInteger = OpTypes::kInteger;
constexpr auto kAny = OpTypes::kAny;

// The table says kBool both for operands and for results.
struct BoolTag {
  constexpr operator OpTypes() const { return OpTypes::kBool; }  // NOLINT: a tag of the table
  constexpr operator OpResult() const { return OpResult::kBool; }  // NOLINT: a tag of the table
};
constexpr BoolTag kBool;
constexpr auto kSame = OpResult::kSame;

constexpr OpInfo kOps[] = {
#define UMBRA_PRIMITIVE(name, arity, dtypes, result, text, header, cost, doc) \
  {#name, arity, dtypes, result, text, #header, cost, doc},
#define UMBRA_DRAW(name, function, type, result, cost, doc) \
  {#name, 2, OpTypes::kInt64, OpResult::result, #function "<" #type ">({0}, {1})", "random", cost, doc},
#include "umbra/ops.def"
};

constexpr Composite kComposites[] = {
#define UMBRA_COMPOSITE(name, args, expression, doc) {#name, #args, #expression, doc},
#include "umbra/ops.def"
};

constexpr std::array<std::string_view, 4> kReducers = {"sum", "maximum", "minimum", "product"};

}  // namespace

DType ResultType(const OpInfo& info, DType operands) {
  switch (info.result) {
    case OpResult::kSame: return operands;
    case OpResult::kBool: return DType::kBool;
    case OpResult::kFloat32: return DType::kFloat32;
    case OpResult::kFloat64: return DType::kFloat64;
  }
  return operands;
}

const OpInfo& Info(Op op) { return kOps[static_cast<std::size_t>(op)]; }

std::optional<Op> FindOp(std::string_view name) {
  for (std::size_t k = 0; k < std::size(kOps); ++k)
    if (kOps[k].name == name) return static_cast<Op>(k);
  return std::nullopt;
}

const Composite* FindComposite(std::string_view name) {
  for (const Composite& composite : kComposites)
    if (composite.name == name) return &composite;
  return nullptr;
}

bool Accepts(OpTypes types, DType dtype) {
  switch (types) {
    case OpTypes::kNumeric: return dtype != DType::kBool;
    case OpTypes::kFloat: return IsFloat(dtype);
    case OpTypes::kInteger: return dtype == DType::kInt32 || dtype == DType::kInt64;
    case OpTypes::kBool: return dtype == DType::kBool;
    case OpTypes::kInt64: return dtype == DType::kInt64;
    case OpTypes::kAny: return true;
  }
  return false;
}

std::span<const OpInfo> Primitives() { return kOps; }
std::span<const Composite> Composites() { return kComposites; }

std::vector<std::string_view> OperatorNames() {
  std::vector<std::string_view> names;
  for (const OpInfo& info : kOps) names.push_back(info.name);
  for (const Composite& composite : kComposites) names.push_back(composite.name);
  return names;
}

std::string_view Name(Reducer reducer) { return kReducers[static_cast<std::size_t>(reducer)]; }

std::optional<Reducer> FindReducer(std::string_view name) {
  for (std::size_t k = 0; k < kReducers.size(); ++k)
    if (kReducers[k] == name) return static_cast<Reducer>(k);
  return std::nullopt;
}

}  // namespace umbra::graph

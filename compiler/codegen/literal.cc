#include "compiler/codegen/literal.h"

#include <fmt/format.h>

#include <cmath>

namespace umbra::codegen {

std::string Literal(double value, DType type) {
  if (IsHalf(type)) return fmt::format("narrow<{}>({})", Name(type), Literal(value, DType::kFloat32));
  if (type != ComputeType(type)) type = DType::kInt32;
  if (type == DType::kBool) return value != 0 ? "true" : "false";
  if (type == DType::kInt32) {
    if (value == -2147483648.0) return "(-2147483647 - 1)";
    const auto integer = static_cast<long long>(value);
    return integer < 0 ? fmt::format("({})", integer) : fmt::format("{}", integer);
  }
  if (type == DType::kInt64) return value < 0 ? fmt::format("({:.0f}LL)", value) : fmt::format("{:.0f}LL", value);
  const bool single = type == DType::kFloat32;
  const char* suffix = single ? "f" : "";
  if (std::isnan(value)) return fmt::format("__builtin_nan{}(\"\")", suffix);
  if (std::isinf(value))
    return value > 0 ? fmt::format("__builtin_inf{}()", suffix) : fmt::format("(-__builtin_inf{}())", suffix);
  std::string digits = single ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  digits += suffix;
  return std::signbit(value) ? "(" + digits + ")" : digits;
}

std::string IdentityLiteral(graph::Reducer reducer, DType type) {
  const bool is_int = type == DType::kInt32;
  if (type == DType::kInt64 && reducer == graph::Reducer::maximum) return "(-9223372036854775807LL - 1)";
  if (type == DType::kInt64 && reducer == graph::Reducer::minimum) return "9223372036854775807LL";
  if (type == DType::kInt16 && reducer == graph::Reducer::maximum) return Literal(-32768, type);
  if (type == DType::kInt16 && reducer == graph::Reducer::minimum) return Literal(32767, type);
  switch (reducer) {
    case graph::Reducer::sum: return Literal(0, type);
    case graph::Reducer::product: return Literal(1, type);
    case graph::Reducer::maximum: return Literal(is_int ? -2147483648.0 : -HUGE_VAL, type);
    case graph::Reducer::minimum: return Literal(is_int ? 2147483647.0 : HUGE_VAL, type);
  }
  return "";
}

std::string Padded(const std::string& count) { return "(" + count + " + 15) / 16 * 16"; }

}  // namespace umbra::codegen

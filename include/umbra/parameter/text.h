// Values of parameters as text and back, the same in every locale.
#ifndef UMBRA_PARAMETER_TEXT_H_
#define UMBRA_PARAMETER_TEXT_H_

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "umbra/error.h"

namespace umbra {

/// A value or None, as dmlc's optional.
template <typename T>
using optional = std::optional<T>;

namespace parameter {

template <typename T>
struct IsOptional : std::false_type { using Value = T; };
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type { using Value = T; };
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

/// What bounds and words of a field of type T are made of.
template <typename T>
using Bound = typename IsOptional<T>::Value;
/// Can values be compared with bounds?
template <typename T>
struct HasBounds
    : std::bool_constant<(std::is_arithmetic_v<Bound<T>> || std::is_enum_v<Bound<T>>)> {};

template <typename T>
const Bound<T>* BoundOf(const T& value) {
  if constexpr (IsOptional<T>::value) return value.has_value() ? &*value : nullptr;
  else return &value;
}

/// Name of a type for messages: int, float, boolean, string, "int or None", "tuple of int".
template <typename T>
std::string TypeName() {
  if constexpr (IsOptional<T>::value) return TypeName<Bound<T>>() + " or None";
  else if constexpr (IsVector<T>::value) return "tuple of " + TypeName<typename T::value_type>();
  else if constexpr (std::is_same_v<T, std::string>) return "string";
  else if constexpr (std::is_same_v<T, bool>) return "boolean";
  else if constexpr (std::is_same_v<T, float>) return "float";
  else if constexpr (std::is_same_v<T, double>) return "double";
  else if constexpr (std::is_enum_v<T>) return "word";
  else if constexpr (std::is_same_v<T, int>) return "int";
  else return std::string(std::is_unsigned_v<T> ? "unsigned " : "") + std::to_string(8 * sizeof(T)) + "-bit int";
}

/// The shortest text that reads back as the same value.
template <typename T>
std::string ToText(const T& value) {
  if constexpr (IsOptional<T>::value) {
    return value.has_value() ? ToText(*value) : "None";
  } else if constexpr (IsVector<T>::value) {
    std::string text = "(";
    for (const auto& element : value) text += (text.size() > 1 ? ", " : "") + ToText(element);
    return text + (value.size() == 1 ? ",)" : ")");
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "True" : "False";
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<long long>(value));
  } else {
    char text[64];
    const auto [end, error] = std::to_chars(text, text + sizeof text, value);
    (void)error;
    return {text, end};
  }
}

inline std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Reads `text` into `*value`; returns "" or what is wrong with it, and `*value` is then as before.
template <typename T>
std::string FromText(std::string_view text, T* value) {
  if constexpr (IsOptional<T>::value) {
    if (Trimmed(text) == "None") {
      value->reset();
      return "";
    }
    Bound<T> inner{};
    const std::string problem = FromText(text, &inner);
    if (problem.empty()) *value = inner;
    return problem.empty() ? "" : problem + " and not None";
  } else if constexpr (IsVector<T>::value) {
    text = Trimmed(text);
    const bool open = !text.empty() && (text.front() == '(' || text.front() == '[');
    if (open != (!text.empty() && (text.back() == ')' || text.back() == ']')) || text.empty())
      return "no " + TypeName<T>();
    if (open) text = Trimmed(text.substr(1, text.size() - 2));
    T read;
    while (!text.empty()) {
      const std::size_t comma = text.find(',');
      typename T::value_type element{};
      const std::string problem = FromText(text.substr(0, comma), &element);
      if (!problem.empty()) return problem + " in one place";
      read.push_back(element);
      if (comma == std::string_view::npos) break;
      text = Trimmed(text.substr(comma + 1));
    }
    *value = read;
    return "";
  } else if constexpr (std::is_same_v<T, std::string>) {
    *value = std::string(text);
    return "";
  } else if constexpr (std::is_same_v<T, bool>) {
    const std::string_view word = Trimmed(text);
    const bool yes = word == "True" || word == "true" || word == "1";
    if (!yes && word != "False" && word != "false" && word != "0")
      return "no boolean: expected True, true, 1, False, false or 0";
    *value = yes;
    return "";
  } else if constexpr (std::is_enum_v<T>) {
    return "no word that was declared";
  } else {
    text = Trimmed(text);
    if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
    if (std::is_floating_point_v<T> && !text.empty() && text.back() == 'f' && text.find_first_of("nN") == std::string_view::npos)
      text.remove_suffix(1);  // 0.1f
    T read{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error == std::errc::result_out_of_range) return "out of the range of " + TypeName<T>();
    if (error != std::errc() || end != text.data() + text.size()) return "no " + TypeName<T>();
    *value = read;
    return "";
  }
}

}  // namespace parameter
}  // namespace umbra

#endif  // UMBRA_PARAMETER_TEXT_H_

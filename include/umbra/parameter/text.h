// Values of parameters as text and back, the same in every locale. A string inside a tuple or an
// optional stands in quotes where it would read as something else: ('a,b', c), 'None'.
#ifndef UMBRA_PARAMETER_TEXT_H_
#define UMBRA_PARAMETER_TEXT_H_

#include <charconv>
#include <cstddef>
#include <istream>
#include <limits>
#include <locale>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "umbra/error.h"

namespace umbra {
namespace parameter {

/// Is T an optional? Value is what it holds, or T itself.
template <typename T>
struct IsOptional : std::false_type {
  using Value = T;
};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {
  using Value = T;
};
/// Is T a vector, which is written as a tuple?
template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
/// Can T be read from and written to a stream?
template <typename T, typename = void>
struct HasStreams : std::false_type {};
template <typename T>
struct HasStreams<T, std::void_t<decltype(std::declval<std::istream&>() >> std::declval<T&>()),
                                 decltype(std::declval<std::ostream&>() << std::declval<const T&>())>>
    : std::true_type {};

/// What bounds and words of a field of type T are made of.
template <typename T>
using Bound = typename IsOptional<T>::Value;

/// The value that bounds are checked against; null if there is none.
template <typename T>
const Bound<T>* BoundOf(const T& value) {
  if constexpr (IsOptional<T>::value) return value.has_value() ? &*value : nullptr;
  else return &value;
}

/// A text that has the name of T in it.
template <typename T>
constexpr const char* FunctionName() {
  return __PRETTY_FUNCTION__;
}
/// T as messages and help texts call it: "int", "float or None", "tuple of int".
template <typename T>
std::string TypeText();

}  // namespace parameter

/// Name of a type for messages: "float", "int (non-negative)", "int or None", "tuple of int"; a class
/// has its own name, or the one of UMBRA_DECLARE_TYPE_NAME.
template <typename T>
inline const char* type_name() {
  static const std::string name = parameter::TypeText<T>();
  return name.c_str();
}

namespace parameter {

template <typename T>
std::string TypeText() {
  if constexpr (IsOptional<T>::value) {
    return type_name<Bound<T>>() + std::string(" or None");
  } else if constexpr (IsVector<T>::value) {
    return std::string("tuple of ") + type_name<typename T::value_type>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "string";
  } else if constexpr (std::is_same_v<T, bool>) {
    return "boolean";
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::is_same_v<T, float> ? "float" : std::is_same_v<T, double> ? "double" : "long double";
  } else if constexpr (std::is_same_v<T, int>) {
    return "int";
  } else if constexpr (std::is_unsigned_v<T> && sizeof(T) >= 4) {
    return sizeof(T) == 4 ? "int (non-negative)" : "long (non-negative)";
  } else if constexpr (std::is_integral_v<T>) {
    return (std::is_unsigned_v<T> ? "unsigned " : "") + std::to_string(8 * sizeof(T)) + "-bit int";
  } else if constexpr (std::is_enum_v<T> && !HasStreams<T>::value) {
    return "word";
  } else {
    const std::string text = FunctionName<T>();  // "... [with T = umbra::TShape]"
    const std::size_t begin = text.find("T = ") + 4;
    return text.substr(begin, text.rfind(']') - begin);
  }
}

/// Is it a blank, a tab or the end of a line, whatever the locale?
inline bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
/// Is it a quotation mark, single or double?
inline bool IsQuote(char c) { return c == '\'' || c == '"'; }

/// Without spaces at its ends.
inline std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

/// Where the first element of a tuple ends: at a comma outside brackets and quotes or with the text;
/// npos if a bracket or a quote is not closed. A quote within a word is a letter.
inline std::size_t ElementEnd(std::string_view text) {
  std::string closing;
  bool word_begins = true;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    if (word_begins && IsQuote(c)) {
      for (++k; k < text.size() && text[k] != c; ++k)
        if (text[k] == '\\') ++k;
      if (k >= text.size()) return std::string_view::npos;
    } else if (c == '(' || c == '[') {
      closing += c == '(' ? ')' : ']';
    } else if (c == ')' || c == ']') {
      if (closing.empty() || closing.back() != c) return std::string_view::npos;
      closing.pop_back();
    } else if (c == ',' && closing.empty()) {
      return k;
    }
    word_begins = c == '(' || c == '[' || c == ',' || (word_begins && IsSpace(c));
  }
  return closing.empty() ? text.size() : std::string_view::npos;
}

/// The text of a value inside another value: in quotes if it is `special` there, or would lose white
/// space or quotes of its own.
inline std::string ToInnerText(const std::string& text, bool special) {
  if (!special && Trimmed(text) == text && (text.empty() || !IsQuote(text.front()))) return text;
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

/// The shortest text that reads back as the same value.
template <typename T>
std::string ToText(const T& value) {
  if constexpr (IsOptional<T>::value) {
    if (!value.has_value()) return "None";
    const std::string text = ToText(*value);
    return ToInnerText(text, text == "None");
  } else if constexpr (IsVector<T>::value) {
    std::string text = "(";
    for (const auto& element : value) {
      const std::string inner = ToText(element);
      text += text.size() > 1 ? ", " : "";
      text += ToInnerText(inner, inner.empty() || ElementEnd(inner) != inner.size());
    }
    return text + (value.size() == 1 ? ",)" : ")");
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "True" : "False";
  } else if constexpr (std::is_arithmetic_v<T>) {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
  } else if constexpr (HasStreams<T>::value) {
    std::ostringstream text;
    text.imbue(std::locale::classic());
    text.precision(std::numeric_limits<long double>::max_digits10);  // numbers in it read back equal
    text << value;
    return text.str();
  } else {
    static_assert(std::is_enum_v<T>, "umbra: a parameter's type needs >> from std::istream and << to std::ostream");
    return std::to_string(static_cast<long long>(value));
  }
}

/// Reads `*value` from all of the text; returns what is wrong with it, or nothing.
template <typename T>
std::string FromText(std::string_view text, T* value);

/// Reads what ToInnerText wrote.
template <typename T>
std::string FromInnerText(std::string_view text, T* value) {
  text = Trimmed(text);
  if (text.empty() || !IsQuote(text.front())) return FromText(text, value);
  std::string plain;
  std::size_t k = 1;
  for (; k < text.size() && text[k] != text.front(); ++k) {
    if (text[k] == '\\' && k + 1 < text.size()) ++k;
    plain += text[k];
  }
  if (k + 1 != text.size())
    return std::string("no ") + type_name<T>() + ": it must end with the quote that it begins with";
  return FromText(plain, value);
}

/// Reads `text` into `*value`; returns "" or what is wrong with it, and `*value` is then as before.
template <typename T>
std::string FromText(std::string_view text, T* value) {
  const auto no = [] { return std::string("no ") + type_name<T>(); };
  if constexpr (IsOptional<T>::value) {
    if (Trimmed(text) == "None") {
      value->reset();
      return "";
    }
    Bound<T> inner{};
    const std::string problem = FromInnerText(text, &inner);
    if (!problem.empty()) return problem + " and not None";
    *value = std::move(inner);
    return "";
  } else if constexpr (IsVector<T>::value) {
    text = Trimmed(text);
    if (text.empty()) return no() + ": expected (), (1,) or (1, 2)";
    const bool open = text.front() == '(' || text.front() == '[';
    if (open && ElementEnd(text) == text.size() && (text.back() == ')' || text.back() == ']'))
      text = Trimmed(text.substr(1, text.size() - 2));
    T read;
    while (!text.empty()) {
      const std::size_t end = ElementEnd(text);
      if (end == std::string_view::npos) return no() + ": a bracket or a quote is not closed";
      typename T::value_type element{};
      const std::string_view inner = Trimmed(text.substr(0, end));
      const std::string problem = FromInnerText(inner, &element);
      if (!problem.empty()) return no() + ": '" + std::string(inner) + "' in it is " + problem;
      read.push_back(std::move(element));
      text = Trimmed(text.substr(end == text.size() ? end : end + 1));
    }
    *value = std::move(read);
    return "";
  } else if constexpr (std::is_same_v<T, std::string>) {
    *value = std::string(text);
    return "";
  } else if constexpr (std::is_same_v<T, bool>) {
    std::string word(Trimmed(text));
    for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    const bool yes = word == "true" || word == "1";
    if (!yes && word != "false" && word != "0") return no() + ": expected True, 1, False or 0";
    *value = yes;
    return "";
  } else if constexpr (std::is_arithmetic_v<T>) {
    text = Trimmed(text);
    if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
    if (std::is_floating_point_v<T> && !text.empty() && text.back() == 'f' &&
        text.find_first_of("nN") == std::string_view::npos)
      text.remove_suffix(1);  // 0.1f
    T read{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error == std::errc::result_out_of_range) return std::string("out of the range of ") + type_name<T>();
    if (error != std::errc() || end != text.data() + text.size()) return no();
    *value = read;
    return "";
  } else if constexpr (HasStreams<T>::value) {
    std::istringstream in{std::string(text)};
    in.imbue(std::locale::classic());
    T read{};
    if (!(in >> read) || !(in.eof() || (in >> std::ws).eof())) return no();
    *value = std::move(read);
    return "";
  } else {
    static_assert(std::is_enum_v<T>, "umbra: a parameter's type needs >> from std::istream and << to std::ostream");
    return "no word that was declared";
  }
}

}  // namespace parameter
}  // namespace umbra

/// Names a class for messages; stands outside namespaces.
#define UMBRA_DECLARE_TYPE_NAME(Type, Name)     \
  template <>                                   \
  inline const char* umbra::type_name<Type>() { \
    return Name;                                \
  }

#endif  // UMBRA_PARAMETER_TEXT_H_

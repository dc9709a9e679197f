// A value or None, as dmlc's optional.
#ifndef UMBRA_PARAMETER_OPTIONAL_H_
#define UMBRA_PARAMETER_OPTIONAL_H_

#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "umbra/parameter/text.h"

namespace umbra {

using std::nullopt;
using std::nullopt_t;

/// A value of T or None. A class of its own, so that `<<` and `>>` are found wherever it is used.
template <typename T>
class optional {
 public:
  using value_type = T;
  /// None.
  optional() = default;
  /// None.
  optional(nullopt_t) {}  // NOLINT: nullopt stands for None
  /// A value, given as anything that converts to T.
  template <typename U = T, typename = std::enable_if_t<std::is_convertible_v<U&&, T>>>
  optional(U&& value) : value_(std::in_place, std::forward<U>(value)) {}  // NOLINT: a value stands for itself

  /// Is it a value?
  bool has_value() const { return value_.has_value(); }
  /// Is it a value?
  explicit operator bool() const { return has_value(); }
  /// Throws umbra::Error if it is None.
  const T& value() const {
    Require(has_value(), "value() of an optional that is None: ask has_value() first");
    return *value_;
  }
  /// The value, or `otherwise` if it is None.
  T value_or(T otherwise) const { return has_value() ? *value_ : std::move(otherwise); }
  /// Defined unless it is None.
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  /// A member of the value; defined unless it is None.
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  /// Makes it None.
  void reset() { value_.reset(); }
  /// Exchanges the two.
  void swap(optional& other) { value_.swap(other.value_); }

  friend bool operator==(const optional& a, const optional& b) { return a.value_ == b.value_; }
  friend bool operator!=(const optional& a, const optional& b) { return a.value_ != b.value_; }
  /// None, or the text of the value.
  friend std::ostream& operator<<(std::ostream& out, const optional& o) { return out << parameter::ToText(o); }
  /// One word, as `<<` writes it; sets failbit and leaves `o` as it was if the word is no T.
  friend std::istream& operator>>(std::istream& in, optional& o) {
    std::string word;
    if (in >> word && !parameter::FromText(word, &o).empty()) in.setstate(std::ios::failbit);
    return in;
  }

 private:
  std::optional<T> value_;
};

namespace parameter {
template <typename T>
struct IsOptional<optional<T>> : std::true_type {
  using Value = T;
};
}  // namespace parameter

}  // namespace umbra

#endif  // UMBRA_PARAMETER_OPTIONAL_H_

// One declared field of a parameter struct: its default, bounds, words and description, as dmlc-core's FieldEntry.
#ifndef UMBRA_PARAMETER_FIELD_H_
#define UMBRA_PARAMETER_FIELD_H_

#include <cstddef>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "umbra/error.h"
#include "umbra/parameter/optional.h"
#include "umbra/parameter/text.h"

namespace umbra {

/// A parameter that is missing, unknown, malformed or out of its range; the message says which and what
/// is possible.
class ParamError : public Error {
 public:
  /// An error that says `message`.
  explicit ParamError(const std::string& message) : Error(message) {}
};

/// What is known of one field.
struct ParamFieldInfo {
  std::string name;  ///< as it was declared
  std::string type;  ///< "int", "float", "tuple of int"; of words too, what they stand for
  std::string type_info_str;  ///< the type or the words, and "required" or "optional, default=..."
  std::string description;  ///< what `describe` said; empty if it said nothing
  std::vector<std::string> aliases;  ///< other names, sorted
};

namespace parameter {

/// One field as the manager sees it. `head` is the struct.
class FieldAccessEntry {
 public:
  virtual ~FieldAccessEntry() = default;
  /// Throws ParamError if the field has no default.
  virtual void SetDefault(void* head) const = 0;
  /// Throws ParamError, and the field is as before, if `value` is no text of the field's type.
  virtual void Set(void* head, const std::string& value) const = 0;
  /// Throws ParamError if the field is out of its bounds.
  virtual void Check(void* head) const { (void)head; }
  /// The text of the field's value, which Set reads back to an equal one.
  virtual std::string GetStringValue(void* head) const = 0;
  /// What was declared of it.
  virtual ParamFieldInfo GetFieldInfo() const = 0;

 protected:
  friend class ParamManager;
  virtual void PrintDefaultValueString(std::ostream& out) const = 0;
  bool has_default_ = false;
  std::string key_, type_, description_;
};

/// A field of any type that has a text: numbers, strings, tuples, optionals, and classes with `>>` and
/// `<<`. TEntry is the class that derives from this one, for chaining.
template <typename TEntry, typename DType>
class FieldEntryBase : public FieldAccessEntry {
 public:
  /// Names the field `key`, which lies in the struct `head`; DECLARE calls it.
  void Init(const std::string& key, void* head, DType& field) {
    key_ = key;
    if (type_.empty()) type_ = type_name<DType>();
    offset_ = reinterpret_cast<char*>(&field) - static_cast<char*>(head);
  }
  /// The value of a field that Init does not name; without one the field is required.
  TEntry& set_default(const DType& value) {
    default_value_ = value;
    has_default_ = true;
    return self();
  }
  /// The text that help shows beside the name.
  TEntry& describe(const std::string& description) {
    description_ = description;
    return self();
  }

  void Set(void* head, const std::string& value) const override {
    const std::string problem = FromText(value, &Get(head));
    if (!problem.empty()) throw ParamError("parameter '" + key_ + "': '" + value + "' is " + problem);
  }
  void SetDefault(void* head) const override {
    if (!has_default_) throw ParamError("required parameter '" + key_ + "' of type " + Possible() + " is not given");
    Get(head) = default_value_;
  }
  std::string GetStringValue(void* head) const override {
    std::ostringstream text;
    PrintValue(text, Get(head));
    return text.str();
  }
  ParamFieldInfo GetFieldInfo() const override {
    std::ostringstream text;
    text << Possible() << (has_default_ ? ", optional, default=" : ", required");
    if (has_default_) PrintDefaultValueString(text);
    return {key_, type_, text.str(), description_, {}};
  }

 protected:
  TEntry& self() { return *static_cast<TEntry*>(this); }
  DType& Get(void* head) const { return *reinterpret_cast<DType*>(static_cast<char*>(head) + offset_); }
  virtual void PrintValue(std::ostream& out, DType value) const { out << ToText(value); }
  void PrintDefaultValueString(std::ostream& out) const override { PrintValue(out, default_value_); }
  /// What may be given: the type, or the words.
  virtual std::string Possible() const { return type_; }

  std::ptrdiff_t offset_ = 0;
  DType default_value_{};
};

/// A field that is a number, or a number or None, which may have bounds. NaN is within none.
template <typename TEntry, typename DType>
class FieldEntryNumeric : public FieldEntryBase<TEntry, DType> {
 public:
  /// begin <= value <= end.
  TEntry& set_range(Bound<DType> begin, Bound<DType> end) {
    begin_ = begin;
    end_ = end;
    return this->self();
  }
  /// begin <= value.
  TEntry& set_lower_bound(Bound<DType> begin) {
    begin_ = begin;
    return this->self();
  }
  /// value <= end.
  TEntry& set_upper_bound(Bound<DType> end) {
    end_ = end;
    return this->self();
  }
  void Check(void* head) const override {
    const Bound<DType>* value = BoundOf(this->Get(head));
    if (value == nullptr || ((!begin_ || *value >= *begin_) && (!end_ || *value <= *end_))) return;
    std::string text = "parameter '" + this->key_ + "': " + ToText(*value) + " is out of range: it must be";
    if (begin_) text += " at least " + ToText(*begin_);
    if (begin_ && end_) text += " and";
    if (end_) text += " at most " + ToText(*end_);
    throw ParamError(text);
  }

 protected:
  std::optional<Bound<DType>> begin_, end_;
};

template <typename T>
class FieldEntry;
/// Numbers have ranges, other types do not.
template <typename T>
using FieldParent = std::conditional_t<std::is_arithmetic_v<Bound<T>> && !std::is_same_v<Bound<T>, bool>,
                                       FieldEntryNumeric<FieldEntry<T>, T>, FieldEntryBase<FieldEntry<T>, T>>;

/// A field of type T with what was declared of it. To give a type texts of its own, specialise this
/// class and derive it from FieldEntryBase or FieldEntryNumeric.
template <typename T>
class FieldEntry : public FieldParent<T> {
  using Parent = FieldParent<T>;
  static constexpr bool kCanHaveWords =
      std::is_arithmetic_v<Bound<T>> || std::is_enum_v<Bound<T>> || std::is_same_v<Bound<T>, std::string>;

 public:
  /// A word for a value; a field with words takes no others. Throws ParamError if either exists.
  FieldEntry& add_enum(const std::string& word, Bound<T> value) {
    static_assert(kCanHaveWords, "umbra: words stand for numbers, enums or strings");
    for (const auto& [known, meaning] : words_)
      if (known == word || meaning == value)
        throw ParamError("the word '" + word + "' of parameter '" + this->key_ + "' or its value exists already as '" +
                         known + "': give each value one word");
    if (IsOptional<T>::value && word == "None")
      throw ParamError("None is the empty value of parameter '" + this->key_ + "': choose another word");
    words_.emplace_back(word, value);
    return *this;
  }

  void Set(void* head, const std::string& value) const override {
    if (words_.empty()) return Parent::Set(head, value);
    if (IsOptional<T>::value && value == "None") {
      this->Get(head) = T();
      return;
    }
    for (const auto& [word, meaning] : words_)
      if (word == value) {
        this->Get(head) = T(meaning);
        return;
      }
    throw ParamError("parameter '" + this->key_ + "': '" + value + "' is none of " + Possible());
  }

 protected:
  void PrintValue(std::ostream& out, T value) const override {
    const Bound<T>* given = BoundOf(value);
    if (words_.empty() || given == nullptr) return Parent::PrintValue(out, value);
    if constexpr (kCanHaveWords)
      for (const auto& [word, meaning] : words_)
        if (meaning == *given) {
          out << word;
          return;
        }
    throw ParamError("parameter '" + this->key_ + "': " + ToText(value) + " is the value of none of " + Possible());
  }
  void PrintDefaultValueString(std::ostream& out) const override {
    const char* quote = words_.empty() && !std::is_same_v<T, std::string> ? "" : "'";
    out << quote;
    this->PrintValue(out, this->default_value_);
    out << quote;
  }
  std::string Possible() const override {
    if (words_.empty()) return this->type_;
    std::string text = IsOptional<T>::value ? "{None" : "{";
    for (const auto& [word, meaning] : words_) text += (text.size() > 1 ? ", '" : "'") + word + "'";
    return text + "}";
  }

 private:
  std::vector<std::pair<std::string, Bound<T>>> words_;  // in order of declaration
};

}  // namespace parameter
}  // namespace umbra

#endif  // UMBRA_PARAMETER_FIELD_H_

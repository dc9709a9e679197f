// Parameters: structs whose fields are declared with defaults, ranges and descriptions, and set from
// pairs of words, as dmlc-core's parameter.h.
//
//   struct Options : umbra::Parameter<Options> {
//     float rate;
//     int hidden;
//     UMBRA_DECLARE_PARAMETER(Options) {
//       UMBRA_DECLARE_FIELD(hidden).set_range(1, 1000).describe("Units of the hidden layer.");
//       UMBRA_DECLARE_FIELD(rate).set_default(0.01f);
//     }
//   };
//   UMBRA_REGISTER_PARAMETER(Options);   // in a source file
#ifndef UMBRA_PARAMETER_H_
#define UMBRA_PARAMETER_H_

#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "umbra/parameter/text.h"

namespace umbra {

/// A parameter that is missing, unknown, malformed or out of its range; the message says which and what
/// is possible.
class ParamError : public Error {
 public:
  explicit ParamError(const std::string& message) : Error(message) {}
};

/// What is known of one field.
struct ParamFieldInfo {
  std::string name;
  std::string type;           ///< "int", "float", "{'a', 'b'}"
  std::string type_info_str;  ///< the type and "required" or "optional, default=..."
  std::string description;
};

namespace parameter {

/// What Init does with names that are no field.
enum ParamInitOption {
  kAllowUnknown,  ///< ignores them
  kAllMatch,      ///< throws ParamError
  kAllowHidden,   ///< throws, except for names like __this__
};

/// One field as the manager sees it. `head` is the struct.
class FieldAccessEntry {
 public:
  virtual ~FieldAccessEntry() = default;
  virtual void Set(void* head, const std::string& value) const = 0;
  virtual void SetDefault(void* head) const = 0;
  virtual void Check(void* head) const = 0;
  virtual std::string GetStringValue(const void* head) const = 0;
  virtual ParamFieldInfo GetFieldInfo() const = 0;

 protected:
  friend class ParamManager;
  std::string key_, description_;
};

/// A field of type T with what was declared of it.
template <typename T>
class FieldEntry : public FieldAccessEntry {
 public:
  FieldEntry(const std::string& key, void* head, T& field)
      : offset_(reinterpret_cast<char*>(&field) - static_cast<char*>(head)) {
    key_ = key;
  }

  /// The value of a field that Init does not name; without one the field is required.
  FieldEntry& set_default(const T& value) {
    default_ = std::make_unique<T>(value);
    return *this;
  }
  /// begin <= value < end, as in the original.
  FieldEntry& set_range(Bound<T> begin, Bound<T> end) {
    lower_ = std::make_unique<Bound<T>>(begin);
    end_ = std::make_unique<Bound<T>>(end);
    return *this;
  }
  FieldEntry& set_lower_bound(Bound<T> begin) {
    lower_ = std::make_unique<Bound<T>>(begin);
    return *this;
  }
  FieldEntry& set_upper_bound(Bound<T> last) {
    upper_ = std::make_unique<Bound<T>>(last);
    return *this;
  }
  FieldEntry& describe(const std::string& description) {
    description_ = description;
    return *this;
  }
  /// A word for a value; a field with words takes no others. Throws ParamError if either exists.
  FieldEntry& add_enum(const std::string& word, Bound<T> value) {
    for (const auto& [known, meaning] : words_)
      if (known == word || meaning == value)
        throw ParamError("the word '" + word + "' of parameter '" + key_ + "' or its value exists already");
    if (IsOptional<T>::value && word == "None")
      throw ParamError("None is the empty value of parameter '" + key_ + "'");
    words_.emplace_back(word, value);
    return *this;
  }

  void Set(void* head, const std::string& value) const override {
    if (words_.empty()) {
      const std::string problem = FromText(value, &Get(head));
      if (!problem.empty()) throw ParamError("parameter '" + key_ + "': '" + value + "' is " + problem);
      return;
    }
    if constexpr (IsOptional<T>::value) {
      if (value == "None") {
        Get(head) = T();
        return;
      }
    }
    for (const auto& [word, meaning] : words_)
      if (word == value) {
        Get(head) = T(meaning);
        return;
      }
    throw ParamError("parameter '" + key_ + "': '" + value + "' is none of " + TypeText());
  }
  void SetDefault(void* head) const override {
    if (default_ == nullptr)
      throw ParamError("required parameter '" + key_ + "' of type " + TypeText() + " is not given");
    Get(head) = *default_;
  }
  void Check(void* head) const override {
    if constexpr (HasBounds<T>::value) {
      const Bound<T>* value = BoundOf(Get(head));
      if (value == nullptr) return;
      const bool inside = (lower_ == nullptr || *value >= *lower_) && (end_ == nullptr || *value < *end_) &&
                          (upper_ == nullptr || *value <= *upper_);
      if (inside) return;
      std::ostringstream text;
      text << "parameter '" << key_ << "': " << ToText(Get(head)) << " is out of range: it must be";
      if (lower_ != nullptr) text << " at least " << ToText(*lower_);
      if (lower_ != nullptr && (end_ != nullptr || upper_ != nullptr)) text << " and";
      if (end_ != nullptr) text << " below " << ToText(*end_);
      if (upper_ != nullptr) text << " at most " << ToText(*upper_);
      throw ParamError(text.str());
    }
  }
  std::string GetStringValue(const void* head) const override { return Spell(Get(const_cast<void*>(head))); }
  ParamFieldInfo GetFieldInfo() const override {
    ParamFieldInfo info;
    info.name = key_;
    info.type = TypeText();
    info.type_info_str = info.type;
    if (default_ == nullptr) info.type_info_str += ", required";
    else info.type_info_str += ", optional, default=" + Quoted(Spell(*default_));
    info.description = description_;
    return info;
  }

 private:
  T& Get(void* head) const { return *reinterpret_cast<T*>(static_cast<char*>(head) + offset_); }
  std::string TypeText() const {
    if (words_.empty()) return TypeName<T>();
    std::string text = IsOptional<T>::value ? "{None" : "{";
    for (const auto& [word, meaning] : words_) text += (text.size() > 1 ? ", '" : "'") + word + "'";
    return text + "}";
  }
  std::string Spell(const T& value) const {
    if constexpr (HasBounds<T>::value) {
      if (const Bound<T>* bound = BoundOf(value))
        for (const auto& [word, meaning] : words_)
          if (meaning == *bound) return word;
    }
    return ToText(value);
  }
  std::string Quoted(const std::string& text) const {
    return words_.empty() && !std::is_same_v<T, std::string> ? text : "'" + text + "'";
  }

  std::ptrdiff_t offset_;
  std::unique_ptr<T> default_;
  std::unique_ptr<Bound<T>> lower_, end_, upper_;
  std::vector<std::pair<std::string, Bound<T>>> words_;
};

/// The fields of one struct.
class ParamManager {
 public:
  void set_name(const std::string& name) { name_ = name; }
  /// The field called `key`, also by an alias; null if there is none.
  const FieldAccessEntry* Find(const std::string& key) const {
    const auto found = by_name_.find(key);
    return found == by_name_.end() ? nullptr : found->second;
  }
  void AddEntry(const std::string& key, std::unique_ptr<FieldAccessEntry> entry) {
    if (!by_name_.emplace(key, entry.get()).second)
      throw ParamError("the field '" + key + "' of " + name_ + " is declared twice");
    entries_.push_back(std::move(entry));
  }
  void AddAlias(const std::string& field, const std::string& alias) {
    const FieldAccessEntry* entry = Find(field);
    if (entry == nullptr) throw ParamError("alias '" + alias + "' of '" + field + "', which is no field of " + name_);
    if (!by_name_.emplace(alias, entry).second)
      throw ParamError("the field '" + alias + "' of " + name_ + " is declared twice");
  }
  template <typename Iterator>
  void RunInit(void* head, Iterator begin, Iterator end,
               std::vector<std::pair<std::string, std::string>>* unknown, ParamInitOption option) const {
    std::set<const FieldAccessEntry*> given;
    for (Iterator it = begin; it != end; ++it) {
      const FieldAccessEntry* entry = Find(it->first);
      if (entry != nullptr) {
        entry->Set(head, it->second);
        entry->Check(head);
        given.insert(entry);
      } else if (unknown != nullptr) {
        unknown->emplace_back(it->first, it->second);
      } else if (option != kAllowUnknown && !(option == kAllowHidden && IsHidden(it->first))) {
        std::ostringstream text;
        text << "Cannot find argument '" << it->first << "' of " << name_ << ". Possible arguments:\n";
        PrintDocString(text);
        throw ParamError(text.str());
      }
    }
    for (const auto& entry : entries_)
      if (given.count(entry.get()) == 0) entry->SetDefault(head);
  }
  std::vector<std::pair<std::string, std::string>> GetDict(const void* head) const {
    std::vector<std::pair<std::string, std::string>> dict;
    for (const auto& entry : entries_) dict.emplace_back(entry->key_, entry->GetStringValue(head));
    return dict;
  }
  std::vector<ParamFieldInfo> GetFieldInfo() const {
    std::vector<ParamFieldInfo> fields;
    for (const auto& entry : entries_) fields.push_back(entry->GetFieldInfo());
    return fields;
  }
  void PrintDocString(std::ostream& out) const {
    for (const ParamFieldInfo& info : GetFieldInfo()) {
      out << info.name << " : " << info.type_info_str << '\n';
      if (!info.description.empty()) out << "    " << info.description << '\n';
    }
  }

 private:
  static bool IsHidden(const std::string& name) {
    return name.size() > 4 && name.compare(0, 2, "__") == 0 && name.compare(name.size() - 2, 2, "__") == 0;
  }
  std::string name_;
  std::vector<std::unique_ptr<FieldAccessEntry>> entries_;  // in order of declaration
  std::map<std::string, const FieldAccessEntry*> by_name_;
};

/// Declares the fields of PType once.
template <typename PType>
struct ParamManagerSingleton {
  ParamManager manager;
  explicit ParamManagerSingleton(const std::string& name) {
    manager.set_name(name);
    PType param;
    param.__DECLARE__(this);
  }
};

}  // namespace parameter

/// Base of a struct of parameters.
template <typename PType>
struct Parameter {
 public:
  /// Sets the fields from pairs (name, text); the others get their defaults. Throws ParamError for a
  /// name that is no field (see ParamInitOption), a malformed or out-of-range value, or a required field
  /// that is not given.
  template <typename Container>
  void Init(const Container& arguments, parameter::ParamInitOption option = parameter::kAllowHidden) {
    PType::__MANAGER__()->RunInit(static_cast<PType*>(this), arguments.begin(), arguments.end(), nullptr, option);
  }
  /// The same; returns the pairs whose names are no field.
  template <typename Container>
  std::vector<std::pair<std::string, std::string>> InitAllowUnknown(const Container& arguments) {
    std::vector<std::pair<std::string, std::string>> unknown;
    PType::__MANAGER__()->RunInit(static_cast<PType*>(this), arguments.begin(), arguments.end(), &unknown,
                                  parameter::kAllowUnknown);
    return unknown;
  }
  /// Names and texts of all fields; Init with them gives an equal struct.
  std::map<std::string, std::string> __DICT__() const {
    const auto dict = PType::__MANAGER__()->GetDict(static_cast<const PType*>(this));
    return {dict.begin(), dict.end()};
  }
  static std::vector<ParamFieldInfo> __FIELDS__() { return PType::__MANAGER__()->GetFieldInfo(); }
  /// Fields, types, defaults and descriptions for a reader.
  static std::string __DOC__() {
    std::ostringstream text;
    PType::__MANAGER__()->PrintDocString(text);
    return text.str();
  }
  /// To and from an object of nlohmann::json (or what is used like it): a text for every field.
  template <typename Json>
  void Save(Json* json) const { *json = __DICT__(); }
  template <typename Json>
  void Load(const Json& json) { Init(json.template get<std::map<std::string, std::string>>()); }

 protected:
  template <typename T>
  parameter::FieldEntry<T>& DECLARE(parameter::ParamManagerSingleton<PType>* manager, const std::string& key,
                                    T& field) {
    auto entry = std::make_unique<parameter::FieldEntry<T>>(key, static_cast<PType*>(this), field);
    parameter::FieldEntry<T>& declared = *entry;
    manager->manager.AddEntry(key, std::move(entry));
    return declared;
  }
};

/// The environment variable `name` as T; `otherwise` if it is not set or empty. Throws ParamError if its
/// text is none.
template <typename T>
inline T GetEnv(const char* name, T otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  const std::string problem = parameter::FromText(text, &otherwise);
  if (!problem.empty()) throw ParamError("environment variable " + std::string(name) + ": '" + text + "' is " + problem);
  return otherwise;
}
template <typename T>
inline void SetEnv(const char* name, const T& value) {
  setenv(name, parameter::ToText(value).c_str(), 1);
}

}  // namespace umbra

#define UMBRA_DECLARE_PARAMETER(PType)                            \
  static ::umbra::parameter::ParamManager* __MANAGER__();         \
  inline void __DECLARE__(::umbra::parameter::ParamManagerSingleton<PType>* manager)
#define UMBRA_DECLARE_FIELD(name) this->DECLARE(manager, #name, name)
#define UMBRA_DECLARE_ALIAS(name, alias) manager->manager.AddAlias(#name, #alias)
#define UMBRA_REGISTER_PARAMETER(PType)                                          \
  ::umbra::parameter::ParamManager* PType::__MANAGER__() {                       \
    static ::umbra::parameter::ParamManagerSingleton<PType> singleton(#PType);   \
    return &singleton.manager;                                                   \
  }                                                                              \
  static_assert(true, "a semicolon follows")

#endif  // UMBRA_PARAMETER_H_

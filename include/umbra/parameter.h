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

#include <cstdlib>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "umbra/parameter/field.h"

namespace umbra {

namespace parameter {

/// What Init does with names that are no field.
enum ParamInitOption {
  kAllowUnknown,  ///< ignores them
  kAllMatch,  ///< throws ParamError
  kAllowHidden,  ///< throws, except for names like __this__
};

/// The fields of one struct.
class ParamManager {
 public:
  /// The name of the struct, for messages.
  void set_name(const std::string& name) { name_ = name; }
  /// The field called `key`, also by an alias; null if there is none.
  FieldAccessEntry* Find(const std::string& key) const {
    const auto found = by_name_.find(key);
    return found == by_name_.end() ? nullptr : found->second;
  }
  /// Adds a field by its name. Throws ParamError if the name is taken.
  void AddEntry(const std::string& key, std::unique_ptr<FieldAccessEntry> entry) {
    AddName(key, entry.get());
    entries_.push_back(std::move(entry));
  }
  /// Adds another name of a field. Throws ParamError if there is no such field or the name is taken.
  void AddAlias(const std::string& field, const std::string& alias) {
    FieldAccessEntry* entry = Find(field);
    if (entry == nullptr)
      throw ParamError("alias '" + alias + "' of '" + field + "', which is no field of " + name_ +
                       ": declare the field first");
    AddName(alias, entry);
  }
  /// Sets the fields in the order of the pairs: of several for one field the last holds.
  template <typename Iterator>
  void RunInit(void* head, Iterator begin, Iterator end, std::vector<std::pair<std::string, std::string>>* unknown,
               ParamInitOption option) const {
    std::set<const FieldAccessEntry*> given;
    for (Iterator it = begin; it != end; ++it) {
      FieldAccessEntry* entry = Find(it->first);
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
  /// Names, aliases among them, and texts, sorted by name.
  std::vector<std::pair<std::string, std::string>> GetDict(void* head) const {
    std::vector<std::pair<std::string, std::string>> dict;
    for (const auto& [name, entry] : by_name_) dict.emplace_back(name, entry->GetStringValue(head));
    return dict;
  }
  /// The fields in order of declaration.
  std::vector<ParamFieldInfo> GetFieldInfo() const {
    std::vector<ParamFieldInfo> fields;
    for (const auto& entry : entries_) {
      fields.push_back(entry->GetFieldInfo());
      for (const auto& [name, named] : by_name_)
        if (named == entry.get() && name != entry->key_) fields.back().aliases.push_back(name);
    }
    return fields;
  }
  /// Writes the fields in order of declaration: name, type, default, and the description below.
  void PrintDocString(std::ostream& out) const {
    for (const ParamFieldInfo& info : GetFieldInfo()) {
      out << info.name << " : " << info.type_info_str << '\n';
      if (!info.description.empty()) out << "    " << info.description << '\n';
    }
  }

 private:
  void AddName(const std::string& name, FieldAccessEntry* entry) {
    if (!by_name_.emplace(name, entry).second)
      throw ParamError("the name '" + name + "' is declared twice in " + name_ + ": give each field and alias its own");
  }
  static bool IsHidden(const std::string& name) {
    return name.size() > 4 && name.compare(0, 2, "__") == 0 && name.compare(name.size() - 2, 2, "__") == 0;
  }
  std::string name_;
  std::vector<std::unique_ptr<FieldAccessEntry>> entries_;  // in order of declaration
  std::map<std::string, FieldAccessEntry*> by_name_;
};

/// Declares the fields of PType once.
template <typename PType>
struct ParamManagerSingleton {
  ParamManager manager;  ///< of all structs of the type
  /// Asks PType which fields it has; `name` is the struct's in messages.
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
    PType::__MANAGER__()->RunInit(head(), arguments.begin(), arguments.end(), nullptr, option);
  }
  /// The same; returns the pairs whose names are no field.
  template <typename Container>
  std::vector<std::pair<std::string, std::string>> InitAllowUnknown(const Container& arguments) {
    std::vector<std::pair<std::string, std::string>> unknown;
    PType::__MANAGER__()->RunInit(head(), arguments.begin(), arguments.end(), &unknown, parameter::kAllowUnknown);
    return unknown;
  }
  /// Names and texts of all fields, by their aliases too; Init with them gives an equal struct. Throws
  /// ParamError if a field with words has a value that is none of them.
  std::map<std::string, std::string> __DICT__() const {
    const auto dict = PType::__MANAGER__()->GetDict(head());
    return {dict.begin(), dict.end()};
  }
  /// What was declared of the fields, in order of declaration.
  static std::vector<ParamFieldInfo> __FIELDS__() { return PType::__MANAGER__()->GetFieldInfo(); }
  /// Fields, types, defaults and descriptions for a reader.
  static std::string __DOC__() {
    std::ostringstream text;
    PType::__MANAGER__()->PrintDocString(text);
    return text.str();
  }
  /// __DICT__ as an object of nlohmann::json, or what is used like it.
  template <typename Json>
  void Save(Json* json) const {
    *json = __DICT__();
  }
  /// Init with what Save wrote. Throws ParamError also if `json` is no object of strings.
  template <typename Json>
  void Load(const Json& json) {
    if (!json.is_object())
      throw ParamError(std::string("Load: expected an object of strings, as Save writes, but the JSON is: ") +
                       json.type_name());
    std::vector<std::pair<std::string, std::string>> arguments;
    for (const auto& [name, value] : json.items()) {
      if (!value.is_string())
        throw ParamError("Load: parameter '" + name + "': expected its text as a string, but the JSON is: " +
                         value.type_name() + "; write it in quotes");
      arguments.emplace_back(name, value.template get<std::string>());
    }
    Init(arguments);
  }

 protected:
  template <typename T>
  parameter::FieldEntry<T>& DECLARE(parameter::ParamManagerSingleton<PType>* manager, const std::string& key,
                                    T& field) {
    auto entry = std::make_unique<parameter::FieldEntry<T>>();
    parameter::FieldEntry<T>& declared = *entry;
    declared.Init(key, head(), field);
    manager->manager.AddEntry(key, std::move(entry));
    return declared;
  }

 private:
  PType* head() const { return static_cast<PType*>(const_cast<Parameter*>(this)); }
};

/// The environment variable `name` as T; `otherwise` if it is not set or empty. Throws ParamError if its
/// text is none.
template <typename T>
inline T GetEnv(const char* name, T otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  const std::string problem = parameter::FromText(text, &otherwise);
  if (!problem.empty())
    throw ParamError("environment variable " + std::string(name) + ": '" + text + "' is " + problem);
  return otherwise;
}
/// Sets an environment variable to the text of `value`.
template <typename T>
inline void SetEnv(const char* name, const T& value) {
  setenv(name, parameter::ToText(value).c_str(), 1);
}

}  // namespace umbra

#define UMBRA_DECLARE_PARAMETER(PType)                    \
  static ::umbra::parameter::ParamManager* __MANAGER__(); \
  inline void __DECLARE__(::umbra::parameter::ParamManagerSingleton<PType>* manager)
#define UMBRA_DECLARE_FIELD(name) this->DECLARE(manager, #name, name)
#define UMBRA_DECLARE_ALIAS(name, alias) manager->manager.AddAlias(#name, #alias)
#define UMBRA_REGISTER_PARAMETER(PType)                                                          \
  ::umbra::parameter::ParamManager* PType::__MANAGER__() {                                       \
    /* never destroyed: what is at the program's end may read parameters, too */                 \
    static auto* const singleton = new ::umbra::parameter::ParamManagerSingleton<PType>(#PType); \
    return &singleton->manager;                                                                  \
  }                                                                                              \
  static_assert(true, "a semicolon follows")

#endif  // UMBRA_PARAMETER_H_

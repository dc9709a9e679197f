// The fields of a Parameter as options of a command: names, values and help texts have one place.
#ifndef UMBRA_TOOLS_UMBRA_FIELDS_H_
#define UMBRA_TOOLS_UMBRA_FIELDS_H_

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "umbra/parameter.h"

namespace umbra::tools {

/// A required field, and the one called `positional`, stand without a name; a tuple has an element an option.
class Fields {
 public:
  Fields(CLI::App* command, const std::vector<ParamFieldInfo>& fields, std::string_view positional = "") {
    for (const ParamFieldInfo& field : fields) {
      const std::string& info = field.type_info_str;
      const bool required = info.size() > 8 && info.substr(info.size() - 8) == "required";
      std::string names = required || field.name == positional ? field.name : Flag(field.name);
      for (const std::string& alias : field.aliases) names += "," + Flag(alias);
      if (field.type == "boolean" && info.find("default=True") != std::string::npos)
        names += ",!" + Flag("no_" + field.name);
      const std::string help = Help(field);
      const bool tuple = field.type.rfind("tuple of ", 0) == 0;
      auto* option = field.type == "boolean" ? command->add_flag(names, help) : command->add_option(names, help);
      if (tuple) option->expected(CLI::detail::expected_max_vector_size);
      option->required(required)->type_name("");
      options_.push_back({field.name, option, tuple});
    }
  }
  /// What was given, for Init.
  std::vector<std::pair<std::string, std::string>> Given() const {
    std::vector<std::pair<std::string, std::string>> given;
    for (const auto& [name, option, tuple] : options_)
      if (option->count() > 0)
        given.emplace_back(name, tuple ? parameter::ToText(option->results()) : option->results().back());
    return given;
  }
  /// The fields `names` mean nothing without `needed`.
  void Need(std::string_view needed, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) At(name)->needs(At(needed));
  }

 private:
  struct Option {
    std::string field;
    CLI::Option* option;
    bool tuple;
  };
  // What a field is for, the words that it takes, and its default if that is not nothing.
  static std::string Help(const ParamFieldInfo& field) {
    const std::string_view info = field.type_info_str, mark = ", optional, default=";
    const std::size_t at = info.rfind(mark);
    std::string more(info[0] == '{' ? info.substr(0, std::min(at, info.find('}') + 1)) : "");
    if (at != std::string_view::npos) {
      const std::string_view value = info.substr(at + mark.size());
      if (value != "''" && value != "()" && value != "None" && value != "False")
        more += (more.empty() ? "" : ", ") + ("default: " + std::string(value));
    }
    return field.description + (more.empty() ? "" : " (" + more + ")");
  }
  static std::string Flag(std::string name) {
    for (char& c : name) c = c == '_' ? '-' : c;
    return (name.size() == 1 ? "-" : "--") + name;
  }
  CLI::Option* At(std::string_view name) const {
    for (const Option& option : options_)
      if (option.field == name) return option.option;
    throw InternalError("no option " + std::string(name));
  }
  std::vector<Option> options_;
};

}  // namespace umbra::tools

#endif  // UMBRA_TOOLS_UMBRA_FIELDS_H_

#include "runtime/environment.h"

#include <cctype>
#include <cstdlib>
#include <utility>
#include <vector>

namespace umbra::runtime {

UMBRA_REGISTER_PARAMETER(Environment);

namespace {

std::string VariableOf(const std::string& field) {
  std::string name = "UMBRA_";
  for (const char c : field) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

// The fields that the environment sets.
Pairs Given() {
  Pairs given;
  for (const ParamFieldInfo& field : Environment::__FIELDS__()) {
    const char* text = std::getenv(VariableOf(field.name).c_str());
    if (text != nullptr && *text != '\0') given.emplace_back(field.name, text);
  }
  return given;
}

}  // namespace

Environment ReadEnvironment() {
  const std::vector<MalformedVariable> malformed = MalformedVariables();
  if (!malformed.empty()) throw ParamError(malformed.front().problem);
  Environment environment;
  environment.Init(Given());
  return environment;
}

std::vector<MalformedVariable> MalformedVariables() {
  std::vector<MalformedVariable> malformed;
  for (const auto& pair : Given()) {
    try {
      Environment().Init(Pairs{pair});
    } catch (const ParamError& error) {
      const std::string variable = VariableOf(pair.first);
      malformed.push_back({variable, "environment variable " + variable + ": " + error.what()});
    }
  }
  return malformed;
}

std::string EnvironmentHelp() {
  std::string text;
  for (const ParamFieldInfo& field : Environment::__FIELDS__())
    text += "  " + VariableOf(field.name) + "\n      " + field.description + "\n";
  return text;
}

}  // namespace umbra::runtime

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

}  // namespace

Environment ReadEnvironment() {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  Pairs given;
  for (const ParamFieldInfo& field : Environment::__FIELDS__()) {
    const std::string variable = VariableOf(field.name);
    const char* text = std::getenv(variable.c_str());
    if (text == nullptr || *text == '\0') continue;
    given.emplace_back(field.name, text);
    try {
      Environment().Init(Pairs{given.back()});
    } catch (const ParamError& error) {
      throw ParamError("environment variable " + variable + ": " + error.what());
    }
  }
  Environment environment;
  environment.Init(given);
  return environment;
}

std::string EnvironmentHelp() {
  std::string text;
  for (const ParamFieldInfo& field : Environment::__FIELDS__())
    text += "  " + VariableOf(field.name) + "\n      " + field.description + "\n";
  return text;
}

}  // namespace umbra::runtime

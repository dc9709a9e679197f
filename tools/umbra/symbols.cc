#include "tools/umbra/symbols.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>

#include "tools/umbra/files.h"
#include "umbra/error.h"

namespace umbra::tools {

namespace {

enum Field { kSymbol, kKernel, kFile, kLine, kKind, kFields };
using Definition = std::array<std::string, kFields>;

std::string Text(const Definition& definition) {
  std::string text;
  for (const std::string& field : definition) text += (text.empty() ? "" : "\t") + field;
  return text + '\n';
}

// Several files that include a template may name it by different paths.
bool SamePlace(const Definition& a, const Definition& b) {
  std::error_code ignored;
  return a[kLine] == b[kLine] && (a[kFile] == b[kFile] || std::filesystem::equivalent(a[kFile], b[kFile], ignored));
}

}  // namespace

std::string SymbolsText(const aot::Library& library) {
  std::string text;
  for (const aot::Kernel& kernel : library.kernels)
    if (kernel.function)
      text += Text({kernel.function->symbol, kernel.name,
                    std::filesystem::absolute(kernel.file).lexically_normal().string(), std::to_string(kernel.line),
                    kernel.function->instance ? "instance" : "function"});
  return text;
}

std::optional<std::string> JoinSymbols(const std::vector<std::string>& files) {
  std::map<std::string, Definition> known;
  bool twice = false;
  for (const std::string& file : files) {
    std::istringstream text(ReadFile(file));
    for (std::string line; std::getline(text, line);) {
      Definition one;
      std::istringstream fields(line);
      for (std::string& field : one) std::getline(fields, field, '\t');
      Require(!one[kKind].empty(), file, ": expected a list of functions, as --symbols writes it, got '", line, "'");
      const auto [other, fresh] = known.emplace(one[kSymbol], one);
      if (fresh || (one[kKind] == "instance" && SamePlace(one, other->second))) continue;
      twice = true;
      std::fprintf(
          stderr,
          "%s:%s: error: kernel '%s' is also defined at %s:%s, for the same program; rename one, or put it into a namespace of its own\n",
          one[kFile].c_str(), one[kLine].c_str(), one[kKernel].c_str(), other->second[kFile].c_str(),
          other->second[kLine].c_str());
    }
  }
  if (twice) return std::nullopt;
  std::string all;
  for (const auto& [symbol, definition] : known) all += Text(definition);
  return all;
}

}  // namespace umbra::tools

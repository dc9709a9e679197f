// Identifiers of a generated source: legal, unique, and as close to the user's names as can be.
#ifndef UMBRA_COMPILER_CODEGEN_NAMES_H_
#define UMBRA_COMPILER_CODEGEN_NAMES_H_

#include <set>
#include <string>
#include <string_view>

namespace umbra::codegen {

/// Is it a keyword of C or C++?
bool IsKeyword(std::string_view word);

class Names {
 public:
  /// A fresh identifier like `wanted`, never a keyword, a prelude name or one given out before.
  std::string Make(std::string_view wanted);
  /// Gives out none of these words, which have spaces between them.
  void Leave(std::string_view words);

 private:
  std::set<std::string> taken_;
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_NAMES_H_

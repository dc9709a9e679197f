// The prelude's texts, whole and cut down to what one source needs.
#ifndef UMBRA_COMPILER_CODEGEN_PRELUDE_H_
#define UMBRA_COMPILER_CODEGEN_PRELUDE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace umbra::codegen {

/// A header of the prelude: its name in include directives, its text.
struct EmbeddedFile {
  std::string_view name;
  std::string_view text;
};

/// The headers that generated sources include, in an order in which each follows what it includes.
std::span<const EmbeddedFile> PreludeFiles();

/// Tells this prelude from others.
const std::string& PreludeId();

struct PreludeFile {
  std::string_view name;
  std::string text;
};

/// The headers without the functions and types that `source` does not reach by name: less for a
/// compiler to read, or for a person.
std::vector<PreludeFile> NeededPrelude(std::string_view source);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_PRELUDE_H_

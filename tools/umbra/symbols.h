// What libraries of marked functions define: in one program no two may define the same.
#ifndef UMBRA_TOOLS_UMBRA_SYMBOLS_H_
#define UMBRA_TOOLS_UMBRA_SYMBOLS_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/aot/aot.h"

namespace umbra::tools {

/// The marked functions that `library` defines, a line each: symbol, kernel, place, and whether it is an instance of a
/// template, with tabs between.
std::string SymbolsText(const aot::Library& library);

/// The lists in `files` as one, sorted, each function once. Nothing if a function is defined at two places, or twice
/// without being an instance, which is said on standard error. Throws umbra::Error if a file cannot be read or is no
/// such list.
std::optional<std::string> JoinSymbols(const std::vector<std::string>& files);

}  // namespace umbra::tools

#endif  // UMBRA_TOOLS_UMBRA_SYMBOLS_H_

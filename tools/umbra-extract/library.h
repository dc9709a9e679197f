// Extracted kernels as a library of sources that take the place of the marked functions.
#ifndef UMBRA_TOOLS_UMBRA_EXTRACT_LIBRARY_H_
#define UMBRA_TOOLS_UMBRA_EXTRACT_LIBRARY_H_

#include <string>

#include "compiler/aot/aot.h"
#include "tools/umbra-extract/extract.h"

namespace umbra::extract {

/// The kernels for the CPU; those for other devices stay eager, which is said on standard error.
/// Throws umbra::Error if `targets` has an unknown one.
aot::Library ToLibrary(const Extraction& extraction, const std::string& name, const std::string& targets);

}  // namespace umbra::extract

#endif  // UMBRA_TOOLS_UMBRA_EXTRACT_LIBRARY_H_

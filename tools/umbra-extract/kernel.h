// One marked function as a graph.
#ifndef UMBRA_TOOLS_UMBRA_EXTRACT_KERNEL_H_
#define UMBRA_TOOLS_UMBRA_EXTRACT_KERNEL_H_

#include <clang/AST/Decl.h>
#include <clang/Sema/Sema.h>

#include <optional>

#include <optional>
#include <set>

#include "tools/umbra-extract/extract.h"

namespace umbra::extract {

/// Runs the body of `function` on symbols. What cannot be lowered is shown through Sema's diagnostics at
/// `level`, and nothing is returned. `called` gets the functions that were run, which are canonical.
std::optional<ExtractedKernel> ExtractKernel(clang::Sema* sema, const clang::FunctionDecl* function,
                                             clang::DiagnosticsEngine::Level level,
                                             std::set<const clang::FunctionDecl*>* called);

}  // namespace umbra::extract

#endif  // UMBRA_TOOLS_UMBRA_EXTRACT_KERNEL_H_

// Which target a compile is for.
#ifndef UMBRA_COMPILER_DRIVER_TARGET_H_
#define UMBRA_COMPILER_DRIVER_TARGET_H_

#include <string>

#include "compiler/codegen/source.h"
#include "umbra/compile.h"

namespace umbra {

/// The best target that this CPU runs.
codegen::Target HostTarget();
/// The target called `name`; empty: HostTarget(). Throws umbra::Error if the name is unknown or
/// this CPU lacks the instruction set.
codegen::Target ResolveTarget(const std::string& name);
/// Can this CPU run code for `target`?
bool HostRuns(codegen::Target target);

}  // namespace umbra

#endif  // UMBRA_COMPILER_DRIVER_TARGET_H_

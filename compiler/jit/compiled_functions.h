// Functions of the prelude that were compiled to machine code when Umbra was built. A kernel that calls one gets a copy
// of it: its object stays whole, and LLVM has less to do.
#ifndef UMBRA_COMPILER_JIT_COMPILED_FUNCTIONS_H_
#define UMBRA_COMPILER_JIT_COMPILED_FUNCTIONS_H_

#include <llvm/IR/Module.h>

#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/source.h"

namespace umbra {

/// What a source begins with that may call them: instances of templates that Clang is not to make. Empty if none are at
/// hand for the target (the file is not there, damaged, or of another target or prelude), or the source calls none.
/// Thread-safe.
std::string DeclareCompiledFunctions(const codegen::Source& source, codegen::Target target);

/// Defines those that the module declares.
void CopyCompiledFunctions(llvm::Module* module, codegen::Target target);

/// The object that they are read from, umbra/prelude-TARGET.o beside the library: a step of the build.
std::vector<char> CompileFunctions(codegen::Target target);

}  // namespace umbra

#endif  // UMBRA_COMPILER_JIT_COMPILED_FUNCTIONS_H_

// The prelude as Clang's syntax tree: what all kernels have in common is parsed, and its templates are instantiated for
// the usual packets, when Umbra is built.
#ifndef UMBRA_COMPILER_JIT_PRECOMPILED_H_
#define UMBRA_COMPILER_JIT_PRECOMPILED_H_

#include <llvm/Support/MemoryBuffer.h>

#include <vector>

#include "compiler/jit/front_end.h"

namespace umbra {

/// The files that a precompiled prelude is made of, which have to be there when it is used.
const std::vector<SourceFile>& PrecompiledSources(codegen::Target target);

/// Clang's precompiled header of the prelude. Throws umbra::Error with Clang's words.
std::vector<char> PrecompilePrelude(codegen::Target target);
/// The one that lies beside this library, in umbra/prelude-TARGET.pch; null if there is none. Thread-safe.
const llvm::MemoryBuffer* PrecompiledPrelude(codegen::Target target);
/// From now on there is none: this Clang cannot use it.
void ForgetPrecompiledPrelude(codegen::Target target);

}  // namespace umbra

#endif  // UMBRA_COMPILER_JIT_PRECOMPILED_H_

// The prelude compiled as far as a kernel's text does not matter, when Umbra is built: Clang's syntax tree of it, with
// templates instantiated for the usual packets, and LLVM's code of what kernels call.
#ifndef UMBRA_COMPILER_JIT_PRECOMPILED_H_
#define UMBRA_COMPILER_JIT_PRECOMPILED_H_

#include <llvm/Support/MemoryBuffer.h>

#include <memory>
#include <vector>

#include "compiler/codegen/source.h"
#include "compiler/jit/reader.h"

namespace umbra {

/// What Clang's precompiled header is called among the files.
inline constexpr const char* kPrecompiledTree = "/prelude.pch";

struct PrecompiledPrelude {
  std::unique_ptr<llvm::MemoryBuffer> tree;  ///< Clang's precompiled header
  std::unique_ptr<llvm::MemoryBuffer> code;  ///< bitcode of the functions of operators, each without calls of others
  Files files;  ///< the header, and those that it is made of
};

/// The files of the prelude.
std::vector<SourceFile> PreludeSources();
/// The file umbra/prelude-TARGET.KIND beside this library; null if there is none.
std::unique_ptr<llvm::MemoryBuffer> ReadBeside(codegen::Target target, const char* kind);

/// What lies beside this library as umbra/prelude-TARGET.pch and .bc; null if it does not. Thread-safe.
const PrecompiledPrelude* FindPrecompiledPrelude(codegen::Target target);
/// From now on there is none: this Clang cannot use it.
void ForgetPrecompiledPrelude(codegen::Target target);

}  // namespace umbra

#endif  // UMBRA_COMPILER_JIT_PRECOMPILED_H_

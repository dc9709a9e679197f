// Clang in the process: a source in memory becomes an LLVM module, without a file or a child.
#ifndef UMBRA_COMPILER_JIT_FRONT_END_H_
#define UMBRA_COMPILER_JIT_FRONT_END_H_

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/source.h"

namespace clang {
class FrontendAction;
}

namespace umbra {

/// What -target-cpu and -target-feature say for a target.
std::string TargetCpu(codegen::Target target);
std::vector<std::string> TargetFeatures(codegen::Target target);

/// Clang's word for modules whose values have no names: nobody reads them.
inline constexpr const char* kNoNames = "-discard-value-names";

/// A file in memory.
struct SourceFile {
  std::string name;
  llvm::StringRef text;
};

/// Files in memory, which have to stay there. Threads may read the same ones.
using Files = llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>;
Files FilesInMemory(const std::vector<SourceFile>& files);
/// Those of `files` and one more.
Files WithFile(Files files, const SourceFile& file);

/// Runs one of Clang's actions on files for a target; `last_arguments` follow the usual ones. What Clang says is added
/// to `log`. False if it failed.
bool RunClang(clang::FrontendAction* action, codegen::Target target, Files files,
              const std::vector<std::string>& last_arguments, std::string* log);

/// Clang's unoptimised module of files, in `context`; null if it failed. Functions read from a precompiled header that
/// `bodies` (may be null) defines are declared only.
std::unique_ptr<llvm::Module> ClangModule(llvm::LLVMContext* context, codegen::Target target, Files files,
                                          const std::vector<std::string>& last_arguments, const llvm::Module* bodies,
                                          std::string* log);

struct ParseOptions {
  std::string file = "kernel.cc";      ///< what the source is called
  std::vector<std::string> arguments;  ///< of Clang, besides the usual ones
  bool for_reader = false;             ///< does the module keep the names of values?
  bool whole_prelude = false;          ///< does it have the lines of the prelude's files, nothing left out?
};

/// Parses `source` to an unoptimised module in `context`. Throws umbra::Error with Clang's
/// diagnostics. Threads may parse at the same time, each in a context and with a compiler of its own.
std::unique_ptr<llvm::Module> ParseToModule(const codegen::Source& source, codegen::Target target,
                                            llvm::LLVMContext* context, const ParseOptions& options);

}  // namespace umbra

#endif  // UMBRA_COMPILER_JIT_FRONT_END_H_

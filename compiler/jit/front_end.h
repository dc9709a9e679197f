// A kernel's source becomes an LLVM module, with the prelude as it was precompiled or from its text.
#ifndef UMBRA_COMPILER_JIT_FRONT_END_H_
#define UMBRA_COMPILER_JIT_FRONT_END_H_

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/source.h"

namespace umbra {

/// What -target-cpu and -target-feature say for a target.
std::string TargetCpu(codegen::Target target);
std::vector<std::string> TargetFeatures(codegen::Target target);

struct ParseOptions {
  std::string file = "kernel.cc";  ///< what the source is called
  std::vector<std::string> arguments;  ///< of Clang, besides the usual ones
  bool value_names = false;  ///< does the module keep the names of values?
  bool compiled_functions = false;  ///< are those of compiled_functions.h declared only, where they can be had?
  bool whole_prelude = false;  ///< does it have the lines of the prelude's files, nothing left out?
};

/// Parses `source` to an unoptimised module in `context`. Throws umbra::Error with Clang's
/// diagnostics. Threads may parse at the same time, each in a context of its own.
std::unique_ptr<llvm::Module> ParseToModule(const codegen::Source& source, codegen::Target target,
                                            llvm::LLVMContext* context, const ParseOptions& options);

}  // namespace umbra

#endif  // UMBRA_COMPILER_JIT_FRONT_END_H_

// LLVM module to optimised module to machine code.
#ifndef UMBRA_COMPILER_JIT_MACHINE_CODE_H_
#define UMBRA_COMPILER_JIT_MACHINE_CODE_H_

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <vector>

#include "compiler/codegen/source.h"

namespace umbra {

std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(codegen::Target target);

/// Runs the optimiser in place.
void Optimise(llvm::Module* module, llvm::TargetMachine* machine, codegen::Target target);

/// A relocatable object, or assembly text.
std::vector<char> Emit(llvm::Module* module, llvm::TargetMachine* machine, bool assembly);

}  // namespace umbra

#endif  // UMBRA_COMPILER_JIT_MACHINE_CODE_H_

// LLVM module to optimised module to machine code.
#ifndef UMBRA_COMPILER_JIT_MACHINE_CODE_H_
#define UMBRA_COMPILER_JIT_MACHINE_CODE_H_

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <utility>
#include <vector>

#include "compiler/codegen/source.h"

namespace umbra {

/// LLVM's x86 back end, ready. Whatever looks it up in LLVM's registry calls this first: registering is not
/// safe beside a look-up in another thread.
const llvm::Target* X86();

/// A target machine lent to one thread at a time; it goes back to a pool of the process, with the
/// tables that LLVM has set up in it (more than a millisecond of work). A fast one contracts products and sums.
class BorrowedMachine {
 public:
  BorrowedMachine(codegen::Target target, bool fast);
  ~BorrowedMachine();
  BorrowedMachine(const BorrowedMachine&) = delete;
  BorrowedMachine& operator=(const BorrowedMachine&) = delete;
  llvm::TargetMachine* get() const { return machine_.get(); }

 private:
  std::pair<codegen::Target, bool> kind_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

/// Runs the optimiser in place.
void Optimise(llvm::Module* module, llvm::TargetMachine* machine, codegen::Target target);

/// What Optimise would do first to the functions of a prelude, so that it need not: they call each other no more. (More
/// passes here would spare a kernel more, but in its place they see more: Black-Scholes is 3 % slower then.)
void SimplifyPrelude(llvm::Module* module, llvm::TargetMachine* machine);

/// A relocatable object, or assembly text.
std::vector<char> Emit(llvm::Module* module, llvm::TargetMachine* machine, bool assembly);

}  // namespace umbra

#endif  // UMBRA_COMPILER_JIT_MACHINE_CODE_H_

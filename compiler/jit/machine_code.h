// LLVM module to optimised module to machine code.
#ifndef UMBRA_COMPILER_JIT_MACHINE_CODE_H_
#define UMBRA_COMPILER_JIT_MACHINE_CODE_H_

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/source.h"

namespace umbra {

/// LLVM's x86 back end, ready. Whatever looks it up in LLVM's registry calls this first: registering is not
/// safe beside a look-up in another thread.
const llvm::Target* X86();

/// A target machine lent to one thread at a time; it goes back to a pool of the process, with the tables and passes
/// that LLVM has set up for it (more than a millisecond of work). A fast one contracts products and sums.
class BorrowedMachine {
 public:
  BorrowedMachine(codegen::Target target, bool fast);
  ~BorrowedMachine();
  BorrowedMachine(const BorrowedMachine&) = delete;
  BorrowedMachine& operator=(const BorrowedMachine&) = delete;
  llvm::TargetMachine* get() const;
  /// A relocatable object.
  std::vector<char> Emit(llvm::Module* module) const;

 private:
  struct Machine;
  struct Pool;
  static Pool& Idle();

  std::pair<codegen::Target, bool> kind_;
  std::unique_ptr<Machine> machine_;
};

/// Runs the optimiser in place.
void Optimise(llvm::Module* module, llvm::TargetMachine* machine, codegen::Target target);

/// What Optimise would do first to the functions of a prelude, so that it need not: they call each other no more. (More
/// passes here would spare a kernel more, but in its place they see more: Black-Scholes is 3 % slower then.)
void SimplifyPrelude(llvm::Module* module, llvm::TargetMachine* machine);

/// Assembly text.
std::string Assembly(llvm::Module* module, llvm::TargetMachine* machine);

}  // namespace umbra

#endif  // UMBRA_COMPILER_JIT_MACHINE_CODE_H_

// Loops whose steps wait for each other do a part of the next iteration beside their own.
#ifndef UMBRA_COMPILER_JIT_PIPELINE_LOOPS_H_
#define UMBRA_COMPILER_JIT_PIPELINE_LOOPS_H_

#include <llvm/IR/Module.h>

namespace umbra {

/// Software pipelining of loops over groups of packets, `register_bits` each, with a long chain of steps, such as a
/// polynomial. A processor looks about a hundred instructions ahead for one that waits for none, and such a group is
/// as many; so the first half of the next iteration is put before the second half of this one, which does not need it.
/// No instruction is added but for what counts, and results are the same to the bit.
///
/// An iteration of such a loop must not read memory that another writes: those of kernels do not, as operands that
/// share memory do so index by index.
void PipelineLoops(llvm::Module* module, int register_bits);

}  // namespace umbra

#endif  // UMBRA_COMPILER_JIT_PIPELINE_LOOPS_H_

// One kernel of a plan as C++ for a CPU.
#ifndef UMBRA_COMPILER_CODEGEN_CPU_KERNEL_H_
#define UMBRA_COMPILER_CODEGEN_CPU_KERNEL_H_

#include "compiler/codegen/source.h"
#include "compiler/codegen/writer.h"

namespace umbra::codegen {

/// Writes the function of `kernel`; returns its name.
std::string EmitKernel(const plan::Plan& plan, const plan::Kernel& kernel, const SourceOptions& options, Writer* out);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CPU_KERNEL_H_

// Machine code of kernels, from the process's memory, the disk cache or a compiler, in this order.
#ifndef UMBRA_COMPILER_DRIVER_KERNEL_CACHE_H_
#define UMBRA_COMPILER_DRIVER_KERNEL_CACHE_H_

#include "compiler/codegen/source.h"
#include "umbra/compile.h"

namespace umbra {

/// The code of `kernel`, whose source is of the form `form`, by the engine of `options` and with their disk cache.
/// Kernels that differ only in names are one entry. Thread-safe.
runtime::KernelCode MakeKernelCode(const plan::Plan& plan, const plan::Kernel& kernel,
                                   const codegen::SourceOptions& form, const CompileOptions& options);

/// Counts a kernel that another way than MakeKernelCode has compiled, or found in the disk cache.
void CountKernel(bool compiled);

}  // namespace umbra

#endif  // UMBRA_COMPILER_DRIVER_KERNEL_CACHE_H_

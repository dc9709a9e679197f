// Plans on GPUs: what of a kernel is generated and compiled when a launch asks for it.
#ifndef UMBRA_COMPILER_DRIVER_CUDA_H_
#define UMBRA_COMPILER_DRIVER_CUDA_H_

#include <memory>

#include "compiler/plan/plan.h"
#include "runtime/cuda_kernel.h"
#include "umbra/compile.h"

namespace umbra {

/// Throws umbra::Error, with what to do, if graphs cannot be compiled for a GPU here: no driver, no device, no
/// NVRTC, or options that only a CPU has.
void RequireCuda(const CompileOptions& options);

/// The kernel for GPUs, with the arithmetic of options.math; each variant is compiled for an architecture when it is
/// first asked for.
std::shared_ptr<const runtime::CudaKernel> MakeCudaKernel(std::shared_ptr<const plan::Plan> plan,
                                                          const plan::Kernel* kernel, const CompileOptions& options);

}  // namespace umbra

#endif  // UMBRA_COMPILER_DRIVER_CUDA_H_

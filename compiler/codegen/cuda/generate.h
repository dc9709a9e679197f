// One kernel of a plan as CUDA C++.
#ifndef UMBRA_COMPILER_CODEGEN_CUDA_GENERATE_H_
#define UMBRA_COMPILER_CODEGEN_CUDA_GENERATE_H_

#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/plan.h"
#include "umbra/cuda_launch.h"

namespace umbra::codegen {

struct CudaSource {
  std::string kernel;  ///< the text of the kernel, in namespace umbra::simd
  std::string function;  ///< extern "C" name
  std::string finish;  ///< of the second pass; empty if the form has none
  /// A translation unit: the part of the prelude that the kernel needs, then the kernel.
  std::string Text() const;
};

/// What launches have to know of `kernel` (see umbra/cuda_launch.h).
runtime::CudaSchedule ScheduleForCuda(const plan::Plan& plan, const plan::Kernel& kernel);

/// The source of `kernel` in the form and variant that a launch asks for; in `fast` arithmetic it has functions of the
/// GPU's own.
CudaSource GenerateCuda(const plan::Plan& plan, const plan::Kernel& kernel, const runtime::CudaVariant& variant,
                        bool fast = false);

/// The variants to compile where launches are not known yet: each that PlanCudaLaunch may choose is there, or its
/// General() is.
std::vector<runtime::CudaVariant> CudaVariants(const runtime::KernelSignature& signature,
                                               const runtime::CudaSchedule& schedule);

/// What `kernels`, texts of CudaSource, need of the prelude, as one text without includes.
std::string CudaPrelude(std::string_view kernels);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CUDA_GENERATE_H_

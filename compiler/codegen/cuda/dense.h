// What the plan alone says of a kernel's launches on dense, row-major operands: the variant that fits, and a C++
// function that launches it.
#ifndef UMBRA_COMPILER_CODEGEN_CUDA_DENSE_H_
#define UMBRA_COMPILER_CODEGEN_CUDA_DENSE_H_

#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "umbra/cuda_launch.h"

namespace umbra::codegen {

/// A parameter of a launching function: an address, an extent as long long, or a scalar.
struct LaunchParameter {
  enum class Kind { kBuffer, kExtent, kScalar };
  Kind kind{};
  int index = 0;  ///< of the plan's buffers, symbols or scalars
};

/// `cudaError_t NAME_launch(...)`, for nvcc.
struct CudaHost {
  std::string text;  ///< the function
  std::string function;  ///< its extern "C" name
  std::vector<LaunchParameter> parameters;  ///< but the last, a cudaStream_t
};

/// The variant that a dense, aligned call would take, by what the plan says: the one to show.
runtime::CudaVariant TypicalCudaVariant(const plan::Plan& plan, const plan::Kernel& kernel);

/// The function that launches `function`, the code of the kernel in this variant, which does not split.
CudaHost LaunchOfCuda(const plan::Plan& plan, const plan::Kernel& kernel, const runtime::CudaVariant& variant,
                      const std::string& function);

/// `functions` of the plan's kernels, as the end of the file that has those: seen by nvcc, not by NVRTC.
std::string CudaHostPart(const plan::Plan& plan, const std::vector<CudaHost>& functions);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CUDA_DENSE_H_

// Kernels that were compiled ahead of time, on GPUs.
#ifndef UMBRA_RUNTIME_CUDA_AHEAD_OF_TIME_H_
#define UMBRA_RUNTIME_CUDA_AHEAD_OF_TIME_H_

#include <memory>

#include "umbra/kernel_desc.h"
#include "umbra/program.h"

namespace umbra::runtime {

/// `program` of `kernel`, with the code that kernel.gpu has for it. Throws umbra::Error if that is damaged.
std::shared_ptr<const Program> ProgramOnGpu(Program program, const umbra_kernel_desc& kernel);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_CUDA_AHEAD_OF_TIME_H_

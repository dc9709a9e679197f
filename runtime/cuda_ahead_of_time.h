// Kernels that were compiled ahead of time, on GPUs.
#ifndef UMBRA_RUNTIME_CUDA_AHEAD_OF_TIME_H_
#define UMBRA_RUNTIME_CUDA_AHEAD_OF_TIME_H_

#include <memory>

#include "umbra/kernel_desc.h"
#include "umbra/program.h"

namespace umbra::runtime {

/// The program of a kernel that has code for GPUs, with that code. Throws umbra::Error if it is damaged.
std::shared_ptr<const Program> ProgramOnGpu(const umbra_kernel_desc& kernel);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_CUDA_AHEAD_OF_TIME_H_

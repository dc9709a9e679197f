// Positions are i64 values of a plan, and 64-bit integers are slow on GPUs: where a launch finds that 32 bits hold them,
// it takes a variant that computes them as i32.
#ifndef UMBRA_COMPILER_CODEGEN_CUDA_POSITIONS_H_
#define UMBRA_COMPILER_CODEGEN_CUDA_POSITIONS_H_

#include <vector>

#include "compiler/plan/plan.h"
#include "umbra/cuda_launch.h"

namespace umbra::codegen {

/// The i64 values of `kernel` that are made of indices, extents and constants alone, or are data between two such values:
/// those of which a launch can tell how large they get.
std::vector<runtime::CudaPosition> PositionsOf(const plan::Kernel& kernel);

/// `kernel` with these as i32 values; what else reads one has it as i64.
plan::Kernel WithNarrowPositions(const plan::Kernel& kernel);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CUDA_POSITIONS_H_

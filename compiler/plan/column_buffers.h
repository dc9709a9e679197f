// What the phases of a kernel of columns go through again, kept a block of columns at a time.
#ifndef UMBRA_COMPILER_PLAN_COLUMN_BUFFERS_H_
#define UMBRA_COMPILER_PLAN_COLUMN_BUFFERS_H_

#include <vector>

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Elements that are kept: those of an operand, as the first phase reads them, or what a phase would keep in the place
/// of a result (keep_in_results.h).
struct KeptColumns {
  int operand = 0;  ///< of the kernel
  int buffer = 0;  ///< index into KernelSignature::column_buffers
  int first = 0;  ///< the phase that keeps them; later ones read them there
};

/// What a kernel keeps whose packets go across what it reduces, and its buffers: what is read by several phases, at the
/// same point by each. Empty: nothing, or it is no such kernel.
std::vector<KeptColumns> FindKeptColumns(const Plan& plan, const Kernel& kernel, std::vector<DType>* buffers);

/// Do elements lie side by side along what the kernel reduces, so that its columns are rows?
bool ReducesAlongRows(const Kernel& kernel);

/// Do columns have so many steps, if these are known, that a kernel walks them by blocks, as memory lies?
bool HasLongColumns(const Kernel& kernel);

/// Sets KernelSignature::column_buffers.
void FindColumnBuffers(Plan* plan);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_COLUMN_BUFFERS_H_

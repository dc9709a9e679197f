// What the threads that work on a row keep of it from phase to phase.
#ifndef UMBRA_COMPILER_CODEGEN_CUDA_KEPT_H_
#define UMBRA_COMPILER_CODEGEN_CUDA_KEPT_H_

#include <map>
#include <vector>

#include "compiler/plan/plan.h"

namespace umbra::codegen {

struct KeptRows {
  std::vector<DType> types;  ///< of arrays with an element for each of the row
  std::map<int, int> of_operand;  ///< the arrays of inputs
  std::vector<int> of_row_buffer;  ///< those of the plan's row buffers
};

/// The plan's row buffers and, where shared memory has room for them, inputs that several phases read: a device whose
/// threads are all at work has more rows under way than its caches hold. An array whose input is read no more serves
/// again.
KeptRows RowsKept(const plan::Plan& plan, const plan::Kernel& kernel, bool with_inputs);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CUDA_KEPT_H_

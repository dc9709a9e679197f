// Running the product of matrices, or of batches of them, that a GemmStep says.
#ifndef UMBRA_RUNTIME_RUN_GEMM_H_
#define UMBRA_RUNTIME_RUN_GEMM_H_

#include "umbra/function.h"

namespace umbra::runtime {

/// c = alpha * op(a) * op(b) in the memory given, of any strides: what BLAS cannot take is copied.
void RunGemm(const GemmStep& step, const TensorRef& a, const TensorRef& b, const TensorRef& c);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_RUN_GEMM_H_

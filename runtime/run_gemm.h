// Running the product of matrices, or of batches of them, that a GemmStep says.
#ifndef UMBRA_RUNTIME_RUN_GEMM_H_
#define UMBRA_RUNTIME_RUN_GEMM_H_

#include <vector>

#include "umbra/function.h"

namespace umbra::runtime {

/// c = alpha * op(a) * op(b) in the memory given, of any strides: what BLAS cannot take is copied.
void RunGemm(const GemmStep& step, const TensorRef& a, const TensorRef& b, const TensorRef& c);

/// The same product, turned: the right factor gives its rows, the left one its columns. Its result is `c` turned.
GemmStep Turned(const GemmStep& step);

/// The dimension of a product's operands that its rows move along, or -1.
struct RowDims {
  int a = -1, b = -1, c = -1;
};
RowDims RowDimsOf(const GemmStep& step, const std::vector<TensorRef>& buffers);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_RUN_GEMM_H_

// The operands of a matrix product.
#ifndef UMBRA_RUNTIME_MATRIX_H_
#define UMBRA_RUNTIME_MATRIX_H_

#include <utility>

#include "umbra/program.h"

namespace umbra::runtime {

/// Extents of a matrix, and the elements from one row or column to the next.
struct MatrixShape {
  index_t rows = 1, columns = 1, row_stride = 1, column_stride = 1;
};

/// A tensor of rank 1, 2, or 3, a batch of matrices, as GemmStep sees it, transposed if that is asked for. A vector is
/// a row.
inline MatrixShape AsMatrix(const TensorRef& tensor, bool transpose) {
  MatrixShape m;
  const std::size_t rank = tensor.shape.size();
  if (rank > 1) {
    m = {tensor.shape[rank - 2], tensor.shape[rank - 1], tensor.stride[rank - 2], tensor.stride[rank - 1]};
  } else {
    m.columns = m.row_stride = tensor.shape[0];
    m.column_stride = tensor.stride[0];
  }
  if (transpose) {
    std::swap(m.rows, m.columns);
    std::swap(m.row_stride, m.column_stride);
  }
  return m;
}

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_MATRIX_H_

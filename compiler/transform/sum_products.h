// Products of matrices that a generated kernel computes faster than a BLAS would.
#ifndef UMBRA_COMPILER_TRANSFORM_SUM_PRODUCTS_H_
#define UMBRA_COMPILER_TRANSFORM_SUM_PRODUCTS_H_

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// Rows, columns and steps of matrices so small that a batch of their products is no work for a BLAS.
inline constexpr index_t kSmallMatrix = 12;
/// Columns and rows of a matrix, and elements of it, by which products of many rows are none.
inline constexpr index_t kFewColumns = 6, kFewSteps = 24, kFewProducts = 64;

/// Writes products as the sums that they are where their extents are known and such that a kernel is faster:
/// batches of small matrices and, but on a GPU, many rows by a matrix of a few columns and steps, a few columns by a
/// few others, few rows or columns (runtime::SumIsFaster) of what is elementwise work on memory, and vectors by
/// matrices that are such work; and outer products of vectors, which sum nothing. What they read and what reads them
/// then fuses with them like with any other reduction or map.
Graph SumProducts(const Graph& graph, bool on_gpu);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_SUM_PRODUCTS_H_

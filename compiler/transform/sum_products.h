// Products of matrices that a generated kernel computes faster than a BLAS would.
#ifndef UMBRA_COMPILER_TRANSFORM_SUM_PRODUCTS_H_
#define UMBRA_COMPILER_TRANSFORM_SUM_PRODUCTS_H_

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// Writes products as the sums that they are where their extents are known and such that a kernel is faster:
/// batches of small matrices and, but on a GPU, few rows or columns (runtime::SumIsFaster) of what is elementwise work on
/// memory, and vectors by matrices that are such work; and outer products of vectors, which sum nothing. What they read and what
/// reads them then fuses with them like with any other reduction or map.
Graph SumProducts(const Graph& graph, bool on_gpu);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_SUM_PRODUCTS_H_

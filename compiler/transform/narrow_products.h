// Products of 16-bit floats as a GPU's library has them.
#ifndef UMBRA_COMPILER_TRANSFORM_NARROW_PRODUCTS_H_
#define UMBRA_COMPILER_TRANSFORM_NARROW_PRODUCTS_H_

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// dot(tcast<f32>(a), tcast<f32>(b)) of two f16 or two bf16 multiplies a and b as they are and sums in f32: the same
/// numbers without copies of f32. Where all that becomes of it is tcast to a's dtype, it is rounded to that at once.
Graph NarrowProducts(const Graph& graph);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_NARROW_PRODUCTS_H_

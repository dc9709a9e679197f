// Shapes and types of graph values as the reader sees them: f32[?0, 1024].
#ifndef UMBRA_COMPILER_GRAPH_SHAPE_TEXT_H_
#define UMBRA_COMPILER_GRAPH_SHAPE_TEXT_H_

#include <string>

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// `?0` or `1024`.
std::string DimensionText(const Graph& graph, const Dimension& dim);
/// `f32[?0, 1024]`, or `f32` for rank 0.
std::string TypeText(const Graph& graph, DType dtype, const PartialShape& shape);
/// A value with its name, if it has one: `'x' f32[?0, 1024]`.
std::string Describe(const Graph& graph, int id);
/// All dtypes, as an error message lists them: `f32, f64, ... or bool`.
std::string DTypeNames();

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_SHAPE_TEXT_H_

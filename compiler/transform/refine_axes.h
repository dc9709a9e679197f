// Axes that reshapes divide and join, as fine as all of them need.
#ifndef UMBRA_COMPILER_TRANSFORM_REFINE_AXES_H_
#define UMBRA_COMPILER_TRANSFORM_REFINE_AXES_H_

#include <optional>

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// Where values are elementwise functions, broadcasts, reductions and reshapes of each other, their axes are divided
/// until each reshape is of the same axes on both sides, and is no longer there: a normalisation of groups of channels,
/// `reshape(x, n, 8, 3136)` of x[n, 32, 28, 28] and back, is one over [n, 8, 4, 28, 28] throughout. What is left are
/// gathers of inputs that divide axes, and outputs that join them (PartsOfSource, PartsOfResult). The points of
/// gathers that divide them already, as patches do, are divided likewise where reshapes alone read them; what they read
/// keeps the axes that it has, as do other gathers, products and transposes. A reshape that would have to divide those
/// stays.
Graph RefineAxes(const Graph& graph);

/// Axes that reductions leave, and whose positions are divided by numbers alone, as those of the points of patches and
/// of complex numbers side by side are, become one for each quotient: within each of them, what is gathered follows
/// each other. The last of them has columns for packets, or a few of which positions ask which one it is, and which are
/// taken apart (columns_apart.h). Nothing if there are none.
std::optional<Graph> DivideAxes(const Graph& graph);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_REFINE_AXES_H_

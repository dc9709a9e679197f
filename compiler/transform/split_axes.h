// Reductions over axes that were joined of several.
#ifndef UMBRA_COMPILER_TRANSFORM_SPLIT_AXES_H_
#define UMBRA_COMPILER_TRANSFORM_SPLIT_AXES_H_

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// A reduction over an axis that a gather has joined of neighbouring ones of its source, as a reshape does, is one over
/// all of these, and reads the source where it lies: no position has to be divided. It takes that nothing but such
/// reductions reads the gather, or what is computed of it, so that what is one loop stays one.
Graph SplitAxes(const Graph& graph);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_SPLIT_AXES_H_

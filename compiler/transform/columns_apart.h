// Reductions that leave a few columns, of what those have in common.
#ifndef UMBRA_COMPILER_TRANSFORM_COLUMNS_APART_H_
#define UMBRA_COMPILER_TRANSFORM_COLUMNS_APART_H_

#include <optional>

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// A reduction whose result has rows of at most kMostColumns, as forces on points and complex numbers are, becomes one
/// of each column, put together, if what is reduced is computed of values without columns (the distance of two points,
/// for each coordinate of a force) or chosen by which column it is (the real part of a product). Its packets go along
/// what is reduced then, and what columns have in common is computed once. Nothing if there is no such reduction. For
/// CPUs.
std::optional<Graph> TakeColumnsApart(const Graph& graph);

inline constexpr index_t kMostColumns = 4;

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_COLUMNS_APART_H_

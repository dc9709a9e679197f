// Single elements of computed values along one of their axes.
#ifndef UMBRA_COMPILER_TRANSFORM_COLUMN_OF_H_
#define UMBRA_COMPILER_TRANSFORM_COLUMN_OF_H_

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// Columns of the values of a graph, each made once.
class Columns {
 public:
  /// The graph outlives it.
  explicit Columns(Graph* graph) : graph_(*graph) {}

  /// Element k of the value along the axis, which it does not have then: computed as the value is of the columns of
  /// what that is computed from, down to those of memory, which are gathers.
  int Of(int id, int axis, index_t k);

  /// The values with dimensions that such columns are computed of, the value itself too, down to those that are
  /// computed of no others element by element. Nothing if they are too many for columns of them to be worth it.
  std::optional<std::vector<int>> ValuesOf(int id) const;

 private:
  int Term(int id, int axis, index_t k);
  int MakeTerm(Node node, int id, int axis, index_t k);
  int InMemory(int id, int axis, index_t k);
  PartialShape Without(const PartialShape& shape, int axis) const;

  Graph& graph_;
  std::map<std::tuple<int, int, index_t>, int> terms_;
};

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_COLUMN_OF_H_

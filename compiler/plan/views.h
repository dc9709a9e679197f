// Values that are others with more dimensions, and live in their memory.
#ifndef UMBRA_COMPILER_PLAN_VIEWS_H_
#define UMBRA_COMPILER_PLAN_VIEWS_H_

#include <map>
#include <vector>

#include "compiler/graph/graph.h"

namespace umbra::plan {

/// No position has to be computed for them, and packets go along any of their axes.
struct Views {
  /// Gathers that divide dimensions of what they read, as reshapes to more dimensions do, and of each of their
  /// dimensions the one that it is a part of. They are read where that lies, by strides.
  std::map<int, std::vector<int>> reads;
  /// Gathers that join dimensions and are in memory, and of each dimension of what they read the one of theirs. That is
  /// written where they lie.
  std::map<int, std::vector<int>> writes;

  /// Is the node one of them, which no kernel computes?
  bool Has(int node) const { return reads.count(node) != 0 || writes.count(node) != 0; }
};

Views FindViews(const graph::Graph& graph);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_VIEWS_H_

// Values that are others with other dimensions, and live in their memory.
#ifndef UMBRA_COMPILER_PLAN_VIEWS_H_
#define UMBRA_COMPILER_PLAN_VIEWS_H_

#include <cstdint>
#include <map>

#include "compiler/graph/graph.h"

namespace umbra::plan {

/// How a value has the elements of other memory, as runtime::Buffer has it.
struct View {
  std::uint32_t goes_on = 0, place_goes_on = 0;

  bool operator==(const View& other) const { return goes_on == other.goes_on && place_goes_on == other.place_goes_on; }
};

/// No position has to be computed for them, and packets go along any of their axes.
struct Views {
  /// Gathers that divide dimensions of what they read, as reshapes to more dimensions do, and reshapes of inputs. They
  /// are read where that lies, by strides.
  std::map<int, View> reads;
  /// Gathers that join dimensions and are in memory, and outputs that are reshapes. What they read, by this view, is
  /// written where they lie.
  std::map<int, View> writes;

  /// Is the node one of them, which no kernel computes?
  bool Has(int node) const { return reads.count(node) != 0 || writes.count(node) != 0; }
};

Views FindViews(const graph::Graph& graph);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_VIEWS_H_

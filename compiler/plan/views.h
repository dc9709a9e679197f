// Values that are others with other dimensions, and live in their memory.
#ifndef UMBRA_COMPILER_PLAN_VIEWS_H_
#define UMBRA_COMPILER_PLAN_VIEWS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "compiler/graph/graph.h"

namespace umbra::plan {

/// How a value has the elements of other memory, as runtime::Buffer has it.
struct View {
  std::uint32_t goes_on = 0, place_goes_on = 0;
  int part = -1;
  Dimension begin;

  /// Has every point of both the same place in their memory?
  bool IsAlike(const View& other) const {
    return goes_on == other.goes_on && place_goes_on == other.place_goes_on && part < 0 && other.part < 0;
  }
};

/// A value whose memory is a view of another's.
struct Written {
  int node = 0;
  View view;
};

/// No position has to be computed for them, and packets go along any of their axes.
struct Views {
  /// Gathers that divide dimensions of what they read, as reshapes to more dimensions do, and reshapes of inputs. They
  /// are read where that lies, by strides.
  std::map<int, View> reads;
  /// Gathers that join dimensions and are in memory, outputs that are reshapes, and what in memory is put together of
  /// several values. What they read, by these views, is written where they lie.
  std::map<int, std::vector<Written>> writes;

  /// Is the node one of them, which no kernel computes?
  bool Has(int node) const { return reads.count(node) != 0 || writes.count(node) != 0; }
  /// What such a node has its elements from.
  std::vector<int> SourcesOf(const graph::Graph& graph, int node) const;
};

Views FindViews(const graph::Graph& graph);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_VIEWS_H_

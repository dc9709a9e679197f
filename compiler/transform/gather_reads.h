// How often gathers read what they read.
#ifndef UMBRA_COMPILER_TRANSFORM_GATHER_READS_H_
#define UMBRA_COMPILER_TRANSFORM_GATHER_READS_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/transform/position_forms.h"

namespace umbra::graph {

/// What takes more additions for an element is dear: it is not computed again for each reader.
inline constexpr double kCheap = 4;

/// Rows of fewer elements have what is dear computed to memory before they gather it. Open extents are taken to be
/// long.
inline constexpr index_t kLongRow = 32;

/// Does the broadcast repeat its operand for each of several rows, rather than each element of it?
bool IsForRows(const Node& broadcast);

/// Outputs, by place among them, and inputs, by name.
using OutputInputPairs = std::set<std::pair<std::size_t, std::string>>;

/// The outputs that gather from an input of their own dtype and shape: they may not be written over that.
OutputInputPairs GatheredByAlike(const Graph& graph);

/// The sources of a graph's gathers; the graph outlives it.
class GatherReads {
 public:
  /// `apart`: outputs that no call can write over the input.
  GatherReads(const Graph& graph, OutputInputPairs apart);

  bool IsOutput(int id) const;
  /// Is the source of `gather`, a dear one, computed no more often, and in packets as before, if it is where this
  /// gather and perhaps others read it?
  bool IsReadOnce(const Node& gather) const;
  /// Do others compute so much of what the source is made of, too, that to keep it costs less than to compute that for
  /// each of them? The planes of a tensor that are put together of one another's sums are such.
  bool SharesWork(int source) const;
  /// Would most of the source of `gather`, which exchanges axes, be read across the order of memory? To turn it by
  /// tiles first is faster.
  bool IsBetterTurned(const Node& gather);

 private:
  struct Size {
    double extent;
    std::set<int> open;  ///< symbols that it follows from
  };

  /// So many elements for each index of the `outer` first axes.
  struct Few {
    index_t count;
    std::size_t outer;
  };

  std::optional<Few> ElementsOfFew(const Node& gather) const;
  std::optional<std::size_t> AxisOf(int id) const;
  std::optional<std::set<int>> EvenAxes(int position) const;
  std::optional<int> UnitAxis(int position) const;
  bool ReadsNoneTwice(const Node& gather) const;
  std::set<int> InnermostDims(int source) const;
  int LastLongAxis(const PartialShape& shape) const;
  bool GoesInRuns(int position, int axis);
  bool FollowsFromData(int position) const;
  bool JoinsOthers(int source) const;
  std::set<int> MadeOf(int value) const;
  std::optional<index_t> FewOf(const PartialShape& shape, std::size_t outer) const;
  bool SharesDearValues(int source, const std::optional<Few>& few) const;
  bool MayBeWrittenOver(int source) const;
  double PartOf(const PartialShape& above, const PartialShape& below);
  std::optional<double> Quotient(const PartialShape& above, const PartialShape& below);
  double Elements(const PartialShape& shape, std::set<int>* open);
  Size SizeOf(const Dimension& dim);

  const Graph& source_;
  const OutputInputPairs apart_;
  std::vector<double> reads_;  ///< by value: how often each element would be computed where it is read, on average
  std::vector<int> readers_;  ///< by value: how many read it
  std::map<int, Size> sizes_;  ///< by symbol
  PositionForms forms_{source_};
};

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_GATHER_READS_H_

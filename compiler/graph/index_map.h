// Index maps as graph nodes: the definitions of umbra/index_map.h, run with symbolic positions.
#ifndef UMBRA_COMPILER_GRAPH_INDEX_MAP_H_
#define UMBRA_COMPILER_GRAPH_INDEX_MAP_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"

namespace umbra::graph {

/// A row of umbra/index_maps.def.
struct IndexMapInfo {
  std::string_view name;  ///< "flip", or "pool<maximum>"
  std::string_view form, doc;
  int sources;
  int params;  ///< -1: any number
  bool (*of_one_shape)();  ///< have all sources one shape, as the parts of pairs have?
  int index_source;  ///< the source that holds positions, of a dtype of its own; -1 if none does
  std::optional<DType> result;  ///< the dtype of the elements, where it is not that of the sources
  bool (*open)(int k);  ///< may number k be known at the call only?
  int (*build)(Graph* graph, std::string_view name, const std::vector<int>& sources,
               const std::vector<Dimension>& params, DType dtype);
};
std::span<const IndexMapInfo> IndexMaps();
const IndexMapInfo* FindIndexMap(std::string_view name);
/// The reducers that a map takes, "sum, maximum or minimum" for "pool"; empty if it takes none.
std::string ReducersOf(std::string_view name);
/// Throws umbra::Error for a `name` such as "pool" or "pool<mean>" that lacks a reducer of its map.
void RequireReducer(std::string_view name);

/// The node of map `name` on `sources`, or of `dtype` if it has none. Dynamic `params` have symbols of the
/// graph. Throws umbra::Error if it is unknown or does not fit.
int BuildIndexMap(Graph* graph, std::string_view name, const std::vector<int>& sources,
                  const std::vector<Dimension>& params, DType dtype);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_INDEX_MAP_H_

// Index maps as graph nodes: the definitions of umbra/index_map.h, run with symbolic positions.
#ifndef UMBRA_COMPILER_GRAPH_INDEX_MAP_H_
#define UMBRA_COMPILER_GRAPH_INDEX_MAP_H_

#include <optional>
#include <span>
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
  int (*build)(Graph* graph, const std::vector<int>& sources, const std::vector<index_t>& params,
               DType dtype);
};
std::span<const IndexMapInfo> IndexMaps();
const IndexMapInfo* FindIndexMap(std::string_view name);

/// The node of map `name` on `sources`, or of `dtype` if it has none. Throws umbra::Error if it is
/// unknown or does not fit.
int BuildIndexMap(Graph* graph, std::string_view name, const std::vector<int>& sources,
                  const std::vector<index_t>& params, DType dtype);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_INDEX_MAP_H_

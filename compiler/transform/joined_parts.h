// What a concatenation is put together of.
#ifndef UMBRA_COMPILER_TRANSFORM_JOINED_PARTS_H_
#define UMBRA_COMPILER_TRANSFORM_JOINED_PARTS_H_

#include <map>
#include <set>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/transform/position_forms.h"

namespace umbra::graph {

/// The elements of `source`, all of them, from index `begin` of dimension `dim` on.
struct JoinedPart {
  int gather = 0;  ///< the node that reads them
  int source = 0;
  int dim = 0;
  Dimension begin;
};

/// The parts of a node that joins whole values along one dimension, one after the other, if each can be written where
/// it lies in that; empty if it does something else, if a part gathers itself, or if what lies side by side of it is
/// too short. `forms` are of `graph`.
std::vector<JoinedPart> PartsOfJoin(const Graph& graph, int id, PositionForms* forms);

/// By node: is it in memory, whatever a plan chooses, as an output or as what a product reads?
std::vector<bool> InMemory(const Graph& graph);

/// The parts of each value in memory that has some, by node.
std::map<int, std::vector<JoinedPart>> JoinsInMemory(const Graph& graph, PositionForms* forms);

/// The gathers of those of which two parts, far from each other in memory, read the same elements: one kernel that
/// writes both reads these once.
std::set<int> GathersOfSharedParts(const Graph& graph);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_JOINED_PARTS_H_

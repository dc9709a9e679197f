// Gathers that change nothing but how many dimensions there are.
#ifndef UMBRA_COMPILER_TRANSFORM_AXIS_PARTS_H_
#define UMBRA_COMPILER_TRANSFORM_AXIS_PARTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/transform/position_forms.h"

namespace umbra::graph {

/// If the gather divides dimensions of its source into parts that follow each other, as a reshape to more dimensions
/// does: of each of its dimensions the one of the source that it is a part of, ascending. Dimensions of one element
/// divide nothing. `forms` are of `graph`.
std::optional<std::vector<int>> PartsOfSource(const Graph& graph, const Node& gather, PositionForms* forms);

/// If it joins neighbouring dimensions of its source, as a reshape to fewer dimensions does: of each dimension of the
/// source the one of the gather that it is a part of, ascending.
std::optional<std::vector<int>> PartsOfResult(const Graph& graph, const Node& gather, PositionForms* forms);

/// Does the gather have the elements of its source in their order, all or the first ones, so that each has the place,
/// counted from the first, that it has there?
bool IsReshape(const Graph& graph, const Node& gather, PositionForms* forms);

/// Dimensions of such a gather and of its source that go on with the one before: where none does, parts of both begin
/// that have as many elements, but for the first parts. Bits, from dimension 0 on.
struct SameParts {
  std::uint32_t result = 0, source = 0;
};
std::optional<SameParts> PartsOfReshape(const Graph& graph, const Node& gather, PositionForms* forms);

/// Does the node join dimensions of a computed value, and is in memory, as an output that nothing else reads or as what
/// products alone read? What it joins is written where it lies.
bool IsJoinedInMemory(const Graph& graph, int id, PositionForms* forms);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_TRANSFORM_AXIS_PARTS_H_

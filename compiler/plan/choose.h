// The cost model: which values are computed to memory, and which where they are read. What decides is what
// `umbra explain` prints.
#ifndef UMBRA_COMPILER_PLAN_CHOOSE_H_
#define UMBRA_COMPILER_PLAN_CHOOSE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"

namespace umbra::plan {

struct Unit;

/// What decides where a value is computed. All but kCheap mean: once, to memory.
enum class Why {
  kOutput,  ///< the caller asked for it
  kProduct,  ///< BLAS writes it
  kFactor,  ///< BLAS reads it
  kGathered,  ///< it is read at computed positions
  kAcross,  ///< it gathers along memory, and is read across it
  kBudget,  ///< the kernel that reads it would become too large
  kReduction,  ///< it is reduced over other axes than the kernel that reads it
  kScan,  ///< it is scanned along another axis than its reader goes, or read lane by lane
  kRepeated,  ///< computing it again and again costs more than keeping it
  kCheap,  ///< computing it where it is read costs less
};
std::string_view Name(Why why);

/// Why two steps that share operands, or feed each other, are not one kernel.
enum class Apart {
  kBlas,  ///< one is a product of matrices
  kDomain,  ///< their loops differ
  kPackets,  ///< one has a function for each row of the other, which a kernel of its own has packets of
  kLanes,  ///< one computes lanes one by one of what the other scans
  kOtherPoints,  ///< one reads the other's result at other points than it is at
  kBudget,  ///< together they would be too large
  kBetween,  ///< a third needs the one and is needed by the other
};
std::string_view Name(Apart why);

/// One decision, and what it was made from. Shapes are those of the graph, or extents in a plan.
template <typename Shape>
struct ChoiceOf {
  int node = 0;
  Why why{};
  int readers = 1;  ///< kernels that compute it, or would
  int of_rows = 0;  ///< of these: those for whose rows it is one number, if others have packets of it
  std::vector<std::pair<double, Shape>> work;  ///< of computing all of it once: additions for each element of a shape
  Shape spread{};  ///< the largest shape that it is read in
  bool repeated = false;  ///< is it computed anew along dimensions of `spread` that it does not have?
};
using Choice = ChoiceOf<PartialShape>;

/// A number that a row needs takes as long as a packet, of so many elements at least.
inline constexpr double kLanes = 8;
/// Operators that take at least so many additions are functions, of which a number takes as long as a packet.
inline constexpr double kFunction = 12;

/// What a choice weighs.
struct Weight {
  double each = 0;  ///< additions that one element takes
  double operations = 0;  ///< additions that are saved if the value is kept
  double bytes = 0;  ///< that are then written and read
  bool MemoryPays() const;
};

/// The number of elements; `extent` says how large a dimension is.
template <typename Shape, typename ExtentOf>
double Elements(const Shape& shape, const ExtentOf& extent) {
  double count = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) count *= extent(shape[d]);
  return count;
}

template <typename Shape, typename ExtentOf>
Weight Weigh(const ChoiceOf<Shape>& choice, const Shape& shape, std::size_t element_size, const ExtentOf& extent) {
  double once = 0;
  for (const auto& [cost, over] : choice.work) once += cost * Elements(over, extent);
  const double elements = Elements(shape, extent);
  const double times = choice.repeated && elements > 0 ? Elements(choice.spread, extent) / elements : 1;
  return {elements > 0 ? once / elements : 0, once * ((choice.readers + choice.of_rows * (kLanes - 1)) * times - 1),
          static_cast<double>(element_size) * elements * (1 + choice.readers)};
}

/// Is one of `nodes`, which are computed, made of functions, down to what `is_kept`?
bool HasFunctions(const graph::Graph& graph, std::vector<int> nodes, const std::function<bool(int)>& is_kept);

/// Weighs every value that `units` compute more than once. Adds those that are better kept to `roots`, and
/// returns whether there were any. `choices` gets the decision on each value.
bool ChooseRoots(const graph::Graph& graph, const std::vector<Unit>& units, std::set<int>* roots,
                 std::map<int, Choice>* choices);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_CHOOSE_H_

// Fusion: which values of a graph live in memory, and which kernel computes each of them.
//
// Every value that must exist in memory (an output, a dot and its operands, a reduction that cannot
// be fused with its readers) is a root. A unit is one step of the plan: a GEMM, or a kernel that
// computes one or more roots over one domain. Everything between the roots is inlined.
#ifndef UMBRA_COMPILER_PLAN_FUSE_H_
#define UMBRA_COMPILER_PLAN_FUSE_H_

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/plan/choose.h"
#include "compiler/plan/views.h"

namespace umbra::plan {

/// The loops of a kernel in logical order. `inner[d]` marks the axes that the kernel's reductions
/// run over. A flexible domain has no reduction, so its inner axis may be chosen.
struct Domain {
  std::vector<Dimension> dims;
  std::vector<bool> inner;
  bool flexible = true;

  /// Logical axes that are not inner, in order.
  std::vector<int> KeptAxes() const;
  /// Is there more than one row? Element work alone in its row is better off in a kernel of its own.
  bool HasParallelAxis() const;
  std::vector<int> InnerAxes() const;
};

/// For every dimension of a value the domain axis that it moves along, or -1.
using AxisMap = std::vector<int>;

struct Root {
  int node = 0;
  AxisMap map;  ///< the root's dimensions in the unit's domain
};

struct Unit {
  bool gemm = false;
  std::vector<Root> roots;
  Domain domain;  ///< of kernels
};

struct Neighbours {
  int first = 0, second = 0;  ///< indices of units
  Apart why{};
};

struct Fusion {
  std::set<int> roots;  ///< all nodes that live in memory; of inputs those that are copied
  Views views;  ///< roots without a unit
  std::vector<Unit> units;  ///< in an order in which they can run
  std::map<int, Choice> choices;  ///< of each value that was weighed
  std::vector<Neighbours> apart;
  /// By node: is it computed lane by lane, as positions and what chooses by them are? Empty for a graph without scans,
  /// whose elements come one after the other.
  std::vector<bool> in_lanes;
};

/// Would lanes of a packet be computed one by one of what the unit scans?
bool ScansInLanes(const graph::Graph& graph, const Fusion& fusion, const Unit& unit);

/// Does the node read input `index` at computed positions, so that it has to be in memory?
bool IsGathered(const graph::Node& node, std::size_t index);

/// Of a value that has the domain's axes.
AxisMap Identity(std::size_t rank);

/// The axis map of operand `index` of a broadcast, transpose or elementwise node, given its own.
AxisMap OperandMap(const graph::Graph& graph, const graph::Node& node, std::size_t index, const AxisMap& map);

/// The axis map of a reduction's operand within `domain`, given the map of its result; empty
/// optional if the reduction does not run over exactly the domain's inner axes.
std::optional<AxisMap> ReducedOperandMap(const graph::Graph& graph, const graph::Node& node, const AxisMap& map,
                                         const Domain& domain);

/// An operand of a dot as it lies in memory: transposes of matrices are flags of the GEMM.
struct DotOperand {
  int node;
  bool transposed;
};
DotOperand DotOperandOf(const graph::Graph& graph, int id);

/// Threads of GPUs gather wherever their elements are.
Fusion Fuse(const graph::Graph& graph, bool on_gpu);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_FUSE_H_

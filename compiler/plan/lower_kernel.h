// One unit of the fusion becomes a kernel: its values in scopes and phases.
#ifndef UMBRA_COMPILER_PLAN_LOWER_KERNEL_H_
#define UMBRA_COMPILER_PLAN_LOWER_KERNEL_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/plan/fuse.h"
#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Where the values of a graph live in a plan.
struct MemoryMap {
  std::map<int, int> read;  ///< node -> buffer that holds it
  std::map<int, std::vector<int>> write;  ///< root -> buffers to store it to
  std::map<int, View> views;  ///< buffers in the memory of others
  std::map<int, int> scalar;  ///< kScalar node -> index of the program's scalar
};

/// Lowers `unit`, a kernel. `extent` translates a dimension of the graph.
Kernel LowerKernel(const graph::Graph& graph, const Fusion& fusion, const Unit& unit, const MemoryMap& memory,
                   const std::function<runtime::Extent(const Dimension&)>& extent, std::string name, bool on_gpu);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_LOWER_KERNEL_H_

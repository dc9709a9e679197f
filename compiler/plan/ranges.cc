#include "compiler/plan/ranges.h"

#include <variant>
#include <vector>

namespace umbra::plan {

namespace {

// Elements of a row from which on nothing is gained by writing their number into the source.
constexpr std::int64_t kLongRow = 16384;

bool HasLongRows(const Kernel& kernel) {
  const runtime::Extent& extent = kernel.signature.axes.back();
  return kernel.vector_axis_is_inner() && kernel.rank() == kernel.signature.row_axes + 1 && kernel.phases.size() == 1 &&
         kernel.phases[0].reductions.empty() && !HasScans(kernel) && (!extent.is_static() || extent.value >= kLongRow);
}

}  // namespace

void FindRanges(Plan* plan) {
  for (auto& step : plan->steps) {
    auto* kernel = std::get_if<Kernel>(&step);
    if (kernel == nullptr || !kernel->signature.positional || kernel->signature.goes_across_batch()) continue;
    std::vector<int>& ranged = kernel->signature.ranged;
    for (int axis = 1; axis < kernel->signature.row_axes; ++axis) ranged.push_back(axis);
    if (HasLongRows(*kernel)) ranged.push_back(kernel->rank() - 1);
  }
}

}  // namespace umbra::plan

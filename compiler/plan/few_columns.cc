#include "compiler/plan/few_columns.h"

#include <algorithm>
#include <cstddef>

namespace umbra::plan {

namespace {

bool MayBeFew(const Kernel& kernel) {
  const runtime::KernelSignature& signature = kernel.signature;
  const auto column = static_cast<std::size_t>(signature.vector_axis), step = signature.axes.size() - 1;
  const runtime::Extent &columns = signature.axes[column], &steps = signature.axes[step];
  if (!signature.goes_along_columns() || signature.positional || !signature.row_buffers.empty() || SharesRows(kernel) ||
      HasScans(kernel))
    return false;
  if (!runtime::AreFewColumns(columns.is_static() ? columns.value : 1,
                              steps.is_static() ? steps.value : runtime::kStepsOfMore, 4))
    return false;
  const auto moves_within = [&](const runtime::Access& access) {
    return std::any_of(access.dim_of_axis.begin() + signature.row_axes, access.dim_of_axis.end(),
                       [](int dim) { return dim >= 0; });
  };
  if (!std::all_of(signature.operands.begin(), signature.operands.end(), [&](const runtime::Access& access) {
        if (access.gathered) return false;
        if (access.dim_of_axis[column] >= 0 && access.dim_of_axis[column] != access.LastDim()) return false;
        return !moves_within(access) || (access.dim_of_axis[step] >= 0 && access.dim_of_axis[column] >= 0);
      }))
    return false;
  const auto is_kept_condition = [](const Value& v) { return v.scope == Scope::kRow && v.type == DType::kBool; };
  if (std::any_of(kernel.values.begin(), kernel.values.end(), is_kept_condition)) return false;
  return std::all_of(kernel.phases.begin(), kernel.phases.end(), [](const Phase& phase) {
    return phase.guard < 0 && std::none_of(phase.reductions.begin(), phase.reductions.end(),
                                           [](const Reduction& reduction) { return reduction.contract; });
  });
}

}  // namespace

void FindFewColumns(Plan* plan) {
  for (auto& step : plan->steps)
    if (auto* kernel = std::get_if<Kernel>(&step)) kernel->signature.few_columns = MayBeFew(*kernel);
}

}  // namespace umbra::plan

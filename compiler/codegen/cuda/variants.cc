// Which variants of a kernel launches may ask for: what PlanCudaLaunch decides, where only the kernel is known.
#include <limits>

#include "compiler/codegen/cuda/generate.h"

namespace umbra::codegen {

using runtime::CudaForm;
using runtime::CudaSchedule;
using runtime::CudaVariant;

std::vector<CudaVariant> CudaVariants(const runtime::KernelSignature& signature, const CudaSchedule& schedule) {
  index_t inner = 1;  // points of the inner axes; 0: a call brings it
  for (std::size_t axis = static_cast<std::size_t>(signature.row_axes); axis < signature.axes.size(); ++axis)
    inner = signature.axes[axis].is_static() ? inner * signature.axes[axis].value : 0;
  const auto at_most = [&](index_t limit) { return inner == 0 || inner <= limit; };
  constexpr index_t kMost = std::numeric_limits<index_t>::max();
  const auto above = [&](index_t limit) { return inner == 0 ? limit < kMost : inner > limit; };
  std::vector<CudaForm> forms;
  const auto add = [&](CudaForm form, bool possible) {
    if (possible) forms.push_back(form);
  };
  if (!schedule.reduces) {
    add(CudaForm::kElements, true);
    add(CudaForm::kTiles, schedule.tile_axis >= 0);
  } else if (signature.vector_axis < signature.row_axes) {
    add(CudaForm::kColumn, at_most(schedule.lone_column));
    add(CudaForm::kColumnPerBlock, above(schedule.lone_column));
    add(CudaForm::kColumnSplit, schedule.splits && above(runtime::kCudaShare / runtime::kCudaWarp));
  } else {
    const bool one_axis = static_cast<int>(signature.axes.size()) - signature.row_axes == 1;
    add(CudaForm::kRowPerWarp, one_axis && at_most(schedule.warp_row));
    add(CudaForm::kRowPerBlock, !one_axis || above(schedule.warp_row));
    add(CudaForm::kRowSplit, schedule.splits && above(runtime::kCudaShare));
  }
  std::vector<CudaVariant> variants;
  for (const CudaForm form : forms) {
    const bool row = CudaForm::kRowPerWarp <= form && form <= CudaForm::kRowSplit;
    for (const bool vector : {false, true})
      for (const bool in_scratch : {false, true}) {
        const int lanes = form == CudaForm::kTiles ? schedule.tile_lanes : schedule.lanes;
        const bool in_packets =
            lanes > 1 &&
            (signature.positional ? schedule.packs_results && (form == CudaForm::kElements || form == CudaForm::kColumn)
                                  : row || form == CudaForm::kElements || form == CudaForm::kTiles);
        if (vector && !in_packets) continue;
        if (in_scratch && (form != CudaForm::kRowPerBlock || schedule.kept.empty())) continue;
        const CudaVariant variant{form, vector, false, false, in_scratch};
        variants.insert(variants.end(), {variant, variant.General()});
      }
  }
  return variants;
}

}  // namespace umbra::codegen

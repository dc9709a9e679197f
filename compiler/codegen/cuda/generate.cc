#include "compiler/codegen/cuda/generate.h"

#include <algorithm>
#include <set>

#include "compiler/codegen/cuda/emitter.h"
#include "compiler/codegen/cuda/kept.h"
#include "compiler/codegen/cuda/unused.h"
#include "compiler/codegen/prelude.h"
#include "compiler/plan/positions.h"
#include "umbra/error.h"

namespace umbra::codegen {

using runtime::CudaForm;
using runtime::CudaSchedule;
using runtime::CudaVariant;

namespace {

// Of a kernel of which a thread computes several elements at a time, in registers.
constexpr std::size_t kMostStores = 4, kMostValues = 64;

// Functions that a CUDA compiler declares before any source: no kernel may have their names.
bool IsTaken(const std::string& name) {
  static const std::set<std::string> names = {
      "abs", "acosh", "asinh", "assert", "atanh", "ceil", "clock", "clock64", "copysign", "cospi", "dim3", "erfcinv",
      "erfcx", "exit", "exp10", "fabs", "fdim", "float4", "floor", "fma", "fmax", "fmin", "free", "frexp", "hypot", "ilogb", "index",
      "isfinite", "isinf", "isnan", "j0", "j1", "jn", "labs", "ldexp", "lgamma", "llabs", "llmax", "llmin", "llrint",
      "llround", "logb", "lrint", "lround", "malloc", "max", "memcpy", "memset", "min", "modf", "mul24", "nan",
      "nanosleep", "nearbyint", "nextafter", "norm", "norm3d", "norm4d", "normcdf", "normcdfinv", "pack", "printf",
      "rcbrt", "read", "remainder", "remquo", "rhypot", "rnorm", "rnorm3d", "rnorm4d", "saturate", "scalbln", "scalbn",
      "signal", "signbit", "sincos", "sincospi", "sinpi", "tgamma", "time", "umax", "umin", "write", "y0", "y1", "yn"};
  return names.count(name) != 0;
}

std::string FunctionName(const std::string& wanted) {
  const std::string name = Names().Make(wanted);
  return IsTaken(name) ? name + "_kernel" : name;
}

std::size_t ElementSize(const plan::Plan& plan, const runtime::Access& access) {
  return SizeOf(plan.buffers[static_cast<std::size_t>(access.buffer)].dtype);
}

std::size_t WidestElement(const plan::Plan& plan, const plan::Kernel& kernel) {
  std::size_t widest = 1;
  for (const auto& access : kernel.signature.operands) widest = std::max(widest, ElementSize(plan, access));
  return widest;
}

// The row axis along which the operands that lie across the vector axis lie side by side; -1 if it is not one axis.
int TileAxis(const plan::Plan& plan, const plan::Kernel& kernel) {
  const auto& signature = kernel.signature;
  if (!signature.elementwise) return -1;
  int tile_axis = -1;
  for (const auto& access : signature.operands) {
    const int last = static_cast<int>(plan.buffers[static_cast<std::size_t>(access.buffer)].shape.size()) - 1;
    const int along = access.dim_of_axis[static_cast<std::size_t>(signature.vector_axis)];
    if (along < 0 || along == last) continue;
    const auto found = std::find(access.dim_of_axis.begin(), access.dim_of_axis.begin() + signature.row_axes, last);
    const int axis = static_cast<int>(found - access.dim_of_axis.begin());
    if (access.store || axis == signature.row_axes || (tile_axis >= 0 && axis != tile_axis)) return -1;
    tile_axis = axis;
  }
  return tile_axis;
}

}  // namespace

CudaSchedule ScheduleForCuda(const plan::Plan& plan, const plan::Kernel& kernel) {
  const auto& signature = kernel.signature;
  CudaSchedule schedule;
  schedule.splits = kernel.phases.size() == 1;
  for (const plan::Phase& phase : kernel.phases)
    for (const auto& reduction : phase.reductions) {
      schedule.reduces = true;
      schedule.partials.push_back(kernel.values[static_cast<std::size_t>(reduction.result)].type);
    }
  schedule.splits = schedule.splits && schedule.reduces;
  if (!schedule.splits) schedule.partials.clear();
  std::size_t narrowest = 8;
  int loads = 0;
  for (const auto& access : signature.operands) {
    if (access.dim_of_axis[static_cast<std::size_t>(signature.vector_axis)] < 0) continue;
    narrowest = std::min(narrowest, ElementSize(plan, access));
    loads += access.store ? 0 : 1;
  }
  schedule.lanes = static_cast<int>(std::min<std::size_t>(8, 16 / narrowest));
  schedule.packets = loads <= 2 ? 2 : 1;
  const plan::Phase& phase = kernel.phases[0];
  if (!schedule.reduces && phase.stores.size() <= kMostStores && phase.element_values.size() <= kMostValues) schedule.rows = 4;
  schedule.tile_axis = TileAxis(plan, kernel);
  if (schedule.tile_axis >= 0 && schedule.rows > 1 && WidestElement(plan, kernel) <= 2) schedule.tile_lanes = 2;
  schedule.kept = RowsKept(plan, kernel, true).types;
  return schedule;
}

CudaSource GenerateCuda(const plan::Plan& plan, const plan::Kernel& kernel, const CudaVariant& variant) {
  const bool columns = variant.form >= CudaForm::kColumn, rows = !columns && variant.form >= CudaForm::kRowPerWarp;
  const CudaSchedule schedule = ScheduleForCuda(plan, kernel);
  Ensure(schedule.reduces ? columns != kernel.vector_axis_is_inner() : !columns && !rows,
         "a CUDA form that is not for the kernel ", kernel.signature.name);
  Ensure(!variant.several || !variant.finishes(), "several launches of a CUDA form with two passes");
  CudaSource source;
  const std::string name = FunctionName(kernel.signature.name);
  source.function = CudaFunction(name, variant.several);
  SourceOptions options;
  options.target = Target::kPlain;
  options.variant.strided = variant.strided;
  Writer out;
  if (!kernel.summary.empty()) out.Line("// {} \u00b7 cuda \u00b7 {}", source.function, kernel.summary);
  const plan::Kernel own = variant.wide_index ? kernel : plan::WithNarrowPositions(kernel, plan::Narrowed::kAll);
  const CudaTask task{plan, own, schedule, options, variant};
  switch (variant.form) {
    case CudaForm::kElements: EmitCudaElements(task, name, &out); break;
    case CudaForm::kTiles: EmitCudaTiles(task, name, &out); break;
    case CudaForm::kRowPerWarp:
    case CudaForm::kRowPerBlock:
    case CudaForm::kRowSplit: EmitCudaRows(task, name, &out); break;
    case CudaForm::kColumn:
    case CudaForm::kColumnPerBlock:
    case CudaForm::kColumnSplit: EmitCudaColumns(task, name, &out); break;
  }
  if (variant.finishes()) source.finish = name + "_finish";
  source.kernel = WithoutUnused(out.Take());
  return source;
}

std::string CudaSource::Text() const {
  const std::string end = "}  // namespace umbra::simd\n";
  std::string prelude = CudaPrelude(kernel);
  prelude.resize(prelude.rfind(end));  // the kernels are in the same namespace
  return prelude + kernel + "\n" + end;
}

}  // namespace umbra::codegen

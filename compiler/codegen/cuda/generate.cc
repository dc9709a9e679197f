#include "compiler/codegen/cuda/generate.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "compiler/codegen/cuda/emitter.h"
#include "compiler/codegen/cuda/kept.h"
#include "compiler/codegen/cuda/unused.h"
#include "compiler/codegen/prelude.h"
#include "compiler/plan/moments.h"
#include "compiler/plan/positions.h"
#include "umbra/error.h"

namespace umbra::codegen {

using runtime::CudaForm;
using runtime::CudaSchedule;
using runtime::CudaVariant;

namespace {

// Of a kernel of which a thread computes several elements at a time, in registers.
constexpr std::size_t kMostStores = 4, kMostValues = 64;

// Of a window of which a thread computes several side by side, or below each other.
constexpr index_t kMostPoints = 9;

constexpr int kWideTile = 2 * runtime::kCudaTile;

// Functions that a CUDA compiler declares before any source: no kernel may have their names.
bool IsTaken(const std::string& name) {
  static const std::set<std::string> names = {
      "abs",       "acosh",     "asinh",   "assert", "atanh",    "ceil",       "clock",   "clock64",   "copysign",
      "cospi",     "dim3",      "erfcinv", "erfcx",  "exit",     "exp10",      "fabs",    "fdim",      "float4",
      "floor",     "fma",       "fmax",    "fmin",   "free",     "frexp",      "hypot",   "ilogb",     "index",
      "isfinite",  "isinf",     "isnan",   "j0",     "j1",       "jn",         "labs",    "ldexp",     "lgamma",
      "llabs",     "llmax",     "llmin",   "llrint", "llround",  "logb",       "lrint",   "lround",    "malloc",
      "max",       "memcpy",    "memset",  "min",    "modf",     "mul24",      "nan",     "nanosleep", "nearbyint",
      "nextafter", "norm",      "norm3d",  "norm4d", "normcdf",  "normcdfinv", "pack",    "printf",    "rcbrt",
      "read",      "remainder", "remquo",  "rhypot", "rnorm",    "rnorm3d",    "rnorm4d", "saturate",  "scalbln",
      "scalbn",    "signal",    "signbit", "sincos", "sincospi", "sinpi",      "tgamma",  "time",      "umax",
      "umin",      "write",     "y0",      "y1",     "yn"};
  return names.count(name) != 0;
}

std::string FunctionName(const std::string& wanted) {
  const std::string name = Names().Make(wanted);
  return IsTaken(name) ? name + "_kernel" : name;
}

std::size_t ElementSize(const plan::Plan& plan, const runtime::Access& access) {
  return SizeOf(plan.buffers[static_cast<std::size_t>(access.buffer)].dtype);
}

// Rows of which a thread computes an element at a time, where nothing is reduced.
int RowsAtOnce(const plan::Phase& phase) {
  return phase.stores.size() <= kMostStores && phase.element_values.size() <= kMostValues ? 4 : 1;
}

// Points of the windows that a thread reduces, if their extents are known and a compiler may write out a row's values
// at each.
index_t PointsOfWindows(const plan::Kernel& kernel) {
  const auto& signature = kernel.signature;
  std::size_t values = 0;
  for (const plan::Phase& phase : kernel.phases) {
    if (!phase.stores.empty()) return kMostPoints + 1;
    values += phase.element_values.size();
  }
  index_t points = 1;
  for (auto axis = signature.axes.begin() + signature.row_axes; axis != signature.axes.end(); ++axis)
    points *= axis->is_static() ? std::min(axis->value, kMostPoints + 1) : kMostPoints + 1;
  const bool is_column = !kernel.vector_axis_is_inner() && kernel.final_stores.size() <= kMostStores;
  return is_column && points * static_cast<index_t>(values) <= 4 * static_cast<index_t>(kMostValues) ? points
                                                                                                     : kMostPoints + 1;
}

// As RowsAtOnce, where a thread reduces windows.
int RowsOfWindows(index_t points) { return points <= 4 ? 4 : points <= kMostPoints ? 2 : 1; }

// Elements of a row for which a warp has time enough. Where they are written memory is what a row waits for: a block of
// more threads has it sooner, from some length on.
int RowOfWarp(const plan::Kernel& kernel) {
  const bool stores = std::any_of(kernel.phases.begin(), kernel.phases.end(),
                                  [](const plan::Phase& phase) { return !phase.stores.empty(); });
  return stores ? 512 : 1024;
}

std::size_t WidestElement(const plan::Plan& plan, const plan::Kernel& kernel) {
  std::size_t widest = 1;
  for (const auto& access : kernel.signature.operands) widest = std::max(widest, ElementSize(plan, access));
  return widest;
}

// Do wide tiles have room, for all operands that are read across their lines? More elements of a thread are in flight
// then.
bool HasRoomForWideTiles(const plan::Plan& plan, const plan::Kernel& kernel) {
  const auto& signature = kernel.signature;
  std::size_t bytes = 0;
  for (const auto& access : signature.operands) {
    const std::size_t size = ElementSize(plan, access);
    const int along = access.dim_of_axis[static_cast<std::size_t>(signature.vector_axis)];
    const int last = static_cast<int>(plan.buffers[static_cast<std::size_t>(access.buffer)].shape.size()) - 1;
    if (!access.store && along >= 0 && along != last) bytes += size * std::size_t{kWideTile * (kWideTile + 1)};
  }
  return bytes <= kTilesBytes;
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
  const std::optional<plan::Moments> moments = kernel.phases.size() == 2 ? plan::FindMoments(kernel) : std::nullopt;
  schedule.splits = kernel.phases.size() == 1 || moments;
  for (const plan::Phase& phase : kernel.phases)
    for (const auto& reduction : phase.reductions) {
      schedule.reduces = true;
      const bool three = moments && reduction.result == moments->squares;  // numbers that are kept of them
      schedule.partials.insert(schedule.partials.end(), three ? 3 : 1,
                               kernel.values[static_cast<std::size_t>(reduction.result)].type);
    }
  const bool scans = plan::HasScans(kernel);
  schedule.splits = schedule.splits && schedule.reduces && !scans;
  if (!schedule.splits) schedule.partials.clear();
  std::size_t widest = 1;
  int loads = 0;
  for (const auto& access : signature.operands) {
    if (access.dim_of_axis[static_cast<std::size_t>(signature.vector_axis)] < 0) continue;
    widest = std::max(widest, ElementSize(plan, access));
    loads += access.store ? 0 : 1;
  }
  schedule.lanes = static_cast<int>(std::min<std::size_t>(signature.positional ? 8 : 16, 16 / widest));
  schedule.warp_row = RowOfWarp(kernel);
  if (scans) {  // threads have an element each, whose neighbours are those of the next threads
    schedule.reduces = true;
    schedule.lanes = 1;
    schedule.lone_column = std::numeric_limits<index_t>::max();
  }
  schedule.packets = loads <= 2 && widest > 1 && !signature.positional ? 2 : 1;
  const index_t points = PointsOfWindows(kernel);
  schedule.rows = schedule.reduces ? RowsOfWindows(points) : RowsAtOnce(kernel.phases[0]);
  // Windows that lie side by side would be read a line of memory apart by the threads of a warp.
  schedule.packs_results = signature.positional && schedule.rows > 1 && (!schedule.reduces || points == 1);
  schedule.tile_axis = TileAxis(plan, kernel);
  if (schedule.tile_axis >= 0 && schedule.rows > 1 && HasRoomForWideTiles(plan, kernel)) {
    schedule.tile_side = kWideTile;
    if (WidestElement(plan, kernel) <= 2) schedule.tile_lanes = kWideTile / runtime::kCudaTile;
  }
  schedule.kept = RowsKept(plan, kernel, true).types;
  return schedule;
}

CudaSource GenerateCuda(const plan::Plan& plan, const plan::Kernel& kernel, const CudaVariant& variant, bool fast) {
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
  options.fast = fast;
  options.variant.strided = variant.strided;
  Writer out;
  if (!kernel.summary.empty()) out.Line("// {} \u00b7 cuda \u00b7 {}", source.function, kernel.summary);
  std::vector<int> became(kernel.values.size());
  std::iota(became.begin(), became.end(), 0);
  const plan::Kernel own =
      variant.wide_index ? kernel : plan::WithNarrowPositions(kernel, plan::Narrowed::kAll, &became);
  const CudaTask task{plan, own, kernel, became, schedule, options, variant};
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

#include "compiler/plan/short_rows.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/plan/element_rows.h"
#include "runtime/rows_together.h"

namespace umbra::plan {

namespace {

using runtime::Access;

constexpr std::int64_t kShortRowOfFunctions = 31;

// `axes` in their order. `from_rows`: gathers whose rows are brought together: each element of them is at hand within a
// row then, a known one, too.
void MakeInnermost(const std::vector<int>& axes, const std::vector<int>& from_rows, Kernel* kernel) {
  const auto is_inner = [&axes](int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
  std::vector<int> order, place(static_cast<std::size_t>(kernel->rank()));
  for (int axis = 0; axis < kernel->rank(); ++axis)
    if (!is_inner(axis)) order.push_back(axis);
  order.insert(order.end(), axes.begin(), axes.end());
  for (std::size_t k = 0; k < order.size(); ++k) place[static_cast<std::size_t>(order[k])] = static_cast<int>(k);
  const auto reorder = [&order](auto* of_axis) {
    const auto before = *of_axis;
    for (std::size_t k = 0; k < order.size(); ++k) (*of_axis)[k] = before[static_cast<std::size_t>(order[k])];
  };
  runtime::KernelSignature& signature = kernel->signature;
  reorder(&signature.axes);
  for (Access& access : signature.operands) reorder(&access.dim_of_axis);
  for (Value& value : kernel->values)
    if (value.kind == Value::Kind::kIndex) value.index = place[static_cast<std::size_t>(value.index)];
  signature.elementwise = false;
  signature.row_axes = kernel->rank() - static_cast<int>(axes.size());
  signature.vector_axis = signature.row_axes - 1;
  for (const int id : from_rows)
    signature.operands[static_cast<std::size_t>(kernel->values[static_cast<std::size_t>(id)].index)].dense = true;
  Phase& phase = kernel->phases[0];
  std::set<int> values(phase.row_values.begin(), phase.row_values.end());
  values.insert(phase.element_values.begin(), phase.element_values.end());
  phase.row_values.clear();
  phase.element_values.clear();
  std::vector<bool> moves = MovesAlong(*kernel, kernel->rank() - 1);
  for (int axis = signature.row_axes; axis + 1 < kernel->rank(); ++axis) {
    const std::vector<bool> along = MovesAlong(*kernel, axis);
    std::transform(along.begin(), along.end(), moves.begin(), moves.begin(), std::logical_or<>());
  }
  for (const int id : from_rows) moves[static_cast<std::size_t>(id)] = true;
  for (std::size_t id = 0; id < kernel->values.size(); ++id)
    for (const int arg : kernel->values[id].args) moves[id] = moves[id] || moves[static_cast<std::size_t>(arg)];
  for (const int id : values) {
    Value& value = kernel->values[static_cast<std::size_t>(id)];
    const bool of_element = moves[static_cast<std::size_t>(id)] || value.scope == Scope::kUniform;
    if (value.scope != Scope::kUniform) value.scope = of_element ? Scope::kElement : Scope::kRow;
    (of_element ? phase.element_values : phase.row_values).push_back(id);
  }
}

// The kernel with an innermost axis of one element, along which nothing moves.
Kernel WithElementAxis(Kernel kernel) {
  runtime::KernelSignature& signature = kernel.signature;
  signature.row_axes = kernel.rank();
  signature.vector_axis = kernel.rank();
  signature.axes.push_back(runtime::Extent::Static(1));
  for (Access& access : signature.operands) access.dim_of_axis.push_back(-1);
  return kernel;
}

// The operands that have short rows; none where rows of several axes are too long, or a reduction has no operand with
// more than one axis of them.
std::vector<std::size_t> OperandsOfShortRows(const Kernel& kernel) {
  const runtime::KernelSignature& signature = kernel.signature;
  const auto first = static_cast<std::size_t>(signature.row_axes);
  const bool several = first + 1 < signature.axes.size();
  if (!signature.goes_along_columns() || first == signature.axes.size()) return {};
  std::int64_t elements = 1;
  for (std::size_t axis = first; axis < signature.axes.size(); ++axis)
    if (const runtime::Extent& extent = signature.axes[axis];
        !extent.is_static() || __builtin_mul_overflow(elements, extent.value, &elements))
      return {};
  const bool reduces = std::any_of(kernel.phases.begin(), kernel.phases.end(),
                                   [](const Phase& phase) { return !phase.reductions.empty(); });
  if (several && (elements < 2 || (reduces ? !IsShortRow(kernel, elements) : elements > kLongestOfSeveral))) return {};
  for (const Phase& phase : kernel.phases)
    if (phase.guard >= 0) return {};
  std::vector<std::size_t> operands;
  bool joined = !several || !reduces;
  for (std::size_t k = 0; k < signature.operands.size(); ++k) {
    const Access& access = signature.operands[k];
    if (access.gathered && several) return {};
    if (access.gathered || access.dim_of_axis[static_cast<std::size_t>(signature.vector_axis)] < 0) continue;
    const int rows = runtime::FirstOfShortRow(signature, access, several);
    if (rows <= access.LastDim()) operands.push_back(k);
    joined = joined || rows < access.LastDim();
  }
  return joined ? operands : std::vector<std::size_t>();
}

}  // namespace

std::int64_t LongestShortRow(const Kernel& kernel) {
  const bool functions = std::any_of(kernel.values.begin(), kernel.values.end(), [](const Value& value) {
    return value.kind == Value::Kind::kMap && graph::Info(value.op).header != "arith";
  });
  return functions ? kShortRowOfFunctions : kShortRow;
}

std::optional<GatheredRow> RowOf(const Plan& plan, const Kernel& kernel, const Value& gather, int across) {
  const std::size_t rank = gather.args.size() - (gather.guarded ? 1 : 0);
  const std::vector<bool> moves = MovesAlong(kernel, across);
  std::optional<std::size_t> dim;
  for (std::size_t d = 0; d < rank; ++d) {
    if (!moves[static_cast<std::size_t>(gather.args[d])]) continue;
    if (dim) return std::nullopt;
    dim = d;
  }
  if (!dim || *dim + 1 == rank) return std::nullopt;
  const auto& shape =
      plan.buffers[static_cast<std::size_t>(kernel.signature.operands[static_cast<std::size_t>(gather.index)].buffer)]
          .shape;
  if (*dim + 2 == rank) return GatheredRow{*dim, shape.back()};
  std::int64_t elements = 1;
  for (std::size_t d = *dim + 1; d < rank; ++d) {
    if (!shape[d].is_static() || __builtin_mul_overflow(elements, shape[d].value, &elements)) return std::nullopt;
  }
  return GatheredRow{*dim, runtime::Extent::Static(elements)};
}

bool IsShortRow(const Kernel& kernel, std::int64_t elements) { return elements <= LongestShortRow(kernel); }

void GoAcrossShortRows(Plan* plan) {
  ForEachKernel(*plan, [plan](bool in_rows, Kernel& kernel) {
    const ElementRows rows(*plan, in_rows, false, kernel);
    const auto has_short_rows = [&](const ElementRows& of, int axis) {
      const std::vector<runtime::Extent> sources = of.Sources(axis);
      return std::all_of(sources.begin(), sources.end(), [&](const runtime::Extent& source) {
        return source.is_static() && source.value >= 1 && source.value <= of.LongestRow(axis);
      });
    };
    if (const std::vector<std::vector<int>> inner = rows.InnerAxes(); !inner.empty())
      return MakeInnermost(inner[0], {}, &kernel);
    for (const int axis : rows.Axes()) {
      const runtime::Extent& extent = kernel.signature.axes[static_cast<std::size_t>(axis)];
      if (extent.is_static() && extent.value <= rows.LongestRow(axis) && extent.value >= 2 &&
          has_short_rows(rows, axis))
        return MakeInnermost({axis}, rows.FromRows(axis), &kernel);
    }
    if (in_rows) return;
    Kernel with_axis = WithElementAxis(kernel);
    const int axis = kernel.rank();
    const ElementRows known(*plan, in_rows, false, with_axis);
    if (!has_short_rows(known, axis)) return;
    const std::vector<int> places = known.FromKnownPlaces(axis);
    if (places.empty()) return;
    MakeInnermost({axis}, places, &with_axis);
    kernel = std::move(with_axis);
  });
}

void AskForDenseRows(Plan* plan) {
  ForEachKernel(*plan, [](bool, Kernel& kernel) {
    for (const std::size_t k : OperandsOfShortRows(kernel)) kernel.signature.operands[k].dense = true;
  });
}

}  // namespace umbra::plan

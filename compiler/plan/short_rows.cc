#include "compiler/plan/short_rows.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace umbra::plan {

namespace {

using runtime::Access;

// The longest row that packets go across, and with functions; and the longest one of a reduction that goes through a few
// packets, without a loop where their number is known.
constexpr std::int64_t kShortRow = 15, kShortRowOfFunctions = 31, kFewPackets = 64;

std::int64_t LongestShortRow(const Kernel& kernel) {
  const bool functions = std::any_of(kernel.values.begin(), kernel.values.end(), [](const Value& value) {
    return value.kind == Value::Kind::kMap && graph::Info(value.op).header != "arith";
  });
  return functions ? kShortRowOfFunctions : kShortRow;
}

// The rows of an element-wise kernel.
class Rows {
 public:
  Rows(const Plan& plan, bool keeps_first_axis, const Kernel& kernel)
      : plan_(plan), keeps_first_axis_(keeps_first_axis), kernel_(kernel), signature_(kernel.signature) {}

  // The axes along which rows lie that are not all one, from the last on.
  std::vector<int> Axes() const {
    std::vector<int> axes;
    if (!signature_.elementwise || kernel_.rank() < 2 || IsOneRow()) return axes;
    for (int axis = kernel_.rank(); axis-- > 0;)
      if (!IsOneWithNext(axis - 1) && !IsOneWithNext(axis) && CanBeInnermost(axis)) axes.push_back(axis);
    return axes;
  }

 private:
  // Does every operand move along all axes alike, from the last on?
  bool IsOneRow() const {
    return std::all_of(signature_.operands.begin(), signature_.operands.end(), [](const Access& access) {
      for (std::size_t axis = 0; axis < access.dim_of_axis.size(); ++axis)
        if (access.dim_of_axis[axis] != static_cast<int>(axis)) return false;
      return true;
    });
  }

  // Do the axis and the next one go through dimensions that follow each other, of all operands that they move? A launch makes
  // them one where it can.
  bool IsOneWithNext(int axis) const {
    if (axis < 0 || axis + 1 == kernel_.rank()) return false;
    return std::all_of(signature_.operands.begin(), signature_.operands.end(), [axis](const Access& access) {
      const int dim = access.dim_of_axis[static_cast<std::size_t>(axis)], next = access.dim_of_axis[static_cast<std::size_t>(axis) + 1];
      return dim < 0 ? next < 0 : next == dim + 1;
    });
  }

  // The axis along which the operand's elements lie side by side; -1: none.
  int AxisOfRows(const Access& access) const {
    const int last = static_cast<int>(plan_.buffers[static_cast<std::size_t>(access.buffer)].shape.size()) - 1;
    const auto found = std::find(access.dim_of_axis.begin(), access.dim_of_axis.end(), last);
    return last < 0 || found == access.dim_of_axis.end() ? -1 : static_cast<int>(found - access.dim_of_axis.begin());
  }

  // Are there operands with short rows along the axis, and do all others lie along the last of the other axes, or not move
  // along that?
  bool CanBeInnermost(int axis) const {
    if (axis == 0 && keeps_first_axis_) return false;
    const int across = axis == kernel_.rank() - 1 ? axis - 1 : kernel_.rank() - 1;
    bool has_rows = false;
    for (const Access& access : signature_.operands) {
      const int rows = AxisOfRows(access);
      const bool moves = access.dim_of_axis[static_cast<std::size_t>(across)] >= 0;
      if (rows == axis) has_rows = has_rows || moves;
      else if (moves && rows != across) return false;
    }
    return has_rows;
  }

  const Plan& plan_;
  const bool keeps_first_axis_;  // a group of steps goes through it
  const Kernel& kernel_;
  const runtime::KernelSignature& signature_;
};

void MakeInnermost(int axis, Kernel* kernel) {
  const auto to_end = [axis](auto* of_axis) { std::rotate(of_axis->begin() + axis, of_axis->begin() + axis + 1, of_axis->end()); };
  runtime::KernelSignature& signature = kernel->signature;
  to_end(&signature.axes);
  for (Access& access : signature.operands) to_end(&access.dim_of_axis);
  signature.elementwise = false;
  signature.row_axes = kernel->rank() - 1;
  signature.vector_axis = kernel->rank() - 2;
  Phase& phase = kernel->phases[0];
  std::set<int> values(phase.row_values.begin(), phase.row_values.end());
  values.insert(phase.element_values.begin(), phase.element_values.end());
  phase.row_values.clear();
  phase.element_values.clear();
  const std::vector<bool> moves = MovesAlong(*kernel, kernel->rank() - 1);
  for (const int id : values) {
    Value& value = kernel->values[static_cast<std::size_t>(id)];
    const bool of_element = moves[static_cast<std::size_t>(id)] || value.scope == Scope::kUniform;
    if (value.scope != Scope::kUniform) value.scope = of_element ? Scope::kElement : Scope::kRow;
    (of_element ? phase.element_values : phase.row_values).push_back(id);
  }
}

template <typename Plan, typename F>
void ForEachKernel(Plan& plan, const F& f) {
  for (const runtime::StepGroup& group : plan.groups)
    for (int step = group.begin; step < group.end; ++step)
      if (auto* kernel = std::get_if<Kernel>(&plan.steps[static_cast<std::size_t>(step)])) f(group.kind == runtime::StepGroup::Kind::kRows, *kernel);
}

}  // namespace

bool IsShortRow(const Kernel& kernel, std::int64_t elements) { return elements <= LongestShortRow(kernel); }

void GoAcrossShortRows(Plan* plan) {
  ForEachKernel(*plan, [plan](bool in_rows, Kernel& kernel) {
    for (const int axis : Rows(*plan, in_rows, kernel).Axes()) {
      const runtime::Extent& extent = kernel.signature.axes[static_cast<std::size_t>(axis)];
      if (extent.is_static() && extent.value >= 2 && IsShortRow(kernel, extent.value)) return MakeInnermost(axis, &kernel);
    }
  });
}

std::vector<OpenRows> FindOpenRows(const Plan& plan) {
  std::vector<OpenRows> found;
  ForEachKernel(plan, [&](bool in_rows, const Kernel& kernel) {
    const runtime::KernelSignature& signature = kernel.signature;
    const auto add = [&](int axis, std::int64_t most) {
      const runtime::Extent& extent = signature.axes[static_cast<std::size_t>(axis)];
      if (!extent.is_static()) found.push_back({extent.symbol, signature.axes, most});
    };
    for (const int axis : Rows(plan, in_rows, kernel).Axes()) add(axis, LongestShortRow(kernel));
    if (!signature.elementwise && kernel.vector_axis_is_inner()) add(signature.vector_axis, kFewPackets);
  });
  return found;
}

}  // namespace umbra::plan

#include "compiler/plan/turn_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "compiler/plan/positions.h"
#include "compiler/plan/short_rows.h"

namespace umbra::plan {

namespace {

using runtime::Access;
using runtime::Buffer;

constexpr index_t kLeastExtent = 16;  // shorter rows are turned in registers, or gathered

class Turner {
 public:
  explicit Turner(Plan* plan) : plan_(*plan) {}

  void Run() {
    std::vector<std::variant<Kernel, Gemm>> steps;
    std::vector<runtime::StepGroup> groups;
    for (runtime::StepGroup group : plan_.groups) {
      const auto first = static_cast<int>(steps.size());
      for (int k = group.begin; k < group.end; ++k)
        if (auto* kernel = std::get_if<Kernel>(&plan_.steps[static_cast<std::size_t>(k)]))
          TurnFor(group, kernel, &steps);
      const auto begin = static_cast<int>(steps.size());
      if (begin > first) groups.push_back({runtime::StepGroup::Kind::kIndependent, first, begin, {}, {}});
      for (int k = group.begin; k < group.end; ++k)
        steps.push_back(std::move(plan_.steps[static_cast<std::size_t>(k)]));
      group.end += begin - group.begin;
      group.begin = begin;
      groups.push_back(std::move(group));
    }
    plan_.steps = std::move(steps);
    plan_.groups = std::move(groups);
  }

 private:
  void TurnFor(const runtime::StepGroup& group, Kernel* kernel, std::vector<std::variant<Kernel, Gemm>>* steps) {
    const runtime::KernelSignature& signature = kernel->signature;
    const bool guarded =
        std::any_of(kernel->phases.begin(), kernel->phases.end(), [](const Phase& phase) { return phase.guard >= 0; });
    if (signature.elementwise || guarded || SharesRows(*kernel)) return;
    std::vector<int> turned_loads;
    for (std::size_t operand = 0; operand < signature.operands.size(); ++operand) {
      Access& access = kernel->signature.operands[operand];
      const auto across =
          access.gathered ? GatheredAcross(*kernel, static_cast<int>(operand)) : LiesAcross(*kernel, access);
      if (!across || !IsThereBefore(group, access.buffer)) continue;
      if (!access.gathered) turned_loads.push_back(static_cast<int>(operand));
      std::vector<int> dims(plan_.buffers[static_cast<std::size_t>(access.buffer)]
                                .shape.size());  // of the operand, by dimension of what is turned
      std::iota(dims.begin(), dims.end(), 0);
      std::rotate(dims.begin() + *across, dims.begin() + *across + 1, dims.end());
      access.buffer = Turned(access.buffer, dims, steps);
      for (int& dim : access.dim_of_axis)
        if (dim >= 0) dim = static_cast<int>(std::find(dims.begin(), dims.end(), dim) - dims.begin());
      for (Value& v : kernel->values)
        if (v.kind == Value::Kind::kGather && v.index == static_cast<int>(operand))
          std::rotate(v.args.begin() + *across, v.args.begin() + *across + 1,
                      v.args.begin() + static_cast<std::ptrdiff_t>(dims.size()));
    }
    for (std::vector<int>& loads : kernel->signature.in_place)  // what is turned lies otherwise than results do
      for (const int turned : turned_loads) loads.erase(std::remove(loads.begin(), loads.end(), turned), loads.end());
    kernel->summary = Summarize(plan_, *kernel);
  }

  // The dimension along which packets go, if elements are side by side along another one, for rows that are not short.
  std::optional<int> LiesAcross(const Kernel& kernel, const Access& access) const {
    const runtime::KernelSignature& signature = kernel.signature;
    if (access.store || kernel.rank() != signature.row_axes + 1) return std::nullopt;
    const int last = access.LastDim();
    const auto vector = static_cast<std::size_t>(signature.vector_axis);
    const auto along = std::find(access.dim_of_axis.begin(), access.dim_of_axis.end(), last);
    if (access.dim_of_axis[vector] < 0 || access.dim_of_axis[vector] == last || along == access.dim_of_axis.end() ||
        !IsLong(kernel, vector) || !IsLong(kernel, static_cast<std::size_t>(along - access.dim_of_axis.begin())))
      return std::nullopt;
    return access.dim_of_axis[vector];
  }

  // The same of what is gathered, at positions that indices alone tell: most of the operand, as for less it would not
  // pay to turn all of it.
  std::optional<int> GatheredAcross(const Kernel& kernel, int operand) const {
    const runtime::KernelSignature& signature = kernel.signature;
    const auto vector = static_cast<std::size_t>(signature.vector_axis);
    const std::vector<runtime::Extent>& shape =
        plan_.buffers[static_cast<std::size_t>(signature.operands[static_cast<std::size_t>(operand)].buffer)].shape;
    const int last = static_cast<int>(shape.size()) - 1;
    const std::vector<bool> moves = MovesAlong(kernel, signature.vector_axis), data = FollowsFromMemory(kernel);
    std::optional<int> across;
    if (last < 1 || !IsLong(kernel, vector) || signature.goes_across_batch()) return std::nullopt;
    for (const Value& v : kernel.values) {
      if (v.kind != Value::Kind::kGather || v.index != operand) continue;
      int dim = -1;
      for (int d = 0; d <= last; ++d) {
        const auto position = static_cast<std::size_t>(v.args[static_cast<std::size_t>(d)]);
        if (data[position] || (moves[position] && dim >= 0)) return std::nullopt;
        if (moves[position]) dim = d;
      }
      if (dim < 0 || dim == last || (across && dim != *across)) return std::nullopt;
      if (StepAlong(kernel, v.args[static_cast<std::size_t>(dim)], signature.vector_axis) != 1) return std::nullopt;
      bool along = false;  // another axis, those of memory
      for (int axis = 0; axis < kernel.rank(); ++axis)
        along = along || (axis != signature.vector_axis && IsLong(kernel, static_cast<std::size_t>(axis)) &&
                          StepAlong(kernel, v.args[static_cast<std::size_t>(last)], axis) == 1);
      if (!along) return std::nullopt;
      across = dim;
    }
    return across && 2 * ElementsOf(signature.axes) >= ElementsOf(shape) ? across : std::nullopt;
  }

  static bool IsLong(const Kernel& kernel, std::size_t axis) {
    const runtime::Extent& extent = kernel.signature.axes[axis];
    const bool in_row = axis >= static_cast<std::size_t>(kernel.signature.row_axes);
    return !extent.is_static() || (extent.value >= kLeastExtent && !(in_row && IsShortRow(kernel, extent.value)));
  }

  static double ElementsOf(const std::vector<runtime::Extent>& shape) {
    double elements = 1;
    for (const runtime::Extent& extent : shape)
      elements *= extent.is_static() ? static_cast<double>(extent.value) : graph::kAssumedExtent;
    return elements;
  }

  // Is all of the buffer in memory before the group begins?
  bool IsThereBefore(const runtime::StepGroup& group, int buffer) const {
    buffer = runtime::HomeOf(plan_.buffers, buffer);
    if (plan_.buffers[static_cast<std::size_t>(buffer)].place >= 0 ||
        std::count(group.local.begin(), group.local.end(), buffer) != 0)
      return false;
    return std::none_of(plan_.steps.begin() + group.begin, plan_.steps.begin() + group.end,
                        [&](const auto& step) { return Writes(plan_, step, buffer); });
  }

  // The temporary that has the buffer's elements in that order; once for all kernels.
  int Turned(int buffer, const std::vector<int>& dims, std::vector<std::variant<Kernel, Gemm>>* steps) {
    const auto [found, fresh] = turned_.try_emplace({buffer, dims}, static_cast<int>(plan_.buffers.size()));
    if (!fresh) return found->second;
    const Buffer from = plan_.buffers[static_cast<std::size_t>(buffer)];
    Buffer turned;
    turned.name = from.name + "_turned";
    turned.kind = Buffer::Kind::kTemporary;
    turned.dtype = from.dtype;
    for (const int dim : dims) turned.shape.push_back(from.shape[static_cast<std::size_t>(dim)]);
    plan_.buffers.push_back(std::move(turned));
    steps->emplace_back(Copy(buffer, found->second, dims));
    return found->second;
  }

  // Elementwise; dimension d of the result is dimension dims[d] of what is read.
  Kernel Copy(int from, int to, const std::vector<int>& dims) {
    const Buffer& result = plan_.buffers[static_cast<std::size_t>(to)];
    Kernel kernel;
    runtime::KernelSignature& signature = kernel.signature;
    signature.name = plan_.name + "_turn" + (count_ == 0 ? "" : fmt::format("_{}", count_));
    ++count_;
    signature.axes = result.shape;
    signature.row_axes = kernel.rank() - 1;
    signature.vector_axis = kernel.rank() - 1;
    signature.elementwise = true;
    signature.cost = 2;
    std::vector<int> own(dims.size());
    std::iota(own.begin(), own.end(), 0);
    signature.operands = {{from, dims, false, false}, {to, std::move(own), true, false}};
    signature.in_place.resize(2);
    Value& load = kernel.values.emplace_back();
    load.kind = Value::Kind::kLoad;
    load.type = result.dtype;
    load.scope = Scope::kElement;
    Phase& phase = kernel.phases.emplace_back();
    phase.element_values = {0};
    phase.stores = {{1, 0}};
    kernel.summary = Summarize(plan_, kernel);
    return kernel;
  }

  Plan& plan_;
  std::map<std::pair<int, std::vector<int>>, int> turned_;  // by buffer, and its dimensions by that of what is turned
  int count_ = 0;
};

}  // namespace

void TurnOperands(Plan* plan) { Turner(plan).Run(); }

}  // namespace umbra::plan

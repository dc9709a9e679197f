#include "compiler/plan/turn_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

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
    if (signature.elementwise || guarded || kernel->rank() != signature.row_axes + 1 || SharesRows(*kernel)) return;
    std::vector<int> turned_loads;
    for (std::size_t operand = 0; operand < signature.operands.size(); ++operand) {
      Access& access = kernel->signature.operands[operand];
      if (!LiesAcross(*kernel, access) || !IsThereBefore(group, access.buffer)) continue;
      turned_loads.push_back(static_cast<int>(operand));
      const auto across = static_cast<std::size_t>(access.dim_of_axis[static_cast<std::size_t>(signature.vector_axis)]);
      std::vector<int> dims(plan_.buffers[static_cast<std::size_t>(access.buffer)]
                                .shape.size());  // of the operand, by dimension of what is turned
      std::iota(dims.begin(), dims.end(), 0);
      std::rotate(dims.begin() + static_cast<std::ptrdiff_t>(across),
                  dims.begin() + static_cast<std::ptrdiff_t>(across) + 1, dims.end());
      access.buffer = Turned(access.buffer, dims, steps);
      for (int& dim : access.dim_of_axis)
        if (dim >= 0) dim = static_cast<int>(std::find(dims.begin(), dims.end(), dim) - dims.begin());
    }
    for (std::vector<int>& loads : kernel->signature.in_place)  // what is turned lies otherwise than results do
      for (const int turned : turned_loads) loads.erase(std::remove(loads.begin(), loads.end(), turned), loads.end());
    kernel->summary = Summarize(plan_, *kernel);
  }

  // Are elements side by side along another axis than packets, for rows that are not short?
  bool LiesAcross(const Kernel& kernel, const Access& access) const {
    const runtime::KernelSignature& signature = kernel.signature;
    if (access.store || access.gathered) return false;
    const int last = access.LastDim();
    const auto vector = static_cast<std::size_t>(signature.vector_axis);
    const auto along = std::find(access.dim_of_axis.begin(), access.dim_of_axis.end(), last);
    if (access.dim_of_axis[vector] < 0 || access.dim_of_axis[vector] == last || along == access.dim_of_axis.end())
      return false;
    const auto is_long = [&](std::size_t axis) {
      const runtime::Extent& extent = signature.axes[axis];
      const bool in_row = axis >= static_cast<std::size_t>(signature.row_axes);
      return !extent.is_static() || (extent.value >= kLeastExtent && !(in_row && IsShortRow(kernel, extent.value)));
    };
    return is_long(vector) && is_long(static_cast<std::size_t>(along - access.dim_of_axis.begin()));
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

#include "compiler/plan/open_rows.h"

#include <algorithm>
#include <utility>

#include "compiler/plan/element_rows.h"
#include "compiler/plan/short_rows.h"
#include "compiler/transform/gather_reads.h"

namespace umbra::plan {

namespace {

using runtime::Access;

// The longest row of a reduction that goes through a few packets, without a loop where their number is known.
constexpr std::int64_t kFewPackets = 64;

// Do elements lie along the axis within what is reduced, in all that moves along both?
bool LiesBehindReduced(const runtime::KernelSignature& signature, int axis) {
  bool lies = false;
  for (const Access& access : signature.operands) {
    const int dim = access.dim_of_axis[static_cast<std::size_t>(axis)];
    const int reduced = *std::max_element(access.dim_of_axis.begin() + signature.row_axes, access.dim_of_axis.end());
    if (dim < 0 || reduced < 0) continue;
    if (dim < reduced) return false;
    lies = true;
  }
  return lies;
}

// Is something dear computed of elements that are gathered?
bool ComputesWhatItGathers(const Kernel& kernel) {
  const auto gathers = [](const Value& value) { return value.kind == Value::Kind::kGather; };
  const auto is_dear = [](const Value& value) {
    return value.kind == Value::Kind::kMap && value.scope == Scope::kElement &&
           graph::Info(value.op).cost > graph::kCheap;
  };
  return std::any_of(kernel.values.begin(), kernel.values.end(), gathers) &&
         std::any_of(kernel.values.begin(), kernel.values.end(), is_dear);
}

}  // namespace

std::vector<OpenRows> FindOpenRows(const Plan& plan) {
  std::vector<OpenRows> found;
  ForEachKernel(plan, [&](bool in_rows, const Kernel& kernel) {
    const runtime::KernelSignature& signature = kernel.signature;
    const auto add = [&](const runtime::Extent& extent, std::int64_t least, std::int64_t most) {
      if (!extent.is_static()) found.push_back({extent.symbol, signature.axes, least, most});
    };
    const ElementRows rows(plan, in_rows, true, kernel);
    const std::vector<int> axes = rows.Axes();
    for (const int axis : axes) add(signature.axes[static_cast<std::size_t>(axis)], 1, rows.LongestRow(axis));
    for (const int axis : axes)
      for (const runtime::Extent& source : rows.Sources(axis)) add(source, 1, rows.LongestRow(axis));
    for (const std::vector<int>& inner : rows.InnerAxes()) {
      FewPoints few{{}, inner.size() > 1 ? kLongestOfSeveral : LongestShortRow(kernel)};
      for (const int axis : inner) few.axes.push_back(signature.axes[static_cast<std::size_t>(axis)]);
      for (const runtime::Extent& extent : few.axes)
        if (!extent.is_static()) found.push_back({extent.symbol, signature.axes, 1, few.most, {few}});
    }
    const bool reduces = std::any_of(kernel.phases.begin(), kernel.phases.end(),
                                     [](const Phase& phase) { return !phase.reductions.empty(); });
    if (ComputesWhatItGathers(kernel))
      for (const Access& access : signature.operands)
        if (const auto& source = plan.buffers[static_cast<std::size_t>(access.buffer)].shape;
            access.gathered && !source.empty())
          add(source.back(), 1, graph::kLongRow - 1);
    const std::vector<runtime::Extent> row(signature.axes.begin() + signature.row_axes, signature.axes.end());
    for (int axis = signature.row_axes; reduces && kernel.vector_axis_is_inner() && axis < kernel.rank(); ++axis) {
      const runtime::Extent& extent = signature.axes[static_cast<std::size_t>(axis)];
      std::vector<FewPoints> few;  // of several axes that are a row together all
      if (axis != signature.vector_axis) few.push_back({row, kFewPackets});
      if (!extent.is_static()) found.push_back({extent.symbol, signature.axes, 1, kFewPackets, std::move(few)});
    }
    // Columns of one element are rows.
    for (int axis = 0; reduces && axis < signature.row_axes; ++axis)
      if (LiesBehindReduced(signature, axis)) add(signature.axes[static_cast<std::size_t>(axis)], 1, 1);
    // Windows that are as large as what they move over are no windows (compiler/transform/plain_gathers.h).
    for (const Access& access : signature.operands) {
      if (!reduces || !access.gathered) continue;
      const std::vector<runtime::Extent>& source = plan.buffers[static_cast<std::size_t>(access.buffer)].shape;
      for (auto axis = signature.axes.begin() + signature.row_axes; axis != signature.axes.end(); ++axis)
        for (auto dim = source.end() - std::min<std::ptrdiff_t>(2, source.end() - source.begin());
             dim != source.end() && axis->is_static(); ++dim)
          add(*dim, axis->value, axis->value);
    }
  });
  return found;
}

}  // namespace umbra::plan

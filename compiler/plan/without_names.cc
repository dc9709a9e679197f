#include "compiler/plan/without_names.h"

#include <fmt/format.h>

#include <map>

namespace umbra::plan {

Unnamed WithoutNames(const Plan& plan, const Kernel& kernel) {
  Unnamed result;
  result.plan.name = "kernel";
  for (std::size_t k = 0; k < plan.symbols.size(); ++k) result.plan.symbols.push_back(UnnamedExtent(k));
  result.kernel = kernel;
  result.kernel.signature.name = "kernel";
  result.kernel.summary.clear();
  for (Value& value : result.kernel.values) value.label.clear();
  std::map<int, int> buffers;
  for (runtime::Access& access : result.kernel.signature.operands) {
    const auto [found, fresh] = buffers.emplace(access.buffer, static_cast<int>(result.plan.buffers.size()));
    if (fresh) {
      result.plan.buffers.push_back(plan.buffers[static_cast<std::size_t>(access.buffer)]);
      result.plan.buffers.back().name = fmt::format("b{}", found->second);
    }
    access.buffer = found->second;
  }
  for (int& scalar : result.kernel.signature.scalars) {
    const auto dtype = plan.scalars[static_cast<std::size_t>(scalar)].second;
    scalar = static_cast<int>(result.plan.scalars.size());
    result.plan.scalars.emplace_back(fmt::format("s{}", scalar), dtype);
  }
  return result;
}

}  // namespace umbra::plan

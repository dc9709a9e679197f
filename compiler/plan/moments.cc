#include "compiler/plan/moments.h"

namespace umbra::plan {

namespace {

bool SumsAlone(const Phase& phase) {
  return phase.guard < 0 && phase.stages.empty() && phase.stores.empty() && phase.reductions.size() == 1 &&
         phase.reductions[0].kind == graph::Reducer::sum;
}

}  // namespace

std::optional<Moments> FindMoments(const Kernel& kernel) {
  const auto value = [&](int id) -> const Value& { return kernel.values[static_cast<std::size_t>(id)]; };
  if (kernel.phases.size() < 2 || !SumsAlone(kernel.phases[0]) || !SumsAlone(kernel.phases[1]) || HasScans(kernel))
    return std::nullopt;
  const Reduction& first = kernel.phases[0].reductions[0];
  const Reduction& second = kernel.phases[1].reductions[0];
  const Value& product = value(second.value);
  if (product.kind != Value::Kind::kMap || product.op != graph::Op::mul || product.args[0] != product.args[1])
    return std::nullopt;
  const Value& away = value(product.args[0]);
  if (away.kind != Value::Kind::kMap || away.op != graph::Op::minus) return std::nullopt;
  const bool sign = away.args[0] == first.value;
  const int center = away.args[sign ? 1 : 0];
  if (value(first.value).scope != Scope::kElement || away.args[sign ? 0 : 1] != first.value ||
      value(center).scope != Scope::kRow)
    return std::nullopt;
  if (away.type != value(first.result).type || away.type != value(second.result).type ||
      (away.type != DType::kFloat32 && away.type != DType::kFloat64))
    return std::nullopt;
  return Moments{first.value, center, second.result};
}

}  // namespace umbra::plan

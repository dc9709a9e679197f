#include "compiler/plan/plan.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "runtime/panels.h"

namespace umbra::plan {

bool Reads(const Plan& plan, const std::variant<Kernel, Gemm>& step, int buffer) {
  const auto is_in = [&](int other) { return runtime::HomeOf(plan.buffers, other) == buffer; };
  if (const auto* gemm = std::get_if<Gemm>(&step)) return is_in(gemm->step.a) || is_in(gemm->step.b);
  const auto& operands = std::get<Kernel>(step).signature.operands;
  return std::any_of(operands.begin(), operands.end(),
                     [&](const runtime::Access& access) { return !access.store && is_in(access.buffer); });
}

bool Writes(const Plan& plan, const std::variant<Kernel, Gemm>& step, int buffer) {
  const auto is_in = [&](int other) { return runtime::HomeOf(plan.buffers, other) == buffer; };
  if (const auto* gemm = std::get_if<Gemm>(&step)) return is_in(gemm->step.c);
  const auto& operands = std::get<Kernel>(step).signature.operands;
  return std::any_of(operands.begin(), operands.end(),
                     [&](const runtime::Access& access) { return access.store && is_in(access.buffer); });
}

std::vector<bool> FollowsFromMemory(const Kernel& kernel) {
  std::vector<bool> follows(kernel.values.size(), false);
  for (std::size_t id = 0; id < follows.size(); ++id) {
    const Value& v = kernel.values[id];
    follows[id] =
        v.kind == Value::Kind::kLoad || v.kind == Value::Kind::kGather ||
        std::any_of(v.args.begin(), v.args.end(), [&](int arg) { return follows[static_cast<std::size_t>(arg)]; });
  }
  return follows;
}

std::vector<bool> MovesAlong(const Kernel& kernel, int axis) {
  std::vector<bool> moves(kernel.values.size(), true);  // what was kept by an earlier phase does
  for (std::size_t id = 0; id < moves.size(); ++id) {
    const Value& v = kernel.values[id];
    switch (v.kind) {
      case Value::Kind::kLoad:
        moves[id] =
            kernel.signature.operands[static_cast<std::size_t>(v.index)].dim_of_axis[static_cast<std::size_t>(axis)] >=
            0;
        break;
      case Value::Kind::kIndex: moves[id] = v.index == axis; break;
      case Value::Kind::kReduced: moves[id] = axis < kernel.signature.row_axes; break;
      case Value::Kind::kScanned:
        moves[id] = axis + 1 == kernel.rank() || moves[static_cast<std::size_t>(v.args[0])];
        break;
      case Value::Kind::kStaged: break;
      default:
        moves[id] =
            std::any_of(v.args.begin(), v.args.end(), [&](int arg) { return moves[static_cast<std::size_t>(arg)]; });
    }
  }
  return moves;
}

bool SharesRows(const Kernel& kernel) {
  const runtime::KernelSignature& signature = kernel.signature;
  if (!signature.goes_along_columns() || signature.row_axes < 2 || signature.positional || kernel.phases.size() != 1 ||
      HasScans(kernel))
    return false;
  const Phase& phase = kernel.phases[0];
  if (phase.reductions.empty() || !phase.stores.empty() || !phase.stages.empty() || phase.guard >= 0) return false;
  const auto rows = static_cast<std::size_t>(signature.row_axes) - 2;
  if (signature.axes[rows] == runtime::Extent::Static(1)) return false;
  return std::any_of(phase.element_values.begin(), phase.element_values.end(), [&](int id) {
    const Value& v = kernel.values[static_cast<std::size_t>(id)];
    if (v.kind != Value::Kind::kLoad) return false;
    const auto& dim = signature.operands[static_cast<std::size_t>(v.index)].dim_of_axis;
    return dim[rows] < 0 && dim[rows + 1] >= 0;
  });
}

std::vector<int> PanelsOf(const Kernel& kernel) {
  std::vector<int> panels;
  const runtime::KernelSignature& signature = kernel.signature;
  if (!SharesRows(kernel) || kernel.rank() != signature.row_axes + 1) return panels;
  const auto inner = static_cast<std::size_t>(signature.row_axes);
  for (std::size_t k = 0; k < signature.operands.size(); ++k) {
    const auto& [buffer, dim, store, gathered, dense] = signature.operands[k];
    if (!store && !gathered && dim[inner] >= 0 && dim[inner - 1] >= 0 && dim[inner - 2] < 0)
      panels.push_back(static_cast<int>(k));
  }
  panels.insert(panels.end(), panels.empty() ? 0 : PanelValues(kernel).size(), -1);
  return panels;
}

std::vector<int> PanelValues(const Kernel& kernel) {
  const int inner = kernel.signature.row_axes;
  const std::vector<bool> rows = MovesAlong(kernel, inner - 2), columns = MovesAlong(kernel, inner - 1),
                          steps = MovesAlong(kernel, inner);
  const auto is_shared = [&](int id) {
    const auto k = static_cast<std::size_t>(id);
    return !rows[k] && columns[k] && steps[k];
  };
  std::set<int> read;  // by something else
  for (const int id : kernel.phases[0].element_values)
    for (const int arg : kernel.values[static_cast<std::size_t>(id)].args)
      if (!is_shared(id)) read.insert(arg);
  for (const Reduction& reduction : kernel.phases[0].reductions) read.insert(reduction.value);
  std::vector<bool> turned(kernel.values.size());  // made of what is copied anyway, as its columns lie across memory?
  for (std::size_t id = 0; id < turned.size(); ++id) {
    const Value& v = kernel.values[id];
    turned[id] =
        std::any_of(v.args.begin(), v.args.end(), [&](int arg) { return turned[static_cast<std::size_t>(arg)]; });
    if (v.kind == Value::Kind::kLoad) turned[id] = runtime::LiesAcross(kernel.signature, v.index);
  }
  std::vector<int> made;
  for (const int id : kernel.phases[0].element_values) {
    const Value& v = kernel.values[static_cast<std::size_t>(id)];
    const bool computed =
        (v.kind == Value::Kind::kMap || v.kind == Value::Kind::kCast) && !turned[static_cast<std::size_t>(id)];
    if (computed && is_shared(id) && read.count(id) != 0 && v.type != DType::kBool && !IsHalf(v.type))
      made.push_back(id);
  }
  return made;
}

bool HasScans(const Kernel& kernel) {
  return std::any_of(kernel.values.begin(), kernel.values.end(),
                     [](const Value& v) { return v.kind == Value::Kind::kScanned; });
}

std::vector<int> ScansOf(const Kernel& kernel, const Phase& phase) {
  std::vector<int> scans;
  for (const int id : phase.element_values)
    if (kernel.values[static_cast<std::size_t>(id)].kind == Value::Kind::kScanned) scans.push_back(id);
  return scans;
}

std::vector<int> NeededElements(const Kernel& kernel, const Phase& phase) {
  std::vector<int> order;
  std::set<int> seen;
  const std::function<void(int)> collect = [&](int id) {
    const Value& v = kernel.values[static_cast<std::size_t>(id)];
    if (v.scope != Scope::kElement || !seen.insert(id).second) return;
    for (const int arg : v.args) collect(arg);
    order.push_back(id);
  };
  for (const Reduction& reduction : phase.reductions) collect(reduction.value);
  for (const Store& store : phase.stores) collect(store.value);
  for (const Stage& stage : phase.stages) collect(stage.value);
  return order;
}

double CostFromMemory(const Kernel& kernel, int id) {
  std::set<int> seen;
  std::vector<int> left = {id};
  double cost = 0;
  while (!left.empty()) {
    const int next = left.back();
    const Value& v = kernel.values[static_cast<std::size_t>(next)];
    left.pop_back();
    if (v.scope != Scope::kElement || !seen.insert(next).second) continue;
    if (v.kind == Value::Kind::kMap) cost += graph::Info(v.op).cost;
    if (v.kind == Value::Kind::kScanned) cost += kScannedCost;
    left.insert(left.end(), v.args.begin(), v.args.end());
  }
  return cost;
}

double ElementCost(const Kernel& kernel) {
  double cost = 0;
  for (const Phase& phase : kernel.phases) {
    if (phase.guard >= 0) continue;  // hardly an element counts
    for (const int id : phase.element_values) {
      const Value& v = kernel.values[static_cast<std::size_t>(id)];
      cost += v.kind == Value::Kind::kMap ? graph::Info(v.op).cost : v.kind == Value::Kind::kScanned ? kScannedCost : 1;
    }
    cost += static_cast<double>(phase.reductions.size() + phase.stores.size() + phase.stages.size());
  }
  return std::max(cost, 1.0);
}

bool IsStoredLater(const Kernel& kernel, const Phase& phase, const Store& store) {
  return std::any_of(kernel.phases.begin() + (&phase - kernel.phases.data()) + 1, kernel.phases.end(),
                     [&](const Phase& later) {
                       return std::any_of(later.stores.begin(), later.stores.end(),
                                          [&](const Store& other) { return other.operand == store.operand; });
                     });
}

void OrderValues(Kernel* kernel) {
  std::vector<int> place(kernel->values.size(), -1);
  std::vector<Value> ordered;
  const std::function<void(int)> put = [&](int id) {
    if (place[static_cast<std::size_t>(id)] >= 0) return;
    Value& v = kernel->values[static_cast<std::size_t>(id)];
    for (const int arg : v.args) put(arg);
    place[static_cast<std::size_t>(id)] = static_cast<int>(ordered.size());
    ordered.push_back(std::move(v));
  };
  for (std::size_t id = 0; id < place.size(); ++id) put(static_cast<int>(id));
  const auto renumber = [&](int* id) { *id = *id < 0 ? *id : place[static_cast<std::size_t>(*id)]; };
  const auto renumber_all = [&](std::vector<int>* ids) {
    std::for_each(ids->begin(), ids->end(), [&](int& id) { renumber(&id); });
  };
  for (Value& v : ordered) renumber_all(&v.args);
  for (Phase& phase : kernel->phases) {
    renumber(&phase.guard);
    for (auto* ids : {&phase.guard_values, &phase.row_values, &phase.element_values}) renumber_all(ids);
    for (Reduction& reduction : phase.reductions) renumber(&reduction.value), renumber(&reduction.result);
    for (Stage& stage : phase.stages) renumber(&stage.value);
    for (Store& store : phase.stores) renumber(&store.value);
  }
  renumber_all(&kernel->final_row_values);
  for (Store& store : kernel->final_stores) renumber(&store.value);
  kernel->values = std::move(ordered);
}

}  // namespace umbra::plan

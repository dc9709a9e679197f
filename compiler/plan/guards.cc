#include "compiler/plan/guards.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace umbra::plan {

namespace {

using graph::Op;
using graph::Reducer;
using Kind = Value::Kind;

// Rows that packets ask all at once sooner than a step finds its own.
constexpr std::int64_t kFewRows = 32;

// The condition, and the conditions that it does not hold without, each once.
std::vector<int> Conjuncts(const Kernel& kernel, int condition) {
  std::vector<int> conjuncts, open = {condition};
  std::set<int> seen;
  while (!open.empty()) {
    const int id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    conjuncts.push_back(id);
    const Value& v = kernel.values[static_cast<std::size_t>(id)];
    if (v.kind == Kind::kMap && v.op == Op::logical_and) open.insert(open.end(), v.args.rbegin(), v.args.rend());
  }
  return conjuncts;
}

// The axis whose position the value is: of i32, too, if that has them all.
std::optional<int> RowOfPosition(const Kernel& kernel, int id) {
  const Value& v = kernel.values[static_cast<std::size_t>(id)];
  if (v.kind == Kind::kCast && v.type == DType::kInt32) {
    const auto axis = RowOfPosition(kernel, v.args[0]);
    if (!axis) return std::nullopt;
    const runtime::Extent& rows = kernel.signature.axes[static_cast<std::size_t>(*axis)];
    return rows.is_static() && rows.value <= std::numeric_limits<std::int32_t>::max() ? axis : std::nullopt;
  }
  return v.kind == Kind::kIndex && v.index < kernel.signature.row_axes ? std::optional(v.index) : std::nullopt;
}

std::optional<StepKey> KeyIn(const Kernel& kernel, int condition) {
  const Value& v = kernel.values[static_cast<std::size_t>(condition)];
  if (v.kind != Kind::kMap || v.op != Op::eq) return std::nullopt;
  for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
    const int key = v.args[1 - k];
    const auto axis = RowOfPosition(kernel, v.args[k]);
    if (axis && !MovesAlong(kernel, *axis)[static_cast<std::size_t>(key)]) return StepKey{key, *axis};
  }
  return std::nullopt;
}

class Guards {
 public:
  explicit Guards(Kernel* kernel) : kernel_(*kernel) {}

  void Run(bool across_one) {
    if (!Selects()) return;
    FindMoves();
    data_ = FollowsFromMemory(kernel_);
    bool found = GuardPhases();
    if (!found && kernel_.vector_axis_is_inner() && kernel_.phases.size() == 1) {
      const int inner = std::exchange(kernel_.signature.vector_axis, kernel_.signature.row_axes - 1);
      found = GuardPhases();
      if (!found) kernel_.signature.vector_axis = inner;
    }
    if (!found && across_one && kernel_.phases.size() == 1 && HasManyRows()) {
      const Kernel without = kernel_;
      AddAxisOfOne();
      FindMoves();
      found = GuardPhases() && CountsSteps(kernel_.phases[0]);
      if (!found) kernel_ = without;
    }
    if (found) ForgetUnread();
  }

 private:
  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }
  bool Moves(int id, int axis) const { return moves_[static_cast<std::size_t>(axis)][static_cast<std::size_t>(id)]; }
  bool MovesAlongAny(int id, int begin, int end) const {
    for (int axis = begin; axis < end; ++axis)
      if (Moves(id, axis)) return true;
    return false;
  }
  bool MovesByStep(int id) const { return MovesAlongAny(id, kernel_.signature.row_axes, kernel_.rank()); }
  bool MovesByRow(int id) const { return MovesAlongAny(id, 0, kernel_.signature.row_axes); }

  void FindMoves() {
    moves_.clear();
    for (int axis = 0; axis < kernel_.rank(); ++axis) moves_.push_back(MovesAlong(kernel_, axis));
  }

  bool HasManyRows() const {
    const runtime::Extent& rows = kernel_.signature.axes[static_cast<std::size_t>(kernel_.signature.row_axes - 1)];
    return !rows.is_static() || rows.value > kFewRows;
  }

  // Does each step bring the row that it counts for, whatever rows have?
  bool CountsSteps(const Phase& phase) const {
    const auto key = FindStepKey(kernel_, phase);
    std::set<int> seen;
    return key && key->row_axis == kernel_.signature.row_axes - 2 && !ReadsByRow(phase.guard, &seen);
  }
  bool ReadsByRow(int id, std::set<int>* seen) const {
    const Value& v = value(id);
    if (!seen->insert(id).second) return false;
    if (v.kind == Kind::kLoad || v.kind == Kind::kGather) return MovesByRow(id);
    return std::any_of(v.args.begin(), v.args.end(), [&](int arg) { return ReadsByRow(arg, seen); });
  }

  // The last row axis, of one index, which nothing moves along.
  void AddAxisOfOne() {
    runtime::KernelSignature& signature = kernel_.signature;
    const int axis = signature.row_axes++;
    signature.vector_axis = axis;
    signature.axes.insert(signature.axes.begin() + axis, runtime::Extent::Static(1));
    for (runtime::Access& access : signature.operands) access.dim_of_axis.insert(access.dim_of_axis.begin() + axis, -1);
    for (Value& v : kernel_.values)
      if (v.kind == Kind::kIndex && v.index >= axis) ++v.index;
  }

  bool Selects() const {
    return std::any_of(kernel_.phases.begin(), kernel_.phases.end(), [this](const Phase& phase) {
      return !phase.reductions.empty() && Chosen(phase.reductions[0].value).has_value();
    });
  }

  // What an element is where a condition holds, and the constant that it is elsewhere.
  struct Choice {
    int condition;
    double otherwise;
  };
  std::optional<Choice> Chosen(int id) const {
    const Value& v = value(id);
    if (v.kind == Kind::kGather && v.guarded) return Choice{v.args.back(), v.constant};
    if (v.kind == Kind::kMap && v.op == Op::select && value(v.args[2]).kind == Kind::kConstant)
      return Choice{v.args[0], value(v.args[2]).constant};
    if (v.kind != Kind::kCast) return std::nullopt;
    const auto choice = Chosen(v.args[0]);
    const bool floats = IsFloat(v.type) && IsFloat(value(v.args[0]).type);
    const bool stays =
        choice && (choice->otherwise == 0 || choice->otherwise == 1 || (floats && std::isinf(choice->otherwise)));
    return stays ? choice : std::nullopt;
  }

  // Does the constant leave any result as it is? Sums begin with 0 and so are never -0; NaN stays as it is.
  bool IsIdentity(const Reduction& reduction, double constant) const {
    const DType type = value(reduction.result).type;
    const bool narrow = type == DType::kInt32;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    switch (reduction.kind) {
      case Reducer::sum: return constant == 0;
      case Reducer::product: return constant == 1;
      case Reducer::maximum: return constant == (IsFloat(type) ? -kInfinity : narrow ? -0x1p31 : -0x1p63);
      case Reducer::minimum: return IsFloat(type) ? constant == kInfinity : narrow && constant == 0x1p31 - 1;
    }
    return false;
  }

  // Is it a number of the step, which data tell, that is compared with one of the row? At random it is so for one row
  // of all.
  bool ComparesKeys(int condition) const {
    const Value& v = value(condition);
    if (v.kind != Kind::kMap || v.op != Op::eq) return false;
    const auto is_pair = [this](int step, int row) {
      return data_[static_cast<std::size_t>(step)] && MovesByStep(step) && !MovesByRow(step) && MovesByRow(row) &&
             !MovesByStep(row);
    };
    return is_pair(v.args[0], v.args[1]) || is_pair(v.args[1], v.args[0]);
  }

  // Is it that, perhaps with further conditions, and one for all lanes?
  bool MayGuard(int condition) const {
    if (Moves(condition, kernel_.signature.vector_axis)) return false;
    const std::vector<int> conjuncts = Conjuncts(kernel_, condition);
    return std::any_of(conjuncts.begin(), conjuncts.end(), [this](int id) { return ComparesKeys(id); });
  }
  bool Needs(int condition, int guard) const {
    const std::vector<int> conjuncts = Conjuncts(kernel_, condition);
    return std::find(conjuncts.begin(), conjuncts.end(), guard) != conjuncts.end();
  }

  int GuardOf(const Phase& phase) const {
    if (phase.reductions.empty() || !phase.stages.empty() || !phase.stores.empty()) return -1;
    const auto first = Chosen(phase.reductions[0].value);
    if (!first) return -1;
    const std::vector<int> guards = Conjuncts(kernel_, first->condition);
    const auto found = std::find_if(guards.begin(), guards.end(), [&](int guard) {
      return MayGuard(guard) &&
             std::all_of(phase.reductions.begin(), phase.reductions.end(), [&](const Reduction& reduction) {
               const auto choice = Chosen(reduction.value);
               return choice && IsIdentity(reduction, choice->otherwise) && Needs(choice->condition, guard);
             });
    });
    return found == guards.end() ? -1 : *found;
  }

  bool GuardPhases() {
    bool found = false;
    for (Phase& phase : kernel_.phases) {
      phase.guard = GuardOf(phase);
      if (phase.guard < 0) continue;
      found = true;
      for (Reduction& reduction : phase.reductions) reduction.value = Guarded(reduction.value, phase.guard);
      phase.guard_values.clear();
      phase.element_values.clear();
      std::set<int> seen;
      Collect(phase.guard, &seen, &phase.guard_values);
      seen.clear();
      for (const Reduction& reduction : phase.reductions) Collect(reduction.value, &seen, &phase.element_values);
    }
    return found;
  }

  // The value where the guard holds.
  int Guarded(int id, int guard) {
    const auto [found, fresh] = guarded_.try_emplace({id, guard}, id);
    if (!fresh || value(id).scope != Scope::kElement) return found->second;
    Value v = value(id);
    if (v.kind == Kind::kMap && v.op == Op::select && v.args[0] == guard)
      return found->second = Guarded(v.args[1], guard);
    if (v.kind == Kind::kGather && v.guarded && v.args.back() == guard) {
      v.guarded = false;
      v.args.pop_back();
    }
    for (int& arg : v.args) arg = Guarded(arg, guard);
    if (v.args == value(id).args) return id;
    kernel_.values.push_back(std::move(v));
    return found->second = static_cast<int>(kernel_.values.size()) - 1;
  }

  void Collect(int id, std::set<int>* seen, std::vector<int>* order) const {
    if (value(id).scope != Scope::kElement || !seen->insert(id).second) return;
    for (const int arg : value(id).args) Collect(arg, seen, order);
    order->push_back(id);
  }

  // Values that only the conditions' other outcome was made of are gone.
  void ForgetUnread() {
    std::vector<bool> read(kernel_.values.size(), false);
    const std::function<void(int)> reach = [&](int id) {
      if (read[static_cast<std::size_t>(id)]) return;
      read[static_cast<std::size_t>(id)] = true;
      for (const int arg : value(id).args) reach(arg);
    };
    for (const Phase& phase : kernel_.phases) {
      if (phase.guard >= 0) reach(phase.guard);
      for (const auto& reduction : phase.reductions) reach(reduction.value), reach(reduction.result);
      for (const auto& stage : phase.stages) reach(stage.value);
      for (const auto& store : phase.stores) reach(store.value);
    }
    for (const auto& store : kernel_.final_stores) reach(store.value);
    for (std::size_t id = 0; id < read.size(); ++id)
      if (!read[id] && kernel_.values[id].scope == Scope::kElement) kernel_.values[id] = {};
  }

  Kernel& kernel_;
  std::vector<std::vector<bool>> moves_;  // by axis and value
  std::vector<bool> data_;  // by value: does it depend on memory?
  std::map<std::pair<int, int>, int> guarded_;  // by value and guard
};

}  // namespace

std::optional<StepKey> FindStepKey(const Kernel& kernel, const Phase& phase) {
  if (phase.guard < 0) return std::nullopt;
  for (const int condition : Conjuncts(kernel, phase.guard))
    if (const auto key = KeyIn(kernel, condition)) return key;
  return std::nullopt;
}

void FindGuards(Kernel* kernel, bool across_one) {
  if (!HasScans(*kernel)) Guards(kernel).Run(across_one);
}

}  // namespace umbra::plan

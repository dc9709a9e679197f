#include "compiler/plan/keep_in_results.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/plan/column_buffers.h"

namespace umbra::plan {

namespace {

// Rows of so few elements have their own way.
constexpr index_t kFewElements = 64;

class Keeping {
 public:
  Keeping(const Plan& plan, Kernel* kernel) : plan_(plan), kernel_(*kernel), home_(kernel->values.size(), -1) {
    for (std::size_t p = 0; p < kernel_.phases.size(); ++p)
      for (const int id : kernel_.phases[p].element_values)
        if (int& home = home_[Index(id)]; home < 0) home = static_cast<int>(p);
  }

  // Is anything kept?
  bool Run() {
    bool keeps = false;
    if (!MayKeep()) return keeps;
    for (std::size_t k = 0; k < kernel_.signature.operands.size(); ++k) {
      const int operand = static_cast<int>(k), phase = StoringPhase(operand);
      for (const int id : DearFor(operand, phase))
        if (TryKeep(id, operand)) {
          keeps = true;
          break;
        }
    }
    return keeps;
  }

 private:
  static std::size_t Index(int id) { return static_cast<std::size_t>(id); }
  const Value& value(int id) const { return kernel_.values[Index(id)]; }
  int home(int id) const { return home_[Index(id)]; }

  bool MayKeep() const {
    const runtime::KernelSignature& signature = kernel_.signature;
    if (!signature.goes_along_columns() || !signature.row_buffers.empty() || kernel_.rank() != signature.row_axes + 1)
      return false;
    const runtime::Extent& inner = signature.axes.back();
    if (inner.is_static() && inner.value <= kFewElements && ReducesAlongRows(kernel_)) return false;
    return std::all_of(kernel_.phases.begin(), kernel_.phases.end(),
                       [](const Phase& phase) { return phase.guard < 0; });
  }

  // The phase that stores an element of the operand at each point; -1 if there is none, or something else has its
  // memory.
  int StoringPhase(int operand) const {
    const runtime::Access& access = kernel_.signature.operands[Index(operand)];
    if (!access.store ||
        std::any_of(access.dim_of_axis.begin(), access.dim_of_axis.end(), [](int dim) { return dim < 0; }))
      return -1;
    const auto shared = std::count_if(kernel_.signature.operands.begin(), kernel_.signature.operands.end(),
                                      [&](const runtime::Access& other) { return other.buffer == access.buffer; });
    const bool holds = std::any_of(plan_.buffers.begin(), plan_.buffers.end(),
                                   [&](const runtime::Buffer& buffer) { return buffer.place == access.buffer; });
    if (shared != 1 || holds) return -1;
    for (std::size_t p = 0; p < kernel_.phases.size(); ++p)
      for (const Store& store : kernel_.phases[p].stores)
        if (store.operand == operand) return static_cast<int>(p);
    return -1;
  }

  // The dear values that an earlier phase computes, and that until `phase` only what is new in a phase needs again; the
  // dearest first.
  std::vector<int> DearFor(int operand, int phase) const {
    const DType type = plan_.buffers[Index(kernel_.signature.operands[Index(operand)].buffer)].dtype;
    std::vector<std::pair<double, int>> dear;
    for (int id = 0; id < static_cast<int>(home_.size()); ++id) {
      const bool computed = value(id).kind == Value::Kind::kMap || value(id).kind == Value::Kind::kScanned;
      if (home(id) < 0 || home(id) >= phase || !computed || value(id).type != type || !IsKeptUntil(id, phase)) continue;
      if (const double cost = CostFromMemory(kernel_, id); cost >= kKeptCost) dear.emplace_back(-cost, id);
    }
    std::sort(dear.begin(), dear.end());
    std::vector<int> ids;
    for (const auto& of : dear) ids.push_back(of.second);
    return ids;
  }

  // Is the value, once kept, computed in no later phase, and read in one, but in none after `phase`?
  bool IsKeptUntil(int id, int phase) const {
    bool is_read = false;
    for (int p = home(id) + 1; p < static_cast<int>(kernel_.phases.size()); ++p) {
      const Phase& of = kernel_.phases[Index(p)];
      const auto reads = [&](const auto& list) {
        return std::any_of(list.begin(), list.end(), [id](const auto& item) { return item.value == id; });
      };
      bool reads_here = reads(of.reductions) || reads(of.stores);
      for (const int reader : of.element_values) {
        const auto& args = value(reader).args;
        if (std::find(args.begin(), args.end(), id) == args.end()) continue;
        if (home(reader) < p) return false;  // which is computed again, too
        reads_here = true;
      }
      if (reads_here && p > phase) return false;
      is_read = is_read || reads_here;
    }
    return is_read;
  }

  // The result has to be able to take the place of the same operands as before.
  bool TryKeep(int id, int operand) {
    Kernel before = kernel_;
    Keep(id, operand);
    if (!ReadsItsPlaceAfter(operand, home(id))) return true;
    kernel_ = std::move(before);
    home_.pop_back();
    return false;
  }

  void Keep(int id, int operand) {
    const int kept_by = home(id);
    Value load;
    load.kind = Value::Kind::kLoad;
    load.type = value(id).type;
    load.scope = Scope::kElement;
    load.index = operand;
    load.label = value(id).label;
    kernel_.values.push_back(std::move(load));
    home_.push_back(kept_by + 1);
    const int again = static_cast<int>(kernel_.values.size()) - 1;
    kernel_.phases[Index(kept_by)].stores.push_back({operand, id});
    for (std::size_t p = Index(kept_by) + 1; p < kernel_.phases.size(); ++p) {
      Phase& phase = kernel_.phases[p];
      for (Reduction& reduction : phase.reductions) Replace(id, again, &reduction.value);
      for (Store& store : phase.stores) Replace(id, again, &store.value);
      for (const int reader : phase.element_values)
        if (home(reader) > kept_by)
          for (int& arg : kernel_.values[Index(reader)].args) Replace(id, again, &arg);
      phase.element_values = NeededElements(kernel_, phase);
    }
  }

  static void Replace(int id, int by, int* in) {
    if (*in == id) *in = by;
  }

  // Does a phase after `kept_by` read an operand that may have the result's memory?
  bool ReadsItsPlaceAfter(int operand, int kept_by) const {
    const std::vector<int>& loads = kernel_.signature.in_place[Index(operand)];
    return std::any_of(kernel_.phases.begin() + kept_by + 1, kernel_.phases.end(), [&](const Phase& phase) {
      return std::any_of(phase.element_values.begin(), phase.element_values.end(), [&](int id) {
        return value(id).kind == Value::Kind::kLoad &&
               std::find(loads.begin(), loads.end(), value(id).index) != loads.end();
      });
    });
  }

  const Plan& plan_;
  Kernel& kernel_;
  std::vector<int> home_;  // by value: the first phase that computes it; -1 of what is none of elements
};

}  // namespace

void KeepInResults(Plan* plan) {
  for (auto& step : plan->steps)
    if (auto* kernel = std::get_if<Kernel>(&step); kernel != nullptr && Keeping(*plan, kernel).Run()) {
      OrderValues(kernel);
      kernel->signature.cost = ElementCost(*kernel);
    }
}

}  // namespace umbra::plan

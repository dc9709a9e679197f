#include "compiler/plan/signs.h"

#include <algorithm>

namespace umbra::plan {

namespace {

constexpr int kSteps = 6;

class Signs {
 public:
  explicit Signs(const Kernel& kernel) : kernel_(kernel) {}

  // `steps`: how many operations are looked behind; what is shared would be looked at again and again.
  bool AtMostZero(int id, int steps) const {
    const Value& v = At(id);
    if (v.kind == Value::Kind::kConstant) return v.constant <= 0;
    if (v.kind != Value::Kind::kMap || steps == 0) return false;
    const auto below = [&](std::size_t k) { return AtMostZero(v.args[k], steps - 1); };
    const auto above = [&](std::size_t k) { return AtLeastZero(v.args[k], steps - 1); };
    switch (v.op) {
      case graph::Op::negative: return above(0);
      case graph::Op::minimum: return below(0) || below(1);
      case graph::Op::minus: return IsMaximumOf(v.args[1], v.args[0]);
      case graph::Op::mul: return (below(0) && above(1)) || (above(0) && below(1));
      default: return false;
    }
  }

 private:
  const Value& At(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }

  bool AtLeastZero(int id, int steps) const {
    const Value& v = At(id);
    if (v.kind == Value::Kind::kConstant) return v.constant >= 0;
    if (v.kind != Value::Kind::kMap || steps == 0) return false;
    const auto above = [&](std::size_t k) { return AtLeastZero(v.args[k], steps - 1); };
    switch (v.op) {
      case graph::Op::abs: return true;
      case graph::Op::mul: return v.args[0] == v.args[1] || (above(0) && above(1));
      case graph::Op::maximum: return above(0) || above(1);
      default: return false;
    }
  }

  // Elements that a guard leaves out may be larger than the maximum.
  bool IsMaximumOf(int most, int element) const {
    return std::any_of(kernel_.phases.begin(), kernel_.phases.end(), [&](const Phase& phase) {
      return phase.guard < 0 &&
             std::any_of(phase.reductions.begin(), phase.reductions.end(), [&](const Reduction& reduction) {
               return reduction.kind == graph::Reducer::maximum && reduction.result == most &&
                      IsSame(reduction.value, element);
             });
    });
  }

  // A value, or what an earlier phase has kept of it.
  bool IsSame(int kept, int element) const {
    if (kept == element) return true;
    const Value& v = At(element);
    return v.kind == Value::Kind::kStaged &&
           std::any_of(kernel_.phases.begin(), kernel_.phases.end(), [&](const Phase& phase) {
             return std::any_of(phase.stages.begin(), phase.stages.end(),
                                [&](const Stage& stage) { return stage.row_buffer == v.index && stage.value == kept; });
           });
  }

  const Kernel& kernel_;
};

}  // namespace

bool IsAtMostZero(const Kernel& kernel, int value) { return Signs(kernel).AtMostZero(value, kSteps); }

bool IsAddedToOne(const Kernel& kernel, int value) {
  const auto is_it = [&](const auto& user) { return user.value == value; };
  const auto is_kept = [&](const Phase& phase) {
    return phase.guard == value || std::ranges::any_of(phase.reductions, is_it) ||
           std::ranges::any_of(phase.stages, is_it) || std::ranges::any_of(phase.stores, is_it);
  };
  const auto is_sum = [&](const Value& v) {
    if (v.kind != Value::Kind::kMap || v.op != graph::Op::plus) return false;
    const Value& other = kernel.values[static_cast<std::size_t>(v.args[v.args[0] == value ? 1 : 0])];
    return other.kind == Value::Kind::kConstant && other.constant >= 1;
  };
  return std::ranges::none_of(kernel.phases, is_kept) && std::ranges::none_of(kernel.final_stores, is_it) &&
         std::ranges::all_of(kernel.values,
                             [&](const Value& v) { return std::ranges::count(v.args, value) == 0 || is_sum(v); });
}

}  // namespace umbra::plan

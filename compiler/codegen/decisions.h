// Conditions that are known where code is written for each of their values.
#ifndef UMBRA_COMPILER_CODEGEN_DECISIONS_H_
#define UMBRA_COMPILER_CODEGEN_DECISIONS_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "compiler/plan/plan.h"

namespace umbra::codegen {

/// What is known of a kernel's conditions. Of a selection whose condition is known only one operand is computed, and a
/// gather whose guard is known reads without it, or not at all.
class Decisions {
 public:
  explicit Decisions(const plan::Kernel& kernel) : kernel_(&kernel) {}

  void Decide(int condition, bool holds) {
    known_[condition] = holds;
    follows_.clear();
  }
  void Forget(int condition) {
    known_.erase(condition);
    follows_.clear();
  }

  /// Does the condition hold, if that is known?
  std::optional<bool> Holds(int condition) const;
  /// Does the guard of the gather hold, if that is known?
  std::optional<bool> Reads(int gather) const;
  /// What a selection asks for, or a gather's guard.
  std::optional<int> ConditionOf(int id) const;
  /// The operand that a selection gives, if that is known.
  std::optional<int> Chosen(int select) const;

  struct Reach {
    std::set<int> values;  ///< that the results of a phase are made of
    int open = -1;  ///< a condition among those asked about that would leave fewer of them, if it were known
  };
  /// What the results of the phase are made of, as far as is known. `can_know`: may be asked about.
  Reach ReachOf(const plan::Phase& phase, const std::function<bool(int condition)>& can_know) const;
  /// Have the open conditions, decided one after the other until none is open, at most `most` outcomes, or more of
  /// which each has a small part of all values?
  bool AreFew(const plan::Phase& phase, const std::function<bool(int condition)>& can_know, int most);

 private:
  const plan::Value& value(int id) const { return kernel_->values[static_cast<std::size_t>(id)]; }
  struct Side {
    int id;
    std::optional<index_t> number;
  };
  // A comparison of i64: `less` is less than `more`, or equal. A difference of positions that is compared with 0 is one
  // of these.
  struct Order {
    Side less, more;
    bool or_equal;
  };
  bool IsPosition(int id, int steps = 6) const;
  std::optional<Order> OrderOf(const plan::Value& condition) const;
  std::optional<bool> Follows(const Order& asked) const;
  std::optional<bool> Follows(const plan::Value& condition) const;
  void Collect(int id, const std::function<bool(int condition)>& can_know, Reach* reach) const;
  void CollectAll(std::span<const int> values, const std::function<bool(int condition)>& can_know, Reach* reach) const;
  int OpenPart(int condition) const;
  struct Outcomes {
    int count = 0;
    std::size_t values = 0;  // that all of them are made of, together
  };
  void CountOutcomes(const plan::Phase& phase, const std::function<bool(int)>& can_know, int most, Outcomes* outcomes);

  const plan::Kernel* kernel_;
  std::map<int, bool> known_;
  mutable std::map<int, std::optional<bool>> follows_;  // what that tells of others, as far as they were asked about
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_DECISIONS_H_

// Positions of elements that stand side by side, as one: where the first is and how far each is from the one before it.
// An index map that computes with them moves whole packets, where its positions are of this form.
#ifndef UMBRA_INDEX_MAP_RUN_H_
#define UMBRA_INDEX_MAP_RUN_H_

#include "umbra/index_map/definition.h"

namespace umbra::index_map {

/// A condition on each of kLanes elements, 64 at most.
template <int kLanes>
struct RunCondition {
  static constexpr unsigned long long kAll = ~0ull >> (64 - kLanes);  ///< it holds for each
  unsigned long long bits = 0;  ///< one for each element for which it holds
  bool known = true;  ///< whether `bits` say so

  friend RunCondition operator&&(RunCondition a, RunCondition b) { return {a.bits & b.bits, a.known && b.known}; }
};

/// Positions first, first + step, ... of kLanes elements, if they are known; what is computed from unknown ones is
/// unknown.
template <int kLanes, int kAxes = kMaxRank>
struct Run {
  index_t first;  ///< of the first element
  index_t step;  ///< from one element to the next
  bool known;  ///< whether the positions have this form

  Run() = default;
  /// The same for each element.
  Run(index_t position) : first(position), step(0), known(true) {}  // NOLINT: a number is a position
  Run(index_t position, index_t distance, bool is_known = true) : first(position), step(distance), known(is_known) {}
  /// Of element `lane`.
  index_t operator[](index_t lane) const { return first + lane * step; }
  /// Of the last element.
  index_t last() const { return (*this)[kLanes - 1]; }

  friend Run operator+(const Run& a, const Run& b) { return {a.first + b.first, a.step + b.step, a.known && b.known}; }
  friend Run operator-(const Run& a, const Run& b) { return {a.first - b.first, a.step - b.step, a.known && b.known}; }
  friend Run operator*(const Run& a, const Run& b) {
    return {a.first * b.first, a.first * b.step + a.step * b.first, a.known && b.known && (a.step == 0 || b.step == 0)};
  }
  /// Known where all quotients are equal, or none has a rest.
  friend Run operator/(const Run& a, const Run& b) {
    if (!a.known || !b.known || b.step != 0 || b.first == 0) return {0, 0, false};
    const index_t quotient = a.first / b.first;
    if (a.step == 0 || a.last() / b.first == quotient) return quotient;
    return {quotient, a.step / b.first, a.first % b.first == 0 && a.step % b.first == 0};
  }
  friend RunCondition<kLanes> operator>=(const Run& a, const Run& b) {
    if (!a.known || !b.known) return {0, false};
    constexpr unsigned long long all = RunCondition<kLanes>::kAll;
    if (a.step == b.step) return {a.first >= b.first ? all : 0};
    const index_t gain = a.step - b.step;
    index_t ahead = 0;
    if (__builtin_sub_overflow(a.first, b.first, &ahead)) return {0, false};  // positions from data may be any
    if (gain > 0 && ahead < 0) {  // from a lane on
      const index_t last_below = (-1 - ahead) / gain;
      return {last_below < kLanes - 1 ? all & (all << (last_below + 1)) : 0};
    }
    if (gain < 0 && ahead >= 0) {  // up to a lane
      const index_t lane = ahead / -gain;
      return {lane < kLanes ? all >> (kLanes - 1 - lane) : all};
    }
    return {ahead >= 0 ? all : 0};
  }
  friend RunCondition<kLanes> operator<=(const Run& a, const Run& b) { return b >= a; }
  friend RunCondition<kLanes> operator<(const Run& a, const Run& b) {
    const auto reversed = a >= b;
    return {reversed.bits ^ RunCondition<kLanes>::kAll, reversed.known};
  }
  friend RunCondition<kLanes> operator==(const Run& a, const Run& b) { return a >= b && b >= a; }
  friend Run Min(const Run& a, const Run& b) { return Choose(a <= b, a, b); }
  friend Run Max(const Run& a, const Run& b) { return Choose(a >= b, a, b); }

 private:
  static Run Choose(RunCondition<kLanes> condition, const Run& a, const Run& b) {
    if (condition.known && condition.bits == RunCondition<kLanes>::kAll) return a;
    return {b.first, b.step, b.known && condition.known && condition.bits == 0};
  }
};

/// That of the tensors of one map, so that a position is no larger.
template <int kLanes, int kAxes>
inline constexpr int kMostAxes<Run<kLanes, kAxes>> = kAxes;

}  // namespace umbra::index_map

#endif  // UMBRA_INDEX_MAP_RUN_H_

#include "compiler/codegen/spans.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "compiler/plan/positions.h"

namespace umbra::codegen {

using graph::Op;
using plan::Kernel;
using plan::Value;
using Kind = Value::Kind;

namespace {

// By how much an i64 grows: by `by_lane` from lane to lane, and by `by_period` more each time that `dividend`, which
// grows by 1, passes a multiple of `period`.
struct Growth {
  long long by_lane = 0, by_period = 0;
  int dividend = -1, period = 0;

  bool IsEven() const { return by_period == 0; }
  bool IsNone() const { return by_lane == 0 && IsEven(); }
  // Does it come back to where it was after each period?
  bool Returns() const { return !IsEven() && by_lane * period + by_period == 0; }
};

Growth operator*(long long factor, const Growth& growth) {
  return {factor * growth.by_lane, factor * growth.by_period, growth.dividend, growth.period};
}

std::optional<Growth> Sum(const Growth& a, const Growth& b) {
  if (!a.IsEven() && !b.IsEven() && (a.dividend != b.dividend || a.period != b.period)) return std::nullopt;
  const Growth& of = a.IsEven() ? b : a;
  return Growth{a.by_lane + b.by_lane, a.by_period + b.by_period, of.dividend, of.period};
}

// What a position is at least and at most, as far as that is known.
struct Range {
  std::optional<double> least, most;
};

class Analysis {
 public:
  Analysis(const Kernel& kernel, const IsAlike& is_alike) : Analysis(kernel, is_alike, kernel.signature.vector_axis) {}
  Analysis(const Kernel& kernel, const IsAlike& is_alike, int axis)
      : kernel_(kernel),
        is_alike_(is_alike),
        axis_(axis) {}

  // By how much an i64 grows from lane to lane, or along another axis, if evenly.
  std::optional<long long> Slope(int id) const {
    const auto growth = GrowthOf(id);
    return growth && growth->IsEven() ? std::optional(growth->by_lane) : std::nullopt;
  }
  std::optional<Growth> GrowthOf(int id) const {
    if (const auto found = growths_.find(id); found != growths_.end()) return found->second;
    const auto growth = FindGrowth(value(id), id);
    growths_.emplace(id, growth);
    return growth;
  }
  // The value has become alike; what is made of it was not asked about yet.
  void Forget(int id) { growths_.erase(id); }

  bool Join(int id, LaneRun* run) const {
    std::set<int> joined;
    return Join(id, run, &joined);
  }

  // The condition as one comparison of positions whose difference grows evenly, or not at all.
  std::optional<LaneBound> Comparison(int id) const {
    auto bound = Compared(value(id));
    if (!bound) return std::nullopt;
    const auto less = Slope(bound->less), greater = Slope(bound->greater);
    if (!less || !greater) return std::nullopt;
    bound->slope = *less - *greater;
    return bound;
  }

  // Where along the axis a bound that differs by 1 from lane to lane begins to hold, or no longer does.
  std::optional<long long> Turn(const LaneBound& bound) const {
    const auto less = Rest(bound.less), greater = Rest(bound.greater);
    if (!less || !greater || !Slope(bound.less) || !Slope(bound.greater)) return std::nullopt;
    const long long even = (*greater - *less) * bound.slope;
    return (bound.or_equal == (bound.slope > 0)) ? even + 1 : even;
  }

  // The same of positions that differ more and more, or less and less.
  std::optional<LaneBound> Bound(int id) const {
    const auto bound = Comparison(id);
    return bound && bound->slope != 0 ? bound : std::nullopt;
  }

  // Is the position known not to be negative?
  bool IsNatural(int id) const {
    const Range range = RangeOf(id);
    return range.least && *range.least >= 0;
  }
  // Is it where the run of a guard holds?
  bool IsNatural(int id, const LaneRun& run) const {
    return IsNatural(id) || std::any_of(run.bounds.begin(), run.bounds.end(), [&](const LaneBound& bound) {
             return bound.greater == id && IsNatural(bound.less);
           });
  }

  // What the position is beside the axis and its quotient by `period`, if that is a number.
  std::optional<long long> Rest(int id, int period = 0) const {
    const std::pair<int, int> key{id, period};
    if (const auto found = rests_.find(key); found != rests_.end()) return found->second;
    return rests_[key] = FindRest(value(id), period);
  }

  // What it leaves of `divisor` where the axis stands at a multiple of that, if it is known.
  std::optional<long long> RemainderOf(int id, int divisor) const {
    const std::pair<int, int> key{id, divisor};
    if (const auto found = remainders_.find(key); found != remainders_.end()) return found->second;
    return remainders_[key] = FindRemainderOf(value(id), divisor);
  }

 private:
  std::optional<long long> FindRest(const Value& v, int period) const {
    if (v.kind == Kind::kIndex && v.index == axis_) return 0;
    if (v.kind == Kind::kConstant) return static_cast<long long>(v.constant);
    if (v.kind != Kind::kMap) return std::nullopt;
    if (v.op == Op::div) return IsQuotient(v, period) ? std::optional(0LL) : std::nullopt;
    const auto a = Rest(v.args[0], period), b = v.args.size() > 1 ? Rest(v.args[1], period) : 0;
    if (!a || !b) return std::nullopt;
    switch (v.op) {
      case Op::plus: return *a + *b;
      case Op::minus: return *a - *b;
      case Op::negative: return -*a;
      case Op::mul: return *a * *b;
      default: return std::nullopt;
    }
  }

  std::optional<long long> FindRemainderOf(const Value& v, int divisor) const {
    const auto left = [divisor](long long of) { return (of % divisor + divisor) % divisor; };
    if (v.kind == Kind::kIndex && v.index == axis_) return 0;
    if (v.kind == Kind::kConstant) return left(static_cast<long long>(v.constant));
    if (v.kind != Kind::kMap) return std::nullopt;
    if (v.op == Op::mul)
      for (const int arg : v.args)
        if (value(arg).kind == Kind::kConstant && left(static_cast<long long>(value(arg).constant)) == 0) return 0;
    if (v.op != Op::plus && v.op != Op::minus && v.op != Op::negative && v.op != Op::mul) return std::nullopt;
    const auto a = RemainderOf(v.args[0], divisor), b = v.args.size() > 1 ? RemainderOf(v.args[1], divisor) : 0;
    if (!a || !b) return std::nullopt;
    switch (v.op) {
      case Op::plus: return left(*a + *b);
      case Op::minus: return left(*a - *b);
      case Op::negative: return left(-*a);
      default: return left(*a * *b);
    }
  }

  bool IsQuotient(const Value& v, int period) const {
    const Value &dividend = value(v.args[0]), &by = value(v.args[1]);
    return dividend.kind == Kind::kIndex && dividend.index == axis_ && by.kind == Kind::kConstant &&
           by.constant == period;
  }

  std::optional<Growth> FindGrowth(const Value& v, int id) const {
    if (v.kind == Kind::kIndex) return Growth{v.index == axis_ ? 1 : 0};
    if (v.kind == Kind::kConstant || v.kind == Kind::kNumber || is_alike_(id)) return Growth{};
    if (v.kind != Kind::kMap && v.kind != Kind::kCast) return std::nullopt;
    std::vector<Growth> growths;
    for (const int arg : v.args) {
      const auto growth = GrowthOf(arg);
      if (!growth) return std::nullopt;
      growths.push_back(*growth);
    }
    if (std::all_of(growths.begin(), growths.end(), [](const Growth& g) { return g.IsNone(); })) return Growth{};
    if (v.kind == Kind::kCast && v.type == DType::kInt32 && value(v.args[0]).type == DType::kInt64)
      return growths[0];  // it wraps around
    if (v.kind != Kind::kMap || v.type != DType::kInt64) return std::nullopt;
    switch (v.op) {
      case Op::plus: return Sum(growths[0], growths[1]);
      case Op::minus: return Sum(growths[0], -1 * growths[1]);
      case Op::negative: return -1 * growths[0];
      case Op::mul:
        for (const std::size_t k : {std::size_t{0}, std::size_t{1}})
          if (const Value& factor = value(v.args[k]); factor.kind == Kind::kConstant)
            return static_cast<long long>(factor.constant) * growths[1 - k];
        return std::nullopt;
      case Op::div: {
        const Value& by = value(v.args[1]);
        const bool is_short = by.kind == Kind::kConstant && by.constant >= 2 && by.constant <= kLongestPeriod;
        if (!is_short || !growths[0].IsEven() || growths[0].by_lane != 1) return std::nullopt;
        return Growth{0, 1, v.args[0], static_cast<int>(by.constant)};
      }
      default: return std::nullopt;
    }
  }

  // The operands of a comparison of positions. What grows and is made of data may wrap around on the way.
  std::optional<LaneBound> Compared(const Value& v) const {
    if (v.kind != Kind::kMap) return std::nullopt;
    const bool swapped = v.op == Op::gt || v.op == Op::ge;
    if (!swapped && v.op != Op::lt && v.op != Op::le) return std::nullopt;
    const LaneBound bound{v.args[swapped ? 1 : 0], v.args[swapped ? 0 : 1], v.op == Op::le || v.op == Op::ge};
    const auto is_safe = [this](int id) { return Slope(id) == 0 || plan::IsOfPositions(kernel_, id); };
    return value(bound.less).type == DType::kInt64 && is_safe(bound.less) && is_safe(bound.greater)
               ? std::optional(bound)
               : std::nullopt;
  }

  bool Join(int id, LaneRun* run, std::set<int>* joined) const {
    if (!joined->insert(id).second) return true;
    const Value& v = value(id);
    if (Slope(id) == 0) {
      run->uniform.push_back(id);
      return true;
    }
    if (v.kind == Kind::kMap && v.op == Op::logical_and)
      return Join(v.args[0], run, joined) && Join(v.args[1], run, joined);
    if (v.kind == Kind::kMap && v.op == Op::eq && value(v.args[0]).type == DType::kInt64)
      return Join(LaneBound{v.args[0], v.args[1], true, 0, true}, run) &&
             Join(LaneBound{v.args[1], v.args[0], true, 0, true}, run);
    const auto bound = Compared(v);
    return bound && Join(*bound, run);
  }

  bool Join(LaneBound bound, LaneRun* run) const {
    const auto less = GrowthOf(bound.less), greater = GrowthOf(bound.greater);
    const auto growth = less && greater ? Sum(*less, -1 * *greater) : std::nullopt;
    if (!growth || growth->IsNone()) return false;
    if (!growth->IsEven() && !(growth->Returns() && IsNatural(growth->dividend))) return false;
    const int period = growth->IsEven() ? 0 : growth->period, dividend = growth->IsEven() ? 0 : growth->dividend;
    if (!run->bounds.empty() && (run->period != period || run->dividend != dividend)) return false;
    run->period = period;
    run->dividend = dividend;
    bound.slope = growth->by_lane;
    run->bounds.push_back(bound);
    return true;
  }

  const Range& RangeOf(int id) const {
    if (const auto found = ranges_.find(id); found != ranges_.end()) return found->second;
    const Range range = FindRange(value(id));
    return ranges_[id] = range;
  }
  Range FindRange(const Value& v) const {
    if (v.kind == Kind::kNumber) return {0, std::nullopt};
    if (v.kind == Kind::kConstant) return {v.constant, v.constant};
    if (v.kind == Kind::kIndex) {
      const runtime::Extent& extent = kernel_.signature.axes[static_cast<std::size_t>(v.index)];
      return {0, extent.is_static() ? std::optional(static_cast<double>(extent.value - 1)) : std::nullopt};
    }
    if (v.kind != Kind::kMap || (v.op != Op::plus && v.op != Op::minus && v.op != Op::mul && v.op != Op::div))
      return {};
    const Range a = RangeOf(v.args[0]), b = RangeOf(v.args[1]);
    const auto both = [](const std::optional<double>& x, const std::optional<double>& y, double sign) {
      return x && y ? std::optional(*x + sign * *y) : std::nullopt;
    };
    if (v.op == Op::plus) return {both(a.least, b.least, 1), both(a.most, b.most, 1)};
    if (v.op == Op::minus) return {both(a.least, b.most, -1), both(a.most, b.least, -1)};
    if (!a.least || !b.least || *a.least < 0 || *b.least < 0) return {};
    if (v.op == Op::mul) return {0, a.most && b.most ? std::optional(*a.most * *b.most) : std::nullopt};
    return {0, a.most};
  }

  static constexpr double kLongestPeriod = 16;
  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }

  const Kernel& kernel_;
  const IsAlike& is_alike_;
  int axis_;
  mutable std::map<int, std::optional<Growth>> growths_;  // of the values that were asked about
  mutable std::map<std::pair<int, int>, std::optional<long long>> rests_, remainders_;
  mutable std::map<int, Range> ranges_;
};

// Runs of fewer elements are not worth their bookkeeping.
constexpr double kShortestRun = 8;

// Conditions of the phase that only choose between values or guard gathers that are chosen, and do choose somewhere.
std::set<int> FindChoices(const Kernel& kernel, const plan::Phase& phase) {
  std::set<int> choose, other;
  for (auto id = phase.element_values.rbegin(); id != phase.element_values.rend(); ++id) {
    const Value& v = kernel.values[static_cast<std::size_t>(*id)];
    const bool joins =
        v.kind == Kind::kMap && (v.op == Op::logical_and || v.op == Op::logical_or || v.op == Op::logical_not);
    for (std::size_t k = 0; k < v.args.size(); ++k) {
      if (v.kind == Kind::kMap && v.op == Op::select && k == 0) choose.insert(v.args[k]);
      else if (joins && choose.count(*id) > 0) choose.insert(v.args[k]);
      else if (v.kind == Kind::kGather && v.guarded && k + 1 == v.args.size() && !choose.empty())
        choose.insert(v.args[k]);
      else if (v.kind != Kind::kGather && !joins) other.insert(v.args[k]);
    }
  }
  for (const auto& store : phase.stores) other.insert(store.value);
  for (const auto& stage : phase.stages) other.insert(stage.value);
  for (const int id : other) choose.erase(id);
  return choose;
}

// The axis of windows of two elements that lie side by side, which lanes go through two by two; -1 if there is none.
int PairsOf(const Kernel& kernel, const Value& gather, std::size_t rank) {
  const IsAlike is_alike = [&](int id) {
    return kernel.values[static_cast<std::size_t>(id)].scope != plan::Scope::kElement;
  };
  for (int axis = kernel.signature.row_axes; axis < kernel.rank(); ++axis) {
    const runtime::Extent& extent = kernel.signature.axes[static_cast<std::size_t>(axis)];
    if (axis == kernel.signature.vector_axis || !extent.is_static() || extent.value != 2) continue;
    const Analysis analysis(kernel, is_alike, axis);
    bool pairs = true;
    for (std::size_t d = 0; d < rank; ++d) pairs = pairs && analysis.Slope(gather.args[d]) == (d + 1 < rank ? 0 : 1);
    if (pairs) return axis;
  }
  return -1;
}

// Does each group of lanes read what stands in one group of the last dimension, in another order?
bool FindGroup(const Kernel& kernel, const Analysis& analysis, int position, const Growth& growth, Span* span) {
  const Value& dividend = kernel.values[static_cast<std::size_t>(growth.dividend)];
  const bool of_axis = dividend.kind == Kind::kIndex && dividend.index == kernel.signature.vector_axis;
  const auto first = analysis.RemainderOf(position, growth.period);
  if (!span->run.bounds.empty() || !of_axis || !first ||
      growth.by_lane * growth.period + growth.by_period != growth.period)
    return false;
  const long long last = *first + growth.by_lane * (growth.period - 1);
  if (last < 0 || last >= growth.period) return false;
  span->group = growth.period;
  span->first = *first;
  span->step = growth.by_lane;
  if (const auto rest = analysis.Rest(position, growth.period)) span->away = *rest - *first;
  return true;
}

bool AddBoxBounds(const Kernel& kernel, int id, const std::vector<int>& axes,
                  const std::function<bool(int value, int axis)>& is_alike, std::vector<BoxBound>* bounds,
                  std::set<int>* found) {
  if (!found->insert(id).second) return true;
  const Value& v = kernel.values[static_cast<std::size_t>(id)];
  BoxBound bound{id, -1, false, {}};
  for (const int axis : axes) {
    const IsAlike alike = [&](int value) { return is_alike(value, axis); };
    const Analysis analysis(kernel, alike, axis);
    if (analysis.Slope(id) == 0) {
      bound.slopes.push_back(0);
    } else if (v.kind == Kind::kMap && v.op == Op::logical_and) {
      return AddBoxBounds(kernel, v.args[0], axes, is_alike, bounds, found) &&
             AddBoxBounds(kernel, v.args[1], axes, is_alike, bounds, found);
    } else if (const auto comparison = analysis.Comparison(id)) {
      bound = {comparison->less, comparison->greater, comparison->or_equal, std::move(bound.slopes)};
      bound.slopes.push_back(comparison->slope);
    } else {
      return false;
    }
  }
  if (std::find(bounds->begin(), bounds->end(), bound) == bounds->end()) bounds->push_back(bound);
  return true;
}

}  // namespace

std::optional<long long> FindSlope(const Kernel& kernel, int id, const IsAlike& is_alike) {
  return Analysis(kernel, is_alike).Slope(id);
}

bool IsRemainder(const Kernel& kernel, int id, const IsAlike& is_alike) {
  const Analysis analysis(kernel, is_alike);
  const auto growth = analysis.GrowthOf(id);
  return growth && growth->Returns() && analysis.Rest(id, growth->period) == 0;
}

Runs FindRuns(const Kernel& kernel, const plan::Phase& phase, const IsAlike& is_alike,
              const std::function<bool(int value)>& in_packets) {
  Runs runs;
  const IsAlike alike_in_run = [&](int id) {
    return is_alike(id) || std::find(runs.alike.begin(), runs.alike.end(), id) != runs.alike.end();
  };
  Analysis analysis(kernel, alike_in_run);
  const Analysis in_all_runs(kernel, is_alike);
  const auto end_at = [&](const std::optional<long long>& end) {
    runs.granule = std::gcd(runs.granule, end.value_or(1));
  };
  const std::set<int> choices = FindChoices(kernel, phase);
  for (const int id : phase.element_values) {
    const Value& v = kernel.values[static_cast<std::size_t>(id)];
    const bool chooses = choices.count(id) > 0;
    if (v.kind != Kind::kMap || is_alike(id) || (in_packets(id) && !chooses)) continue;
    const bool divides = v.op == Op::div && v.type == DType::kInt64;
    if (analysis.Slope(id) == 0) {
      runs.alike.push_back(id);
    } else if (divides) {
      const Value& divisor = kernel.values[static_cast<std::size_t>(v.args[1])];
      const bool is_short = divisor.kind == Kind::kConstant && divisor.constant < kShortestRun;
      if (is_short || analysis.Slope(v.args[0]) != 1 || analysis.Slope(v.args[1]) != 0) continue;
      runs.quotients.push_back(id);
      end_at(divisor.kind == Kind::kConstant ? std::optional(static_cast<long long>(divisor.constant)) : std::nullopt);
      end_at(in_all_runs.IsNatural(v.args[0]) ? in_all_runs.Rest(v.args[0])
                                              : std::nullopt);  // below 0 they are cut off, and end elsewhere
      runs.alike.push_back(id);
      analysis.Forget(id);
    } else if (const auto bound = chooses ? analysis.Bound(id) : std::nullopt;
               bound && (bound->slope == 1 || bound->slope == -1)) {
      runs.choices.push_back(*bound);
      end_at(in_all_runs.Turn(*bound));
      runs.alike.push_back(id);
      analysis.Forget(id);
    } else {
      continue;
    }
    if (divides && in_all_runs.Slope(v.args[1]) == 0) runs.walks.push_back(id);
  }
  return runs;
}

bool FindBoxBounds(const Kernel& kernel, int id, const std::vector<int>& axes,
                   const std::function<bool(int value, int axis)>& is_alike, std::vector<BoxBound>* bounds) {
  std::set<int> found;
  return AddBoxBounds(kernel, id, axes, is_alike, bounds, &found);
}

std::optional<LaneRun> FindLaneRun(const Kernel& kernel, int id, const IsAlike& is_alike) {
  LaneRun run;
  if (!Analysis(kernel, is_alike).Join(id, &run)) return std::nullopt;
  return run;
}

std::optional<Span> FindSpan(const Kernel& kernel, int id, const IsAlike& is_alike) {
  const Analysis analysis(kernel, is_alike);
  const Value& gather = kernel.values[static_cast<std::size_t>(id)];
  if (gather.kind != Kind::kGather || gather.type == DType::kBool) return std::nullopt;
  Span span;
  if (gather.guarded && (!analysis.Join(gather.args.back(), &span.run) || span.run.period != 0)) return std::nullopt;
  const std::size_t rank = gather.args.size() - (gather.guarded ? 1 : 0);
  for (std::size_t d = 0; d < rank; ++d) {
    const auto growth = analysis.GrowthOf(gather.args[d]);
    if (!growth) return std::nullopt;
    span.slopes.push_back(growth->by_lane);
    if (growth->IsEven()) continue;
    span.slopes.back() = 0;
    if (d + 1 < rank || std::any_of(span.slopes.begin(), span.slopes.end(), [](long long s) { return s != 0; }))
      return std::nullopt;
    if (growth->by_lane == 0 && growth->by_period == 1) {
      if (!analysis.IsNatural(growth->dividend, span.run)) return std::nullopt;
      span.dividend = growth->dividend;
      span.repeats = growth->period;
    } else if (!FindGroup(kernel, analysis, gather.args[d], *growth, &span)) {
      return std::nullopt;
    }
  }
  if (rank > 0 && span.slopes.back() == 2) span.pairs = PairsOf(kernel, gather, rank);
  return span;
}

bool IsByOne(const Span& span) {
  const auto stays = [](long long slope) { return slope == 0; };
  return span.repeats == 1 && span.group == 0 && !span.slopes.empty() && span.slopes.back() == 1 &&
         std::all_of(span.slopes.begin(), span.slopes.end() - 1, stays);
}

}  // namespace umbra::codegen

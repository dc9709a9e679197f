#include "compiler/codegen/spans.h"

#include <algorithm>
#include <map>
#include <set>

namespace umbra::codegen {

using graph::Op;
using plan::Kernel;
using plan::Value;
using Kind = Value::Kind;

namespace {

class Analysis {
 public:
  Analysis(const Kernel& kernel, const IsAlike& is_alike)
      : Analysis(kernel, is_alike, kernel.signature.vector_axis) {}
  Analysis(const Kernel& kernel, const IsAlike& is_alike, int axis) : kernel_(kernel), is_alike_(is_alike), axis_(axis) {}

  // By how much an i64 grows from lane to lane, or along another axis, if evenly.
  std::optional<long long> Slope(int id) const {
    if (const auto found = slopes_.find(id); found != slopes_.end()) return found->second;
    const auto slope = SlopeOf(value(id), id);
    slopes_.emplace(id, slope);
    return slope;
  }
  // The value has become alike; what is made of it was not asked about yet.
  void Forget(int id) { slopes_.erase(id); }

  bool Join(int id, LaneRun* run) const {
    std::set<int> joined;
    return Join(id, run, &joined);
  }

  // The condition as one comparison of positions whose difference grows evenly, or not at all.
  std::optional<LaneBound> Comparison(int id) const {
    const Value& v = value(id);
    if (v.kind != Kind::kMap) return std::nullopt;
    const bool swapped = v.op == Op::gt || v.op == Op::ge;
    if (!swapped && v.op != Op::lt && v.op != Op::le) return std::nullopt;
    LaneBound bound{v.args[swapped ? 1 : 0], v.args[swapped ? 0 : 1], v.op == Op::le || v.op == Op::ge, 0};
    if (value(bound.less).type != DType::kInt64) return std::nullopt;
    const auto less = Slope(bound.less), greater = Slope(bound.greater);
    if (!less || !greater) return std::nullopt;
    bound.slope = *less - *greater;
    return bound;
  }

  // The same of positions that differ more and more, or less and less.
  std::optional<LaneBound> Bound(int id) const {
    const auto bound = Comparison(id);
    return bound && bound->slope != 0 ? bound : std::nullopt;
  }

  // The division by a small constant, if there is one, as which the position grows, and by how much else.
  const Value* Quotient(int id) const {
    const Value& v = value(id);
    if (v.kind != Kind::kMap) return nullptr;
    if (v.op == Op::plus || v.op == Op::minus) {
      if (Slope(v.args[1]) == 0) return Quotient(v.args[0]);
      return v.op == Op::plus && Slope(v.args[0]) == 0 ? Quotient(v.args[1]) : nullptr;
    }
    const bool divides = v.op == Op::div && v.type == DType::kInt64 && value(v.args[1]).kind == Kind::kConstant;
    if (!divides || value(v.args[1]).constant < 2 || value(v.args[1]).constant > kMostRepeats) return nullptr;
    return Slope(v.args[0]) == 1 && IsNatural(v.args[0]) ? &v : nullptr;
  }

 private:
  std::optional<long long> SlopeOf(const Value& v, int id) const {
    if (v.kind == Kind::kIndex) return v.index == axis_ ? 1 : 0;
    if (v.kind == Kind::kConstant || v.kind == Kind::kNumber || is_alike_(id)) return 0;
    if (v.kind != Kind::kMap && v.kind != Kind::kCast) return std::nullopt;
    std::vector<long long> slopes;
    for (const int arg : v.args) {
      const auto slope = Slope(arg);
      if (!slope) return std::nullopt;
      slopes.push_back(*slope);
    }
    if (std::all_of(slopes.begin(), slopes.end(), [](long long s) { return s == 0; })) return 0;
    if (v.kind != Kind::kMap || v.type != DType::kInt64) return std::nullopt;
    switch (v.op) {
      case Op::plus: return slopes[0] + slopes[1];
      case Op::minus: return slopes[0] - slopes[1];
      case Op::negative: return -slopes[0];
      case Op::mul:
        for (const std::size_t k : {std::size_t{0}, std::size_t{1}})
          if (const Value& factor = value(v.args[k]); factor.kind == Kind::kConstant)
            return slopes[1 - k] * static_cast<long long>(factor.constant);
        return std::nullopt;
      default: return std::nullopt;
    }
  }

  bool Join(int id, LaneRun* run, std::set<int>* joined) const {
    if (!joined->insert(id).second) return true;
    const Value& v = value(id);
    if (Slope(id) == 0) {
      run->uniform.push_back(id);
      return true;
    }
    if (v.kind == Kind::kMap && v.op == Op::logical_and) return Join(v.args[0], run, joined) && Join(v.args[1], run, joined);
    if (v.kind == Kind::kMap && v.op == Op::eq && value(v.args[0]).type == DType::kInt64) {
      const auto a = Slope(v.args[0]), b = Slope(v.args[1]);
      if (!a || !b) return false;
      run->bounds.push_back({v.args[0], v.args[1], true, *a - *b});
      run->bounds.push_back({v.args[1], v.args[0], true, *b - *a});
      return *a != *b;
    }
    const auto bound = Bound(id);
    if (bound) run->bounds.push_back(*bound);
    return bound.has_value();
  }

  // Is the position known not to be negative?
  bool IsNatural(int id) const {
    if (const auto found = natural_.find(id); found != natural_.end()) return found->second;
    return natural_[id] = FindNatural(value(id));
  }
  bool FindNatural(const Value& v) const {
    if (v.kind == Kind::kIndex || v.kind == Kind::kNumber) return true;
    if (v.kind == Kind::kConstant) return v.constant >= 0;
    if (v.kind != Kind::kMap || (v.op != Op::plus && v.op != Op::mul && v.op != Op::div)) return false;
    return IsNatural(v.args[0]) && IsNatural(v.args[1]);
  }

  static constexpr double kMostRepeats = 16;
  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }

  const Kernel& kernel_;
  const IsAlike& is_alike_;
  int axis_;
  mutable std::map<int, std::optional<long long>> slopes_;  // of the values that were asked about
  mutable std::map<int, bool> natural_;
};

// Runs of fewer elements are not worth their bookkeeping.
constexpr double kShortestRun = 8;

// Conditions of the phase that only choose between values or guard gathers that are chosen, and do choose somewhere.
std::set<int> FindChoices(const Kernel& kernel, const plan::Phase& phase) {
  std::set<int> choose, other;
  for (auto id = phase.element_values.rbegin(); id != phase.element_values.rend(); ++id) {
    const Value& v = kernel.values[static_cast<std::size_t>(*id)];
    const bool joins = v.kind == Kind::kMap && (v.op == Op::logical_and || v.op == Op::logical_or || v.op == Op::logical_not);
    for (std::size_t k = 0; k < v.args.size(); ++k) {
      if (v.kind == Kind::kMap && v.op == Op::select && k == 0) choose.insert(v.args[k]);
      else if (joins && choose.count(*id) > 0) choose.insert(v.args[k]);
      else if (v.kind == Kind::kGather && v.guarded && k + 1 == v.args.size() && !choose.empty()) choose.insert(v.args[k]);
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
  const IsAlike is_alike = [&](int id) { return kernel.values[static_cast<std::size_t>(id)].scope != plan::Scope::kElement; };
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

bool AddBoxBounds(const Kernel& kernel, int id, const std::vector<int>& axes,
                  const std::function<bool(int value, int axis)>& is_alike, std::vector<BoxBound>* bounds, std::set<int>* found) {
  if (!found->insert(id).second) return true;
  const Value& v = kernel.values[static_cast<std::size_t>(id)];
  BoxBound bound{id, -1, false, {}};
  for (const int axis : axes) {
    const IsAlike alike = [&](int value) { return is_alike(value, axis); };
    const Analysis analysis(kernel, alike, axis);
    if (analysis.Slope(id) == 0) {
      bound.slopes.push_back(0);
    } else if (v.kind == Kind::kMap && v.op == Op::logical_and) {
      return AddBoxBounds(kernel, v.args[0], axes, is_alike, bounds, found) && AddBoxBounds(kernel, v.args[1], axes, is_alike, bounds, found);
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

Runs FindRuns(const Kernel& kernel, const plan::Phase& phase, const IsAlike& is_alike,
              const std::function<bool(int value)>& in_packets) {
  Runs runs;
  const IsAlike alike_in_run = [&](int id) {
    return is_alike(id) || std::find(runs.alike.begin(), runs.alike.end(), id) != runs.alike.end();
  };
  Analysis analysis(kernel, alike_in_run);
  const Analysis in_all_runs(kernel, is_alike);
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
      runs.alike.push_back(id);
      analysis.Forget(id);
    } else if (const auto bound = chooses ? analysis.Bound(id) : std::nullopt;
               bound && (bound->slope == 1 || bound->slope == -1)) {
      runs.choices.push_back(*bound);
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
  const std::size_t rank = gather.args.size() - (gather.guarded ? 1 : 0);
  for (std::size_t d = 0; d < rank; ++d) {
    const auto slope = analysis.Slope(gather.args[d]);
    const Value* quotient = slope || d + 1 < rank ? nullptr : analysis.Quotient(gather.args[d]);
    if (!slope && quotient == nullptr) return std::nullopt;
    span.slopes.push_back(slope.value_or(0));
    if (quotient == nullptr) continue;
    if (std::any_of(span.slopes.begin(), span.slopes.end(), [](long long s) { return s != 0; })) return std::nullopt;
    span.dividend = quotient->args[0];
    span.repeats = static_cast<int>(kernel.values[static_cast<std::size_t>(quotient->args[1])].constant);
  }
  if (gather.guarded && !analysis.Join(gather.args.back(), &span.run)) return std::nullopt;
  if (rank > 0 && span.slopes.back() == 2) span.pairs = PairsOf(kernel, gather, rank);
  return span;
}

}  // namespace umbra::codegen

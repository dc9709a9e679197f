// The text of gathers whose positions grow evenly from lane to lane: loads of the lanes that their guards leave.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/literal.h"
#include "compiler/codegen/values.h"
#include "compiler/plan/positions.h"

namespace umbra::codegen {

std::pair<std::string, std::string> ValueEmitter::RunText(const LaneRun& run, const std::string& index,
                                                          const std::string& lanes) const {
  const std::string all = fmt::format("{}{}", run.period > 0 ? run.period : width_, side_by_side_ ? " * kGroup" : "");
  const std::string none = run.period > 0 ? fmt::format("-{}", run.period) : "0";
  LaneContext at = lanes_;  // remainders of packets that begin at multiples are known
  if (run.period > 0 && RestText(run.dividend, run.period, index) == "0") {
    at.is_scalar = [this](int id) { return lanes_.is_scalar(id) || IsRemainder(id); };
    at.scalar_text = [this](int id) { return lanes_.is_scalar(id) ? lanes_.scalar_text(id) : "0LL"; };
  }
  std::string first = none, last = lanes.empty() || run.period > 0 ? all : lanes, condition;
  for (const int id : run.uniform)
    condition += (condition.empty() ? "" : " && ") + EmitLane(lanes_, id, index, nullptr);
  for (const LaneBound& bound : run.bounds) {
    // Beside positions data are as good as held where no difference of the two wraps around.
    const auto held = [&](int id) {
      const std::string text = EmitLane(at, id, index, nullptr);
      return bound.of_equation || plan::IsOfPositions(kernel_, id)
                 ? text
                 : fmt::format("smaller(larger({}, -(1LL << 62)), 1LL << 62)", text);
    };
    const std::string less = held(bound.less), greater = held(bound.greater);
    const bool above = bound.slope < 0;
    std::string limit = above ? Difference(less, greater) : Difference(greater, less);
    if (bound.or_equal != above) limit += " + 1";
    const long long step = above ? -bound.slope : bound.slope;
    if (step != 1 && run.period > 0)
      limit = fmt::format("lanes_below({} + {}, {}) - {}", limit, step * run.period, step,
                          run.period);  // lanes from -period on
    else if (step != 1) limit = fmt::format("lanes_below({}, {})", limit, step);
    std::string& side = above ? first : last;
    const bool open = side == (above ? none : all);
    side = open ? limit : fmt::format("{}({}, {})", above ? "larger" : "smaller", side, limit);
  }
  if (!condition.empty()) last = fmt::format("{} ? {} : {}", condition, last, none);
  return {first, last};
}

std::string ValueEmitter::InsideText(const std::vector<BoxBound>& bounds, const std::string& index,
                                     const std::string& lanes) const {
  LaneContext first = lanes_;
  first.first_of = signature_.row_axes;
  const std::vector<int> axes = BoxAxes();
  std::string text;
  for (const BoxBound& bound : bounds) {
    std::string less = EmitLane(first, bound.less, index, nullptr);
    for (std::size_t k = 0; k < axes.size() && bound.greater >= 0; ++k) {
      if (bound.slopes[k] <= 0) continue;
      const std::string count = k > 0 ? ExtentName(axes[k]) : lanes.empty() ? std::to_string(speller_->width()) : lanes;
      less += fmt::format(" + {} * ({} - 1)", bound.slopes[k], count);
    }
    if (!text.empty()) text += " && ";
    if (bound.greater < 0) text += less;
    else
      text +=
          fmt::format("{} {} {}", less, bound.or_equal ? "<=" : "<", EmitLane(first, bound.greater, index, nullptr));
  }
  return text;
}

std::string ValueEmitter::RestText(int dividend, int divisor, const std::string& index) const {
  if (value(dividend).kind == Value::Kind::kIndex && PacketsBeginAtMultiples(divisor)) return "0";
  const std::string text = EmitLane(lanes_, dividend, index, nullptr);
  return fmt::format("{} % {}", text.find(' ') == std::string::npos ? text : "(" + text + ")", divisor);
}

std::string ValueEmitter::LanesText(const LaneRun& run, const std::string& type, const std::string& index,
                                    const std::string& lanes) const {
  const auto [first, last] = RunText(run, index, lanes);
  if (run.period == 0) return fmt::format("lanes_between<{}>({}, {})", type, first, last);
  return fmt::format("lanes_of_period<{}, {}>({}, {}, {})", type, run.period, RestText(run.dividend, run.period, index),
                     first, last);
}

std::string ValueEmitter::GatherAddress(const Value& v, const std::string& index, const std::string& last,
                                        std::size_t last_dims) const {
  std::string address = operands_[static_cast<std::size_t>(v.index)].name;
  const std::size_t rank = v.args.size() - (v.guarded ? 1 : 0);
  for (std::size_t d = 0; d < rank; ++d) {
    const std::string at = d + last_dims >= rank && !last.empty() ? last : EmitLane(lanes_, v.args[d], index, nullptr);
    const std::string position = at.find(' ') == std::string::npos ? at : "(" + at + ")";
    if (at != "0LL")
      address += " + " + position + (IsByOne(v, d) ? "" : " * " + lanes_.stride_name(v.index, static_cast<int>(d)));
  }
  return address;
}

std::string ValueEmitter::GroupText(int position, const Span& span, const std::string& index) const {
  const auto moved = [](const std::string& from, long long by) {
    return by == 0 ? from : fmt::format("{} {} {}", from, by < 0 ? '-' : '+', std::abs(by));
  };
  return span.away ? moved(index, *span.away) : moved(EmitLane(lanes_, position, index, nullptr), -span.first);
}

Expr ValueEmitter::DefineSpan(int id, const Span& span, const std::string& index, const std::string& lanes) {
  const Value& v = value(id);
  const std::size_t rank = span.slopes.size();
  const std::string address = GatherAddress(v, index, span.group > 0 ? GroupText(v.args[rank - 1], span, index) : "");
  std::string stride;
  bool unit = !options_.variant.strided && rank > 0;
  for (std::size_t d = 0; d < rank; ++d) {
    const bool last = d + 1 == rank, by_one = IsByOne(v, d);
    const std::string name = lanes_.stride_name(v.index, static_cast<int>(d));
    if (span.slopes[d] == 0) {
      unit = unit && !last;
      continue;
    }
    unit = unit && last && span.slopes[d] == 1;
    const std::string factor = span.slopes[d] == 1 && !by_one ? "" : std::to_string(span.slopes[d]);
    stride += (stride.empty() ? "" : " + ") + factor + (by_one ? "" : (factor.empty() ? "" : " * ") + name);
  }
  const bool guarded = !inside_ && !decided_.Reads(id);
  const auto [first, last] = RunText(guarded ? span.run : LaneRun(), index, lanes);
  const std::string outside = Literal(v.constant, v.type), type = speller_->Type(v.type);
  if (span.group > 0) {
    const std::string group = fmt::format("{}, {}, {}, {}", type, span.group, span.first, span.step);
    if (guarded)
      return {fmt::format("in_groups<{}>(load_span<{}>({}, {}, {}, {}))", group, type, address, first, last, outside)};
    return {lanes.empty() ? fmt::format("load_in_groups<{}>({})", group, address)
                          : fmt::format("load_in_groups_head<{}>({}, {})", group, address, lanes)};
  }
  if (!guarded && span.repeats == 1 && stride != "2" && stride != "-1") {
    if (unit) return lanes.empty() ? speller_->Load(v.type, address) : speller_->LoadHead(v.type, address, lanes);
    if (stride.empty()) stride = "0";
    return lanes.empty() ? speller_->Gather(v.type, address, stride)
                         : speller_->GatherHead(v.type, address, stride, lanes);
  }
  if (span.repeats > 1)
    return {fmt::format("load_repeated_span<{}, {}>({}, {}, {}, {}, {})", type, span.repeats, address,
                        RestText(span.dividend, span.repeats, index), first, last, outside)};
  if (stride == "2" && span.pairs >= 0 && !guarded) {
    const int size = static_cast<int>(SizeOf(v.type));
    out_.Line("if (i{} == 0) prefetch_lines<{}, 1>({} + {});", span.pairs, std::max(1, 2 * width_ * size / kLine),
              address, runtime::kPrefetchAhead / size);
    if (lanes.empty()) return {fmt::format("load_of_pairs<{}>({}, i{})", type, address, span.pairs)};
    return {fmt::format("load_of_pairs_head<{}>({}, i{}, {})", type, address, span.pairs, lanes)};
  }
  if (stride == "2" || stride == "-1") {
    const char* name = stride == "2" ? "load_even" : "load_reversed";
    if (!guarded && lanes.empty()) return {fmt::format("{}<{}>({})", name, type, address)};
    return {fmt::format("{}_span<{}>({}, {}, {}, {})", name, type, address, first, last, outside)};
  }
  if (unit) return {fmt::format("load_span<{}>({}, {}, {}, {})", type, address, first, last, outside)};
  return {fmt::format("gather_span<{}>({}, {}, {}, {}, {})", type, address, stride.empty() ? "0" : stride, first, last,
                      outside)};
}

}  // namespace umbra::codegen

#include "compiler/codegen/spans.h"

#include <algorithm>

namespace umbra::codegen {

using graph::Op;
using plan::Kernel;
using plan::Value;
using Kind = Value::Kind;

namespace {

class Analysis {
 public:
  Analysis(const Kernel& kernel, const IsAlike& is_alike) : kernel_(kernel), is_alike_(is_alike) {}

  // By how much an i64 grows from lane to lane, if evenly.
  std::optional<long long> Slope(int id) const {
    const Value& v = value(id);
    if (v.kind == Kind::kIndex) return v.index == kernel_.signature.vector_axis ? 1 : 0;
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

  bool Join(int id, LaneRun* run) const {
    const Value& v = value(id);
    if (Slope(id) == 0) {
      run->uniform.push_back(id);
      return true;
    }
    if (v.kind != Kind::kMap) return false;
    if (v.op == Op::logical_and) return Join(v.args[0], run) && Join(v.args[1], run);
    const bool swapped = v.op == Op::gt || v.op == Op::ge;
    if (!swapped && v.op != Op::lt && v.op != Op::le) return false;
    LaneBound bound{v.args[swapped ? 1 : 0], v.args[swapped ? 0 : 1], v.op == Op::le || v.op == Op::ge, 0};
    if (value(bound.less).type != DType::kInt64) return false;
    const auto less = Slope(bound.less), greater = Slope(bound.greater);
    if (!less || !greater || *less == *greater) return false;
    bound.slope = *less - *greater;
    run->bounds.push_back(bound);
    return true;
  }

 private:
  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }

  const Kernel& kernel_;
  const IsAlike& is_alike_;
};

}  // namespace

std::optional<long long> FindSlope(const Kernel& kernel, int id, const IsAlike& is_alike) {
  return Analysis(kernel, is_alike).Slope(id);
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
    if (!slope) return std::nullopt;
    span.slopes.push_back(*slope);
  }
  if (gather.guarded && !analysis.Join(gather.args.back(), &span.run)) return std::nullopt;
  return span;
}

}  // namespace umbra::codegen

#include "compiler/plan/sum_steps.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

namespace umbra::plan {

namespace {

using runtime::Buffer;
using runtime::Extent;
using runtime::GemmStep;

const Buffer& BufferOf(const Plan& plan, int id) { return plan.buffers[static_cast<std::size_t>(id)]; }

// The extents of a product's loops: batches, if any, rows, columns, and what is summed over.
std::vector<Extent> LoopsOf(const Plan& plan, const GemmStep& gemm) {
  const std::vector<Extent>& a = BufferOf(plan, gemm.a).shape;
  std::vector<Extent> axes = BufferOf(plan, gemm.c).shape;
  axes.push_back(a[a.size() - (gemm.transpose_a ? 2 : 1)]);
  return axes;
}

// On any processor, with any extents where they are not known: a few rows and columns and short sums are where a kernel is
// faster most of all.
bool MayBeFaster(const Plan& plan, const GemmStep& gemm) {
  const std::size_t rank = BufferOf(plan, gemm.c).shape.size();
  if (rank < 2 || BufferOf(plan, gemm.a).shape.size() != rank || BufferOf(plan, gemm.b).shape.size() != rank) return false;
  const std::vector<Extent> loops = LoopsOf(plan, gemm);
  const auto extent = [&](std::size_t from_end, index_t otherwise = 4) {
    const Extent& known = loops[loops.size() - from_end];
    return known.is_static() ? known.value : otherwise;
  };
  return runtime::SumIsFaster({extent(3), extent(2), extent(1, 1), gemm.transpose_a, gemm.transpose_b, SizeOf(BufferOf(plan, gemm.c).dtype)}, /*avx512=*/true);
}

Kernel SumOf(const Plan& plan, const GemmStep& gemm, std::string name) {
  Kernel kernel;
  runtime::KernelSignature& signature = kernel.signature;
  signature.name = std::move(name);
  signature.product = true;
  signature.axes = LoopsOf(plan, gemm);
  const int rank = kernel.rank(), row = rank - 3, column = rank - 2, inner = rank - 1;
  signature.row_axes = inner;
  signature.vector_axis = column;
  const auto access = [&](int buffer, int first, int second, bool store) {
    runtime::Access walked{buffer, std::vector<int>(static_cast<std::size_t>(rank), -1), store, false};
    if (rank == 4) walked.dim_of_axis[0] = 0;
    walked.dim_of_axis[static_cast<std::size_t>(first)] = rank - 3;
    walked.dim_of_axis[static_cast<std::size_t>(second)] = rank - 2;
    signature.operands.push_back(std::move(walked));
  };
  if (gemm.transpose_a) access(gemm.a, inner, row, false);
  else access(gemm.a, row, inner, false);
  access(gemm.b, inner, column, false);
  access(gemm.c, row, column, true);
  signature.in_place.resize(signature.operands.size());

  const DType type = BufferOf(plan, gemm.c).dtype;
  const auto add = [&](Value::Kind kind, Scope scope) -> Value& {
    Value& value = kernel.values.emplace_back();
    value.kind = kind;
    value.type = type;
    value.scope = scope;
    return value;
  };
  add(Value::Kind::kLoad, Scope::kElement);
  add(Value::Kind::kLoad, Scope::kElement).index = 1;
  Value& product = add(Value::Kind::kMap, Scope::kElement);
  product.op = graph::Op::mul;
  product.args = {0, 1};
  add(Value::Kind::kReduced, Scope::kRow);
  Phase& phase = kernel.phases.emplace_back();
  phase.element_values = {0, 1, 2};
  phase.reductions.push_back({graph::Reducer::sum, 2, 3, true});
  if (gemm.alpha != 1) {
    add(Value::Kind::kConstant, Scope::kUniform).constant = gemm.alpha;
    Value& scaled = add(Value::Kind::kMap, Scope::kRow);
    scaled.op = graph::Op::mul;
    scaled.args = {3, 4};
    kernel.final_row_values = {5};
  }
  kernel.final_stores.push_back({2, static_cast<int>(kernel.values.size()) - 1});
  signature.cost = 4;
  kernel.summary = Summarize(plan, kernel);
  return kernel;
}

}  // namespace

void AddSums(Plan* plan) {
  std::vector<std::variant<Kernel, Gemm>> steps;
  std::vector<int> at;  // where each step is now
  int sums = 0;
  for (auto& step : plan->steps) {
    at.push_back(static_cast<int>(steps.size()));
    steps.push_back(std::move(step));
    const auto* gemm = std::get_if<Gemm>(&steps.back());
    if (gemm == nullptr || !MayBeFaster(*plan, gemm->step)) continue;
    const std::string suffix = sums++ == 0 ? "" : fmt::format("_{}", sums - 1);
    steps.emplace_back(SumOf(*plan, gemm->step, fmt::format("{}_product{}", plan->name, suffix)));
  }
  at.push_back(static_cast<int>(steps.size()));
  plan->steps = std::move(steps);
  for (runtime::StepGroup& group : plan->groups) {
    group.begin = at[static_cast<std::size_t>(group.begin)];
    group.end = at[static_cast<std::size_t>(group.end)];
  }
}

}  // namespace umbra::plan

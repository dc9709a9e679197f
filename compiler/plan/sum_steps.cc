#include "compiler/plan/sum_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
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
  const auto extent = [&](std::size_t from_end, index_t otherwise) {
    const Extent& known = loops[loops.size() - from_end];
    return known.is_static() ? known.value : otherwise;
  };
  constexpr index_t kFew = 4, kMany = 1024;
  runtime::ProductShape shape{extent(3, kFew), extent(2, kMany), extent(1, 1), gemm.transpose_a, gemm.transpose_b, SizeOf(BufferOf(plan, gemm.c).dtype)};
  if (runtime::SumIsFaster(shape, "avx512")) return true;
  shape.rows = extent(3, kMany);
  shape.columns = extent(2, kFew);
  shape.inner = 1;  // how long panels may be depends on the processor
  return runtime::SumIsFaster(shape, "avx512");
}

Kernel SumOf(const Plan& plan, const GemmStep& gemm, std::string name) {
  Kernel kernel;
  runtime::KernelSignature& signature = kernel.signature;
  signature.name = std::move(name);
  signature.replaces = 1;
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
  if (gemm.transpose_b) access(gemm.b, column, inner, false);
  else access(gemm.b, inner, column, false);
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
  signature.panels = static_cast<int>(PanelOperands(kernel).size());
  kernel.summary = Summarize(plan, kernel);
  return kernel;
}

// Is all that the kernel reads of the buffer, which it does read, what stands at the point that it computes?
bool ReadsAtPoint(const runtime::KernelSignature& signature, int buffer) {
  std::vector<int> along(signature.axes.size());
  std::iota(along.begin(), along.end(), 0);
  bool reads = false;
  for (const runtime::Access& access : signature.operands) {
    if (access.buffer != buffer) continue;
    if (access.store || access.gathered || access.dim_of_axis != along) return false;
    reads = true;
  }
  return reads;
}

// Is the step elementwise work on the product, which nothing else reads?
const Kernel* FollowerOf(const Plan& plan, const GemmStep& gemm, const std::variant<Kernel, Gemm>& step) {
  const Kernel* kernel = std::get_if<Kernel>(&step);
  const Buffer& product = BufferOf(plan, gemm.c);
  if (kernel == nullptr || product.kind != Buffer::Kind::kTemporary) return nullptr;
  const runtime::KernelSignature& signature = kernel->signature;
  const bool fits = signature.elementwise && !signature.positional && signature.numbers.empty() && signature.axes == product.shape &&
                    signature.vector_axis + 1 == kernel->rank() && kernel->phases.size() == 1 && kernel->final_stores.empty() &&
                    ReadsAtPoint(signature, gemm.c);
  return fits ? kernel : nullptr;
}

int NumReaders(const Plan& plan, int buffer) {
  return static_cast<int>(std::count_if(plan.steps.begin(), plan.steps.end(), [&](const auto& step) {
    if (const auto* gemm = std::get_if<Gemm>(&step)) return gemm->step.a == buffer || gemm->step.b == buffer;
    const auto& operands = std::get<Kernel>(step).signature.operands;
    return std::any_of(operands.begin(), operands.end(), [&](const runtime::Access& access) { return !access.store && access.buffer == buffer; });
  }));
}

// The sum that goes on to do what `follower` does with it, once for each row and column.
Kernel Joined(const Plan& plan, Kernel kernel, const Kernel& follower) {
  runtime::KernelSignature& signature = kernel.signature;
  const int product = kernel.final_stores[0].value, buffer = signature.operands[2].buffer;
  signature.replaces = 2;
  signature.operands.pop_back();
  signature.scalars = follower.signature.scalars;
  std::vector<int> operand_of;  // by operand of the follower
  for (runtime::Access access : follower.signature.operands) {
    operand_of.push_back(access.buffer == buffer ? -1 : static_cast<int>(signature.operands.size()));
    if (access.buffer == buffer) continue;
    access.dim_of_axis.push_back(-1);
    signature.operands.push_back(std::move(access));
  }
  const auto operand = [&](int k) { return operand_of[static_cast<std::size_t>(k)]; };
  signature.in_place.assign(signature.operands.size(), {});
  for (std::size_t k = 0; k < operand_of.size(); ++k)
    for (const int load : follower.signature.in_place[k])
      if (operand(load) >= 0) signature.in_place[static_cast<std::size_t>(operand_of[k])].push_back(operand(load));

  std::vector<int> value_of;  // by value of the follower
  for (Value value : follower.values) {
    const bool is_product = value.kind == Value::Kind::kLoad && operand(value.index) < 0;
    value_of.push_back(is_product ? product : static_cast<int>(kernel.values.size()));
    if (is_product) continue;
    if (value.kind == Value::Kind::kLoad) value.index = operand(value.index);
    if (value.scope != Scope::kUniform) value.scope = Scope::kRow;
    for (int& arg : value.args) arg = value_of[static_cast<std::size_t>(arg)];
    kernel.values.push_back(std::move(value));
  }
  const auto value = [&](int id) { return value_of[static_cast<std::size_t>(id)]; };
  const Phase& phase = follower.phases[0];
  for (const auto* values : {&phase.row_values, &phase.element_values})
    for (const int id : *values)
      if (value(id) != product) kernel.final_row_values.push_back(value(id));
  kernel.final_stores.clear();
  for (const Store& store : phase.stores) kernel.final_stores.push_back({operand(store.operand), value(store.value)});
  signature.panels = static_cast<int>(PanelOperands(kernel).size());
  kernel.summary = Summarize(plan, kernel);
  return kernel;
}

}  // namespace

void AddSums(Plan* plan) {
  std::vector<std::optional<Kernel>> sums(plan->steps.size());  // behind each step
  int count = 0;
  for (const runtime::StepGroup& group : plan->groups)
    for (int k = group.begin; k < group.end; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const auto* gemm = std::get_if<Gemm>(&plan->steps[at]);
      if (gemm == nullptr || !MayBeFaster(*plan, gemm->step)) continue;
      sums[at] = SumOf(*plan, gemm->step, plan->name + "_product" + (count == 0 ? "" : fmt::format("_{}", count)));
      ++count;
      const Kernel* follower = k + 1 < group.end ? FollowerOf(*plan, gemm->step, plan->steps[at + 1]) : nullptr;
      if (follower != nullptr && NumReaders(*plan, gemm->step.c) == 1) sums[at] = Joined(*plan, std::move(*sums[at]), *follower);
    }
  std::vector<std::variant<Kernel, Gemm>> steps;
  std::vector<int> now;  // where each step is
  for (std::size_t k = 0; k < plan->steps.size(); ++k) {
    now.push_back(static_cast<int>(steps.size()));
    steps.push_back(std::move(plan->steps[k]));
    if (sums[k]) steps.emplace_back(std::move(*sums[k]));
  }
  now.push_back(static_cast<int>(steps.size()));
  plan->steps = std::move(steps);
  for (runtime::StepGroup& group : plan->groups) {
    group.begin = now[static_cast<std::size_t>(group.begin)];
    group.end = now[static_cast<std::size_t>(group.end)];
  }
}

}  // namespace umbra::plan

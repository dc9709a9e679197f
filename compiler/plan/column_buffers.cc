#include "compiler/plan/column_buffers.h"

#include <algorithm>
#include <cstddef>

namespace umbra::plan {

namespace {

// Work of an element, in additions, beside which what is kept pays though nothing but a number of each column is
// stored.
constexpr double kWorthKeeping = 20;
constexpr std::size_t kMostWithoutAsking = 2;

bool MayKeep(const Kernel& kernel) {
  const runtime::KernelSignature& signature = kernel.signature;
  if (!signature.goes_along_columns() || kernel.phases.size() < 2 || signature.positional ||
      !signature.row_buffers.empty() || SharesRows(kernel))
    return false;
  const auto is_other = [](const Value& v) {
    return v.kind == Value::Kind::kGather || (v.scope == Scope::kRow && v.type == DType::kBool);
  };
  if (std::any_of(kernel.values.begin(), kernel.values.end(), is_other) || !HasLongColumns(kernel)) return false;
  const auto stores = [](const Phase& phase) { return !phase.stores.empty(); };
  if (signature.cost < kWorthKeeping && std::none_of(kernel.phases.begin(), kernel.phases.end(), stores)) return false;
  return std::all_of(kernel.phases.begin(), kernel.phases.end(), [](const Phase& phase) { return phase.guard < 0; });
}

// Has it an element of its own for each step of each column?
bool IsOfElements(const Kernel& kernel, const runtime::Access& access) {
  const runtime::KernelSignature& signature = kernel.signature;
  const auto& dims = access.dim_of_axis;
  return !access.gathered && dims[static_cast<std::size_t>(signature.vector_axis)] >= 0 &&
         std::all_of(dims.begin() + signature.row_axes, dims.end(), [](int dim) { return dim >= 0; });
}

// The phases that a kept operand is of: the first one, and the last; first < 0: it is not kept.
struct Span {
  int first = -1, last = -1;
};

Span SpanOf(const Kernel& kernel, int operand) {
  const bool store = kernel.signature.operands[static_cast<std::size_t>(operand)].store;
  Span span;
  int first_read = -1;
  for (int p = 0; p < static_cast<int>(kernel.phases.size()); ++p) {
    const Phase& phase = kernel.phases[static_cast<std::size_t>(p)];
    for (const Store& stored : phase.stores)
      if (span.first < 0 && stored.operand == operand && IsStoredLater(kernel, phase, stored)) span.first = p;
    const bool reads = std::any_of(phase.element_values.begin(), phase.element_values.end(), [&](int id) {
      const Value& v = kernel.values[static_cast<std::size_t>(id)];
      return v.kind == Value::Kind::kLoad && v.index == operand;
    });
    if (!reads) continue;
    if (first_read < 0) first_read = p;
    span.last = p;
  }
  if (!store) span.first = first_read;
  return span.first >= 0 && span.last > span.first ? span : Span();
}

}  // namespace

std::vector<KeptColumns> FindKeptColumns(const Plan& plan, const Kernel& kernel, std::vector<DType>* buffers) {
  std::vector<KeptColumns> kept;
  if (!MayKeep(kernel)) return kept;
  std::vector<int> last;  // phase that needs what a buffer has
  for (std::size_t k = 0; k < kernel.signature.operands.size(); ++k) {
    const runtime::Access& access = kernel.signature.operands[k];
    const DType type = plan.buffers[static_cast<std::size_t>(access.buffer)].dtype;
    if (type == DType::kBool || !IsOfElements(kernel, access)) continue;
    const Span span = SpanOf(kernel, static_cast<int>(k));
    if (span.first < 0) continue;
    // A phase reads all of an element before it stores: what it stores may take the place of what it is the last to
    // read.
    std::size_t buffer = 0;
    while (buffer < buffers->size() &&
           ((*buffers)[buffer] != type || last[buffer] >= span.first + (access.store ? 1 : 0)))
      ++buffer;
    if (buffer == buffers->size()) {
      buffers->push_back(type);
      last.push_back(0);
    }
    last[buffer] = span.last;
    kept.push_back({static_cast<int>(k), static_cast<int>(buffer), span.first});
  }
  // Narrow blocks of many operands are read slowly, if no phase between is there to ask for the next one.
  if (kernel.phases.size() == 2 && buffers->size() > kMostWithoutAsking) {
    buffers->clear();
    kept.clear();
  }
  return kept;
}

bool ReducesAlongRows(const Kernel& kernel) {
  const runtime::KernelSignature& signature = kernel.signature;
  return std::any_of(signature.operands.begin(), signature.operands.end(), [&](const runtime::Access& access) {
    const auto inner = access.dim_of_axis.begin() + signature.row_axes;
    return access.LastDim() >= 0 &&
           std::find(inner, access.dim_of_axis.end(), access.LastDim()) != access.dim_of_axis.end();
  });
}

bool HasLongColumns(const Kernel& kernel) {
  constexpr index_t kLongColumn = 32, kLongDearColumn = 12;  // of windows, rows or little work; of much work
  const bool gathers = std::any_of(kernel.values.begin(), kernel.values.end(),
                                   [](const Value& v) { return v.kind == Value::Kind::kGather; });
  const bool dear = kernel.signature.cost >= kWorthKeeping && !gathers && !ReducesAlongRows(kernel);
  const index_t least = dear ? kLongDearColumn : kLongColumn;
  index_t steps = 1;
  for (auto axis = kernel.signature.axes.begin() + kernel.signature.row_axes; axis != kernel.signature.axes.end();
       ++axis)
    steps = axis->is_static() ? steps * axis->value : std::max(steps, least);
  return steps >= least;
}

void FindColumnBuffers(Plan* plan) {
  for (auto& step : plan->steps)
    if (auto* kernel = std::get_if<Kernel>(&step)) FindKeptColumns(*plan, *kernel, &kernel->signature.column_buffers);
}

}  // namespace umbra::plan

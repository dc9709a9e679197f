#include "compiler/plan/sum_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/run_gemm.h"

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

// An extent of a product, or what it may be.
index_t Known(const Extent& extent, index_t otherwise) { return extent.is_static() ? extent.value : otherwise; }

constexpr index_t kFew = 4, kMany = 1024;

// On any processor, with any extents where they are not known: a few rows and columns and short sums are where a kernel
// is faster most of all.
bool MayBeFaster(const Plan& plan, const GemmStep& gemm, bool made) {
  const std::size_t rank = BufferOf(plan, gemm.c).shape.size();
  if (rank < 2 || BufferOf(plan, gemm.a).shape.size() != rank || BufferOf(plan, gemm.b).shape.size() != rank)
    return false;
  const std::vector<Extent> loops = LoopsOf(plan, gemm);
  const auto extent = [&](std::size_t from_end, index_t otherwise) {
    return Known(loops[loops.size() - from_end], otherwise);
  };
  runtime::ProductShape shape{extent(3, kFew),
                              extent(2, kMany),
                              extent(1, 1),
                              gemm.transpose_a,
                              gemm.transpose_b,
                              SizeOf(BufferOf(plan, gemm.c).dtype),
                              made,
                              rank > 2};
  if (runtime::SumIsFaster(shape, "avx512")) return true;
  shape.rows = extent(3, kMany);
  shape.columns = extent(2, kFew);
  return runtime::SumIsFaster(shape, "avx512");
}

// May a kernel be faster whose rows are the columns of the product, of which there are few? The columns of its right
// factor lie side by side.
bool MayBeFasterTurned(const Plan& plan, const GemmStep& gemm) {
  if (!gemm.transpose_a || gemm.a == gemm.b) return false;
  const std::vector<Extent> loops = LoopsOf(plan, gemm);
  runtime::KernelSignature kernel;
  kernel.turned = true;
  const std::size_t rank = loops.size();
  const GemmStep turned = runtime::Turned(gemm);
  return RunsInstead(kernel,
                     {Known(loops[rank - 2], kFew), Known(loops[rank - 3], kMany), Known(loops[rank - 1], 1),
                      turned.transpose_a, turned.transpose_b, SizeOf(BufferOf(plan, gemm.c).dtype)},
                     "avx512");
}

// Of additions for an element: so much work is not done anew for each share of the rows.
constexpr double kMostOfMaker = 8;

// Puts what a kernel computes of its operands together from kernels of the plan.
class SumMaker {
 public:
  SumMaker(const Plan& plan, const GemmStep& gemm, std::string name, bool turned)
      : plan_(plan),
        gemm_(turned ? runtime::Turned(gemm) : gemm) {
    signature_.name = std::move(name);
    signature_.axes = LoopsOf(plan, gemm);
    signature_.turned = turned;
    if (turned) std::swap(signature_.axes[signature_.axes.size() - 3], signature_.axes[signature_.axes.size() - 2]);
    signature_.row_axes = kernel_.rank() - 1;
    signature_.vector_axis = kernel_.rank() - 2;
    signature_.cost = 4;
  }

  // The product, and what `maker` does to make its right factor, if any.
  void Product(const Kernel* maker) {
    const int row = kernel_.rank() - 3, column = row + 1, inner = row + 2;
    Phase& phase = kernel_.phases.emplace_back();
    const int a = Load(gemm_.a, gemm_.transpose_a ? inner : row, gemm_.transpose_a ? row : inner);
    phase.element_values.push_back(a);
    const std::vector<int> along = AxisOfDim(gemm_.transpose_b ? column : inner, gemm_.transpose_b ? inner : column);
    int b = -1;
    if (maker == nullptr) {
      b = Load(gemm_.b, along[along.size() - 2], along.back());
      phase.element_values.push_back(b);
    } else {
      b = Made(*maker, along);
    }
    const DType type = plan_.buffers[static_cast<std::size_t>(gemm_.c)].dtype;
    const int product = Add(Value::Kind::kMap, type, Scope::kElement);
    kernel_.values.back().op = graph::Op::mul;
    kernel_.values.back().args = {a, b};
    phase.element_values.push_back(product);
    result_ = Add(Value::Kind::kReduced, type, Scope::kRow);
    phase.reductions.push_back({graph::Reducer::sum, product, result_, true});
    if (gemm_.alpha == 1) return;
    const int alpha = Add(Value::Kind::kConstant, type, Scope::kUniform);
    kernel_.values.back().constant = gemm_.alpha;
    const int scaled = Add(Value::Kind::kMap, type, Scope::kRow);
    kernel_.values.back().op = graph::Op::mul;
    kernel_.values.back().args = {result_, alpha};
    kernel_.final_row_values.push_back(scaled);
    result_ = scaled;
  }

  // What `follower` does with each sum; null: it is stored.
  void Results(const Kernel* follower) {
    const int row = kernel_.rank() - 3, column = row + 1;
    const std::vector<int> along = signature_.turned ? AxisOfDim(column, row) : AxisOfDim(row, column);
    if (follower == nullptr) {
      kernel_.final_stores.push_back({Operand({gemm_.c, DimOfAxis(along), true, false}), result_});
      return;
    }
    const Splice splice = Copy(*follower, along, gemm_.c, result_);
    const Phase& phase = follower->phases[0];
    for (const auto* values : {&phase.row_values, &phase.element_values})
      for (const int id : *values)
        if (splice.value[static_cast<std::size_t>(id)] != result_)
          kernel_.final_row_values.push_back(splice.value[static_cast<std::size_t>(id)]);
    for (const Store& store : phase.stores)
      kernel_.final_stores.push_back({splice.operand[static_cast<std::size_t>(store.operand)],
                                      splice.value[static_cast<std::size_t>(store.value)]});
    signature_.in_place.resize(signature_.operands.size());
    for (std::size_t k = 0; k < splice.operand.size(); ++k)
      for (const int load : follower->signature.in_place[k])
        if (const int read = splice.operand[static_cast<std::size_t>(load)]; read >= 0)
          signature_.in_place[static_cast<std::size_t>(splice.operand[k])].push_back(read);
  }

  Kernel Take(std::vector<int> replaces) {
    signature_.replaces = std::move(replaces);
    signature_.in_place.resize(signature_.operands.size());
    signature_.panels = PanelsOf(kernel_);
    signature_.sums = 1;
    kernel_.summary = Summarize(plan_, kernel_);
    return std::move(kernel_);
  }

 private:
  // By operand and by value of a kernel, which they are in this one; -1: none.
  struct Splice {
    std::vector<int> operand, value;
  };

  // By dimension of a matrix, or of a batch of them, the axis that moves along it.
  std::vector<int> AxisOfDim(int first, int second) const {
    return kernel_.rank() == 4 ? std::vector<int>{0, first, second} : std::vector<int>{first, second};
  }

  std::vector<int> DimOfAxis(const std::vector<int>& axis_of_dim) const {
    std::vector<int> dims(static_cast<std::size_t>(kernel_.rank()), -1);
    for (std::size_t dim = 0; dim < axis_of_dim.size(); ++dim)
      dims[static_cast<std::size_t>(axis_of_dim[dim])] = static_cast<int>(dim);
    return dims;
  }

  int Operand(runtime::Access access) {
    signature_.operands.push_back(std::move(access));
    return static_cast<int>(signature_.operands.size()) - 1;
  }

  int Scalar(int of_plan) {
    const auto found = std::find(signature_.scalars.begin(), signature_.scalars.end(), of_plan);
    const auto at = static_cast<int>(found - signature_.scalars.begin());
    if (found == signature_.scalars.end()) signature_.scalars.push_back(of_plan);
    return at;
  }

  int Add(Value::Kind kind, DType type, Scope scope) {
    Value& value = kernel_.values.emplace_back();
    value.kind = kind;
    value.type = type;
    value.scope = scope;
    return static_cast<int>(kernel_.values.size()) - 1;
  }

  int Load(int buffer, int first, int second) {
    const int operand = Operand({buffer, DimOfAxis(AxisOfDim(first, second)), false, false});
    const int load = Add(Value::Kind::kLoad, plan_.buffers[static_cast<std::size_t>(buffer)].dtype, Scope::kElement);
    kernel_.values.back().index = operand;
    return load;
  }

  // Copies what an elementwise kernel computes and, unless it is of `buffer`, what it walks; its axis k is axis
  // along[k] here. What it reads of the buffer is the value `instead`, if there is one; else it stores there, which is
  // left out.
  Splice Copy(const Kernel& from, const std::vector<int>& along, int buffer, int instead) {
    Splice splice;
    for (const runtime::Access& access : from.signature.operands) {
      if (access.buffer == buffer) {
        splice.operand.push_back(-1);
        continue;
      }
      runtime::Access moved{access.buffer, std::vector<int>(static_cast<std::size_t>(kernel_.rank()), -1), access.store,
                            access.gathered};
      for (std::size_t k = 0; k < along.size(); ++k)
        moved.dim_of_axis[static_cast<std::size_t>(along[k])] = access.dim_of_axis[k];
      splice.operand.push_back(Operand(std::move(moved)));
    }
    const auto inner = static_cast<std::size_t>(kernel_.rank()) - 1;
    for (Value value : from.values) {
      if (value.kind == Value::Kind::kLoad && splice.operand[static_cast<std::size_t>(value.index)] < 0) {
        splice.value.push_back(instead);
        continue;
      }
      if (value.kind == Value::Kind::kScalar)
        value.index = Scalar(from.signature.scalars[static_cast<std::size_t>(value.index)]);
      for (int& arg : value.args) arg = splice.value[static_cast<std::size_t>(arg)];
      if (value.kind == Value::Kind::kLoad) value.index = splice.operand[static_cast<std::size_t>(value.index)];
      if (value.scope != Scope::kUniform) {
        const auto is_of_element = [&](int arg) {
          return kernel_.values[static_cast<std::size_t>(arg)].scope == Scope::kElement;
        };
        const bool element = value.kind == Value::Kind::kLoad
                                 ? signature_.operands[static_cast<std::size_t>(value.index)].dim_of_axis[inner] >= 0
                                 : std::any_of(value.args.begin(), value.args.end(), is_of_element);
        value.scope = element ? Scope::kElement : Scope::kRow;
      }
      splice.value.push_back(static_cast<int>(kernel_.values.size()));
      kernel_.values.push_back(std::move(value));
    }
    return splice;
  }

  // The value that `maker` stores in the right factor, by whose dimension k axis axis_of_dim[k] moves.
  int Made(const Kernel& maker, const std::vector<int>& axis_of_dim) {
    const Store& store = maker.phases[0].stores[0];
    std::vector<int> along;
    for (const int dim : maker.signature.operands[static_cast<std::size_t>(store.operand)].dim_of_axis)
      along.push_back(axis_of_dim[static_cast<std::size_t>(dim)]);
    const Splice splice = Copy(maker, along, gemm_.b, -1);
    Phase& phase = kernel_.phases[0];
    for (const auto* values : {&maker.phases[0].row_values, &maker.phases[0].element_values})
      for (const int id : *values) {
        const int value = splice.value[static_cast<std::size_t>(id)];
        const Scope scope = kernel_.values[static_cast<std::size_t>(value)].scope;
        if (scope == Scope::kRow) phase.row_values.push_back(value);
        if (scope == Scope::kElement) phase.element_values.push_back(value);
      }
    return splice.value[static_cast<std::size_t>(store.value)];
  }

  const Plan& plan_;
  const GemmStep gemm_;
  Kernel kernel_;
  runtime::KernelSignature& signature_ = kernel_.signature;
  int result_ = -1;
};

// Is all that the kernel reads of the buffer, which it does read, what stands at the point that it computes?
bool ReadsAtPoint(const Plan& plan, const runtime::KernelSignature& signature, int buffer) {
  std::vector<int> along(signature.axes.size());
  std::iota(along.begin(), along.end(), 0);
  bool reads = false;
  for (const runtime::Access& access : signature.operands) {
    if (runtime::HomeOf(plan.buffers, access.buffer) != buffer) continue;
    if (access.buffer != buffer || access.store || access.gathered || access.dim_of_axis != along) return false;
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
  const bool fits = signature.elementwise && !signature.positional && signature.numbers.empty() &&
                    signature.axes == product.shape && signature.vector_axis + 1 == kernel->rank() &&
                    kernel->phases.size() == 1 && kernel->final_stores.empty() && ReadsAtPoint(plan, signature, gemm.c);
  return fits ? kernel : nullptr;
}

int NumReaders(const Plan& plan, int buffer) {
  return static_cast<int>(
      std::count_if(plan.steps.begin(), plan.steps.end(), [&](const auto& step) { return Reads(plan, step, buffer); }));
}

// Is the operand the same along an axis?
bool Repeats(const runtime::KernelSignature& signature, int operand) {
  const auto& dims = signature.operands[static_cast<std::size_t>(operand)].dim_of_axis;
  return std::count(dims.begin(), dims.end(), -1) != 0;
}

// Is all of the buffer in memory, whatever a launch chooses, as long as a later step may read it? What is a product may
// not be, nor what is a block of rows at a time, or in the memory of an output.
bool Stays(const Plan& plan, int buffer) {
  const auto is_product = [&](const auto& step) {
    return std::holds_alternative<Gemm>(step) && Writes(plan, step, buffer);
  };
  const auto is_local = [buffer](const runtime::StepGroup& group) {
    return std::count(group.local.begin(), group.local.end(), buffer) != 0;
  };
  return BufferOf(plan, buffer).place < 0 && std::none_of(plan.steps.begin(), plan.steps.end(), is_product) &&
         std::none_of(plan.groups.begin(), plan.groups.end(), is_local);
}

// The kernel that makes the product's right factor, for nothing else, with little work for each element; its step, or
// -1.
int MakerOf(const Plan& plan, const GemmStep& gemm) {
  const Buffer& factor = BufferOf(plan, gemm.b);
  if (factor.kind != Buffer::Kind::kTemporary || NumReaders(plan, gemm.b) != 1 || gemm.a == gemm.b) return -1;
  const auto at =
      std::find_if(plan.steps.begin(), plan.steps.end(), [&](const auto& step) { return Writes(plan, step, gemm.b); });
  if (at == plan.steps.end() || !std::holds_alternative<Kernel>(*at)) return -1;
  const auto& kernel = std::get<Kernel>(*at);
  const runtime::KernelSignature& signature = kernel.signature;
  if (!signature.elementwise || signature.positional || !signature.numbers.empty() || kernel.phases.size() != 1)
    return -1;
  if (!kernel.final_stores.empty() || kernel.phases[0].stores.size() != 1 ||
      signature.axes.size() != factor.shape.size())
    return -1;
  double work = 0;
  bool moves = false;  // is there something that is copied to panels?
  for (const Value& value : kernel.values) {
    if (value.kind == Value::Kind::kMap) work += graph::Info(value.op).cost;
    else if (value.kind == Value::Kind::kCast) work += 1;
    else if (value.kind == Value::Kind::kLoad) moves = moves || !Repeats(signature, value.index);
    else if (value.kind != Value::Kind::kScalar && value.kind != Value::Kind::kConstant) return -1;
  }
  for (const runtime::Access& access : signature.operands) {
    const auto& dims = access.dim_of_axis;
    if (access.store && access.buffer != gemm.b) return -1;  // it is put together of parts
    if (access.gathered || (access.store && std::count(dims.begin(), dims.end(), -1) != 0)) return -1;
    if (!access.store && !Stays(plan, access.buffer)) return -1;
  }
  return moves && work < kMostOfMaker ? static_cast<int>(at - plan.steps.begin()) : -1;
}

}  // namespace

void AddSums(Plan* plan) {
  std::vector<std::vector<Kernel>> sums(plan->steps.size());  // behind each step
  int count = 0;
  for (const runtime::StepGroup& group : plan->groups)
    for (int k = group.begin; k < group.end; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const auto* gemm = std::get_if<Gemm>(&plan->steps[at]);
      if (gemm == nullptr) continue;
      const int maker = MakerOf(*plan, gemm->step);
      if (!MayBeFaster(*plan, gemm->step, maker >= 0)) continue;
      const Kernel* follower = k + 1 < group.end && NumReaders(*plan, gemm->step.c) == 1
                                   ? FollowerOf(*plan, gemm->step, plan->steps[at + 1])
                                   : nullptr;
      const std::string name = plan->name + "_product" + (count == 0 ? "" : fmt::format("_{}", count));
      ++count;
      const auto add = [&](bool turned) {
        SumMaker sum(*plan, gemm->step, name + (turned ? "_turned" : ""), turned);
        std::vector<int> replaces{k};
        if (maker >= 0) replaces.push_back(maker);
        sum.Product(maker >= 0 ? &std::get<Kernel>(plan->steps[static_cast<std::size_t>(maker)]) : nullptr);
        if (follower != nullptr) replaces.push_back(k + 1);
        sum.Results(follower);
        sums[at].push_back(sum.Take(std::move(replaces)));
      };
      add(false);
      if (maker < 0 && MayBeFasterTurned(*plan, gemm->step)) add(true);
    }
  std::vector<std::variant<Kernel, Gemm>> steps;
  std::vector<int> now;  // where each step is
  for (std::size_t k = 0; k < plan->steps.size(); ++k) {
    now.push_back(static_cast<int>(steps.size()));
    steps.push_back(std::move(plan->steps[k]));
    for (Kernel& sum : sums[k]) steps.emplace_back(std::move(sum));
  }
  now.push_back(static_cast<int>(steps.size()));
  for (std::size_t k = 0; k < steps.size(); ++k) {
    auto* kernel = std::get_if<Kernel>(&steps[k]);
    if (kernel == nullptr) continue;
    for (int& replaced : kernel->signature.replaces) replaced = now[static_cast<std::size_t>(replaced)];
    if (kernel->signature.turned) kernel->signature.replaces.push_back(static_cast<int>(k) - 1);
    std::sort(kernel->signature.replaces.begin(), kernel->signature.replaces.end());
  }
  plan->steps = std::move(steps);
  for (runtime::StepGroup& group : plan->groups) {
    group.begin = now[static_cast<std::size_t>(group.begin)];
    group.end = now[static_cast<std::size_t>(group.end)];
  }
}

}  // namespace umbra::plan

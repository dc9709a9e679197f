#include "compiler/plan/batches.h"

#include <algorithm>
#include <variant>

#include "compiler/transform/sum_products.h"
#include "runtime/rows_together.h"

namespace umbra::plan {

namespace {

using runtime::Access;
using runtime::Extent;

// The most points of a lane, each of which may be a packet in a first cache, and the most elements of it in a result:
// with more, the packets of a line are written long after each other.
constexpr std::int64_t kMostPoints = 128, kMostStored = 64;
// Bytes along which no packet but those of SSE2 is full, and of one of AVX2, which is no faster across a batch if its
// elements lie side by side, but is if they would have to be gathered from rows.
constexpr std::size_t kShortAxis = 28, kShortAxisAcross = 32;
// A batch of fewer has hardly any packets.
constexpr std::int64_t kLeastBatch = 64;

// Are the extents known, and such?
bool AreFew(const FewPoints& few) {
  std::int64_t points = 1;
  for (const Extent& axis : few.axes) {
    if (!axis.is_static() || axis.value > few.most) return false;
    points *= axis.value;
    if (points > few.most) return false;
  }
  return points > 0;
}

// A kernel as batches of what belongs to an index of one of its axes, for each index of those before it.
class Batch {
 public:
  Batch(const Plan& plan, const Kernel& kernel, int axis)
      : plan_(plan),
        kernel_(kernel),
        signature_(kernel.signature),
        axis_(axis) {}

  // But for extents. Rows of a few elements are those of plan/short_rows.h.
  bool MayGoAcross() const {
    return axis_ < signature_.row_axes && signature_.replaces.empty() &&
           kernel_.rank() > (signature_.elementwise ? 2 : 1) && FirstOfPackets() > axis_ &&
           (axis_ == 0 || !signature_.elementwise) && (!signature_.positional || IsOfLanes()) &&
           signature_.row_buffers.empty() &&
           std::all_of(kernel_.phases.begin(), kernel_.phases.end(),
                       [](const Phase& phase) { return phase.guard < 0; }) &&
           std::all_of(signature_.operands.begin(), signature_.operands.end(),
                       [this](const Access& access) { return LiesWell(access); });
  }

  std::vector<FewPoints> Few() const {
    std::vector<FewPoints> few = {Between(axis_ + 1, kernel_.rank() - 1, kMostPoints),
                                  Between(FirstOfPackets(), signature_.vector_axis, ShortAxis())};
    for (const Access& access : signature_.operands) {
      if (!access.store) continue;
      FewPoints& stored = few.emplace_back(FewPoints{{}, kMostStored});
      for (int axis = axis_ + 1; axis < kernel_.rank(); ++axis)
        if (DimOf(access, axis) >= 0) stored.axes.push_back(signature_.axes[static_cast<std::size_t>(axis)]);
    }
    return few;
  }

  bool IsLarge() const {
    const Extent& batch = signature_.axes[static_cast<std::size_t>(axis_)];
    return !batch.is_static() || batch.value >= kLeastBatch;
  }

 private:
  static int DimOf(const Access& access, int axis) { return access.dim_of_axis[static_cast<std::size_t>(axis)]; }

  // The first of the axes that packets go along, as those that lie one after the other are one to a launch.
  int FirstOfPackets() const {
    const int least = signature_.elementwise || !kernel_.vector_axis_is_inner() ? 0 : signature_.row_axes;
    int axis = signature_.vector_axis;
    while (axis > least && runtime::IsOneWithNext(signature_, axis - 1)) --axis;
    return axis;
  }

  // The longest axis along which packets of the widest operand that is read are not full.
  std::int64_t ShortAxis() const {
    std::size_t element = sizeof(float);
    bool across = false;
    for (const Access& access : signature_.operands) {
      if (access.store) continue;
      element = std::max(element, SizeOf(plan_.buffers[static_cast<std::size_t>(access.buffer)].dtype));
      const int dim = DimOf(access, signature_.vector_axis);
      across = across || (dim >= 0 && dim != access.LastDim());
    }
    return static_cast<std::int64_t>((across ? kShortAxisAcross : kShortAxis) / element);
  }

  FewPoints Between(int first, int last, std::int64_t most) const {
    return {{signature_.axes.begin() + first, signature_.axes.begin() + last + 1}, most};
  }

  // Does the operand have its elements side by side for each index of the batch, or for successive ones of it, or is it
  // the same for all?
  bool LiesWell(const Access& access) const {
    const runtime::Buffer& buffer = plan_.buffers[static_cast<std::size_t>(access.buffer)];
    return (access.gathered ? HasFewOfLane(buffer) : IsSameForAll(access) || LiesAlong(access) || LiesBehind(access)) &&
           buffer.dtype != DType::kBool;
  }
  bool IsSameForAll(const Access& access) const { return DimOf(access, axis_) < 0; }
  bool LiesAlong(const Access& access) const { return DimOf(access, axis_) == access.LastDim(); }
  bool LiesBehind(const Access& access) const {
    const int batch = DimOf(access, axis_);
    for (int axis = 0; axis < kernel_.rank(); ++axis)
      if (const int dim = DimOf(access, axis); dim >= 0 && axis != axis_ && (dim < batch) != (axis < axis_))
        return false;
    return true;
  }

  static bool HasFewOfLane(const runtime::Buffer& buffer) {
    return !buffer.shape.empty() && AreFew({{buffer.shape.begin() + 1, buffer.shape.end()}, kMostStored});
  }

  // Is all that is gathered that of the lane's index, at places that the other axes tell, and the index asked for in
  // nothing else?
  bool IsOfLanes() const {
    const bool gathers = std::any_of(kernel_.values.begin(), kernel_.values.end(),
                                     [](const Value& v) { return v.kind == Value::Kind::kGather; });
    if (gathers && (axis_ > 0 || kernel_.rank() < 3)) return false;
    const std::vector<bool> moves = MovesAlong(kernel_, axis_), data = FollowsFromMemory(kernel_);
    const auto is_index = [&](int id) {
      const Value& v = kernel_.values[static_cast<std::size_t>(id)];
      return v.kind == Value::Kind::kIndex && v.index == axis_;
    };
    return std::all_of(kernel_.values.begin(), kernel_.values.end(), [&](const Value& v) {
      if (v.kind != Value::Kind::kGather) return std::none_of(v.args.begin(), v.args.end(), is_index);
      return !v.args.empty() && is_index(v.args[0]) && std::none_of(v.args.begin() + 1, v.args.end(), [&](int id) {
        return moves[static_cast<std::size_t>(id)] || data[static_cast<std::size_t>(id)];
      });
    });
  }

  const Plan& plan_;
  const Kernel& kernel_;
  const runtime::KernelSignature& signature_;
  const int axis_;
};

void GoAcross(int axis, runtime::KernelSignature* signature) {
  signature->vector_axis = axis;
  signature->elementwise = false;
  signature->partials.clear();
  signature->panels.clear();
  signature->sums = 0;
  signature->moments = false;
  if (!signature->goes_across_batch()) return;
  for (Access& access : signature->operands) {
    const int dim = access.dim_of_axis[static_cast<std::size_t>(axis)];
    access.dense = access.gathered || (dim >= 0 && dim != access.LastDim());
  }
}

// Those of `axes` that are open, of which none may have more than `most` indices.
void AddOpen(const std::vector<Extent>& axes, std::int64_t most, const std::vector<Extent>& all,
             const std::vector<FewPoints>& few, std::vector<OpenRows>* open) {
  for (const Extent& axis : axes)
    if (!axis.is_static()) open->push_back({axis.symbol, all, 1, most, few});
}

void AddOpenOfProduct(const Plan& plan, const runtime::GemmStep& product, std::vector<OpenRows>* open) {
  const auto shape = [&](int buffer) { return plan.buffers[static_cast<std::size_t>(buffer)].shape; };
  const std::vector<Extent> left = shape(product.a), right = shape(product.b);
  const std::size_t rank = left.size();
  if (rank < 2 || right.size() != rank) return;
  const Extent rows = left[rank - (product.transpose_a ? 1 : 2)], inner = left[rank - (product.transpose_a ? 2 : 1)],
               columns = right[rank - (product.transpose_b ? 2 : 1)];
  if (rank == 3) {
    const std::vector<FewPoints> few = {
        {{rows}, graph::kSmallMatrix}, {{inner}, graph::kSmallMatrix}, {{columns}, graph::kSmallMatrix}};
    AddOpen({rows, inner, columns}, graph::kSmallMatrix, {left[0], rows, inner, columns}, few, open);
  } else {
    const std::vector<FewPoints> few = {
        {{columns}, graph::kFewColumns}, {{inner, columns}, graph::kFewProducts}, {{inner}, graph::kFewSteps}};
    AddOpen({inner, columns}, graph::kFewSteps, {rows, inner, columns}, few, open);
  }
}

}  // namespace

void GoAcrossBatches(Plan* plan) {
  for (auto& step : plan->steps) {
    auto* kernel = std::get_if<Kernel>(&step);
    if (kernel == nullptr) continue;
    for (int axis = 0; axis + 1 < kernel->rank(); ++axis) {
      const Batch batch(*plan, *kernel, axis);
      if (!batch.MayGoAcross() || !batch.IsLarge()) continue;
      const std::vector<FewPoints> few = batch.Few();
      if (!std::all_of(few.begin(), few.end(), AreFew)) continue;
      GoAcross(axis, &kernel->signature);
      break;
    }
  }
}

std::vector<OpenRows> FindOpenBatches(const Plan& plan) {
  std::vector<OpenRows> open;
  for (const auto& step : plan.steps) {
    if (const auto* product = std::get_if<Gemm>(&step)) {
      AddOpenOfProduct(plan, product->step, &open);
      continue;
    }
    const auto& kernel = std::get<Kernel>(step);
    const std::vector<Extent>& axes = kernel.signature.axes;
    for (int axis = 0; axis + 1 < kernel.rank(); ++axis) {
      const Batch batch(plan, kernel, axis);
      if (batch.MayGoAcross()) AddOpen({axes.begin() + axis + 1, axes.end()}, kMostPoints, axes, batch.Few(), &open);
    }
  }
  return open;
}

}  // namespace umbra::plan

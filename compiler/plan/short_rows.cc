#include "compiler/plan/short_rows.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/plan/positions.h"
#include "compiler/transform/gather_reads.h"

namespace umbra::plan {

namespace {

using runtime::Access;

// The longest row that packets go across, and with functions; and the longest one of a reduction that goes through a
// few packets, without a loop where their number is known.
constexpr std::int64_t kShortRow = 15, kShortRowOfFunctions = 31, kFewPackets = 64;
constexpr std::int64_t kHardlyAny = 4;  // lanes of a packet
// Rows that are loaded for known places of theirs.
constexpr std::int64_t kPlacesOfRow = 6, kBytesOfRow = 16;

std::int64_t LongestShortRow(const Kernel& kernel) {
  const bool functions = std::any_of(kernel.values.begin(), kernel.values.end(), [](const Value& value) {
    return value.kind == Value::Kind::kMap && graph::Info(value.op).header != "arith";
  });
  return functions ? kShortRowOfFunctions : kShortRow;
}

// Do elements lie along the axis within what is reduced, in all that moves along both?
bool LiesBehindReduced(const runtime::KernelSignature& signature, int axis) {
  bool lies = false;
  for (const Access& access : signature.operands) {
    const int dim = access.dim_of_axis[static_cast<std::size_t>(axis)];
    const int reduced = *std::max_element(access.dim_of_axis.begin() + signature.row_axes, access.dim_of_axis.end());
    if (dim < 0 || reduced < 0) continue;
    if (dim < reduced) return false;
    lies = true;
  }
  return lies;
}

// Is something dear computed of elements that are gathered?
bool ComputesWhatItGathers(const Kernel& kernel) {
  const auto gathers = [](const Value& value) { return value.kind == Value::Kind::kGather; };
  const auto is_dear = [](const Value& value) {
    return value.kind == Value::Kind::kMap && value.scope == Scope::kElement &&
           graph::Info(value.op).cost > graph::kCheap;
  };
  return std::any_of(kernel.values.begin(), kernel.values.end(), gathers) &&
         std::any_of(kernel.values.begin(), kernel.values.end(), is_dear);
}

// The rows of an element-wise kernel, whose operands may be gathered from rows.
class Rows {
 public:
  // `open`: are extents to be known later?
  Rows(const Plan& plan, bool keeps_first_axis, bool open, const Kernel& kernel)
      : plan_(plan),
        keeps_first_axis_(keeps_first_axis),
        open_(open),
        kernel_(kernel),
        signature_(kernel.signature),
        one_by_one_(!signature_.elementwise && IsOneByOne()),
        gathers_(one_by_one_ ? FindGathers() : std::vector<int>()) {}

  // The axes along which rows lie that are not all one, from the last on.
  std::vector<int> Axes() const {
    std::vector<int> axes;
    if ((!signature_.elementwise && !one_by_one_) || kernel_.rank() < 2 || (!one_by_one_ && IsOneRow())) return axes;
    for (int axis = kernel_.rank(); axis-- > 0;)
      if (HasPacketsAcross(axis) &&
          (one_by_one_ ? AreFromRows(axis) || Chooses(axis)
                       : !IsOneWithNext(kernel_, axis - 1) && !IsOneWithNext(kernel_, axis)) &&
          CanBeInnermost(axis))
        axes.push_back(axis);
    return axes;
  }

  // The gathers whose rows are brought together, once the axis is the innermost one: not for one known element alone of
  // several, unless all are needed.
  std::vector<int> FromRows(int axis) const {
    std::vector<int> from_rows;
    const int across = AcrossOf(axis);
    const std::vector<bool> moves = MovesAlong(kernel_, axis);
    const auto needs_all = [&](int id) {
      const int buffer = BufferIndex(value(id));
      const runtime::Extent row = RowOf(plan_, kernel_, value(id), across)->elements;
      return (row.is_static() && row.value == 1) ||
             std::count_if(gathers_.begin(), gathers_.end(),
                           [&](int other) { return value(other).index == value(id).index; }) > 1 ||
             std::any_of(signature_.operands.begin(), signature_.operands.end(), [&](const Access& access) {
               return access.buffer == buffer && !access.gathered && !access.store && AxisOfRows(access) == axis;
             });
    };
    std::copy_if(gathers_.begin(), gathers_.end(), std::back_inserter(from_rows), [&](int id) {
      return IsFromRows(value(id), axis, across) && (moves[static_cast<std::size_t>(id)] || needs_all(id));
    });
    return from_rows;
  }

  // Of results that have no axis along rows that are gathered from: the gathers of several known places of them, where
  // `axis`, of one element, is made for that.
  std::vector<int> FromKnownPlaces(int axis) const {
    if (!one_by_one_ || !AreFromRows(axis) || !LieAcross(axis)) return {};
    // Of longer rows too much is loaded that no one needs.
    const bool few = std::all_of(gathers_.begin(), gathers_.end(), [&](int id) {
      const std::int64_t row = RowOf(plan_, kernel_, value(id), AcrossOf(axis))->elements.value;
      return row <= kPlacesOfRow && row * static_cast<std::int64_t>(SizeOf(BufferOf(value(id)).dtype)) <= kBytesOfRow;
    });
    return few ? FromRows(axis) : std::vector<int>();
  }

  // The extents of the rows that are gathered from, along `axis`.
  std::vector<runtime::Extent> Sources(int axis) const {
    std::vector<runtime::Extent> sources;
    for (const int id : gathers_)
      if (const auto row = RowOf(plan_, kernel_, value(id), AcrossOf(axis))) sources.push_back(row->elements);
    return sources;
  }

 private:
  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }
  int BufferIndex(const Value& gather) const {
    return signature_.operands[static_cast<std::size_t>(gather.index)].buffer;
  }
  const runtime::Buffer& BufferOf(const Value& gather) const {
    return plan_.buffers[static_cast<std::size_t>(BufferIndex(gather))];
  }

  // The axis that packets go along once `axis` is the innermost one.
  int AcrossOf(int axis) const { return axis == kernel_.rank() - 1 ? axis - 1 : kernel_.rank() - 1; }

  // Have packets more than a few lanes that go across rows along the axis? Of other elementwise kernels they may go
  // across a batch (batches.h).
  bool HasPacketsAcross(int axis) const {
    const int across = AcrossOf(axis);
    const runtime::Extent &extent = signature_.axes[static_cast<std::size_t>(across)],
                          &row = signature_.axes[static_cast<std::size_t>(axis)];
    const std::int64_t least = std::max(kHardlyAny, row.is_static() ? row.value : 0);  // as many as a row has alone
    return across == 0 || !extent.is_static() || extent.value > least || IsOneWithNext(kernel_, across - 1);
  }

  // Does the kernel compute its elements one by one, beside what it gathers and asks of indices?
  bool IsOneByOne() const {
    const Phase& phase = kernel_.phases[0];
    return kernel_.phases.size() == 1 && phase.guard < 0 && phase.reductions.empty() && phase.stages.empty() &&
           kernel_.final_stores.empty() && kernel_.vector_axis_is_inner() && signature_.row_axes + 1 == kernel_.rank();
  }

  std::vector<int> FindGathers() const {
    std::vector<int> gathers;
    for (int id = 0; id < static_cast<int>(kernel_.values.size()); ++id)
      if (value(id).kind == Value::Kind::kGather) gathers.push_back(id);
    return gathers;
  }

  // Does the gather take its elements from rows, which ones of them by the last axis `axis` alone, and a next row for
  // each step along the axis `across`?
  bool IsFromRows(const Value& gather, int axis, int across) const {
    const auto row = RowOf(plan_, kernel_, gather, across);
    if (!row || BufferOf(gather).dtype == DType::kBool ||
        (gather.guarded && !FollowsFrom(gather.args.back(), axis, false)))
      return false;
    const std::vector<bool> along = MovesAlong(kernel_, axis);
    const auto row_place = gather.args.begin() + static_cast<std::ptrdiff_t>(row->dim);
    return std::none_of(gather.args.begin(), row_place + 1,
                        [&](int place) { return along[static_cast<std::size_t>(place)]; }) &&
           FollowsFrom(*row_place, across, true) &&
           std::all_of(row_place + 1, gather.args.end() - (gather.guarded ? 1 : 0),
                       [&](int place) { return FollowsFrom(place, axis, false); });
  }

  // Are there gathers, and all of them from rows?
  bool AreFromRows(int axis) const {
    const int across = AcrossOf(axis);
    return !gathers_.empty() &&
           std::all_of(gathers_.begin(), gathers_.end(), [&](int id) { return IsFromRows(value(id), axis, across); });
  }

  // Does the place along the axis alone choose among operands, none of which lies along it?
  bool Chooses(int axis) const {
    const std::vector<bool> moves = MovesAlong(kernel_, axis);
    for (const Access& access : signature_.operands)
      if (!access.store && !access.gathered && access.dim_of_axis[static_cast<std::size_t>(axis)] >= 0) return false;
    return std::any_of(kernel_.values.begin(), kernel_.values.end(), [&](const Value& v) {
      return v.kind == Value::Kind::kMap && v.op == graph::Op::select && moves[static_cast<std::size_t>(v.args[0])] &&
             FollowsFrom(v.args[0], axis, false);
    });
  }

  // Does the gather take elements that lie side by side for steps along the axis `across`, or the same one, wherever
  // positions guard it?
  bool LiesAlong(const Value& gather, int across) const {
    const std::size_t rank = gather.args.size() - (gather.guarded ? 1 : 0);
    if (rank == 0 || BufferOf(gather).dtype == DType::kBool ||
        (gather.guarded && !IsOfPositions(kernel_, gather.args.back())))
      return false;
    const std::vector<bool> beside = MovesAlong(kernel_, across);
    for (std::size_t d = 0; d + 1 < rank; ++d)
      if (beside[static_cast<std::size_t>(gather.args[d])]) return false;
    return !beside[static_cast<std::size_t>(gather.args[rank - 1])] || FollowsFrom(gather.args[rank - 1], across, true);
  }

  // Is the value made of constants and the position along the axis, or, if `evenly`, does it grow evenly along that?
  bool FollowsFrom(int id, int axis, bool evenly) const {
    std::set<int> seen;
    return FollowsFrom(id, axis, evenly, &seen);
  }
  bool FollowsFrom(int id, int axis, bool evenly, std::set<int>* seen) const {
    if (!seen->insert(id).second) return true;  // or it is known already that not all do
    const Value& v = value(id);
    if (v.kind == Value::Kind::kConstant) return true;
    if (v.kind == Value::Kind::kIndex) return v.index == axis || evenly;
    if (v.kind == Value::Kind::kNumber || v.kind == Value::Kind::kScalar) return evenly || open_;
    if (v.kind != Value::Kind::kMap) return false;
    using graph::Op;
    if (evenly && v.op != Op::plus && v.op != Op::minus && v.op != Op::negative) return false;
    return std::all_of(v.args.begin(), v.args.end(), [&](int arg) { return FollowsFrom(arg, axis, evenly, seen); });
  }

  // Does every operand move along all axes alike, from the last on?
  bool IsOneRow() const {
    return std::all_of(signature_.operands.begin(), signature_.operands.end(), [](const Access& access) {
      for (std::size_t axis = 0; axis < access.dim_of_axis.size(); ++axis)
        if (access.dim_of_axis[axis] != static_cast<int>(axis)) return false;
      return true;
    });
  }

  // The axis along which the operand's elements lie side by side; -1: none.
  int AxisOfRows(const Access& access) const {
    const int last = access.LastDim();
    const auto found = std::find(access.dim_of_axis.begin(), access.dim_of_axis.end(), last);
    return last < 0 || found == access.dim_of_axis.end() ? -1 : static_cast<int>(found - access.dim_of_axis.begin());
  }

  // Are there operands with short rows along the axis, and do all others lie along the last of the other axes, or not
  // move along that?
  bool CanBeInnermost(int axis) const {
    if (axis == 0 && keeps_first_axis_) return false;
    const int across = AcrossOf(axis);
    for (const int id : gathers_)
      if (!IsFromRows(value(id), axis, across) && !(axis + 1 == kernel_.rank() && LiesAlong(value(id), across)))
        return false;
    return LieAcross(axis) &&
           std::any_of(signature_.operands.begin(), signature_.operands.end(), [&](const Access& access) {
             return !access.gathered && AxisOfRows(access) == axis &&
                    access.dim_of_axis[static_cast<std::size_t>(across)] >= 0;
           });
  }

  // Do all operands that have no rows along the axis, and are not gathered, lie along the one that packets go along, or
  // not move along that?
  bool LieAcross(int axis) const {
    const int across = AcrossOf(axis);
    return std::all_of(signature_.operands.begin(), signature_.operands.end(), [&](const Access& access) {
      const int rows = AxisOfRows(access);
      return access.gathered || rows == axis || rows == across ||
             access.dim_of_axis[static_cast<std::size_t>(across)] < 0;
    });
  }

  const Plan& plan_;
  const bool keeps_first_axis_;  // a group of steps goes through it
  const bool open_;
  const Kernel& kernel_;
  const runtime::KernelSignature& signature_;
  const bool one_by_one_;  // of one that is no element-wise kernel to a launch
  const std::vector<int> gathers_;
};

// `from_rows`: gathers whose rows are brought together: each element of them is at hand within a row then, a known one,
// too.
void MakeInnermost(const Plan& plan, int axis, const std::vector<int>& from_rows, Kernel* kernel) {
  const auto to_end = [axis](auto* of_axis) {
    std::rotate(of_axis->begin() + axis, of_axis->begin() + axis + 1, of_axis->end());
  };
  runtime::KernelSignature& signature = kernel->signature;
  to_end(&signature.axes);
  for (Access& access : signature.operands) to_end(&access.dim_of_axis);
  for (Value& value : kernel->values)
    if (value.kind == Value::Kind::kIndex)
      value.index = value.index == axis ? kernel->rank() - 1 : value.index - (value.index > axis ? 1 : 0);
  signature.elementwise = false;
  signature.row_axes = kernel->rank() - 1;
  signature.vector_axis = kernel->rank() - 2;
  for (const int id : from_rows) {
    const Value& gather = kernel->values[static_cast<std::size_t>(id)];
    const std::size_t rank = gather.args.size() - (gather.guarded ? 1 : 0);
    const auto row = RowOf(plan, *kernel, gather, signature.vector_axis);
    if (row->dim + 2 < rank) signature.operands[static_cast<std::size_t>(gather.index)].dense = true;
  }
  Phase& phase = kernel->phases[0];
  std::set<int> values(phase.row_values.begin(), phase.row_values.end());
  values.insert(phase.element_values.begin(), phase.element_values.end());
  phase.row_values.clear();
  phase.element_values.clear();
  std::vector<bool> moves = MovesAlong(*kernel, kernel->rank() - 1);
  for (const int id : from_rows) moves[static_cast<std::size_t>(id)] = true;
  for (std::size_t id = 0; id < kernel->values.size(); ++id)
    for (const int arg : kernel->values[id].args) moves[id] = moves[id] || moves[static_cast<std::size_t>(arg)];
  for (const int id : values) {
    Value& value = kernel->values[static_cast<std::size_t>(id)];
    const bool of_element = moves[static_cast<std::size_t>(id)] || value.scope == Scope::kUniform;
    if (value.scope != Scope::kUniform) value.scope = of_element ? Scope::kElement : Scope::kRow;
    (of_element ? phase.element_values : phase.row_values).push_back(id);
  }
}

// The kernel with an innermost axis of one element, along which nothing moves.
Kernel WithElementAxis(Kernel kernel) {
  runtime::KernelSignature& signature = kernel.signature;
  signature.row_axes = kernel.rank();
  signature.vector_axis = kernel.rank();
  signature.axes.push_back(runtime::Extent::Static(1));
  for (Access& access : signature.operands) access.dim_of_axis.push_back(-1);
  return kernel;
}

// Of rows of several axes: the operands whose rows they are; none unless all that moves along one of the axes does so
// along all, one behind the other.
std::vector<std::size_t> OperandsOfJoinedRows(const Kernel& kernel) {
  const runtime::KernelSignature& signature = kernel.signature;
  const auto first = static_cast<std::size_t>(signature.row_axes), last = signature.axes.size() - 1;
  if (!signature.goes_along_columns() || first >= last) return {};
  std::int64_t elements = 1;
  for (std::size_t axis = first; axis <= last; ++axis)
    if (const runtime::Extent& extent = signature.axes[axis];
        !extent.is_static() || __builtin_mul_overflow(elements, extent.value, &elements))
      return {};
  if (elements < 2 || !IsShortRow(kernel, elements)) return {};
  for (const Phase& phase : kernel.phases)
    if (phase.guard >= 0) return {};
  std::vector<std::size_t> operands;
  for (std::size_t k = 0; k < signature.operands.size(); ++k) {
    const Access& access = signature.operands[k];
    if (access.gathered) return {};
    for (std::size_t axis = first; axis < last; ++axis)
      if (const int dim = access.dim_of_axis[axis], next = access.dim_of_axis[axis + 1];
          dim < 0 ? next >= 0 : next != dim + 1)
        return {};
    if (access.dim_of_axis[last] >= 0 && access.dim_of_axis[last] == access.LastDim()) operands.push_back(k);
  }
  return operands;
}

template <typename Plan, typename F>
void ForEachKernel(Plan& plan, const F& f) {
  for (const runtime::StepGroup& group : plan.groups)
    for (int step = group.begin; step < group.end; ++step)
      if (auto* kernel = std::get_if<Kernel>(&plan.steps[static_cast<std::size_t>(step)]))
        f(group.kind == runtime::StepGroup::Kind::kRows, *kernel);
}

}  // namespace

std::optional<GatheredRow> RowOf(const Plan& plan, const Kernel& kernel, const Value& gather, int across) {
  const std::size_t rank = gather.args.size() - (gather.guarded ? 1 : 0);
  const std::vector<bool> moves = MovesAlong(kernel, across);
  std::optional<std::size_t> dim;
  for (std::size_t d = 0; d < rank; ++d) {
    if (!moves[static_cast<std::size_t>(gather.args[d])]) continue;
    if (dim) return std::nullopt;
    dim = d;
  }
  if (!dim || *dim + 1 == rank) return std::nullopt;
  const auto& shape =
      plan.buffers[static_cast<std::size_t>(kernel.signature.operands[static_cast<std::size_t>(gather.index)].buffer)]
          .shape;
  if (*dim + 2 == rank) return GatheredRow{*dim, shape.back()};
  std::int64_t elements = 1;
  for (std::size_t d = *dim + 1; d < rank; ++d) {
    if (!shape[d].is_static() || __builtin_mul_overflow(elements, shape[d].value, &elements)) return std::nullopt;
  }
  return GatheredRow{*dim, runtime::Extent::Static(elements)};
}

bool IsShortRow(const Kernel& kernel, std::int64_t elements) { return elements <= LongestShortRow(kernel); }

void GoAcrossShortRows(Plan* plan) {
  ForEachKernel(*plan, [plan](bool in_rows, Kernel& kernel) {
    const Rows rows(*plan, in_rows, false, kernel);
    const auto is_short = [&](const runtime::Extent& extent) {
      return extent.is_static() && IsShortRow(kernel, extent.value);
    };
    const auto has_short_rows = [&](const Rows& of, int axis) {
      const std::vector<runtime::Extent> sources = of.Sources(axis);
      return std::all_of(sources.begin(), sources.end(),
                         [&](const runtime::Extent& source) { return is_short(source) && source.value >= 1; });
    };
    for (const int axis : rows.Axes()) {
      const runtime::Extent& extent = kernel.signature.axes[static_cast<std::size_t>(axis)];
      if (is_short(extent) && extent.value >= 2 && has_short_rows(rows, axis))
        return MakeInnermost(*plan, axis, rows.FromRows(axis), &kernel);
    }
    if (in_rows) return;
    Kernel with_axis = WithElementAxis(kernel);
    const int axis = kernel.rank();
    const Rows known(*plan, in_rows, false, with_axis);
    if (!has_short_rows(known, axis)) return;
    const std::vector<int> places = known.FromKnownPlaces(axis);
    if (places.empty()) return;
    MakeInnermost(*plan, axis, places, &with_axis);
    kernel = std::move(with_axis);
  });
}

void JoinShortRows(Plan* plan) {
  ForEachKernel(*plan, [](bool, Kernel& kernel) {
    for (const std::size_t k : OperandsOfJoinedRows(kernel)) kernel.signature.operands[k].dense = true;
  });
}

std::vector<OpenRows> FindOpenRows(const Plan& plan) {
  std::vector<OpenRows> found;
  ForEachKernel(plan, [&](bool in_rows, const Kernel& kernel) {
    const runtime::KernelSignature& signature = kernel.signature;
    const auto add = [&](const runtime::Extent& extent, std::int64_t least, std::int64_t most) {
      if (!extent.is_static()) found.push_back({extent.symbol, signature.axes, least, most});
    };
    const Rows rows(plan, in_rows, true, kernel);
    const std::vector<int> axes = rows.Axes();
    for (const int axis : axes) add(signature.axes[static_cast<std::size_t>(axis)], 1, LongestShortRow(kernel));
    for (const int axis : axes)
      for (const runtime::Extent& source : rows.Sources(axis)) add(source, 1, LongestShortRow(kernel));
    const bool reduces = std::any_of(kernel.phases.begin(), kernel.phases.end(),
                                     [](const Phase& phase) { return !phase.reductions.empty(); });
    if (ComputesWhatItGathers(kernel))
      for (const Access& access : signature.operands)
        if (const auto& source = plan.buffers[static_cast<std::size_t>(access.buffer)].shape;
            access.gathered && !source.empty())
          add(source.back(), 1, graph::kLongRow - 1);
    const std::vector<runtime::Extent> row(signature.axes.begin() + signature.row_axes, signature.axes.end());
    for (int axis = signature.row_axes; reduces && kernel.vector_axis_is_inner() && axis < kernel.rank(); ++axis) {
      const runtime::Extent& extent = signature.axes[static_cast<std::size_t>(axis)];
      std::vector<FewPoints> few;  // of several axes that are a row together all
      if (axis != signature.vector_axis) few.push_back({row, kFewPackets});
      if (!extent.is_static()) found.push_back({extent.symbol, signature.axes, 1, kFewPackets, std::move(few)});
    }
    // Columns of one element are rows.
    for (int axis = 0; reduces && axis < signature.row_axes; ++axis)
      if (LiesBehindReduced(signature, axis)) add(signature.axes[static_cast<std::size_t>(axis)], 1, 1);
    // Windows that are as large as what they move over are no windows (compiler/transform/plain_gathers.h).
    for (const Access& access : signature.operands) {
      if (!reduces || !access.gathered) continue;
      const std::vector<runtime::Extent>& source = plan.buffers[static_cast<std::size_t>(access.buffer)].shape;
      for (auto axis = signature.axes.begin() + signature.row_axes; axis != signature.axes.end(); ++axis)
        for (auto dim = source.end() - std::min<std::ptrdiff_t>(2, source.end() - source.begin());
             dim != source.end() && axis->is_static(); ++dim)
          add(*dim, axis->value, axis->value);
    }
  });
  return found;
}

}  // namespace umbra::plan

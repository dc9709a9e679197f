#include "compiler/plan/short_rows.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/plan/positions.h"
#include "compiler/transform/gather_reads.h"
#include "runtime/rows_together.h"

namespace umbra::plan {

namespace {

using runtime::Access;

// The longest row that packets go across, and with functions; and the longest one of a reduction that goes through a
// few packets, without a loop where their number is known.
constexpr std::int64_t kShortRow = 15, kShortRowOfFunctions = 31, kFewPackets = 64;
constexpr std::int64_t kFewBytes = 16;  // of a packet
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

  // Of a kernel that gathers: the axes along which its rows lie, from the last on.
  std::vector<int> Axes() const {
    std::vector<int> axes;
    if (!one_by_one_ || kernel_.rank() < 2) return axes;
    for (int axis = kernel_.rank(); axis-- > 0;)
      if (HasPacketsAcross(axis) && (AreFromRows(axis) || Chooses(axis) || WastesPackets(axis)) && CanBeInnermost(axis))
        axes.push_back(axis);
    return axes;
  }

  // Elements that rows along the axis have at most: more where they are joined of others that are short.
  std::int64_t LongestRow(int axis) const {
    if (!AreFromRows(axis) && !Chooses(axis)) return LongestShortRow(kernel_);
    const std::int64_t joined = std::count_if(kernel_.values.begin(), kernel_.values.end(), [&](const Value& v) {
      return v.kind == Value::Kind::kMap && v.op == graph::Op::lt && FollowsFrom(v.args[0], axis, false) &&
             FollowsFrom(v.args[1], axis, false);
    });
    return std::clamp(kShortRow * (joined + 1), LongestShortRow(kernel_), kLongestOfSeveral);
  }

  // Of one that does not: the axes that are to be innermost so that all operands lie along the last of the others,
  // which packets go along then, or have rows along these; those of the shortest rows that fill packets. None where all
  // that moves lies in one row. Where extents are open, all that may be.
  std::vector<std::vector<int>> InnerAxes() const {
    std::vector<std::vector<int>> found;
    if (!signature_.elementwise || IsOneRow()) return found;
    std::pair<bool, std::int64_t> best{false, -kLongestOfSeveral - 1};  // are packets filled; fewer points
    for (int across = kernel_.rank(); across-- > 0;) {
      const std::set<int> inner = InnerFor(across);
      const std::int64_t points = PointsOf(inner);
      if (inner.empty() || points > (inner.size() > 1 ? kLongestOfSeveral : LongestShortRow(kernel_)) ||
          !HasPacketsAcross(across, points))
        continue;
      const std::pair<bool, std::int64_t> of{FillsPackets(across), -points};
      if (!open_ && of < best) continue;
      if (!open_) found.clear();
      best = of;
      found.emplace_back(inner.begin(), inner.end());
    }
    return found;
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
    const runtime::Extent& row = signature_.axes[static_cast<std::size_t>(axis)];
    return HasPacketsAcross(AcrossOf(axis), row.is_static() ? row.value : 0);
  }
  bool HasPacketsAcross(int across, std::int64_t row) const {
    const runtime::Extent& extent = signature_.axes[static_cast<std::size_t>(across)];
    const std::int64_t least = std::max(kHardlyAny, std::min(row, kShortRow));  // as many as a row has alone
    return across == 0 || !extent.is_static() || extent.value > least || IsLengthened(across);
  }

  // Are packets that go along `across` whole, as far as one knows?
  bool FillsPackets(int across) const {
    const runtime::Extent& extent = signature_.axes[static_cast<std::size_t>(across)];
    return !extent.is_static() || extent.value > kShortRow || IsLengthened(across);
  }

  // Does a launch make the axis and the one before it one?
  bool IsLengthened(int axis) const {
    return !signature_.positional && !HasOneIndex(axis) && IsOneWithNext(kernel_, axis - 1);
  }

  bool HasOneIndex(int axis) const {
    return signature_.axes[static_cast<std::size_t>(axis)] == runtime::Extent::Static(1);
  }

  // The axes that are to be innermost where packets are to go along `across`: those behind it, those that operands lie
  // along, and what makes rows of these longer that stay short. None where that is nothing, or cannot be.
  std::set<int> InnerFor(int across) const {
    std::set<int> inner;
    if (IsOneWithNext(kernel_, across) && !HasOneIndex(across + 1)) return inner;
    for (int axis = across + 1; axis < kernel_.rank(); ++axis) inner.insert(axis);
    bool has_rows = false;
    for (const Access& access : signature_.operands) {
      if (access.gathered || access.dim_of_axis[static_cast<std::size_t>(across)] < 0) continue;
      if (AxisOfRows(access) == across) continue;
      has_rows = true;
      inner.insert(AxisOfRows(access));
    }
    for (const Access& access : signature_.operands) {
      if (access.gathered || access.dim_of_axis[static_cast<std::size_t>(across)] < 0) continue;
      for (int dim = access.LastDim(); dim >= 0; --dim) {
        const int axis = AxisOf(access, dim);
        if (axis < 0) continue;  // one index
        if (axis == across || (inner.count(axis) == 0 && PointsOf(inner, axis) > kShortRow)) break;
        inner.insert(axis);
      }
    }
    // Axes that a launch makes one are one long one.
    for (const int axis : inner)
      if (!HasOneIndex(axis) && ((IsOneWithNext(kernel_, axis - 1) && inner.count(axis - 1) == 0) ||
                                 (IsOneWithNext(kernel_, axis) && inner.count(axis + 1) == 0)))
        return {};
    return has_rows && !(keeps_first_axis_ && inner.count(0) > 0) ? inner : std::set<int>();
  }

  // How many points have these axes, and another one? Too many where it is not known, unless it is to be known later.
  std::int64_t PointsOf(const std::set<int>& axes, int another = -1) const {
    std::int64_t points = 1;
    const auto add = [&](int axis) {
      const runtime::Extent& extent = signature_.axes[static_cast<std::size_t>(axis)];
      if (!extent.is_static() ? !open_ : __builtin_mul_overflow(points, extent.value, &points))
        points = kLongestOfSeveral + 1;
    };
    for (const int axis : axes) add(axis);
    if (another >= 0) add(another);
    return points;
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

  // Would packets along the last axis have few lanes that count, or what is the same for all of a row be computed one
  // by one though it is dear?
  bool WastesPackets(int axis) const {
    const runtime::Extent& row = signature_.axes[static_cast<std::size_t>(axis)];
    const runtime::Extent& rows = signature_.axes[static_cast<std::size_t>(AcrossOf(axis))];
    if (axis + 1 < kernel_.rank() || (row.is_static() ? row.value > kShortRow : !open_) ||
        (rows.is_static() && rows.value <= kShortRow))
      return false;
    std::size_t widest = 1;
    for (const Access& access : signature_.operands)
      if (access.dim_of_axis[static_cast<std::size_t>(axis)] >= 0)
        widest = std::max(widest, SizeOf(plan_.buffers[static_cast<std::size_t>(access.buffer)].dtype));
    const auto& of_row = kernel_.phases[0].row_values;
    return !row.is_static() || row.value * static_cast<std::int64_t>(widest) <= kFewBytes ||
           std::any_of(of_row.begin(), of_row.end(), [&](int id) {
             return value(id).kind == Value::Kind::kMap && graph::Info(value(id).op).cost > graph::kCheap;
           });
  }

  // Does the gather take elements that lie side by side for steps along the axis `across`, each for so many steps, or
  // the same one, wherever positions guard it?
  bool LiesAlong(const Value& gather, int across) const {
    const std::size_t rank = gather.args.size() - (gather.guarded ? 1 : 0);
    if (rank == 0 || BufferOf(gather).dtype == DType::kBool ||
        (gather.guarded && !IsOfPositions(kernel_, gather.args.back())))
      return false;
    const std::vector<bool> beside = MovesAlong(kernel_, across);
    for (std::size_t d = 0; d + 1 < rank; ++d)
      if (beside[static_cast<std::size_t>(gather.args[d])]) return false;
    const int last = gather.args[rank - 1];
    return !beside[static_cast<std::size_t>(last)] || FollowsFrom(last, across, true) || Repeats(last, across);
  }

  // Is it the position along the axis divided by a number?
  bool Repeats(int id, int axis) const {
    const Value& v = value(id);
    return v.kind == Value::Kind::kMap && v.op == graph::Op::div && value(v.args[0]).kind == Value::Kind::kIndex &&
           value(v.args[0]).index == axis && value(v.args[1]).kind == Value::Kind::kConstant;
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
  int AxisOfRows(const Access& access) const { return AxisOf(access, access.LastDim()); }
  static int AxisOf(const Access& access, int dim) {
    const auto found = std::find(access.dim_of_axis.begin(), access.dim_of_axis.end(), dim);
    return dim < 0 || found == access.dim_of_axis.end() ? -1 : static_cast<int>(found - access.dim_of_axis.begin());
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

// `axes` in their order. `from_rows`: gathers whose rows are brought together: each element of them is at hand within a
// row then, a known one, too.
void MakeInnermost(const std::vector<int>& axes, const std::vector<int>& from_rows, Kernel* kernel) {
  const auto is_inner = [&axes](int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
  std::vector<int> order, place(static_cast<std::size_t>(kernel->rank()));
  for (int axis = 0; axis < kernel->rank(); ++axis)
    if (!is_inner(axis)) order.push_back(axis);
  order.insert(order.end(), axes.begin(), axes.end());
  for (std::size_t k = 0; k < order.size(); ++k) place[static_cast<std::size_t>(order[k])] = static_cast<int>(k);
  const auto reorder = [&order](auto* of_axis) {
    const auto before = *of_axis;
    for (std::size_t k = 0; k < order.size(); ++k) (*of_axis)[k] = before[static_cast<std::size_t>(order[k])];
  };
  runtime::KernelSignature& signature = kernel->signature;
  reorder(&signature.axes);
  for (Access& access : signature.operands) reorder(&access.dim_of_axis);
  for (Value& value : kernel->values)
    if (value.kind == Value::Kind::kIndex) value.index = place[static_cast<std::size_t>(value.index)];
  signature.elementwise = false;
  signature.row_axes = kernel->rank() - static_cast<int>(axes.size());
  signature.vector_axis = signature.row_axes - 1;
  for (const int id : from_rows)
    signature.operands[static_cast<std::size_t>(kernel->values[static_cast<std::size_t>(id)].index)].dense = true;
  Phase& phase = kernel->phases[0];
  std::set<int> values(phase.row_values.begin(), phase.row_values.end());
  values.insert(phase.element_values.begin(), phase.element_values.end());
  phase.row_values.clear();
  phase.element_values.clear();
  std::vector<bool> moves = MovesAlong(*kernel, kernel->rank() - 1);
  for (int axis = signature.row_axes; axis + 1 < kernel->rank(); ++axis) {
    const std::vector<bool> along = MovesAlong(*kernel, axis);
    std::transform(along.begin(), along.end(), moves.begin(), moves.begin(), std::logical_or<>());
  }
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

// The operands that have short rows; none where rows of several axes are too long, or a reduction has no operand with
// more than one axis of them.
std::vector<std::size_t> OperandsOfShortRows(const Kernel& kernel) {
  const runtime::KernelSignature& signature = kernel.signature;
  const auto first = static_cast<std::size_t>(signature.row_axes);
  const bool several = first + 1 < signature.axes.size();
  if (!signature.goes_along_columns() || first == signature.axes.size()) return {};
  std::int64_t elements = 1;
  for (std::size_t axis = first; axis < signature.axes.size(); ++axis)
    if (const runtime::Extent& extent = signature.axes[axis];
        !extent.is_static() || __builtin_mul_overflow(elements, extent.value, &elements))
      return {};
  const bool reduces = std::any_of(kernel.phases.begin(), kernel.phases.end(),
                                   [](const Phase& phase) { return !phase.reductions.empty(); });
  if (several && (elements < 2 || (reduces ? !IsShortRow(kernel, elements) : elements > kLongestOfSeveral))) return {};
  for (const Phase& phase : kernel.phases)
    if (phase.guard >= 0) return {};
  std::vector<std::size_t> operands;
  bool joined = !several || !reduces;
  for (std::size_t k = 0; k < signature.operands.size(); ++k) {
    const Access& access = signature.operands[k];
    if (access.gathered && several) return {};
    if (access.gathered || access.dim_of_axis[static_cast<std::size_t>(signature.vector_axis)] < 0) continue;
    const int rows = runtime::FirstOfShortRow(signature, access, several);
    if (rows <= access.LastDim()) operands.push_back(k);
    joined = joined || rows < access.LastDim();
  }
  return joined ? operands : std::vector<std::size_t>();
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
    const auto has_short_rows = [&](const Rows& of, int axis) {
      const std::vector<runtime::Extent> sources = of.Sources(axis);
      return std::all_of(sources.begin(), sources.end(), [&](const runtime::Extent& source) {
        return source.is_static() && source.value >= 1 && source.value <= of.LongestRow(axis);
      });
    };
    if (const std::vector<std::vector<int>> inner = rows.InnerAxes(); !inner.empty())
      return MakeInnermost(inner[0], {}, &kernel);
    for (const int axis : rows.Axes()) {
      const runtime::Extent& extent = kernel.signature.axes[static_cast<std::size_t>(axis)];
      if (extent.is_static() && extent.value <= rows.LongestRow(axis) && extent.value >= 2 &&
          has_short_rows(rows, axis))
        return MakeInnermost({axis}, rows.FromRows(axis), &kernel);
    }
    if (in_rows) return;
    Kernel with_axis = WithElementAxis(kernel);
    const int axis = kernel.rank();
    const Rows known(*plan, in_rows, false, with_axis);
    if (!has_short_rows(known, axis)) return;
    const std::vector<int> places = known.FromKnownPlaces(axis);
    if (places.empty()) return;
    MakeInnermost({axis}, places, &with_axis);
    kernel = std::move(with_axis);
  });
}

void AskForDenseRows(Plan* plan) {
  ForEachKernel(*plan, [](bool, Kernel& kernel) {
    for (const std::size_t k : OperandsOfShortRows(kernel)) kernel.signature.operands[k].dense = true;
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
    for (const int axis : axes) add(signature.axes[static_cast<std::size_t>(axis)], 1, rows.LongestRow(axis));
    for (const int axis : axes)
      for (const runtime::Extent& source : rows.Sources(axis)) add(source, 1, rows.LongestRow(axis));
    for (const std::vector<int>& inner : rows.InnerAxes()) {
      FewPoints few{{}, inner.size() > 1 ? kLongestOfSeveral : LongestShortRow(kernel)};
      for (const int axis : inner) few.axes.push_back(signature.axes[static_cast<std::size_t>(axis)]);
      for (const runtime::Extent& extent : few.axes)
        if (!extent.is_static()) found.push_back({extent.symbol, signature.axes, 1, few.most, {few}});
    }
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

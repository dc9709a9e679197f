#include "compiler/plan/element_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "compiler/plan/positions.h"
#include "compiler/plan/short_rows.h"
#include "compiler/transform/gather_reads.h"
#include "runtime/rows_together.h"

namespace umbra::plan {

using runtime::Access;

namespace {

constexpr std::int64_t kFewBytes = 16;  // of a packet
constexpr std::int64_t kHardlyAny = 4;  // lanes of a packet
constexpr std::int64_t kFarApart = 9;  // elements that lie so far apart are hardly two of a line
// Rows that are loaded for known places of theirs.
constexpr std::int64_t kPlacesOfRow = 6, kBytesOfRow = 16;

}  // namespace

ElementRows::ElementRows(const Plan& plan, bool keeps_first_axis, bool open, const Kernel& kernel)
    : plan_(plan),
      keeps_first_axis_(keeps_first_axis),
      open_(open),
      kernel_(kernel),
      signature_(kernel.signature),
      one_by_one_(!signature_.elementwise && IsOneByOne()),
      gathers_(one_by_one_ ? FindGathers() : std::vector<int>()) {}

std::vector<int> ElementRows::Axes() const {
  std::vector<int> axes;
  if (!one_by_one_ || kernel_.rank() < 2) return axes;
  for (int axis = kernel_.rank(); axis-- > 0;)
    if (HasPacketsAcross(axis) && (AreFromRows(axis) || Chooses(axis) || WastesPackets(axis)) && CanBeInnermost(axis))
      axes.push_back(axis);
  return axes;
}

std::int64_t ElementRows::LongestRow(int axis) const {
  if (!AreFromRows(axis) && !Chooses(axis)) return LongestShortRow(kernel_);
  const std::int64_t joined = std::count_if(kernel_.values.begin(), kernel_.values.end(), [&](const Value& v) {
    return v.kind == Value::Kind::kMap && v.op == graph::Op::lt && FollowsFrom(v.args[0], axis, false) &&
           FollowsFrom(v.args[1], axis, false);
  });
  return std::clamp(kShortRow * (joined + 1), LongestShortRow(kernel_), kLongestOfSeveral);
}

std::vector<std::vector<int>> ElementRows::InnerAxes() const {
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

std::vector<int> ElementRows::FromRows(int axis) const {
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

std::vector<int> ElementRows::FromKnownPlaces(int axis) const {
  if (!one_by_one_ || !AreFromRows(axis) || !LieAcross(axis)) return {};
  // Of longer rows too much is loaded that no one needs, unless most of it is.
  const bool few = std::all_of(gathers_.begin(), gathers_.end(), [&](int id) {
    const std::int64_t row = RowOf(plan_, kernel_, value(id), AcrossOf(axis))->elements.value;
    const std::int64_t places = std::count_if(gathers_.begin(), gathers_.end(), [&](int other) {
      return BufferIndex(value(other)) == BufferIndex(value(id));
    });
    return (row <= kShortRow && 2 * places > row) ||
           (row <= kPlacesOfRow && row * static_cast<std::int64_t>(SizeOf(BufferOf(value(id)).dtype)) <= kBytesOfRow);
  });
  return few ? FromRows(axis) : std::vector<int>();
}

std::vector<runtime::Extent> ElementRows::Sources(int axis) const {
  std::vector<runtime::Extent> sources;
  for (const int id : gathers_)
    if (const auto row = RowOf(plan_, kernel_, value(id), AcrossOf(axis))) sources.push_back(row->elements);
  return sources;
}

int ElementRows::BufferIndex(const Value& gather) const {
  return signature_.operands[static_cast<std::size_t>(gather.index)].buffer;
}

const runtime::Buffer& ElementRows::BufferOf(const Value& gather) const {
  return plan_.buffers[static_cast<std::size_t>(BufferIndex(gather))];
}

// Have packets more than a few lanes that go across rows along the axis? Of other elementwise kernels they may go
// across a batch (batches.h).
bool ElementRows::HasPacketsAcross(int axis) const {
  const runtime::Extent& row = signature_.axes[static_cast<std::size_t>(axis)];
  return HasPacketsAcross(AcrossOf(axis), row.is_static() ? row.value : 0);
}

bool ElementRows::HasPacketsAcross(int across, std::int64_t row) const {
  const runtime::Extent& extent = signature_.axes[static_cast<std::size_t>(across)];
  const std::int64_t least = std::max(kHardlyAny, std::min(row, kShortRow));  // as many as a row has alone
  return across == 0 || !extent.is_static() || extent.value > least || IsLengthened(across);
}

// Are packets that go along `across` whole, as far as one knows?
bool ElementRows::FillsPackets(int across) const {
  const runtime::Extent& extent = signature_.axes[static_cast<std::size_t>(across)];
  return !extent.is_static() || extent.value > kShortRow || IsLengthened(across);
}

// Does a launch make the axis and the one before it one?
bool ElementRows::IsLengthened(int axis) const {
  return !signature_.positional && !HasOneIndex(axis) && runtime::IsOneWithNext(signature_, axis - 1);
}

bool ElementRows::HasOneIndex(int axis) const {
  return signature_.axes[static_cast<std::size_t>(axis)] == runtime::Extent::Static(1);
}

// The axes that are to be innermost where packets are to go along `across`: those behind it, those that operands lie
// along, and what makes rows of these longer that stay short. None where that is nothing, or cannot be.
std::set<int> ElementRows::InnerFor(int across) const {
  std::set<int> inner;
  if (runtime::IsOneWithNext(signature_, across) && !HasOneIndex(across + 1)) return inner;
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
    if (!HasOneIndex(axis) && ((runtime::IsOneWithNext(signature_, axis - 1) && inner.count(axis - 1) == 0) ||
                               (runtime::IsOneWithNext(signature_, axis) && inner.count(axis + 1) == 0)))
      return {};
  return has_rows && !(keeps_first_axis_ && inner.count(0) > 0) ? inner : std::set<int>();
}

// How many points have these axes, and another one? Too many where it is not known, unless it is to be known later.
std::int64_t ElementRows::PointsOf(const std::set<int>& axes, int another) const {
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
bool ElementRows::IsOneByOne() const {
  const Phase& phase = kernel_.phases[0];
  return kernel_.phases.size() == 1 && phase.guard < 0 && phase.reductions.empty() && phase.stages.empty() &&
         kernel_.final_stores.empty() && kernel_.vector_axis_is_inner() && signature_.row_axes + 1 == kernel_.rank() &&
         !HasScans(kernel_);
}

std::vector<int> ElementRows::FindGathers() const {
  std::vector<int> gathers;
  for (int id = 0; id < static_cast<int>(kernel_.values.size()); ++id)
    if (value(id).kind == Value::Kind::kGather) gathers.push_back(id);
  return gathers;
}

// Does the gather take its elements from rows, which ones of them by the last axis `axis` alone, and a next row for
// each step along the axis `across`?
bool ElementRows::IsFromRows(const Value& gather, int axis, int across) const {
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
bool ElementRows::AreFromRows(int axis) const {
  const int across = AcrossOf(axis);
  return !gathers_.empty() &&
         std::all_of(gathers_.begin(), gathers_.end(), [&](int id) { return IsFromRows(value(id), axis, across); });
}

// Does the place along the axis alone choose among operands, none of which lies along it?
bool ElementRows::Chooses(int axis) const {
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
bool ElementRows::WastesPackets(int axis) const {
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

// Does the gather take elements that lie side by side for steps along the axis `across`, or a few elements apart, each
// for so many steps, or the same one, wherever positions guard it?
bool ElementRows::LiesAlong(const Value& gather, int across) const {
  const std::size_t rank = gather.args.size() - (gather.guarded ? 1 : 0);
  if (rank == 0 || BufferOf(gather).dtype == DType::kBool ||
      (gather.guarded && !IsOfPositions(kernel_, gather.args.back())))
    return false;
  // Behind the dimension that it moves along are a few elements.
  const std::vector<bool> beside = MovesAlong(kernel_, across);
  std::int64_t apart = 1;
  std::size_t d = rank - 1;
  for (; d > 0 && !beside[static_cast<std::size_t>(gather.args[d])]; --d) {
    const runtime::Extent& extent = BufferOf(gather).shape[d];
    apart = extent.is_static() && extent.value < kFarApart ? apart * extent.value : kFarApart;
    if (apart >= kFarApart) break;
  }
  for (std::size_t before = 0; before < d; ++before)
    if (beside[static_cast<std::size_t>(gather.args[before])]) return false;
  const int place = gather.args[d];
  if (!beside[static_cast<std::size_t>(place)] || (d + 1 == rank && FollowsFrom(place, across, true))) return true;
  if (FollowsFromMemory(kernel_)[static_cast<std::size_t>(place)]) return false;
  const std::int64_t step = StepAlong(kernel_, place, across).value_or(kFarApart);
  return (std::abs(step) < kFarApart && apart * std::abs(step) < kFarApart) || Repeats(place, across);
}

// Does memory tell which row the gather takes its elements from, and the last axis `axis` alone which ones of it?
bool ElementRows::IsOfRowsByIndex(const Value& gather, int axis) const {
  const auto last = gather.args.end() - (gather.guarded ? 2 : 1);
  if (last <= gather.args.begin() || BufferOf(gather).dtype == DType::kBool ||
      (gather.guarded && !FollowsFrom(gather.args.back(), axis, false)))
    return false;
  const std::vector<bool> data = FollowsFromMemory(kernel_);
  return FollowsFrom(*last, axis, false) &&
         std::any_of(gather.args.begin(), last, [&](int place) { return data[static_cast<std::size_t>(place)]; });
}

// Is it the position along the axis divided by a number?
bool ElementRows::Repeats(int id, int axis) const {
  const Value& v = value(id);
  return v.kind == Value::Kind::kMap && v.op == graph::Op::div && value(v.args[0]).kind == Value::Kind::kIndex &&
         value(v.args[0]).index == axis && value(v.args[1]).kind == Value::Kind::kConstant;
}

// Is the value made of constants and the position along the axis, or, if `evenly`, does it grow evenly along that?
bool ElementRows::FollowsFrom(int id, int axis, bool evenly) const {
  std::set<int> seen;
  return FollowsFrom(id, axis, evenly, &seen);
}

bool ElementRows::FollowsFrom(int id, int axis, bool evenly, std::set<int>* seen) const {
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
bool ElementRows::IsOneRow() const {
  return std::all_of(signature_.operands.begin(), signature_.operands.end(), [](const Access& access) {
    for (std::size_t axis = 0; axis < access.dim_of_axis.size(); ++axis)
      if (access.dim_of_axis[axis] != static_cast<int>(axis)) return false;
    return true;
  });
}

int ElementRows::AxisOf(const Access& access, int dim) {
  const auto found = std::find(access.dim_of_axis.begin(), access.dim_of_axis.end(), dim);
  return dim < 0 || found == access.dim_of_axis.end() ? -1 : static_cast<int>(found - access.dim_of_axis.begin());
}

// Are there operands with short rows along the axis, and do all others lie along the last of the other axes, or not
// move along that?
bool ElementRows::CanBeInnermost(int axis) const {
  if (axis == 0 && keeps_first_axis_) return false;
  const int across = AcrossOf(axis);
  for (const int id : gathers_)
    if (!IsFromRows(value(id), axis, across) &&
        !(axis + 1 == kernel_.rank() && (LiesAlong(value(id), across) || IsOfRowsByIndex(value(id), axis))))
      return false;
  return LieAcross(axis) &&
         std::any_of(signature_.operands.begin(), signature_.operands.end(), [&](const Access& access) {
           return !access.gathered && AxisOfRows(access) == axis &&
                  access.dim_of_axis[static_cast<std::size_t>(across)] >= 0;
         });
}

// Do all operands that have no rows along the axis, and are not gathered, lie along the one that packets go along, or
// not move along that?
bool ElementRows::LieAcross(int axis) const {
  const int across = AcrossOf(axis);
  return std::all_of(signature_.operands.begin(), signature_.operands.end(), [&](const Access& access) {
    const int rows = AxisOfRows(access);
    return access.gathered || rows == axis || rows == across ||
           access.dim_of_axis[static_cast<std::size_t>(across)] < 0;
  });
}

}  // namespace umbra::plan

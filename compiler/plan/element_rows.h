// The rows of an element-wise kernel, whose operands may be gathered from rows.
#ifndef UMBRA_COMPILER_PLAN_ELEMENT_ROWS_H_
#define UMBRA_COMPILER_PLAN_ELEMENT_ROWS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Which axes of an element-wise kernel may be rows that packets go across. The plan and the kernel outlive it.
class ElementRows {
 public:
  /// `keeps_first_axis`: a group of steps goes through it. `open`: are extents to be known later?
  ElementRows(const Plan& plan, bool keeps_first_axis, bool open, const Kernel& kernel);
  /// Of a kernel that gathers: the axes along which its rows lie, from the last on.
  std::vector<int> Axes() const;
  /// Elements that rows along the axis have at most: more where they are joined of others that are short.
  std::int64_t LongestRow(int axis) const;
  /// Of one that does not: the axes that are to be innermost so that all operands lie along the last of the others,
  /// which packets go along then, or have rows along these; those of the shortest rows that fill packets. None where
  /// all that moves lies in one row. Where extents are open, all that may be.
  std::vector<std::vector<int>> InnerAxes() const;
  /// The gathers whose rows are brought together, once the axis is the innermost one: not for one known element alone
  /// of several, unless all are needed.
  std::vector<int> FromRows(int axis) const;
  /// Of results that have no axis along rows that are gathered from: the gathers of several known places of them, where
  /// `axis`, of one element, is made for that.
  std::vector<int> FromKnownPlaces(int axis) const;
  /// The extents of the rows that are gathered from, along `axis`.
  std::vector<runtime::Extent> Sources(int axis) const;

 private:
  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }
  int BufferIndex(const Value& gather) const;
  const runtime::Buffer& BufferOf(const Value& gather) const;
  // The axis that packets go along once `axis` is the innermost one.
  int AcrossOf(int axis) const { return axis == kernel_.rank() - 1 ? axis - 1 : kernel_.rank() - 1; }
  bool HasPacketsAcross(int axis) const;
  bool HasPacketsAcross(int across, std::int64_t row) const;
  bool FillsPackets(int across) const;
  bool IsLengthened(int axis) const;
  bool HasOneIndex(int axis) const;
  std::set<int> InnerFor(int across) const;
  std::int64_t PointsOf(const std::set<int>& axes, int another = -1) const;
  bool IsOneByOne() const;
  std::vector<int> FindGathers() const;
  bool IsFromRows(const Value& gather, int axis, int across) const;
  bool AreFromRows(int axis) const;
  bool Chooses(int axis) const;
  bool WastesPackets(int axis) const;
  bool LiesAlong(const Value& gather, int across) const;
  bool IsOfRowsByIndex(const Value& gather, int axis) const;
  bool Repeats(int id, int axis) const;
  bool FollowsFrom(int id, int axis, bool evenly) const;
  bool FollowsFrom(int id, int axis, bool evenly, std::set<int>* seen) const;
  bool IsOneRow() const;
  // The axis along which the operand's elements lie side by side; -1: none.
  int AxisOfRows(const runtime::Access& access) const { return AxisOf(access, access.LastDim()); }
  static int AxisOf(const runtime::Access& access, int dim);
  bool CanBeInnermost(int axis) const;
  bool LieAcross(int axis) const;

  const Plan& plan_;
  const bool keeps_first_axis_, open_;
  const Kernel& kernel_;
  const runtime::KernelSignature& signature_;
  const bool one_by_one_;  // of one that is no element-wise kernel to a launch
  const std::vector<int> gathers_;
};

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_ELEMENT_ROWS_H_

#include "runtime/launch_axes.h"

#include <utility>

#include "runtime/rows_together.h"
#include "umbra/prelude/memory.h"

namespace umbra::runtime {

namespace {

constexpr index_t kRow = 16384;  // elements of a row when a dense elementwise kernel is cut anew
constexpr index_t kMostShares = 64;  // of a thread, of tiles that lie along one axis
// Work of one thread, in additions, below which another one costs more than it brings though it is awake.
constexpr double kGrain = 98304;

}  // namespace

int UsefulThreads(double work, int threads) {
  return static_cast<int>(std::max(1.0, std::min(work / kGrain, static_cast<double>(threads))));
}

LaunchAxes::LaunchAxes(const KernelSignature& signature, const std::vector<TensorRef>& buffers,
                       const std::vector<index_t>& symbols, int threads, index_t rows)
    : signature_(signature),
      buffers_(buffers),
      threads_(threads) {
  for (const Extent& axis : signature_.axes)
    plan_.extent.push_back(axis.is_static() ? axis.value : symbols[static_cast<std::size_t>(axis.symbol)]);
  if (rows >= 0) plan_.extent[0] = rows;
  rank_ = plan_.extent.size();
  vector_axis_ = static_cast<std::size_t>(signature_.vector_axis);
  for (const Access& access : signature_.operands) {
    const TensorRef& tensor = buffers[static_cast<std::size_t>(access.buffer)];
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      const int dim = access.dim_of_axis[axis];
      const bool moves = dim >= 0 && plan_.extent[axis] != 1;
      plan_.stride.push_back(moves ? tensor.stride[static_cast<std::size_t>(dim)]
                                   : (dim >= 0 && axis == vector_axis_ ? 1 : 0));
    }
  }
  plan_.remainder_offset.assign(signature_.operands.size(), 0);
}

double LaunchAxes::Work() const {
  double work = signature_.cost;
  for (const index_t extent : plan_.extent) work *= static_cast<double>(extent);
  return work;
}

index_t LaunchAxes::Points(std::size_t begin, std::size_t end) const {
  index_t points = 1;
  for (std::size_t axis = begin; axis < end; ++axis) points *= plan_.extent[axis];
  return points;
}

// Does stepping `outer` once equal stepping `inner` through its extent, for every operand?
bool LaunchAxes::CanMerge(std::size_t outer, std::size_t inner) {
  for (std::size_t k = 0; k < signature_.operands.size(); ++k)
    if (Stride(k, outer) != Stride(k, inner) * plan_.extent[inner]) return false;
  return true;
}

// Does all that moves along the axis move along axis 0, too, by what the kernel takes for an address?
bool LaunchAxes::MovesWithFirst(std::size_t axis) {
  for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
    const std::vector<int>& dims = signature_.operands[k].dim_of_axis;
    if (Stride(k, axis) != 0 && dims[0] < 0 && !(signature_.elementwise && dims[vector_axis_] >= 0)) return false;
  }
  return true;
}

// Moves the extent of `inner` into `outer`.
void LaunchAxes::MergeInto(std::size_t outer, std::size_t inner) {
  for (std::size_t k = 0; k < signature_.operands.size(); ++k) Stride(k, outer) = Stride(k, inner);
  plan_.extent[outer] *= plan_.extent[inner];
  plan_.extent[inner] = 1;
}

// Rows that a kernel of several phases walks at a time, as its source has it (compiler/codegen/cpu/rows.cc).
index_t LaunchAxes::RowsAtOnce() const {
  return simd::rows_at_once(Points(RowAxes(), rank_) * static_cast<index_t>(BytesAlongRow(signature_, buffers_)),
                            RoomOfRows(signature_));
}

// They are rows of the innermost row axis, which gets back so many, or fewer, if axis 0 has gathered it.
void LaunchAxes::GiveRowsBack() {
  const std::size_t inner = RowAxes() - 1;
  if (signature_.phases == 1 || InColumns() || inner == 0 || plan_.extent[inner] != 1) return;
  for (std::size_t k = 0; k < signature_.operands.size(); ++k)
    if (Stride(k, 0) != 0 && signature_.operands[k].dim_of_axis[inner] < 0) return;
  const int threads = UsefulThreads(Work(), threads_);
  index_t rows = RowsAtOnce();
  while (rows > 1 && (plan_.extent[0] % rows != 0 || plan_.extent[0] / rows < threads)) --rows;
  for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
    Stride(k, inner) = Stride(k, 0);
    Stride(k, 0) *= rows;
  }
  plan_.extent[0] /= rows;
  plan_.extent[inner] = rows;
}

// The vector axis gathers the axes before it, so that rows are long, and the first one too if columns are few.
void LaunchAxes::LengthenRows() {
  if (!MayGrow(vector_axis_)) return;
  const std::size_t first = InColumns() || signature_.elementwise ? 1 : RowAxes();
  for (std::size_t axis = vector_axis_; axis-- > 0;) {
    if (plan_.extent[axis] == 1) continue;
    const bool may = axis >= first || (InColumns() && plan_.extent[vector_axis_] < kColumnGranule);
    if (!may || !MayGrow(axis) || !CanMerge(axis, vector_axis_)) return;
    plan_.extent[vector_axis_] *= std::exchange(plan_.extent[axis], 1);
  }
}

std::size_t LaunchAxes::TileAxis() const {
  for (const Access& access : signature_.operands) {
    const int last = access.LastDim(), dim = access.dim_of_axis[vector_axis_];
    if (!signature_.elementwise || dim < 0 || dim == last) continue;
    for (std::size_t axis = 0; axis < vector_axis_; ++axis)
      if (access.dim_of_axis[axis] == last) return axis;
  }
  return rank_;
}

// It gathers the axes before it, so that tiles are whole and follow each other in memory. Axis 0 keeps what threads
// share.
void LaunchAxes::LengthenTiles(std::size_t tiles) {
  for (std::size_t axis = tiles; axis-- > 1;) {
    if (plan_.extent[axis] == 1) continue;
    if (!CanMerge(axis, tiles)) return;
    plan_.extent[tiles] *= std::exchange(plan_.extent[axis], 1);
  }
  if (plan_.extent[0] == 1 ? !MovesWithFirst(tiles) : !CanMerge(0, tiles)) return;
  const index_t all = plan_.extent[0] * plan_.extent[tiles], threads = UsefulThreads(Work(), threads_);
  index_t shares = threads;
  while (shares <= threads * kMostShares && all % shares != 0) shares += threads;
  if (all % shares != 0) return;
  plan_.extent[0] = shares;
  plan_.extent[tiles] = all / shares;
  for (std::size_t k = 0; k < signature_.operands.size(); ++k) Stride(k, 0) = Stride(k, tiles) * plan_.extent[tiles];
}

void LaunchAxes::Merge() {
  LengthenRows();
  const auto row_axes = static_cast<std::size_t>(signature_.row_axes);
  const std::size_t tiles = TileAxis();
  if (tiles > 0 && tiles < rank_) LengthenTiles(tiles);
  // Axis 0 gathers the row axes that follow it, so that there is something to share out.
  for (std::size_t axis = 1; axis < row_axes; ++axis) {
    if (axis == vector_axis_ || axis == tiles || vector_axis_ == 0 ||
        (!signature_.panels.empty() && axis == SharedAxis()))
      break;
    if (plan_.extent[axis] == 1) continue;
    if (plan_.extent[0] == 1) {
      if (!MovesWithFirst(axis)) continue;
      for (std::size_t k = 0; k < signature_.operands.size(); ++k) Stride(k, 0) = Stride(k, axis);
      std::swap(plan_.extent[0], plan_.extent[axis]);
    } else if (CanMerge(0, axis)) {
      MergeInto(0, axis);
    } else {
      break;
    }
  }
  if (!signature_.elementwise) return GiveRowsBack();
  for (std::size_t axis = 1; axis + 1 < rank_; ++axis)
    if (plan_.extent[axis] != 1) return;
  if (plan_.extent[0] != 1 && !CanMerge(0, vector_axis_)) return;
  for (std::size_t k = 0; k < signature_.operands.size(); ++k)
    if (Stride(k, vector_axis_) != 1) return;
  CutRows();
}

void LaunchAxes::CutRows() {
  const index_t total = plan_.extent[0] * plan_.extent[vector_axis_];
  if (total <= kRow) {
    plan_.extent[vector_axis_] = total;
    plan_.extent[0] = 1;
    return;
  }
  plan_.extent[0] = total / kRow;
  plan_.extent[vector_axis_] = kRow;
  plan_.remainder = total % kRow;
  plan_.remainder_axis = vector_axis_;
  for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
    Stride(k, 0) = kRow;
    plan_.remainder_offset[k] = total - plan_.remainder;
  }
}

}  // namespace umbra::runtime

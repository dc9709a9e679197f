#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "runtime/cpu_info.h"
#include "runtime/launch.h"
#include "runtime/panels.h"
#include "runtime/positions.h"
#include "runtime/rows_together.h"
#include "runtime/turned_lines.h"
#include "umbra/error.h"
#include "umbra/prelude/memory.h"

namespace umbra::runtime {

namespace {

constexpr index_t kRow = 16384;  // elements of a row when a dense elementwise kernel is cut anew
// Work of one thread, in additions, below which another one costs more than it brings though it is awake.
constexpr double kGrain = 98304;
// Work of a piece, beside which taking the next one is nothing, and how many make the shares of threads even enough.
constexpr double kPiece = 1048576;
constexpr int kMostPieces = 16;
// Stores go past the caches where operands and results together take the last-level cache, as results would then not stay in it;
// with several threads this many times the processors' share of it, as these write into it faster than memory takes what goes past.
constexpr double kPastCachesOfThreads = 1.5;
// So few rows, or packets of columns, are each cut into blocks for threads to share, if one has this many elements; the
// least elements of a block, and about the most blocks of a row. Results depend on these.
constexpr index_t kColumns = 16, kFewPacketsOfRow = 64;
constexpr double kLeastSplit = 131072, kLeastBlock = 65536, kMostBlocks = 64;
// Elements of a row, or of the columns that a kernel walks at once, about, that no second-level cache keeps to be read again.
constexpr double kLongMoments = 524288;
constexpr index_t kColumnsAtOnce = 1024;
constexpr index_t kColumnGranule = 96;     // whole cache lines of results of 2 bytes and more, and whole tiles of products
constexpr index_t kBlockMultiple = 1024;  // along packets: more than any step of a loop
// Rows of any tile of transposed operands and of any block of them (compiler/codegen/cpu/transposed.cc), and how many
// blocks make the shares of threads even enough.
constexpr index_t kRowsOfTile = 16, kRowsOfBlock = 128, kManyBlocks = 4;
// Of rows that share copied columns: rows of a piece, for which it hardly matters that each piece copies them, and columns that
// shares are multiples of, where all rows are one piece.
constexpr index_t kRowsOfPiece = 512, kColumnsOfShare = 32;
// Of a second cache: what copies of the columns of a tile may take, and what columns that are read where they lie may, with as
// many rows as that.
constexpr index_t kPartForPanels = 4, kPartInPlace = 2;
// Else: a processor that is read so many rows of memory along, tile after tile, brings each before it is asked for; of many
// more it foresees none. Of the sums of all tiles, which wait meanwhile, such a part of a second cache.
constexpr index_t kStepsInPlace = 32, kPartForSums = 4;
constexpr index_t kMostShares = 64;  // of a thread, of tiles that lie along one axis
constexpr index_t kEvenShares = 8;   // so many units for each thread make shares even enough

// At least one for each of the threads that share out so much work, so that each has its place in memory from call to
// call as long as there is no more of it.
int Pieces(double work, int threads, index_t units) {
  const double pieces = std::clamp(work / kPiece, static_cast<double>(threads), static_cast<double>(threads) * kMostPieces);
  return threads <= 1 ? 1 : static_cast<int>(std::min(pieces, static_cast<double>(units)));
}

class Preparation {
 public:
  Preparation(const KernelStep& step, const std::vector<TensorRef>& buffers,
              const std::vector<index_t>& symbols, int threads, index_t rows)
      : signature_(step.signature), step_(step), buffers_(buffers), symbols_(symbols),
        threads_(threads), whole_(rows < 0) {
    for (const Extent& axis : signature_.axes)
      plan_.extent.push_back(axis.is_static() ? axis.value
                                              : symbols[static_cast<std::size_t>(axis.symbol)]);
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

  LaunchPlan Run() {
    if (!signature_.positional) MergeAxes();
    packs_ = !signature_.panels.empty() && PacksColumns(signature_, plan_.extent[SharedAxis()]);
    const bool split = SplitsRows();
    packs_ = packs_ && !split;
    ranged_axis_ = split ? 0 : RangedAxis();
    Variant variant = ChooseVariant(split);
    packs_ = variant.packed;
    SplitOverThreads(variant.stores == Stores::kJoined);
    plan_.scratch_bytes = signature_.panels.empty() || split ? RowBufferBytes() : PanelsAndSumsBytes();
    plan_.prefetch_ahead = PrefetchAhead();
    for (const Number& number : signature_.numbers) {
      if (number.operand >= 0) {
        const Access& access = signature_.operands[static_cast<std::size_t>(number.operand)];
        plan_.extent.push_back(buffers_[static_cast<std::size_t>(access.buffer)]
                                   .stride[static_cast<std::size_t>(number.dim)]);
      } else {
        plan_.extent.push_back(number.extent.is_static()
                                   ? number.extent.value
                                   : symbols_[static_cast<std::size_t>(number.extent.symbol)]);
      }
    }
    for (const int axis : signature_.ranged) {
      if (plan_.axis == static_cast<std::size_t>(axis)) plan_.from = plan_.extent.size();
      plan_.extent.push_back(0);
    }
    // Extents alone are the same for all lanes, in any form.
    variant.wide_index = signature_.positional && !signature_.positions.empty() && !PositionsStayWithin(kIndexLimit, signature_.positions, rank_, plan_.extent);
    plan_.function = CodeOf(step_, variant);
    if (split) CutIntoBlocks();
    else if (!signature_.panels.empty()) plan_.extent.push_back(Steps());
    return std::move(plan_);
  }

 private:
  // Of as many rows as a kernel walks at a time, or more: it counts what it reads and writes of a row, too.
  std::size_t RowBufferBytes() const {
    const index_t n = plan_.extent[vector_axis_];
    index_t element = 0;
    for (const DType type : signature_.row_buffers) element += static_cast<index_t>(SizeOf(type));
    return static_cast<std::size_t>(simd::rows_at_once(n * element, RoomOfRows(signature_)) * Padded(n) * element);
  }

  double Work() const {
    double work = signature_.cost;
    for (const index_t extent : plan_.extent) work *= static_cast<double>(extent);
    return work;
  }

  index_t& Stride(std::size_t operand, std::size_t axis) { return plan_.stride[operand * rank_ + axis]; }

  // Does stepping `outer` once equal stepping `inner` through its extent, for every operand?
  bool CanMerge(std::size_t outer, std::size_t inner) {
    for (std::size_t k = 0; k < signature_.operands.size(); ++k)
      if (Stride(k, outer) != Stride(k, inner) * plan_.extent[inner]) return false;
    return true;
  }

  // Does all that moves along the axis move along axis 0, too, by what the kernel takes for an address?
  bool MovesWithFirst(std::size_t axis) {
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const std::vector<int>& dims = signature_.operands[k].dim_of_axis;
      if (Stride(k, axis) != 0 && dims[0] < 0 && !(signature_.elementwise && dims[vector_axis_] >= 0)) return false;
    }
    return true;
  }

  // Moves the extent of `inner` into `outer`.
  void Merge(std::size_t outer, std::size_t inner) {
    for (std::size_t k = 0; k < signature_.operands.size(); ++k)
      Stride(k, outer) = Stride(k, inner);
    plan_.extent[outer] *= plan_.extent[inner];
    plan_.extent[inner] = 1;
  }

  // Rows that a kernel of several phases walks at a time, as its source has it (compiler/codegen/cpu/rows.cc).
  index_t RowsAtOnce() const {
    return simd::rows_at_once(Points(RowAxes(), rank_) * static_cast<index_t>(BytesAlongRow(signature_, buffers_)), RoomOfRows(signature_));
  }

  // They are rows of the innermost row axis, which gets back so many, or fewer, if axis 0 has gathered it.
  void GiveRowsBack() {
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
  void LengthenRows() {
    if (!MayGrow(vector_axis_)) return;
    const std::size_t first = InColumns() || signature_.elementwise ? 1 : RowAxes();
    for (std::size_t axis = vector_axis_; axis-- > 0;) {
      if (plan_.extent[axis] == 1) continue;
      const bool may = axis >= first || (InColumns() && plan_.extent[vector_axis_] < kColumnGranule);
      if (!may || !MayGrow(axis) || !CanMerge(axis, vector_axis_)) return;
      plan_.extent[vector_axis_] *= std::exchange(plan_.extent[axis], 1);
    }
  }

  // The axis along which operands lie that the vector axis lies across: tiles of them are turned. rank_ if there is none.
  std::size_t TileAxis() const {
    for (const Access& access : signature_.operands) {
      const int last = access.LastDim(), dim = access.dim_of_axis[vector_axis_];
      if (!signature_.elementwise || dim < 0 || dim == last) continue;
      for (std::size_t axis = 0; axis < vector_axis_; ++axis)
        if (access.dim_of_axis[axis] == last) return axis;
    }
    return rank_;
  }

  // It gathers the axes before it, so that tiles are whole and follow each other in memory. Axis 0 keeps what threads share.
  void LengthenTiles(std::size_t tiles) {
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

  bool MayGrow(std::size_t axis) const { return !IsBaked(signature_, static_cast<int>(axis)); }

  void MergeAxes() {
    LengthenRows();
    const auto row_axes = static_cast<std::size_t>(signature_.row_axes);
    const std::size_t tiles = TileAxis();
    if (tiles > 0 && tiles < rank_) LengthenTiles(tiles);
    // Axis 0 gathers the row axes that follow it, so that there is something to share out.
    for (std::size_t axis = 1; axis < row_axes; ++axis) {
      if (axis == vector_axis_ || axis == tiles || vector_axis_ == 0 || (!signature_.panels.empty() && axis == SharedAxis())) break;
      if (plan_.extent[axis] == 1) continue;
      if (plan_.extent[0] == 1) {
        if (!MovesWithFirst(axis)) continue;
        for (std::size_t k = 0; k < signature_.operands.size(); ++k) Stride(k, 0) = Stride(k, axis);
        std::swap(plan_.extent[0], plan_.extent[axis]);
      } else if (CanMerge(0, axis)) {
        Merge(0, axis);
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

  void CutRows() {
    const index_t total = plan_.extent[0] * plan_.extent[vector_axis_];
    if (total <= kRow) {
      plan_.extent[vector_axis_] = total;
      plan_.extent[0] = 1;
      return;
    }
    plan_.extent[0] = total / kRow;
    plan_.extent[vector_axis_] = kRow;
    plan_.remainder = total % kRow;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      Stride(k, 0) = kRow;
      plan_.remainder_offset[k] = total - plan_.remainder;
    }
  }

  index_t Points(std::size_t begin, std::size_t end) const {
    index_t points = 1;
    for (std::size_t axis = begin; axis < end; ++axis) points *= plan_.extent[axis];
    return points;
  }
  std::size_t RowAxes() const { return static_cast<std::size_t>(signature_.row_axes); }
  bool InColumns() const { return vector_axis_ < RowAxes(); }
  index_t Columns() const { return InColumns() ? plan_.extent[vector_axis_] : 1; }
  index_t Rows() const { return Points(0, RowAxes()) / std::max<index_t>(1, Columns()); }

  // Are threads to share out the rows themselves? Rows of a group of steps are computed block by block of rows,
  // alike in each. All else that decides is the shape and which axes lie one after the other, never the number of threads.
  bool SplitsRows() const {
    if (!whole_ || signature_.partials.empty()) return false;
    const index_t packets = Rows() * ((Columns() + kColumns - 1) / kColumns);
    const index_t few = Rows() == 1 && signature_.panels.empty() ? kFewPacketsOfRow : kFewRows;
    const double inner = static_cast<double>(Points(RowAxes(), rank_));
    if (signature_.moments && packets > 0 && inner * static_cast<double>(std::min(Columns(), kColumnsAtOnce)) >= kLongMoments) return true;
    return packets > 0 && packets <= few && inner * static_cast<double>(Columns()) >= kLeastSplit;
  }

  void CutIntoBlocks() {
    const double inner = static_cast<double>(Points(RowAxes(), rank_)), columns = static_cast<double>(Columns());
    double most = inner / kMostBlocks;
    if (signature_.moments) most = std::min(most, kLongMoments / 2 / std::min(columns, static_cast<double>(kColumnsAtOnce)));
    const double points = std::max(kLeastBlock / columns, most);
    index_t blocks = 1;
    std::vector<index_t> lengths;
    for (const int axis : CutAxes(signature_)) {
      const auto cut = static_cast<std::size_t>(axis);
      const double within = static_cast<double>(Points(cut + 1, rank_));
      index_t length = std::max<index_t>(1, static_cast<index_t>(points / within));
      if (cut == vector_axis_) length = (length + kBlockMultiple - 1) / kBlockMultiple * kBlockMultiple;
      length = std::min(length, plan_.extent[cut]);
      lengths.push_back(length);
      blocks *= (plan_.extent[cut] + length - 1) / length;
    }
    plan_.phases = signature_.phases;
    plan_.phase = plan_.extent.size();
    plan_.units = Rows() * blocks;
    plan_.together = plan_.phases == 1 ? plan_.units : blocks;
    const double share = static_cast<double>(plan_.together) / static_cast<double>(plan_.units);
    plan_.parts = static_cast<int>(std::min<index_t>(UsefulThreads(plan_.work * share, threads_), plan_.together));
    plan_.pieces = Pieces(plan_.work * share, plan_.parts, plan_.together);
    const std::size_t found = static_cast<std::size_t>(Padded(plan_.units * Columns()));
    for (const DType type : signature_.partials) plan_.scratch_bytes += found * SizeOf(type);
    plan_.extent.push_back(0);
    plan_.extent.push_back(blocks);
    plan_.extent.insert(plan_.extent.end(), lengths.begin(), lengths.end());
  }

  // Memory that was cut into rows anew moves along axis 0 as well.
  bool Moves(std::size_t k, std::size_t axis) const {
    return signature_.operands[k].dim_of_axis[axis] >= 0 || plan_.remainder_offset[k] != 0;
  }

  // Of the operand: what the kernel reads or writes of it, at most.
  double BytesTouched(std::size_t k) const {
    const TensorRef& tensor = buffers_[static_cast<std::size_t>(signature_.operands[k].buffer)];
    double elements = 1;
    if (signature_.operands[k].gathered) {  // a point reads one element, or none
      for (const index_t extent : tensor.shape) elements *= static_cast<double>(extent);
      elements = std::min(elements, static_cast<double>(Points(0, rank_)));
    }
    for (std::size_t axis = 0; axis < rank_; ++axis)
      if (Moves(k, axis)) elements *= static_cast<double>(plan_.extent[axis]);
    return elements * static_cast<double>(SizeOf(tensor.dtype));
  }

  // The row axis whose rows are computed together, of a kernel that has panels.
  std::size_t SharedAxis() const { return RowAxes() - 2; }

  // Of the innermost axis, for how many indices all rows of a tile's columns are summed before the next.
  index_t Steps() const {
    const index_t all = std::max<index_t>(1, plan_.extent[RowAxes()]);
    const auto cache = static_cast<index_t>(SecondLevelCacheBytes());
    index_t most = kStepsInPlace;
    if (packs_) {
      most = std::max(cache / kPartForPanels / (static_cast<index_t>(signature_.panels.size()) * kPanelBytes), kLeastSteps);
    } else {
      double bytes = 0;
      for (const int operand : signature_.panels)
        if (operand >= 0) bytes += BytesTouched(static_cast<std::size_t>(operand));
      if (bytes <= static_cast<double>(cache / kPartInPlace)) return all;
    }
    const index_t parts = (all + most - 1) / most, steps = (all + parts - 1) / parts;
    return std::min(all, (steps + kRowsOfTile - 1) / kRowsOfTile * kRowsOfTile);
  }

  std::size_t PanelsAndSumsBytes() const {
    const index_t steps = Steps(), rows = plan_.extent[SharedAxis()];
    const index_t panels = packs_ ? static_cast<index_t>(signature_.panels.size()) * steps * kPanelBytes : 0;
    const index_t sums = signature_.sums * rows * (packs_ ? kPanelBytes : Padded(plan_.extent[vector_axis_]) * 8);
    return static_cast<std::size_t>(panels + (steps < plan_.extent[RowAxes()] ? sums : 0));
  }

  // Does the kernel take short rows of a packet's lanes together (compiler/codegen/cpu/short_rows.cc)?
  bool InShortRows() const {
    if (!InColumns() || rank_ != RowAxes() + 1 || !IsBaked(signature_, signature_.row_axes)) return false;
    return std::any_of(signature_.operands.begin(), signature_.operands.end(), [this](const Access& access) {
      const TensorRef& tensor = buffers_[static_cast<std::size_t>(access.buffer)];
      return !access.gathered && tensor.dtype != DType::kBool && access.dim_of_axis[vector_axis_] >= 0 &&
             access.dim_of_axis[RowAxes()] == access.LastDim();
    });
  }

  // Do all of its rows begin with a line, if the first one does? Short rows that follow each other without gaps are one.
  bool RowsAligned(std::size_t k) {
    const bool one = in_short_rows_ && Stride(k, RowAxes()) == 1;
    if (one && Stride(k, vector_axis_) != plan_.extent[RowAxes()]) return false;
    const auto size = static_cast<index_t>(SizeOf(buffers_[static_cast<std::size_t>(signature_.operands[k].buffer)].dtype));
    for (std::size_t axis = 0; axis < rank_; ++axis)
      if (axis != vector_axis_ && !(one && axis == RowAxes()) && plan_.extent[axis] != 1 && Moves(k, axis) && Stride(k, axis) * size % 64 != 0) return false;
    return true;
  }

  // Do tiles take turns at rows that lie alike in their pages? What goes past the caches so takes several times as long where a
  // processor puts lines together from parts of them.
  bool TakesTurnsAtPages() {
    constexpr index_t kPage = 4096;
    const std::size_t tiles = TileAxis();
    if (in_short_rows_ || tiles >= rank_ || plan_.extent[tiles] == 1 || CpuRuns("avx512")) return false;
    const RowsOfTiles rows(signature_, tiles, vector_axis_, buffers_);
    if (!rows.TakeTurns() || rows.MayTurnLines()) return false;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const Access& access = signature_.operands[k];
      const index_t bytes = Stride(k, tiles) * static_cast<index_t>(SizeOf(buffers_[static_cast<std::size_t>(access.buffer)].dtype));
      if (bytes != 0 && bytes % kPage == 0 && access.dim_of_axis[vector_axis_] > access.dim_of_axis[tiles]) return true;
    }
    return false;
  }

  Variant ChooseVariant(bool split) {
    Variant variant;
    variant.split = split;
    in_short_rows_ = InShortRows();
    double touched = 0;
    bool aligned = true, joins = plan_.remainder == 0 && whole_ && !GoesAcross() && ranged_axis_ == 0 && signature_.panels.empty(), in_place = false, packets = false;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const Access& access = signature_.operands[k];
      const TensorRef& tensor = buffers_[static_cast<std::size_t>(access.buffer)];
      const int dim = access.dim_of_axis[vector_axis_];
      const bool last = dim >= 0 && dim == access.LastDim();
      if (last && Stride(k, vector_axis_) != 1 && plan_.extent[vector_axis_] != 1)
        variant.strided = true;
      // Rows of a transposed operand, which tiles are loaded from.
      for (std::size_t axis = 0; dim >= 0 && !last && axis < vector_axis_; ++axis) {
        if (access.dim_of_axis[axis] != access.LastDim() || plan_.extent[axis] == 1) continue;
        if (Stride(k, axis) != 1) variant.strided = true;
        if (axis == 0) in_tiles_ = signature_.elementwise;
      }
      if (access.gathered && !tensor.shape.empty() && tensor.stride.back() != 1 && tensor.shape.back() != 1)
        variant.strided = true;
      touched += BytesTouched(k);
      if (!access.store) continue;
      // What is one number a row is not stored in packets.
      packets = packets || dim >= 0;
      const bool of_row = last || (in_short_rows_ && access.dim_of_axis[RowAxes()] >= 0 && access.dim_of_axis[RowAxes()] == access.LastDim());
      const bool begins = of_row && reinterpret_cast<std::uintptr_t>(tensor.data) % 64 == 0;
      aligned = aligned && (dim < 0 || (begins && RowsAligned(k)));
      joins = joins && (dim < 0 || (begins && Joins(k)));
      for (const Access& other : signature_.operands)
        in_place = in_place || (!other.store &&
                                tensor.data != nullptr &&
                                buffers_[static_cast<std::size_t>(other.buffer)].data == tensor.data);
    }
    // What is read back at once (in place) is better left to the caches.
    const bool alone = UsefulThreads(Work(), threads_) == 1;
    const bool passes = packets && !in_place && !variant.strided && !split && (vector_axis_ > 0 || in_short_rows_) &&
                        touched >= std::max(static_cast<double>(LastLevelCacheBytes()), alone ? 0 : kPastCachesOfThreads * static_cast<double>(LastLevelCacheShare())) &&
                        !TakesTurnsAtPages();
    variant.packed = packs_ && !variant.strided;
    variant.few_columns = !variant.strided && HasFewColumns();
    if (variant.few_columns) return variant;
    if (signature_.elementwise && TileAxis() < rank_) joins = MayJoinTiles();
    if (passes && aligned && (!InColumns() || in_short_rows_ || variant.packed)) variant.stores = Stores::kStreamed;
    else if (passes && joins) variant.stores = Stores::kJoined;
    return variant;
  }

  // Does the kernel take several steps of few columns at a time, and do these follow each other in all that they move?
  bool HasFewColumns() {
    const std::size_t step = rank_ - 1;
    const index_t columns = plan_.extent[vector_axis_];
    if (!signature_.few_columns || columns >= kFewColumns || plan_.extent[step] < kFewColumns) return false;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k)
      if (signature_.operands[k].dim_of_axis[step] >= 0 && Stride(k, step) != columns) return false;
    return true;
  }

  // Are rows of tiles, which begin anywhere, put together to lines? A packet has to be one.
  bool MayJoinTiles() const {
    return CpuRuns("avx512") && std::all_of(signature_.operands.begin(), signature_.operands.end(), [this](const Access& access) {
             return !access.store || SizeOf(buffers_[static_cast<std::size_t>(access.buffer)].dtype) >= 4;
           });
  }

  // Rows read the same, or as much each: few of them are better cut across than shared out.
  bool GoesAcross() const {
    return InColumns() && vector_axis_ > 0 && !signature_.positional && (PacksRows() ? plan_.extent[SharedAxis()] <= kRowsOfPiece : plan_.extent[0] <= kFewRows) &&
           plan_.extent[vector_axis_] >= kColumnGranule * threads_;
  }

  // What shares of the axis are multiples of, if it is not the first: whole steps of any loop, whole tiles.
  index_t GranuleOf(std::size_t axis) const {
    if (axis == vector_axis_) return InColumns() ? kColumnGranule : kBlockMultiple;
    return axis == TileAxis() ? kRowsOfTile : 1;
  }

  bool SharesEvenly(index_t units, index_t threads) const { return units % threads == 0 || units >= kEvenShares * threads; }

  // Where axis 0 has too few indices for even shares: the first axis that has more, of those that a kernel takes a range of, or
  // where operands can be told to begin elsewhere; 0 if there is none.
  std::size_t RangedAxis() const {
    const index_t threads = UsefulThreads(Work(), threads_);
    if (!whole_ || vector_axis_ == 0 || plan_.remainder != 0 || SharesEvenly(plan_.extent[0], threads)) return 0;
    std::vector<int> axes = signature_.ranged;
    if (signature_.elementwise && !signature_.positional && TileAxis() == rank_) axes.push_back(signature_.vector_axis);
    std::size_t best = 0;
    index_t most = plan_.extent[0];
    for (const int candidate : axes) {
      const auto axis = static_cast<std::size_t>(candidate);
      const index_t units = plan_.extent[axis] / GranuleOf(axis);
      if (units <= most) continue;
      best = axis;
      most = units;
      if (SharesEvenly(units, threads)) break;
    }
    return best;
  }

  // Does each row of an operand that is stored begin where the one before it ends, in the order in which the kernel walks
  // them? What a kernel of columns stores along the axes that it reduces it does not walk so.
  bool Joins(std::size_t k) {
    for (std::size_t axis = vector_axis_ + 1; axis < rank_; ++axis)
      if (Moves(k, axis)) return false;
    index_t step = 1;
    for (std::size_t axis = vector_axis_ + 1; axis-- > 0; step *= plan_.extent[axis])
      if (plan_.extent[axis] != 1 && Stride(k, axis) != step) return false;
    return true;
  }

  // Steps of axis 0 after which all that is stored in packets has come to the end of a line.
  index_t RowsToLines() {
    index_t rows = 1;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const Access& access = signature_.operands[k];
      if (!access.store || access.dim_of_axis[vector_axis_] < 0) continue;
      const index_t line = 64 / static_cast<index_t>(SizeOf(buffers_[static_cast<std::size_t>(access.buffer)].dtype));
      rows = std::max(rows, line / std::gcd(line, Stride(k, 0)));  // powers of two
    }
    return rows;
  }

  // Rows that a thread takes at a time where they are walked in tiles: whole blocks, or tiles, if there are enough.
  index_t RowsTogether() const {
    const index_t share = plan_.extent[0] / threads_;
    return share >= kManyBlocks * kRowsOfBlock ? kRowsOfBlock : share >= kRowsOfTile ? kRowsOfTile : 1;
  }

  // Columns of few rows that lie in memory are walked along it, as many as leave their sums in a cache.
  int PiecesOfColumns() const {
    const double sums = static_cast<double>(PanelsAndSumsBytes()), room = static_cast<double>(SecondLevelCacheBytes() / kPartForSums);
    const double rounds = std::ceil(sums / room / plan_.parts);
    return static_cast<int>(std::min(static_cast<double>(Units(plan_)), std::max(1.0, rounds) * plan_.parts));
  }

  // Are rows of memory walked along, a part of each by each thread? Long parts, then.
  bool WalksColumns() const { return InColumns() && plan_.axis == vector_axis_ && !in_short_rows_; }

  // Does each share of rows copy what they share?
  bool PacksRows() const { return packs_ && (SharedAxis() == 0 || plan_.extent[0] < threads_); }

  // Rows of a piece are threads' shares, or fewer; so many of them, or as many columns of each, that each thread has its own.
  void ShareOutRows(bool across) {
    if (!across) plan_.axis = SharedAxis();
    const index_t threads = UsefulThreads(plan_.work, threads_), share = (plan_.extent[plan_.axis] + threads - 1) / threads;
    plan_.granule = across ? kColumnsOfShare : std::clamp((share + kRowsOfTile - 1) / kRowsOfTile * kRowsOfTile, kRowsOfTile, kRowsOfPiece);
    plan_.parts = static_cast<int>(std::min(threads, Units(plan_)));
    plan_.pieces = across ? plan_.parts : static_cast<int>(Units(plan_));
  }

  void SplitOverThreads(bool joined) {
    plan_.work = Work();
    const bool across = GoesAcross();
    if (across) plan_.axis = vector_axis_;
    if (PacksRows()) return ShareOutRows(across);
    if (!across) plan_.axis = ranged_axis_;
    plan_.granule = plan_.axis > 0 ? GranuleOf(plan_.axis) : vector_axis_ == 0 ? 16 : std::max(joined ? RowsToLines() : 1, in_tiles_ ? RowsTogether() : 1);
    plan_.parts = static_cast<int>(std::min<index_t>(UsefulThreads(plan_.work, threads_), Units(plan_)));
    if (across && !signature_.panels.empty()) plan_.pieces = PiecesOfColumns();
    else if (WalksColumns()) plan_.pieces = plan_.parts;
    else plan_.pieces = Pieces(plan_.work, plan_.parts, Units(plan_));
  }

  const KernelSignature& signature_;
  const KernelStep& step_;
  const std::vector<TensorRef>& buffers_;
  const std::vector<index_t>& symbols_;
  int threads_;
  bool whole_;  // or a block of rows?
  bool in_tiles_ = false;  // do operands lie across axis 0?
  bool in_short_rows_ = false;
  bool packs_ = false;  // are columns that rows share copied?
  std::size_t ranged_axis_ = 0;
  LaunchPlan plan_;
  std::size_t rank_ = 0, vector_axis_ = 0;
};

}  // namespace

int UsefulThreads(double work, int threads) {
  return static_cast<int>(std::max(1.0, std::min(work / kGrain, static_cast<double>(threads))));
}

umbra_kernel_fn CodeOf(const KernelStep& step, const Variant& variant) {
  auto& slot = step.slots->function[static_cast<std::size_t>(variant.index())];
  if (const umbra_kernel_fn function = slot.load(std::memory_order_acquire)) return function;
  const KernelCode code = step.code(variant);
  Ensure(code.function != nullptr, "a code provider gave no code for ", step.signature.name);
  const std::lock_guard lock(step.slots->mutex);
  step.slots->owners.push_back(code.owner);
  slot.store(code.function, std::memory_order_release);
  return code.function;
}

LaunchPlan PrepareLaunch(const KernelStep& step, const std::vector<TensorRef>& buffers,
                         const std::vector<index_t>& symbols, int threads, index_t rows) {
  return Preparation(step, buffers, symbols, threads, rows).Run();
}

}  // namespace umbra::runtime

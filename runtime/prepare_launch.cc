#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "runtime/cpu_info.h"
#include "runtime/launch.h"
#include "runtime/launch_axes.h"
#include "runtime/panels.h"
#include "runtime/positions.h"
#include "runtime/rows_together.h"
#include "runtime/turned_lines.h"
#include "umbra/error.h"
#include "umbra/prelude/memory.h"

namespace umbra::runtime {

namespace {

// Work of a piece, beside which taking the next one is nothing, and how many make the shares of threads even enough.
constexpr double kPiece = 1048576;
constexpr int kMostPieces = 16;
// Stores go past the caches where operands and results together take the last-level cache, as results would then not
// stay in it; with several threads this many times the processors' share of it, as these write into it faster than
// memory takes what goes past.
constexpr double kPastCachesOfThreads = 1.5;
// Of what is touched, the part that results are more than where CachesOfMostlyResults counts.
constexpr double kMostlyResults = 2.0 / 3;
// So few rows, or packets of columns, are each cut into blocks for threads to share, if one has this many elements; the
// least elements of a block, and about the most blocks of a row. Results depend on these.
constexpr index_t kColumns = 16, kFewPacketsOfRow = 64;
constexpr double kLeastSplit = 131072, kLeastBlock = 65536, kMostBlocks = 64;
// Elements of a row, or of the columns that a kernel walks at once, about, that no second-level cache keeps to be read
// again.
constexpr double kLongMoments = 524288;
constexpr index_t kColumnsAtOnce = 1024;
constexpr index_t kBlockMultiple = 1024;  // along packets: more than any step of a loop
// Rows of any tile of transposed operands and of any block of them (compiler/codegen/cpu/transposed.cc), and how many
// blocks make the shares of threads even enough.
constexpr index_t kRowsOfTile = 16, kRowsOfBlock = 128, kManyBlocks = 4;
// Of rows that share copied columns: rows of a piece, for which it hardly matters that each piece copies them, and
// columns that shares are multiples of, where all rows are one piece: of whole tiles for any target.
constexpr index_t kRowsOfPiece = 512, kColumnsOfShare = 48;
// Of a second cache: what copies of the columns of a tile may take, and what columns that are read where they lie may,
// with as many rows as that.
constexpr index_t kPartForPanels = 4, kPartInPlace = 2;
// What is kept of a block of columns, and what columns of a block are multiples of: no packet has more.
constexpr index_t kPartForColumns = 8, kFewestKept = 64, kBlockOfColumns = 32768, kLongRun = 128;
// Else: a processor that is read so many rows of memory along, tile after tile, brings each before it is asked for; of
// many more it foresees none. Of the sums of all tiles, which wait meanwhile, such a part of a second cache.
constexpr index_t kStepsInPlace = 32, kPartForSums = 4;
constexpr index_t kEvenShares = 8;  // so many units for each thread make shares even enough

// At least one for each of the threads that share out so much work, so that each has its place in memory from call to
// call as long as there is no more of it.
int Pieces(double work, int threads, index_t units) {
  const double pieces =
      std::clamp(work / kPiece, static_cast<double>(threads), static_cast<double>(threads) * kMostPieces);
  return threads <= 1 ? 1 : static_cast<int>(std::min(pieces, static_cast<double>(units)));
}

class Preparation : private LaunchAxes {
 public:
  Preparation(const KernelStep& step, const std::vector<TensorRef>& buffers, const std::vector<index_t>& symbols,
              int threads, index_t rows, std::string_view target)
      : LaunchAxes(step.signature, buffers, symbols, threads, rows),
        step_(step),
        symbols_(symbols),
        whole_(rows < 0),
        packets_are_lines_(target.empty() ? CpuRuns("avx512") : target == "avx512") {}

  LaunchPlan Run() {
    if (!signature_.positional) Merge();
    packs_ = !signature_.panels.empty() && PacksColumns(signature_, plan_.extent[SharedAxis()]);
    const bool split = SplitsRows();
    packs_ = packs_ && !split;
    by_bands_ = packs_ &&
                MayGoByBands(signature_, plan_.extent[RowAxes()], plan_.extent[vector_axis_], packets_are_lines_) &&
                ReadsNear();
    packs_ = packs_ && !by_bands_;
    ranged_axis_ = split ? 0 : RangedAxis();
    Variant variant = ChooseVariant(split);
    packs_ = variant.packed && !signature_.panels.empty();
    SplitOverThreads(variant);
    const bool keeps_columns = variant.packed && signature_.panels.empty();
    if (keeps_columns) plan_.scratch_bytes = static_cast<std::size_t>(column_bytes_ * columns_kept_);
    else plan_.scratch_bytes = signature_.panels.empty() || split ? RowBufferBytes() : PanelsAndSumsBytes();
    plan_.prefetch_ahead = PrefetchAhead();
    for (const Number& number : signature_.numbers) {
      if (number.operand >= 0) {
        const Access& access = signature_.operands[static_cast<std::size_t>(number.operand)];
        plan_.extent.push_back(
            buffers_[static_cast<std::size_t>(access.buffer)].stride[static_cast<std::size_t>(number.dim)]);
      } else {
        plan_.extent.push_back(number.extent.is_static() ? number.extent.value
                                                         : symbols_[static_cast<std::size_t>(number.extent.symbol)]);
      }
    }
    for (const int axis : signature_.ranged) {
      if (plan_.axis == static_cast<std::size_t>(axis)) plan_.from = plan_.extent.size();
      plan_.extent.push_back(0);
    }
    // Extents alone are the same for all lanes, in any form.
    variant.wide_index = signature_.positional && !signature_.positions.empty() &&
                         !PositionsStayWithin(kIndexLimit, signature_.positions, rank_, plan_.extent);
    plan_.function = CodeOf(step_, variant);
    if (split) CutIntoBlocks();
    else if (keeps_columns) plan_.extent.push_back(columns_kept_);
    else if (!signature_.panels.empty()) plan_.extent.insert(plan_.extent.end(), {Steps(), by_bands_ ? 1 : 0});
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

  // Are threads to share out the rows themselves? Rows of a group of steps are computed block by block of rows,
  // alike in each. All else that decides is the shape and which axes lie one after the other, never the number of
  // threads.
  bool SplitsRows() const {
    if (!whole_ || signature_.partials.empty()) return false;
    const index_t packets = Rows() * ((Columns() + kColumns - 1) / kColumns);
    const index_t few = Rows() == 1 && signature_.panels.empty() ? kFewPacketsOfRow : kFewRows;
    const double inner = static_cast<double>(Points(RowAxes(), rank_));
    if (signature_.moments && packets > 0 &&
        inner * static_cast<double>(std::min(Columns(), kColumnsAtOnce)) >= kLongMoments)
      return true;
    return packets > 0 && packets <= few && inner * static_cast<double>(Columns()) >= kLeastSplit;
  }

  void CutIntoBlocks() {
    const double inner = static_cast<double>(Points(RowAxes(), rank_)), columns = static_cast<double>(Columns());
    double most = inner / kMostBlocks;
    if (signature_.moments)
      most = std::min(most, kLongMoments / 2 / std::min(columns, static_cast<double>(kColumnsAtOnce)));
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

  // Has a second cache room for all columns that rows share?
  bool ReadsNear() const {
    double bytes = 0;
    for (const int operand : signature_.panels)
      if (operand >= 0) bytes += BytesTouched(static_cast<std::size_t>(operand));
    return bytes <= static_cast<double>(static_cast<index_t>(SecondLevelCacheBytes()) / kPartInPlace);
  }

  // Of the innermost axis, for how many indices all rows of a tile's columns are summed before the next.
  index_t Steps() const {
    const index_t all = std::max<index_t>(1, plan_.extent[RowAxes()]);
    const auto cache = static_cast<index_t>(SecondLevelCacheBytes());
    index_t most = kStepsInPlace;
    if (packs_) {
      most = std::max(cache / kPartForPanels / (static_cast<index_t>(signature_.panels.size()) * kPanelBytes),
                      kLeastSteps);
    } else if (ReadsNear()) {
      return all;
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

  // Do its elements follow each other, from dimension `first` on?
  static bool IsDense(const TensorRef& tensor, int first) {
    index_t step = 1;
    for (std::size_t d = tensor.shape.size(); d-- > static_cast<std::size_t>(first); step *= tensor.shape[d])
      if (tensor.stride[d] != step && tensor.shape[d] != 1) return false;
    return true;
  }

  // Do packets go across what they read, short rows or a batch (compiler/codegen/cpu/short_rows.cc, batches.cc)?
  bool PacketsGoAcross() const {
    if (signature_.goes_across_batch()) return true;
    if (!InColumns() || (rank_ != RowAxes() + 1 && !rows_are_one_) || !IsBaked(signature_, static_cast<int>(rank_) - 1))
      return false;
    return std::any_of(signature_.operands.begin(), signature_.operands.end(), [this](const Access& access) {
      const TensorRef& tensor = buffers_[static_cast<std::size_t>(access.buffer)];
      return !access.gathered && tensor.dtype != DType::kBool && access.dim_of_axis[vector_axis_] >= 0 &&
             FirstOfShortRow(access) <= access.LastDim();
    });
  }

  int FirstOfShortRow(const Access& access) const {
    return runtime::FirstOfShortRow(signature_, access, rows_are_one_);
  }

  // Do all of its rows begin with a line, if the first one does? Short rows that follow each other without gaps are
  // one.
  bool RowsAligned(std::size_t k) {
    const Access& access = signature_.operands[k];
    const bool batch = signature_.goes_across_batch();  // which is dense
    const std::size_t first = batch ? vector_axis_ : RowAxes();
    const int row = FirstOfShortRow(access);
    const auto in_row = [&](std::size_t axis) {
      const int dim = access.dim_of_axis[axis];
      return batch ? dim > access.dim_of_axis[vector_axis_] : across_rows_ && dim >= row;
    };
    index_t elements = 1;
    for (std::size_t axis = RowAxes(); axis < rank_; ++axis)
      if (in_row(axis)) elements *= plan_.extent[axis];
    if (!batch && across_rows_ && row <= access.LastDim() && Stride(k, vector_axis_) != elements) return false;
    const auto size =
        static_cast<index_t>(SizeOf(buffers_[static_cast<std::size_t>(signature_.operands[k].buffer)].dtype));
    for (std::size_t axis = 0; axis < rank_; ++axis)
      if (axis != vector_axis_ && !(axis >= first && in_row(axis)) && plan_.extent[axis] != 1 && Moves(k, axis) &&
          Stride(k, axis) * size % 64 != 0)
        return false;
    return true;
  }

  // Do tiles take turns at rows that lie alike in their pages? What goes past the caches so takes several times as long
  // where a processor puts lines together from parts of them.
  bool TakesTurnsAtPages() {
    constexpr index_t kPage = 4096;
    const std::size_t tiles = TileAxis();
    if (across_rows_ || tiles >= rank_ || plan_.extent[tiles] == 1 || packets_are_lines_) return false;
    const RowsOfTiles rows(signature_, tiles, vector_axis_, buffers_);
    if (!rows.TakeTurns() || rows.MayTurnLines()) return false;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const Access& access = signature_.operands[k];
      const index_t bytes =
          Stride(k, tiles) * static_cast<index_t>(SizeOf(buffers_[static_cast<std::size_t>(access.buffer)].dtype));
      if (bytes != 0 && bytes % kPage == 0 && access.dim_of_axis[vector_axis_] > access.dim_of_axis[tiles]) return true;
    }
    return false;
  }

  Variant ChooseVariant(bool split) {
    Variant variant;
    variant.split = split;
    rows_are_one_ = RowsAreOne(signature_);
    across_rows_ = PacketsGoAcross();
    double touched = 0, written = 0;
    bool aligned = true,
         joins = plan_.remainder == 0 && whole_ && !signature_.goes_across_batch() && !GoesAcross() &&
                 ranged_axis_ == 0 && signature_.panels.empty(),
         in_place = false, packets = false;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const Access& access = signature_.operands[k];
      const TensorRef& tensor = buffers_[static_cast<std::size_t>(access.buffer)];
      const int dim = access.dim_of_axis[vector_axis_];
      const bool last = dim >= 0 && dim == access.LastDim();
      if (last && Stride(k, vector_axis_) != 1 && plan_.extent[vector_axis_] != 1) variant.strided = true;
      if (access.dense && !IsDense(tensor, FirstOfDense(signature_, access))) variant.strided = true;
      // Rows of a transposed operand, which tiles are loaded from.
      for (std::size_t axis = 0; dim >= 0 && !last && axis < vector_axis_; ++axis) {
        if (access.dim_of_axis[axis] != access.LastDim() || plan_.extent[axis] == 1) continue;
        if (Stride(k, axis) != 1) variant.strided = true;
        if (axis == 0) in_tiles_ = signature_.elementwise;
      }
      if (access.gathered && !tensor.shape.empty() && tensor.stride.back() != 1 && tensor.shape.back() != 1)
        variant.strided = true;
      const double bytes = BytesTouched(k);
      touched += bytes;
      if (!access.store) continue;
      written += bytes;
      // What is one number a row is not stored in packets.
      packets = packets || dim >= 0;
      const bool of_row =
          last || signature_.goes_across_batch() || (across_rows_ && FirstOfShortRow(access) <= access.LastDim());
      const bool begins = of_row && reinterpret_cast<std::uintptr_t>(tensor.data) % 64 == 0;
      aligned = aligned && (dim < 0 || (begins && RowsAligned(k)));
      joins = joins && (dim < 0 || (begins && Joins(k)));
      for (const Access& other : signature_.operands)
        in_place = in_place || (!other.store && tensor.data != nullptr &&
                                buffers_[static_cast<std::size_t>(other.buffer)].data == tensor.data);
    }
    const bool alone = UsefulThreads(Work(), threads_) == 1;
    const double room = std::max(static_cast<double>(LastLevelCacheBytes()),
                                 alone ? 0 : kPastCachesOfThreads * static_cast<double>(LastLevelCacheShare()));
    const bool large =
        touched >=
        room * (signature_.panels.empty() && written > kMostlyResults * touched ? CachesOfMostlyResults() : 1);
    variant.few_columns = !variant.strided && HasFewColumns();
    if (variant.few_columns) return variant;
    columns_kept_ = large && !split && !across_rows_ && !variant.strided ? ColumnsKept() : 0;
    const bool by_columns = InColumns() && !across_rows_ && (columns_kept_ > 0 || StoresElements());
    // What is read back at once (in place) is better left to the caches.
    const bool passes = large && packets && !in_place && !variant.strided &&
                        (by_columns || (!split && (vector_axis_ > 0 || across_rows_))) && !TakesTurnsAtPages();
    variant.packed = (packs_ && !variant.strided) || columns_kept_ > 0;
    if (signature_.elementwise && TileAxis() < rank_) joins = MayJoinTiles();
    const bool tiles = !variant.strided && (packs_ || by_bands_);
    if (passes && aligned && (!InColumns() || across_rows_ || by_columns || tiles)) variant.stores = Stores::kStreamed;
    else if (passes && !split &&
             (columns_kept_ > 0 ? plan_.extent[vector_axis_] >= kFewestKept && MayJoinTiles() : joins))
      variant.stores = Stores::kJoined;
    // Where tiles write past the caches, it matters little in which order, and copies are read with less ado.
    if (by_bands_ && variant.stores == Stores::kStreamed) by_bands_ = false, variant.packed = true;
    // Where results go into the caches, they are as good a place for what is kept, and what is read stays there, too.
    if (columns_kept_ > 0 && variant.stores == Stores::kCached) variant.packed = false;
    return variant;
  }

  // Is an element stored for each step of a column?
  bool StoresElements() const {
    for (const Access& access : signature_.operands)
      if (access.store && access.dim_of_axis[rank_ - 1] >= 0) return true;
    return false;
  }

  // Columns of a block of which a kernel keeps what its phases go through, so that a second-level cache, or a first
  // one, has it all; 0 where there is no room for a few columns.
  index_t ColumnsKept() {
    if (signature_.column_buffers.empty() || !packets_are_lines_) return 0;
    for (const DType type : signature_.column_buffers) column_bytes_ += static_cast<index_t>(SizeOf(type));
    column_bytes_ *= std::max<index_t>(1, Points(RowAxes(), rank_));
    const index_t cache = static_cast<index_t>(SecondLevelCacheBytes());
    if (kFewestKept * column_bytes_ > cache / 2) return 0;
    const index_t few = kBlockOfColumns / column_bytes_,
                  most = few >= kLongRun ? few : cache / kPartForColumns / column_bytes_;
    if (most < kFewestKept && !StoresElements()) return 0;
    const index_t columns = std::max(most / kFewestKept * kFewestKept, kFewestKept);
    return std::min(columns, Padded(plan_.extent[vector_axis_]));
  }

  // Does the kernel take several steps of few columns at a time, and do these follow each other in all that they move?
  bool HasFewColumns() {
    const std::size_t step = rank_ - 1;
    const index_t columns = plan_.extent[vector_axis_];
    if (!signature_.few_columns) return false;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const Access& access = signature_.operands[k];
      if (access.dim_of_axis[step] < 0) continue;
      const std::size_t size = SizeOf(buffers_[static_cast<std::size_t>(access.buffer)].dtype);
      if (Stride(k, step) != columns || !AreFewColumns(columns, plan_.extent[step], size)) return false;
    }
    return AreFewColumns(columns, plan_.extent[step], 4);
  }

  // Are rows of tiles, or of blocks of columns, which begin anywhere, put together to lines? A packet has to be one.
  bool MayJoinTiles() const {
    for (const Access& access : signature_.operands)
      if (access.store && SizeOf(buffers_[static_cast<std::size_t>(access.buffer)].dtype) < 4) return false;
    return packets_are_lines_;
  }

  // Rows read the same, or as much each: few of them are better cut across than shared out.
  bool GoesAcross() const {
    return InColumns() && vector_axis_ > 0 && !signature_.positional &&
           (PacksRows() ? plan_.extent[SharedAxis()] <= kRowsOfPiece : plan_.extent[0] <= kFewRows) &&
           plan_.extent[vector_axis_] >= kColumnGranule * threads_;
  }

  // What shares of the axis are multiples of, if it is not the first: whole steps of any loop, whole tiles.
  index_t GranuleOf(std::size_t axis) const {
    if (axis == vector_axis_) return InColumns() ? kColumnGranule : kBlockMultiple;
    return axis == TileAxis() ? kRowsOfTile : 1;
  }

  bool SharesEvenly(index_t units, index_t threads) const {
    return units % threads == 0 || units >= kEvenShares * threads;
  }

  // Where axis 0 has too few indices for even shares: the first axis that has more, of those that a kernel takes a
  // range of, or where operands can be told to begin elsewhere; 0 if there is none.
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

  // Does each row of an operand that is stored begin where the one before it ends, in the order in which the kernel
  // walks them? What a kernel of columns stores along the axes that it reduces it does not walk so.
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
    const double sums = static_cast<double>(PanelsAndSumsBytes()),
                 room = static_cast<double>(SecondLevelCacheBytes() / kPartForSums);
    const double rounds = std::ceil(sums / room / plan_.parts);
    return static_cast<int>(std::min(static_cast<double>(Units(plan_)), std::max(1.0, rounds) * plan_.parts));
  }

  // Are rows of memory walked along, a part of each by each thread? Long parts, then.
  bool WalksColumns() const { return InColumns() && plan_.axis == vector_axis_ && !across_rows_; }

  // Does each share of rows copy what they share?
  bool PacksRows() const { return packs_ && (SharedAxis() == 0 || plan_.extent[0] < threads_); }

  // Rows of a piece are threads' shares, or fewer; so many of them, or as many columns of each, that each thread has
  // its own.
  void ShareOutRows(bool across) {
    if (!across) plan_.axis = SharedAxis();
    const index_t threads = UsefulThreads(plan_.work, threads_),
                  share = (plan_.extent[plan_.axis] + threads - 1) / threads;
    plan_.granule = across
                        ? kColumnsOfShare
                        : std::clamp((share + kRowsOfTile - 1) / kRowsOfTile * kRowsOfTile, kRowsOfTile, kRowsOfPiece);
    plan_.parts = static_cast<int>(std::min(threads, Units(plan_)));
    plan_.pieces = across ? plan_.parts : static_cast<int>(Units(plan_));
  }

  void SplitOverThreads(const Variant& variant) {
    plan_.work = Work();
    const bool across = GoesAcross();
    if (across) plan_.axis = vector_axis_;
    if (PacksRows()) return ShareOutRows(across);
    if (!across) plan_.axis = ranged_axis_;
    const bool joined = variant.stores == Stores::kJoined;
    plan_.granule = plan_.axis > 0      ? GranuleOf(plan_.axis)
                    : vector_axis_ == 0 ? (variant.few_columns ? plan_.extent[0] : 16)  // steps of all of few columns
                                        : std::max(joined ? RowsToLines() : 1, in_tiles_ ? RowsTogether() : 1);
    plan_.parts = static_cast<int>(std::min<index_t>(UsefulThreads(plan_.work, threads_), Units(plan_)));
    if (across && !signature_.panels.empty()) plan_.pieces = PiecesOfColumns();
    else if (WalksColumns()) plan_.pieces = plan_.parts;
    else plan_.pieces = Pieces(plan_.work, plan_.parts, Units(plan_));
  }

  const KernelStep& step_;
  const std::vector<index_t>& symbols_;
  bool whole_;  // or a block of rows?
  bool packets_are_lines_;  // of the cache, on this CPU or for the target that is known
  bool in_tiles_ = false;  // do operands lie across axis 0?
  bool rows_are_one_ = false, across_rows_ = false;
  bool packs_ = false;  // are columns that rows share copied?
  bool by_bands_ = false;  // do a tile's rows go through all columns at a time?
  index_t column_bytes_ = 0;  // of what phases keep of a column
  index_t columns_kept_ = 0;  // of a block of which phases keep what they go through; 0: they keep nothing
  std::size_t ranged_axis_ = 0;
};

}  // namespace

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
                         const std::vector<index_t>& symbols, int threads, index_t rows, std::string_view target) {
  return Preparation(step, buffers, symbols, threads, rows, target).Run();
}

}  // namespace umbra::runtime

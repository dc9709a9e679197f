// The geometry of a CUDA launch, said once for two readers: a launch computes it in the numbers of a call, the code
// generator in texts, which compute it in the host part of a .cu file. N is index_t, or has its arithmetic.
#ifndef UMBRA_RUNTIME_CUDA_GEOMETRY_H_
#define UMBRA_RUNTIME_CUDA_GEOMETRY_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "runtime/positions.h"
#include "runtime/rows_together.h"
#include "umbra/cuda_launch.h"

namespace umbra::runtime {

/// Threads of a block, where nothing asks for another number; blocks along y and z; blocks that keep a device busy.
inline constexpr index_t kCudaThreads = 256, kCudaGridY = 65535, kCudaEnough = 512;

/// What a kernel may have of shared memory of its own, beside what a launch asks for.
inline constexpr std::size_t kCudaStaticShared = 8 * 1024;

inline index_t CeilDiv(index_t a, index_t b) { return (a + b - 1) / b; }
inline index_t Least(index_t a, index_t b) { return std::min(a, b); }
inline index_t Most(index_t a, index_t b) { return std::max(a, b); }
inline index_t PowerOfTwo(index_t at_least) {
  index_t power = 1;
  while (power < at_least) power *= 2;
  return power;
}
/// `most`, halved until so many rows of `bytes` fit the limit, or one is left.
inline index_t RowsThatFit(index_t most, index_t bytes, index_t limit) {
  while (most > 1 && most * bytes > limit) most /= 2;
  return most;
}
/// `then` if a is b or more.
inline index_t IfAtLeast(index_t a, index_t b, index_t then, index_t otherwise) { return a >= b ? then : otherwise; }

/// Rows of which a thread of kElements or kColumn computes an element, or a packet of results, at a time.
inline index_t RowsAtOnce(const KernelSignature& signature, const CudaSchedule& schedule, const CudaVariant& variant) {
  if (!variant.vector) return schedule.rows;
  return signature.positional ? std::max(1, schedule.rows / 2) : 1;
}

/// Threads along x, y and z.
template <typename N>
struct CudaDimsOf {
  N x = 1, y = 1, z = 1;  ///< how many of each
};

/// What a launch asks a device for.
template <typename N>
struct CudaGrid {
  CudaDimsOf<N> grid, block;  ///< blocks of the launch, threads of a block
  N shared_bytes = 0, scratch_bytes = 0;  ///< as of CudaLaunch
  CudaDimsOf<N> finish_grid, finish_block;  ///< of the second pass
};

template <typename N>
class CudaGeometry {
 public:
  /// `value` is the number of an Extent; `stride` that of an operand, by its number, along one of its dimensions.
  template <typename Value, typename Stride>
  CudaGeometry(const KernelSignature& signature, const CudaSchedule& schedule, const Value& value, const Stride& stride)
      : signature_(signature),
        schedule_(schedule),
        rank_(signature.axes.size()),
        row_axes_(static_cast<std::size_t>(signature.row_axes)),
        vector_axis_(static_cast<std::size_t>(signature.vector_axis)),
        columns_(vector_axis_ < row_axes_) {
    for (const auto& axis : signature.axes) extent_.push_back(value(axis));
    for (std::size_t k = 0; k < signature.operands.size(); ++k)
      for (std::size_t axis = 0; axis < rank_; ++axis) {
        const int dim = signature.operands[k].dim_of_axis[axis];
        if (dim >= 0 && !(extent_[axis] == N(1))) stride_.push_back(stride(k, dim));
        else stride_.push_back(dim >= 0 && axis == vector_axis_ ? 1 : 0);
      }
    if (!signature.positional) MergeAxes();
  }

  const std::vector<N>& extents() const { return extent_; }
  /// Operand-major.
  const std::vector<N>& strides() const { return stride_; }
  const N& stride(std::size_t operand, std::size_t axis) const { return stride_[operand * rank_ + axis]; }

  N Points() const { return Product(0, rank_); }
  N Columns() const { return extent_[vector_axis_]; }
  /// Points of the row axes without the columns, and of the inner axes.
  N Rows() const { return columns_ ? Product(0, row_axes_ - 1) : Product(0, row_axes_); }
  N Inner() const { return Product(row_axes_, rank_); }
  /// Bytes of what is kept of a row.
  N RowBytes(const std::vector<DType>& types) const { return Padded(Columns()) * BytesOf(types); }

  /// Do packets fit operands, those of results alone where a kernel computes with positions, of which `last` is the
  /// last dimension of each, that lie side by side, from an address that packets divide on, row after row? `tests` says
  /// of numbers whether they are `AtLeast` and `Divide` by lanes, and of operands whether they are `Aligned` to so many
  /// elements.
  template <typename Tests>
  bool FitsPackets(CudaForm form, const std::vector<int>& last, Tests&& tests) const {
    const bool rows = form == CudaForm::kRowPerWarp || form == CudaForm::kRowPerBlock || form == CudaForm::kRowSplit;
    const bool tiles = form == CudaForm::kTiles && schedule_.tile_lanes > 1;
    const index_t lanes = tiles ? schedule_.tile_lanes : schedule_.lanes;
    if (lanes < 2) return false;
    if (signature_.positional ? !schedule_.packs_results || (form != CudaForm::kElements && form != CudaForm::kColumn)
                              : !rows && !tiles && form != CudaForm::kElements)
      return false;
    if ((form != CudaForm::kElements || signature_.positional) && !tests.Divide(Columns(), lanes)) return false;
    if (tiles && !tests.Divide(Across(), lanes)) return false;
    if (!tests.AtLeast(Columns(), lanes)) return false;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      if (signature_.positional && !signature_.operands[k].store) continue;
      const std::vector<int>& dim_of_axis = signature_.operands[k].dim_of_axis;
      // Tiles are along their operand's own lines.
      const bool tile =
          form == CudaForm::kTiles && dim_of_axis[vector_axis_] >= 0 && dim_of_axis[vector_axis_] != last[k];
      const std::size_t along = tile ? static_cast<std::size_t>(schedule_.tile_axis) : vector_axis_;
      if (dim_of_axis[along] < 0 && stride(k, along) == N(0)) continue;
      if (!(stride(k, along) == N(1)) || !tests.Aligned(k, lanes)) return false;
      for (std::size_t axis = 0; axis < rank_; ++axis)
        if (axis != along && !(extent_[axis] == N(1)) && !tests.Divide(stride(k, axis), lanes)) return false;
    }
    return true;
  }

  /// `limit` is what a block may have of shared memory; `let` names a number that is used more than once.
  template <typename Let>
  CudaGrid<N> LayOut(const CudaVariant& variant, const N& limit, const Let& let) const {
    const index_t lanes = variant.vector ? schedule_.lanes : 1;
    CudaGrid<N> launch;
    switch (variant.form) {
      case CudaForm::kElements: {
        const index_t elements = lanes * (variant.vector ? schedule_.packets : 1);
        const N across = let("across", Least(kCudaThreads, PowerOfTwo(CeilDiv(Columns(), elements))));
        const N down = let("down", RowsOfBlock(across));
        const N blocks = let("blocks", CeilDiv(Columns(), across * elements)),
                rows = let("rows", CeilDiv(Rows(), down));
        launch.block = {across, down};
        launch.grid = {blocks, BlocksDown(blocks, rows, RowsAtOnce(signature_, schedule_, variant))};
        break;
      }
      case CudaForm::kTiles: {
        const index_t side = schedule_.tile_side;
        launch.block = {kCudaTile, kCudaTileRows};
        launch.grid = {CeilDiv(Columns(), side) * CeilDiv(Across(), side),
                       Least(kCudaGridY, Rows() / Most(Across(), 1))};
        break;
      }
      case CudaForm::kRowPerWarp: {
        const N kept = let("kept", RowBytes(schedule_.kept));
        const N rows = let("rows", RowsThatFit(kCudaThreads / kCudaWarp, kept, limit));
        launch.block = {kCudaWarp, rows};
        launch.grid = {CeilDiv(Rows(), rows)};
        launch.shared_bytes = kept * rows;
        break;
      }
      case CudaForm::kRowPerBlock:
        launch.block = {RowThreads(2 * kCudaThreads, lanes, let)};
        launch.grid = {Rows()};
        if (!variant.rows_in_scratch) {
          launch.shared_bytes = RowBytes(schedule_.kept);
        } else if (!signature_.row_buffers.empty()) {
          launch.grid = {Least(Rows(), kCudaEnough)};
          launch.scratch_bytes = RowBytes(signature_.row_buffers) * launch.grid.x;
        }
        break;
      case CudaForm::kRowSplit: {
        launch.block = {RowThreads(kCudaThreads, lanes, let)};
        const N shares = let("shares", Least(CeilDiv(Inner(), kCudaShare), CeilDiv(4 * kCudaEnough, Most(Rows(), 1))));
        launch.grid = {shares, Least(kCudaGridY, Rows())};
        launch.scratch_bytes = PartialBytes(Rows() * shares);
        launch.finish_block = {kCudaThreads};
        launch.finish_grid = {Rows()};
        break;
      }
      case CudaForm::kColumn: {
        launch.block = ColumnBlock(lanes, let);
        const N blocks = let("blocks", CeilDiv(Columns(), launch.block.x * lanes)),
                rows = let("rows", CeilDiv(Rows(), launch.block.y));
        launch.grid = {blocks, BlocksDown(blocks, rows, RowsAtOnce(signature_, schedule_, variant))};
        break;
      }
      case CudaForm::kColumnPerBlock:
      case CudaForm::kColumnSplit: {
        launch.block = {kCudaWarp, Least(16, PowerOfTwo(CeilDiv(Inner(), 4)))};
        launch.grid = {CeilDiv(Columns(), kCudaWarp), Least(kCudaGridY, Rows())};
        if (variant.form == CudaForm::kColumnPerBlock) break;
        const N blocks = CeilDiv(Columns(), kCudaWarp) * Rows();
        launch.grid.z =
            let("parts",
                Least(Least(CeilDiv(Inner() * kCudaWarp, kCudaShare), CeilDiv(2 * kCudaEnough, blocks)), kCudaEnough));
        launch.scratch_bytes = PartialBytes(Rows() * Columns() * launch.grid.z);
        launch.finish_block = ColumnBlock(1, let);
        launch.finish_grid = {CeilDiv(Columns(), launch.finish_block.x),
                              Least(kCudaGridY, CeilDiv(Rows(), launch.finish_block.y))};
        break;
      }
    }
    return launch;
  }

 private:
  // Does stepping `outer` once equal stepping `inner` through its extent, for every operand?
  bool CanMerge(std::size_t outer, std::size_t inner) const {
    if (IsBaked(signature_, static_cast<int>(inner)) || IsBaked(signature_, static_cast<int>(outer))) return false;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k)
      if (!(stride(k, outer) == stride(k, inner) * extent_[inner])) return false;
    return true;
  }

  // Axes are gathered in the last one that they fit: rows among rows, inner axes among inner ones, and, where
  // nothing is reduced, all of them.
  void MergeAxes() {
    for (std::size_t inner = rank_ - 1; inner > 0; --inner) {
      if (extent_[inner] == N(1) || (columns_ && inner == vector_axis_)) continue;  // a column is a thread
      const std::size_t first = signature_.elementwise || inner < row_axes_ ? 0 : row_axes_;
      for (std::size_t outer = inner; outer-- > first;) {
        if (extent_[outer] == N(1)) continue;
        if ((columns_ && outer == vector_axis_) || !CanMerge(outer, inner)) break;
        extent_[inner] = extent_[outer] * extent_[inner];
        extent_[outer] = 1;
        for (std::size_t k = 0; k < signature_.operands.size(); ++k) stride_[k * rank_ + outer] = 0;
      }
    }
  }

  N Product(std::size_t begin, std::size_t end) const {
    N product = 1;
    for (std::size_t axis = begin; axis < end; ++axis) product = product * extent_[axis];
    return product;
  }
  // The extent of the axis across which tiles are read.
  N Across() const { return extent_[static_cast<std::size_t>(schedule_.tile_axis)]; }

  static index_t BytesOf(const std::vector<DType>& types) {
    index_t bytes = 0;
    for (const DType type : types) bytes += static_cast<index_t>(SizeOf(type));
    return bytes;
  }
  // The number of parts, then an array a reduction.
  N PartialBytes(const N& count) const { return Padded(count) * BytesOf(schedule_.partials) + 16; }

  // Rows of a block with so many threads along x. Threads without a row of their own would compute another's again,
  // which a destination that is an operand does not bear.
  N RowsOfBlock(const N& across) const { return Least(N(kCudaThreads) / across, PowerOfTwo(Rows())); }

  // Threads for a row, up to `most`.
  template <typename Let>
  N RowThreads(index_t most, index_t lanes, const Let& let) const {
    return let("threads", Most(2 * kCudaWarp, Least(most, PowerOfTwo(CeilDiv(Inner(), lanes * 4)))));
  }

  template <typename Let>
  CudaDimsOf<N> ColumnBlock(index_t lanes, const Let& let) const {
    const N across = let("across", Least(kCudaThreads, PowerOfTwo(CeilDiv(Columns(), lanes))));
    return {across, let("down", RowsOfBlock(across))};
  }

  // Blocks along y, of `blocks` along x, where a block has a row for each of its threads along y: a thread takes
  // `turns` rows at a time, and 4 times as many, where that leaves blocks enough.
  static N BlocksDown(const N& blocks, const N& rows, index_t turns) {
    if (turns == 1) return Least(kCudaGridY, rows);
    N down = rows;
    for (const auto& [times, enough] : {std::pair<index_t, index_t>{1, 4 * kCudaEnough}, {4, 8 * kCudaEnough}}) {
      const N fewer = CeilDiv(rows, times * turns);
      down = IfAtLeast(blocks * fewer, enough, fewer, down);
    }
    return Least(kCudaGridY, down);
  }

  const KernelSignature& signature_;
  const CudaSchedule& schedule_;
  std::size_t rank_, row_axes_, vector_axis_;
  bool columns_;
  std::vector<N> extent_, stride_;
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_CUDA_GEOMETRY_H_

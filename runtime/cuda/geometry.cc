// Launches of CUDA kernels: axes that lie side by side in memory become one, the form and variant
// follow from extents, strides and addresses, the grid from the form.
#include <algorithm>
#include <cstring>

#include "runtime/cuda/positions.h"
#include "runtime/rows_together.h"
#include "umbra/cuda_launch.h"
#include "umbra/error.h"

namespace umbra::runtime {

namespace {

constexpr index_t kThreads = 256;      // of a block, where nothing asks for another number
constexpr index_t kGridY = 65535;      // blocks along y and z
constexpr index_t kEnough = 512;       // blocks that keep a device busy
constexpr index_t kIndexLimit = (index_t{1} << 31) - (index_t{1} << 27);  // room for several steps beyond the end

index_t CeilDiv(index_t a, index_t b) { return (a + b - 1) / b; }

index_t PowerOfTwo(index_t at_least) {
  index_t power = 1;
  while (power < at_least) power *= 2;
  return power;
}

CudaDims Dims(index_t x, index_t y = 1, index_t z = 1) {
  return {static_cast<unsigned>(std::max<index_t>(x, 1)), static_cast<unsigned>(std::max<index_t>(y, 1)),
          static_cast<unsigned>(std::max<index_t>(z, 1))};
}

class Preparation {
 public:
  Preparation(const KernelSignature& signature, const CudaSchedule& schedule,
              const std::vector<TensorRef>& buffers, const std::vector<index_t>& symbols,
              const CudaLimits& limits)
      : signature_(signature), schedule_(schedule), buffers_(buffers), symbols_(symbols), limits_(limits),
        rank_(signature.axes.size()), row_axes_(static_cast<std::size_t>(signature.row_axes)),
        vector_axis_(static_cast<std::size_t>(signature.vector_axis)), columns_(vector_axis_ < row_axes_) {
    for (const Extent& axis : signature.axes) launch_.extent.push_back(Value(axis));
    for (const Access& access : signature.operands)
      for (std::size_t axis = 0; axis < rank_; ++axis) {
        const int dim = access.dim_of_axis[axis];
        const bool moves = dim >= 0 && launch_.extent[axis] != 1;
        launch_.stride.push_back(moves ? Buffer(access).stride[static_cast<std::size_t>(dim)]
                                       : (dim >= 0 && axis == vector_axis_ ? 1 : 0));
      }
  }

  CudaLaunch Run() {
    if (!signature_.positional) MergeAxes();
    ChooseForm();
    CudaVariant& variant = launch_.variant;
    variant.strided = !HasUnitStrides();
    variant.vector = !variant.strided && FitsPackets();
    AddNumbers();
    variant.wide_index = NeedsWideIndex();
    LayOut();
    return std::move(launch_);
  }

 private:
  index_t Value(const Extent& extent) const {
    return extent.is_static() ? extent.value : symbols_[static_cast<std::size_t>(extent.symbol)];
  }
  const TensorRef& Buffer(const Access& access) const { return buffers_[static_cast<std::size_t>(access.buffer)]; }
  index_t& Stride(std::size_t operand, std::size_t axis) { return launch_.stride[operand * rank_ + axis]; }

  void AddNumbers() {
    for (const Number& number : signature_.numbers)
      launch_.extent.push_back(number.operand < 0 ? Value(number.extent)
                                                  : Buffer(signature_.operands[static_cast<std::size_t>(number.operand)])
                                                        .stride[static_cast<std::size_t>(number.dim)]);
  }

  // Does stepping `outer` once equal stepping `inner` through its extent, for every operand?
  bool CanMerge(std::size_t outer, std::size_t inner) {
    if (IsBakedInCuda(signature_, static_cast<int>(inner)) || IsBakedInCuda(signature_, static_cast<int>(outer))) return false;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k)
      if (Stride(k, outer) != Stride(k, inner) * launch_.extent[inner]) return false;
    return true;
  }

  // Axes are gathered in the last one that they fit: rows among rows, inner axes among inner ones, and, where
  // nothing is reduced, all of them.
  void MergeAxes() {
    for (std::size_t inner = rank_ - 1; inner > 0; --inner) {
      if (launch_.extent[inner] == 1 || (columns_ && inner == vector_axis_)) continue;  // a column is a thread
      const std::size_t first = signature_.elementwise || inner < row_axes_ ? 0 : row_axes_;
      for (std::size_t outer = inner; outer-- > first;) {
        if (launch_.extent[outer] == 1) continue;
        if ((columns_ && outer == vector_axis_) || !CanMerge(outer, inner)) break;
        launch_.extent[inner] *= launch_.extent[outer];
        launch_.extent[outer] = 1;
        for (std::size_t k = 0; k < signature_.operands.size(); ++k) Stride(k, outer) = 0;
      }
    }
  }

  index_t Product(std::size_t begin, std::size_t end) const {
    index_t product = 1;
    for (std::size_t axis = begin; axis < end; ++axis) product *= launch_.extent[axis];
    return product;
  }
  index_t Columns() const { return launch_.extent[vector_axis_]; }
  // Points of the row axes without the columns, of the inner axes, and of the inner axes without the last.
  index_t Rows() const { return columns_ ? Product(0, row_axes_ - 1) : Product(0, row_axes_); }
  index_t Inner() const { return Product(row_axes_, rank_); }
  index_t Walks() const { return Product(row_axes_, rank_ - 1); }

  void ChooseForm() {
    CudaForm& form = launch_.variant.form;
    if (!schedule_.reduces) {
      const bool tiles = schedule_.tile_axis >= 0 && launch_.extent[static_cast<std::size_t>(schedule_.tile_axis)] > 1 && Columns() > 1;
      form = tiles ? CudaForm::kTiles : CudaForm::kElements;
    } else if (columns_) {
      const index_t blocks = CeilDiv(Columns(), kCudaWarp) * Rows();
      if (Inner() <= kCudaWarp) form = CudaForm::kColumn;
      else if (schedule_.splits && blocks < kEnough && Inner() * kCudaWarp > kCudaShare) form = CudaForm::kColumnSplit;
      else form = CudaForm::kColumnPerBlock;
    } else {
      if (schedule_.splits && Rows() < kEnough && Inner() > kCudaShare) form = CudaForm::kRowSplit;
      else if (Inner() <= kCudaWarpRow && rank_ - row_axes_ == 1 && RowBytes(schedule_.kept) <= limits_.shared_bytes) form = CudaForm::kRowPerWarp;
      else form = CudaForm::kRowPerBlock;
    }
  }

  // Do the operands whose last dimension the kernel walks along the vector axis, or across it in tiles, lie side by side?
  bool HasUnitStrides() {
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const Access& access = signature_.operands[k];
      const int last = static_cast<int>(Buffer(access).shape.size()) - 1;
      if (last < 0) continue;
      if (access.dim_of_axis[vector_axis_] == last && Stride(k, vector_axis_) != 1 && Columns() != 1) return false;
    }
    return true;
  }

  // The axis along which the operand is read: tiles are along their operand's own lines.
  std::size_t AxisAlong(const Access& access) const {
    const int along = access.dim_of_axis[vector_axis_], last = static_cast<int>(Buffer(access).shape.size()) - 1;
    const bool tile = launch_.variant.form == CudaForm::kTiles && along >= 0 && along != last;
    return tile ? static_cast<std::size_t>(schedule_.tile_axis) : vector_axis_;
  }

  // Packets need operands that lie side by side, from an address that they divide on, row after row.
  bool FitsPackets() {
    const CudaForm form = launch_.variant.form;
    const bool rows = form == CudaForm::kRowPerWarp || form == CudaForm::kRowPerBlock || form == CudaForm::kRowSplit;
    const bool tiles = form == CudaForm::kTiles && schedule_.tile_lanes > 1;
    const index_t lanes = tiles ? schedule_.tile_lanes : schedule_.lanes;
    if (signature_.positional || (!rows && !tiles && form != CudaForm::kElements)) return false;
    if (form != CudaForm::kElements && Columns() % lanes != 0) return false;
    if (tiles && launch_.extent[static_cast<std::size_t>(schedule_.tile_axis)] % lanes != 0) return false;
    if (Columns() < lanes) return false;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const Access& access = signature_.operands[k];
      const std::size_t along = AxisAlong(access);
      if (access.dim_of_axis[along] < 0 && Stride(k, along) == 0) continue;
      if (Stride(k, along) != 1) return false;
      const std::size_t bytes = std::min<std::size_t>(16, SizeOf(Buffer(access).dtype) * static_cast<std::size_t>(lanes));
      if (reinterpret_cast<std::uintptr_t>(Buffer(access).data) % bytes != 0) return false;
      for (std::size_t axis = 0; axis < rank_; ++axis)
        if (axis != along && launch_.extent[axis] != 1 && Stride(k, axis) % lanes != 0) return false;
    }
    return true;
  }

  bool NeedsWideIndex() {
    if (Product(0, rank_) >= kIndexLimit || static_cast<index_t>(RowBytes(signature_.row_buffers)) >= kIndexLimit) return true;
    for (const Access& access : signature_.operands) {
      const TensorRef& tensor = Buffer(access);
      index_t reach = 0;
      for (std::size_t d = 0; d < tensor.shape.size(); ++d)
        if (tensor.shape[d] > 1) reach += std::abs(tensor.stride[d]) * (tensor.shape[d] - 1);
      if (reach >= kIndexLimit) return true;
    }
    return !PositionsStayWithin(kIndexLimit, schedule_.positions, rank_, launch_.extent);
  }

  // Bytes of what is kept of a row.
  std::size_t RowBytes(const std::vector<DType>& types) const {
    std::size_t bytes = 0;
    for (DType type : types) bytes += static_cast<std::size_t>(Padded(Columns())) * SizeOf(type);
    return bytes;
  }

  // The number of parts, then an array a reduction.
  std::size_t PartialBytes(index_t count) const {
    std::size_t bytes = 16;
    for (DType type : schedule_.partials) bytes += static_cast<std::size_t>(Padded(count)) * SizeOf(type);
    return bytes;
  }

  void LayOut() {
    const index_t lanes = launch_.variant.vector ? schedule_.lanes : 1;
    switch (launch_.variant.form) {
      case CudaForm::kElements: {
        const index_t packets = launch_.variant.vector ? schedule_.packets : 1;
        const index_t across = std::min(kThreads, PowerOfTwo(CeilDiv(Columns(), lanes * packets)));
        const index_t blocks = CeilDiv(Columns(), across * lanes * packets);
        index_t down = CeilDiv(Rows(), RowsOfBlock(across));
        // A thread takes several rows where that leaves blocks enough.
        const index_t fewer = CeilDiv(down, launch_.variant.vector ? 1 : schedule_.rows);
        if (blocks * fewer >= 4 * kEnough) down = fewer;
        launch_.block = Dims(across, RowsOfBlock(across));
        launch_.grid = Dims(blocks, std::min(kGridY, down));
        break;
      }
      case CudaForm::kTiles: {
        const index_t down = launch_.extent[static_cast<std::size_t>(schedule_.tile_axis)];
        launch_.block = Dims(kCudaTile, kCudaTileRows);
        const index_t side = kCudaTile * (launch_.variant.vector ? schedule_.tile_lanes : 1);
        launch_.grid = Dims(CeilDiv(Columns(), side) * CeilDiv(down, side), std::min(kGridY, Rows() / std::max<index_t>(down, 1)));
        break;
      }
      case CudaForm::kRowPerWarp: {
        index_t rows = kThreads / kCudaWarp;
        const std::size_t kept = RowBytes(schedule_.kept);
        while (rows > 1 && kept * static_cast<std::size_t>(rows) > limits_.shared_bytes) rows /= 2;
        launch_.block = Dims(kCudaWarp, rows);
        launch_.grid = Dims(CeilDiv(Rows(), rows));
        launch_.shared_bytes = kept * static_cast<std::size_t>(rows);
        break;
      }
      case CudaForm::kRowPerBlock: {
        launch_.block = RowBlock(lanes);
        launch_.grid = Dims(Rows());
        const std::size_t kept = RowBytes(schedule_.kept);
        launch_.variant.rows_in_scratch = kept > limits_.shared_bytes;
        if (!launch_.variant.rows_in_scratch) {
          launch_.shared_bytes = kept;
        } else if (!signature_.row_buffers.empty()) {
          launch_.grid = Dims(std::min(Rows(), kEnough));
          launch_.scratch_bytes = RowBytes(signature_.row_buffers) * launch_.grid.x;
        }
        break;
      }
      case CudaForm::kRowSplit: {
        launch_.block = RowBlock(lanes);
        const index_t shares = std::min(CeilDiv(Inner(), kCudaShare), CeilDiv(kEnough, std::max<index_t>(Rows(), 1)));
        const index_t walks = std::min(shares, CeilDiv(Walks(), launch_.block.y));
        const index_t along = std::min(CeilDiv(shares, walks), CeilDiv(Columns(), static_cast<index_t>(launch_.block.x) * lanes));
        launch_.grid = Dims(along, std::min(kGridY, Rows()), walks);
        launch_.scratch_bytes = PartialBytes(Rows() * along * walks);
        launch_.finish_block = Dims(kThreads);
        launch_.finish_grid = Dims(Rows());
        break;
      }
      case CudaForm::kColumn: {
        const index_t across = std::min(kThreads, PowerOfTwo(Columns()));
        launch_.block = Dims(across, RowsOfBlock(across));
        launch_.grid = Dims(CeilDiv(Columns(), across), std::min(kGridY, CeilDiv(Rows(), RowsOfBlock(across))));
        break;
      }
      case CudaForm::kColumnPerBlock:
      case CudaForm::kColumnSplit: {
        launch_.block = Dims(kCudaWarp, std::min<index_t>(16, PowerOfTwo(CeilDiv(Inner(), 4))));
        launch_.grid = Dims(CeilDiv(Columns(), kCudaWarp), std::min(kGridY, Rows()));
        if (launch_.variant.form == CudaForm::kColumnPerBlock) break;
        const index_t blocks = CeilDiv(Columns(), kCudaWarp) * Rows();
        launch_.grid.z = static_cast<unsigned>(std::min({CeilDiv(Inner() * kCudaWarp, kCudaShare), CeilDiv(2 * kEnough, blocks), kEnough}));
        launch_.scratch_bytes = PartialBytes(Rows() * Columns() * launch_.grid.z);
        const index_t across = std::min(kThreads, PowerOfTwo(Columns()));
        launch_.finish_block = Dims(across, RowsOfBlock(across));
        launch_.finish_grid = Dims(CeilDiv(Columns(), across), std::min(kGridY, CeilDiv(Rows(), RowsOfBlock(across))));
        break;
      }
    }
  }

  // Rows of a block with so many threads along x. Threads without a row of their own would compute another's again,
  // which a destination that is an operand does not bear.
  index_t RowsOfBlock(index_t across) const { return std::min(kThreads / across, PowerOfTwo(Rows())); }

  // Threads for a row: x along its last axis, y over the others.
  CudaDims RowBlock(index_t lanes) const {
    const index_t threads = std::clamp<index_t>(PowerOfTwo(CeilDiv(Inner(), lanes * 4)), 4 * kCudaWarp, 2 * kThreads);
    const index_t across = rank_ - row_axes_ == 1 ? threads : std::min(threads, PowerOfTwo(CeilDiv(Columns(), lanes)));
    return Dims(across, threads / across);
  }

  const KernelSignature& signature_;
  const CudaSchedule& schedule_;
  const std::vector<TensorRef>& buffers_;
  const std::vector<index_t>& symbols_;
  const CudaLimits& limits_;
  std::size_t rank_, row_axes_, vector_axis_;
  bool columns_;
  CudaLaunch launch_;
};

}  // namespace

CudaLaunch PlanCudaLaunch(const KernelSignature& signature, const CudaSchedule& schedule,
                          const std::vector<TensorRef>& buffers, const std::vector<index_t>& symbols,
                          const CudaLimits& limits) {
  return Preparation(signature, schedule, buffers, symbols, limits).Run();
}

bool CudaLaunchesJoin(const CudaLaunch& a, const CudaLaunch& b) {
  for (const CudaLaunch* launch : {&a, &b}) {
    const CudaDims& grid = launch->grid;
    if (launch->finishes() || launch->scratch_bytes != 0 || static_cast<index_t>(grid.x) * grid.y > 2 * kEnough) return false;
  }
  if (!(a.variant == b.variant) || a.block.y != b.block.y) return false;
  return a.block.x == b.block.x || a.variant.form == CudaForm::kElements;
}

CudaLaunch JoinCudaLaunches(const std::vector<CudaLaunch>& launches, std::size_t most, std::vector<std::uint64_t>* places) {
  CudaLaunch joined;
  joined.variant = launches[0].variant;
  joined.variant.several = true;
  for (const CudaLaunch& launch : launches) {
    joined.block = Dims(std::max(joined.block.x, launch.block.x), launch.block.y);
    joined.shared_bytes = std::max(joined.shared_bytes, launch.shared_bytes);
  }
  std::vector<unsigned> first, across;
  unsigned blocks = 0;
  for (const CudaLaunch& launch : launches) {
    first.push_back(blocks);
    across.push_back(static_cast<unsigned>(CeilDiv(static_cast<index_t>(launch.grid.x) * launch.block.x, joined.block.x)));
    blocks += across.back() * launch.grid.y;
  }
  first.resize(most + 1, blocks);  // places without a launch have no blocks
  across.resize(most, 1);
  joined.grid = Dims(blocks);
  first.insert(first.end(), across.begin(), across.end());
  places->assign(most + 1, 0);
  std::memcpy(places->data(), first.data(), first.size() * sizeof first[0]);
  return joined;
}

std::vector<std::uint64_t> CudaArguments(const CudaLaunch& launch, const std::vector<void*>& data,
                                         const std::vector<umbra_scalar>& scalars, void* scratch) {
  std::vector<std::uint64_t> entries;
  for (void* address : data) entries.push_back(reinterpret_cast<std::uintptr_t>(address));
  for (index_t stride : launch.stride) entries.push_back(static_cast<std::uint64_t>(stride));
  for (index_t extent : launch.extent) entries.push_back(static_cast<std::uint64_t>(extent));
  for (const umbra_scalar& scalar : scalars) {
    std::uint64_t entry;
    static_assert(sizeof entry == sizeof scalar);
    std::memcpy(&entry, &scalar, sizeof entry);
    entries.push_back(entry);
  }
  entries.push_back(reinterpret_cast<std::uintptr_t>(scratch));
  return entries;
}

}  // namespace umbra::runtime

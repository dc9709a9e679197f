// Launches of CUDA kernels: axes that lie side by side in memory become one, the form and variant
// follow from extents, strides and addresses, the grid from the form.
#include "runtime/cuda_geometry.h"

#include <algorithm>
#include <cstring>

#include "umbra/error.h"

namespace umbra::runtime {

namespace {

CudaDims Dims(const CudaDimsOf<index_t>& dims) {
  return {static_cast<unsigned>(Most(dims.x, 1)), static_cast<unsigned>(Most(dims.y, 1)),
          static_cast<unsigned>(Most(dims.z, 1))};
}

class Preparation {
 public:
  Preparation(const KernelSignature& signature, const CudaSchedule& schedule, const std::vector<TensorRef>& buffers,
              const std::vector<index_t>& symbols, const CudaLimits& limits)
      : signature_(signature),
        schedule_(schedule),
        buffers_(buffers),
        symbols_(symbols),
        limits_(limits),
        columns_(signature.vector_axis < signature.row_axes),
        geometry_(
            signature, schedule, [this](const Extent& extent) { return Value(extent); },
            [this](std::size_t operand, int dim) { return Buffer(operand).stride[static_cast<std::size_t>(dim)]; }) {}

  CudaLaunch Run() {
    CudaLaunch launch;
    CudaVariant& variant = launch.variant;
    variant.form = Form();
    variant.strided = !HasUnitStrides();
    variant.vector = !variant.strided && geometry_.FitsPackets(variant.form, LastDimensions(), *this);
    launch.stride = geometry_.strides();
    launch.extent = geometry_.extents();
    for (const Number& number : signature_.numbers)
      launch.extent.push_back(
          number.operand < 0
              ? Value(number.extent)
              : Buffer(static_cast<std::size_t>(number.operand)).stride[static_cast<std::size_t>(number.dim)]);
    variant.wide_index = NeedsWideIndex(launch.extent);
    variant.wide_offset = variant.wide_index && variant.form == CudaForm::kElements && signature_.positional &&
                          PointsAreNarrow(launch.extent);
    if (variant.wide_offset) variant.wide_index = false;
    const auto room = static_cast<index_t>(limits_.shared_bytes);
    variant.rows_in_scratch = variant.form == CudaForm::kRowPerBlock && geometry_.RowBytes(schedule_.kept) > room;
    const auto grid = geometry_.LayOut(variant, room, [](const char*, index_t number) { return number; });
    launch.grid = Dims(grid.grid);
    launch.block = Dims(grid.block);
    launch.shared_bytes = static_cast<std::size_t>(grid.shared_bytes);
    launch.scratch_bytes = static_cast<std::size_t>(grid.scratch_bytes);
    launch.finish_grid = Dims(grid.finish_grid);
    launch.finish_block = Dims(grid.finish_block);
    return launch;
  }

  // What packets ask of numbers and operands.
  static bool Divide(index_t number, index_t lanes) { return number % lanes == 0; }
  static bool AtLeast(index_t number, index_t lanes) { return number >= lanes; }
  bool Aligned(std::size_t operand, index_t lanes) const {
    const std::size_t bytes =
        std::min<std::size_t>(16, SizeOf(Buffer(operand).dtype) * static_cast<std::size_t>(lanes));
    return reinterpret_cast<std::uintptr_t>(Buffer(operand).data) % bytes == 0;
  }

 private:
  index_t Value(const Extent& extent) const {
    return extent.is_static() ? extent.value : symbols_[static_cast<std::size_t>(extent.symbol)];
  }
  const TensorRef& Buffer(std::size_t operand) const {
    return buffers_[static_cast<std::size_t>(signature_.operands[operand].buffer)];
  }
  std::vector<int> LastDimensions() const {
    std::vector<int> last;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k)
      last.push_back(static_cast<int>(Buffer(k).shape.size()) - 1);
    return last;
  }

  CudaForm Form() const {
    const index_t inner = geometry_.Inner(), rows = geometry_.Rows(), columns = geometry_.Columns();
    if (!schedule_.reduces) {
      const bool tiles = schedule_.tile_axis >= 0 &&
                         geometry_.extents()[static_cast<std::size_t>(schedule_.tile_axis)] > 1 && columns > 1;
      return tiles ? CudaForm::kTiles : CudaForm::kElements;
    }
    if (columns_) {
      if (inner <= schedule_.lone_column) return CudaForm::kColumn;
      const bool few = CeilDiv(columns, kCudaWarp) * rows < kCudaEnough;
      return schedule_.splits && few && inner * kCudaWarp > kCudaShare ? CudaForm::kColumnSplit
                                                                       : CudaForm::kColumnPerBlock;
    }
    if (schedule_.splits && rows < kCudaEnough && inner > kCudaShare) return CudaForm::kRowSplit;
    const bool one_axis = static_cast<int>(signature_.axes.size()) - signature_.row_axes == 1;
    const bool fits = geometry_.RowBytes(schedule_.kept) <= static_cast<index_t>(limits_.shared_bytes);
    return inner <= schedule_.warp_row && one_axis && fits ? CudaForm::kRowPerWarp : CudaForm::kRowPerBlock;
  }

  // Do the operands whose last dimension the kernel walks along the vector axis, or across it in tiles, lie side by
  // side?
  bool HasUnitStrides() const {
    const auto vector_axis = static_cast<std::size_t>(signature_.vector_axis);
    const std::vector<int> last = LastDimensions();
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      if (last[k] < 0) continue;
      if (signature_.operands[k].dim_of_axis[vector_axis] == last[k] && geometry_.stride(k, vector_axis) != 1 &&
          geometry_.Columns() != 1)
        return false;
    }
    return true;
  }

  // Do positions, rows and columns stay within 32 bits, whatever offsets do?
  bool PointsAreNarrow(const std::vector<index_t>& extents) const {
    return geometry_.Rows() < kIndexLimit && geometry_.Columns() < kIndexLimit &&
           PositionsStayWithin(kIndexLimit, signature_.positions, signature_.axes.size(), extents);
  }

  bool NeedsWideIndex(const std::vector<index_t>& extents) const {
    if (geometry_.Points() >= kIndexLimit || geometry_.RowBytes(signature_.row_buffers) >= kIndexLimit) return true;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const TensorRef& tensor = Buffer(k);
      index_t reach = 0;
      for (std::size_t d = 0; d < tensor.shape.size(); ++d)
        if (tensor.shape[d] > 1) reach += std::abs(tensor.stride[d]) * (tensor.shape[d] - 1);
      if (reach >= kIndexLimit) return true;
    }
    return !PositionsStayWithin(kIndexLimit, signature_.positions, signature_.axes.size(), extents);
  }

  const KernelSignature& signature_;
  const CudaSchedule& schedule_;
  const std::vector<TensorRef>& buffers_;
  const std::vector<index_t>& symbols_;
  const CudaLimits& limits_;
  bool columns_;
  CudaGeometry<index_t> geometry_;
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
    if (launch->finishes() || launch->scratch_bytes != 0 || static_cast<index_t>(grid.x) * grid.y > 2 * kCudaEnough)
      return false;
  }
  if (!(a.variant == b.variant) || a.block.y != b.block.y) return false;
  return a.block.x == b.block.x || a.variant.form == CudaForm::kElements;
}

CudaLaunch JoinCudaLaunches(const std::vector<CudaLaunch>& launches, std::size_t argument_words,
                            std::vector<std::uint64_t>* places) {
  CudaLaunch joined;
  joined.variant = launches[0].variant;
  joined.variant.several = true;
  joined.variant.many = launches.size() > CudaMostLaunches(argument_words, false);
  const std::size_t most = CudaMostLaunches(argument_words, joined.variant.many);
  for (const CudaLaunch& launch : launches) {
    joined.block = {std::max(joined.block.x, launch.block.x), launch.block.y};
    joined.shared_bytes = std::max(joined.shared_bytes, launch.shared_bytes);
  }
  std::vector<unsigned> first, across;
  unsigned blocks = 0;
  for (const CudaLaunch& launch : launches) {
    first.push_back(blocks);
    across.push_back(
        static_cast<unsigned>(CeilDiv(static_cast<index_t>(launch.grid.x) * launch.block.x, joined.block.x)));
    blocks += across.back() * launch.grid.y;
  }
  first.resize(most + 1, blocks);  // places without a launch have no blocks
  across.resize(most, 1);
  joined.grid = Dims({blocks});
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

// A kernel without reductions that reads operands across their lines: a block reads a square tile of each along the
// lines, and computes along the lines of the result. A column of padding keeps the threads of a warp in different banks.
// Operands that shared memory has no room for are read across their lines.
#include <algorithm>

#include "compiler/codegen/cuda/emitter.h"

namespace umbra::codegen {

namespace {

constexpr int kTile = runtime::kCudaTile, kThreadRows = runtime::kCudaTileRows;
constexpr std::size_t kShared = 48 * 1024;  // bytes that a kernel may declare

class TilesEmitter : private CudaEmitter {
 public:
  TilesEmitter(const CudaTask& task, Writer* out) : CudaEmitter(task, out) {}

  void Run(const std::string& name) {
    const int down = schedule_.tile_axis, across = vector_axis_;
    const std::vector<int> rows = Axes(0, signature_.row_axes, down);
    DeclareArguments(name);
    OpenKernel(name, kTile * kThreadRows);
    std::size_t bytes = 0;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const std::size_t size = SizeOf(OperandType(static_cast<int>(k))) * kTile * (kTile + 1);
      if (!IsTransposedLoad(static_cast<int>(k)) || bytes + size > kShared) continue;
      bytes += size;
      tiles_.emplace_back(static_cast<int>(k),
                          names_.Make(plan_.buffers[static_cast<std::size_t>(signature_.operands[k].buffer)].name + "_tile"));
      out_.Line("__shared__ {} {}[{}][{}];", ElementType(OperandType(static_cast<int>(k))), tiles_.back().second, kTile, kTile + 1);
    }
    DeclareParameters(HasRows(rows) ? Axes(0, kernel_.rank()) : std::vector<int>{down, across});
    const std::string i = fmt::format("i{}", across), j = fmt::format("i{}", down);
    const std::string across_tiles = fmt::format("({} + {}) / {}", ExtentName(across), kTile - 1, kTile);
    out_.Line("const {} x0 = {} % ({}) * {};", index_type_, Index("blockIdx.x"), across_tiles, kTile);
    out_.Line("const {} y0 = {} / ({}) * {};", index_type_, Index("blockIdx.x"), across_tiles, kTile);
    OpenRows(rows, Index("blockIdx.y"), "gridDim.y");
    if (HasRows(rows)) out_.Line("__syncthreads();");
    ReadTiles(i, j);
    out_.Line("__syncthreads();");
    Compute(i, j);
    CloseRows(rows);
    out_.Close();
  }

 private:
  bool IsTransposedLoad(int operand) const {
    const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
    return !access.store && IsTransposed(access);
  }

  void ReadTiles(const std::string& i, const std::string& j) {
    out_.Open("for (int k = threadIdx.y; k < {}; k += {})", kTile, kThreadRows);
    out_.Line("const {} {} = x0 + k, {} = y0 + threadIdx.x;", index_type_, i, j);
    out_.Open("if ({} < {} && {} < {})", i, ExtentName(vector_axis_), j, ExtentName(schedule_.tile_axis));
    for (const auto& [operand, tile] : tiles_) {
      const Operand& o = operands_[static_cast<std::size_t>(operand)];
      const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
      std::string at;
      for (int axis = 0; axis < kernel_.rank(); ++axis) {
        if (!Moves(access, axis)) continue;
        at += fmt::format("{}i{} * {}", at.empty() ? "" : " + ", axis, o.stride_names[static_cast<std::size_t>(axis)]);
      }
      out_.Line("{}[k][threadIdx.x] = {}[{}];", tile, o.base, at);
    }
    out_.Close();
    out_.Close();
  }

  void Compute(const std::string& i, const std::string& j) {
    const Phase& phase = kernel_.phases[0];
    out_.Open("for (int k = threadIdx.y; k < {}; k += {})", kTile, kThreadRows);
    out_.Line("const {} {} = x0 + threadIdx.x, {} = y0 + k;", index_type_, i, j);
    out_.Open("if ({} < {} && {} < {})", i, ExtentName(vector_axis_), j, ExtentName(schedule_.tile_axis));
    // Tiles are at hand: their rows need no pointers.
    std::vector<std::string> names(operands_.size());
    for (const auto& [operand, tile] : tiles_) {
      at_hand_[operand] = tile + "[threadIdx.x][k]";
      std::swap(names[static_cast<std::size_t>(operand)], operands_[static_cast<std::size_t>(operand)].name);
      operands_[static_cast<std::size_t>(operand)].name = operands_[static_cast<std::size_t>(operand)].base;
    }
    DeclareRowPointers();
    DeclareRowValues(phase.row_values);
    Names inner = names_;
    DeclareElements(phase, i, &inner);
    StoreElements(phase, i);
    out_.Close();
    out_.Close();
  }

  std::vector<std::pair<int, std::string>> tiles_;
};

}  // namespace

void EmitCudaTiles(const CudaTask& task, const std::string& name, Writer* out) { TilesEmitter(task, out).Run(name); }

}  // namespace umbra::codegen

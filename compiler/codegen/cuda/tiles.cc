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
    const std::string across_tiles = fmt::format("({} + {}) / {}", ExtentName(across), kTile - 1, kTile);
    out_.Line("const {} x0 = {} % ({}) * {};", index_type_, Index("blockIdx.x"), across_tiles, kTile);
    out_.Line("const {} y0 = {} / ({}) * {};", index_type_, Index("blockIdx.x"), across_tiles, kTile);
    OpenRows(rows, Index("blockIdx.y"), "gridDim.y");
    if (HasRows(rows)) out_.Line("__syncthreads();");
    ReadTiles();
    out_.Line("__syncthreads();");
    Compute();
    CloseRows(rows);
    out_.Close();
  }

 private:
  bool IsTransposedLoad(int operand) const {
    const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
    return !access.store && IsTransposed(access);
  }

  static constexpr int kTurns = kTile / kThreadRows;
  // What each turn of a thread is about, across and down.
  static constexpr const char* kNear = "threadIdx.x";
  static constexpr const char* kFar = "threadIdx.y + u * 8";

  // Threads beyond an edge read what lies at it, so that no load waits for a condition.
  void DeclarePosition(int axis, const std::string& position) {
    out_.Line("const {0} i{1} = minimum({0}({2}), {3} - 1);", index_type_, axis, position, ExtentName(axis));
  }

  // All loads of a thread are in flight before the first is kept.
  void ReadTiles() {
    std::vector<std::string> read;
    for (const auto& [operand, tile] : tiles_) {
      read.push_back(names_.Make(operands_[static_cast<std::size_t>(operand)].name + "_read"));
      out_.Line("{} {}[{}];", ElementType(OperandType(operand)), read.back(), kTurns);
    }
    OpenTurns(kTurns);
    DeclarePosition(vector_axis_, "x0 + " + std::string(kFar));
    DeclarePosition(schedule_.tile_axis, "y0 + " + std::string(kNear));
    for (std::size_t t = 0; t < tiles_.size(); ++t) {
      const Operand& o = operands_[static_cast<std::size_t>(tiles_[t].first)];
      const auto& access = signature_.operands[static_cast<std::size_t>(tiles_[t].first)];
      std::string at;
      for (int axis = 0; axis < kernel_.rank(); ++axis) {
        if (!Moves(access, axis)) continue;
        at += fmt::format("{}i{} * {}", at.empty() ? "" : " + ", axis, o.stride_names[static_cast<std::size_t>(axis)]);
      }
      out_.Line("{}[u] = {}[{}];", read[t], o.base, at);
    }
    out_.Close();
    OpenTurns(kTurns);
    for (std::size_t t = 0; t < tiles_.size(); ++t)
      out_.Line("{}[{}][{}] = {}[u];", tiles_[t].second, kFar, kNear, read[t]);
    out_.Close();
  }

  void Compute() {
    const Phase& phase = kernel_.phases[0];
    // Tiles are at hand: their rows need no pointers.
    for (const auto& [operand, tile] : tiles_) {
      at_hand_[operand] = fmt::format("{}[{}][{}]", tile, kNear, kFar);
      operands_[static_cast<std::size_t>(operand)].name = operands_[static_cast<std::size_t>(operand)].base;
    }
    const std::string i = fmt::format("i{}", vector_axis_), x = "x0 + " + std::string(kNear), y = "y0 + " + std::string(kFar);
    const auto declare = [&] {
      DeclarePosition(vector_axis_, x);
      DeclarePosition(schedule_.tile_axis, y);
      DeclareRowPointers();
      DeclareRowValues(phase.row_values);
      Names inner = names_;
      DeclareElements(phase, i, &inner);
    };
    const std::string inside = fmt::format("{} < {} && {} < {}", x, ExtentName(vector_axis_), y, ExtentName(schedule_.tile_axis));
    if (schedule_.rows > 1) return StoreTurns(phase, kTurns, i, inside, declare);
    out_.Line("#pragma unroll 1");
    out_.Open("for (int u = 0; u < {}; ++u)", kTurns);
    declare();
    out_.Open("if ({})", inside);
    StoreElements(phase, i);
    out_.Close();
    out_.Close();
  }

  std::vector<std::pair<int, std::string>> tiles_;
};

}  // namespace

void EmitCudaTiles(const CudaTask& task, const std::string& name, Writer* out) { TilesEmitter(task, out).Run(name); }

}  // namespace umbra::codegen

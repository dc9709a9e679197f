// A kernel without reductions that reads operands across their lines: a block reads a square tile of each along the
// lines, and computes along the lines of the result. A column of padding keeps the threads of a warp in different
// banks. Operands that shared memory has no room for are read across their lines. Where tiles of twice the side have
// room, more of a thread's elements are in flight; narrow ones come in twos, so that what a warp reads and writes at
// once is whole lines.
#include <algorithm>

#include "compiler/codegen/cuda/emitter.h"

namespace umbra::codegen {

namespace {

constexpr int kTile = runtime::kCudaTile, kThreadRows = runtime::kCudaTileRows;

class TilesEmitter : private CudaEmitter {
 public:
  TilesEmitter(const CudaTask& task, Writer* out)
      : CudaEmitter(task, out),
        lanes_(variant_.vector ? schedule_.tile_lanes : 1),
        side_(schedule_.tile_side),
        across_(side_ / kTile / lanes_),
        turns_(side_ / kThreadRows * across_),
        near_(lanes_ > 1    ? fmt::format("threadIdx.x * {}", lanes_)
              : across_ > 1 ? fmt::format("threadIdx.x + u % {} * {}", across_, kTile)
                            : "threadIdx.x"),
        far_(fmt::format("threadIdx.y + u{} * {}", across_ > 1 ? fmt::format(" / {}", across_) : "", kThreadRows)) {}

  void Run(const std::string& name) {
    const int down = schedule_.tile_axis, across = vector_axis_;
    const std::vector<int> rows = Axes(0, signature_.row_axes, down);
    DeclareArguments(name);
    OpenKernel(name, kTile * kThreadRows);
    std::size_t bytes = 0;
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const std::size_t size = SizeOf(OperandType(static_cast<int>(k))) * static_cast<std::size_t>(side_ * (side_ + 1));
      if (!IsTransposedLoad(static_cast<int>(k)) || bytes + size > kTilesBytes) continue;
      bytes += size;
      tiles_.emplace_back(
          static_cast<int>(k),
          names_.Make(plan_.buffers[static_cast<std::size_t>(signature_.operands[k].buffer)].name + "_tile"));
      out_.Line("__shared__ {} {}[{}][{}];", ElementType(OperandType(static_cast<int>(k))), tiles_.back().second, side_,
                side_ + 1);
    }
    DeclareParameters(HasRows(rows) ? Axes(0, kernel_.rank()) : std::vector<int>{down, across});
    const std::string across_tiles = fmt::format("({} + {}) / {}", ExtentName(across), side_ - 1, side_);
    out_.Line("const {} x0 = {} % ({}) * {};", index_type_, Index(Block("x")), across_tiles, side_);
    out_.Line("const {} y0 = {} / ({}) * {};", index_type_, Index(Block("x")), across_tiles, side_);
    OpenRows(rows, Index(Block("y")), Grid("y"));
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

  // Threads beyond an edge read what lies at it, so that no load waits for a condition.
  void DeclarePosition(int axis, const std::string& position, int lanes) {
    out_.Line("const {0} i{1} = minimum({0}({2}), {3} - {4});", index_type_, axis, position, ExtentName(axis), lanes);
  }
  void OpenLanes() {
    if (lanes_ == 1) return;
    out_.Line("#pragma unroll");
    out_.Open("for (int k = 0; k < {}; ++k)", lanes_);
  }
  // Of a packet and of the threads along a tile.
  std::string Lane() const { return lanes_ == 1 ? "" : "[k]"; }
  std::string Near() const { return near_ + (lanes_ == 1 ? "" : " + k"); }

  // All loads of a thread are in flight before the first is kept.
  void ReadTiles() {
    std::vector<std::string> read;
    for (const auto& [operand, tile] : tiles_) {
      read.push_back(names_.Make(operands_[static_cast<std::size_t>(operand)].name + "_read"));
      const std::string element = ElementType(OperandType(operand));
      out_.Line("{} {}[{}];", lanes_ == 1 ? element : fmt::format("pack<{}, {}>", element, lanes_), read.back(),
                turns_);
    }
    OpenTurns(turns_);
    DeclarePosition(vector_axis_, "x0 + " + far_, 1);
    DeclarePosition(schedule_.tile_axis, "y0 + " + near_, lanes_);
    for (std::size_t t = 0; t < tiles_.size(); ++t) {
      const Operand& o = operands_[static_cast<std::size_t>(tiles_[t].first)];
      const auto& access = signature_.operands[static_cast<std::size_t>(tiles_[t].first)];
      std::string at;
      for (int axis = 0; axis < kernel_.rank(); ++axis) {
        if (!Moves(access, axis)) continue;
        at += fmt::format("{}i{} * {}", at.empty() ? "" : " + ", axis, o.stride_names[static_cast<std::size_t>(axis)]);
      }
      out_.Line(
          "{}[u] = {};", read[t],
          lanes_ == 1 ? fmt::format("{}[{}]", o.base, at) : fmt::format("load_pack<{}>({} + {})", lanes_, o.base, at));
    }
    out_.Close();
    OpenTurns(turns_);
    OpenLanes();
    for (std::size_t t = 0; t < tiles_.size(); ++t)
      out_.Line("{}[{}][{}] = {}[u]{};", tiles_[t].second, far_, Near(), read[t], Lane());
    if (lanes_ > 1) out_.Close();
    out_.Close();
  }

  void Compute() {
    const Phase& phase = kernel_.phases[0];
    // Tiles are at hand: their rows need no pointers.
    for (const auto& [operand, tile] : tiles_) {
      at_hand_[operand] = fmt::format("{}[{}][{}]", tile, Near(), far_);
      operands_[static_cast<std::size_t>(operand)].name = operands_[static_cast<std::size_t>(operand)].base;
    }
    const std::string i = fmt::format("i{}", vector_axis_), x = "x0 + " + near_, y = "y0 + " + far_;
    const auto declare = [&] {
      DeclarePosition(vector_axis_, x, lanes_);
      DeclarePosition(schedule_.tile_axis, y, 1);
      DeclareRowPointers();
      DeclareRowValues(phase.row_values);
      Names inner = names_;
      if (lanes_ > 1) ReadPackets(phase, i, &inner);
      OpenLanes();
      DeclareElements(phase, lanes_ == 1 ? i : i + " + k", &inner);
    };
    const std::string inside =
        fmt::format("{} < {} && {} < {}", x, ExtentName(vector_axis_), y, ExtentName(schedule_.tile_axis));
    if (schedule_.rows > 1) return StoreTurns(phase.stores, turns_, lanes_, i, inside, declare);
    out_.Line("#pragma unroll 1");
    out_.Open("for (int u = 0; u < {}; ++u)", turns_);
    declare();
    out_.Open("if ({})", inside);
    StoreElements(phase, i);
    out_.Close();
    out_.Close();
  }

  // Of operands that lie along the result's lines.
  void ReadPackets(const Phase& phase, const std::string& i, Names* names) {
    for (const int k : LoadedOperands(phase)) {
      if (IsTransposedLoad(k)) continue;
      const std::string name = names->Make(operands_[static_cast<std::size_t>(k)].name + "_pack");
      out_.Line("const pack<{}, {}> {} = load_pack<{}>({});", ElementType(OperandType(k)), lanes_, name, lanes_,
                Address(k, i));
      at_hand_[k] = name + "[k]";
    }
  }

  const int lanes_, side_, across_, turns_;  // side_: rows and columns of a tile; across_: turns along a row of it
  const std::string near_, far_;  // where turn `u` of a thread is along a row of the tile, and across
  std::vector<std::pair<int, std::string>> tiles_;
};

}  // namespace

void EmitCudaTiles(const CudaTask& task, const std::string& name, Writer* out) { TilesEmitter(task, out).Run(name); }

}  // namespace umbra::codegen

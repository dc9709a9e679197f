// Elementwise kernels with transposed operands: tiles that are transposed in registers, in blocks of rows and columns.
#ifndef UMBRA_COMPILER_CODEGEN_EMIT_TRANSPOSED_H_
#define UMBRA_COMPILER_CODEGEN_EMIT_TRANSPOSED_H_

#include <algorithm>
#include <map>
#include <string>

#include "compiler/codegen/emit_keys.h"

namespace umbra::codegen {

class TransposedEmitter : protected KeyEmitter {
 protected:
  using KeyEmitter::KeyEmitter;

  void ReserveTileNames() {
    for (const char* end : {"b", "e"})
      for (const int axis : {tile_axis_, vector_axis_}) names_.Make(end + std::to_string(axis));
    for (const char* name : {"c", "rows"}) names_.Make(name);
  }

  // The row axes from `axis` on, in blocks.
  void TileLoops(int axis) {
    if (axis == kernel_.signature.row_axes) return Tiles();
    const std::string first = axis == 0 ? "begin" : "0", last = axis == 0 ? "end" : ExtentName(axis);
    if (axis != tile_axis_) {
      out_.Open("for (long long i{0} = {1}; i{0} < {2}; ++i{0})", axis, first, last);
      TileLoops(axis + 1);
      out_.Close();
      return;
    }
    OpenBlocks(axis, first, last, BlockRows());
    OpenBlocks(vector_axis_, "0", ExtentName(vector_axis_), BlockColumns());
    DeclareNextBlock();
    out_.Open("for (long long j{0} = b{0}; j{0} < e{0}; j{0} += {1})", axis, width_);
    TileLoops(axis + 1);
    for (int k = 0; k < 3; ++k) out_.Close();
  }

 private:
  // Lines that a block has of a row of a transposed operand, which are read one after the other.
  static constexpr int kBlockLines = 8;
  // Columns of a block, which are as many such rows, each on a page of its own. Where results go past the caches fewer pages
  // are worth more than longer runs of what is written.
  int BlockColumns() const { return Streams() ? 64 : 128; }

  // Work of an element, in additions, up to which the rows of a tile are written one by one, which leaves it in registers.
  static constexpr double kUnrolled = 16;

  // Packets side by side that make a line, which goes to memory as one.
  int Packets() const {
    int packets = 1;
    for (std::size_t k = 0; k < operands_.size(); ++k)
      if (IsTransposed(signature_.operands[k])) packets = std::max(packets, kLine / (width_ * SizeOfElement(k)));
    return packets;
  }
  int Line() const { return Packets() * width_; }
  int BlockRows() const { return kBlockLines * Line(); }

  int SizeOfElement(std::size_t operand) const { return static_cast<int>(SizeOf(OperandType(static_cast<int>(operand)))); }

  void OpenBlocks(int axis, const std::string& first, const std::string& last, int count) {
    out_.Open("for (long long b{0} = {1}; b{0} < {2}; b{0} += {3})", axis, first, last, count);
    out_.Line("const long long e{0} = smaller(b{0} + {1}, {2});", axis, count, last);
  }

  // How far from a block the next one lies in the operands of which a row or a column of a tile is a line.
  void DeclareNextBlock() {
    const auto times = [](int count, const std::string& stride) { return stride.empty() ? std::to_string(count) : fmt::format("{} * {}", count, stride); };
    next_block_.clear();
    for (int operand = 0; operand < static_cast<int>(operands_.size()); ++operand) {
      const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
      if (access.store || !MovesAlongVector(operand) || AxisDim(access, tile_axis_) < 0) continue;
      if (Line() * SizeOfElement(static_cast<std::size_t>(operand)) != kLine) continue;
      const Operand& o = operands_[static_cast<std::size_t>(operand)];
      const std::string across = VectorStride(operand), down = o.stride_names[static_cast<std::size_t>(tile_axis_)];
      const std::string column = fmt::format("b{}", vector_axis_);
      next_block_[operand] = names_.Make(o.name + "_next");
      out_.Line("const long long {} = e{} < {} ? {} : {} - {};", next_block_[operand], vector_axis_, ExtentName(vector_axis_),
                times(BlockColumns(), across), times(BlockRows(), down), across.empty() ? column : column + " * " + across);
    }
  }

  // The tiles of a block that have their rows in common: those of whole lines, then what is left.
  void Tiles() {
    const std::string i = fmt::format("i{}", vector_axis_);
    out_.Line("long long {} = b{};", i, vector_axis_);
    out_.Open("for (; j{0} + {1} <= e{0} && {2} + {3} <= e{4}; {2} += {3})", tile_axis_, width_, i, Line(), vector_axis_);
    Tile(i, Packets(), "");
    out_.Close();
    out_.Open("for (; {0} < e{1}; {0} += {2})", i, vector_axis_, width_);
    out_.Line("const long long rows = smaller(e{0} - j{0}, {2}), lanes = smaller(e{1} - {3}, {2});", tile_axis_, vector_axis_, width_, i);
    Tile(i, 1, "lanes");
    out_.Close();
  }

  void Tile(const std::string& i, int packets, const std::string& lanes) {
    const Names outer = names_;
    for (int operand = 0; operand < static_cast<int>(operands_.size()); ++operand) {
      const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
      if (access.store || !IsTransposed(access)) continue;
      LoadTile(operand, i, packets, lanes);
      if (next_block_.count(operand) > 0 && lanes.empty()) PrefetchPart(operand, i);
    }
    if (lanes.empty() && signature_.cost <= kUnrolled) out_.Line("UMBRA_UNROLL");
    out_.Open("for (int k = 0; k < {}; ++k)", lanes.empty() ? std::to_string(width_) : "rows");
    out_.Line("const long long i{0} = j{0} + k;", tile_axis_);
    RowPointers();
    for (const auto& [operand, next] : next_block_)  // the line of the last element: rows may begin within one
      if (!IsTransposed(signature_.operands[static_cast<std::size_t>(operand)]) && lanes.empty())
        out_.Line("prefetch({} + {} + {} + {});", operands_[static_cast<std::size_t>(operand)].name, i, Line() - 1, next);
    for (const Phase& phase : kernel_.phases) {
      for (int id : phase.row_values) DeclareRowValue(id);
      if (packets > 1) out_.Open("for (int c = 0; c < {}; ++c)", packets);
      Names names = names_;
      ElementBody(phase, packets > 1 ? Packet(i) : i, lanes, &names);
      if (packets > 1) out_.Close();
    }
    out_.Close();
    names_ = outer;
    at_hand_.clear();
  }

  void LoadTile(int operand, const std::string& i, int packets, const std::string& lanes) {
    const Operand& o = operands_[static_cast<std::size_t>(operand)];
    const std::string tile = names_.Make(o.name + "_tile"), stride = VectorStride(operand);
    const std::string type = speller_->Type(OperandType(operand));
    at_hand_[operand] = tile + (packets > 1 ? "[c][k]" : "[k]");
    if (packets > 1) {
      out_.Line("{} {}[{}][{}];", type, tile, packets, width_);
      out_.Line("for (int c = 0; c < {}; ++c) load_transposed({}, {}, {}[c]);", packets, TileAddress(operand, "j", "(" + Packet(i) + ")"), stride, tile);
      return;
    }
    out_.Line("{} {}[{}];", type, tile, width_);
    const std::string address = TileAddress(operand, "j", i);
    if (lanes.empty()) out_.Line("load_transposed({}, {}, {});", address, stride, tile);
    else out_.Line("load_transposed_head({}, {}, {}, rows, {});", address, stride, lanes, tile);
  }

  // Asks for as many lines of the next block as the tile has read: a part of those that lie at its columns, by runs, or, of a
  // block with fewer rows, those at its own place.
  void PrefetchPart(int operand, const std::string& i) {
    const std::string& next = next_block_.at(operand);
    out_.Line("if (e{0} - b{0} == {1}) prefetch_part<{2}, {3}>({4} + {5}, {6}, j{0} - b{0});", tile_axis_, BlockRows(), width_, kBlockLines,
              TileAddress(operand, "b", i), next, VectorStride(operand));
    out_.Line("else for (int k = 0; k < {}; ++k) prefetch({} + {});", Line(), TileAddress(operand, "j", "(" + i + " + k)"), next);
  }

  // The columns of the packet `c` of a line.
  std::string Packet(const std::string& i) const { return fmt::format("{} + c * {}", i, width_); }

  // Where the column i of a transposed operand lies, from the first row of a tile (j) or of the block (b) on.
  std::string TileAddress(int operand, const char* row, const std::string& i) const {
    const Operand& o = operands_[static_cast<std::size_t>(operand)];
    std::string address = fmt::format("{} + {}{}", o.base, row, tile_axis_);
    for (int axis = 0; axis < kernel_.signature.row_axes; ++axis)
      if (axis != tile_axis_ && Moves(signature_.operands[static_cast<std::size_t>(operand)], axis))
        address += fmt::format(" + i{} * {}", axis, o.stride_names[static_cast<std::size_t>(axis)]);
    return fmt::format("{} + {} * {}", address, i, VectorStride(operand));
  }

  std::map<int, std::string> next_block_;  // by operand: how far from a tile its place in the next block is
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_EMIT_TRANSPOSED_H_

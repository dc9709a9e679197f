// Elementwise kernels with transposed operands, whose tiles are transposed in registers.
#ifndef UMBRA_COMPILER_CODEGEN_CPU_TRANSPOSED_H_
#define UMBRA_COMPILER_CODEGEN_CPU_TRANSPOSED_H_

#include <map>
#include <set>
#include <string>

#include "compiler/codegen/cpu/tiles.h"

namespace umbra::codegen {

class TransposedEmitter : protected TileEmitter {
 protected:
  using TileEmitter::TileEmitter;

  bool HasTransposedTiles() const { return transposed_axis_ >= 0; }
  void ReserveTransposedNames();
  // The row axes from `axis` on, in blocks.
  void TransposedLoops(int axis);

 private:
  // Columns of a block, which are as many rows of a transposed operand, each on a page of its own. Where results go
  // past the caches fewer pages are worth more than longer runs of what is written, unless runs are put together.
  int BlockColumns() const;
  // Is there no matrix but one transposed operand, of which so few lines of memory are walked at a time that processors
  // bring each before it is asked for?
  bool WalksFewLines() const;
  int BlockLines() const;
  // Is the processor one that reads in the order of memory sooner by itself, and in any other only what it is asked
  // for?
  void DeclareAsks();
  // Rows and columns of a block, which where results go past the caches differ between such processors and others.
  void DeclareBlocks();
  // Are the rows of a tile written after all of them have been read? A load for which an earlier store may be meant, as
  // the low bits of their addresses are the same in all rows of as many pages, waits for it.
  bool WritesTileLast() const;
  // Do results lie far off, so that the lines are asked for in which those of the next tile end? A packet that is as
  // large as a line lies on two where rows begin within lines, and processors do not ask for the second of a store
  // before it is its turn.
  void DeclareFar();
  void WriteTile(const std::string& i);
  // Operands that are neither in a tile nor written with one.
  std::set<int> Others() const;
  // The row k of a tile, and to where such operands have it.
  void RowOfTile();
  // The first row of a tile, to which such operands point; what makes it the next one. (An address that is computed for
  // each row stays the same for all tiles: compilers compute all of them first, and there are not the registers.)
  std::string FirstRowOfTile(const std::set<int>& used);
  // Packets side by side that make a line, which goes to memory as one.
  int LinePackets() const;
  int LineColumns() const { return LinePackets() * width_; }
  void OpenBlocks(int axis, const std::string& first, const std::string& last, const std::string& count);
  // How far from a block the next one lies in the operands of which a row or a column of a tile is a line.
  void DeclareNextBlock();
  // The tiles of a block that have their rows in common: those of whole lines, then what is left.
  void TransposedTiles();
  // The same where rows go past the caches from wherever they begin. Of the lines that two blocks have in common the
  // first writes all: it goes on with another tile.
  void JoinedTiles();
  void TransposedTile(const std::string& i, int packets, const std::string& lanes);
  void LoadTransposedTile(int operand, const std::string& i, int packets, const std::string& lanes);
  // Asks for as many lines of the next block as the tile has read: a part of those that lie at its columns, by runs,
  // or, of a block with fewer rows, those at its own place.
  void PrefetchPart(int operand, const std::string& i);
  // Are whole lines of a block turned first (runtime/turned_lines.h)?
  bool TurnsLines() const;
  // As many rows as transposed operands have elements in a line, if the block has them all; then the next.
  void TurnedLines();
  // Elements of a transposed operand that make a line.
  int LineRows() const;
  void TurnLines(int operand, const std::string& turned);
  // The columns of the packet `c` of a line.
  std::string PacketOfLine(const std::string& i) const { return fmt::format("{} + c * {}", i, width_); }
  // Where the column i of a transposed operand lies, from the first row of a tile (j) or of the block (b) on.
  std::string TransposedAddress(int operand, const char* row, const std::string& i) const;

  const int transposed_axis_ = Splits() ? -1 : TileAxis();  // the row axis of the tiles; none: -1
  std::map<int, std::string> next_block_;  // by operand: how far from a tile its place in the next block is
  std::string asks_;  // is the processor one that has to be asked? Empty: no code for one
  std::string block_rows_, block_columns_;
  std::string far_;  // do results lie far off? Empty: no one asks
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CPU_TRANSPOSED_H_

// Tiles of rows that share what they read, such as those of products of matrices: how large they are, what they sum,
// the copies of columns that they read, and the functions of the prelude that sum them.
#ifndef UMBRA_COMPILER_CODEGEN_CPU_TILES_H_
#define UMBRA_COMPILER_CODEGEN_CPU_TILES_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/cpu/phases.h"

namespace umbra::codegen {

class TileEmitter : protected PhaseEmitter {
 protected:
  using PhaseEmitter::PhaseEmitter;

  // The row axis whose rows are computed together, or -1.
  int SharedAxis() const;
  // All rows of the shared axis and all columns.
  void SharedRows();

  bool StreamsPackets(DType type) const override {
    return PhaseEmitter::StreamsPackets(type) || (StreamsTiles() && HasWholeLines(type));
  }

 private:
  // ---- tiles.cc: tiles of rows that share what they read ---------------------------------------

  // What depends on the row of a tile, and on the packet of columns.
  struct Share {
    bool row = false, column = false;
  };

  // Do results of tiles go past the caches? Those of which a tile has whole lines do.
  bool StreamsTiles() const {
    return options_.variant.stores == runtime::Stores::kStreamed && options_.variant.packed && SharedAxis() >= 0;
  }
  bool HasWholeLines(DType type) const { return tile_.packets * width_ * static_cast<int>(SizeOf(type)) % kLine == 0; }
  std::string ColumnIndex() const { return fmt::format("i{}", vector_axis_); }
  // Of columns. Where there are registers for it, a tile takes lines of what its rows share that lie further apart than
  // the processor looks ahead in longer runs.
  int TilePackets() const { return options_.target == Target::kAvx512 ? 3 : 2; }
  // As many as leave registers for what they read, and for their addresses.
  int TileRows(int packets) const;
  // Does a load of one element fill a packet with it?
  bool LoadsFillPackets() const { return options_.target == Target::kAvx2 || options_.target == Target::kAvx512; }
  // Which values rows and columns share.
  void FindShares();
  // Which a tile needs, as it reads panels.
  void FindNeeded();
  Share ShareOf(int id) const { return tile_.shares[static_cast<std::size_t>(id)]; }
  // What a value is made of, it among them, as far as a panel does not have it.
  void Need(int id, std::set<int>* needed) const;
  // "end - begin <= 4 && ": a condition for the kernel to have so few rows; empty where it has, nothing where it has
  // not.
  std::optional<std::string> IfFewRows(int rows) const;
  bool MayGoByBands() const;
  // A loop over bands of rows, those of a tile of so many packets or all.
  void OpenBands(int packets);
  // One pass of the loop over columns that `head` is.
  void TilePanel(const std::string& head, int packets, const std::string& lanes);
  void SharedTile(const std::string& last);
  // The sums of a tile: packets, which are returned by name. What they are before anything is joined.
  std::string DeclareSums(const plan::Reduction& reduction);
  void BeginSums();
  // What comes after them: this part's are kept, or they are all there.
  void EndTile(const std::string& last, const std::string& row);
  // Asks for what the results of a tile are joined with, while it is summed.
  void PrefetchResults();
  // Is a tile of one packet twice as high where there are rows for it? There are registers for the sums of them all,
  // which wait for each other, but not for their addresses: those of a row and of the one as far below it as half a
  // tile are one, and the distance.
  bool HasPairs() const;
  // The operand whose rows a tile of one packet reads along the innermost axis, or -1 if it is not one, more is needed
  // there than elements, or rows are known to be shorter than a line.
  int LineOperand(int axis) const;
  int LineElements(int operand) const;
  // Are there whole packets of what a function of the prelude multiplies with, in memory or in a panel?
  bool HasWholeColumns() const;
  // The innermost axis by lines of the operand, as long as there are whole ones. With an address in a register of its
  // own for each row, and the same line of the rows of the next tile on its way, products hardly wait. Returns where
  // this ends.
  std::string TileLines(int operand, int axis, const std::function<void()>& step);
  // What follows the reductions. The accumulators are in registers as long as no loop that is left as one indexes
  // them: a copy is for that.
  void TileResults(const std::string& last);
  // Is there a value for each row and each packet of the tile?
  bool IsBoth(int id) const {
    return (ShareOf(id).row || tile_.rows == 1) && (ShareOf(id).column || tile_.packets == 1);
  }
  // Is there one for each row, which all of its packets take?
  bool IsOfRow(int id) const { return !IsBoth(id) && ShareOf(id).row && !ShareOf(id).column && tile_.rows > 1; }
  // Compilers move what may wait, or be asked for early, until no registers are left for the sums of a tile, or until
  // steps that need each other follow each other. The elements of rows, and their sums, stay in the order in which they
  // are written.
  bool GoesInOrder(DType type) const;
  void LoadInOrder(int id);
  // A value for each row, or for each packet of columns, or for all of the tile.
  void DefineInTile(int id);
  Expr TilePacket(int id) const;
  std::string TileIndex() const {
    return tile_.packets > 1 ? fmt::format("{} + c * {}", ColumnIndex(), width_) : ColumnIndex();
  }
  // `[8][2]`, and the element of the row r and the packet c.
  std::string TileSize(Share share) const;
  std::string TileAt(Share share) const;
  void EachOfTile(Share share, const std::function<void()>& body) {
    EachOfTile(
        share, [] {}, body);
  }
  void EachOfTile(Share share, const std::function<void()>& of_row, const std::function<void()>& body);
  // `const float* x`
  std::string PointerText(std::size_t k) const;
  std::string TileRowAddress(std::size_t k, const std::string& row) const;

  // ---- products.cc: tiles that functions of the prelude sum -------------------------------------

  // Values that a tile multiplies, one of its rows and one of its columns, if all that it does is to sum the products
  // of what lies in memory, for which the prelude has functions (umbra/prelude/tile.h).
  struct Factors {
    int row, column;
  };
  std::optional<Factors> FindFactors() const;
  // The tile, whose sums lie in memory afterwards: loops over them are left as loops, and rows beyond the last have
  // none.
  void ProductTile(const Factors& factors, const std::string& last);
  // A loop over the rows of a tile, which one is its r-th, and what is read and stored of it besides the factors.
  void OpenRows();
  std::string TileRow() const { return fmt::format("(j{} + r)", tile_.axis); }
  void DeclareRowPointers();

  // ---- panels.cc: copies of what the rows of tiles share ----------------------------------------

  // Is the innermost axis walked some indices at a time, for all rows before the next (KernelSignature::panels)?
  bool GoesByParts() const;
  // Such a part: its first index, how many there are, the operands from there on, and where sums are kept meanwhile.
  void OpenPart();
  void ClosePart();
  // Where the sums of a row are kept, those of a column on, or of the packet of the tile.
  std::string KeptSum(const plan::Reduction& reduction, const std::string& row, const std::string& column) const;
  std::string KeptSum(const plan::Reduction& reduction, const std::string& row) const;
  // Sums of a tile begin with what they have become before this part.
  void ResumeSums(const std::string& row);
  void KeepSums(const std::string& row);
  // Has the columns of a pass copied, or what is computed of them, that rows share.
  void DeclarePanels();
  void MakePanels();
  // Where a panel of what is computed has the packet of a step.
  std::string InPanel(const std::string& panel) const;
  // Asks for the columns of the next tile, which lie elsewhere for each index, of this operand or of all of which it
  // does.
  bool AsksForNextTile(int operand) const;
  void PrefetchNextTile();
  // Where an operand has the columns of a packet.
  std::string TileIndexOf(int operand) const;

  // The tile that is being written.
  struct {
    int axis = -1, rows = 1, packets = 1;
    bool pairs = false;  // are its rows all there, two by two at one address?
    bool called = false;  // does a function of the prelude sum it?
    std::string there;  // how many of its rows are there then
    std::string begin, end;  // of the rows of a band
    std::string lanes;
    std::vector<Share> shares;  // by value
    std::set<int> early;  // values that the reductions need
    std::set<int> panels;  // operands that are read where their panels are
    std::map<int, std::string> made;  // values that are, and which these are
    std::string first;  // of a part of the innermost axis; empty: all of it
    std::string steps, columns;  // of each part, and of the sums that are kept
    std::map<int, std::string> kept;  // where a part leaves the sums of each reduction, by its result
  } tile_;
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CPU_TILES_H_

// The function of a kernel for a CPU. One class writes it; a section of it stands in each of the files that its
// comments name.
#ifndef UMBRA_COMPILER_CODEGEN_CPU_EMITTER_H_
#define UMBRA_COMPILER_CODEGEN_CPU_EMITTER_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/values.h"
#include "compiler/plan/column_buffers.h"
#include "compiler/plan/guards.h"
#include "compiler/plan/moments.h"

namespace umbra::codegen {

class CpuEmitter : private ValueEmitter {
 public:
  CpuEmitter(const plan::Plan& plan, const Kernel& kernel, const SourceOptions& options, Writer* out)
      : ValueEmitter(plan, kernel, options, out) {}

  /// Writes the function; returns its name.
  std::string Run();

 private:
  // ---- kernel.cc: the function, its loops over rows and over packets of columns ----------------

  // For want of registers, which functions and tiles need many of. Kernels that walk rows together put few there, and
  // need the register that an aligned stack takes.
  bool PutsPacketsOnStack() const;
  // What rows are put together in that follow each other.
  void JoinRows();
  // Where umbra_args::extent goes on with what only some forms of the kernel take.
  std::size_t OwnNumbers() const {
    return signature_.axes.size() + signature_.numbers.size() + signature_.ranged.size();
  }
  void RowLoops(int axis);
  // Where ranges of the axes begin that a launch asks for; from and to where the kernel walks an axis.
  void DeclareRanges();
  std::string Begin(int axis) const;
  // Where as many whole steps as there are from `first` on to `last` end.
  static std::string WholeSteps(const std::string& first, const std::string& last, int step);
  std::string End(int axis) const { return axis == 0 && !Splits() ? "end" : ExtentName(axis); }
  // The vector axis is a row axis: a packet of columns at a time.
  void Columns(int axis);
  void ColumnBody(const std::string& c, const std::string& lanes);

  // ---- units.cc: few rows, whose blocks are worked on side by side -----------------------------

  void Units();
  void ReserveUnitNames();
  void DeclareFound();
  // The block's part of each axis that is cut.
  void UnitBlocks();
  bool IsLastCall() const { return phase_ == static_cast<int>(kernel_.phases.size()); }
  const Phase& CurrentPhase() const { return kernel_.phases[static_cast<std::size_t>(phase_)]; }
  // The values that the current phase needs, in order of evaluation.
  std::set<int> Reached() const;
  const plan::Reduction& ReductionOf(int result) const;
  void RowUnit();
  // Where blocks leave what they find of a result, for each column.
  std::string FoundAt(int id, const std::string& unit, const std::string& c) const;
  // Does the phase that is being written do no more than join what the blocks of each row have found of moments, for
  // the first of them? And has that been done to the value before?
  bool JoinsMoments() const { return moments_ && phase_ == 1; }
  bool IsJoined(int id) const { return moments_ && id == moments_->squares && phase_ > 1; }
  // Into how many parts the axis is cut.
  std::string PartsOf(int axis) const;
  // How many elements of a row `block` has, its number.
  std::string ElementsOf(const std::string& block) const;
  // Adds to `all` what blocks have found of the squares of moments: those away from their own means, and what these are
  // away from the center. `found`: what a block k has of a result.
  void JoinMoments(const std::string& all, const std::function<std::string(int result)>& found);
  // Of the block's elements in a packet of columns, and an array for those of all its columns, by its name.
  std::string MeanOfBlock() const;
  std::string DeclareCenter();
  // Leaves there what a block has found.
  void StoreFound(const plan::Reduction& reduction, const std::string& c, const std::string& lanes);
  // A value of rows, for a packet of columns: joined of what blocks found if it is reduced.
  void DeclareOfColumns(int id, const std::string& c, const std::string& lanes, Names* names);
  void ColumnUnit(const std::string& c, const std::string& lanes);
  // The same of whole packets, which are walked row by row.
  void ColumnUnits(const std::string& c, const std::string& first, const std::string& last);

  // ---- rows.cc: a row, or several phase by phase -----------------------------------------------

  // Are several rows walked at a time? Not those that wait for memory and for little else.
  bool TakesRowsTogether() const;
  // How many, as there are extents.
  void DeclareRowsTogether();
  // All rows of the innermost row axis.
  void RowsTogether(const std::string& begin, const std::string& end);
  // All phases of a row.
  void Row();
  // Operand pointers of a row, once all row axes that move them are known: all of them, or those of `used`.
  void RowPointers(const std::set<int>* used = nullptr);
  // The values that a phase is made of, and those that they are made of, in order of evaluation.
  std::set<int> ReachedFrom(const Phase& phase) const;
  void ReachFromFinal(std::set<int>* reached) const;
  void Reach(int id, std::set<int>* reached) const;
  std::set<int> UsedOperands(const Phase& phase, const std::set<int>& reached, bool is_last) const;
  std::set<int> UsedRowBuffers(const Phase& phase, const std::set<int>& reached) const;

  // ---- short_rows.cc: rows that are shorter than packets, which go across them ------------------

  // Do rows that packets go across lie side by side in some operand?
  bool HasShortRows() const;
  // Do results of what packets go across, such rows or a batch, go past the caches?
  bool StreamsAcross() const {
    return options_.variant.stores == runtime::Stores::kStreamed && (HasShortRows() || signature_.goes_across_batch());
  }
  // Do results of tiles go past the caches? Those of which a tile has whole lines do.
  bool StreamsTiles() const {
    return options_.variant.stores == runtime::Stores::kStreamed && options_.variant.packed && SharedAxis() >= 0;
  }
  bool HasWholeLines(DType type) const { return tile_.packets * width_ * static_cast<int>(SizeOf(type)) % kLine == 0; }
  // A packet's rows from `c` on.
  void ShortRows(const std::string& c, Names names);
  // Groups of packets from `first` on, where results that are written by turns go past the caches; where they end.
  std::string ShortRowsInTurns(const std::string& c, const std::string& first, const std::string& last);
  // Is the operand a result whose rows lie along what packets go across?
  bool IsWrittenInTurns(std::size_t k) const;
  int ElementAxis() const { return signature_.row_axes; }
  index_t ElementsOfShortRow() const { return signature_.axes[static_cast<std::size_t>(ElementAxis())].value; }
  // Does the operand have a row of a packet's lanes for each of them, of numbers as wide as they are?
  bool IsInShortRows(std::size_t k) const;
  // The first element, and how far rows and their elements lie apart.
  std::string ColumnsOf(std::size_t k, const std::string& c) const;
  std::string DeclareColumns(DType type, const std::string& name, index_t count, Names* names);
  // Columns of the rows that gathers take their elements from.
  void LoadGatheredRows(const Phase& phase, const std::string& c, Names* names);
  bool IsFromShortRows(int id) const;
  // What a phase computes, but for what was kept.
  std::set<int> NeededOf(const Phase& phase, const std::map<int, std::string>& kept) const;
  // Is the value a function of some length, which a later phase takes as well?
  bool IsKeptFrom(std::size_t p, int id) const;

  // ---- batches.cc: many small things, each of which is a lane of packets --------------------------

  // The lanes from `first` to `last`, `c` the first of a packet.
  void Batch(const std::string& c, const std::string& first, const std::string& last);
  // All points of a packet, or of the first `lanes` of one.
  void BatchPacket(const std::string& c, const std::string& lanes);
  // Does each lane have its elements of the operand side by side?
  bool IsInLanes(std::size_t k) const;
  index_t ElementsOfLane(std::size_t k) const;

  // Values of columns that elements of the phase are divided by.
  std::set<int> DivisorsOf(const Phase& phase) const;
  // What makes such quotients multiplications, for each packet of a block.
  void DeclareDivisors(const Phase& phase, const std::string& c, const std::string& block);
  void ForgetDivisors(const Phase& phase);

  // ---- few_columns.cc: several steps of few columns at a time ----------------------------------

  bool TakesFewColumns() const { return options_.variant.few_columns && signature_.few_columns; }
  // Packets of kStepsOfFew steps.
  int FewColumnsPackets() const;
  // How many columns there are, if they are known and so few that what they come to has a register for each packet;
  // else 0.
  index_t KnownFewColumns() const;
  void FewColumns(const std::string& c, const std::string& columns);
  // Packets of the columns themselves, `body` for the lanes of each that count.
  void EachOfColumns(const std::string& c, const std::string& columns,
                     const std::function<void(const std::string& lanes)>& body);
  void FewColumnsPhase(const std::vector<int>& values, const Phase& phase, const std::string& c,
                       const std::string& columns);
  // Do elements of a phase, or what it is for, need the value?
  bool IsReadWithin(int id) const;
  // The packet that the last steps end within.
  void LastOfSteps(const Phase& phase, const std::string& c);

  // ---- columns.cc: blocks of columns, walked row by row ----------------------------------------

  using Kept = std::vector<std::string>;  // names of arrays with a packet for each of the block

  // Are columns walked so? Not those of windows, whose few elements lie near each other for any packet, nor what reads
  // at computed positions, unless a guard is to be asked once for all of a block.
  bool WalksBlocksOfColumns() const;
  // Is what several phases go through kept in scratch (KernelSignature::column_buffers)?
  // Not where packets are parts of lines: those of several rows would take turns at what goes past the caches.
  bool KeepsColumns() const {
    return options_.variant.packed && !signature_.column_buffers.empty() && RegisterBytes(options_.target) == kLine &&
           !Splits() && WalksBlocksOfColumns();
  }
  void DeclareColumnBuffers();
  // Has the phase `p` keep what it is the first to read, and read what earlier ones have kept.
  void KeepInPhase(int p);
  // Keeps the value, if it is an element that the phase has read to be kept, or asks for the one of the next block.
  void KeepElement(int id, const std::string& index);
  // How far ahead the next block of columns lies in what is kept of operands: next to this one, or in the next row.
  void DeclareNextColumns(const std::string& block, const std::string& first, const std::string& last);
  // Opens the loop over blocks of the whole packets from `first` to `last`; the name of where a block begins.
  std::string OpenColumnBlock(const std::string& c, const std::string& first, const std::string& last);
  // Are results of a phase fetched once for several rows? Not what is stored past the caches, line after line, nor what
  // needs more than there are registers for.
  bool TakesRowsAtOnce(const Phase& phase) const;
  // Are rows so short that several lie on a page, and come from memory? Processors foresee only what is read in its
  // order.
  void DeclareByRow(const std::string& first, const std::string& last);
  // Is what one phase has stored read by another?
  bool ReadsResults() const;
  // Do elements that a phase stores, which reduces nothing, go past the caches?
  bool StreamsColumns(const Phase& phase) const;
  // Of the widest operand that is read along the columns.
  int ElementBytes() const;
  // Is what the columns read more than caches have?
  std::string ComesFromMemory(const std::string& first, const std::string& last) const;
  // Whole packets of the columns from `first` to `last`.
  void ColumnBlocks(const std::string& c, const std::string& first, const std::string& last);
  // Is the value of a row kept for each packet of a block, since something else reads it than values of rows beside it?
  // Of single elements, positions are, too.
  bool IsKept(int id) const;
  // Packets of columns in a block; where a guard leaves few steps, in as many as the cache keeps.
  int BlockPackets() const;
  int BlockPackets(int kept_bytes) const;
  // Memory for what is kept of each packet of a block: of `values`, which are of rows, and what the phase reduces.
  Kept DeclareKept(const std::vector<int>& values, const Phase& phase);
  void EachPacket(const std::string& c, const std::string& block, const std::function<void()>& body);
  // What a phase begins with: the values of its rows, and nothing reduced yet.
  void BeginPhase(const std::vector<int>& values, const Phase& phase, const Kept& kept, const std::string& c,
                  const std::string& block, const std::string& lanes);
  // `body` with what the phase reduces in registers.
  void InRegisters(const Phase& phase, const std::function<void()>& body);
  // All elements of a block of columns, row by row.
  void WalkBlock(const Phase& phase, const std::string& c, const std::string& block, int axis);

  // ---- keys.cc: rows that steps bring the positions of -----------------------------------------

  // The row axis of which steps bring the position, if its rows are walked so; -1 if not.
  int KeyAxis() const;
  // All rows of the axis and all columns: whole packets of these, then what is left.
  void KeyRows();
  // Do the values read an operand that moves with the row, which is not known before the key is?
  bool ReadRow(std::vector<int> ids) const;
  // The columns from `block` to block_.end, of some rows at a time.
  void KeyBlocks(const std::string& c, const std::string& block, const std::string& lanes);
  void EachKeptRow(const std::string& i, const std::vector<int>& values, const std::vector<plan::Store>& stores,
                   const std::function<void()>& body);
  // Pointers of a row to what the values and the stores need.
  void PointersTo(const std::vector<int>& values, const std::vector<plan::Store>& stores);
  // Is the condition that the row is the step's, and nothing else?
  bool IsComparisonOf(int condition, const plan::StepKey& key) const;

  // ---- tiles.cc: tiles of rows that share what they read ---------------------------------------

  // What depends on the row of a tile, and on the packet of columns.
  struct Share {
    bool row = false, column = false;
  };

  // The row axis whose rows are computed together, or -1.
  int SharedAxis() const;
  // All rows of the shared axis and all columns.
  void SharedRows();
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

  // ---- transposed.cc: tiles that are transposed in registers -----------------------------------

  void ReserveTransposedNames();
  // The row axes from `axis` on, in blocks.
  void TransposedLoops(int axis);
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
  int SizeOfElement(std::size_t operand) const {
    return static_cast<int>(SizeOf(OperandType(static_cast<int>(operand))));
  }
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

  // ---- phases.cc: a phase within a row or a packet of columns ----------------------------------

  // Are columns walked in blocks, for want of tiles?
  bool CutsColumns() const { return IsBlocked() && transposed_axis_ < 0; }
  bool IsCut(int axis) const;
  std::string BlockBegin(int axis) const { return IsCut(axis) ? fmt::format("b{}", axis) : Begin(axis); }
  std::string BlockEnd(int axis) const {
    if (axis + 1 == kernel_.rank() && !tile_.count.empty()) return tile_.count;
    return IsCut(axis) ? fmt::format("e{}", axis) : ExtentName(axis);
  }
  std::string VectorBegin() const { return CutsColumns() ? "j0" : BlockBegin(vector_axis_); }
  std::string VectorEnd() const { return CutsColumns() ? "j1" : BlockEnd(vector_axis_); }
  // True if the vector loop ends with a whole step of this many elements.
  bool DividesExtent(int step) const;

  void ColumnLoop(const Phase& phase, const std::string& c, const std::string& lanes, Names* names);
  // One element of each column of a packet, joined with what they have come to.
  void ColumnElement(const Phase& phase, const std::string& c, const std::string& lanes, Names names);
  // `body` where the phase's guard holds.
  void WhereGuarded(const Phase& phase, const std::function<void()>& body);
  void InnerLoops(int axis, int end, const std::function<void()>& body);
  void RowLoop(const Phase& phase);
  void StoreRow();
  void DeclareRowValue(int id);
  void ElementLoop(const Phase& phase);

  // Runs of the vector axis along which the quotients of positions stay the same.
  void RunLoop(const Phase& phase);
  void RunPackets(const Phase& phase, const Runs& runs, const std::string& i, const std::string& run);
  // What `packets` writes, for each outcome of the conditions that are the same along a run.
  void ByChoice(const Phase& phase, const std::function<bool(int)>& can_know, const std::string& i,
                const std::function<void()>& packets);

  // Can packets of the store that begin anywhere be put together to whole lines?
  bool MakesLines(const plan::Store& store) const;
  // `anywhere`: does the first line have something else before it?
  void DeclareStreamedRow(const plan::Store& store, const std::string& address, bool anywhere = false);
  void FinishStreamedRows();
  // What other threads learn of after the kernel is in memory.
  void EndStreams();

  // Groups of packets side by side. Returns where what is left begins.
  std::string GroupLoop(const Phase& phase, const std::string& i, const std::string& last);
  // What `body` writes is of groups of packets.
  void InGroups(const std::function<void()>& body);
  // Does the phase go by groups of packets alone?
  bool IsAllGroups(const Phase& phase) const;
  // Does an element take arithmetic only?
  bool IsLight(const Phase& phase) const;

  // Partial results of the phase's reductions along the vector axis. The same for all targets and variants.
  int Partials(const Phase& phase) const;
  // Elements of a whole step of a reduction.
  int StepOf(const Phase& phase) const;
  // Whole steps of as many elements as there are partial results, or as a group of packets has, then steps of which
  // some lanes count.
  void ReductionLoop(const Phase& phase);
  void GroupsStep(const Phase& phase, const std::string& i, int packets);
  void ReductionStep(const Phase& phase, const std::string& i, int count, const std::string& last);
  void ReductionBody(const Phase& phase, const std::string& index, const std::string& lanes);

  // What a phase does at one point. `reduce` adds the point to what the phase reduces: before results are stored, as
  // they may take the place of operands.
  void ElementBody(
      const Phase& phase, const std::string& index, const std::string& lanes, Names* names,
      const std::function<void()>& reduce = [] {});
  // Keeps the value for later phases, if it is to be.
  void KeepPacket(int id);
  void StorePacket(const plan::Store& store, const std::string& index, const std::string& lanes);
  void Stream(DType type, const std::string& address, const Expr& e);
  // `total` and one more element.
  std::string Accumulate(const plan::Reduction& reduction, const Expr& total) const;

  // ---- prefetch.cc: what is asked for before it is needed --------------------------------------

  // The phase during which memory would have nothing to do: it goes once more through a row that is in the caches, and
  // writes none, or past the caches. Null if there is none.
  const Phase* IdlePhase() const;
  // How far ahead in the operands of rows the idle phase asks for rows to come. Where it writes past the caches the
  // launch says how far.
  void DeclareAhead();
  // In the idle phase, prefetches the elements of rows to come that lie where `count` elements from `index` do.
  void PrefetchRows(const Phase& phase, const std::string& index, int count);
  // Asks for what element-wise work on operands too large for the caches reads some time after the `count` elements
  // from `index`, as far ahead as the launch says, if it waits for memory and for arithmetic in turns.
  void PrefetchNextPage(const std::string& index, int count);
  // Rows that lie where memory says, as those of a table: where the one lies that the phase needs some rows later.
  void DeclareScattered(const Phase& phase);
  // Asks for the `count` elements from `index` of such rows.
  void PrefetchScattered(const std::string& index, int count);
  // Asks for what gathers of the phase read where the slowest of the positions that grow from run to run has grown once
  // more: of images the same row of the next one, which the processor does not see coming.
  void PrefetchNextRuns(const Phase& phase, const Runs& runs, const std::string& index);
  // Asks for `count` elements, into the first cache or the second.
  void Prefetch(DType type, const std::string& address, int count, int cache);

  // Are there rows, walked to their ends one after the other? Those of several axes have their packets along the last.
  bool InRows() const;
  bool RowByRow() const { return InRows() && vector_axis_ == signature_.row_axes; }
  std::string ElementsOfRow() const;
  int RowAxis() const { return signature_.row_axes - 1; }
  // Is one element after the other read?
  bool IsReadAlong(int operand) const;
  bool HasRows(int operand) const {
    return AxisDim(signature_.operands[static_cast<std::size_t>(operand)], RowAxis()) >= 0;
  }
  std::string RowsAhead(DType type, const std::string& together, const std::string& ahead) const;
  // Does the gather read a row from its beginning to its end, one that positions in memory tell?
  bool IsRowOfTable(int id) const;
  // Is the position one of the row that a gather tells, and nothing that was loaded for this row alone?
  bool ReadsMemory(int id) const;
  std::string DeclarePlace(int id, DType of);

  // ---- what they keep --------------------------------------------------------------------------

  // Units.
  int phase_ = 0;  // that is being written, of a kernel whose rows are split
  std::map<int, std::string> from_;  // by axis: where its range begins
  std::map<int, std::string> found_;  // by reduced value: what blocks found
  std::optional<plan::Moments> moments_;  // that blocks find at once

  // Rows.
  std::string row_bytes_;  // of a row's buffers
  std::map<int, std::string> kept_results_;  // where reductions of earlier phases are kept, by result

  // Short rows: the text of the current element.
  std::map<int, std::string> stored_at_hand_;  // of operands that are written later
  std::map<int, std::string> kept_here_;  // of values that the phase keeps, the array of their elements

  // Columns and keys: names of a block of columns.
  struct {
    std::string end, row, packet;  // where its columns end, the first of some rows, a packet of it
    std::string before;  // "n + ", of its packets that are those of rows before
    std::string by_row;  // is it walked row by row? Empty: it is not
    int packets = 0;  // that what is kept has room for
  } block_;

  // Columns: what is kept of a block.
  struct {
    std::string columns;  // of a block
    std::vector<plan::KeptColumns> what;  // empty: nothing
    std::vector<std::string> names;  // of the buffers
    std::map<int, std::string> at;  // where the phase that is being written keeps operands
    std::map<int, std::string> ahead;  // by operand: how far ahead its next block is
    bool asks = false;  // is that asked for, as the phase goes through what is kept, and no further?
    bool streams = false,
         joins = false;  // are elements being written that go past the caches, from lines on or from anywhere?
  } kept_columns_;

  // Keys: names of the rows that are kept.
  struct {
    std::string most, first, last,
        count;  // at a time at most, the first of them, the one after the last, how many they are
  } kept_rows_;

  // Tiles: the one that is being written.
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
    std::string first, count;  // of a part of the innermost axis; empty: all of it
    std::string steps, columns;  // of each part, and of the sums that are kept
    std::map<int, std::string> kept;  // where a part leaves the sums of each reduction, by its result
  } tile_;

  // Transposed operands.
  int transposed_axis_ = -1;  // the row axis of their tiles; none: -1
  std::map<int, std::string> next_block_;  // by operand: how far from a tile its place in the next block is
  std::string asks_;  // is the processor one that has to be asked? Empty: no code for one
  std::string block_rows_, block_columns_;
  std::string far_;  // do results lie far off? Empty: no one asks

  // Phases.
  std::map<int, std::string> results_;  // reductions that are kept for another phase's loop, and where
  std::map<int, std::string> streamed_;  // rows that runs are streamed to, by operand
  bool has_streamed_ = false;  // does the kernel write past the caches?

  // Prefetches.
  std::map<int, std::string> ahead_;  // by operand: how far ahead rows are fetched
  std::map<int, std::map<int, Expr>> scattered_;  // by gather: its places some rows later, by value
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CPU_EMITTER_H_

// Columns, where the vector axis is a row axis: a packet at a time; in blocks that are walked row by row, or for the
// keys that steps bring; several steps of few of them at a time; or across what is shorter than packets.
#ifndef UMBRA_COMPILER_CODEGEN_CPU_COLUMNS_H_
#define UMBRA_COMPILER_CODEGEN_CPU_COLUMNS_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/cpu/rows.h"
#include "compiler/plan/column_buffers.h"
#include "compiler/plan/guards.h"
#include "runtime/rows_together.h"

namespace umbra::codegen {

class ColumnEmitter : protected RowEmitter {
 protected:
  using RowEmitter::RowEmitter;

  // A packet of columns at a time.
  void Columns(int axis);
  // Is what several phases go through kept in scratch (KernelSignature::column_buffers)?
  // Not where packets are parts of lines: those of several rows would take turns at what goes past the caches.
  bool KeepsColumns() const {
    return options_.variant.packed && !signature_.column_buffers.empty() && RegisterBytes(options_.target) == kLine &&
           !Splits() && WalksBlocksOfColumns();
  }
  void DeclareColumnBuffers();
  // The row axis of which steps bring the position, if its rows are walked so; -1 if not.
  int KeyAxis() const;
  // All rows of the axis and all columns: whole packets of these, then what is left.
  void KeyRows();

  // Keeps the value, if it is an element that the phase has read to be kept, or asks for the one of the next block.
  void KeepElement(int id, const std::string& index) override;
  void ColumnElements(const Phase& phase, const std::string& c, const std::string& lanes, Names* names,
                      const std::function<void()>& body) override;
  // Short rows within other inner axes are loaded for each of their indices.
  void BeforeInnerLoop(int axis) override;
  bool StreamsPackets(DType type) const override {
    return RowEmitter::StreamsPackets(type) || kept_columns_.streams || StreamsAcross();
  }

 private:
  // ---- columns.cc: blocks of columns, walked row by row ----------------------------------------

  using Kept = std::vector<std::string>;  // names of arrays with a packet for each of the block

  void ColumnBody(const std::string& c, const std::string& lanes);

  // Are columns walked so? Not those of windows, whose few elements lie near each other for any packet, nor what reads
  // at computed positions, unless a guard is to be asked once for all of a block.
  bool WalksBlocksOfColumns() const;
  // All phases of a block.
  void BlockBody(const std::string& c, const std::string& block);
  // Has the phase `p` keep what it is the first to read, and read what earlier ones have kept.
  void KeepInPhase(int p);
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
  // How many columns there are from `first` to `last`.
  static std::string CountText(const std::string& first, const std::string& last);
  // Is what the columns read more than caches have?
  std::string ComesFromMemory(const std::string& first, const std::string& last) const;
  // Whole packets of the columns from `first` to `last`.
  void ColumnBlocks(const std::string& c, const std::string& first, const std::string& last);
  // The same of a unit.
  void ColumnUnits(const std::string& c, const std::string& first, const std::string& last);
  // An array for the means of a block's columns, by its name.
  std::string DeclareCenter();
  // Is the value of a row kept for each packet of a block, since something else reads it than values of rows beside it?
  // Of single elements, positions are, too.
  bool IsKept(int id) const;
  // Packets that are kept for each packet of columns.
  int KeptOfPacket() const;
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

  // Values of columns that elements of the phase are divided by.
  std::set<int> DivisorsOf(const Phase& phase) const;
  // What makes such quotients multiplications, for each packet of a block.
  void DeclareDivisors(const Phase& phase, const std::string& c, const std::string& block);
  void ForgetDivisors(const Phase& phase);

  // ---- narrow_columns.cc: few packets, what they come to in registers ----------------------------

  // May columns be so few, which is told when the kernel runs? Where parts of packets are as fast as packets, and an
  // element takes arithmetic only.
  bool MayBeNarrow() const;
  // "if (they are few) { ... } else if (they are some) { ...", with the last one open.
  void NarrowColumns(const std::string& c, const std::string& first, const std::string& last);
  // All columns, in `packets` side by side.
  void SideBySide(const std::string& c, const std::string& first, const std::string& last, int packets);
  void EachSideBySide(const std::string& c, const std::string& first, const std::function<void()>& body);

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

  // ---- keys.cc: rows that steps bring the positions of -----------------------------------------

  // Do the values read an operand that moves with the row, which is not known before the key is?
  bool ReadRow(std::vector<int> ids) const;
  // The columns from `block` to block_.end, of some rows at a time.
  void KeyBlocks(const std::string& c, const std::string& block, const std::string& lanes);
  // Are the results what the steps come to, and nothing else, so that these are joined with them one by one?
  bool JoinsInResults() const;
  void KeyInResults(const std::string& c, const std::string& block, const std::string& lanes);
  // For each step, whose row is index `i`, if that is among those that are worked on.
  void EachStep(const std::string& i, const std::function<void()>& body);
  void EachKeptRow(const std::string& i, const std::vector<int>& values, const std::vector<plan::Store>& stores,
                   const std::function<void()>& body);
  // Pointers of a row to what the values and the stores need.
  void PointersTo(const std::vector<int>& values, const std::vector<plan::Store>& stores);
  // Is the condition that the row is the step's, and nothing else?
  bool IsComparisonOf(int condition, const plan::StepKey& key) const;

  // ---- short_rows.cc: rows that are shorter than packets, which go across them ------------------

  // Do rows that packets go across lie side by side in some operand?
  bool HasShortRows() const;
  // Do results of what packets go across, such rows or a batch, go past the caches?
  bool StreamsAcross() const {
    return options_.variant.stores == runtime::Stores::kStreamed && (HasShortRows() || signature_.goes_across_batch());
  }
  // Are they all operands' own, whose elements lie side by side?
  bool HasDenseRows() const;
  // A packet's rows from `c` on, or the first `lanes` of one, where rows are dense.
  void ShortRows(const std::string& c, const std::string& lanes, Names names);
  // Groups of packets from `first` on, where results that are written by turns go past the caches; where they end.
  std::string ShortRowsInTurns(const std::string& c, const std::string& first, const std::string& last);
  // Is the operand a result whose rows lie along what packets go across?
  bool IsWrittenInTurns(std::size_t k) const;
  int ElementAxis() const { return kernel_.rank() - 1; }
  bool RowsAreOne() const { return runtime::RowsAreOne(signature_); }
  // The axes of short rows.
  std::vector<int> ElementAxes() const;
  index_t ElementsOfShortRow() const { return ElementsAlong(ElementAxes()); }
  index_t ElementsAlong(const std::vector<int>& axes) const;
  // "[i2 * 3 + i3]": which one it is of elements that lie one after the other along these axes, from the first on.
  std::string ElementIndex(const std::vector<int>& axes) const;
  // "[i2][i3]"
  static std::string IndicesOf(const std::vector<int>& axes);
  // The axes along which an operand has its short rows, from the outermost on, and those of as many rows.
  struct ShortRow {
    std::vector<int> side_by_side, apart;
  };
  ShortRow ShortRowOf(std::size_t k) const;
  bool HaveSameRows(std::size_t a, std::size_t b) const;
  void EachApart(const ShortRow& row, const std::function<void()>& body);
  // Does the operand have a row of a packet's lanes for each of them, of numbers as wide as they are?
  bool IsInShortRows(std::size_t k) const;
  // "load_columns(...);", or what else is done with rows and their columns.
  void MoveColumns(const char* how, std::size_t k, const std::string& c, const std::string& lanes,
                   const std::string& columns);
  std::string DeclareColumns(DType type, const std::string& name, index_t count, Names* names);
  // Columns of the rows that gathers take their elements from.
  void LoadGatheredRows(const Phase& phase, const std::string& c, const std::map<int, std::string>& turned,
                        Names* names);
  bool IsOfRowsOf(const Value& gather, int operand) const;
  bool IsFromShortRows(int id) const;
  // What a phase computes, but for what was kept.
  std::set<int> NeededOf(const Phase& phase, const std::map<int, std::string>& kept) const;
  // Is the value a function of some length, which a later phase takes as well?
  bool IsKeptFrom(std::size_t p, int id) const;
  // Keeps the value for later phases, if it is to be.
  void KeepPacket(int id);

  // ---- places.cc: rows whose places choose -----------------------------------------------------

  // Places of a row from `begin` to `end`, and what conditions are there.
  struct PlaceRun {
    index_t begin, end;
    std::map<int, bool> decided;
    std::set<int> reached;  // values that are computed for it
  };
  // Where places choose; else none.
  std::vector<PlaceRun> RunsOfPlaces(const Phase& phase) const;
  std::set<int> SharedByRuns(const Phase& phase, const std::vector<PlaceRun>& runs) const;
  // Of a place, by axis: conditions that follow from its indices.
  std::map<int, bool> DecidedAt(const Phase& phase, const std::map<int, index_t>& place) const;
  std::optional<index_t> KnownAt(int id, const std::map<int, index_t>& place,
                                 std::map<int, std::optional<index_t>>* known) const;
  // Do points of a batch choose, which are few?
  bool ChoosesInBatch() const;

  // ---- batches.cc: many small things, each of which is a lane of packets --------------------------

  // The lanes from `first` to `last`, `c` the first of a packet.
  void Batch(const std::string& c, const std::string& first, const std::string& last);
  // All points of a packet, or of the first `lanes` of one.
  void BatchPacket(const std::string& c, const std::string& lanes);
  // Does each lane have its elements of the operand side by side?
  bool IsInLanes(std::size_t k) const;
  // Along which a lane has elements of the operand, from the outermost on.
  std::vector<int> AxesOfLane(std::size_t k) const;
  index_t ElementsOfLane(std::size_t k) const;

  // Names of a block of columns.
  struct {
    std::string end, row, packet;  // where its columns end, the first of some rows, a packet of it
    std::string before;  // "n + ", of its packets that are those of rows before
    std::string by_row;  // is it walked row by row? Empty: it is not
    bool side_by_side = false;  // is it all columns, as they are few?
    std::string lanes;  // of a packet that count; empty: all
    int packets = 0;  // that what is kept has room for
  } block_;

  // What is kept of a block.
  struct {
    std::string columns;  // of a block
    std::vector<plan::KeptColumns> what;  // empty: nothing
    std::vector<std::string> names;  // of the buffers
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

  bool in_short_rows_ = false;  // are packets across short rows being written?
  std::map<int, index_t> fixed_;  // of a batch, by axis: the index that is walked alone
  bool rolls_ = false;  // of those, lanes that are done once?
  std::function<void()> load_short_rows_;  // within other inner axes
  std::map<int, std::string> kept_here_;  // of values that short rows keep, the array of their elements
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CPU_COLUMNS_H_

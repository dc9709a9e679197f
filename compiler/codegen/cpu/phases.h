// What all ways through a kernel have in common: ranges of its axes, what a phase does within a row or a packet of
// columns, what goes past the caches, and what is asked for before it is needed.
#ifndef UMBRA_COMPILER_CODEGEN_CPU_PHASES_H_
#define UMBRA_COMPILER_CODEGEN_CPU_PHASES_H_

#include <functional>
#include <map>
#include <set>
#include <string>

#include "compiler/codegen/values.h"

namespace umbra::codegen {

class PhaseEmitter : protected ValueEmitter {
 protected:
  using ValueEmitter::ValueEmitter;

  // ---- phases.cc: ranges, and operands of rows -------------------------------------------------

  // Where umbra_args::extent goes on with what only some forms of the kernel take.
  std::size_t OwnNumbers() const {
    return signature_.axes.size() + signature_.numbers.size() + signature_.ranged.size();
  }
  // Where ranges of the axes begin that a launch asks for; from and to where the kernel walks an axis.
  void DeclareRanges();
  std::string Begin(int axis) const;
  std::string End(int axis) const { return axis == 0 && !Splits() ? "end" : ExtentName(axis); }
  // Where as many whole steps as there are from `first` on to `last` end.
  static std::string WholeSteps(const std::string& first, const std::string& last, int step);

  // Are columns walked in blocks, for want of tiles?
  bool CutsColumns() const { return IsBlocked() && (Splits() || TileAxis() < 0); }
  bool IsCut(int axis) const;
  std::string BlockBegin(int axis) const { return IsCut(axis) ? fmt::format("b{}", axis) : Begin(axis); }
  std::string BlockEnd(int axis) const {
    if (axis + 1 == kernel_.rank() && !part_count_.empty()) return part_count_;
    return IsCut(axis) ? fmt::format("e{}", axis) : ExtentName(axis);
  }

  int SizeOfElement(std::size_t operand) const {
    return static_cast<int>(SizeOf(OperandType(static_cast<int>(operand))));
  }
  // The last of the axes whose indices rows, or columns, or lanes have in common.
  int LastOfRows() const { return (columns_ ? vector_axis_ : signature_.row_axes) - 1; }
  // Operand pointers of a row, once all row axes that move them are known: all of them, or those of `used`.
  void RowPointers(const std::set<int>* used = nullptr);
  std::set<int> UsedOperands(const Phase& phase, const std::set<int>& reached, bool is_last) const;

  // ---- phases.cc: a phase within a row or a packet of columns ----------------------------------

  void ColumnLoop(const Phase& phase, const std::string& c, const std::string& lanes, Names* names);
  // One element of each column of a packet, joined with what they have come to.
  void ColumnElement(const Phase& phase, const std::string& c, const std::string& lanes, Names names);
  // `body` where the phase's guard holds.
  void WhereGuarded(const Phase& phase, const std::function<void()>& body);
  void InnerLoops(int axis, int end, const std::function<void()>& body);
  void RowLoop(const Phase& phase);
  void StoreRow();
  void DeclareRowValue(int id);

  // Can packets of the store that begin anywhere be put together to whole lines?
  bool MakesLines(const plan::Store& store) const;
  // `anywhere`: does the first line have something else before it?
  void DeclareStreamedRow(const plan::Store& store, const std::string& address, bool anywhere = false);
  void FinishStreamedRows();
  // What other threads learn of after the kernel is in memory.
  void EndStreams();

  // Does the phase go by groups of packets alone?
  bool IsAllGroups(const Phase& phase) const;
  // Does an element take arithmetic only?
  bool IsLight(const Phase& phase) const;

  // How many elements of the packet at `index` lie before `last`.
  void DeclareLanes(const std::string& index, const std::string& last);

  // What a phase does at one point. `reduce` adds the point to what the phase reduces: before results are stored, as
  // they may take the place of operands.
  void ElementBody(
      const Phase& phase, const std::string& index, const std::string& lanes, Names* names,
      const std::function<void()>& reduce = [] {});
  void StorePacket(const plan::Store& store, const std::string& index, const std::string& lanes);
  // `total` and one more element.
  std::string Accumulate(const plan::Reduction& reduction, const Expr& total) const;

  // What the phase's walk does with a value of an element once it is there.
  virtual void KeepElement(int id, const std::string& index) = 0;
  // `body` for each element of columns.
  virtual void ColumnElements(const Phase& phase, const std::string& c, const std::string& lanes, Names* names,
                              const std::function<void()>& body);
  // What is written before the loop over an inner axis.
  virtual void BeforeInnerLoop(int /*axis*/) {}
  // Do whole packets of the type that are stored now go past the caches?
  virtual bool StreamsPackets(DType /*type*/) const { return Streams() && runs_.alike.empty(); }

  // ---- prefetch.cc: what is asked for before it is needed --------------------------------------

  // How far ahead in the operands of rows the idle phase asks for rows to come. Where it writes past the caches the
  // launch says how far.
  void DeclareAhead();
  // Rows that lie where memory says, as those of a table: where the one lies that the phase needs some rows later.
  void DeclareScattered(const Phase& phase);
  // Asks for `count` elements, into the first cache or the second.
  void Prefetch(DType type, const std::string& address, int count, int cache);

  std::string ElementsOfRow() const;
  // Is one element after the other read?
  bool IsReadAlong(int operand) const;

  // ---- what who walks a phase says of it -------------------------------------------------------

  std::string part_count_;  // of the innermost axis, where a part of it is walked; empty: all of it
  std::map<int, std::string> results_;  // reductions that are kept for another phase's loop, and where
  std::map<int, std::string> stored_at_hand_;  // operands that are written later, and the text of the current element
  std::map<int, std::string> kept_at_;  // operands that are kept in scratch, and where a packet is
  std::map<int, std::string> streamed_;  // rows that runs are streamed to, by operand
  bool has_streamed_ = false;  // does the kernel write past the caches?

 private:
  // ---- phases.cc -------------------------------------------------------------------------------

  std::string VectorBegin() const { return CutsColumns() ? "j0" : BlockBegin(vector_axis_); }
  std::string VectorEnd() const { return CutsColumns() ? "j1" : BlockEnd(vector_axis_); }
  // True if the vector loop ends with a whole step of this many elements.
  bool DividesExtent(int step) const;
  void ElementLoop(const Phase& phase);
  // One for each outcome of the conditions that are the same for all of a row.
  void ElementLoops(const Phase& phase);

  // Runs of the vector axis along which the quotients of positions stay the same.
  void RunLoop(const Phase& phase);
  void RunPackets(const Phase& phase, const Runs& runs, const std::string& i, const std::string& run);
  // What `packets` writes, for each outcome of the conditions that are the same along a run.
  void ByChoice(const Phase& phase, const std::function<bool(int)>& can_know, const std::string& i,
                const std::function<void()>& packets);

  // Groups of packets side by side. Returns where what is left begins.
  std::string GroupLoop(const Phase& phase, const std::string& i, const std::string& last);
  // What `body` writes is of groups of packets.
  void InGroups(const std::function<void()>& body);

  // Partial results of the phase's reductions along the vector axis. The same for all targets and variants.
  int Partials(const Phase& phase) const;
  // Elements of a whole step of a reduction.
  int StepOf(const Phase& phase) const;
  // Whole steps of as many elements as there are partial results, or as a group of packets has, then steps of which
  // some lanes count.
  void ReductionLoop(const Phase& phase);
  void GroupsStep(const Phase& phase, const std::string& i, int packets);
  // Packets that elements beyond the last step of so many belong to, as far as is known: at most `count` at a time.
  int PacketsOfRest(int step, int count) const;
  void ReductionStep(const Phase& phase, const std::string& i, int count, const std::string& last);
  void ReductionBody(const Phase& phase, const std::string& index, const std::string& lanes);

  void Stream(DType type, const std::string& address, const Expr& e);

  // ---- prefetch.cc -----------------------------------------------------------------------------

  // The phase during which memory would have nothing to do: it goes once more through a row that is in the caches, and
  // writes none, or past the caches. Null if there is none.
  const Phase* IdlePhase() const;
  // In the idle phase, prefetches the elements of rows to come that lie where `count` elements from `index` do.
  void PrefetchRows(const Phase& phase, const std::string& index, int count);
  // Asks for what element-wise work on operands too large for the caches reads some time after the `count` elements
  // from `index`, as far ahead as the launch says, if it waits for memory and for arithmetic in turns.
  void PrefetchNextPage(const std::string& index, int count);
  // Asks for the `count` elements from `index` of scattered rows.
  void PrefetchScattered(const std::string& index, int count);
  // Asks for what gathers of the phase read where the slowest of the positions that grow from run to run has grown once
  // more: of images the same row of the next one, which the processor does not see coming.
  void PrefetchNextRuns(const Phase& phase, const Runs& runs, const std::string& index);

  // Are there rows, walked to their ends one after the other? Those of several axes have their packets along the last.
  bool InRows() const;
  bool RowByRow() const { return InRows() && vector_axis_ == signature_.row_axes; }
  int RowAxis() const { return signature_.row_axes - 1; }
  bool HasRows(int operand) const {
    return AxisDim(signature_.operands[static_cast<std::size_t>(operand)], RowAxis()) >= 0;
  }
  std::string RowsAhead(DType type, const std::string& together, const std::string& ahead) const;
  // Does the gather read a row from its beginning to its end, one that positions in memory tell?
  bool IsRowOfTable(int id) const;
  // Is the position one of the row that a gather tells, and nothing that was loaded for this row alone?
  bool ReadsMemory(int id) const;
  std::string DeclarePlace(int id, DType of);

  std::map<int, std::string> from_;  // by axis: where its range begins
  std::map<int, std::string> ahead_;  // by operand: how far ahead rows are fetched
  std::map<int, std::map<int, Expr>> scattered_;  // by gather: its places some rows later, by value
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CPU_PHASES_H_

// Rows: one by one, several phase by phase, or few, whose blocks are worked on side by side and leave what they find in
// scratch.
#ifndef UMBRA_COMPILER_CODEGEN_CPU_ROWS_H_
#define UMBRA_COMPILER_CODEGEN_CPU_ROWS_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "compiler/codegen/cpu/transposed.h"
#include "compiler/plan/moments.h"

namespace umbra::codegen {

class RowEmitter : protected TransposedEmitter {
 protected:
  using TransposedEmitter::TransposedEmitter;

  // ---- rows.cc: a row, or several phase by phase -----------------------------------------------

  // Are several rows walked at a time? Not those that wait for memory and for little else.
  bool TakesRowsTogether() const;
  // How many, as there are extents.
  void DeclareRowsTogether();
  // All rows of the innermost row axis.
  void RowsTogether(const std::string& begin, const std::string& end);
  // All phases of a row.
  void Row();

  // ---- units.cc: few rows, whose blocks are worked on side by side -----------------------------

  // All units of a call; `columns` walks those of one.
  void Units(const std::function<void()>& columns);
  void ReserveUnitNames();
  bool IsLastCall() const { return phase_ == static_cast<int>(kernel_.phases.size()); }
  const Phase& CurrentPhase() const { return kernel_.phases[static_cast<std::size_t>(phase_)]; }
  // The values that the current phase needs, in order of evaluation.
  std::set<int> Reached() const;
  // Do blocks find squares of moments at once with what the phase that is being written sums? Or does it do no more
  // than join what the blocks of each row have found of moments, for the first of them?
  bool FindsMoments() const { return moments_ && phase_ == 0; }
  bool JoinsMoments() const { return moments_ && phase_ == 1; }
  // Of the block's elements in a packet of columns.
  std::string MeanOfBlock() const;
  // Leaves what a block has found of a result.
  void StoreFound(const plan::Reduction& reduction, const std::string& c, const std::string& lanes);
  // A value of rows, for a packet of columns: joined of what blocks found if it is reduced.
  void DeclareOfColumns(int id, const std::string& c, const std::string& lanes, Names* names);
  void ColumnUnit(const std::string& c, const std::string& lanes);

  std::optional<plan::Moments> moments_;  // that blocks find at once

 private:
  // ---- rows.cc ---------------------------------------------------------------------------------

  // The values that a phase is made of, and those that they are made of, in order of evaluation.
  std::set<int> ReachedFrom(const Phase& phase) const;
  void ReachFromFinal(std::set<int>* reached) const;
  void Reach(int id, std::set<int>* reached) const;
  std::set<int> UsedRowBuffers(const Phase& phase, const std::set<int>& reached) const;

  // ---- units.cc --------------------------------------------------------------------------------

  void DeclareFound();
  // The block's part of each axis that is cut.
  void UnitBlocks();
  const plan::Reduction& ReductionOf(int result) const;
  void RowUnit();
  // Where blocks leave what they find of a result, for each column.
  std::string FoundAt(int id, const std::string& unit, const std::string& c) const;
  // Have squares of moments been joined, whose value it is?
  bool IsJoined(int id) const { return moments_ && id == moments_->squares && phase_ > 1; }
  // Into how many parts the axis is cut.
  std::string PartsOf(int axis) const;
  // How many elements of a row `block` has, its number.
  std::string ElementsOf(const std::string& block) const;
  // Adds to `all` what blocks have found of the squares of moments: those away from their own means, and what these are
  // away from the center. `found`: what a block k has of a result.
  void JoinMoments(const std::string& all, const std::function<std::string(int result)>& found);

  std::string row_bytes_;  // of a row's buffers
  std::map<int, std::string> kept_results_;  // where reductions of earlier phases are kept, by result
  int phase_ = 0;  // that is being written, of a kernel whose rows are split
  std::map<int, std::string> found_;  // by reduced value: what blocks found
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CPU_ROWS_H_

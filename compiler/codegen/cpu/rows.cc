// Rows one by one, all phases of each; or several rows at a time, phase by phase, where a phase waits for what the one
// before it has reduced: while one row's lanes are folded, the next row is worked on. What phases reduce is kept of
// each row; whatever else of a row a phase needs it has to itself.
#include "compiler/codegen/cpu/rows.h"

#include <algorithm>
#include <set>
#include <string>

#include "compiler/codegen/reductions.h"
#include "runtime/rows_together.h"

namespace umbra::codegen {

bool RowEmitter::TakesRowsTogether() const {
  const auto is_heavy = [this](const Phase& phase) { return GoesSideBySide(phase); };
  if (PassesCaches() && std::none_of(kernel_.phases.begin(), kernel_.phases.end(), is_heavy)) return false;
  return width_ > 1 && !columns_ && !Splits() && signature_.row_axes > 0 && kernel_.phases.size() > 1 &&
         std::any_of(kernel_.phases.begin(), kernel_.phases.end() - 1,
                     [](const Phase& phase) { return !phase.reductions.empty(); });
}

void RowEmitter::DeclareRowsTogether() {
  if (!TakesRowsTogether()) return;
  together_ = names_.Make("rows");
  out_.Line("const long long {} = rows_at_once({} * {}, {});", together_, ElementsOfRow(),
            runtime::BytesAlongRow(signature_, plan_.buffers), runtime::RoomOfRows(signature_));
  if (signature_.row_buffers.empty()) return;
  row_bytes_ = names_.Make("kept");
  out_.Line("const long long {} = {};", row_bytes_, BytesOfRows(signature_.row_buffers));
}

void RowEmitter::RowsTogether(const std::string& begin, const std::string& end) {
  const int axis = signature_.row_axes - 1;
  const std::string i = fmt::format("i{}", axis), first = names_.Make("first"), last = names_.Make("last");
  const Names outside = names_;
  out_.Open("for (long long {0} = {1}; {0} < {2}; {0} += {3})", first, begin, end, together_);
  out_.Line("const long long {} = smaller({} + {}, {});", last, first, together_, end);
  const auto last_phase = kernel_.phases.end() - 1;
  for (auto phase = kernel_.phases.begin(); phase != last_phase; ++phase)
    for (const auto& reduction : phase->reductions) {
      const std::string kept = names_.Make(AccumulatorName(kernel_, reduction) + "_of");
      out_.Line("{} {}[kRowsAtOnce];", ScalarType(value(reduction.result).type), kept);
      kept_results_[reduction.result] = fmt::format("{}[{} - {}]", kept, i, first);
    }
  const Names outer = names_;
  for (auto phase = kernel_.phases.begin(); phase != kernel_.phases.end(); ++phase) {
    const bool is_last = phase == last_phase;
    std::set<int> reached = ReachedFrom(*phase);
    if (is_last) ReachFromFinal(&reached);
    out_.Open("for (long long {0} = {1}; {0} < {2}; ++{0})", i, first, last);
    const std::set<int> operands = UsedOperands(*phase, reached, is_last), buffers = UsedRowBuffers(*phase, reached);
    RowPointers(&operands);
    row_names_ = DeclareRows(signature_.row_buffers,
                             fmt::format("static_cast<char*>(args->scratch) + ({} - {}) * {}", i, first, row_bytes_),
                             "row", &buffers);
    if (IsAllGroups(*phase)) SpreadNothing();
    else SpreadWithin(*phase, reached);
    std::set<int> late;  // what the last phase's own reductions lead to
    for (const int id : reached) {
      if (value(id).scope != Scope::kRow) continue;
      const auto is_late = [&late](int arg) { return late.count(arg) > 0; };
      const auto kept = kept_results_.find(id);
      if (kept != kept_results_.end()) DeclareScalar(id, {kept->second});
      else if (value(id).kind == Value::Kind::kReduced ||
               std::any_of(value(id).args.begin(), value(id).args.end(), is_late))
        late.insert(id);
      else DeclareRowValue(id);
    }
    DeclareScattered(*phase);
    for (const auto& reduction : phase->reductions)
      if (!is_last) results_[reduction.result] = kept_results_[reduction.result];
    RowLoop(*phase);
    for (const int id : late)
      if (value(id).kind != Value::Kind::kReduced) DeclareRowValue(id);
    if (is_last) StoreRow();
    out_.Close();
    names_ = outer;
  }
  results_.clear();
  kept_results_.clear();
  names_ = outside;
  out_.Close();
}

void RowEmitter::Row() {
  const Names outer = names_;
  for (const Phase& phase : kernel_.phases) {
    for (int id : phase.row_values) DeclareRowValue(id);
    DeclareScattered(phase);
    RowLoop(phase);
  }
  for (int id : kernel_.final_row_values) DeclareRowValue(id);
  StoreRow();
  names_ = outer;
}

std::set<int> RowEmitter::ReachedFrom(const Phase& phase) const {
  std::set<int> reached;
  if (phase.guard >= 0) Reach(phase.guard, &reached);
  for (int id : phase.element_values) Reach(id, &reached);
  for (int id : ResultsOf(phase)) Reach(id, &reached);
  return reached;
}

void RowEmitter::ReachFromFinal(std::set<int>* reached) const {
  for (const auto& store : kernel_.final_stores) Reach(store.value, reached);
}

void RowEmitter::Reach(int id, std::set<int>* reached) const {
  if (!reached->insert(id).second) return;
  for (int arg : value(id).args) Reach(arg, reached);
}

std::set<int> RowEmitter::UsedRowBuffers(const Phase& phase, const std::set<int>& reached) const {
  std::set<int> used;
  for (const auto& stage : phase.stages) used.insert(stage.row_buffer);
  for (const int id : reached)
    if (value(id).kind == Value::Kind::kStaged) used.insert(value(id).index);
  return used;
}

}  // namespace umbra::codegen

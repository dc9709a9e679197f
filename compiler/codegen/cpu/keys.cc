// Reductions whose steps bring the row that they count for, as in a gradient of rows that were looked up: the steps are
// walked once, and each is joined with the result of its row, where that will be; or, if the result is something else
// than what the steps come to, what as many rows have come to as a second-level cache holds is kept while the steps are
// walked, so that each is asked once for all of these rows. Each result is reduced in the same order as alone.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/cpu/columns.h"
#include "compiler/codegen/reductions.h"
#include "compiler/plan/guards.h"

namespace umbra::codegen {

int ColumnEmitter::KeyAxis() const {
  if (kernel_.phases.size() != 1 || kernel_.phases[0].guard < 0 || !WalksBlocksOfColumns()) return -1;
  const auto key = plan::FindStepKey(kernel_, kernel_.phases[0]);
  const bool fits = key && key->row_axis == signature_.row_axes - 2 && !ReadRow({key->value, kernel_.phases[0].guard});
  return fits ? key->row_axis : -1;
}

void ColumnEmitter::KeyRows() {
  const Names outer = names_;
  const std::string c = fmt::format("i{}", vector_axis_), block = fmt::format("j{}", vector_axis_),
                    n = ExtentName(vector_axis_);
  block_.end = names_.Make("last_" + c), block_.packet = names_.Make("p"), block_.packets = BlockPackets();
  kept_rows_.most = names_.Make("rows"), kept_rows_.first = names_.Make("first");
  kept_rows_.last = names_.Make("last"), kept_rows_.count = names_.Make("count");
  out_.Open("for (long long {0} = {1}; {0} + {2} <= {3}; {0} += {4})", block, Begin(vector_axis_), width_, n,
            BlockPackets() * width_);
  out_.Line("const long long {0} = smaller({1} + {2}, {3} - {3} % {4});", block_.end, block, BlockPackets() * width_, n,
            width_);
  KeyBlocks(c, block, "");
  out_.Close();
  if (width_ > 1) {
    out_.Open("if (const long long {0} = {1} - {1} % {2}; {0} < {1})", block, n, width_);
    out_.Line("const long long {} = {}, lanes = {} - {};", block_.end, n, n, block);
    KeyBlocks(c, block, "lanes");
    out_.Close();
  }
  names_ = outer;
}

bool ColumnEmitter::ReadRow(std::vector<int> ids) const {
  std::set<int> seen;
  while (!ids.empty()) {
    const Value& v = value(ids.back());
    const bool known = !seen.insert(ids.back()).second;
    ids.pop_back();
    if (known) continue;
    ids.insert(ids.end(), v.args.begin(), v.args.end());
    if (v.kind != Value::Kind::kLoad) continue;
    for (int axis = 0; axis < signature_.row_axes; ++axis)
      if (Moves(signature_.operands[static_cast<std::size_t>(v.index)], axis)) return true;
  }
  return false;
}

void ColumnEmitter::KeyBlocks(const std::string& c, const std::string& block, const std::string& lanes) {
  if (JoinsInResults()) return KeyInResults(c, block, lanes);
  const Names outer = names_;
  const int axis = KeyAxis();
  const std::string i = fmt::format("i{}", axis), packets = names_.Make("packets");
  const Phase& phase = kernel_.phases[0];
  out_.Line("const long long {0} = ({1} - {2} + {3}) / {4}, {5} = {6} / {0};", packets, block_.end, block, width_ - 1,
            width_, kept_rows_.most, BlockPackets());
  out_.Open("for (long long {0} = {1}; {0} < {2}; {0} += {3})", kept_rows_.first, Begin(axis), End(axis),
            kept_rows_.most);
  out_.Line("const long long {0} = smaller({1} + {2}, {3});", kept_rows_.last, kept_rows_.first, kept_rows_.most,
            End(axis));
  out_.Line("const unsigned long long {} = {} - {};", kept_rows_.count, kept_rows_.last, kept_rows_.first);
  block_.before = fmt::format("({} - {}) * {} + ", i, kept_rows_.first, packets);
  const Kept kept = DeclareKept(phase.row_values, phase);
  EachKeptRow(i, phase.row_values, {}, [&] { BeginPhase(phase.row_values, phase, kept, c, block, lanes); });
  EachStep(i, [&] {
    PointersTo(phase.element_values, {});
    EachPacket(c, block, [&] { InRegisters(phase, [&] { ColumnElement(phase, c, lanes, names_); }); });
  });
  EachKeptRow(i, kernel_.final_row_values, kernel_.final_stores, [&] {
    EachPacket(c, block, [&] {
      Names names = names_;
      for (const int id : kernel_.final_row_values) DeclarePacket(id, c, lanes, &names);
      for (const auto& store : kernel_.final_stores) StorePacket(store, c, lanes);
    });
  });
  out_.Close();
  names_ = outer;
}

bool ColumnEmitter::JoinsInResults() const {
  const Phase& phase = kernel_.phases[0];
  if (options_.variant.stores != runtime::Stores::kCached || phase.reductions.size() != 1 ||
      kernel_.final_stores.size() != 1)
    return false;
  const auto& [operand, stored] = kernel_.final_stores[0];
  const auto& dims = signature_.operands[static_cast<std::size_t>(operand)].dim_of_axis;
  return stored == phase.reductions[0].result && OperandType(operand) == value(stored).type &&
         signature_.in_place[static_cast<std::size_t>(operand)].empty() &&
         std::find(dims.begin(), dims.begin() + signature_.row_axes, -1) == dims.begin() + signature_.row_axes &&
         std::none_of(phase.row_values.begin(), phase.row_values.end(), [this](int id) { return IsKept(id); });
}

void ColumnEmitter::KeyInResults(const std::string& c, const std::string& block, const std::string& lanes) {
  const Names outer = names_;
  const int axis = KeyAxis();
  const std::string i = fmt::format("i{}", axis);
  const Phase& phase = kernel_.phases[0];
  const plan::Reduction& reduction = phase.reductions[0];
  const plan::Store& store = kernel_.final_stores[0];
  const DType type = value(reduction.result).type;
  const auto each_packet = [&](const std::function<void()>& body) {
    if (AddsToOneElement()) out_.Open("if (const long long {0} = {1}; {0} < {2})", c, block, block_.end);  // no loop
    else out_.Open("for (long long {0} = {1}; {0} < {2}; {0} += {3})", c, block, block_.end, width_);
    body();
    out_.Close();
  };
  kept_rows_.first = Begin(axis);
  out_.Line("const unsigned long long {} = {} - {};", kept_rows_.count, End(axis), Begin(axis));
  out_.Open("for (long long {0} = {1}; {0} < {2}; ++{0})", i, Begin(axis), End(axis));
  PointersTo(phase.row_values, kernel_.final_stores);
  each_packet([&] {
    text_[reduction.result] = speller_->Fill(type, Identity(kernel_, reduction));
    StorePacket(store, c, lanes);
  });
  out_.Close();
  EachStep(i, [&] {
    PointersTo(phase.element_values, kernel_.final_stores);
    each_packet([&] {
      const Names names = names_;
      const std::string name = names_.Make(AccumulatorName(kernel_, reduction)), at = Address(store.operand, c);
      out_.Line("{} {} = {};", speller_->Type(type), name,
                (lanes.empty() ? speller_->Load(type, at) : speller_->LoadHead(type, at, lanes)).text);
      text_[reduction.result] = {name};
      ColumnElement(phase, c, lanes, names_);
      StorePacket(store, c, lanes);
      names_ = names;
    });
  });
  names_ = outer;
}

void ColumnEmitter::EachStep(const std::string& i, const std::function<void()>& body) {
  const Phase& phase = kernel_.phases[0];
  InnerLoops(signature_.row_axes, kernel_.rank(), [&] {
    const plan::StepKey key = *plan::FindStepKey(kernel_, phase);
    out_.Line("const long long {} = {};", i, EmitLane(lanes_, key.value, "", nullptr));
    const bool is_key = IsComparisonOf(phase.guard, key);
    // One jump: that a row is hardly ever among these a processor foresees, on which side of them it is it does not.
    out_.Open("if (static_cast<unsigned long long>({0} - {1}) < {2}{3})", i, kept_rows_.first, kept_rows_.count,
              is_key ? "" : " && " + EmitLane(lanes_, phase.guard, "", nullptr));
    body();
    out_.Close();
  });
}

void ColumnEmitter::EachKeptRow(const std::string& i, const std::vector<int>& values,
                                const std::vector<plan::Store>& stores, const std::function<void()>& body) {
  out_.Open("for (long long {0} = {1}; {0} < {2}; ++{0})", i, kept_rows_.first, kept_rows_.last);
  PointersTo(values, stores);
  body();
  out_.Close();
}

void ColumnEmitter::PointersTo(const std::vector<int>& values, const std::vector<plan::Store>& stores) {
  std::set<int> used;
  for (const int id : values)
    if (value(id).kind == Value::Kind::kLoad) used.insert(value(id).index);
  for (const auto& store : stores) used.insert(store.operand);
  RowPointers(&used);
}

bool ColumnEmitter::IsComparisonOf(int condition, const plan::StepKey& key) const {
  const Value& v = value(condition);
  return v.op == graph::Op::eq && (v.args[0] == key.value || v.args[1] == key.value);
}

}  // namespace umbra::codegen

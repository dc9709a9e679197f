// Few rows: a row's blocks are worked on side by side, phase by phase. What each accumulates is kept in scratch, after
// what is kept of the row; a unit of a later phase joins what the blocks of its row found, block after block. After the
// phases comes a call that stores the results of rows.
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/cpu/rows.h"
#include "compiler/codegen/literal.h"
#include "compiler/codegen/reductions.h"
#include "umbra/error.h"

namespace umbra::codegen {

void RowEmitter::Units(const std::function<void()>& columns) {
  const int phases = static_cast<int>(kernel_.phases.size());
  std::size_t next = OwnNumbers();
  for (const char* name : {"phase", "blocks"}) out_.Line("const long long {} = args->extent[{}];", name, next++);
  for (int axis : runtime::CutAxes(signature_)) out_.Line("const long long l{} = args->extent[{}];", axis, next++);
  std::vector<int> rows;
  for (int axis = 0; axis < signature_.row_axes; ++axis)
    if (axis != vector_axis_) rows.push_back(axis);
  std::string points;
  for (int axis : rows) points += ExtentName(axis) + " * ";
  out_.Line("const long long units = {}blocks, kept = {};", points, BytesOfRows(signature_.row_buffers));
  out_.Line("[[maybe_unused]] const long long found = {};",
            Padded("units" + (columns_ ? " * " + ExtentName(vector_axis_) : "")));
  DeclareFound();
  if (signature_.moments) moments_ = plan::FindMoments(kernel_);
  if (moments_ && moments_->center > moments_->squares) moments_.reset();  // it has to be known first
  out_.Open("for (long long unit = begin; unit < end; ++unit)");
  out_.Line("[[maybe_unused]] const long long line = unit / blocks, block = unit % blocks;");
  std::string rest = "line";
  for (std::size_t k = rows.size(); k-- > 0;) {
    out_.Line("[[maybe_unused]] const long long i{} = {}{};", rows[k], rest, k == 0 ? "" : " % " + ExtentName(rows[k]));
    rest += " / " + ExtentName(rows[k]);
  }
  UnitBlocks();
  RowPointers();
  for (phase_ = 0; phase_ <= phases; ++phase_) {
    if (IsLastCall() && kernel_.final_stores.empty()) continue;
    if (IsLastCall() || JoinsMoments()) out_.Open("if (phase == {} && block == 0)", phase_);
    else out_.Open("if (phase == {})", phase_);
    if (columns_) columns();
    else RowUnit();
    out_.Close();
  }
  out_.Close();
}

void RowEmitter::ReserveUnitNames() {
  for (const char* name : {"phase", "blocks", "units", "kept", "found", "unit", "line", "block"}) names_.Make(name);
  for (int axis : runtime::CutAxes(signature_))
    for (const char* name : {"l", "b", "e"}) names_.Make(name + std::to_string(axis));
}

void RowEmitter::DeclareFound() {
  std::size_t size = 0;
  for (const Phase& phase : kernel_.phases)
    for (const auto& reduction : phase.reductions) {
      const DType type = value(reduction.result).type;
      found_[reduction.result] = names_.Make(AccumulatorName(kernel_, reduction) + "_found");
      out_.Line("{0}* {1} = reinterpret_cast<{0}*>(static_cast<char*>(args->scratch) + kept{2});", ScalarType(type),
                found_[reduction.result], size == 0 ? "" : fmt::format(" + found * {}", size));
      size += SizeOf(type);
    }
}

std::string RowEmitter::PartsOf(int axis) const {
  return fmt::format("(({0} + l{1} - 1) / l{1})", ExtentName(axis), axis);
}

void RowEmitter::UnitBlocks() {
  std::string rest = "block";
  const std::vector<int> cut = runtime::CutAxes(signature_);
  for (std::size_t k = cut.size(); k-- > 0;) {
    const std::string n = ExtentName(cut[k]), l = fmt::format("l{}", cut[k]);
    const std::string count = PartsOf(cut[k]);
    out_.Line("const long long b{0} = {1}{2} * {3}, e{0} = smaller(b{0} + {3}, {4});", cut[k], rest,
              k == 0 ? "" : " % " + count, l, n);
    rest = fmt::format("{} / {}", rest, count);
  }
}

std::set<int> RowEmitter::Reached() const {
  std::set<int> reached;
  if (IsLastCall()) ReachFromFinal(&reached);
  else if (!JoinsMoments()) return ReachedFrom(CurrentPhase());
  else Reach(moments_->center, &reached), Reach(moments_->squares, &reached);
  return reached;
}

std::string RowEmitter::ElementsOf(const std::string& block) const {
  const std::vector<int> cut = runtime::CutAxes(signature_);
  std::string text;
  const auto times = [&](const std::string& factor) { text += (text.empty() ? "" : " * ") + factor; };
  for (int axis = signature_.row_axes; axis < kernel_.rank(); ++axis)
    if (!IsCut(axis)) times(ExtentName(axis));
  std::string rest = block;
  for (std::size_t k = cut.size(); k-- > 0;) {
    const std::string n = ExtentName(cut[k]), l = fmt::format("l{}", cut[k]), count = PartsOf(cut[k]);
    times(fmt::format("smaller({1}, {0} - ({2}{3}) * {1})", n, l, rest, k == 0 ? "" : " % " + count));
    rest = fmt::format("{} / {}", rest, count);
  }
  return text;
}

void RowEmitter::JoinMoments(const std::string& all, const std::function<std::string(int result)>& found) {
  const DType type = value(moments_->squares).type;
  const std::string scalar = ScalarType(type), elements = names_.Make("elements"), away = names_.Make("away");
  const int total = kernel_.phases[0].reductions[0].result;
  out_.Open("for (long long k = 0; k < blocks; ++k)");
  out_.Line("const {} {} = static_cast<{}>({});", scalar, elements, scalar, ElementsOf("k"));
  out_.Line("const auto {} = {} / {} - {};", away, found(total), elements, text_.at(moments_->center).text);
  out_.Line("{0} = {0} + ({1} + {2} * {2} * {3});", all, found(moments_->squares), away, elements);
  out_.Close();
}

const plan::Reduction& RowEmitter::ReductionOf(int result) const {
  for (const Phase& phase : kernel_.phases)
    for (const auto& reduction : phase.reductions)
      if (reduction.result == result) return reduction;
  throw InternalError("a reduced value without a reduction");
}

void RowEmitter::RowUnit() {
  const Names outer = names_;
  const std::set<int> reached = Reached();
  SpreadWithin(IsLastCall() ? Phase() : CurrentPhase(), reached);
  for (const int id : reached) {
    if (value(id).scope != Scope::kRow) continue;
    if (value(id).kind != Value::Kind::kReduced) {
      DeclareRowValue(id);
      continue;
    }
    const plan::Reduction& reduction = ReductionOf(id);
    const std::string all = names_.Make(AccumulatorName(kernel_, reduction) + "_all");
    out_.Line("{} {} = {};", ScalarType(value(id).type), all, Identity(kernel_, reduction));
    if (IsJoined(id)) out_.Line("{} = {}[line * blocks];", all, found_[id]);
    else if (JoinsMoments() && id == moments_->squares)
      JoinMoments(all, [&](int result) { return found_[result] + "[line * blocks + k]"; });
    else
      out_.Line("for (long long k = 0; k < blocks; ++k) {} = {};", all,
                SpellScalarMap(JoinOp(reduction), value(id).type, {{all}, {found_[id] + "[line * blocks + k]"}}).text);
    DeclareScalar(id, {all});
  }
  if (IsLastCall()) {
    StoreRow();
  } else if (JoinsMoments()) {
    out_.Line("{}[unit] = {};", found_[moments_->squares], AsScalar(moments_->squares).text);
  } else {
    for (const auto& reduction : CurrentPhase().reductions)
      results_[reduction.result] = found_[reduction.result] + "[unit]";
    RowLoop(CurrentPhase());
    if (FindsMoments()) {
      const Phase& squares = kernel_.phases[1];
      spread_[static_cast<std::size_t>(moments_->center)] = true;
      DeclareScalar(moments_->center,
                    {fmt::format("{} / static_cast<{}>({})", results_[CurrentPhase().reductions[0].result],
                                 ScalarType(value(moments_->center).type), ElementsOf("block"))});
      results_[moments_->squares] = found_[moments_->squares] + "[unit]";
      RowLoop(squares);
    }
  }
  names_ = outer;
}

std::string RowEmitter::FoundAt(int id, const std::string& unit, const std::string& c) const {
  return fmt::format("{} + ({}) * {} + {}", found_.at(id), unit, ExtentName(vector_axis_), c);
}

void RowEmitter::DeclareOfColumns(int id, const std::string& c, const std::string& lanes, Names* names) {
  if (value(id).kind != Value::Kind::kReduced) return DeclarePacket(id, c, lanes, names);
  const plan::Reduction& reduction = ReductionOf(id);
  const DType type = value(id).type;
  const std::string all = names->Make(AccumulatorName(kernel_, reduction));
  const auto found = [&](int result) {
    const std::string from = FoundAt(result, IsJoined(id) ? "line * blocks" : "line * blocks + k", c);
    return lanes.empty() ? speller_->Load(type, from) : speller_->LoadHead(type, from, lanes);
  };
  out_.Line("{} {} = {};", speller_->Type(type), all, speller_->Fill(type, Identity(kernel_, reduction)).text);
  if (IsJoined(id)) out_.Line("{} = {};", all, found(id).text);
  else if (JoinsMoments() && id == moments_->squares) JoinMoments(all, [&](int result) { return found(result).text; });
  else
    out_.Line("for (long long k = 0; k < blocks; ++k) {} = {};", all,
              Join(*speller_, kernel_, reduction, {all}, found(id)));
  text_[id] = {all};
}

void RowEmitter::ColumnUnit(const std::string& c, const std::string& lanes) {
  Names names = names_;
  for (const int id : Reached())
    if (value(id).scope == Scope::kRow) DeclareOfColumns(id, c, lanes, &names);
  if (IsLastCall()) {
    for (const auto& store : kernel_.final_stores) StorePacket(store, c, lanes);
    return;
  }
  if (JoinsMoments()) return StoreFound(kernel_.phases[1].reductions[0], c, lanes);
  ColumnLoop(CurrentPhase(), c, lanes, &names);
  for (const auto& reduction : CurrentPhase().reductions) StoreFound(reduction, c, lanes);
  if (!FindsMoments()) return;
  const std::string center = names.Make(NameOf(moments_->center));
  out_.Line("const {} {} = {};", speller_->Type(value(moments_->center).type), center, MeanOfBlock());
  text_[moments_->center] = {center};
  ColumnLoop(kernel_.phases[1], c, lanes, &names);
  StoreFound(kernel_.phases[1].reductions[0], c, lanes);
}

std::string RowEmitter::MeanOfBlock() const {
  const plan::Reduction& total = kernel_.phases[0].reductions[0];
  const DType type = value(total.result).type;
  return fmt::format(
      "{} / {}", text_.at(total.result).text,
      speller_->Fill(type, fmt::format("static_cast<{}>({})", ScalarType(type), ElementsOf("block"))).text);
}

void RowEmitter::StoreFound(const plan::Reduction& reduction, const std::string& c, const std::string& lanes) {
  const DType type = value(reduction.result).type;
  const std::string to = FoundAt(reduction.result, "unit", c);
  const Expr& e = text_[reduction.result];
  out_.Line("{};", lanes.empty() ? speller_->Store(type, to, e) : speller_->StoreHead(type, to, e, lanes));
}

}  // namespace umbra::codegen

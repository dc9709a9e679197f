// What the phases of a kernel do within a row or a packet of columns: ranges of axes and loops over inner ones,
// reductions, stages and stores.
#include "compiler/codegen/cpu/phases.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/reductions.h"

namespace umbra::codegen {

namespace {

// Every reduction along the vector axis has a number of partial results: element j belongs to
// partial j mod that number, and the partials are joined by halves. It does not depend on the packet
// width, so all targets give the same bits. Sums of little else wait for their last step: they have more.
constexpr int kPartials = 32, kManyPartials = 64;
// Values of an element that are little else. Several sums have enough together, and AVX2 has no more registers.
constexpr std::size_t kFewValues = 12;

// Loops that are written for the outcomes of what chooses along a run.
constexpr int kMostOutcomes = 16, kMostOutcomesOfRows = 8;

}  // namespace

void PhaseEmitter::DeclareRanges() {
  if (Splits()) return;
  std::size_t next = static_cast<std::size_t>(kernel_.rank()) + signature_.numbers.size();
  for (const int axis : signature_.ranged) {
    from_[axis] = names_.Make(fmt::format("from{}", axis));
    out_.Line("const long long {} = args->extent[{}];", from_[axis], next++);
  }
}

std::string PhaseEmitter::Begin(int axis) const {
  if (axis == 0 && !Splits()) return "begin";
  const auto from = from_.find(axis);
  return from == from_.end() ? "0" : from->second;
}

std::string PhaseEmitter::WholeSteps(const std::string& first, const std::string& last, int step) {
  return first == "0" ? fmt::format("{0} - {0} % {1}", last, step)
                      : fmt::format("{0} - ({0} - {1}) % {2}", last, first, step);
}

bool PhaseEmitter::IsCut(int axis) const {
  const std::vector<int> cut = runtime::CutAxes(signature_);
  return Splits() && std::find(cut.begin(), cut.end(), axis) != cut.end();
}

void PhaseEmitter::RowPointers(const std::set<int>* used) {
  const int last = LastOfRows();
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    const Operand& o = operands_[k];
    if (o.base == o.name || (used != nullptr && used->count(static_cast<int>(k)) == 0)) continue;
    const auto& access = signature_.operands[k];
    std::string text = o.base;
    for (int row = 0; row <= last; ++row)
      if (Moves(access, row)) text += fmt::format(" + i{} * {}", row, o.stride_names[static_cast<std::size_t>(row)]);
    out_.Line("{}{}* {} = {};", access.store ? "" : "const ", ElementType(OperandType(static_cast<int>(k))), o.name,
              text);
  }
}

std::set<int> PhaseEmitter::UsedOperands(const Phase& phase, const std::set<int>& reached, bool is_last) const {
  std::set<int> used;
  for (const int id : reached)
    if (value(id).kind == Value::Kind::kLoad || value(id).kind == Value::Kind::kGather) used.insert(value(id).index);
  for (const auto& store : phase.stores) used.insert(store.operand);
  for (const auto& store : kernel_.final_stores)
    if (is_last) used.insert(store.operand);
  if (&phase == IdlePhase())
    for (const auto& [operand, ahead] : ahead_) used.insert(operand);
  return used;
}

void PhaseEmitter::ColumnLoop(const Phase& phase, const std::string& c, const std::string& lanes, Names* names) {
  for (const auto& reduction : phase.reductions) {
    const std::string name = names->Make(AccumulatorName(kernel_, reduction));
    text_[reduction.result] = {name};
    out_.Line("{} {} = {};", speller_->Type(value(reduction.result).type), name,
              speller_->Fill(value(reduction.result).type, Identity(kernel_, reduction)).text);
  }
  DeclareCarries(phase, names);
  const auto loops = [&] {
    ColumnElements(phase, c, lanes, names,
                   [&] { WhereGuarded(phase, [&] { ColumnElement(phase, c, lanes, *names); }); });
  };
  const std::vector<BoxBound> bounds =
      width_ > 1 && !Splits() && columns_at_hand_.empty() ? InsideBounds(phase) : std::vector<BoxBound>();
  if (bounds.empty()) {
    loops();
    return;
  }
  out_.Open("if ({})", InsideText(bounds, c, lanes));
  inside_ = true;
  loops();
  inside_ = false;
  out_.Middle("} else {");
  loops();
  out_.Close();
}

void PhaseEmitter::ColumnElements(const Phase& /*phase*/, const std::string& /*c*/, const std::string& /*lanes*/,
                                  Names* /*names*/, const std::function<void()>& body) {
  InnerLoops(kernel_.signature.row_axes, kernel_.rank(), body);
}

void PhaseEmitter::ColumnElement(const Phase& phase, const std::string& c, const std::string& lanes, Names names) {
  ElementBody(phase, c, lanes, &names, [&] {
    for (const auto& reduction : phase.reductions) {
      RemarkPlace(reduction.result);
      out_.Line("{} = {};", text_[reduction.result].text, Accumulate(reduction, text_[reduction.result]));
    }
  });
}

void PhaseEmitter::WhereGuarded(const Phase& phase, const std::function<void()>& body) {
  if (phase.guard >= 0) out_.Open("if ({})", EmitLane(lanes_, phase.guard, "", nullptr));
  body();
  if (phase.guard >= 0) out_.Close();
}

void PhaseEmitter::InnerLoops(int axis, int end, const std::function<void()>& body) {
  if (axis == end) {
    body();
    return;
  }
  BeforeInnerLoop(axis);
  out_.Open("for (long long i{0} = {1}; i{0} < {2}; ++i{0})", axis, BlockBegin(axis), BlockEnd(axis));
  InnerLoops(axis + 1, end, body);
  out_.Close();
}

void PhaseEmitter::RowLoop(const Phase& phase) {
  if (phase.element_values.empty() && phase.stores.empty() && phase.reductions.empty()) return;
  DeclareCarries(phase, &names_);
  if (!phase.reductions.empty()) ReductionLoop(phase);
  else if (!IsBlocked() && plan::ScansOf(kernel_, phase).empty() && !RunsOf(phase).empty()) RunLoop(phase);
  else ElementLoops(phase);
}

void PhaseEmitter::ElementLoops(const Phase& phase) {
  const auto is_of_row = [this](int condition) { return IsAlike(condition); };
  const auto loop = [&] { ElementLoop(phase); };
  const bool chooses = options_.spelling == Spelling::kPackets && !IsBlocked() &&
                       decided_.ReachOf(phase, is_of_row).open >= 0 &&
                       decided_.AreFew(phase, is_of_row, kMostOutcomesOfRows);
  if (chooses) ByChoice(phase, is_of_row, "", loop);
  else loop();
}

void PhaseEmitter::StoreRow() {
  Speller scalar(options_.target, 1);
  for (const auto& store : kernel_.final_stores)
    out_.Line("{};", scalar.Store(OperandType(store.operand), Address(store.operand, ""), AsScalar(store.value)));
}

void PhaseEmitter::DeclareRowValue(int id) {
  const Value& v = value(id);
  if (v.kind == Value::Kind::kLoad) {
    Speller scalar(options_.target, 1);
    DeclareScalar(id, scalar.Load(v.type, Address(v.index, "")));
  } else if (v.kind == Value::Kind::kIndex) {
    text_[id] = DefinePositional(v, "");
  } else if (v.kind == Value::Kind::kGather) {
    DeclareScalar(id, DefinePositional(v, ""));
  } else {
    DeclareScalar(id, DefineScalar(id));
  }
}

bool PhaseEmitter::DividesExtent(int step) const {
  return IsBaked(vector_axis_) && signature_.axes[static_cast<std::size_t>(vector_axis_)].value % step == 0;
}

void PhaseEmitter::ElementLoop(const Phase& phase) {
  InnerLoops(kernel_.signature.row_axes, vector_axis_, [&] {
    const std::string i = fmt::format("i{}", vector_axis_);
    const std::string last = VectorEnd();
    if (width_ == 1) {
      out_.Open("for (long long {0} = {1}; {0} < {2}; ++{0})", i, VectorBegin(), last);
      Names names = names_;
      ElementBody(phase, i, "", &names);
      out_.Close();
      return;
    }
    std::string done = VectorBegin();
    if (GoesSideBySide(phase)) done = GroupLoop(phase, i, last);
    const bool one_tail = done != VectorBegin() && HasMasks();
    if (!one_tail) {
      out_.Open("for (long long {0} = {1}; {0} + {2} <= {3}; {0} += {2})", i, done, width_, last);
      PrefetchRows(phase, i, width_);
      PrefetchScattered(i, width_);
      Names names = names_;
      ElementBody(phase, i, "", &names);
      out_.Close();
    }
    if (DividesExtent(one_tail ? width_ * kGroupSize : width_)) return;
    if (one_tail) {
      out_.Open("for (long long {0} = {1}; {0} < {2}; {0} += {3})", i, done, last, width_);
      out_.Line("const long long lanes = {0} - {1} < {2} ? {0} - {1} : {2};", last, i, width_);
    } else {
      out_.Open("if (const long long {0} = {1} - {1} % {2}; {0} < {1})", i, last, width_);
      out_.Line("const long long lanes = {} - {};", last, i);
    }
    Names names = names_;
    ElementBody(phase, i, "lanes", &names);
    out_.Close();
  });
}

void PhaseEmitter::RunLoop(const Phase& phase) {
  InnerLoops(kernel_.signature.row_axes, vector_axis_, [&] {
    const std::string i = fmt::format("i{}", vector_axis_), end = VectorEnd();
    const Names outer = names_;
    const Runs runs = RunsOf(phase);
    std::map<int, std::string> walks;
    for (const int id : runs.walks) {
      walks[id] = names_.Make(fmt::format("t{}_walk", id));
      out_.Line("QuotientWalk {}({});", walks[id], EmitLane(lanes_, value(id).args[1], i, nullptr));
    }
    for (const auto& store : phase.stores)
      if (Streams() && MakesLines(store)) DeclareStreamedRow(store, Address(store.operand, VectorBegin()));
    out_.Open("for (long long {} = {}; {} < {};)", i, VectorBegin(), i, end);
    const std::string run = names_.Make("run");
    runs_.granule = runs.granule;
    for (const int id : runs.alike) {
      const std::string name = names_.Make("t" + std::to_string(id));
      const auto walk = walks.find(id);
      const std::string text = walk == walks.end() ? EmitLane(lanes_, id, i, nullptr)
                                                   : fmt::format("{}.quotient_at({})", walk->second,
                                                                 EmitLane(lanes_, value(id).args[0], i, nullptr));
      out_.Line("const {} {} = {};", ScalarType(value(id).type), name, text);
      text_[id] = {name};
      runs_.alike.push_back(id);
    }
    const auto at = [&](int id) { return EmitLane(lanes_, id, i, nullptr); };
    std::string length = fmt::format("{} - {}", end, i);
    for (const int id : runs.quotients)
      length = fmt::format("smaller({}, {})", length,
                           walks.count(id) > 0
                               ? walks[id] + ".left"
                               : fmt::format("quotient_run({}, {})", at(value(id).args[0]), at(value(id).args[1])));
    for (const LaneBound& bound : runs.choices) {
      const bool falls = bound.slope > 0;
      const std::string flip =
          falls ? Difference(at(bound.greater), at(bound.less)) : Difference(at(bound.less), at(bound.greater));
      length = fmt::format("smaller({}, choice_run({}{}))", length, flip, falls == bound.or_equal ? " + 1" : "");
    }
    out_.Line("const long long {} = {} + {};", run, i, length);
    const auto can_know = [this](int condition) { return IsAlike(condition) || IsAlikeInRun(condition); };
    const auto packets = [&] { RunPackets(phase, runs, i, run); };
    if (!runs.choices.empty() && decided_.AreFew(phase, can_know, kMostOutcomes)) ByChoice(phase, can_know, i, packets);
    else packets();
    runs_ = {};
    out_.Close();
    if (Streams()) FinishStreamedRows();
    names_ = outer;
  });
}

void PhaseEmitter::RunPackets(const Phase& phase, const Runs& runs, const std::string& i, const std::string& run) {
  if (GoesSideBySide(phase, reached_ ? &*reached_ : nullptr)) {
    out_.Open("for (; {0} + {1} * kGroup <= {2}; {0} += {1} * kGroup)", i, width_, run);
    PrefetchNextRuns(phase, runs, i);
    InGroups([&] {
      Names names = names_;
      ElementBody(phase, i, "", &names);
    });
    out_.Close();
  }
  out_.Open("for (; {0} + {1} <= {2}; {0} += {1})", i, width_, run);
  PrefetchNextRuns(phase, runs, i);
  Names names = names_;
  ElementBody(phase, i, "", &names);
  out_.Close();
  if (width_ == 1 || (runs.granule % width_ == 0 && DividesExtent(width_) && VectorBegin() == "0")) return;
  out_.Open("if (const long long lanes = {} - {}; lanes > 0)", run, i);
  names = names_;
  ElementBody(phase, i, "lanes", &names);
  out_.Line("{} = {};", i, run);
  out_.Close();
}

void PhaseEmitter::ByChoice(const Phase& phase, const std::function<bool(int)>& can_know, const std::string& i,
                            const std::function<void()>& packets) {
  auto [values, open] = decided_.ReachOf(phase, can_know);
  if (open < 0) {
    reached_ = std::move(values);
    packets();
    reached_.reset();
    return;
  }
  out_.Open("if ({})", EmitLane(lanes_, open, i, nullptr));
  decided_.Decide(open, true);
  ByChoice(phase, can_know, i, packets);
  out_.Middle("} else {");
  decided_.Decide(open, false);
  ByChoice(phase, can_know, i, packets);
  decided_.Forget(open);
  out_.Close();
}

bool PhaseEmitter::MakesLines(const plan::Store& store) const {
  const DType type = OperandType(store.operand);
  return PutsLinesTogether() && VectorStride(store.operand).empty() && type != DType::kBool &&
         static_cast<int>(SizeOf(type)) * width_ == RegisterBytes(options_.target);
}

void PhaseEmitter::DeclareStreamedRow(const plan::Store& store, const std::string& address, bool anywhere) {
  const std::string row = names_.Make(operands_[static_cast<std::size_t>(store.operand)].name + "_row");
  out_.Line("StreamedRow<{}{}> {}({});", speller_->Type(OperandType(store.operand)), anywhere ? ", true" : "", row,
            address);
  streamed_[store.operand] = row;
  has_streamed_ = true;
}

void PhaseEmitter::FinishStreamedRows() {
  for (const auto& [operand, row] : streamed_) out_.Line("{}.finish();", row);
  streamed_.clear();
}

void PhaseEmitter::EndStreams() {
  FinishStreamedRows();
  if (has_streamed_) out_.Line("stream_fence();");
}

std::string PhaseEmitter::GroupLoop(const Phase& phase, const std::string& i, const std::string& last) {
  const std::string step = fmt::format("{} * kGroup", width_);
  out_.Open("for (long long {0} = {1}; {0} + {2} <= {3}; {0} += {2})", i, VectorBegin(), step, last);
  PrefetchRows(phase, i, width_ * kGroupSize);
  PrefetchScattered(i, width_ * kGroupSize);
  PrefetchNextPage(i, width_ * kGroupSize);
  InGroups([&] {
    Names names = names_;
    ElementBody(phase, i, "", &names);
  });
  out_.Close();
  return fmt::format("{0} - {0} % ({1})", last, step);
}

void PhaseEmitter::InGroups(const std::function<void()>& body) {
  std::unique_ptr<Speller> packets =
      std::exchange(speller_, std::make_unique<Speller>(options_.target, width_, fmt::format("x{}w", width_)));
  side_by_side_ = true;
  body();
  side_by_side_ = false;
  speller_ = std::move(packets);
}

bool PhaseEmitter::IsLight(const Phase& phase) const {
  return std::all_of(phase.element_values.begin(), phase.element_values.end(), [this](int id) {
    const Value& v = value(id);
    return v.kind != Value::Kind::kGather && (v.kind != Value::Kind::kMap || graph::Info(v.op).header == "arith");
  });
}

int PhaseEmitter::Partials(const Phase& phase) const {
  const bool is_little = IsLight(phase) && phase.reductions.size() == 1 && phase.element_values.size() <= kFewValues;
  const int partials = is_little ? kManyPartials : kPartials;
  if (!IsBaked(vector_axis_)) return partials;
  // Those that no element belongs to change nothing.
  const auto elements = static_cast<std::uint64_t>(
      std::max<index_t>(signature_.axes[static_cast<std::size_t>(vector_axis_)].value, width_));
  return static_cast<int>(std::min<std::uint64_t>(std::bit_ceil(elements), static_cast<std::uint64_t>(partials)));
}

int PhaseEmitter::StepOf(const Phase& phase) const {
  return GoesSideBySide(phase) ? std::max(Partials(phase), kGroupSize * width_) : Partials(phase);
}

bool PhaseEmitter::IsAllGroups(const Phase& phase) const {
  if (!GoesSideBySide(phase)) return false;
  return phase.reductions.empty() ? HasMasks() && DividesExtent(width_ * kGroupSize) : DividesExtent(StepOf(phase));
}

void PhaseEmitter::ReductionLoop(const Phase& phase) {
  const int partials = Partials(phase), count = partials / width_;
  const bool in_groups = GoesSideBySide(phase);
  const int step = StepOf(phase);
  for (const auto& reduction : phase.reductions) {
    const std::string name = names_.Make(AccumulatorName(kernel_, reduction) + "_part");
    accumulator_[reduction.result] = name;
    const DType type = value(reduction.result).type;
    out_.Line("{} {}[{}];", speller_->Type(type), name, count);
    out_.Line("for (auto& part : {}) part = {};", name, speller_->Fill(type, Identity(kernel_, reduction)).text);
  }
  const auto row = [&] {
    const std::string i = fmt::format("i{}", vector_axis_);
    const std::string last = VectorEnd();
    out_.Open("for (long long {0} = {1}; {0} + {2} <= {3}; {0} += {2})", i, VectorBegin(), step, last);
    PrefetchRows(phase, i, step);
    PrefetchScattered(i, step);
    if (in_groups) GroupsStep(phase, i, step / width_);
    else ReductionStep(phase, i, count, "");
    out_.Close();
    if (DividesExtent(step)) return;
    if (step == partials) out_.Open("if (const long long {0} = {1} - {1} % {2}; {0} < {1})", i, last, step);
    else out_.Open("for (long long {0} = {1} - {1} % {2}; {0} < {1}; {0} += {3})", i, last, step, partials);
    if (width_ == 1) {
      out_.Open("for (int k = 0; {} + k < {}; ++k)", i, last);
      ReductionBody(phase, fmt::format("{} + k", i), "");
      out_.Close();
    } else {
      ReductionStep(phase, i, PacketsOfRest(step, count), last);
    }
    out_.Close();
  };
  InnerLoops(kernel_.signature.row_axes, vector_axis_, [&] { WhereGuarded(phase, row); });
  for (const auto& reduction : phase.reductions) {
    const std::string folded = fmt::format("fold<{}>({})", Joiner(reduction), accumulator_[reduction.result]);
    const auto kept = results_.find(reduction.result);
    if (kept == results_.end()) DeclareScalar(reduction.result, {folded});
    else out_.Line("{} = {};", kept->second, folded);
  }
}

int PhaseEmitter::PacketsOfRest(int step, int count) const {
  if (!IsBaked(vector_axis_) || VectorBegin() != "0") return count;
  const index_t rest = signature_.axes[static_cast<std::size_t>(vector_axis_)].value % step;
  return static_cast<int>(std::min<index_t>((rest + width_ - 1) / width_, count));
}

void PhaseEmitter::GroupsStep(const Phase& phase, const std::string& i, int packets) {
  out_.Open("for (int k = 0; k < {}; k += kGroup)", packets);
  out_.Line("const long long j = {} + k * {};", i, width_);
  InGroups([&] {
    Names names = names_;
    ElementBody(phase, "j", "", &names, [&] {
      for (const auto& reduction : phase.reductions) {
        RemarkPlace(reduction.result);
        out_.Line("join_group<{}>({}, {}, k);", Joiner(reduction), accumulator_[reduction.result],
                  AsPacket(reduction.value).text);
      }
    });
  });
  out_.Close();
}

void PhaseEmitter::DeclareLanes(const std::string& index, const std::string& last) {
  out_.Line("const long long lanes = {0} <= {1} ? 0 : {0} - {1} < {2} ? {0} - {1} : {2};", last, index, width_);
}

void PhaseEmitter::ReductionStep(const Phase& phase, const std::string& i, int count, const std::string& last) {
  out_.Open("for (int k = 0; k < {}; ++k)", count);
  const std::string index = "j";
  if (width_ == 1) out_.Line("const long long {} = {} + k;", index, i);
  else out_.Line("const long long {} = {} + k * {};", index, i, width_);
  if (!last.empty() && HasMasks()) {
    DeclareLanes(index, last);
  } else if (!last.empty()) {  // a packet of which nothing is there changes nothing, and is not free
    out_.Line("if ({} <= {}) break;", last, index);
    out_.Line("const long long lanes = smaller({} - {}, {});", last, index, width_);
  }
  ReductionBody(phase, index, last.empty() ? "" : "lanes");
  out_.Close();
}

void PhaseEmitter::ReductionBody(const Phase& phase, const std::string& index, const std::string& lanes) {
  Names names = names_;
  ElementBody(phase, index, lanes, &names, [&] {
    for (const auto& reduction : phase.reductions) {
      Expr e = AsPacket(reduction.value);
      if (!lanes.empty()) e = {fmt::format("keep({}, {}, {})", e.text, lanes, Identity(kernel_, reduction))};
      const std::string part = accumulator_[reduction.result] + "[k]";
      RemarkPlace(reduction.result);
      out_.Line("{} = {};", part, Join(*speller_, kernel_, reduction, {part}, e));
    }
  });
}

// ---- what a phase does at one point ---------------------------------------------------------

void PhaseEmitter::ElementBody(const Phase& phase, const std::string& index, const std::string& lanes, Names* names,
                               const std::function<void()>& reduce) {
  for (int id : phase.element_values) {
    DeclarePacket(id, index, lanes, names);
    KeepElement(id, index);
  }
  reduce();
  for (const auto& stage : phase.stages) {
    const DType type = value(stage.value).type;
    const std::string address = fmt::format("{} + {}", row_names_[static_cast<std::size_t>(stage.row_buffer)], index);
    out_.Line("{};", lanes.empty() ? speller_->Store(type, address, AsPacket(stage.value))
                                   : speller_->StoreHead(type, address, AsPacket(stage.value), lanes));
  }
  for (const auto& store : phase.stores) StorePacket(store, index, lanes);
}

void PhaseEmitter::StorePacket(const plan::Store& store, const std::string& index, const std::string& lanes) {
  const DType type = OperandType(store.operand);
  const std::string address = Address(store.operand, index);
  const Expr e = AsPacket(store.value);
  if (const auto found = stored_at_hand_.find(store.operand); found != stored_at_hand_.end())
    return out_.Line("{} = {};", found->second, e.text);
  if (const auto kept = kept_at_.find(store.operand); kept != kept_at_.end())
    return out_.Line("{};", speller_->Store(type, kept->second, e));
  const std::string& stride = VectorStride(store.operand);
  RemarkPlace(store.value);
  if (!stride.empty()) {
    out_.Line("{};", lanes.empty() ? speller_->Scatter(type, address, stride, e)
                                   : speller_->ScatterHead(type, address, stride, e, lanes));
    return;
  }
  if (const auto row = streamed_.find(store.operand); row != streamed_.end())
    out_.Line("{}.{};", row->second,
              !lanes.empty() ? fmt::format("put_head({}, {})", e.text, lanes)
                             : fmt::format("{}({})", side_by_side_ ? "put_group" : "put_packet", e.text));
  else if (!lanes.empty()) out_.Line("{};", speller_->StoreHead(type, address, e, lanes));
  else if (StreamsPackets(type)) Stream(type, address, e);
  else out_.Line("{};", speller_->Store(type, address, e));
}

void PhaseEmitter::Stream(DType type, const std::string& address, const Expr& e) {
  out_.Line("{};", speller_->Stream(type, address, e));
  has_streamed_ = true;
}

// ---- reductions -----------------------------------------------------------------------------

std::string PhaseEmitter::Accumulate(const plan::Reduction& reduction, const Expr& total) const {
  if (!AddsProduct(reduction)) return Join(*speller_, kernel_, reduction, total, AsPacket(reduction.value));
  const plan::Value& element = value(reduction.value);
  return speller_->AddProduct(element.type, total, AsPacket(element.args[0]), AsPacket(element.args[1])).text;
}

}  // namespace umbra::codegen

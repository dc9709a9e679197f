// Rows that are reduced along axes before the vector axis, as the sums of a matrix's columns are: memory lies along the
// columns, so a block of them is walked row by row. Each column is reduced in the same order as alone.
#include "compiler/codegen/cpu/columns.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/reductions.h"

namespace umbra::codegen {

namespace {

constexpr int kRows = 8;  // whose elements a result is fetched once for, where they take little else
constexpr int kMostPackets = 256, kFewestPackets = 8;
constexpr int kKeptBytes = 16384;  // of all results of a block, which stay in a first-level cache
constexpr int kKeptOfKeys = 131072;  // where all steps are walked again for the next rows: in a second-level one

// Bytes of all rows, if they come from memory, of a row, if several lie on a page, and of all results of a block, which
// has to be as wide as rows are: what processors bring ahead of a part of a row is the next part.
constexpr int kFarRows = 1 << 24, kShortRow = 4096, kKeptOfFar = 98304;

}  // namespace

int ColumnEmitter::BlockPackets() const { return BlockPackets(KeyAxis() >= 0 ? kKeptOfKeys : kKeptBytes); }

void ColumnEmitter::Columns(int axis) {
  const std::string first = Begin(axis), last = End(axis);
  const std::string c = fmt::format("i{}", axis);
  if (signature_.goes_across_batch()) return Batch(c, first, last);
  if (TakesFewColumns() && !(Splits() && (IsLastCall() || JoinsMoments()))) return FewColumns(c, last);
  const auto body = [&](const std::string& lanes) {
    if (Splits()) ColumnUnit(c, lanes);
    else ColumnBody(c, lanes);
  };
  const bool narrow = MayBeNarrow();
  if (narrow) {
    NarrowColumns(c, first, last);
    out_.Middle("} else {");
  }
  if (HasShortRows()) {
    const std::string from = ShortRowsInTurns(c, first, last);
    out_.Open("for (long long {0} = {1}; {0} + {2} <= {3}; {0} += {2})", c, from, width_, last);
    ShortRows(c, "", names_);
    out_.Close();
  } else if (WalksBlocksOfColumns()) {
    if (Splits()) ColumnUnits(c, first, last);
    else ColumnBlocks(c, first, last);
  } else {
    out_.Open("for (long long {0} = {1}; {0} + {2} <= {3}; {0} += {2})", c, first, width_, last);
    body("");
    out_.Close();
  }
  if (width_ > 1) {
    out_.Open("if (const long long {0} = {1}; {0} < {2})", c, WholeSteps(first, last, width_), last);
    out_.Line("const long long lanes = {} - {};", last, c);
    if (HasDenseRows()) ShortRows(c, "lanes", names_);
    else body("lanes");
    out_.Close();
  }
  if (narrow) out_.Close();
}

void ColumnEmitter::ColumnBody(const std::string& c, const std::string& lanes) {
  Names names = names_;
  for (const Phase& phase : kernel_.phases) {
    for (int id : phase.row_values) DeclarePacket(id, c, lanes, &names);
    ColumnLoop(phase, c, lanes, &names);
  }
  for (int id : kernel_.final_row_values) DeclarePacket(id, c, lanes, &names);
  for (const auto& store : kernel_.final_stores) StorePacket(store, c, lanes);
}

bool ColumnEmitter::WalksBlocksOfColumns() const {
  if (!columns_ || options_.variant.strided || !signature_.row_buffers.empty()) return false;
  const bool guarded = kernel_.phases[0].guard >= 0;
  if (Splits() && (guarded || IsLastCall() || JoinsMoments())) return false;
  if (!guarded && (width_ == 1 || !plan::HasLongColumns(kernel_))) return false;
  for (int id = 0; id < static_cast<int>(kernel_.values.size()); ++id) {
    const Value& v = value(id);
    if (!InPackets(id)) continue;
    if (guarded && SpanOf(id)) continue;
    if (v.kind == Value::Kind::kGather || (HasLanes(id) && !SlopeOf(id))) return false;
    if (v.scope == Scope::kRow && v.type == DType::kBool) return false;
  }
  return true;
}

std::string ColumnEmitter::OpenColumnBlock(const std::string& c, const std::string& first, const std::string& last) {
  const std::string block = fmt::format("j{}", vector_axis_);
  block_.end = names_.Make("last_" + c), block_.row = names_.Make("r"), block_.packet = names_.Make("p"),
  block_.before.clear();
  block_.packets = BlockPackets();
  std::string columns = kept_columns_.what.empty() ? std::to_string(block_.packets * width_) : kept_columns_.columns;
  if (const int most = BlockPackets(kKeptOfFar);
      most > block_.packets && kept_columns_.what.empty() && width_ > 1 && kernel_.phases[0].guard < 0) {
    const std::string usual = columns;
    block_.packets = most;
    out_.Line("const long long {0} = {1} - {2} <= {3} && {4} ? {3} : {5};", columns = names_.Make("columns"), last,
              first, most * width_, ComesFromMemory(first, last), usual);
  }
  out_.Open("for (long long {0} = {1}; {0} + {2} <= {3}; {0} += {4})", block, first, width_, last, columns);
  out_.Line("const long long {} = smaller({} + {}, {});", block_.end, block, columns, WholeSteps(block, last, width_));
  DeclareByRow(first, last);
  return block;
}

void ColumnEmitter::ColumnBlocks(const std::string& c, const std::string& first, const std::string& last) {
  const Names outer = names_;
  const std::string block = OpenColumnBlock(c, first, last);
  DeclareNextColumns(block, first, last);
  BlockBody(c, block);
  out_.Close();
  names_ = outer;
}

void ColumnEmitter::BlockBody(const std::string& c, const std::string& block) {
  for (const Phase& phase : kernel_.phases) {
    if (const Kept kept = DeclareKept(phase.row_values, phase); !kept.empty())
      BeginPhase(phase.row_values, phase, kept, c, block, block_.lanes);
    if (phase.element_values.empty() && phase.stores.empty() && phase.reductions.empty()) continue;
    DeclareDivisors(phase, c, block);
    KeepInPhase(static_cast<int>(&phase - kernel_.phases.data()));
    WalkBlock(phase, c, block, signature_.row_axes);
    ForgetDivisors(phase);
  }
  KeepInPhase(static_cast<int>(kernel_.phases.size()));
  EachPacket(c, block, [&] {
    Names names = names_;
    for (const int id : kernel_.final_row_values) DeclarePacket(id, c, block_.lanes, &names);
    for (const auto& store : kernel_.final_stores) StorePacket(store, c, block_.lanes);
  });
}

std::string ColumnEmitter::DeclareCenter() {
  const std::string name = names_.Make(NameOf(moments_->center) + "_of");
  out_.Line("{} {}[{}];", speller_->Type(value(moments_->center).type), name, block_.packets);
  return name;
}

void ColumnEmitter::ColumnUnits(const std::string& c, const std::string& first, const std::string& last) {
  const Names outer = names_;
  const Phase& phase = CurrentPhase();
  const std::string block = OpenColumnBlock(c, first, last);
  std::vector<int> values;
  for (const int id : Reached())
    if (value(id).scope == Scope::kRow) values.push_back(id);
  if (const Kept kept = DeclareKept(values, phase); !kept.empty()) BeginPhase(values, phase, kept, c, block, "");
  DeclareDivisors(phase, c, block);
  WalkBlock(phase, c, block, signature_.row_axes);
  ForgetDivisors(phase);
  EachPacket(c, block, [&] {
    for (const auto& reduction : phase.reductions) StoreFound(reduction, c, "");
  });
  if (FindsMoments()) {
    const Phase& squares = kernel_.phases[1];
    const std::string center = DeclareCenter();
    EachPacket(c, block, [&] { out_.Line("{}[{}] = {};", center, block_.packet, MeanOfBlock()); });
    text_[moments_->center] = {fmt::format("{}[{}]", center, block_.packet)};
    BeginPhase({}, squares, DeclareKept({}, squares), c, block, "");
    WalkBlock(squares, c, block, signature_.row_axes);
    EachPacket(c, block, [&] { StoreFound(squares.reductions[0], c, ""); });
  }
  out_.Close();
  names_ = outer;
}

bool ColumnEmitter::StreamsColumns(const Phase& phase) const {
  return options_.variant.stores == runtime::Stores::kStreamed && kept_columns_.what.empty() &&
         phase.reductions.empty() && !ReadsResults();
}

bool ColumnEmitter::TakesRowsAtOnce(const Phase& phase) const {
  if (!IsLight(phase) || phase.guard >= 0 || kept_columns_.joins) return false;
  return !phase.reductions.empty() || (DivisorsOf(phase).empty() && !StreamsColumns(phase));
}

bool ColumnEmitter::ReadsResults() const {
  return std::any_of(kernel_.values.begin(), kernel_.values.end(), [this](const Value& v) {
    if (v.kind != Value::Kind::kLoad) return false;
    const int buffer = signature_.operands[static_cast<std::size_t>(v.index)].buffer;
    return std::any_of(signature_.operands.begin(), signature_.operands.end(),
                       [&](const runtime::Access& access) { return access.store && access.buffer == buffer; });
  });
}

void ColumnEmitter::DeclareByRow(const std::string& first, const std::string& last) {
  block_.by_row.clear();
  const bool at_once = std::any_of(kernel_.phases.begin(), kernel_.phases.end(),
                                   [this](const Phase& phase) { return TakesRowsAtOnce(phase); });
  if (!at_once || width_ == 1 || !kept_columns_.what.empty()) return;
  block_.by_row = names_.Make("by_row");
  out_.Line("const bool {} = {} - {} <= {} && {};", block_.by_row, last, first,
            std::min(kShortRow / ElementBytes(), block_.packets * width_), ComesFromMemory(first, last));
}

int ColumnEmitter::ElementBytes() const {
  int most = 1;
  for (int operand = 0; operand < static_cast<int>(operands_.size()); ++operand)
    if (IsReadAlong(operand)) most = std::max(most, SizeOfElement(static_cast<std::size_t>(operand)));
  return most;
}

std::string ColumnEmitter::CountText(const std::string& first, const std::string& last) {
  return first == "0" ? last : fmt::format("({} - {})", last, first);
}

std::string ColumnEmitter::ComesFromMemory(const std::string& first, const std::string& last) const {
  return fmt::format("{} * {} > {}", CountText(first, last), ElementsOfRow(), kFarRows / ElementBytes());
}

void ColumnEmitter::DeclareColumnBuffers() {
  std::vector<DType> buffers;
  kept_columns_.what = plan::FindKeptColumns(plan_, kernel_, &buffers);
  kept_columns_.columns = names_.Make("columns");
  out_.Line("const long long {} = smaller(args->extent[{}], {});", kept_columns_.columns, OwnNumbers(),
            BlockPackets() * width_);
  const std::string steps = names_.Make("steps");
  if (buffers.size() > 1) out_.Line("const long long {} = {};", steps, ElementsOfRow());
  std::size_t before = 0;
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    const auto of = std::find_if(kept_columns_.what.begin(), kept_columns_.what.end(),
                                 [&](const plan::KeptColumns& kept) { return kept.buffer == static_cast<int>(k); });
    kept_columns_.names.push_back(names_.Make(operands_[static_cast<std::size_t>(of->operand)].name + "_kept"));
    const std::string offset = before == 0 ? "" : fmt::format(" + {} * {} * {}", before, steps, kept_columns_.columns);
    out_.Line("{0}* const {1} = reinterpret_cast<{0}*>(static_cast<char*>(args->scratch){2});", ElementType(buffers[k]),
              kept_columns_.names.back(), offset);
    before += SizeOf(buffers[k]);
  }
  // What is kept has a name, as it is read once more where it is.
  for (std::size_t id = 0; id < kernel_.values.size(); ++id)
    if (kernel_.values[id].kind == Value::Kind::kLoad) ++uses_[id];
}

void ColumnEmitter::KeepInPhase(int p) {
  if (kept_columns_.what.empty()) return;
  kept_at_.clear();
  const bool within = p < static_cast<int>(kernel_.phases.size());
  std::string step = fmt::format("i{}", signature_.row_axes);
  for (int axis = signature_.row_axes + 1; axis < kernel_.rank(); ++axis)
    step = fmt::format("({} * {} + i{})", step, ExtentName(axis), axis);
  for (const plan::KeptColumns& kept : kept_columns_.what) {
    const DType type = OperandType(kept.operand);
    const std::string at =
        fmt::format("{} + {} * {} + {} * {}", kept_columns_.names[static_cast<std::size_t>(kept.buffer)], step,
                    kept_columns_.columns, block_.packet, width_);
    at_hand_.erase(kept.operand);
    if (p == kept.first) kept_at_[kept.operand] = at;
    else if (p > kept.first && within) at_hand_[kept.operand] = speller_->Load(type, at).text;
  }
  const std::vector<plan::Store> stores =
      within ? kernel_.phases[static_cast<std::size_t>(p)].stores : std::vector<plan::Store>();
  const auto is_kept = [this](const plan::Store& store) { return kept_at_.count(store.operand) > 0; };
  kept_columns_.asks = within && p > 0 && std::all_of(stores.begin(), stores.end(), is_kept);
  kept_columns_.streams = within && options_.variant.stores == runtime::Stores::kStreamed;
  kept_columns_.joins =
      options_.variant.stores == runtime::Stores::kJoined &&
      std::any_of(stores.begin(), stores.end(), [this](const plan::Store& store) { return MakesLines(store); });
}

void ColumnEmitter::DeclareNextColumns(const std::string& block, const std::string& first, const std::string& last) {
  const int row = signature_.row_axes - 2;
  for (const plan::KeptColumns& kept : kept_columns_.what) {
    if (!IsReadAlong(kept.operand)) continue;
    const Operand& o = operands_[static_cast<std::size_t>(kept.operand)];
    const std::string name = names_.Make(o.name + "_ahead"),
                      next = row < 0 ? "" : o.stride_names[static_cast<std::size_t>(row)];
    const std::string back = first == "0" ? block : fmt::format("({} - {})", block, first);
    out_.Line("const long long {0} = {1} + {2} + {3} <= {4} ? {2} : {5};", name, block, kept_columns_.columns, width_,
              last, next.empty() ? "0" : next + " - " + back);
    kept_columns_.ahead[kept.operand] = name;
  }
}

void ColumnEmitter::KeepElement(int id, const std::string& index) {
  KeepPacket(id);
  const Value& v = value(id);
  if (v.kind != Value::Kind::kLoad) return;
  if (const auto ahead = kept_columns_.ahead.find(v.index); kept_columns_.asks && ahead != kept_columns_.ahead.end())
    Prefetch(v.type, Address(v.index, index) + " + " + ahead->second, width_, 2);
  const auto at = kept_at_.find(v.index);
  if (at != kept_at_.end()) out_.Line("{};", speller_->Store(v.type, at->second, AsPacket(id)));
}

bool ColumnEmitter::IsKept(int id) const {
  if (!InPackets(id) && (width_ > 1 || InLanes(id))) return false;
  const auto reads = [&](int reader) {
    const auto& args = value(reader).args;
    return std::find(args.begin(), args.end(), id) != args.end();
  };
  const auto is_read = [&](const std::vector<int>& by) { return std::any_of(by.begin(), by.end(), reads); };
  const auto is_stored = [&](const plan::Store& store) { return store.value == id; };
  const auto is_needed = [&](const Phase& phase) {
    if (is_read(phase.element_values) || !InPackets(id)) return is_read(phase.element_values);
    const bool is_own = std::find(phase.row_values.begin(), phase.row_values.end(), id) != phase.row_values.end();
    return is_read(phase.guard_values) || phase.guard == id || !phase.stages.empty() ||
           (!is_own && is_read(phase.row_values)) || std::any_of(phase.stores.begin(), phase.stores.end(), is_stored) ||
           std::any_of(phase.reductions.begin(), phase.reductions.end(),
                       [&](const plan::Reduction& reduction) { return reduction.value == id; });
  };
  return is_read(kernel_.final_row_values) ||
         (InPackets(id) && std::any_of(kernel_.final_stores.begin(), kernel_.final_stores.end(), is_stored)) ||
         std::any_of(kernel_.phases.begin(), kernel_.phases.end(), is_needed);
}

int ColumnEmitter::KeptOfPacket() const {
  int kept = 0;
  for (const Phase& phase : kernel_.phases) {
    kept += static_cast<int>(phase.reductions.size() + plan::ScansOf(kernel_, phase).size());
    for (const int id : phase.row_values) kept += IsKept(id) ? 1 : 0;
    kept += 2 * static_cast<int>(DivisorsOf(phase).size());
  }
  return kept;
}

int ColumnEmitter::BlockPackets(int kept_bytes) const {
  const int bytes = std::max(KeptOfPacket(), 1) * std::max(RegisterBytes(options_.target), 8);
  int packets = kernel_.phases[0].guard < 0 ? kMostPackets : kept_bytes / 8;
  while (packets > kFewestPackets && packets * bytes > kept_bytes) packets /= 2;
  return packets;
}

ColumnEmitter::Kept ColumnEmitter::DeclareKept(const std::vector<int>& values, const Phase& phase) {
  Kept kept;
  const auto declare = [&](int id, const std::string& name) {
    kept.push_back(names_.Make(name + "_of"));
    out_.Line("{} {}[{}];", speller_->Type(value(id).type), kept.back(), block_.packets);
  };
  for (const int id : values)
    if (IsKept(id)) declare(id, NameOf(id));
  for (const auto& reduction : phase.reductions) declare(reduction.result, AccumulatorName(kernel_, reduction));
  for (const int id : plan::ScansOf(kernel_, phase)) declare(id, CarryName(JoinedBy(kernel_, id)));
  return kept;
}

std::set<int> ColumnEmitter::DivisorsOf(const Phase& phase) const {
  std::set<int> divisors;
  for (const int id : phase.element_values)
    if (by_number_.count(id) > 0 && IsOfColumn(value(id).args[1])) divisors.insert(value(id).args[1]);
  return divisors;
}

void ColumnEmitter::DeclareDivisors(const Phase& phase, const std::string& c, const std::string& block) {
  for (const int id : DivisorsOf(phase)) {
    const std::string name = names_.Make(NameOf(id) + "_by"),
                      type = fmt::format("Divisors<{}>", speller_->Type(value(id).type));
    const std::string at = fmt::format("{}[{}]", name, block_.packet);
    out_.Line("{} {}[{}];", type, name, block_.packets);
    EachPacket(c, block, [&] { out_.Line("{} = {}({});", at, type, AsPacket(id).text); });
    divisor_text_[id] = {at};
  }
}

void ColumnEmitter::ForgetDivisors(const Phase& phase) {
  for (const int id : DivisorsOf(phase)) divisor_text_.erase(id);
}

void ColumnEmitter::EachPacket(const std::string& c, const std::string& block, const std::function<void()>& body) {
  if (block_.side_by_side) return EachSideBySide(c, block, body);
  out_.Open("for (long long {0} = {1}; {0} < {2}; {0} += {3})", c, block, block_.end, width_);
  out_.Line("[[maybe_unused]] const long long {} = {}{} / {};", block_.packet, block_.before,
            block == "0" ? c : fmt::format("({} - {})", c, block), width_);
  body();
  out_.Close();
}

void ColumnEmitter::BeginPhase(const std::vector<int>& values, const Phase& phase, const Kept& kept,
                               const std::string& c, const std::string& block, const std::string& lanes) {
  const auto at = [&](std::size_t k) { return fmt::format("{}[{}]", kept[k], block_.packet); };
  EachPacket(c, block, [&] {
    Names names = names_;
    std::size_t k = 0;
    for (const int id : values) {
      DeclareOfColumns(id, c, lanes, &names);
      if (!IsKept(id)) continue;
      out_.Line("{} = {};", at(k), AsPacket(id).text);
      text_[id] = {at(k++)};
    }
    const auto begin = [&](const plan::Reduction& reduction, Expr* text) {
      out_.Line("{} = {};", at(k), speller_->Fill(value(reduction.result).type, Identity(kernel_, reduction)).text);
      *text = {at(k++)};
    };
    for (const auto& reduction : phase.reductions) begin(reduction, &text_[reduction.result]);
    for (const int id : plan::ScansOf(kernel_, phase)) begin(JoinedBy(kernel_, id), &carry_[id]);
  });
}

void ColumnEmitter::InRegisters(const Phase& phase, const std::function<void()>& body) {
  const Names outer = names_;
  std::vector<std::pair<Expr*, Expr>> kept;
  const auto hold = [&](int id, Expr* text, const std::string& wanted) {
    const std::string name = names_.Make(wanted);
    out_.Line("{} {} = {};", speller_->Type(value(id).type), name, text->text);
    kept.emplace_back(text, std::exchange(*text, {name}));
  };
  for (const auto& reduction : phase.reductions)
    hold(reduction.result, &text_[reduction.result], AccumulatorName(kernel_, reduction));
  for (const int id : plan::ScansOf(kernel_, phase)) hold(id, &carry_[id], CarryName(JoinedBy(kernel_, id)));
  body();
  for (const auto& [text, was] : kept) {
    out_.Line("{} = {};", was.text, text->text);
    *text = was;
  }
  names_ = outer;
}

void ColumnEmitter::WalkBlock(const Phase& phase, const std::string& c, const std::string& block, int axis) {
  const std::string i = fmt::format("i{}", axis), begin = BlockBegin(axis), end = BlockEnd(axis);
  if (axis + 1 < kernel_.rank()) {
    out_.Open("for (long long {0} = {1}; {0} < {2}; ++{0})", i, begin, end);
    WalkBlock(phase, c, block, axis + 1);
    out_.Close();
    return;
  }
  if (block_.side_by_side) {
    out_.Open("for (long long {0} = {1}; {0} < {2}; ++{0})", i, begin, end);
    EachSideBySide(c, block, [&] { ColumnElement(phase, c, block_.lanes, names_); });
    out_.Close();
    return;
  }
  std::string left = begin;
  if (TakesRowsAtOnce(phase)) {
    left = WholeSteps(begin, end, kRows);
    if (!block_.by_row.empty()) {
      const std::string together = names_.Make("together");
      out_.Line("const long long {} = {} ? {} : {};", together, block_.by_row, begin, left);
      left = together;
    }
    out_.Open("for (long long {0} = {1}; {0} < {2}; {0} += {3})", block_.row, begin, left, kRows);
    EachPacket(c, block, [&] {
      InRegisters(phase, [&] {
        out_.Open("for (int k = 0; k < {}; ++k)", kRows);
        out_.Line("const long long {} = {} + k;", i, block_.row);
        ColumnElement(phase, c, "", names_);
        out_.Close();
      });
    });
    out_.Close();
  }
  out_.Open("for (long long {0} = {1}; {0} < {2}; ++{0})", i, left, end);
  for (const auto& store : phase.stores)
    if (kept_columns_.joins && kept_at_.count(store.operand) == 0 && MakesLines(store))
      DeclareStreamedRow(store, Address(store.operand, block), true);
  const bool streams = StreamsColumns(phase);
  if (streams) kept_columns_.streams = true;
  WhereGuarded(
      phase, [&] { EachPacket(c, block, [&] { InRegisters(phase, [&] { ColumnElement(phase, c, "", names_); }); }); });
  if (streams) kept_columns_.streams = false;
  FinishStreamedRows();
  out_.Close();
}

}  // namespace umbra::codegen

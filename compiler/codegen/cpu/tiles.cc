// Reductions whose rows share what they read, such as products of matrices: several rows and packets of columns at a
// time, so that what rows share is loaded once for all of them, and what columns share once for all packets. Each
// result is reduced in the same order as alone.
#include "compiler/codegen/cpu/tiles.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "compiler/codegen/reductions.h"
#include "runtime/panels.h"

namespace umbra::codegen {

namespace {

// Conditions have no type that an array of them could have: they are written where they are read, and a compiler
// computes them once; longer ones become numbers.
constexpr std::size_t kLongCondition = 200;
constexpr int kWorthFewer = 3;  // rows

}  // namespace

int TileEmitter::SharedAxis() const {
  const bool plain_columns = columns_ && !Splits() && !options_.variant.strided && signature_.row_axes >= 2;
  return plain_columns && plan::SharesRows(kernel_) ? signature_.row_axes - 2 : -1;
}

void TileEmitter::SharedRows() {
  const std::string i = ColumnIndex(), n = ExtentName(vector_axis_);
  tile_.axis = SharedAxis();
  FindShares();
  for (std::size_t k = 0; k < operands_.size(); ++k)
    if (operands_[k].base != operands_[k].name && !Moves(signature_.operands[k], tile_.axis))
      out_.Line("{} = {};", PointerText(k), TileRowAddress(k, ""));
  const int packets = TilePackets();
  const Names outer = names_;
  const std::vector<Operand> operands = operands_;
  const bool in_place = !options_.variant.packed, parts = GoesByParts() && in_place;
  tile_.begin = Begin(tile_.axis), tile_.end = End(tile_.axis);
  const bool by_bands = in_place && MayGoByBands();
  if (by_bands) OpenBands(packets);
  if (parts) OpenPart();
  out_.Line("long long {} = 0;", i);
  // Of few rows a tile has more columns: as many sums, and longer runs of memory.
  if (const auto few = IfFewRows(TileRows(2 * packets));
      few && in_place && LoadsFillPackets() && !signature_.panels.empty())
    TilePanel(fmt::format("for (; {3}{0} + {1} <= {2}; {0} += {1})", i, 2 * packets * width_, n, *few), 2 * packets,
              "");
  TilePanel(fmt::format("for (; {0} + {1} <= {2}; {0} += {1})", i, packets * width_, n), packets, "");
  TilePanel(fmt::format("for (; {0} + {1} <= {2}; {0} += {1})", i, width_, n), 1, "");
  if (width_ > 1)
    TilePanel(fmt::format("if ({} < {})", i, n), 1, fmt::format("const long long lanes = {} - {};", n, i));
  if (parts) ClosePart();
  if (by_bands) out_.Close();
  names_ = outer;
  operands_ = operands;
}

bool TileEmitter::MayGoByBands() const {
  const runtime::Extent &rows = signature_.axes[static_cast<std::size_t>(tile_.axis)],
                        &columns = signature_.axes[static_cast<std::size_t>(vector_axis_)],
                        &steps = signature_.axes.back();
  return LoadsFillPackets() && (!rows.is_static() || rows.value > runtime::kFewRows) &&
         runtime::MayGoByBands(signature_, steps.is_static() ? steps.value : 1,
                               columns.is_static() ? columns.value : std::numeric_limits<index_t>::max(),
                               options_.target == Target::kAvx512);
}

void TileEmitter::OpenBands(int packets) {
  const std::string band = names_.Make("band"), first = names_.Make("first_row"), last = names_.Make("last_row");
  out_.Line("const long long {} = args->extent[{}] != 0 ? {} : {} - {};", band, OwnNumbers() + 1, TileRows(packets),
            tile_.end, tile_.begin);
  out_.Open("for (long long {0} = {1}; {0} < {2}; {0} += {3})", first, tile_.begin, tile_.end, band);
  out_.Line("const long long {} = smaller({} + {}, {});", last, first, band, tile_.end);
  tile_.begin = first, tile_.end = last;
}

std::optional<std::string> TileEmitter::IfFewRows(int rows) const {
  const runtime::Extent& extent = signature_.axes[static_cast<std::size_t>(tile_.axis)];
  if (extent.is_static()) return extent.value <= rows ? std::optional<std::string>("") : std::nullopt;
  return fmt::format("{} <= {} && ", tile_.axis == 0 ? "end - begin" : ExtentName(tile_.axis), rows);
}

int TileEmitter::TileRows(int packets) const {
  const int registers = options_.target == Target::kAvx512 ? 24
                        : LoadsFillPackets()               ? 12
                                                           : 8,
            most = LoadsFillPackets() ? 8 : 4;
  const auto reductions = static_cast<int>(kernel_.phases[0].reductions.size());
  int rows = std::clamp(registers / (packets * reductions), 1, most);
  const runtime::Extent& extent = signature_.axes[static_cast<std::size_t>(tile_.axis)];
  if (extent.is_static()) rows = static_cast<int>(std::min<index_t>(rows, std::max<index_t>(1, extent.value)));
  return rows;
}

void TileEmitter::FindShares() {
  tile_.shares.clear();
  const std::vector<bool> rows = plan::MovesAlong(kernel_, tile_.axis),
                          columns = plan::MovesAlong(kernel_, vector_axis_);
  for (std::size_t id = 0; id < kernel_.values.size(); ++id) tile_.shares.push_back({rows[id], columns[id]});
}

void TileEmitter::FindNeeded() {
  tile_.early.clear();
  for (const auto& reduction : kernel_.phases[0].reductions) Need(reduction.value, &tile_.early);
}

void TileEmitter::Need(int id, std::set<int>* needed) const {
  if (value(id).scope == Scope::kUniform || !needed->insert(id).second || tile_.made.count(id) != 0) return;
  for (const int arg : value(id).args) Need(arg, needed);
}

void TileEmitter::TilePanel(const std::string& head, int packets, const std::string& lanes) {
  const Names outer = names_;
  const std::vector<Operand> operands = operands_;
  const int rows = TileRows(packets);
  tile_.rows = rows;
  tile_.packets = packets;
  tile_.lanes = lanes.empty() ? "" : "lanes";
  out_.Open("{}", head);
  if (!lanes.empty()) out_.Line("{}", lanes);
  const bool parts = GoesByParts() && options_.variant.packed;
  if (parts) OpenPart();
  if (options_.variant.packed) DeclarePanels();
  FindNeeded();
  const Names inside = names_;
  const std::string first = tile_.begin, last = tile_.end;
  const int few = rows / 2;
  if (HasPairs()) {
    out_.Line("long long j{} = {};", tile_.axis, first);
    tile_.rows = 2 * rows;
    tile_.pairs = true;
    out_.Open("for (; {2} - j{0} >= {1}; j{0} += {1})", tile_.axis, tile_.rows, last);
    SharedTile(last);
    out_.Close();
    names_ = inside;
    tile_.rows = rows;
    tile_.pairs = false;
    out_.Open("for (; j{0} < {1}; j{0} += {2})", tile_.axis, last, rows);
  } else if (packets > 1 && few >= kWorthFewer) {  // rows beyond the last would be computed for nothing
    out_.Line("long long j{} = {};", tile_.axis, first);
    out_.Open("for (; {2} - j{0} > {1}; j{0} += {3})", tile_.axis, few, last, rows);
    SharedTile(last);
    out_.Close();
    names_ = inside;
    tile_.rows = few;
    out_.Open("if (j{0} < {1})", tile_.axis, last);
  } else {
    out_.Open("for (long long j{0} = {1}; j{0} < {2}; j{0} += {3})", tile_.axis, first, last, rows);
  }
  SharedTile(last);
  out_.Close();
  if (parts) ClosePart();
  out_.Close();
  names_ = outer;
  operands_ = operands;
  tile_.panels.clear();
  tile_.made.clear();
}

void TileEmitter::SharedTile(const std::string& last) {
  const Phase& phase = kernel_.phases[0];
  const std::string row = tile_.rows == 1 ? fmt::format("j{}", tile_.axis)
                          : tile_.pairs   ? TileRow()
                                          : fmt::format("smaller(j{} + r, {} - 1)", tile_.axis, last);
  if (const auto factors = FindFactors()) return ProductTile(*factors, last);
  std::vector<std::string> names;
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    names.push_back(operands_[k].name);
    if (!Moves(signature_.operands[k], tile_.axis)) continue;
    if (tile_.rows > 1) {
      out_.Line("{}[{}];", PointerText(k), tile_.rows);
      out_.Line("for (int r = 0; r < {}; ++r) {}[r] = {};", tile_.rows, operands_[k].name, TileRowAddress(k, row));
      operands_[k].name += "[r]";
    } else {
      out_.Line("{} = {};", PointerText(k), TileRowAddress(k, row));
    }
  }
  PrefetchResults();
  for (const auto& reduction : phase.reductions) DeclareSums(reduction);
  if (part_count_.empty()) BeginSums();
  else ResumeSums(row);
  for (int id : phase.row_values)
    if (tile_.early.count(id) != 0) DefineInTile(id);
  const auto step = [&] {
    const Names outer = names_;
    PrefetchNextTile();
    for (int id : phase.element_values)
      if (tile_.early.count(id) != 0 && !IsBoth(id) && !IsOfRow(id)) DefineInTile(id);
    const auto declare_rows = [&] {
      for (int id : phase.element_values) {
        if (tile_.early.count(id) == 0 || !IsOfRow(id)) continue;
        if (value(id).kind == Value::Kind::kLoad && GoesInOrder(value(id).type)) LoadInOrder(id);
        else Declare(id, value(id).type, TilePacket(id), &names_);
      }
    };
    EachOfTile({true, true}, declare_rows, [&] {
      for (int id : phase.element_values)
        if (tile_.early.count(id) != 0 && IsBoth(id)) Declare(id, value(id).type, TilePacket(id), &names_);
      for (const auto& reduction : phase.reductions) {
        const Expr total{accumulator_[reduction.result] + TileAt({true, true})};
        const std::string sum = Accumulate(reduction, total);
        RemarkPlace(reduction.result);
        out_.Line("{} = {};", total.text,
                  GoesInOrder(value(reduction.result).type) ? fmt::format("in_order({})", sum) : sum);
      }
    });
    names_ = outer;
  };
  const int innermost = kernel_.rank() - 1;
  InnerLoops(signature_.row_axes, innermost, [&] {
    std::string begin = BlockBegin(innermost);
    if (const int operand = LineOperand(innermost); operand >= 0) begin = TileLines(operand, innermost, step);
    out_.Open("for (long long i{0} = {1}; i{0} < {2}; ++i{0})", innermost, begin, BlockEnd(innermost));
    step();
    out_.Close();
  });
  EndTile(last, row);
  for (std::size_t k = 0; k < operands_.size(); ++k) operands_[k].name = names[k];
}

std::string TileEmitter::DeclareSums(const plan::Reduction& reduction) {
  const std::string name = names_.Make(AccumulatorName(kernel_, reduction));
  accumulator_[reduction.result] = name;
  out_.Line("{} {}{};", speller_->Type(value(reduction.result).type), name, TileSize({true, true}));
  return name;
}

void TileEmitter::BeginSums() {
  for (const auto& reduction : kernel_.phases[0].reductions)
    EachOfTile({true, true}, [&] {
      out_.Line("{} = {};", accumulator_[reduction.result] + TileAt({true, true}),
                speller_->Fill(value(reduction.result).type, Identity(kernel_, reduction)).text);
    });
}

void TileEmitter::EndTile(const std::string& last, const std::string& row) {
  if (part_count_.empty()) return TileResults(last);
  const std::string n = ExtentName(kernel_.rank() - 1);
  if (tile_.called) {
    out_.Open("if ({} + {} == {})", tile_.first, part_count_, n);
  } else {
    out_.Open("if ({} + {} < {})", tile_.first, part_count_, n);
    KeepSums(row);
    out_.Middle("} else {");
  }
  TileResults(last);
  out_.Close();
}

void TileEmitter::PrefetchResults() {
  for (int id = 0; id < static_cast<int>(kernel_.values.size()); ++id) {
    const Value& v = value(id);
    if (v.kind != Value::Kind::kLoad || v.scope != Scope::kRow || tile_.early.count(id) != 0 || !ShareOf(id).row ||
        !ShareOf(id).column)
      continue;
    if (tile_.rows == 1 || !tile_.lanes.empty() || !VectorStride(v.index).empty()) continue;
    OpenRows();
    if (tile_.called)
      out_.Line("{} = {};", PointerText(static_cast<std::size_t>(v.index)),
                TileRowAddress(static_cast<std::size_t>(v.index), TileRow()));
    Prefetch(OperandType(v.index), Address(v.index, ColumnIndex()), tile_.packets * width_, 1);
    out_.Close();
  }
}

bool TileEmitter::HasPairs() const {
  const runtime::Extent& extent = signature_.axes[static_cast<std::size_t>(tile_.axis)];
  const bool has_rows = !extent.is_static() || extent.value >= 2 * tile_.rows;
  return has_rows && options_.target == Target::kAvx512 && tile_.rows > 1 && LineOperand(kernel_.rank() - 1) >= 0;
}

int TileEmitter::LineOperand(int axis) const {
  if (tile_.packets > 1 || tile_.rows == 1 || !LoadsFillPackets()) return -1;
  if (!tile_.lanes.empty() && !HasWholeColumns()) return -1;
  if (axis > signature_.row_axes || options_.spelling != Spelling::kPackets) return -1;
  int found = -1;
  for (const int id : kernel_.phases[0].element_values) {
    const Value& v = value(id);
    if (v.kind != Value::Kind::kLoad && v.kind != Value::Kind::kMap && v.kind != Value::Kind::kCast) return -1;
    if (v.kind != Value::Kind::kLoad || !ShareOf(id).row ||
        !Moves(signature_.operands[static_cast<std::size_t>(v.index)], axis))
      continue;
    if (ShareOf(id).column || (found >= 0 && found != v.index)) return -1;
    found = v.index;
  }
  const runtime::Extent& extent = signature_.axes[static_cast<std::size_t>(axis)];
  return found < 0 || (extent.is_static() && extent.value < LineElements(found)) ? -1 : found;
}

bool TileEmitter::HasWholeColumns() const {
  if (tile_.lanes.empty()) return true;
  const auto factors = FindFactors();
  return factors && (tile_.made.count(factors->column) != 0 || tile_.panels.count(value(factors->column).index) != 0);
}

int TileEmitter::LineElements(int operand) const {
  return std::min(16, kLine / static_cast<int>(SizeOf(OperandType(operand))));
}

std::string TileEmitter::TileLines(int operand, int axis, const std::function<void()>& step) {
  const int elements = LineElements(operand);
  const std::string at = names_.Make("line");
  out_.Line("long long {} = {};", at, BlockBegin(axis));
  const Names outer = names_;
  const std::vector<Operand> operands = operands_;
  const std::map<int, std::string> made = tile_.made;
  const std::string& stride = operands[static_cast<std::size_t>(operand)].stride_names[static_cast<std::size_t>(axis)];
  out_.Open("for (; {0} == 1 && {1} + {2} <= {3}; {1} += {2})", stride, at, elements, BlockEnd(axis));
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    if (!Moves(signature_.operands[k], axis)) continue;
    Operand& o = operands_[k];
    const std::string from = o.name, name = names_.Make(from.substr(0, from.find('[')) + "_line");
    o.name = name;
    if (static_cast<int>(k) == operand) {
      const std::string& by_row = o.stride_names[static_cast<std::size_t>(tile_.axis)];
      const int addresses = tile_.pairs ? tile_.rows / 2 : tile_.rows;
      out_.Line("{}[{}];", PointerText(k), tile_.rows);
      out_.Open("for (int r = 0; r < {}; ++r)", addresses);
      out_.Line("{}[r] = in_register({} + {});", name, from, at);
      if (tile_.pairs) out_.Line("{0}[r + {1}] = {0}[r] + {1} * {2};", name, addresses, by_row);
      for (int next = tile_.rows; next < 2 * tile_.rows; next += addresses)
        out_.Line("prefetch({}[r] + {} * {});", name, next, by_row);
      out_.Close();
      o.name += "[r]";
      o.stride_names[static_cast<std::size_t>(axis)].clear();
    } else {
      out_.Line("{} = {} + {} * {};", PointerText(k), from, at, o.stride_names[static_cast<std::size_t>(axis)]);
    }
  }
  for (auto& [id, panel] : tile_.made) {
    const std::string from = panel;
    panel = names_.Make(from + "_line");
    out_.Line("const {}* {} = {} + {} * {};", ElementType(value(id).type), panel, from, at, tile_.packets * width_);
  }
  out_.Line("UMBRA_UNROLL");
  out_.Open("for (long long i{0} = 0; i{0} < {1}; ++i{0})", axis, elements);
  step();
  out_.Close();
  out_.Close();
  operands_ = operands;
  tile_.made = made;
  names_ = outer;
  return at;
}

void TileEmitter::TileResults(const std::string& last) {
  const Phase& phase = kernel_.phases[0];
  // What is long for each of them is a loop over a copy: sums themselves stay in registers.
  const bool is_long = !tile_.called && (signature_.turned || !kernel_.final_row_values.empty());
  for (const auto& reduction : phase.reductions) {
    const std::string total = accumulator_[reduction.result];
    std::string name = total;
    if (is_long) {
      name = names_.Make(total + "_found");
      out_.Line("{} {}{};", speller_->Type(value(reduction.result).type), name, TileSize({true, true}));
      EachOfTile({true, true}, [&] { out_.Line("{0}{2} = {1}{2};", name, total, TileAt({true, true})); });
    }
    text_[reduction.result] = {name + TileAt({true, true})};
  }
  if (tile_.rows > 1) OpenRows();
  if (tile_.called) DeclareRowPointers();
  else if (tile_.rows > 1 && !tile_.pairs) out_.Line("if (j{} + r >= {}) break;", tile_.axis, last);
  if (tile_.packets > 1) out_.Open("for (int c = 0; c < {}; ++c)", tile_.packets);
  Names names = names_;
  std::set<int> needed;
  for (const auto& store : kernel_.final_stores) Need(store.value, &needed);
  const auto declare = [&](const std::vector<int>& values) {
    for (int id : values) {
      if (needed.count(id) == 0 || tile_.early.count(id) != 0 || value(id).kind == Value::Kind::kReduced) continue;
      Declare(id, value(id).type, TilePacket(id), &names);
    }
  };
  declare(phase.row_values);
  declare(kernel_.final_row_values);
  for (const auto& store : kernel_.final_stores) StorePacket(store, TileIndex(), tile_.lanes);
  if (tile_.packets > 1) out_.Close();
  if (tile_.rows > 1) out_.Close();
}

bool TileEmitter::GoesInOrder(DType type) const {
  return tile_.rows > 1 && LoadsFillPackets() && !IsHalf(type) && type != DType::kBool;
}

void TileEmitter::LoadInOrder(int id) {
  const Value& v = value(id);
  const std::string name = names_.Make(NameOf(id)), address = Address(v.index, "");
  RemarkPlace(id);
  out_.Line("const {} {} = {};", speller_->Type(v.type), name,
            speller_->Fill(v.type, fmt::format("load_in_order({})", address)).text);
  text_[id] = {name};
}

void TileEmitter::DefineInTile(int id) {
  const Value& v = value(id);
  if (v.kind == Value::Kind::kConstant) return;
  const bool is_condition = v.type == DType::kBool;
  if (is_condition) {
    text_[id] = TilePacket(id);
    if (text_[id].text.size() <= kLongCondition) return;
  }
  const Share share = ShareOf(id);
  const DType type = is_condition ? DType::kInt32 : v.type;
  const std::string name = names_.Make(NameOf(id));
  out_.Line("{} {}{};", speller_->Type(type), name, TileSize(share));
  EachOfTile(share, [&] {
    const Expr e = TilePacket(id);
    RemarkPlace(id);
    out_.Line("{}{} = {};", name, TileAt(share), is_condition ? speller_->Cast(DType::kBool, type, e).text : e.text);
  });
  text_[id] = is_condition ? Expr{fmt::format("{}{} != 0", name, TileAt(share)), false} : Expr{name + TileAt(share)};
}

Expr TileEmitter::TilePacket(int id) const {
  const Value& v = value(id);
  if (const auto made = tile_.made.find(id); made != tile_.made.end())
    return speller_->Load(v.type, InPanel(made->second));
  return v.kind == Value::Kind::kLoad ? LoadPacket(v, TileIndexOf(v.index), tile_.lanes) : DefinePacket(id);
}

std::string TileEmitter::TileSize(Share share) const {
  return (share.row && tile_.rows > 1 ? fmt::format("[{}]", tile_.rows) : "") +
         (share.column && tile_.packets > 1 ? fmt::format("[{}]", tile_.packets) : "");
}

std::string TileEmitter::TileAt(Share share) const {
  return std::string(share.row && tile_.rows > 1 ? "[r]" : "") + (share.column && tile_.packets > 1 ? "[c]" : "");
}

void TileEmitter::EachOfTile(Share share, const std::function<void()>& of_row, const std::function<void()>& body) {
  const bool rows = share.row && tile_.rows > 1, packets = share.column && tile_.packets > 1;
  if (rows && LoadsFillPackets() && !tile_.called) out_.Line("UMBRA_UNROLL");
  if (rows) OpenRows();
  of_row();
  if (packets) out_.Open("for (int c = 0; c < {}; ++c)", tile_.packets);
  body();
  if (packets) out_.Close();
  if (rows) out_.Close();
}

std::string TileEmitter::PointerText(std::size_t k) const {
  return fmt::format("{}{}* {}", signature_.operands[k].store ? "" : "const ",
                     ElementType(OperandType(static_cast<int>(k))), operands_[k].name);
}

std::string TileEmitter::TileRowAddress(std::size_t k, const std::string& row) const {
  const Operand& o = operands_[k];
  std::string text = o.base;
  for (int axis = 0; axis <= tile_.axis; ++axis)
    if (Moves(signature_.operands[k], axis))
      text += fmt::format(" + {} * {}", axis == tile_.axis ? row : fmt::format("i{}", axis),
                          o.stride_names[static_cast<std::size_t>(axis)]);
  const int innermost = kernel_.rank() - 1;
  if (!tile_.first.empty() && Moves(signature_.operands[k], innermost))
    text += fmt::format(" + {} * {}", tile_.first, o.stride_names[static_cast<std::size_t>(innermost)]);
  return text;
}

}  // namespace umbra::codegen

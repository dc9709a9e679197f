// Rows of fewer elements than packets have lanes, which packets go across: those of as many rows are brought from
// memory together and turned in registers, and results are turned back. Values that are dear and needed again are kept.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "compiler/codegen/cpu/columns.h"
#include "compiler/plan/short_rows.h"

namespace umbra::codegen {

namespace {

// Packets of a result that are written before those of its next row.
constexpr int kPacketsOfTurn = 16;
// Places of a row that have code each, where they choose.
constexpr index_t kMostChosen = 16;

}  // namespace

bool ColumnEmitter::HasShortRows() const {
  if (!signature_.goes_along_columns() || Splits() || options_.variant.strided ||
      options_.spelling != Spelling::kPackets || width_ == 1)
    return false;
  if (kernel_.rank() == signature_.row_axes || !IsBaked(ElementAxis())) return false;
  // Of several inner axes one reduction's operands are loaded along the last one.
  if (kernel_.rank() - signature_.row_axes > 1 && !RowsAreOne() &&
      (kernel_.phases.size() != 1 || !kernel_.phases[0].stores.empty() || ElementsOfShortRow() < 2 ||
       !plan::IsShortRow(kernel_, ElementsOfShortRow())))
    return false;
  for (const Phase& phase : kernel_.phases)
    if (phase.guard >= 0) return false;
  // An axis of one element is there for what is gathered.
  if (const auto& values = kernel_.phases[0].element_values; ElementsOfShortRow() < 2)
    return std::any_of(values.begin(), values.end(), [this](int id) { return IsFromShortRows(id); });
  for (std::size_t k = 0; k < signature_.operands.size(); ++k)
    if (IsInShortRows(k)) return true;
  return false;
}

index_t ColumnEmitter::ElementsOfShortRow() const {
  index_t elements = 1;
  for (int axis = RowsAreOne() ? signature_.row_axes : ElementAxis(); axis <= ElementAxis(); ++axis)
    elements *= signature_.axes[static_cast<std::size_t>(axis)].value;
  return elements;
}

std::string ColumnEmitter::ElementIndex() const {
  int axis = RowsAreOne() ? signature_.row_axes : ElementAxis();
  std::string index = fmt::format("i{}", axis);
  while (axis++ < ElementAxis())
    index = fmt::format("{} * {} + i{}", axis - 1 > signature_.row_axes ? "(" + index + ")" : index,
                        signature_.axes[static_cast<std::size_t>(axis)].value, axis);
  return index;
}

// A processor that puts lines together from packets of half a line keeps few that are not whole, and hardly any that
// lie alike in their pages, as those of planes do.
std::string ColumnEmitter::ShortRowsInTurns(const std::string& c, const std::string& first, const std::string& last) {
  std::map<int, std::string> turns;  // by operand
  const Names outer = names_;
  for (std::size_t k = 0; k < signature_.operands.size(); ++k)
    if (IsWrittenInTurns(k)) turns[static_cast<int>(k)] = names_.Make(operands_[k].name + "_turns");
  if (!StreamsAcross() || turns.empty() || RegisterBytes(options_.target) >= kLine) {
    names_ = outer;
    return first;
  }
  const std::string block = fmt::format("j{}", vector_axis_), packet = names_.Make("p");
  const int columns = kPacketsOfTurn * width_;
  const auto each_packet = [&] { out_.Open("for (int {0} = 0; {0} < {1}; ++{0})", packet, kPacketsOfTurn); };
  out_.Open("for (long long {0} = {1}; {0} + {2} <= {3}; {0} += {2})", block, first, columns, last);
  for (const auto& [operand, name] : turns) {
    out_.Line("{} {}[{}][{}];", speller_->Type(OperandType(operand)), name, ElementsOfShortRow(), kPacketsOfTurn);
    stored_at_hand_[operand] = fmt::format("{}[i{}][{}]", name, ElementAxis(), packet);
  }
  each_packet();
  out_.Line("const long long {} = {} + {} * {};", c, block, packet, width_);
  ShortRows(c, names_);
  out_.Close();
  out_.Open("for (long long i{0} = 0; i{0} < {1}; ++i{0})", ElementAxis(), ElementsOfShortRow());
  for (const auto& [operand, name] : turns) {
    each_packet();
    out_.Line("{};", speller_->Stream(OperandType(operand),
                                      Address(operand, fmt::format("{} + {} * {}", block, packet, width_)),
                                      {stored_at_hand_.at(operand)}));
    out_.Close();
  }
  out_.Close();
  out_.Close();
  stored_at_hand_.clear();
  names_ = outer;
  return WholeSteps(first, last, columns);
}

bool ColumnEmitter::IsWrittenInTurns(std::size_t k) const {
  const runtime::Access& access = signature_.operands[k];
  return access.store && !RowsAreOne() && OperandType(static_cast<int>(k)) != DType::kBool &&
         AxisDim(access, vector_axis_) >= 0 && AxisDim(access, ElementAxis()) >= 0 && !IsInShortRows(k);
}

void ColumnEmitter::ShortRows(const std::string& c, Names names) {
  const std::string element = "[" + ElementIndex() + "]";
  in_short_rows_ = true;
  std::map<int, std::string> turned;  // by operand
  for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
    if (!IsInShortRows(k)) continue;
    const int operand = static_cast<int>(k);
    const bool is_stored = signature_.operands[k].store;
    turned[operand] = names.Make(operands_[k].name + "_columns");
    (is_stored ? stored_at_hand_ : at_hand_)[operand] = turned[operand] + element;
  }
  const auto load = [&] {
    for (const auto& [operand, columns] : turned) {
      const auto k = static_cast<std::size_t>(operand);
      out_.Line("{} {}[{}];", speller_->Type(OperandType(operand)), columns, ElementsOfShortRow());
      if (!signature_.operands[k].store) out_.Line("load_columns({}, {});", ColumnsOf(k, c), columns);
    }
  };
  if (ElementAxis() == signature_.row_axes || RowsAreOne()) load();
  else load_short_rows_ = load;
  for (const Phase& phase : kernel_.phases) LoadGatheredRows(phase, c, turned, &names);
  std::map<int, std::string> kept;  // by value: those that an earlier phase has kept
  for (std::size_t p = 0; p < kernel_.phases.size(); ++p) {
    const Phase& phase = kernel_.phases[p];
    for (const int id : phase.row_values) DeclarePacket(id, c, "", &names);
    reached_ = NeededOf(phase, kept);
    std::map<int, std::string> to_keep;
    for (const int id : phase.element_values)
      if (IsReached(id) && kept.count(id) == 0 && IsKeptFrom(p, id))
        to_keep[id] = DeclareColumns(value(id).type, NameOf(id), ElementsOfShortRow(), &names);
    for (const auto& [id, name] : kept) text_[id] = {name + element};
    kept_here_ = to_keep;
    ColumnLoop(phase, c, "", &names);
    kept_here_.clear();
    reached_.reset();
    kept.merge(to_keep);
  }
  for (const int id : kernel_.final_row_values) DeclarePacket(id, c, "", &names);
  for (const auto& store : kernel_.final_stores) StorePacket(store, c, "");
  for (const auto& [operand, columns] : turned) {
    if (!signature_.operands[static_cast<std::size_t>(operand)].store) continue;
    out_.Line("{}_columns({}, {});", StreamsAcross() ? "stream" : "store",
              ColumnsOf(static_cast<std::size_t>(operand), c), columns);
    has_streamed_ = has_streamed_ || StreamsAcross();
    stored_at_hand_.erase(operand);
  }
  at_hand_.clear();
  columns_at_hand_.clear();
  load_short_rows_ = nullptr;
  in_short_rows_ = false;
}

void ColumnEmitter::BeforeInnerLoop(int axis) {
  if (load_short_rows_ && axis == ElementAxis()) load_short_rows_();
  // What the place in the row chooses is known then.
  if ((in_short_rows_ || !columns_at_hand_.empty()) && axis == ElementAxis() && PlacesChoose())
    out_.Line("UMBRA_UNROLL");
}

bool ColumnEmitter::PlacesChoose() const {
  return ElementsOfShortRow() <= kMostChosen &&
         std::any_of(kernel_.phases[0].element_values.begin(), kernel_.phases[0].element_values.end(), [this](int id) {
           return value(id).kind == Value::Kind::kMap && value(id).op == graph::Op::select &&
                  IsPositional(value(id).args[0]);
         });
}

void ColumnEmitter::LoadGatheredRows(const Phase& phase, const std::string& c, const std::map<int, std::string>& turned,
                                     Names* names) {
  std::map<std::string, std::string> columns;  // by where the rows are
  for (const int id : phase.element_values) {
    if (!IsFromShortRows(id)) continue;
    const Value& v = value(id);
    const auto same =
        std::find_if(turned.begin(), turned.end(), [&](const auto& of) { return IsOfRowsOf(v, of.first); });
    if (same != turned.end()) {
      columns_at_hand_[id] = same->second;
      continue;
    }
    const plan::GatheredRow row = *plan::RowOf(plan_, kernel_, v, vector_axis_);
    const std::size_t rank = v.args.size() - (v.guarded ? 1 : 0);
    const bool by_one = row.dim + 2 < rank || IsByOne(v, rank - 1);
    const std::string rows = fmt::format("{}, {}, {}", GatherAddress(v, c, "0LL", rank - row.dim - 1),
                                         lanes_.stride_name(v.index, static_cast<int>(row.dim)),
                                         by_one ? "1" : lanes_.stride_name(v.index, static_cast<int>(rank) - 1));
    std::string& name = columns[rows];
    if (name.empty()) {
      name = DeclareColumns(v.type, operands_[static_cast<std::size_t>(v.index)].name, row.elements.value, names);
      out_.Line("load_columns({}, {});", rows, name);
    }
    columns_at_hand_[id] = name;
  }
}

// Are the rows that the gather takes its elements from those of the operand?
bool ColumnEmitter::IsOfRowsOf(const Value& gather, int operand) const {
  const runtime::Access &access = signature_.operands[static_cast<std::size_t>(operand)],
                        &source = signature_.operands[static_cast<std::size_t>(gather.index)];
  if (access.store || access.buffer != source.buffer || ElementAxis() != signature_.row_axes) return false;
  for (int d = 0; d < access.LastDim(); ++d) {
    const Value& place = value(gather.args[static_cast<std::size_t>(d)]);
    if (place.kind != Value::Kind::kIndex || AxisDim(access, place.index) != d) return false;
  }
  return true;
}

// As plan::GoAcrossShortRows found it.
bool ColumnEmitter::IsFromShortRows(int id) const {
  const Value& v = value(id);
  if (v.kind != Value::Kind::kGather || v.type == DType::kBool) return false;
  const auto row = plan::RowOf(plan_, kernel_, v, vector_axis_);
  if (!row || !row->elements.is_static() || row->elements.value < 1 || !plan::IsShortRow(kernel_, row->elements.value))
    return false;
  const auto row_place = v.args.begin() + static_cast<std::ptrdiff_t>(row->dim);
  const auto end = v.args.end() - (v.guarded ? 1 : 0);
  for (auto place = v.args.begin(); place != end; ++place)
    if (SlopeOf(*place) != (place == row_place ? 1 : 0)) return false;
  for (int axis = 0; axis < kernel_.rank(); ++axis) {
    const std::vector<bool> moves = plan::MovesAlong(kernel_, axis);
    const auto moved = [&](int arg) { return moves[static_cast<std::size_t>(arg)]; };
    const bool of_row = axis == ElementAxis();
    if (of_row ? std::any_of(v.args.begin(), row_place + 1, moved) : std::any_of(row_place + 1, v.args.end(), moved))
      return false;
  }
  return true;
}

bool ColumnEmitter::IsInShortRows(std::size_t k) const {
  const runtime::Access& access = signature_.operands[k];
  const DType type = plan_.buffers[static_cast<std::size_t>(access.buffer)].dtype;
  return type != DType::kBool && !access.gathered && AxisDim(access, vector_axis_) >= 0 &&
         AxisDim(access, ElementAxis()) == access.LastDim();
}

std::string ColumnEmitter::ColumnsOf(std::size_t k, const std::string& c) const {
  const Operand& o = operands_[k];
  const std::string& by_row = VectorStride(static_cast<int>(k));
  std::string row = o.name;
  for (int axis = signature_.row_axes; axis < ElementAxis() && !RowsAreOne(); ++axis)
    if (AxisDim(signature_.operands[k], axis) >= 0)
      row += fmt::format(" + i{} * {}", axis, o.stride_names[static_cast<std::size_t>(axis)]);
  return fmt::format("{} + {} * {}, {}, {}", row, c, by_row, by_row,
                     o.stride_names[static_cast<std::size_t>(ElementAxis())]);
}

std::string ColumnEmitter::DeclareColumns(DType type, const std::string& name, index_t count, Names* names) {
  const std::string columns = names->Make(name + "_columns");
  out_.Line("{} {}[{}];", speller_->Type(type), columns, count);
  return columns;
}

std::set<int> ColumnEmitter::NeededOf(const Phase& phase, const std::map<int, std::string>& kept) const {
  std::set<int> needed;
  const std::function<void(int)> need = [&](int id) {
    if (kept.count(id) > 0 || !needed.insert(id).second) return;
    for (const int arg : value(id).args) need(arg);
  };
  for (const int id : ResultsOf(phase)) need(id);
  return needed;
}

bool ColumnEmitter::IsKeptFrom(std::size_t p, int id) const {
  const Value& v = value(id);
  if (v.kind != Value::Kind::kMap || v.type == DType::kBool || graph::Info(v.op).header == "arith" || !InPackets(id))
    return false;
  for (std::size_t later = p + 1; later < kernel_.phases.size(); ++later) {
    const auto& ids = kernel_.phases[later].element_values;
    if (std::find(ids.begin(), ids.end(), id) != ids.end()) return true;
  }
  return false;
}

void ColumnEmitter::KeepPacket(int id) {
  const auto kept = kept_here_.find(id);
  if (kept != kept_here_.end()) out_.Line("{}[{}] = {};", kept->second, ElementIndex(), text_.at(id).text);
}

}  // namespace umbra::codegen

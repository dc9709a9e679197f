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

}  // namespace

bool ColumnEmitter::HasShortRows() const {
  if (!signature_.goes_along_columns() || Splits() || (options_.variant.strided && RowsAreOne()) ||
      options_.spelling != Spelling::kPackets || width_ == 1)
    return false;
  if (kernel_.rank() == signature_.row_axes || !IsBaked(ElementAxis()) ||
      ElementsAlong({ElementAxis()}) > plan::kLongestOfSeveral)
    return false;
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

std::vector<int> ColumnEmitter::ElementAxes() const {
  std::vector<int> axes;
  for (int axis = RowsAreOne() ? signature_.row_axes : ElementAxis(); axis <= ElementAxis(); ++axis)
    axes.push_back(axis);
  return axes;
}

index_t ColumnEmitter::ElementsAlong(const std::vector<int>& axes) const {
  index_t elements = 1;
  for (const int axis : axes) elements *= signature_.axes[static_cast<std::size_t>(axis)].value;
  return elements;
}

std::string ColumnEmitter::ElementIndex(const std::vector<int>& axes) const {
  std::string index = fmt::format("i{}", axes.front());
  for (auto axis = axes.begin() + 1; axis != axes.end(); ++axis)
    index = fmt::format("{} * {} + i{}", axis > axes.begin() + 1 ? "(" + index + ")" : index, ElementsAlong({*axis}),
                        *axis);
  return "[" + index + "]";
}

ColumnEmitter::ShortRow ColumnEmitter::ShortRowOf(std::size_t k) const {
  const runtime::Access& access = signature_.operands[k];
  ShortRow row;
  const int first = runtime::FirstOfShortRow(signature_, access, RowsAreOne());
  for (int dim = first; dim <= access.LastDim(); ++dim)
    for (const int axis : ElementAxes())
      if (AxisDim(access, axis) == dim) row.side_by_side.push_back(axis);
  for (const int axis : ElementAxes())
    if (const int dim = AxisDim(access, axis); dim >= 0 && dim < first) row.apart.push_back(axis);
  return row;
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
  ShortRows(c, "", names_);
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

void ColumnEmitter::ShortRows(const std::string& c, const std::string& lanes, Names names) {
  const std::string element = ElementIndex(ElementAxes());
  in_short_rows_ = true;
  rolls_ = !lanes.empty();
  std::map<int, std::string> turned;  // by operand
  std::vector<std::size_t> to_load;
  for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
    if (!IsInShortRows(k)) continue;
    const int operand = static_cast<int>(k);
    const bool is_stored = signature_.operands[k].store;
    const ShortRow row = ShortRowOf(k);
    const auto same = std::find_if(turned.begin(), turned.end(),
                                   [&](const auto& of) { return HaveSameRows(k, static_cast<std::size_t>(of.first)); });
    turned[operand] = same != turned.end() ? same->second : names.Make(operands_[k].name + "_columns");
    if (same == turned.end()) to_load.push_back(k);
    (is_stored ? stored_at_hand_ : at_hand_)[operand] =
        turned[operand] + IndicesOf(row.apart) + ElementIndex(row.side_by_side);
  }
  const auto load = [&] {
    for (const std::size_t k : to_load) {
      const ShortRow row = ShortRowOf(k);
      const std::string& columns = turned.at(static_cast<int>(k));
      std::string sizes;
      for (const int axis : row.apart) sizes += fmt::format("[{}]", ElementsAlong({axis}));
      out_.Line("{} {}{}[{}];", speller_->Type(OperandType(static_cast<int>(k))), columns, sizes,
                ElementsAlong(row.side_by_side));
      if (!signature_.operands[k].store)
        EachApart(row, [&] { MoveColumns("load", k, c, lanes, columns + IndicesOf(row.apart)); });
    }
  };
  if (ElementAxis() == signature_.row_axes || RowsAreOne()) load();
  else load_short_rows_ = load;
  for (const Phase& phase : kernel_.phases) LoadGatheredRows(phase, c, turned, &names);
  std::map<int, std::string> kept;  // by value: those that an earlier phase has kept
  for (std::size_t p = 0; p < kernel_.phases.size(); ++p) {
    const Phase& phase = kernel_.phases[p];
    for (const int id : phase.row_values) DeclarePacket(id, c, lanes, &names);
    reached_ = NeededOf(phase, kept);
    std::map<int, std::string> to_keep;
    for (const int id : phase.element_values)
      if (IsReached(id) && kept.count(id) == 0 && IsKeptFrom(p, id))
        to_keep[id] = DeclareColumns(value(id).type, NameOf(id), ElementsOfShortRow(), &names);
    for (const auto& [id, name] : kept) text_[id] = {name + element};
    kept_here_ = to_keep;
    ColumnLoop(phase, c, lanes, &names);
    kept_here_.clear();
    reached_.reset();
    kept.merge(to_keep);
  }
  for (const int id : kernel_.final_row_values) DeclarePacket(id, c, lanes, &names);
  for (const auto& store : kernel_.final_stores) StorePacket(store, c, lanes);
  for (const auto& [operand, columns] : turned) {
    if (!signature_.operands[static_cast<std::size_t>(operand)].store) continue;
    const auto k = static_cast<std::size_t>(operand);
    const ShortRow row = ShortRowOf(k);
    const bool streams = StreamsAcross() && lanes.empty();
    EachApart(row, [&, name = columns] {
      MoveColumns(streams ? "stream" : "store", k, c, lanes, name + IndicesOf(row.apart));
    });
    has_streamed_ = has_streamed_ || streams;
    stored_at_hand_.erase(operand);
  }
  at_hand_.clear();
  columns_at_hand_.clear();
  load_short_rows_ = nullptr;
  in_short_rows_ = rolls_ = false;
}

bool ColumnEmitter::HasDenseRows() const {
  if (options_.variant.strided || !HasShortRows()) return false;
  for (const Phase& phase : kernel_.phases)
    for (const int id : phase.element_values)
      if (IsFromShortRows(id)) return false;
  for (std::size_t k = 0; k < signature_.operands.size(); ++k)
    if (IsInShortRows(k) && !signature_.operands[k].dense) return false;
  return true;
}

// Are the rows of two operands that are read the same ones, whose elements come in another order?
bool ColumnEmitter::HaveSameRows(std::size_t a, std::size_t b) const {
  const runtime::Access &one = signature_.operands[a], &other = signature_.operands[b];
  if (one.store || other.store || one.buffer != other.buffer || !one.dense || !other.dense) return false;
  const int first = runtime::FirstOfShortRow(signature_, one, true);
  if (first != runtime::FirstOfShortRow(signature_, other, true) || one.LastDim() != other.LastDim()) return false;
  for (int axis = 0; axis < kernel_.rank(); ++axis) {
    const int dim = AxisDim(one, axis), other_dim = AxisDim(other, axis);
    if (dim != other_dim && (dim < first || other_dim < first)) return false;
  }
  return true;
}

std::string ColumnEmitter::IndicesOf(const std::vector<int>& axes) {
  std::string indices;
  for (const int axis : axes) indices += fmt::format("[i{}]", axis);
  return indices;
}

void ColumnEmitter::EachApart(const ShortRow& row, const std::function<void()>& body) {
  for (const int axis : row.apart)
    out_.Open("for (long long i{0} = 0; i{0} < {1}; ++i{0})", axis, ElementsAlong({axis}));
  body();
  for (std::size_t k = 0; k < row.apart.size(); ++k) out_.Close();
}

void ColumnEmitter::BeforeInnerLoop(int axis) {
  if (load_short_rows_ && axis == ElementAxis()) load_short_rows_();
  if (rolls_) out_.Line("UMBRA_ROLL");
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
    const bool dense = signature_.operands[static_cast<std::size_t>(v.index)].dense && !options_.variant.strided;
    const std::string by_row =
        dense ? std::to_string(row.elements.value) : lanes_.stride_name(v.index, static_cast<int>(row.dim));
    const std::string rows = fmt::format("{}, {}, {}", GatherAddress(v, c, "0LL", rank - row.dim - 1), by_row,
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
  if (!row || !row->elements.is_static() || row->elements.value < 1 || row->elements.value > plan::kLongestOfSeveral)
    return false;
  if (options_.variant.strided && row->dim + 2 + (v.guarded ? 1 : 0) < v.args.size()) return false;
  const auto row_place = v.args.begin() + static_cast<std::ptrdiff_t>(row->dim);
  const auto end = v.args.end() - (v.guarded ? 1 : 0);
  for (auto place = v.args.begin(); place != end; ++place)
    if (SlopeOf(*place) != (place == row_place ? 1 : 0)) return false;
  for (int axis = 0; axis < kernel_.rank(); ++axis) {
    const std::vector<bool> moves = plan::MovesAlong(kernel_, axis);
    const auto moved = [&](int arg) { return moves[static_cast<std::size_t>(arg)]; };
    const bool of_row = axis == ElementAxis();
    if (!of_row && axis >= signature_.row_axes && std::any_of(v.args.begin(), v.args.end(), moved)) return false;
    if (of_row ? std::any_of(v.args.begin(), row_place + 1, moved) : std::any_of(row_place + 1, v.args.end(), moved))
      return false;
  }
  return true;
}

bool ColumnEmitter::IsInShortRows(std::size_t k) const {
  const runtime::Access& access = signature_.operands[k];
  const DType type = plan_.buffers[static_cast<std::size_t>(access.buffer)].dtype;
  return type != DType::kBool && !access.gathered && AxisDim(access, vector_axis_) >= 0 &&
         !ShortRowOf(k).side_by_side.empty();
}

void ColumnEmitter::MoveColumns(const char* how, std::size_t k, const std::string& c, const std::string& lanes,
                                const std::string& columns) {
  const Operand& o = operands_[k];
  const runtime::Access& access = signature_.operands[k];
  const std::vector<int> side_by_side = ShortRowOf(k).side_by_side;
  std::string row = o.name;
  for (int axis = signature_.row_axes; axis <= ElementAxis(); ++axis)
    if (AxisDim(access, axis) >= 0 && std::find(side_by_side.begin(), side_by_side.end(), axis) == side_by_side.end())
      row += fmt::format(" + i{} * {}", axis, o.stride_names[static_cast<std::size_t>(axis)]);
  const bool dense = access.dense && !options_.variant.strided;
  const bool follow = dense && runtime::FirstOfDense(signature_, access) == AxisDim(access, vector_axis_);
  const std::string by_row = follow ? std::to_string(ElementsAlong(side_by_side)) : VectorStride(static_cast<int>(k));
  const std::string rows = fmt::format("{} + {} * {}, {}", row, c, by_row, by_row);
  if (!lanes.empty()) return out_.Line("{}_columns_head({}, {}, {});", how, rows, columns, lanes);
  out_.Line("{}_columns({}, {}, {});", how, rows,
            dense ? "1" : o.stride_names[static_cast<std::size_t>(side_by_side.back())], columns);
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
  if (kept != kept_here_.end() && IsReached(id))
    out_.Line("{}{} = {};", kept->second, ElementIndex(ElementAxes()), text_.at(id).text);
}

}  // namespace umbra::codegen

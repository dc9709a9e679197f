#include "compiler/codegen/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/divisors.h"
#include "compiler/codegen/literal.h"
#include "compiler/codegen/reductions.h"
#include "compiler/plan/short_rows.h"
#include "compiler/plan/signs.h"

namespace umbra::codegen {

namespace {

// Of maximum and minimum: not a zero, as of two zeros it matters which is taken.
bool IsBound(double number) { return number != 0 && !std::isnan(number); }

// Longer expressions get a name.
constexpr std::size_t kInlineLength = 56;
// Lanes that compute more values are a loop, which takes less time to compile.
constexpr std::size_t kWrittenOut = 16;

}  // namespace

ValueEmitter::ValueEmitter(const plan::Plan& plan, const Kernel& kernel, const SourceOptions& options, Writer* out)
    : KernelShape(plan, kernel, options),
      out_(*out),
      width_(PacketWidth()),
      decided_(kernel) {
  speller_ = MakeSpeller(options.spelling, options.target, width_);
  CountUses();
  BindLanes();
}

DType ValueEmitter::OperandType(int operand) const {
  const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
  return plan_.buffers[static_cast<std::size_t>(access.buffer)].dtype;
}

void ValueEmitter::BindLanes() {
  lanes_.kernel = &kernel_;
  lanes_.is_scalar = [this](int id) { return IsAlike(id) || IsAlikeInRun(id); };
  lanes_.scalar_text = [this](int id) { return AsScalar(id).text; };
  lanes_.packet_text = [this](int id) { return text_.at(id).text; };
  lanes_.load_text = [this](const Value& v, const std::string& index) {
    if (v.kind == Value::Kind::kStaged)
      return fmt::format("{}[{}]", row_names_[static_cast<std::size_t>(v.index)], index);
    return Speller(options_.target, 1).Load(v.type, Address(v.index, index)).text;
  };
  lanes_.is_by_one = [this](const Value& gather, std::size_t d) { return width_ > 1 && IsByOne(gather, d); };
  lanes_.operand_name = [this](int operand) { return operands_[static_cast<std::size_t>(operand)].name; };
  lanes_.stride_name = [this](int operand, int dim) {
    const auto& numbers = signature_.numbers;
    const auto found =
        std::find(numbers.begin(), numbers.end(), runtime::Number{runtime::Extent::Static(0), operand, dim});
    return number_names_[static_cast<std::size_t>(found - numbers.begin())];
  };
}

void ValueEmitter::CountUses() {
  uses_.assign(kernel_.values.size(), 0);
  std::set<int> all;
  for (std::size_t id = 0; id < kernel_.values.size(); ++id) {
    all.insert(static_cast<int>(id));
    for (int arg : kernel_.values[id].args) ++uses_[static_cast<std::size_t>(arg)];
  }
  FindQuotientsByNumber();
  SpreadNothing();
  for (const Phase& phase : kernel_.phases) {
    for (int id : ResultsOf(phase)) ++uses_[static_cast<std::size_t>(id)];
    for (const auto& reduction : phase.reductions)
      if (AddsProduct(reduction)) --uses_[static_cast<std::size_t>(reduction.value)];
    if (phase.guard >= 0) ++uses_[static_cast<std::size_t>(phase.guard)];
    MarkSpread(all, phase);
  }
  for (const auto& store : kernel_.final_stores) {
    ++uses_[static_cast<std::size_t>(store.value)];
    if (columns_ && IsScalar(store.value)) spread_[static_cast<std::size_t>(store.value)] = true;
  }
}

bool ValueEmitter::AddsProduct(const plan::Reduction& reduction) const {
  const Value& element = value(reduction.value);
  return columns_ && reduction.contract && element.kind == Value::Kind::kMap && element.op == graph::Op::mul &&
         IsFloat(element.type);
}

bool ValueEmitter::IsOfColumn(int id) const { return columns_ && value(id).scope == Scope::kRow && InPackets(id); }

void ValueEmitter::FindQuotientsByNumber() {
  if (options_.spelling != Spelling::kPackets) return;
  const int registers = RegisterBytes(options_.target);
  for (const Phase& phase : kernel_.phases)
    for (const int id : phase.element_values) {
      const Value& v = value(id);
      if (v.kind != Value::Kind::kMap || v.op != graph::Op::div || IsScalar(id) ||
          !(IsScalar(v.args[1]) || IsOfColumn(v.args[1])))
        continue;
      if (v.type == DType::kFloat32 ? registers < 64 : v.type != DType::kFloat64 || registers < 32) continue;
      const Value& by = value(v.args[1]);
      if (by.kind != Value::Kind::kConstant || IsWorthDivisor(by.constant, v.type)) by_number_.insert(id);
    }
}

bool ValueEmitter::DividesIn(const Phase& phase, int id) const {
  const auto& ids = phase.element_values;
  return GoesSideBySide(phase) && std::find(ids.begin(), ids.end(), id) != ids.end();
}

std::vector<int> ValueEmitter::ResultsOf(const Phase& phase) {
  std::vector<int> results;
  for (const auto& reduction : phase.reductions) results.push_back(reduction.value);
  for (const auto& stage : phase.stages) results.push_back(stage.value);
  for (const auto& store : phase.stores) results.push_back(store.value);
  return results;
}

void ValueEmitter::SpreadWithin(const Phase& phase, const std::set<int>& ids) {
  SpreadNothing();
  MarkSpread(ids, phase);
}

void ValueEmitter::SpreadNothing() {
  spread_.assign(kernel_.values.size(), false);
  divisor_.assign(kernel_.values.size(), false);
}

void ValueEmitter::MarkSpread(const std::set<int>& ids, const Phase& phase) {
  const auto spread = [this](int id) {
    if (IsScalar(id)) spread_[static_cast<std::size_t>(id)] = true;
  };
  for (const int id : ids)
    if (!IsScalar(id) && !InLanes(id) && !HasLanes(id)) {
      const std::vector<int>& args = value(id).args;
      for (std::size_t k = 0; k < args.size(); ++k)
        if (k == 1 && by_number_.count(id) > 0 && !DividesIn(phase, id))
          divisor_[static_cast<std::size_t>(args[k])] = true;
        else spread(args[k]);
    }
  for (const int id : ResultsOf(phase)) spread(id);
}

// ---- declarations ---------------------------------------------------------------------------

void ValueEmitter::DeclareExtents(int first) {
  for (int axis = first; axis < kernel_.rank(); ++axis)
    if (!IsBaked(axis)) out_.Line("const {1} n{0} = {2}extent[{0}];", axis, index_type_, args_);
}

void ValueEmitter::DeclareOperands() {
  const int rank = kernel_.rank();
  for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
    const auto& access = signature_.operands[k];
    const auto& buffer = plan_.buffers[static_cast<std::size_t>(access.buffer)];
    Operand operand;
    operand.name = names_.Make(buffer.name);
    operand.stride_names.assign(static_cast<std::size_t>(rank), "");
    bool moves_by_row = false;
    for (int axis = 0; axis < rank; ++axis)
      moves_by_row = moves_by_row || (axis < FirstInner() && axis != vector_axis_ && Moves(access, axis));
    const std::string base = moves_by_row ? names_.Make(operand.name + "_data") : operand.name;
    operand.base = base;
    out_.Line("{}{}* {} = static_cast<{}{}*>({}data[{}]);", access.store ? "" : "const ", ElementType(buffer.dtype),
              base, access.store ? "" : "const ", ElementType(buffer.dtype), args_, k);
    for (int axis = 0; axis < rank; ++axis) {
      if (!Moves(access, axis)) continue;
      const bool unit = axis == vector_axis_ && !options_.variant.strided && IsContiguousByPlan(access);
      if (unit) continue;
      auto& stride = operand.stride_names[static_cast<std::size_t>(axis)];
      stride = names_.Make(fmt::format("{}_s{}", operand.name, axis));
      out_.Line("const {} {} = {}stride[{}];", StrideType(), stride, args_,
                k * static_cast<std::size_t>(rank) + static_cast<std::size_t>(axis));
    }
    operands_.push_back(std::move(operand));
  }
}

std::vector<std::string> ValueEmitter::DeclareRows(const std::vector<DType>& types, const std::string& memory,
                                                   const std::string& name, const std::set<int>* used) {
  std::vector<std::string> names(types.size());
  std::string offset;
  for (std::size_t slot = 0; slot < types.size(); ++slot) {
    if (used == nullptr || used->count(static_cast<int>(slot)) > 0) {
      names[slot] = names_.Make(types.size() > 1 ? fmt::format("{}{}", name, slot) : name);
      out_.Line("{0}* {1} = reinterpret_cast<{0}*>({2}{3});", ElementType(types[slot]), names[slot], memory, offset);
    }
    offset += fmt::format(" + {} * {}", Padded(ExtentName(vector_axis_)), SizeOf(types[slot]));
  }
  return names;
}

std::string ValueEmitter::BytesOfRows(const std::vector<DType>& types) const {
  std::size_t size = 0;
  for (const DType type : types) size += SizeOf(type);
  return size == 0 ? "0" : fmt::format("{} * {}", Padded(ExtentName(vector_axis_)), size);
}

void ValueEmitter::DeclareNumbers() {
  for (std::size_t k = 0; k < signature_.numbers.size(); ++k) {
    const runtime::Number& number = signature_.numbers[k];
    number_names_.push_back(
        names_.Make(number.operand < 0
                        ? fmt::format("m{}", k)
                        : fmt::format("{}_s{}", operands_[static_cast<std::size_t>(number.operand)].name, number.dim)));
    out_.Line("const {} {} = {}extent[{}];", number.operand < 0 ? index_type_ : StrideType(), number_names_.back(),
              args_, static_cast<std::size_t>(kernel_.rank()) + k);
  }
}

void ValueEmitter::DeclareUniforms() {
  for (std::size_t id = 0; id < kernel_.values.size(); ++id) {
    const Value& v = kernel_.values[id];
    if (v.scope != Scope::kUniform || uses_[id] == 0) continue;
    if (v.kind == Value::Kind::kConstant) continue;
    if (v.kind == Value::Kind::kNumber) {
      text_[static_cast<int>(id)] = {number_names_[static_cast<std::size_t>(v.index)]};
      continue;
    }
    Expr e;
    if (v.kind == Value::Kind::kScalar) e = {fmt::format("{}scalar[{}].{}", args_, v.index, Name(v.type))};
    else e = DefineScalar(static_cast<int>(id));
    DeclareScalar(static_cast<int>(id), e);
  }
}

void ValueEmitter::RemarkPlace(int id) {
  if (options_.places && !value(id).place.empty()) out_.Remark(fmt::format("{}{}", kPlaceMark, value(id).place));
}

void ValueEmitter::DeclareScalar(int id, const Expr& e) {
  const Value& v = value(id);
  const std::string name = names_.Make(NameOf(id));
  RemarkPlace(id);
  out_.Line("const {} {} = {};", ScalarType(v.type), name, e.text);
  text_[id] = {name};
  divisor_text_.erase(id);
  if (divisor_[static_cast<std::size_t>(id)]) {
    divisor_text_[id] = {names_.Make(name + "_by")};
    out_.Line("const Divisor {}({});", divisor_text_[id].text, name);
  }
  if (!spread_[static_cast<std::size_t>(id)] || width_ == 1 || v.type == DType::kBool) return;
  const std::string packet = names_.Make(name + "_v");
  out_.Line("const {} {} = {};", speller_->Type(v.type), packet, speller_->Fill(v.type, name).text);
  packet_text_[id] = {packet};
}

// ---- expressions ----------------------------------------------------------------------------

Expr ValueEmitter::AsScalar(int id) const {
  if (value(id).kind == Value::Kind::kConstant) return {Literal(value(id).constant, value(id).type)};
  return text_.at(id);
}

Expr ValueEmitter::AsPacket(int id) const {
  if (value(id).kind == Value::Kind::kConstant)
    return speller_->Fill(value(id).type, Literal(value(id).constant, value(id).type));
  if (IsScalar(id) && width_ > 1) {
    const bool is_number =
        value(id).kind == Value::Kind::kNumber || value(id).kind == Value::Kind::kIndex;  // none has its packet
    if (side_by_side_ || is_number) return speller_->Fill(value(id).type, text_.at(id).text);
    if (const auto found = packet_text_.find(id); found != packet_text_.end()) return found->second;
  }
  return text_.at(id);
}

Expr ValueEmitter::DefineScalar(int id) const {
  const Value& v = value(id);
  std::vector<Expr> args;
  for (int arg : v.args) {
    const Value& of = value(arg);
    Expr e = AsScalar(arg);
    // A literal is an int.
    if (of.kind == Value::Kind::kConstant && of.type == DType::kInt16)
      e = {fmt::format("{}({})", ScalarType(of.type), e.text)};
    args.push_back(std::move(e));
  }
  return v.kind == Value::Kind::kCast ? SpellScalarCast(value(v.args[0]).type, v.type, args[0]) : SpellNumber(id, args);
}

Expr ValueEmitter::SpellNumber(int id, const std::vector<Expr>& args) const {
  const Value& v = value(id);
  if (width_ > 1 || IsPositional(id)) return SpellScalarMap(v.op, OperandTypeOf(v), args);
  return speller_->Map(v.op, OperandTypeOf(v), args, {});
}

DType ValueEmitter::OperandTypeOf(const Value& v) const {
  return value(v.args[v.op == graph::Op::select ? 1 : 0]).type;
}

Expr ValueEmitter::DefinePacket(int id) const {
  const Value& v = value(id);
  std::vector<Expr> args;
  std::vector<bool> literal;
  for (int arg : v.args) {
    const bool constant = value(arg).kind == Value::Kind::kConstant && width_ > 1;
    literal.push_back(constant);
    args.push_back(constant ? AsScalar(arg) : AsPacket(arg));
  }
  if (by_number_.count(id) > 0 && !side_by_side_) {
    if (const auto found = divisor_text_.find(v.args[1]); found != divisor_text_.end()) args[1] = found->second;
    else if (literal[1])
      args[1] = {fmt::format("{}({})", IsKnownDivisor(value(v.args[1]).constant, v.type) ? "KnownDivisor" : "Divisor",
                             args[1].text)};
    literal[1] = false;
  }
  if (v.kind == Value::Kind::kCast) return speller_->Cast(value(v.args[0]).type, v.type, AsPacket(v.args[0]));
  if ((v.op == graph::Op::maximum || v.op == graph::Op::minimum) && IsFloat(v.type) &&
      options_.spelling == Spelling::kPackets)
    for (const std::size_t bound : {std::size_t{0}, std::size_t{1}})
      if (literal[bound] && !literal[1 - bound] && IsBound(value(v.args[bound]).constant))
        return {fmt::format("{}({}, {})", v.op == graph::Op::maximum ? "no_less" : "no_more", args[1 - bound].text,
                            args[bound].text)};
  const bool is_power =
      (v.op == graph::Op::exp || v.op == graph::Op::exp2) && (v.type == DType::kFloat32 || v.type == DType::kFloat64);
  if (is_power && MindsDenormals() && plan::IsAddedToOne(kernel_, id))
    return {fmt::format("{}_beside_1({})", graph::Info(v.op).name, AsPacket(v.args[0]).text)};
  return width_ == 1 ? SpellNumber(id, args) : speller_->Map(v.op, OperandTypeOf(v), args, literal);
}

std::string ValueEmitter::Address(int operand, const std::string& index) const {
  const Operand& o = operands_[static_cast<std::size_t>(operand)];
  const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
  std::string text = o.name;
  for (int axis = FirstInner(); axis < kernel_.rank(); ++axis)
    if (const std::string& stride = o.stride_names[static_cast<std::size_t>(axis)];
        axis != vector_axis_ && AxisDim(access, axis) >= 0)
      text += fmt::format(" + i{}{}{}", axis, stride.empty() ? "" : " * ", stride);
  if (AxisDim(access, vector_axis_) < 0 || index.empty()) return text;
  const std::string& stride = VectorStride(operand);
  if (stride.empty()) return text + " + " + index;
  const bool simple = index.find(' ') == std::string::npos;
  return text + " + " + (simple ? index : "(" + index + ")") + " * " + stride;
}

const std::string& ValueEmitter::VectorStride(int operand) const {
  return operands_[static_cast<std::size_t>(operand)].stride_names[static_cast<std::size_t>(vector_axis_)];
}

bool ValueEmitter::MovesAlongVector(int operand) const {
  return AxisDim(signature_.operands[static_cast<std::size_t>(operand)], vector_axis_) >= 0;
}

Expr ValueEmitter::LoadPacket(const Value& v, const std::string& index, const std::string& lanes) const {
  if (const auto found = at_hand_.find(v.index); found != at_hand_.end())
    return v.type == DType::kBool ? Expr{found->second + " != 0", false} : Expr{found->second};
  const std::string address = Address(v.index, index);
  if (!MovesAlongVector(v.index)) {
    Speller scalar(options_.target, 1);
    return speller_->Fill(v.type, scalar.Load(v.type, address).text);
  }
  const std::string& stride = VectorStride(v.index);
  if (stride.empty())
    return lanes.empty() ? speller_->Load(v.type, address) : speller_->LoadHead(v.type, address, lanes);
  return lanes.empty() ? speller_->Gather(v.type, address, stride)
                       : speller_->GatherHead(v.type, address, stride, lanes);
}

Expr ValueEmitter::StagedPacket(const Value& v, const std::string& index, const std::string& lanes) const {
  const std::string address = fmt::format("{} + {}", row_names_[static_cast<std::size_t>(v.index)], index);
  return lanes.empty() ? speller_->Load(v.type, address) : speller_->LoadHead(v.type, address, lanes);
}

void ValueEmitter::DeclareLanes(int id, DType type, const std::string& index, const std::string& lanes, Names* names) {
  const Value& v = value(id);
  if (DeclareOfTable(id, index, lanes, names)) return;
  DeclarePlaces(id, index, lanes, names);
  const std::string name = names->Make(NameOf(id));
  const std::string packet = speller_->Type(type);
  const bool whole = lanes.empty() && LaneSize(lanes_, id) <= kWrittenOut;
  const std::string call =
      whole ? fmt::format("by_lane<{}>(", packet)
            : fmt::format("by_lane_head<{}>({}, ", packet, lanes.empty() ? std::to_string(width_) : lanes);
  out_.Open("const {} {} = {}[&](long long k)", packet, name, call);
  out_.Line("const long long at = {} + k;", index);
  const std::string text = EmitLane(lanes_, id, "at", &out_);
  if (v.type == DType::kBool) out_.Line("return {} ? -1 : 0;", text);
  else out_.Line("return {};", text);
  out_.Close("});");
  lanes_.at_hand.clear();
  text_[id] = {name};
}

std::string ValueEmitter::Difference(const std::string& a, const std::string& b) {
  const auto whole = [](const std::string& text) {
    return text.find(' ') == std::string::npos ? text : "(" + text + ")";
  };
  if (b == "0LL") return a;
  return (a == "0LL" ? "-" : whole(a) + " - ") + whole(b);
}

bool ValueEmitter::IsByOne(const Value& gather, std::size_t d) const {
  return d + 1 + (gather.guarded ? 1 : 0) == gather.args.size() && !options_.variant.strided;
}

Expr ValueEmitter::DefinePositional(const Value& v, const std::string& index) const {
  if (v.kind == Value::Kind::kIndex) {
    if (v.index != vector_axis_ || index.empty()) return {fmt::format("i{}", v.index)};
    return {index, index.find(' ') == std::string::npos};
  }
  const auto text_of = [this](int arg) {
    const Expr e = AsScalar(arg);
    return e.atomic ? e.text : "(" + e.text + ")";
  };
  return {GatherText(lanes_, v, text_of), !v.guarded && v.type != DType::kBool};
}

Value ValueEmitter::AsRead(int id) const {
  Value v = value(id);
  if (v.kind == Value::Kind::kGather && v.guarded && decided_.Reads(id) == true) {
    v.guarded = false;
    v.args.pop_back();
  }
  return v;
}

Expr ValueEmitter::ColumnAtHand(const Value& gather, const std::string& columns, const std::string& index) const {
  const auto& access = signature_.operands[static_cast<std::size_t>(gather.index)];
  const auto& shape = plan_.buffers[static_cast<std::size_t>(access.buffer)].shape;
  std::string at;
  for (std::size_t d = plan::RowOf(plan_, kernel_, gather, vector_axis_)->dim + 1; d < shape.size(); ++d) {
    const std::string place = EmitLane(lanes_, gather.args[d], index, nullptr);
    const std::string here = place.find(' ') == std::string::npos ? place : "(" + place + ")";
    at = at.empty() || at == "0LL" ? place : fmt::format("({}) * {} + {}", at, shape[d].value, here);
  }
  const std::string column =
      columns + (at[0] == '[' ? "[(" + at + ")]" : "[" + at + "]");  // [[ would begin an attribute
  if (!gather.guarded) return {column};
  const std::string outside = speller_->Fill(gather.type, Literal(gather.constant, gather.type)).text;
  return {fmt::format("({}) ? {} : {}", EmitLane(lanes_, gather.args.back(), index, nullptr), column, outside), false};
}

void ValueEmitter::DeclarePacket(int id, const std::string& index, const std::string& lanes, Names* names) {
  if (InLanes(id) || IsAlikeInRun(id) || !IsReached(id)) return;
  const Value& v = value(id);
  Expr e;
  if (const auto chosen = decided_.Chosen(id); chosen && !HasLanes(id))
    return Declare(id, v.type, AsPacket(*chosen), names);
  if (v.kind == Value::Kind::kGather && decided_.Reads(id) == false)
    return Declare(id, v.type, speller_->Fill(v.type, Literal(v.constant, v.type)), names);
  if (const auto found = gathers_at_hand_.find(id); found != gathers_at_hand_.end())
    return Declare(id, v.type, {found->second}, names);
  if (const auto found = columns_at_hand_.find(id); found != columns_at_hand_.end())
    return Declare(id, v.type, ColumnAtHand(AsRead(id), found->second, index), names);
  if (HasLanes(id)) {
    const DType type = v.type == DType::kBool ? IntegerOfLanes() : v.type;
    if (const auto span = SpanOf(id)) {
      e = DefineSpan(id, *span, index, lanes);
    } else if (const auto run = LaneRunOf(id)) {
      e = {LanesText(*run, speller_->Type(type), index, lanes)};
    } else if (const auto slope = SlopeOf(id)) {
      const std::string first = EmitLane(lanes_, id, index, nullptr);
      if (*slope == 0) e = speller_->Fill(type, first);
      else e = {fmt::format("ramp<{}>({}, {})", speller_->Type(type), first, *slope)};
    } else if (v.kind == Value::Kind::kCast && !DiffersByLane(id)) {
      e = speller_->Fill(type, EmitLane(lanes_, id, index, nullptr));
    } else {
      DeclareLanes(id, type, index, lanes, names);
      return;
    }
    Declare(id, type, e, names);
    return;
  }
  switch (v.kind) {
    case Value::Kind::kScanned: return DeclareScanned(id, lanes, names);
    case Value::Kind::kIndex:
    case Value::Kind::kGather: e = DefinePositional(AsRead(id), index); break;
    case Value::Kind::kLoad: e = LoadPacket(v, index, lanes); break;
    case Value::Kind::kStaged:
      if (const auto found = kept_at_hand_.find(v.index); found != kept_at_hand_.end()) e = {found->second};
      else e = StagedPacket(v, index, lanes);
      break;
    default: e = DefinePacket(id);
  }
  Declare(id, v.type, e, names);
}

void ValueEmitter::DeclareCarries(const Phase& phase, Names* names) {
  for (const int id : plan::ScansOf(kernel_, phase)) {
    const plan::Reduction scan = JoinedBy(kernel_, id);
    const std::string type = speller_->Type(value(id).type), identity = Identity(kernel_, scan);
    const std::string name = names->Make(CarryName(scan));
    if (ScansLanes()) out_.Line("Scan<{}, {}> {}({});", Joiner(scan), type, name, identity);
    else out_.Line("{} {} = {};", type, name, speller_->Fill(value(id).type, identity).text);
    carry_[id] = {name};
  }
}

void ValueEmitter::DeclareScanned(int id, const std::string& lanes, Names* names) {
  const plan::Reduction scan = JoinedBy(kernel_, id);
  const Expr& carry = carry_.at(id);
  RemarkPlace(id);
  if (!ScansLanes()) {
    out_.Line("{} = {};", carry.text, Join(*speller_, kernel_, scan, carry, AsPacket(scan.value)));
    text_[id] = carry;
    return;
  }
  const std::string name = names->Make(NameOf(id));
  std::string element = AsPacket(scan.value).text;
  if (!lanes.empty()) element = fmt::format("keep({}, {}, {})", element, lanes, Identity(kernel_, scan));
  out_.Line("const {} {} = {}.{}({});", speller_->Type(value(id).type), name, carry.text,
            side_by_side_ ? "next_group" : "next", element);
  text_[id] = {name};
}

void ValueEmitter::Declare(int id, DType type, const Expr& e, Names* names) {
  const Value& v = value(id);
  const int uses = uses_[static_cast<std::size_t>(id)];
  if (uses == 0 || (uses == 1 && v.label.empty() && e.text.size() <= kInlineLength)) {
    text_[id] = e;
    return;
  }
  const std::string name = names->Make(NameOf(id));
  RemarkPlace(id);
  out_.Line("const {} {} = {};", speller_->Type(type), name, e.text);
  text_[id] = {name};
}

}  // namespace umbra::codegen

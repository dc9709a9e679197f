// Packets of results that are made of packets in memory: gathers whose positions move evenly from lane to lane, and loads.
// Where such a packet begins is known only at run time, and whether all of it is there, so a function says where each lane
// is read, or that it is not; span_pack asks it for both ends, and for the lanes between them where they are not enough.
#include <algorithm>
#include <cmath>

#include "compiler/codegen/cuda/emitter.h"
#include "compiler/codegen/literal.h"
#include "compiler/codegen/spans.h"

namespace umbra::codegen {

namespace {

// Is the value the same in all lanes?
bool SameInLanes(const Kernel& kernel, int id) {
  const Value& v = kernel.values[static_cast<std::size_t>(id)];
  switch (v.kind) {
    case Value::Kind::kConstant:
    case Value::Kind::kNumber: return true;
    case Value::Kind::kIndex: return v.index != kernel.signature.vector_axis;
    case Value::Kind::kLoad:
      return kernel.signature.operands[static_cast<std::size_t>(v.index)].dim_of_axis[static_cast<std::size_t>(kernel.signature.vector_axis)] < 0;
    case Value::Kind::kMap:
    case Value::Kind::kCast:
    case Value::Kind::kGather: return std::all_of(v.args.begin(), v.args.end(), [&](int arg) { return SameInLanes(kernel, arg); });
    default: return v.scope == Scope::kUniform;
  }
}

// Is the value made of positions alone, and of what is the same in all lanes?
bool MadeOfPositions(const Kernel& kernel, int id) {
  const Value& v = kernel.values[static_cast<std::size_t>(id)];
  if (v.kind == Value::Kind::kIndex || SameInLanes(kernel, id)) return true;
  if (v.kind != Value::Kind::kMap && v.kind != Value::Kind::kCast) return false;
  return std::all_of(v.args.begin(), v.args.end(), [&](int arg) { return MadeOfPositions(kernel, arg); });
}

// The gather of `kernel` that is `id` of `other`, which is the same with positions of another width.
int SameGather(const Kernel& other, int id, const Kernel& kernel) {
  const auto is_gather = [](const Value& v) { return v.kind == Value::Kind::kGather; };
  auto left = std::count_if(other.values.begin(), other.values.begin() + id, is_gather);
  const auto found = std::find_if(kernel.values.begin(), kernel.values.end(), [&](const Value& v) { return is_gather(v) && left-- == 0; });
  return static_cast<int>(found - kernel.values.begin());
}

}  // namespace

// What reads a packet of results at hand: `span_pack<T, lanes, step, repeats>` of a load, or of a gather whose positions grow
// evenly, which the ends tell; else `gathered_pack<T, lanes>`, which looks at each lane.
std::string CudaEmitter::PackReader(int id) const {
  const Value& v = value(id);
  const std::string type = ElementType(ReadType(id));
  const auto span_pack = [&](long long step, int repeats) { return fmt::format("span_pack<{}, {}, {}, {}>", type, result_lanes_, step, repeats); };
  if (v.kind == Value::Kind::kLoad) return span_pack(1, 1);
  if (v.kind == Value::Kind::kGather) {
    const auto span = FindSpan(wide_, SameGather(kernel_, id, wide_), [this](int other) { return SameInLanes(wide_, other); });
    const auto is_even = [&] {
      return span->group == 0 && !span->slopes.empty() &&
             std::all_of(span->slopes.begin(), span->slopes.end() - 1, [](long long slope) { return slope == 0; });
    };
    if (span && is_even()) {
      if (span->repeats > 1 && result_lanes_ % span->repeats == 0) return span_pack(1, span->repeats);
      if (span->repeats == 1 && std::abs(span->slopes.back()) == 1) return span_pack(span->slopes.back(), 1);
    }
  }
  return fmt::format("gathered_pack<{}, {}>", type, result_lanes_);
}

// The dtype of the elements in memory, of a value that IsRead.
DType CudaEmitter::ReadType(int id) const {
  const Value& v = value(id);
  if (v.kind == Value::Kind::kMap) return ReadType(v.args[value(v.args[1]).kind == Value::Kind::kConstant ? 2 : 1]);
  return OperandType(v.index);
}

// Is the value an element of memory in each lane, or a choice between some of one type, or `outside` where there is none?
bool CudaEmitter::IsRead(int id, std::optional<double>* outside) const {
  const Value& v = value(id);
  const auto takes = [&](double number) {
    if (!*outside) *outside = number;
    return **outside == number && std::signbit(**outside) == std::signbit(number);
  };
  if (v.kind == Value::Kind::kConstant) return takes(v.constant);
  if (v.kind == Value::Kind::kLoad) return MovesAlongVector(v.index);
  if (v.kind == Value::Kind::kGather) return !SameInLanes(kernel_, id) && (!v.guarded || takes(v.constant));
  if (v.kind != Value::Kind::kMap || v.op != graph::Op::select || value(v.args[1]).type != value(v.args[2]).type) return false;
  if (!MadeOfPositions(kernel_, v.args[0])) return false;
  const auto is_constant = [this](int arg) { return value(arg).kind == Value::Kind::kConstant; };
  if (is_constant(v.args[1]) && is_constant(v.args[2])) return false;
  if (!IsRead(v.args[1], outside) || !IsRead(v.args[2], outside)) return false;
  return is_constant(v.args[1]) || is_constant(v.args[2]) || ReadType(v.args[1]) == ReadType(v.args[2]);
}

void CudaEmitter::DeclareSpans(const std::vector<int>& ids, const std::set<int>& known, const std::vector<int>& windows) {
  if (result_lanes_ == 1 || variant_.strided) return;
  std::vector<int> read;
  std::set<int> covered;  // by a choice that is read itself
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    const Value& v = value(*id);
    const bool choice = v.kind == Value::Kind::kMap;
    std::optional<double> outside;
    if (v.kind == Value::Kind::kConstant || known.count(*id) > 0 || !IsRead(*id, &outside)) continue;
    if (covered.count(*id) == 0) read.insert(read.begin(), *id);
    if (choice) covered.insert(v.args.begin() + 1, v.args.end());
  }
  reached_.reset();
  for (const int id : read) {
    const Value& v = value(id);
    const bool load = v.kind == Value::Kind::kLoad;
    if (load && at_hand_.count(v.index) > 0) continue;
    std::optional<double> outside;
    (void)IsRead(id, &outside);
    const DType type = ReadType(id);
    // What its places are made of, in each lane.
    std::set<int> made_of;
    const std::function<void(int)> need = [&](int other) {
      if (known.count(other) > 0 || !made_of.insert(other).second) return;
      for (const int arg : value(other).args) need(arg);
    };
    const std::function<void(int)> need_place = [&](int place) {
      const bool choice = value(place).kind == Value::Kind::kMap;
      for (std::size_t k = 0; k < value(place).args.size(); ++k)
        if (choice && k > 0) need_place(value(place).args[k]);
        else need(value(place).args[k]);
    };
    need_place(id);
    const std::string name = names_.Make((v.kind == Value::Kind::kMap ? "chosen" : operands_[static_cast<std::size_t>(v.index)].name) + "_span");
    out_.Open("const pack<{0}, {1}> {2} = {3}({4}, [&](int k) -> const {0}*", ElementType(type), result_lanes_, name, PackReader(id),
              Literal(outside.value_or(0), type == DType::kBool ? DType::kUInt8 : type));
    out_.Line("const {} i{} = column + k;", index_type_, vector_axis_);
    for (const int axis : windows) out_.Line("const {} i{} = 0;", index_type_, axis);
    Names names = names_;
    const auto text = text_;
    for (const int other : ids)
      if (made_of.count(other) > 0) DeclareInLane(other, &names);
    out_.Line("return {};", PlaceOf(id));
    text_ = text;
    out_.Close("});");
    (load ? at_hand_[v.index] : gathers_at_hand_[id]) = name + "[k]" + (type == DType::kBool && !load ? " != 0" : "");
  }
  if (read.empty()) return;
  // Where they were read has no part in the lanes' other arithmetic.
  std::set<int> needed;
  const std::function<void(int)> need = [&](int id) {
    if (!needed.insert(id).second || gathers_at_hand_.count(id) > 0) return;
    for (const int arg : value(id).args) need(arg);
  };
  for (const Phase& phase : kernel_.phases) {
    for (const int id : ResultsOf(phase)) need(id);
    if (phase.guard >= 0) need(phase.guard);
    for (const auto& reduction : phase.reductions) need(reduction.value);
  }
  for (const auto& store : kernel_.final_stores) need(store.value);
  reached_ = std::move(needed);
}

// A pointer to the element, null where there is none.
std::string CudaEmitter::PlaceOf(int id) const {
  const Value& v = value(id);
  const auto closed = [](const Expr& e) { return e.atomic ? e.text : "(" + e.text + ")"; };
  if (v.kind == Value::Kind::kConstant) return "nullptr";
  if (v.kind == Value::Kind::kLoad) return Address(v.index, fmt::format("i{}", vector_axis_));
  const auto choice = [this](int id) {
    const std::string place = PlaceOf(id);
    return place.find('?') == std::string::npos ? place : "(" + place + ")";
  };
  if (v.kind == Value::Kind::kMap) return fmt::format("{} ? {} : {}", closed(AsScalar(v.args[0])), choice(v.args[1]), choice(v.args[2]));
  std::string text = operands_[static_cast<std::size_t>(v.index)].name;
  const std::size_t rank = v.args.size() - (v.guarded ? 1 : 0);
  for (std::size_t d = 0; d < rank; ++d)
    text += fmt::format(" + {} * {}", closed(AsScalar(v.args[d])), lanes_.stride_name(v.index, static_cast<int>(d)));
  return v.guarded ? fmt::format("{} ? {} : nullptr", closed(AsScalar(v.args.back())), text) : text;
}

void CudaEmitter::DeclareInLane(int id, Names* names) {
  const std::string index = fmt::format("i{}", vector_axis_);
  if (value(id).scope == Scope::kElement) return DeclarePacket(id, index, "", names);
  const Names outer = names_;
  names_ = *names;
  DeclareRowValues({id});
  *names = names_;
  names_ = outer;
}

}  // namespace umbra::codegen

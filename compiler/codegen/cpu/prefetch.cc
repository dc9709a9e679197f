// What a kernel asks memory for before it needs it, where the processor does not find it by itself.
#include <algorithm>
#include <string>
#include <vector>

#include "compiler/codegen/cpu/phases.h"

namespace umbra::codegen {

namespace {

// The work of an element, in additions, beside which memory hardly counts.
constexpr double kHeavy = 64;

// The first cache has room for what one operand is asked for ahead, beside what is in use, of several the second.
int CacheFor(std::size_t operands) { return operands > 1 ? 2 : 1; }

}  // namespace

const Phase* PhaseEmitter::IdlePhase() const {
  for (std::size_t k = 1; InRows() && k < kernel_.phases.size(); ++k)
    if (const Phase& phase = kernel_.phases[k]; phase.stores.empty() ? !phase.reductions.empty() : PassesCaches())
      return &phase;
  return nullptr;
}

void PhaseEmitter::DeclareAhead() {
  const Phase* const idle = IdlePhase();
  if (idle == nullptr) return;
  const std::string together = together_.empty() ? "1" : together_;
  const std::string ahead = idle->stores.empty() ? fmt::to_string(runtime::kPrefetchAhead) : "args->prefetch_ahead";
  for (int operand = 0; operand < static_cast<int>(operands_.size()); ++operand) {
    if (!IsReadAlong(operand) || !HasRows(operand)) continue;
    const auto& names = operands_[static_cast<std::size_t>(operand)];
    ahead_[operand] = names_.Make(names.name + "_ahead");
    out_.Line("const long long {} = {} * {};", ahead_[operand], RowsAhead(OperandType(operand), together, ahead),
              names.stride_names[static_cast<std::size_t>(RowAxis())]);
  }
}

void PhaseEmitter::PrefetchRows(const Phase& phase, const std::string& index, int count) {
  if (&phase != IdlePhase()) return;
  for (const auto& [operand, ahead] : ahead_)
    Prefetch(OperandType(operand), Address(operand, index) + " + " + ahead, count,
             vector_axis_ == signature_.row_axes ? CacheFor(ahead_.size()) : 2);
}

void PhaseEmitter::PrefetchNextPage(const std::string& index, int count) {
  if (!PassesCaches() || !signature_.elementwise || signature_.row_axes == 0 || signature_.cost > kHeavy) return;
  const bool one_row = signature_.axes[static_cast<std::size_t>(RowAxis())] == runtime::Extent::Static(1);
  std::vector<int> read;
  for (int operand = 0; operand < static_cast<int>(operands_.size()); ++operand)
    if (IsReadAlong(operand) && (one_row || HasRows(operand))) read.push_back(operand);
  for (const int operand : read)
    Prefetch(OperandType(operand),
             fmt::format("{} + {}, args->prefetch_ahead", operands_[static_cast<std::size_t>(operand)].name, index),
             count, CacheFor(read.size()));
}

void PhaseEmitter::DeclareScattered(const Phase& phase) {
  scattered_.clear();
  if (!RowByRow()) return;
  for (const int id : phase.element_values) {
    const Value& v = value(id);
    const std::size_t rank = v.args.size() - (v.guarded ? 1 : 0);
    if (v.kind != Value::Kind::kGather || rank == 0 || !InPackets(id) || !IsRowOfTable(id)) continue;
    auto& places = scattered_[id];
    for (std::size_t d = 0; d + 1 < rank; ++d)
      if (ReadsMemory(v.args[d])) places[v.args[d]] = {DeclarePlace(v.args[d], v.type)};
  }
}

void PhaseEmitter::PrefetchScattered(const std::string& index, int count) {
  for (const auto& [id, places] : scattered_) {
    const auto now = text_;
    for (const auto& [place, text] : places) text_[place] = text;
    Prefetch(value(id).type, GatherAddress(value(id), index), count, 2);
    text_ = now;
  }
}

void PhaseEmitter::PrefetchNextRuns(const Phase& phase, const Runs& runs, const std::string& index) {
  const auto is_walk = [&runs](int id) {
    return std::find(runs.walks.begin(), runs.walks.end(), id) != runs.walks.end();
  };
  for (const int id : phase.element_values) {
    const Value& v = value(id);
    if (!PassesCaches() || v.kind != Value::Kind::kGather || !IsReached(id) || !SpanOf(id)) continue;
    const auto slow = std::find_if(v.args.begin(), v.args.end(),
                                   [&](int place) { return is_walk(place) && is_walk(value(place).args[0]); });
    if (slow == v.args.end()) continue;
    const auto now = text_.at(*slow);
    text_[*slow] = {fmt::format("{} + 1", now.text)};
    Prefetch(v.type, GatherAddress(v, index), width_, 1);
    text_[*slow] = now;
  }
}

void PhaseEmitter::Prefetch(DType type, const std::string& address, int count, int cache) {
  const int size = static_cast<int>(SizeOf(type));
  out_.Line("prefetch_lines<{}, {}>({});", std::max(1, count * size / kLine), cache, address);
}

bool PhaseEmitter::InRows() const {
  return width_ > 1 && options_.spelling == Spelling::kPackets && !Splits() && signature_.row_axes > 0 &&
         vector_axis_ >= signature_.row_axes && vector_axis_ + 1 == kernel_.rank();
}

std::string PhaseEmitter::ElementsOfRow() const {
  std::string row;
  for (int axis = signature_.row_axes; axis < kernel_.rank(); ++axis)
    row += (row.empty() ? "" : " * ") + ExtentName(axis);
  return row;
}

bool PhaseEmitter::IsReadAlong(int operand) const {
  const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
  return !access.store && !access.gathered && MovesAlongVector(operand) && VectorStride(operand).empty();
}

std::string PhaseEmitter::RowsAhead(DType type, const std::string& together, const std::string& ahead) const {
  return fmt::format("rows_ahead<{}>({}, {}, {})", ElementType(type), ElementsOfRow(), together, ahead);
}

bool PhaseEmitter::IsRowOfTable(int id) const {
  const Value& v = value(id);
  const auto span = SpanOf(id);
  if (!span || options_.variant.strided || !codegen::IsByOne(*span)) return false;
  return std::any_of(v.args.begin(), v.args.begin() + static_cast<std::ptrdiff_t>(span->slopes.size()) - 1,
                     [this](int place) { return ReadsMemory(place); });
}

bool PhaseEmitter::ReadsMemory(int id) const {
  std::vector<bool> reads;  // by value; operands stand before what is made of them
  const auto does = [&](int arg) { return reads[static_cast<std::size_t>(arg)]; };
  const auto may = [&](int arg) {
    return value(arg).scope != Scope::kRow || does(arg) || value(arg).kind == Value::Kind::kIndex;
  };
  for (int k = 0; k <= id; ++k) {
    const Value& v = value(k);
    const bool is_own = v.scope != Scope::kRow || v.kind == Value::Kind::kLoad || v.kind == Value::Kind::kReduced;
    const auto first = v.args.begin(), last = v.args.end();
    reads.push_back(!is_own && (v.kind == Value::Kind::kGather ||
                                (std::any_of(first, last, does) && std::all_of(first, last, may))));
  }
  return does(id);
}

std::string PhaseEmitter::DeclarePlace(int id, DType of) {
  const std::string name = names_.Make(fmt::format("t{}_ahead", id)), row = fmt::format("i{}", RowAxis());
  const std::string rows = RowAxis() == 0 ? "end" : ExtentName(RowAxis());
  out_.Open("const long long {} = [&](long long {})", name, row);
  LaneContext of_row = lanes_;
  of_row.is_scalar = [this](int value_id) { return value(value_id).scope == Scope::kUniform; };
  out_.Line("return {};", EmitLane(of_row, id, "", &out_));
  out_.Close(fmt::format("}}(smaller({} + {}, {} - 1));", row,
                         RowsAhead(of, "1", fmt::to_string(runtime::kPrefetchAhead)), rows));
  return name;
}

}  // namespace umbra::codegen

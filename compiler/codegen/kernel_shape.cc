#include "compiler/codegen/kernel_shape.h"

#include <algorithm>

#include "compiler/plan/guards.h"

namespace umbra::codegen {

namespace {

constexpr int kLeastStored = 16;  // bytes at a time
constexpr int kFewSteps = 16;  // that a place is made in
// Registers of a table, of 64 bytes or of 32: with more, its elements are found sooner in memory.
constexpr std::size_t kMostOf64 = 4, kMostOf32 = 2;

// Is the value the same along the vector axis?
bool IsAlikeIn(const plan::Kernel& kernel, int id) {
  const plan::Scope scope = kernel.values[static_cast<std::size_t>(id)].scope;
  return scope == plan::Scope::kUniform || (scope == plan::Scope::kRow && kernel.vector_axis_is_inner());
}

}  // namespace

KernelShape::KernelShape(const plan::Plan& plan, const plan::Kernel& kernel, const SourceOptions& options)
    : narrow_(MayBeNarrow(kernel, options) && plan::HasNarrowPackets(plan, kernel)),
      plan_(plan),
      kernel_(kernel),
      signature_(kernel.signature),
      options_(options),
      vector_axis_(kernel.signature.vector_axis),
      columns_(!kernel.vector_axis_is_inner()),
      moves_(plan::MovesAlong(kernel, vector_axis_)) {
  MarkPositional();
  MarkOfDataToo();
  MarkPackets();
}

bool KernelShape::MayBeNarrow(const plan::Kernel& kernel, const SourceOptions& options) {
  constexpr std::int64_t kShort = 64;
  if (options.spelling != Spelling::kPackets || options.target != Target::kAvx512) return false;
  const runtime::Extent& row = kernel.signature.axes[static_cast<std::size_t>(kernel.signature.vector_axis)];
  if (!kernel.signature.elementwise && row.is_static() && row.value < kShort) return false;
  const auto is_alike = [&](int id) { return IsAlikeIn(kernel, id); };
  for (int id = 0; id < static_cast<int>(kernel.values.size()); ++id) {
    if (kernel.values[static_cast<std::size_t>(id)].kind != plan::Value::Kind::kGather || is_alike(id)) continue;
    const auto span = FindSpan(kernel, id, is_alike);
    if (!span || !IsByOne(*span)) return false;
  }
  return true;
}

int KernelShape::PacketWidth() const {
  const int bytes = RegisterBytes(options_.target);
  if (bytes == 0 || AddsToOneElement()) return 1;
  std::size_t widest = SizeOf(IntegerOfLanes());
  const std::vector<bool> widened = WidenedResults();
  for (std::size_t id = 0; id < kernel_.values.size(); ++id) {
    const bool in_lanes = packets_[id] && !positional_[id] && !IsAlike(static_cast<int>(id));
    if (in_lanes && !widened[id]) widest = std::max(widest, SizeOf(kernel_.values[id].type));
  }
  return bytes / static_cast<int>(widest);
}

bool KernelShape::AddsToOneElement() const {
  const runtime::Extent& columns = kernel_.signature.axes[static_cast<std::size_t>(kernel_.signature.vector_axis)];
  return columns.is_static() && columns.value == 1 && kernel_.phases.size() == 1 && kernel_.phases[0].guard >= 0 &&
         plan::FindStepKey(kernel_, kernel_.phases[0]);
}

std::vector<bool> KernelShape::WidenedResults() const {
  std::vector<bool> widened;
  for (const plan::Value& v : kernel_.values) {
    const auto is_widened = [&](int arg) { return widened[static_cast<std::size_t>(arg)]; };
    bool is = false;
    if (v.type == DType::kInt64 && v.kind == plan::Value::Kind::kCast) {
      const plan::Value& from = kernel_.values[static_cast<std::size_t>(v.args[0])];
      is = from.type == DType::kInt32 && from.kind == plan::Value::Kind::kReduced;
    } else if (v.type == DType::kInt64 && v.kind == plan::Value::Kind::kMap) {
      is = std::any_of(v.args.begin(), v.args.end(), is_widened) &&
           std::all_of(v.args.begin(), v.args.end(), [&](int arg) { return is_widened(arg) || IsAlike(arg); });
    }
    widened.push_back(is);
  }
  return widened;
}

bool KernelShape::IsAlike(int id) const { return IsAlikeIn(kernel_, id); }

void KernelShape::MarkOfDataToo() {
  of_data_too_.assign(kernel_.values.size(), false);
  for (std::size_t id = 0; id < kernel_.values.size(); ++id) of_data_too_[id] = IsMadeOfDataToo(kernel_.values[id]);
}

bool KernelShape::IsMadeOfDataToo(const plan::Value& v) const {
  if (options_.spelling != Spelling::kPackets || v.kind != plan::Value::Kind::kMap) return false;
  const auto is_of_data = [this](int arg) { return (!IsPositional(arg) || IsOfDataToo(arg)) && !IsAlike(arg); };
  if (v.type == DType::kBool) {  // beside what is the same for all lanes
    const auto may_be = [&](int arg) { return is_of_data(arg) || IsAlike(arg); };
    return std::any_of(v.args.begin(), v.args.end(), is_of_data) && std::all_of(v.args.begin(), v.args.end(), may_be);
  }
  if (v.type != DType::kInt64) return false;
  bool of_data = false;
  for (const int arg : v.args) {
    const bool is_data = is_of_data(arg);
    const bool is_condition = kernel_.values[static_cast<std::size_t>(arg)].type == DType::kBool;
    if (!is_data && (is_condition || !FindSlope(kernel_, arg, [this](int value) { return IsAlike(value); })))
      return false;
    of_data = of_data || is_data;
  }
  return of_data;
}

bool KernelShape::IsMadeOfLanes(int id) const {
  const plan::Value& v = kernel_.values[static_cast<std::size_t>(id)];
  if (IsOfDataToo(id)) return false;
  return v.kind == plan::Value::Kind::kGather || IsPositional(id) ||
         (v.kind == plan::Value::Kind::kCast && IsPositional(v.args[0]) && !IsOfDataToo(v.args[0]));
}

std::optional<KernelShape::Place> KernelShape::PlaceOf(int id) const {
  using Kind = plan::Value::Kind;
  if (options_.spelling != Spelling::kPackets || RegisterBytes(options_.target) == 0 || IsAlike(id))
    return std::nullopt;
  const auto value = [this](int of) -> const plan::Value& { return kernel_.values[static_cast<std::size_t>(of)]; };
  const auto split = [&](int of, graph::Op op, const auto& is_bound) -> std::optional<std::pair<int, int>> {
    const plan::Value& v = value(of);
    if (v.kind != Kind::kMap || v.op != op || v.type != DType::kInt64) return std::nullopt;
    if (is_bound(v.args[0])) return std::pair(v.args[1], v.args[0]);
    return is_bound(v.args[1]) ? std::optional(std::pair(v.args[0], v.args[1])) : std::nullopt;
  };
  const auto least = split(id, graph::Op::maximum, [&](int bound) {
    return value(bound).kind == Kind::kConstant && value(bound).constant >= 0 && value(bound).constant < 0x1p31;
  });
  if (!least) return std::nullopt;
  const auto most = split(least->first, graph::Op::minimum, [&](int bound) { return IsAlike(bound); });
  if (!most) return std::nullopt;
  Place place{most->first, least->second, most->second};
  int left = kFewSteps;
  if (!FindDataOf(place.chosen, &left, &place.data)) return std::nullopt;
  if (place.data.empty() && RegisterBytes(options_.target) < 32) return std::nullopt;
  return place;
}

// Is the position made of data in packets, which are added to `data`, of numbers and of positions that grow evenly, in
// no more steps than are left?
bool KernelShape::FindDataOf(int position, int* left, std::vector<int>* data) const {
  using Kind = plan::Value::Kind;
  if (--*left < 0) return false;
  if (IsAlike(position) || SlopeOf(position)) return true;
  const plan::Value& v = kernel_.values[static_cast<std::size_t>(position)];
  if (v.kind == Kind::kLoad) {
    data->push_back(position);
    return v.type == DType::kInt64 && !options_.variant.strided &&
           IsContiguousByPlan(signature_.operands[static_cast<std::size_t>(v.index)]);
  }
  if (v.kind == Kind::kCast) {
    const int from = v.args[0];
    const DType type = kernel_.values[static_cast<std::size_t>(from)].type;
    data->push_back(from);
    const bool is_float = (type == DType::kFloat32 || type == DType::kFloat64) && !options_.variant.wide_index;
    return (type == DType::kInt32 || is_float) && !IsAlike(from) && !IsPositional(from);
  }
  const bool is_sum = v.op == graph::Op::plus || v.op == graph::Op::minus || v.op == graph::Op::mul;
  return v.kind == Kind::kMap && is_sum && v.type == DType::kInt64 && RegisterBytes(options_.target) >= 32 &&
         std::all_of(v.args.begin(), v.args.end(), [&](int arg) { return FindDataOf(arg, left, data); });
}

std::optional<Span> KernelShape::SpanOf(int id) const {
  const plan::Value& v = kernel_.values[static_cast<std::size_t>(id)];
  if (options_.spelling != Spelling::kPackets) return std::nullopt;
  auto span = FindSpan(kernel_, id, [this](int value) {
    return IsAlike(value) || IsAlikeInRun(value) || (columns_ && !moves_[static_cast<std::size_t>(value)]);
  });
  if (!span) return std::nullopt;
  if ((span->repeats > 1 || span->group > 0) && options_.variant.strided) return std::nullopt;
  if (span->group > 0) {  // all of a packet's groups are there
    const auto& access = signature_.operands[static_cast<std::size_t>(v.index)];
    const runtime::Extent &elements = plan_.buffers[static_cast<std::size_t>(access.buffer)].shape.back(),
                          &axis = signature_.axes[static_cast<std::size_t>(vector_axis_)];
    const auto has_groups = [&](const runtime::Extent& extent) {
      return extent.is_static() && extent.value % span->group == 0;
    };
    const bool side_by_side = elements == axis && span->away == 0LL && !v.guarded;
    if (!PacketsBeginAtMultiples(span->group) || !(side_by_side || (has_groups(elements) && has_groups(axis))))
      return std::nullopt;
  }
  return span;
}

bool KernelShape::PacketsBeginAtMultiples(int number) const {
  return vector_axis_ > 0 && runs_.granule % number == 0 && !Splits() && PacketWidth() % number == 0;
}

std::optional<LaneRun> KernelShape::LaneRunOf(int id) const {
  const plan::Value& v = kernel_.values[static_cast<std::size_t>(id)];
  if (options_.spelling != Spelling::kPackets || v.type != DType::kBool || v.kind != plan::Value::Kind::kMap)
    return std::nullopt;
  // Of data, differences may wrap around, which equality alone allows.
  const bool of_data = columns_ && v.op == graph::Op::eq;
  return FindLaneRun(kernel_, id, [&](int value) {
    return IsAlike(value) || IsAlikeInRun(value) || (of_data && !moves_[static_cast<std::size_t>(value)]);
  });
}

std::vector<BoxBound> KernelShape::InsideBounds(const plan::Phase& phase) const {
  std::vector<BoxBound> bounds;
  if (!columns_) return bounds;
  const auto is_alike = [this](int value, int axis) {
    const plan::Scope scope = kernel_.values[static_cast<std::size_t>(value)].scope;
    return scope == plan::Scope::kUniform || (scope == plan::Scope::kRow && axis != vector_axis_);
  };
  for (int id : phase.element_values) {
    const plan::Value& v = kernel_.values[static_cast<std::size_t>(id)];
    const bool guarded = v.kind == plan::Value::Kind::kGather && v.guarded && InPackets(id) && SpanOf(id);
    if (guarded && !FindBoxBounds(kernel_, v.args.back(), BoxAxes(), is_alike, &bounds)) return {};
  }
  return bounds;
}

std::vector<int> KernelShape::BoxAxes() const {
  std::vector<int> axes = {vector_axis_};
  for (int axis = signature_.row_axes; axis < kernel_.rank(); ++axis) axes.push_back(axis);
  return axes;
}

bool KernelShape::IsRemainder(int id) const {
  return codegen::IsRemainder(kernel_, id, [this](int value) { return IsAlike(value) || IsAlikeInRun(value); });
}

std::optional<long long> KernelShape::SlopeOf(int id) const {
  const plan::Value& v = kernel_.values[static_cast<std::size_t>(id)];
  const bool wraps =
      v.kind == plan::Value::Kind::kCast && v.type == DType::kInt32 && IsPositional(v.args[0]);  // as packets of i32 do
  if ((v.type != DType::kInt64 && !wraps) || v.kind == plan::Value::Kind::kGather) return std::nullopt;
  return FindSlope(kernel_, id, [this](int value) { return IsAlike(value) || IsAlikeInRun(value); });
}

Runs KernelShape::RunsOf(const plan::Phase& phase) const {
  return FindRuns(
      kernel_, phase, [this](int value) { return IsAlike(value); }, [this](int value) { return InPackets(value); });
}

bool KernelShape::JoinsRows() const {
  if (options_.variant.stores != runtime::Stores::kJoined || options_.variant.packed || !PutsLinesTogether() ||
      IsBlocked() || Splits())
    return false;
  const auto rows = signature_.axes.begin(), columns = rows + vector_axis_;
  const bool one =
      std::all_of(rows, columns, [](const runtime::Extent& extent) { return extent == runtime::Extent::Static(1); });
  return !one && (columns_ || !columns->is_static() || columns->value % kLine != 0);
}

bool KernelShape::JoinsTiles() const {
  return options_.variant.stores == runtime::Stores::kJoined && PutsLinesTogether() &&
         RegisterBytes(options_.target) == kLine && TileAxis() >= 0;
}

bool KernelShape::IsBlocked() const {
  if (!signature_.elementwise || columns_) return false;
  return std::any_of(signature_.operands.begin(), signature_.operands.end(),
                     [this](const runtime::Access& access) { return IsTransposed(access); });
}

int KernelShape::TileAxis() const {
  if (!IsBlocked() || PacketWidth() == 1 || options_.spelling != Spelling::kPackets || options_.variant.strided)
    return -1;
  int tile_axis = -1;
  for (const auto& access : signature_.operands) {
    if (!IsTransposed(access)) continue;
    const auto& buffer = plan_.buffers[static_cast<std::size_t>(access.buffer)];
    int axis = 0;
    while (axis < signature_.row_axes && AxisDim(access, axis) != access.LastDim()) ++axis;
    const bool fits = !access.store && buffer.dtype != DType::kBool && axis < signature_.row_axes;
    if (!fits || (tile_axis >= 0 && axis != tile_axis)) return -1;
    tile_axis = axis;
  }
  return tile_axis;
}

bool KernelShape::IsTransposed(const runtime::Access& access) const {
  return AxisDim(access, vector_axis_) >= 0 && !IsContiguousByPlan(access);
}

bool KernelShape::GoesSideBySide(const plan::Phase& phase, const std::set<int>* needed) const {
  if (options_.target == Target::kPlain || options_.spelling != Spelling::kPackets) return false;
  if (columns_ || options_.variant.strided || IsBlocked()) return false;
  bool polynomial = false;
  for (int id : phase.element_values) {
    if (needed != nullptr && needed->count(id) == 0) continue;
    const plan::Value& v = kernel_.values[static_cast<std::size_t>(id)];
    const auto span = v.kind == plan::Value::Kind::kGather ? SpanOf(id) : std::nullopt;
    if (v.kind == plan::Value::Kind::kGather ? !span || span->repeats > 1 || span->group > 0
                                             : InPackets(id) && IsMadeOfLanes(id))
      return false;
    if (v.kind != plan::Value::Kind::kMap) continue;
    if (graph::Info(v.op).header != "arith") polynomial = true;
  }
  const auto is_narrow = [this](const plan::Store& store) {
    const auto& access = signature_.operands[static_cast<std::size_t>(store.operand)];
    return static_cast<int>(SizeOf(plan_.buffers[static_cast<std::size_t>(access.buffer)].dtype)) * PacketWidth() <
           kLeastStored;
  };
  return polynomial || (phase.reductions.empty() && std::any_of(phase.stores.begin(), phase.stores.end(), is_narrow));
}

bool KernelShape::Moves(const runtime::Access& access, int axis) const {
  if (AxisDim(access, axis) >= 0) return true;
  return signature_.elementwise && axis == 0 && AxisDim(access, vector_axis_) >= 0;
}

bool KernelShape::IsContiguousByPlan(const runtime::Access& access) const {
  return AxisDim(access, vector_axis_) >= 0 && AxisDim(access, vector_axis_) == access.LastDim();
}

std::string KernelShape::ExtentName(int axis) const {
  if (IsBaked(axis)) return std::to_string(signature_.axes[static_cast<std::size_t>(axis)].value);
  return "n" + std::to_string(axis);
}

void KernelShape::MarkPositional() {
  using Kind = plan::Value::Kind;
  for (const plan::Value& v : kernel_.values) {
    bool positional = v.kind == Kind::kIndex || v.kind == Kind::kNumber;
    // Positions are i32 where they are made of such ones; what a condition on positions chooses of i32 is data.
    const bool is_narrow = v.type == DType::kInt32;
    if (v.kind == Kind::kMap && (is_narrow || v.type == DType::kInt64 || v.type == DType::kBool))
      for (const int arg : v.args) {
        const bool counts = !is_narrow || kernel_.values[static_cast<std::size_t>(arg)].type == DType::kInt32;
        positional = positional || (counts && positional_[static_cast<std::size_t>(arg)]);
      }
    positional_.push_back(positional);
  }
}

void KernelShape::MarkPackets() {
  packets_.assign(kernel_.values.size(), false);
  for (const plan::Phase& phase : kernel_.phases) {
    for (const auto& reduction : phase.reductions) MarkPacket(reduction.value);
    for (const auto& stage : phase.stages) MarkPacket(stage.value);
    for (const auto& store : phase.stores) MarkPacket(store.value);
  }
  for (const auto& store : kernel_.final_stores) MarkPacket(store.value);
}

// Wider packets would have fewer lanes; bytes that are read are places as they are, unless those are of a table.
bool KernelShape::HasPlacesOf(const Place& place, const plan::Value& gather) const {
  const bool table = MayBeTable(gather);
  using Kind = plan::Value::Kind;
  return std::all_of(place.data.begin(), place.data.end(), [&](int id) {
    const plan::Value& data = kernel_.values[static_cast<std::size_t>(id)];
    const plan::Value& from = data.kind == Kind::kCast ? kernel_.values[static_cast<std::size_t>(data.args[0])] : data;
    const bool is_byte = from.kind == Kind::kLoad && SizeOf(from.type) == 1;
    return data.type != DType::kInt64 && (table || !is_byte) &&
           SizeOf(data.type) <= std::max(SizeOf(gather.type), sizeof(int));
  });
}

bool KernelShape::MayBeTable(const plan::Value& gather) const {
  const auto bytes = static_cast<std::size_t>(RegisterBytes(options_.target));
  if (options_.spelling != Spelling::kPackets || bytes < 32 || gather.kind != plan::Value::Kind::kGather ||
      gather.guarded || gather.args.size() != 1 || options_.variant.strided || SizeOf(gather.type) < 4)
    return false;
  const auto& access = signature_.operands[static_cast<std::size_t>(gather.index)];
  const runtime::Extent& elements = plan_.buffers[static_cast<std::size_t>(access.buffer)].shape[0];
  return elements.is_static() && elements.value > 0 &&
         elements.value <= static_cast<index_t>((bytes == 64 ? kMostOf64 : kMostOf32) * bytes / SizeOf(gather.type));
}

void KernelShape::MarkPacket(int id) {
  if (InPackets(id)) return;
  packets_[static_cast<std::size_t>(id)] = true;
  const plan::Value& v = kernel_.values[static_cast<std::size_t>(id)];
  if (!IsMadeOfLanes(id)) {
    for (const int arg : v.args) MarkPacket(arg);
  } else if (v.kind == plan::Value::Kind::kGather) {
    for (const int arg : v.args)
      if (const auto place = PlaceOf(arg); place && HasPlacesOf(*place, v))
        for (const int data : place->data) MarkPacket(data);
  }
}

}  // namespace umbra::codegen

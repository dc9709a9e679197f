#include "compiler/plan/lower_kernel.h"

#include <algorithm>
#include <limits>
#include <set>

#include "compiler/plan/guards.h"
#include "compiler/plan/moments.h"
#include "compiler/plan/positions.h"
#include "compiler/plan/short_rows.h"
#include "umbra/error.h"

namespace umbra::plan {

using graph::Graph;
using graph::Node;
using Kind = graph::Node::Kind;

namespace {

constexpr std::int64_t kSmallWindow = 64;
// Sums of so many groups go along what is summed.
constexpr std::int64_t kFewGroups = 64;

class KernelLowering {
 public:
  KernelLowering(const Graph& graph, const Fusion& fusion, const Unit& unit, const MemoryMap& memory,
                 const std::function<runtime::Extent(const Dimension&)>& extent, bool on_gpu)
      : graph_(graph),
        fusion_(fusion),
        unit_(unit),
        memory_(memory),
        extent_(extent),
        on_gpu_(on_gpu) {
    for (const Root& root : unit.roots) own_.insert(root.node);
  }

  Kernel Run(std::string name) {
    kernel_.signature.name = std::move(name);
    LayOutAxes();
    for (const Root& root : unit_.roots) {
      const int value = Lower(root.node, root.map);
      for (int buffer : memory_.write.at(root.node)) AddStore(buffer, root.map, value);
    }
    ChooseVectorAxis();
    SchedulePhases();
    FindGuards(&kernel_, !on_gpu_);
    FindInPlace();
    OrderValues(&kernel_);
    kernel_.signature.cost = ElementCost(kernel_);
    kernel_.signature.panels = PanelsOf(kernel_);
    if (!kernel_.signature.panels.empty())
      kernel_.signature.sums = static_cast<int>(kernel_.phases[0].reductions.size());
    kernel_.signature.phases = static_cast<int>(kernel_.phases.size());
    kernel_.signature.moments = !on_gpu_ && FindMoments(kernel_).has_value();
    for (const plan::Phase& phase : kernel_.phases)
      for (const Reduction& reduction : phase.reductions)
        if (!HasSmallWindow() && !SharesRows(kernel_) && !AsksOnce(phase) && !HasScans(kernel_))
          kernel_.signature.partials.push_back(value(reduction.result).type);
    return std::move(kernel_);
  }

 private:
  // Kept axes first, then inner ones; at least one of each, so that every kernel has a range and a
  // vector axis. Behind what is reduced, or last of all, an axis of one index would take packets for itself: it is left
  // out.
  void LayOutAxes() {
    const Domain& domain = unit_.domain;
    std::vector<int> kept = domain.KeptAxes();
    std::vector<int> inner = domain.InnerAxes();
    while (!on_gpu_ && !domain.flexible && !inner.empty() && !kept.empty() && kept.back() > inner.back() &&
           IsOne(kept.back()))
      kept.pop_back();
    if (!on_gpu_ && domain.flexible && inner.size() == 1 && !kept.empty()) {
      const auto is_one = [this](int axis) { return IsOne(axis); };
      kept.erase(std::remove_if(kept.begin() + (IsOne(inner[0]) ? 0 : 1), kept.end(), is_one), kept.end());
      if (IsOne(inner[0]) && !kept.empty()) inner[0] = kept.back(), kept.pop_back();
    }
    axis_of_.assign(domain.dims.size(), -1);
    auto& axes = kernel_.signature.axes;
    auto add = [&](const std::vector<int>& logical) {
      for (int axis : logical) {
        axis_of_[static_cast<std::size_t>(axis)] = static_cast<int>(axes.size());
        axes.push_back(extent_(domain.dims[static_cast<std::size_t>(axis)]));
      }
      if (logical.empty()) axes.push_back(runtime::Extent::Static(1));
    };
    add(kept);
    keeps_ = !kept.empty();
    kernel_.signature.row_axes = static_cast<int>(axes.size());
    add(inner);
    kernel_.signature.elementwise = domain.flexible;
  }

  // The last axis, unless rows are reduced along others, or over windows; of one axis that is reduced and the last that
  // is not, the one along which operands lie, if they do along one alone, or along which rows share what they read.
  void ChooseVectorAxis() {
    const Domain& domain = unit_.domain;
    const int row_axes = kernel_.signature.row_axes, last = static_cast<int>(kernel_.signature.axes.size()) - 1;
    auto inmost = static_cast<int>(domain.dims.size()) - 1;
    while (inmost > 0 && axis_of_[static_cast<std::size_t>(inmost)] < 0) --inmost;
    const bool is_inner = domain.dims.empty() || IsInner(inmost);
    const bool across =
        HasSmallWindow() && keeps_ && !HasRowsOfPackets() && (on_gpu_ || !HasUnevenWindows(row_axes - 1));
    int& axis = kernel_.signature.vector_axis;
    axis = is_inner && !across ? last : row_axes - 1;
    if (last != row_axes || domain.flexible || !keeps_ || domain.InnerAxes().empty() || HasSmallWindow()) return;
    if (axis == row_axes - 1 && AreTold(axis) && MovesSideBySide(last)) axis = last;
    const int other = last + row_axes - 1 - axis;
    if (HasPositions()) {
      if (!on_gpu_ && GathersAcross(axis) && !GathersAcross(other) && NumAcross(other) == 0) axis = other;
    } else if (IsProduct()) {
      axis = row_axes - 1;
    } else if (NumAcross(axis) > 0 && NumAcross(other) == 0) {
      axis = other;
    }
  }

  // Is anything gathered whose elements, along the axis, are of several rows, or do not follow each other?
  bool GathersAcross(int axis) const {
    const std::vector<bool> moves = MovesAlong(kernel_, axis);
    return std::any_of(kernel_.values.begin(), kernel_.values.end(), [&](const Value& v) {
      if (v.kind != Value::Kind::kGather || v.args.size() == (v.guarded ? 1 : 0)) return false;
      const auto last = v.args.end() - (v.guarded ? 2 : 1);
      return std::any_of(v.args.begin(), last, [&](int place) { return moves[static_cast<std::size_t>(place)]; }) ||
             (moves[static_cast<std::size_t>(*last)] && StepAlong(kernel_, *last, axis) != 1);
    });
  }

  // Are indices of the axis, which are few, told from each other by their position alone, as the sums of groups are?
  bool AreTold(int axis) const {
    const auto along = static_cast<std::size_t>(axis);
    const runtime::Extent& extent = kernel_.signature.axes[along];
    const bool gathers = std::any_of(kernel_.values.begin(), kernel_.values.end(),
                                     [](const Value& v) { return v.kind == Value::Kind::kGather; });
    return extent.is_static() && extent.value <= kFewGroups && !gathers &&
           std::all_of(
               kernel_.signature.operands.begin(), kernel_.signature.operands.end(),
               [along](const runtime::Access& access) { return access.store || access.dim_of_axis[along] < 0; });
  }

  // Do the elements that it moves lie side by side along the axis, and are there some?
  bool MovesSideBySide(int axis) const {
    const auto moves = [axis](const runtime::Access& access) {
      return !access.store && access.dim_of_axis[static_cast<std::size_t>(axis)] >= 0;
    };
    return NumAcross(axis) == 0 &&
           std::any_of(kernel_.signature.operands.begin(), kernel_.signature.operands.end(), moves);
  }

  bool IsOne(int logical_axis) const {
    const runtime::Extent extent = extent_(unit_.domain.dims[static_cast<std::size_t>(logical_axis)]);
    return extent.is_static() && extent.value == 1;
  }

  // Does each step say which row it counts for? To share out the rows' steps would be to ask each for every row.
  bool AsksOnce(const plan::Phase& phase) const {
    const auto key = on_gpu_ || kernel_.phases.size() != 1 ? std::nullopt : FindStepKey(kernel_, phase);
    return key && key->row_axis == kernel_.signature.row_axes - 2;
  }

  bool HasPositions() const {
    return std::any_of(kernel_.values.begin(), kernel_.values.end(), [](const Value& v) {
      return v.kind == Value::Kind::kIndex || v.kind == Value::Kind::kGather || v.kind == Value::Kind::kNumber;
    });
  }

  // Do windows lie along the axis where a quotient of several times the index tells, as those of an adaptive pool do? A
  // packet across them would be put together element by element.
  bool HasUnevenWindows(int axis) const {
    const std::vector<bool> moves = MovesAlong(kernel_, axis);
    std::vector<bool> scaled(kernel_.values.size());  // does it move by a multiple of the index, by value?
    for (std::size_t id = 0; id < kernel_.values.size(); ++id) {
      const Value& v = kernel_.values[id];
      if (v.kind != Value::Kind::kMap || v.type != DType::kInt64 || !moves[id]) continue;
      const auto is_scaled = [&](int arg) { return scaled[static_cast<std::size_t>(arg)]; };
      if (v.op == graph::Op::div && is_scaled(v.args[0])) return true;
      scaled[id] = v.op == graph::Op::mul || std::any_of(v.args.begin(), v.args.end(), is_scaled);
    }
    return false;
  }

  // Operands whose elements do not lie side by side along the axis, though it moves them.
  int NumAcross(int axis) const {
    return static_cast<int>(std::count_if(kernel_.signature.operands.begin(), kernel_.signature.operands.end(),
                                          [axis](const runtime::Access& access) {
                                            const int dim = access.dim_of_axis[static_cast<std::size_t>(axis)];
                                            return dim >= 0 && dim != access.LastDim();
                                          }));
  }

  // Are all rows reduced with the same columns, all columns with the same rows, and neither with anything of its own?
  bool IsProduct() const {
    constexpr std::int64_t kLeastColumns = 8;
    const runtime::KernelSignature& signature = kernel_.signature;
    const auto inner = static_cast<std::size_t>(signature.row_axes), column = inner - 1;
    if (inner < 2) return false;
    const auto several = [&](std::size_t axis, std::int64_t least) {
      return !signature.axes[axis].is_static() || signature.axes[axis].value >= least;
    };
    if (!several(column - 1, 2) || !several(column, kLeastColumns)) return false;
    bool rows = false, columns = false;
    for (const auto& [buffer, dims, store, gathered, dense] : signature.operands) {
      if (store || dims[inner] < 0) continue;
      if (dims[column] >= 0 && dims[column - 1] >= 0) return false;
      rows = rows || (dims[column] < 0 && dims[column - 1] >= 0);
      columns = columns || (dims[column] >= 0 && dims[column - 1] < 0);
    }
    return rows && columns;
  }

  // Do all elements of a window lie in rows of memory that are packets long?
  bool HasRowsOfPackets() const {
    const int inner = static_cast<int>(unit_.domain.InnerAxes().size());
    if (inner == 0 || !in_rows_ || in_columns_) return false;
    std::int64_t length = 1;
    for (int k = 0; k < std::min(inner, axes_in_row_); ++k) length *= (kernel_.signature.axes.end() - 1 - k)->value;
    return !IsShortRow(kernel_, length);
  }

  // Reductions over a window: packets go along the last axis that stays.
  bool HasSmallWindow() const {
    if (unit_.domain.flexible) return false;
    std::int64_t points = 1;
    for (int axis : unit_.domain.InnerAxes()) {
      const runtime::Extent extent = extent_(unit_.domain.dims[static_cast<std::size_t>(axis)]);
      if (!extent.is_static() || extent.value > kSmallWindow) return false;
      points *= extent.value;
    }
    return points <= kSmallWindow;
  }

  bool IsInner(int logical_axis) const {
    return logical_axis >= 0 && axis_of_[static_cast<std::size_t>(logical_axis)] >= kernel_.signature.row_axes;
  }

  int NewValue(Value value) {
    kernel_.values.push_back(std::move(value));
    level_.push_back(0);
    return static_cast<int>(kernel_.values.size()) - 1;
  }

  int AddOperand(int buffer, const AxisMap& map, bool store) {
    runtime::Access access;
    access.buffer = buffer;
    access.store = store;
    access.dim_of_axis.assign(kernel_.signature.axes.size(), -1);
    for (std::size_t d = 0; d < map.size(); ++d)
      if (const int axis = map[d] < 0 ? -1 : axis_of_[static_cast<std::size_t>(map[d])]; axis >= 0)
        access.dim_of_axis[static_cast<std::size_t>(axis)] = static_cast<int>(d);
    const auto inner = access.dim_of_axis.begin() + kernel_.signature.row_axes;
    const bool is_element = std::any_of(inner, access.dim_of_axis.end(), [](int dim) { return dim >= 0; });
    if (is_element && !store) {
      const int last = access.LastDim();
      int in_row = 0;  // inner axes, from the last on, whose elements lie side by side
      for (auto axis = access.dim_of_axis.end(); axis != inner && in_row <= last && *--axis == last - in_row;) ++in_row;
      (in_row > 0 ? in_rows_ : in_columns_) = true;
      axes_in_row_ = std::min(axes_in_row_, in_row);
    }
    return OperandIndex(std::move(access));
  }

  int OperandIndex(runtime::Access access) {
    auto& operands = kernel_.signature.operands;
    const auto found = std::find(operands.begin(), operands.end(), access);
    if (found != operands.end()) return static_cast<int>(found - operands.begin());
    operands.push_back(std::move(access));
    return static_cast<int>(operands.size()) - 1;
  }

  void AddStore(int buffer, const AxisMap& map, int value) {
    const int operand = AddOperand(buffer, map, true);
    bool full = unit_.domain.flexible;
    for (int axis : map) full = full || IsInner(axis);
    (full ? stores_ : row_stores_).push_back({operand, value});
  }

  // The value of a node at the point given by `map`.
  int Lower(int id, const AxisMap& map) {
    const auto key = std::make_pair(id, map);
    if (const auto found = memo_.find(key); found != memo_.end()) return found->second;
    const int value = LowerNew(id, map);
    auto& made = kernel_.values[static_cast<std::size_t>(value)];
    if (made.label.empty()) made.label = std::string(graph_.label(id));
    if (made.place.empty()) made.place = std::string(graph_.place(id));
    memo_.emplace(key, value);
    return value;
  }

  int LowerNew(int id, const AxisMap& map) {
    const Node& node = graph_.node(id);
    Value value;
    value.type = node.dtype;
    if (node.kind == Kind::kInput || (fusion_.roots.count(id) && !own_.count(id))) {
      value.kind = Value::Kind::kLoad;
      value.index = AddOperand(memory_.read.at(id), map, false);
      value.scope = Scope::kRow;
      for (int axis : map)
        if (IsInner(axis)) value.scope = Scope::kElement;
      if (unit_.domain.flexible && unit_.domain.dims.empty()) value.scope = Scope::kElement;
      return NewValue(std::move(value));
    }
    switch (node.kind) {
      case Kind::kScalar:
        value.kind = Value::Kind::kScalar;
        value.index = ScalarIndex(memory_.scalar.at(id));
        value.label = node.name;
        return NewValue(std::move(value));
      case Kind::kConstant:
        value.kind = Value::Kind::kConstant;
        value.constant = node.constant;
        return NewValue(std::move(value));
      case Kind::kBroadcast:
      case Kind::kTranspose: return Lower(node.inputs[0], OperandMap(graph_, node, 0, map));
      case Kind::kMap:
      case Kind::kCast: {
        value.kind = node.kind == Kind::kMap ? Value::Kind::kMap : Value::Kind::kCast;
        value.op = node.op;
        return LowerOperands(std::move(value), node, 0, map);
      }
      case Kind::kReduce: {
        const auto operand_map = ReducedOperandMap(graph_, node, map, unit_.domain);
        Ensure(operand_map.has_value(), "a fused reduction does not fit its kernel's domain");
        const int arg = Lower(node.inputs[0], *operand_map);
        value.kind = Value::Kind::kReduced;
        value.scope = Scope::kRow;
        const int made = NewValue(std::move(value));
        level_[static_cast<std::size_t>(made)] = level_[static_cast<std::size_t>(arg)] + 1;
        reductions_.push_back({node.reducer, arg, made, node.contract});
        return made;
      }
      case Kind::kScan: {
        value.kind = Value::Kind::kScanned;
        value.reducer = node.reducer;
        value.scope = Scope::kElement;
        return LowerOperands(std::move(value), node, 0, map);
      }
      case Kind::kIndex: {
        const int logical = map[static_cast<std::size_t>(node.axes[0])],
                  axis = logical < 0 ? -1 : axis_of_[static_cast<std::size_t>(logical)];
        kernel_.signature.positional = true;
        kernel_.signature.elementwise = false;
        if (axis < 0) {
          value.kind = Value::Kind::kConstant;
          return NewValue(std::move(value));
        }
        value.kind = Value::Kind::kIndex;
        value.index = axis;
        value.scope = IsInner(logical) ? Scope::kElement : Scope::kRow;
        return NewValue(std::move(value));
      }
      case Kind::kExtent:
        value.kind = Value::Kind::kNumber;
        value.index = NumberIndex({extent_(node.extent), -1, -1});
        return NewValue(std::move(value));
      case Kind::kGather: return LowerGather(node, map);
      case Kind::kInput:
      case Kind::kDot: break;
    }
    throw InternalError("a dot product inside a kernel");
  }

  // The value with the node's inputs from `first` on as its arguments: it is as inner, and known as late,
  // as the innermost and latest of them.
  int LowerOperands(Value value, const Node& node, std::size_t first, const AxisMap& map) {
    int level = 0;
    for (std::size_t k = first; k < node.inputs.size(); ++k) {
      const int arg = Lower(node.inputs[k], OperandMap(graph_, node, k, map));
      value.args.push_back(arg);
      value.scope = std::max(value.scope, kernel_.values[static_cast<std::size_t>(arg)].scope);
      level = std::max(level, level_[static_cast<std::size_t>(arg)]);
    }
    const int made = NewValue(std::move(value));
    level_[static_cast<std::size_t>(made)] = level;
    return made;
  }

  int LowerGather(const Node& node, const AxisMap& map) {
    Value value;
    value.type = node.dtype;
    value.kind = Value::Kind::kGather;
    value.scope = Scope::kRow;
    value.guarded = node.guarded;
    value.constant = node.constant;
    kernel_.signature.positional = true;
    kernel_.signature.elementwise = false;
    runtime::Access access;
    access.buffer = memory_.read.at(node.inputs[0]);
    access.dim_of_axis.assign(kernel_.signature.axes.size(), -1);
    access.gathered = true;
    value.index = OperandIndex(std::move(access));
    for (std::size_t d = 0; d < graph_.node(node.inputs[0]).shape.size(); ++d)
      NumberIndex({runtime::Extent::Static(0), value.index, static_cast<int>(d)});
    const int made = LowerOperands(std::move(value), node, 1, map);
    if (TakesRows(made)) in_rows_ = true, axes_in_row_ = std::min(axes_in_row_, 1);
    return made;
  }

  // Are elements along the last inner axis those of a row of the gather's source, from its beginning on?
  bool TakesRows(int gather) const {
    const auto is_along_last = [this](int arg) {
      return kernel_.values[static_cast<std::size_t>(arg)].kind == Value::Kind::kIndex &&
             kernel_.values[static_cast<std::size_t>(arg)].index == kernel_.rank() - 1;
    };
    const std::vector<int>& positions = kernel_.values[static_cast<std::size_t>(gather)].args;
    const std::size_t rank = positions.size() - (kernel_.values[static_cast<std::size_t>(gather)].guarded ? 1 : 0);
    return rank > 0 && !unit_.domain.InnerAxes().empty() && is_along_last(positions[rank - 1]) &&
           std::none_of(positions.begin(), positions.begin() + static_cast<std::ptrdiff_t>(rank - 1),
                        [&](int position) {
                          return kernel_.values[static_cast<std::size_t>(position)].scope == Scope::kElement;
                        });
  }

  int NumberIndex(const runtime::Number& number) {
    auto& numbers = kernel_.signature.numbers;
    const auto found = std::find(numbers.begin(), numbers.end(), number);
    if (found != numbers.end()) return static_cast<int>(found - numbers.begin());
    numbers.push_back(number);
    return static_cast<int>(numbers.size()) - 1;
  }

  int ScalarIndex(int program_scalar) {
    auto& scalars = kernel_.signature.scalars;
    const auto found = std::find(scalars.begin(), scalars.end(), program_scalar);
    if (found != scalars.end()) return static_cast<int>(found - scalars.begin());
    scalars.push_back(program_scalar);
    return static_cast<int>(scalars.size()) - 1;
  }

  int level(int value) const { return level_[static_cast<std::size_t>(value)]; }
  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }

  // A value is computed in the phase of its level; element values again in each later phase that
  // needs them, unless they are dear enough to be kept.
  void SchedulePhases() {
    int phases = 1;
    for (const Reduction& reduction : reductions_) phases = std::max(phases, level(reduction.value) + 1);
    for (const Store& store : stores_) phases = std::max(phases, level(store.value) + 1);
    kernel_.phases.resize(static_cast<std::size_t>(phases));
    for (const Reduction& reduction : reductions_) Phase(level(reduction.value)).reductions.push_back(reduction);
    for (const Store& store : stores_) Phase(level(store.value)).stores.push_back(store);
    kernel_.final_stores = row_stores_;
    StageDearValues();
    for (int id = 0; id < static_cast<int>(kernel_.values.size()); ++id) {
      if (value(id).scope != Scope::kRow || value(id).kind == Value::Kind::kReduced) continue;
      if (level(id) < phases) Phase(level(id)).row_values.push_back(id);
      else kernel_.final_row_values.push_back(id);
    }
    for (int p = 0; p < phases; ++p) Phase(p).element_values = Needed(p);
  }

  plan::Phase& Phase(int index) { return kernel_.phases[static_cast<std::size_t>(index)]; }

  std::vector<int> Needed(int p) { return NeededElements(kernel_, Phase(p)); }

  // Keeps in row buffers the dear values that a later phase reads. Later phases then read them
  // through kStaged values. Only rows of one axis are kept: their size is bounded by one extent.
  void StageDearValues() {
    if (kernel_.rank() - kernel_.signature.row_axes != 1 || !kernel_.vector_axis_is_inner()) return;
    for (int p = 1; p < static_cast<int>(kernel_.phases.size()); ++p)
      for (int id = DearValue(p); id >= 0; id = DearValue(p)) StageValue(id, level(id));
  }

  // A value that phase p reads for something new, that an earlier phase computes, and that is dear;
  // or -1.
  int DearValue(int p) {
    for (int id : Needed(p)) {
      const bool is_computed = value(id).kind == Value::Kind::kMap || value(id).kind == Value::Kind::kScanned;
      if (level(id) >= p || !is_computed || !IsReadInPhase(id, p)) continue;
      const std::vector<int> home = Needed(level(id));
      if (std::find(home.begin(), home.end(), id) == home.end()) continue;
      if (CostFromMemory(kernel_, id) >= kKeptCost) return id;
    }
    return -1;
  }

  // Is the value read in phase p by a reduction, a store, or a value that is new in p?
  bool IsReadInPhase(int id, int p) {
    for (const Reduction& reduction : Phase(p).reductions)
      if (reduction.value == id) return true;
    for (const Store& store : Phase(p).stores)
      if (store.value == id) return true;
    for (int reader : Needed(p)) {
      const auto& args = value(reader).args;
      if (level(reader) >= p && std::find(args.begin(), args.end(), id) != args.end()) return true;
    }
    return false;
  }

  void StageValue(int id, int home) {
    Value staged;
    staged.kind = Value::Kind::kStaged;
    staged.type = value(id).type;
    staged.scope = Scope::kElement;
    staged.index = static_cast<int>(kernel_.signature.row_buffers.size());
    staged.label = value(id).label;
    kernel_.signature.row_buffers.push_back(staged.type);
    const int copy = NewValue(std::move(staged));
    level_.back() = home + 1;
    Phase(home).stages.push_back({id, kernel_.values.back().index});
    for (int reader = 0; reader < copy; ++reader) {
      if (level(reader) <= home) continue;
      for (int& arg : kernel_.values[static_cast<std::size_t>(reader)].args)
        if (arg == id) arg = copy;
    }
    for (int p = home + 1; p < static_cast<int>(kernel_.phases.size()); ++p) {
      for (Reduction& reduction : Phase(p).reductions)
        if (reduction.value == id) reduction.value = copy;
      for (Store& store : Phase(p).stores)
        if (store.value == id) store.value = copy;
    }
  }

  // A store may overwrite a load's memory if both walk it alike and nothing reads it afterwards.
  void FindInPlace() {
    auto& signature = kernel_.signature;
    signature.in_place.assign(signature.operands.size(), {});
    std::vector<int> last_load(signature.operands.size(), -1);
    const int phases = static_cast<int>(kernel_.phases.size());
    for (int p = 0; p < phases; ++p)
      for (const auto* values : {&Phase(p).guard_values, &Phase(p).element_values})
        for (int id : *values)
          if (value(id).kind == Value::Kind::kLoad) last_load[static_cast<std::size_t>(value(id).index)] = p;
    for (const Value& v : kernel_.values)
      if (v.kind == Value::Kind::kLoad && v.scope == Scope::kRow) last_load[static_cast<std::size_t>(v.index)] = 0;
    const auto parts = [&](const runtime::Access& access) {
      const auto view = memory_.views.find(access.buffer);
      return view == memory_.views.end() ? View() : view->second;
    };
    auto allow = [&](int store, int phase) {
      for (std::size_t k = 0; k < signature.operands.size(); ++k) {
        const auto& load = signature.operands[k];
        const auto& to = signature.operands[static_cast<std::size_t>(store)];
        if (load.store || load.gathered || last_load[k] > phase) continue;
        if (load.dim_of_axis == to.dim_of_axis && parts(load).IsAlike(parts(to)))
          signature.in_place[static_cast<std::size_t>(store)].push_back(static_cast<int>(k));
      }
    };
    for (int p = 0; p < phases; ++p)
      for (const Store& store : Phase(p).stores) allow(store.operand, p);
    for (const Store& store : kernel_.final_stores) allow(store.operand, phases);
  }

  const Graph& graph_;
  const Fusion& fusion_;
  const Unit& unit_;
  const MemoryMap& memory_;
  const std::function<runtime::Extent(const Dimension&)>& extent_;
  const bool on_gpu_;
  Kernel kernel_;
  std::set<int> own_;
  std::vector<int> axis_of_;  // logical axis -> kernel axis, or -1
  bool keeps_ = false;  // are there kept axes?
  std::map<std::pair<int, AxisMap>, int> memo_;
  int axes_in_row_ = std::numeric_limits<int>::max();  // inner ones that lie side by side in all operands
  bool in_rows_ = false, in_columns_ = false;  // do elements of an operand lie along the last inner axis, or another?
  std::vector<int> level_;  // phase in which a value is first known
  std::vector<Reduction> reductions_;
  std::vector<Store> stores_, row_stores_;
};

}  // namespace

Kernel LowerKernel(const Graph& graph, const Fusion& fusion, const Unit& unit, const MemoryMap& memory,
                   const std::function<runtime::Extent(const Dimension&)>& extent, std::string name, bool on_gpu) {
  return KernelLowering(graph, fusion, unit, memory, extent, on_gpu).Run(std::move(name));
}

}  // namespace umbra::plan

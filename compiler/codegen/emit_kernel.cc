// Emits one kernel:
//
//   operand pointers, strides, extents, scalars
//   for each row axis:
//     row pointers, row values
//     for each phase: accumulators; inner loops with whole packets, then the head of the last one
//     final row values and stores
//
// Values are scalars where they do not vary along the vector axis, else packets. When the vector
// axis is the last row axis, every row value is a packet and the inner loops are scalar.
#include "compiler/codegen/emit_kernel.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "compiler/codegen/kernel_shape.h"
#include "compiler/codegen/lanes.h"
#include "compiler/codegen/literal.h"
#include "compiler/codegen/names.h"
#include "compiler/codegen/speller.h"
#include "umbra/error.h"

namespace umbra::codegen {

namespace {

using plan::Kernel;
using plan::Phase;
using plan::Scope;
using plan::Value;

// Every reduction along the vector axis has this many partial results: element j belongs to
// partial j mod kPartials, and the partials are joined by halves. It does not depend on the packet
// width, so all targets give the same bits.
constexpr int kPartials = 32;
// Columns of a block when a gathered operand is walked across its lines.
constexpr int kTransposeBlock = 64;
// Longer expressions get a name.
constexpr std::size_t kInlineLength = 56;

class KernelEmitter : private KernelShape {
 public:
  KernelEmitter(const plan::Plan& plan, const Kernel& kernel, const SourceOptions& options,
                Writer* out)
      : KernelShape(plan, kernel, options), out_(*out), width_(PacketWidth()) {
    speller_ = MakeSpeller(options.spelling, options.target, width_);
    for (std::size_t id = 0; id < kernel.values.size(); ++id)
      positional_.push_back(plan::IsPositional(kernel.values, static_cast<int>(id)));
    CountUses();
    BindLanes();
  }

  std::string Run() {
    const std::string name = names_.Make(signature_.name);
    if (!kernel_.summary.empty())
      out_.Line("// {} \u00b7 {} \u00b7 {}", name, Name(options_.target), kernel_.summary);
    out_.Open("UMBRA_KERNEL_FN void {}(const umbra_args* args, long long begin, long long end)", name);
    DeclareExtents();
    DeclareOperands();
    DeclareNumbers();
    DeclareUniforms();
    if (IsBlocked()) {
      out_.Open("for (long long j0 = 0; j0 < {}; j0 += {})", ExtentName(vector_axis_), kTransposeBlock);
      out_.Line("const long long j1 = j0 + {} < {} ? j0 + {} : {};", kTransposeBlock,
                ExtentName(vector_axis_), kTransposeBlock, ExtentName(vector_axis_));
    }
    RowLoops(0);
    if (IsBlocked()) out_.Close();
    if (Streams()) out_.Line("stream_fence();");
    out_.Close();
    return name;
  }

 private:
  const Value& value(int id) const { return kernel_.values[static_cast<std::size_t>(id)]; }

  DType OperandType(int operand) const {
    const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
    return plan_.buffers[static_cast<std::size_t>(access.buffer)].dtype;
  }

  // Is the value one number for all lanes?
  bool IsScalar(int id) const {
    const Scope scope = value(id).scope;
    return width_ == 1 || scope == Scope::kUniform || (scope == Scope::kRow && !columns_);
  }

  // Is the value computed one by one, within the lanes of another?
  bool InLanes(int id) const {
    return positional_[static_cast<std::size_t>(id)] && !IsScalar(id);
  }

  // Is the value a packet made of lanes?
  bool IsMadeOfLanes(int id) const {
    const Value& v = value(id);
    if (width_ == 1 || InLanes(id)) return false;
    if (v.kind == Value::Kind::kGather) return true;
    return v.kind == Value::Kind::kCast && positional_[static_cast<std::size_t>(v.args[0])];
  }

  void BindLanes() {
    lanes_.kernel = &kernel_;
    lanes_.is_scalar = [this](int id) { return IsScalar(id); };
    lanes_.scalar_text = [this](int id) { return AsScalar(id).text; };
    lanes_.packet_text = [this](int id) { return text_.at(id).text; };
    lanes_.load_text = [this](const Value& v, const std::string& index) {
      if (v.kind == Value::Kind::kStaged)
        return fmt::format("{}[{}]", row_names_[static_cast<std::size_t>(v.index)], index);
      return Speller(options_.target, 1).Load(v.type, Address(v.index, index)).text;
    };
    lanes_.operand_name = [this](int operand) { return operands_[static_cast<std::size_t>(operand)].name; };
    lanes_.stride_name = [this](int operand, int dim) {
      const auto& numbers = signature_.numbers;
      const auto found = std::find(numbers.begin(), numbers.end(),
                                   runtime::Number{runtime::Extent::Static(0), operand, dim});
      return number_names_[static_cast<std::size_t>(found - numbers.begin())];
    };
  }

  void CountUses() {
    uses_.assign(kernel_.values.size(), 0);
    spread_.assign(kernel_.values.size(), false);
    auto use = [&](int id, bool by_packet) {
      ++uses_[static_cast<std::size_t>(id)];
      if (by_packet && IsScalar(id)) spread_[static_cast<std::size_t>(id)] = true;
    };
    for (std::size_t id = 0; id < kernel_.values.size(); ++id)
      for (int arg : kernel_.values[id].args)
        use(arg, !IsScalar(static_cast<int>(id)) && !InLanes(static_cast<int>(id)) &&
                     !IsMadeOfLanes(static_cast<int>(id)));
    for (const Phase& phase : kernel_.phases) {
      for (const auto& reduction : phase.reductions) use(reduction.value, true);
      for (const auto& stage : phase.stages) use(stage.value, true);
      for (const auto& store : phase.stores) use(store.value, true);
    }
    for (const auto& store : kernel_.final_stores) use(store.value, columns_);
  }

  // ---- declarations ---------------------------------------------------------------------------

  void DeclareExtents() {
    for (int axis = 1; axis < kernel_.rank(); ++axis)
      if (!IsBaked(axis)) out_.Line("const long long n{0} = args->extent[{0}];", axis);
  }

  void DeclareOperands() {
    const int rank = kernel_.rank();
    for (std::size_t k = 0; k < signature_.operands.size(); ++k) {
      const auto& access = signature_.operands[k];
      const auto& buffer = plan_.buffers[static_cast<std::size_t>(access.buffer)];
      Operand operand;
      operand.name = names_.Make(buffer.name);
      operand.stride_names.assign(static_cast<std::size_t>(rank), "");
      bool moves_by_row = false;
      for (int axis = 0; axis < rank; ++axis)
        moves_by_row = moves_by_row || (axis < kernel_.signature.row_axes && axis != vector_axis_ &&
                                        Moves(access, axis));
      const std::string base = moves_by_row ? names_.Make(operand.name + "_data") : operand.name;
      operand.base = base;
      out_.Line("{}{}* {} = static_cast<{}{}*>(args->data[{}]);", access.store ? "" : "const ",
                ScalarType(buffer.dtype), base, access.store ? "" : "const ",
                ScalarType(buffer.dtype), k);
      for (int axis = 0; axis < rank; ++axis) {
        if (!Moves(access, axis)) continue;
        const bool unit = axis == vector_axis_ && !options_.variant.strided && IsContiguousByPlan(access);
        if (unit) continue;
        auto& stride = operand.stride_names[static_cast<std::size_t>(axis)];
        stride = names_.Make(fmt::format("{}_s{}", operand.name, axis));
        out_.Line("const long long {} = args->stride[{}];", stride,
                  k * static_cast<std::size_t>(rank) + static_cast<std::size_t>(axis));
      }
      operands_.push_back(std::move(operand));
    }
    std::string offset;
    for (std::size_t slot = 0; slot < signature_.row_buffers.size(); ++slot) {
      const DType type = signature_.row_buffers[slot];
      row_names_.push_back(names_.Make(signature_.row_buffers.size() > 1
                                           ? fmt::format("row{}", slot) : std::string("row")));
      out_.Line("{0}* {1} = reinterpret_cast<{0}*>(static_cast<char*>(args->scratch){2});",
                ScalarType(type), row_names_.back(), offset);
      offset += fmt::format(" + ({} + 15) / 16 * 16 * {}", ExtentName(vector_axis_), SizeOf(type));
    }
  }

  void DeclareNumbers() {
    for (std::size_t k = 0; k < signature_.numbers.size(); ++k) {
      const runtime::Number& number = signature_.numbers[k];
      number_names_.push_back(names_.Make(
          number.operand < 0 ? fmt::format("m{}", k)
                             : fmt::format("{}_s{}", operands_[static_cast<std::size_t>(number.operand)].name,
                                           number.dim)));
      out_.Line("const long long {} = args->extent[{}];", number_names_.back(),
                static_cast<std::size_t>(kernel_.rank()) + k);
    }
  }

  void DeclareUniforms() {
    for (std::size_t id = 0; id < kernel_.values.size(); ++id) {
      const Value& v = kernel_.values[id];
      if (v.scope != Scope::kUniform || uses_[id] == 0) continue;
      if (v.kind == Value::Kind::kConstant) continue;
      if (v.kind == Value::Kind::kNumber) {
        text_[static_cast<int>(id)] = {number_names_[static_cast<std::size_t>(v.index)]};
        continue;
      }
      Expr e;
      if (v.kind == Value::Kind::kScalar)
        e = {fmt::format("args->scalar[{}].{}", v.index, Name(v.type))};
      else
        e = DefineScalar(static_cast<int>(id));
      DeclareScalar(static_cast<int>(id), e);
    }
  }

  // Names a scalar value, and its packet form if packets read it.
  void DeclareScalar(int id, const Expr& e) {
    const Value& v = value(id);
    const std::string name = names_.Make(v.label.empty() ? "t" + std::to_string(id) : v.label);
    out_.Line("const {} {} = {};", ScalarType(v.type), name, e.text);
    text_[id] = {name};
    if (!spread_[static_cast<std::size_t>(id)] || width_ == 1 || v.type == DType::kBool) return;
    const std::string packet = names_.Make(name + "_v");
    out_.Line("const {} {} = {};", speller_->Type(v.type), packet,
              speller_->Fill(v.type, name).text);
    packet_text_[id] = {packet};
  }

  // ---- expressions ----------------------------------------------------------------------------

  Expr AsScalar(int id) const {
    if (value(id).kind == Value::Kind::kConstant) return {Literal(value(id).constant, value(id).type)};
    return text_.at(id);
  }

  Expr AsPacket(int id) const {
    if (value(id).kind == Value::Kind::kConstant)
      return speller_->Fill(value(id).type, Literal(value(id).constant, value(id).type));
    if (IsScalar(id) && width_ > 1)
      if (const auto found = packet_text_.find(id); found != packet_text_.end()) return found->second;
    return text_.at(id);
  }

  Expr DefineScalar(int id) const {
    const Value& v = value(id);
    std::vector<Expr> args;
    for (int arg : v.args) args.push_back(AsScalar(arg));
    if (v.kind == Value::Kind::kCast)
      return SpellScalarCast(value(v.args[0]).type, v.type, args[0]);
    return SpellScalarMap(v.op, OperandTypeOf(v), args);
  }

  // dtype that an operator works in: that of its operands.
  DType OperandTypeOf(const Value& v) const {
    return value(v.args[v.op == graph::Op::select ? 1 : 0]).type;
  }

  Expr DefinePacket(int id) const {
    const Value& v = value(id);
    std::vector<Expr> args;
    std::vector<bool> literal;
    for (int arg : v.args) {
      const bool constant = value(arg).kind == Value::Kind::kConstant && width_ > 1;
      literal.push_back(constant);
      args.push_back(constant ? AsScalar(arg) : AsPacket(arg));
    }
    if (v.kind == Value::Kind::kCast)
      return speller_->Cast(value(v.args[0]).type, v.type, AsPacket(v.args[0]));
    return speller_->Map(v.op, OperandTypeOf(v), args, literal);
  }

  // `pointer + offsets` of an operand at the current point; `index` is the vector index.
  std::string Address(int operand, const std::string& index) const {
    const Operand& o = operands_[static_cast<std::size_t>(operand)];
    const auto& access = signature_.operands[static_cast<std::size_t>(operand)];
    std::string text = o.name;
    for (int axis = kernel_.signature.row_axes; axis < kernel_.rank(); ++axis)
      if (axis != vector_axis_ && AxisDim(access, axis) >= 0)
        text += fmt::format(" + i{} * {}", axis, o.stride_names[static_cast<std::size_t>(axis)]);
    if (AxisDim(access, vector_axis_) < 0 || index.empty()) return text;
    const std::string& stride = VectorStride(operand);
    if (stride.empty()) return text + " + " + index;
    const bool simple = index.find(' ') == std::string::npos;
    return text + " + " + (simple ? index : "(" + index + ")") + " * " + stride;
  }

  const std::string& VectorStride(int operand) const {
    return operands_[static_cast<std::size_t>(operand)].stride_names[static_cast<std::size_t>(vector_axis_)];
  }

  bool MovesAlongVector(int operand) const {
    return AxisDim(signature_.operands[static_cast<std::size_t>(operand)], vector_axis_) >= 0;
  }

  Expr LoadPacket(const Value& v, const std::string& index, const std::string& lanes) const {
    const std::string address = Address(v.index, index);
    if (!MovesAlongVector(v.index)) {
      Speller scalar(options_.target, 1);
      return speller_->Fill(v.type, scalar.Load(v.type, address).text);
    }
    const std::string& stride = VectorStride(v.index);
    if (stride.empty())
      return lanes.empty() ? speller_->Load(v.type, address)
                           : speller_->LoadHead(v.type, address, lanes);
    return lanes.empty() ? speller_->Gather(v.type, address, stride)
                         : speller_->GatherHead(v.type, address, stride, lanes);
  }

  // Opens `const type name = by_lane<type>([&](long long k) {`, whose body is one lane of `value`.
  void DeclareLanes(int id, DType type, const std::string& index, const std::string& lanes,
                    Names* names) {
    const Value& v = value(id);
    const std::string name = names->Make(v.label.empty() ? "t" + std::to_string(id) : v.label);
    const std::string packet = speller_->Type(type);
    const std::string call = lanes.empty() ? fmt::format("by_lane<{}>(", packet)
                                           : fmt::format("by_lane_head<{}>({}, ", packet, lanes);
    out_.Open("const {} {} = {}[&](long long k)", packet, name, call);
    out_.Line("const long long at = {} + k;", index);
    const std::string text = EmitLane(lanes_, id, "at", &out_);
    if (v.type == DType::kBool) out_.Line("return {} ? -1 : 0;", text);
    else out_.Line("return {};", text);
    out_.Close("});");
    text_[id] = {name};
  }

  // A value at computed positions where every value is a scalar.
  Expr DefinePositional(const Value& v, const std::string& index) const {
    if (v.kind == Value::Kind::kIndex) {
      if (v.index != vector_axis_ || index.empty()) return {fmt::format("i{}", v.index)};
      return {index, index.find(' ') == std::string::npos};
    }
    std::vector<std::string> args;
    for (int arg : v.args) {
      const Expr e = AsScalar(arg);
      args.push_back(e.atomic ? e.text : "(" + e.text + ")");
    }
    return {GatherText(lanes_, v, args), !v.guarded};
  }

  // Defines a packet value here: inline if it is short and read once, else by a name.
  void DeclarePacket(int id, const std::string& index, const std::string& lanes,
                     Names* names) {
    if (InLanes(id)) return;
    const Value& v = value(id);
    if (IsMadeOfLanes(id)) {
      DeclareLanes(id, v.type, index, lanes, names);
      return;
    }
    for (int arg : v.args)  // conditions on positions, as masks
      if (InLanes(arg)) DeclareLanes(arg, DType::kInt32, index, lanes, names);
    Expr e;
    switch (v.kind) {
      case Value::Kind::kIndex:
      case Value::Kind::kGather: e = DefinePositional(v, index); break;
      case Value::Kind::kLoad: e = LoadPacket(v, index, lanes); break;
      case Value::Kind::kStaged:
        e = speller_->Load(v.type, fmt::format("{} + {}", row_names_[static_cast<std::size_t>(v.index)], index));
        break;
      default: e = DefinePacket(id);
    }
    const bool once = uses_[static_cast<std::size_t>(id)] == 1;
    if (once && v.label.empty() && e.text.size() <= kInlineLength) {
      text_[id] = e;
      return;
    }
    std::string wanted = v.label;
    if (wanted.empty()) wanted = "t" + std::to_string(id);
    const std::string name = names->Make(wanted);
    out_.Line("const {} {} = {};", speller_->Type(v.type), name, e.text);
    text_[id] = {name};
  }

  // ---- rows -----------------------------------------------------------------------------------

  void RowLoops(int axis) {
    if (axis == kernel_.signature.row_axes) {
      Row();
      return;
    }
    if (axis == vector_axis_) {
      Columns(axis);
      return;
    }
    if (axis == 0) out_.Open("for (long long i0 = begin; i0 < end; ++i0)");
    else out_.Open("for (long long i{0} = 0; i{0} < n{0}; ++i{0})", axis);
    RowPointersIfInnermost(axis);
    RowLoops(axis + 1);
    out_.Close();
  }

  // Operand pointers of a row, once all row axes that move them are known.
  void RowPointersIfInnermost(int axis) {
    const int last = columns_ ? kernel_.signature.row_axes - 2 : kernel_.signature.row_axes - 1;
    if (axis != last) return;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      const Operand& o = operands_[k];
      if (o.base == o.name) continue;
      const auto& access = signature_.operands[k];
      std::string text = o.base;
      for (int row = 0; row <= last; ++row)
        if (Moves(access, row))
          text += fmt::format(" + i{} * {}", row, o.stride_names[static_cast<std::size_t>(row)]);
      out_.Line("{}{}* {} = {};", access.store ? "" : "const ",
                ScalarType(OperandType(static_cast<int>(k))), o.name, text);
    }
  }

  // The vector axis is a row axis: a packet of columns at a time.
  void Columns(int axis) {
    const std::string first = axis == 0 ? "begin" : "0";
    const std::string last = axis == 0 ? "end" : ExtentName(axis);
    const std::string c = fmt::format("i{}", axis);
    out_.Line("long long {} = {};", c, first);
    out_.Open("for (; {0} + {1} <= {2}; {0} += {1})", c, width_, last);
    ColumnBody(c, "");
    out_.Close();
    if (width_ == 1) return;
    out_.Open("if ({} < {})", c, last);
    out_.Line("const long long lanes = {} - {};", last, c);
    ColumnBody(c, "lanes");
    out_.Close();
  }

  void ColumnBody(const std::string& c, const std::string& lanes) {
    Names names = names_;
    for (const Phase& phase : kernel_.phases) {
      for (int id : phase.row_values) DeclarePacket(id, c, lanes, &names);
      for (const auto& reduction : phase.reductions) {
        const std::string name = names.Make(AccumulatorName(reduction));
        text_[reduction.result] = {name};
        out_.Line("{} {} = {};", speller_->Type(value(reduction.result).type), name,
                  speller_->Fill(value(reduction.result).type, Identity(reduction)).text);
      }
      InnerLoops(kernel_.signature.row_axes, kernel_.rank(), [&] {
        Names inner = names;
        ElementBody(phase, c, lanes, &inner);
        for (const auto& reduction : phase.reductions)
          out_.Line("{} = {};", text_[reduction.result].text,
                    Join(reduction, text_[reduction.result], AsPacket(reduction.value)));
      });
    }
    for (int id : kernel_.final_row_values) DeclarePacket(id, c, lanes, &names);
    for (const auto& store : kernel_.final_stores) StorePacket(store, c, lanes);
  }

  void InnerLoops(int axis, int end, const std::function<void()>& body) {
    if (axis == end) {
      body();
      return;
    }
    out_.Open("for (long long i{0} = 0; i{0} < {1}; ++i{0})", axis, ExtentName(axis));
    InnerLoops(axis + 1, end, body);
    out_.Close();
  }

  // ---- row mode -------------------------------------------------------------------------------

  void Row() {
    const Names outer = names_;
    for (const Phase& phase : kernel_.phases) {
      for (int id : phase.row_values) DeclareRowValue(id);
      if (phase.element_values.empty() && phase.stores.empty() && phase.reductions.empty()) continue;
      if (phase.reductions.empty()) ElementLoop(phase);
      else ReductionLoop(phase);
    }
    for (int id : kernel_.final_row_values) DeclareRowValue(id);
    for (const auto& store : kernel_.final_stores) {
      Speller scalar(options_.target, 1);
      out_.Line("{};", scalar.Store(OperandType(store.operand), Address(store.operand, ""),
                                    AsScalar(store.value)));
    }
    names_ = outer;
  }

  void DeclareRowValue(int id) {
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

  std::string VectorBegin() const { return IsBlocked() ? "j0" : "0"; }
  std::string VectorEnd() const { return IsBlocked() ? "j1" : ExtentName(vector_axis_); }

  // True if the vector loop ends with a whole step of this many elements.
  bool DividesExtent(int step) const {
    return IsBaked(vector_axis_) &&
           signature_.axes[static_cast<std::size_t>(vector_axis_)].value % step == 0;
  }

  void ElementLoop(const Phase& phase) {
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
      const bool whole = DividesExtent(width_);
      out_.Open("for (long long {0} = {1}; {0} + {2} <= {3}; {0} += {2})", i, VectorBegin(), width_, last);
      Names names = names_;
      ElementBody(phase, i, "", &names);
      out_.Close();
      if (whole) return;
      out_.Open("if (const long long {0} = {1} - {1} % {2}; {0} < {1})", i, last, width_);
      out_.Line("const long long lanes = {} - {};", last, i);
      names = names_;
      ElementBody(phase, i, "lanes", &names);
      out_.Close();
    });
  }

  // Whole steps of kPartials elements, then one step of which some lanes count.
  void ReductionLoop(const Phase& phase) {
    const int count = kPartials / width_;
    for (const auto& reduction : phase.reductions) {
      const std::string name = names_.Make(AccumulatorName(reduction) + "_part");
      accumulator_[reduction.result] = name;
      const DType type = value(reduction.result).type;
      out_.Line("{} {}[{}];", speller_->Type(type), name, count);
      out_.Line("for (auto& part : {}) part = {};", name,
                speller_->Fill(type, Identity(reduction)).text);
    }
    InnerLoops(kernel_.signature.row_axes, vector_axis_, [&] {
      const std::string i = fmt::format("i{}", vector_axis_);
      const std::string last = VectorEnd();
      out_.Open("for (long long {0} = 0; {0} + {1} <= {2}; {0} += {1})", i, kPartials, last);
      ReductionStep(phase, i, count, "");
      out_.Close();
      if (DividesExtent(kPartials)) return;
      out_.Open("if (const long long {0} = {1} - {1} % {2}; {0} < {1})", i, last, kPartials);
      if (width_ == 1) {
        out_.Open("for (int k = 0; {} + k < {}; ++k)", i, last);
        ReductionBody(phase, fmt::format("{} + k", i), "");
        out_.Close();
      } else {
        ReductionStep(phase, i, count, last);
      }
      out_.Close();
    });
    for (const auto& reduction : phase.reductions) {
      static constexpr const char* kJoins[] = {"Sum", "Maximum", "Minimum", "Product"};
      DeclareScalar(reduction.result,
                    {fmt::format("fold<{}>({})", kJoins[static_cast<int>(reduction.kind)],
                                 accumulator_[reduction.result])});
    }
  }

  void ReductionStep(const Phase& phase, const std::string& i, int count, const std::string& last) {
    out_.Open("for (int k = 0; k < {}; ++k)", count);
    const std::string index = "j";
    if (width_ == 1) out_.Line("const long long {} = {} + k;", index, i);
    else out_.Line("const long long {} = {} + k * {};", index, i, width_);
    if (!last.empty())
      out_.Line("const long long lanes = {0} <= {1} ? 0 : {0} - {1} < {2} ? {0} - {1} : {2};",
                last, index, width_);
    ReductionBody(phase, index, last.empty() ? "" : "lanes");
    out_.Close();
  }

  void ReductionBody(const Phase& phase, const std::string& index, const std::string& lanes) {
    Names names = names_;
    ElementBody(phase, index, lanes, &names);
    for (const auto& reduction : phase.reductions) {
      Expr e = AsPacket(reduction.value);
      if (!lanes.empty()) e = {fmt::format("keep({}, {}, {})", e.text, lanes, Identity(reduction))};
      const std::string part = accumulator_[reduction.result] + "[k]";
      out_.Line("{} = {};", part, Join(reduction, {part}, e));
    }
  }

  // ---- what a phase does at one point ---------------------------------------------------------

  void ElementBody(const Phase& phase, const std::string& index, const std::string& lanes,
                   Names* names) {
    for (int id : phase.element_values) DeclarePacket(id, index, lanes, names);
    for (const auto& stage : phase.stages) {
      const DType type = value(stage.value).type;
      const std::string address =
          fmt::format("{} + {}", row_names_[static_cast<std::size_t>(stage.row_buffer)], index);
      out_.Line("{};", lanes.empty()
                           ? speller_->Store(type, address, AsPacket(stage.value))
                           : speller_->StoreHead(type, address, AsPacket(stage.value), lanes));
    }
    for (const auto& store : phase.stores) StorePacket(store, index, lanes);
  }

  void StorePacket(const plan::Store& store, const std::string& index, const std::string& lanes) {
    const DType type = OperandType(store.operand);
    const std::string address = Address(store.operand, index);
    const Expr e = AsPacket(store.value);
    const std::string& stride = VectorStride(store.operand);
    if (!stride.empty()) {
      out_.Line("{};", width_ == 1      ? speller_->Store(type, address, e)
                       : lanes.empty() ? fmt::format("scatter({}, {}, {})", address, stride, e.text)
                                       : fmt::format("scatter_head({}, {}, {}, {})", address, stride,
                                                     e.text, lanes));
      return;
    }
    if (!lanes.empty()) out_.Line("{};", speller_->StoreHead(type, address, e, lanes));
    else if (Streams()) out_.Line("{};", speller_->Stream(type, address, e));
    else out_.Line("{};", speller_->Store(type, address, e));
  }

  // ---- reductions -----------------------------------------------------------------------------

  std::string AccumulatorName(const plan::Reduction& reduction) const {
    const std::string& label = value(reduction.result).label;
    if (!label.empty()) return label;
    static constexpr const char* kNames[] = {"total", "most", "least", "prod"};
    return kNames[static_cast<int>(reduction.kind)];
  }

  std::string Identity(const plan::Reduction& reduction) const {
    return IdentityLiteral(reduction.kind, value(reduction.result).type);
  }

  std::string Join(const plan::Reduction& reduction, const Expr& a, const Expr& b) const {
    static constexpr graph::Op kOps[] = {graph::Op::plus, graph::Op::maximum, graph::Op::minimum,
                                         graph::Op::mul};
    const graph::Op op = kOps[static_cast<int>(reduction.kind)];
    // Extremes test their first operand for NaN: the newcomer's test waits for nothing.
    const bool swap = op == graph::Op::maximum || op == graph::Op::minimum;
    return speller_
        ->Map(op, value(reduction.result).type, {swap ? b : a, swap ? a : b}, {false, false})
        .text;
  }

  struct Operand {
    std::string name;  // pointer to the current row, or to the data if no row axis moves it
    std::string base;
    std::vector<std::string> stride_names;  // by axis; empty where the operand does not move or by 1
  };

  Writer& out_;
  int width_;
  std::unique_ptr<Speller> speller_;
  Names names_;
  std::vector<Operand> operands_;
  std::vector<std::string> row_names_;
  std::vector<int> uses_;
  std::vector<bool> spread_;
  std::map<int, Expr> text_, packet_text_;
  std::map<int, std::string> accumulator_;
  std::vector<bool> positional_;
  std::vector<std::string> number_names_;
  LaneContext lanes_;
};

}  // namespace

std::string EmitKernel(const plan::Plan& plan, const Kernel& kernel, const SourceOptions& options,
                       Writer* out) {
  return KernelEmitter(plan, kernel, options, out).Run();
}

}  // namespace umbra::codegen

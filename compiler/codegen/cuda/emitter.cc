#include "compiler/codegen/cuda/emitter.h"

#include <algorithm>

#include "compiler/codegen/literal.h"
#include "compiler/codegen/reductions.h"

namespace umbra::codegen {

namespace {

// NVRTC knows no -fwrapv: what may overflow is computed without signs.
class CudaSpeller final : public Speller {
 public:
  CudaSpeller() : Speller(Target::kPlain, 1) {}

  Expr Map(graph::Op op, DType type, const std::vector<Expr>& args, const std::vector<bool>& literal) const override {
    const bool overflows = op == graph::Op::plus || op == graph::Op::minus || op == graph::Op::mul ||
                           op == graph::Op::negative;
    if (!overflows || (type != DType::kInt32 && type != DType::kInt64)) return Speller::Map(op, type, args, literal);
    const bool narrow = type == DType::kInt32;
    std::vector<Expr> without_sign = args;
    without_sign[0] = {fmt::format("{}({})", narrow ? "unsigned" : "static_cast<unsigned long long>", args[0].text)};
    return {fmt::format("{}({})", narrow ? "int" : "i64", Speller::Map(op, type, without_sign, literal).text)};
  }
};

}  // namespace

std::string CudaFunction(const std::string& name, bool several) { return several ? name + "_several" : name; }

CudaEmitter::CudaEmitter(const CudaTask& task, Writer* out)
    : ValueEmitter(task.plan, task.kernel, task.options, out), variant_(task.variant), schedule_(task.schedule) {
  args_ = "args.";
  speller_ = std::make_unique<CudaSpeller>();
  index_type_ = variant_.wide_index ? "i64" : "int";
  for (const char* name : {"row", "first", "step", "walk", "column", "chunk", "left", "u", "part", "inside", "x0",
                           "y0", "parts", "found", "turn", "turns", "here", "launches"})
    names_.Make(name);
}

void CudaEmitter::DeclareArguments(const std::string& name) {
  const std::size_t operands = signature_.operands.size(), rank = signature_.axes.size();
  out_.Open("struct {}_args", name);
  out_.Line("void* data[{}];", operands);
  out_.Line("long long stride[{}];", operands * rank);
  out_.Line("long long extent[{}];", rank + signature_.numbers.size());
  if (!signature_.scalars.empty()) out_.Line("umbra_scalar scalar[{}];", signature_.scalars.size());
  out_.Line("void* scratch;");
  out_.Close("};");
  out_.Blank();
}

void CudaEmitter::OpenKernel(const std::string& name, int threads, bool finish) {
  const std::string function = CudaFunction(name, variant_.several);
  if (!variant_.several) {
    out_.Open("extern \"C\" __global__ void __launch_bounds__({}) {}{}(const {}_args args)", threads, function, finish ? "_finish" : "", name);
    return;
  }
  const std::size_t operands = signature_.operands.size(), rank = signature_.axes.size();
  const std::size_t words = operands * (rank + 1) + rank + signature_.numbers.size() + signature_.scalars.size() + 1;
  out_.Line("struct {}_args : launches_of<{}_args, {}> {{}};", function, name, runtime::CudaMostLaunches(words));
  out_.Blank();
  out_.Open("extern \"C\" __global__ void __launch_bounds__({0}) {1}(const UMBRA_GRID_CONSTANT {1}_args launches)", threads, function);
  out_.Line("const launch_place here = place_in(launches);");
  out_.Line("const {}_args& args = launches.arguments[here.number];", name);
}

bool CudaEmitter::IsUsed(int axis) const {
  for (const auto& access : signature_.operands)
    if (Moves(access, axis)) return true;
  return std::any_of(kernel_.values.begin(), kernel_.values.end(), [axis](const Value& v) {
    return v.kind == Value::Kind::kIndex && v.index == axis;
  });
}

std::vector<int> CudaEmitter::Axes(int begin, int end, int skipped) {
  std::vector<int> axes;
  for (int axis = begin; axis < end; ++axis)
    if (axis != skipped) axes.push_back(axis);
  return axes;
}

std::string CudaEmitter::Points(const std::vector<int>& axes) const {
  std::string text;
  for (int axis : axes) text += (text.empty() ? "" : " * ") + ExtentName(axis);
  return text.empty() ? "1" : text;
}

bool CudaEmitter::HasRows(const std::vector<int>& axes) const {
  return std::any_of(axes.begin(), axes.end(), [this](int axis) {
    const auto& extent = signature_.axes[static_cast<std::size_t>(axis)];
    return !extent.is_static() || extent.value != 1;
  });
}

void CudaEmitter::DeclareParameters(const std::vector<int>& axes) {
  for (int axis : axes)
    if (!IsBaked(axis)) out_.Line("const {1} n{0} = args.extent[{0}];", axis, index_type_);
  DeclareOperands();
  DeclareNumbers();
  DeclareUniforms();
}

void CudaEmitter::DeclarePositions(const std::string& linear, const std::vector<int>& axes) {
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (!IsUsed(axes[k])) continue;
    std::string text = linear;
    const std::vector<int> after(axes.begin() + static_cast<std::ptrdiff_t>(k) + 1, axes.end());
    if (after.size() == 1) text += " / " + Points(after);
    else if (!after.empty()) text += " / (" + Points(after) + ")";
    if (k > 0) text += " % " + ExtentName(axes[k]);
    out_.Line("const {} i{} = {};", index_type_, axes[k], text);
  }
}

void CudaEmitter::OpenRows(const std::vector<int>& axes, const std::string& first, const std::string& step) {
  if (HasRows(axes)) {
    out_.Open("for ({} row = {}; row < {}; row += {})", index_type_, first, Points(axes), step);
    DeclarePositions("row", axes);
    return;
  }
  for (int axis : axes)
    if (IsUsed(axis)) out_.Line("const {} i{} = 0;", index_type_, axis);
}

void CudaEmitter::CloseRows(const std::vector<int>& axes) {
  if (HasRows(axes)) out_.Close();
}

void CudaEmitter::DeclareFound(const std::string& parts, const std::string& points) {
  out_.Line("const i64 parts = {};", parts);
  out_.Line("const i64 found = {};", Padded("parts * " + (points.find(' ') == std::string::npos ? points : "(" + points + ")")));
  std::size_t size = 0;
  for (const auto& reduction : kernel_.phases[0].reductions) {
    const DType type = value(reduction.result).type;
    const std::string name = names_.Make(AccumulatorName(kernel_, reduction) + "_found");
    found_[reduction.result] = name;
    out_.Line("{0}* {1} = reinterpret_cast<{0}*>(static_cast<char*>(args.scratch) + 16{2});", ScalarType(type), name,
              size == 0 ? "" : fmt::format(" + found * {}", size));
    size += SizeOf(type);
  }
}

void CudaEmitter::DeclareRowPointers() {
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    const Operand& o = operands_[k];
    if (o.base == o.name) continue;
    const auto& access = signature_.operands[k];
    std::string text = o.base;
    for (int axis = 0; axis < signature_.row_axes; ++axis)
      if (axis != vector_axis_ && Moves(access, axis))
        text += fmt::format(" + i{} * {}", axis, o.stride_names[static_cast<std::size_t>(axis)]);
    out_.Line("{}{}* {} = {};", access.store ? "" : "const ", ElementType(OperandType(static_cast<int>(k))), o.name, text);
  }
}

void CudaEmitter::DeclareRowValues(const std::vector<int>& ids) {
  const std::string index = columns_ ? fmt::format("i{}", vector_axis_) : "";
  for (int id : ids) {
    const Value& v = value(id);
    if (v.kind == Value::Kind::kIndex) text_[id] = DefinePositional(v, index);
    else if (v.kind == Value::Kind::kGather) DeclareScalar(id, DefinePositional(v, index));
    else if (v.kind == Value::Kind::kLoad) DeclareScalar(id, LoadPacket(v, index, ""));
    else DeclareScalar(id, DefineScalar(id));
  }
}

std::vector<int> CudaEmitter::LoadedOperands(const Phase& phase) const {
  std::vector<int> operands;
  for (int id : phase.element_values) {
    const Value& v = value(id);
    if (v.kind != Value::Kind::kLoad || !MovesAlongVector(v.index)) continue;
    if (std::find(operands.begin(), operands.end(), v.index) == operands.end()) operands.push_back(v.index);
  }
  return operands;
}

std::vector<int> CudaEmitter::StoredOperands(const Phase& phase) {
  std::vector<int> operands;
  for (const auto& store : phase.stores) operands.push_back(store.operand);
  return operands;
}

bool CudaEmitter::IsDear(const Phase& phase) const {
  double cost = 0;  // in additions
  for (const int id : phase.element_values)
    if (value(id).kind == Value::Kind::kMap) cost += graph::Info(value(id).op).cost;
  return cost >= 8;
}

void CudaEmitter::OpenGuard(const Phase& phase, Names* names) {
  if (phase.guard < 0) return;
  for (int id : phase.guard_values) DeclarePacket(id, "", "", names);
  out_.Open("if ({})", AsScalar(phase.guard).text);
}

void CudaEmitter::CloseGuard(const Phase& phase) {
  if (phase.guard >= 0) out_.Close();
}

void CudaEmitter::DeclareElements(const Phase& phase, const std::string& index, Names* names) {
  const auto& known = phase.guard_values;
  for (int id : phase.element_values)
    if (std::find(known.begin(), known.end(), id) == known.end()) DeclarePacket(id, index, "", names);
}

void CudaEmitter::StoreElements(const Phase& phase, const std::string& index) {
  for (const auto& stage : phase.stages)
    out_.Line("{};", speller_->Store(value(stage.value).type,
                                     row_names_[static_cast<std::size_t>(stage.row_buffer)] + " + " + index, AsPacket(stage.value)));
  for (const auto& store : phase.stores) StoreScalar(store, index);
}

void CudaEmitter::StoreScalar(const plan::Store& store, const std::string& index) {
  out_.Line("{};", speller_->Store(OperandType(store.operand), Address(store.operand, index), AsPacket(store.value)));
}

void CudaEmitter::StoreTurns(const Phase& phase, int turns, int lanes, const std::string& index, const std::string& condition,
                             const std::function<void()>& declare) {
  const Names outer = names_;
  std::vector<std::string> results, addresses;
  for (const auto& store : phase.stores) {
    const std::string& name = operands_[static_cast<std::size_t>(store.operand)].name;
    results.push_back(names_.Make(name + "_turn"));
    addresses.push_back(names_.Make(name + "_at"));
    const std::string element = ElementType(OperandType(store.operand));
    out_.Line("{} {}[{}];", lanes == 1 ? ScalarType(value(store.value).type) : fmt::format("pack<{}, {}>", element, lanes), results.back(), turns);
    out_.Line("{}* {}[{}];", element, addresses.back(), turns);
  }
  OpenTurns(turns);
  declare();
  for (std::size_t k = 0; k < results.size(); ++k)
    out_.Line("{}[u]{} = {};", results[k], lanes > 1 ? "[k]" : "", AsPacket(phase.stores[k].value).text);
  if (lanes > 1) out_.Close();
  for (std::size_t k = 0; k < results.size(); ++k) out_.Line("{}[u] = {};", addresses[k], Address(phase.stores[k].operand, index));
  out_.Close();
  OpenTurns(turns);
  if (!condition.empty()) out_.Open("if ({})", condition);
  for (std::size_t k = 0; k < results.size(); ++k) {
    const std::string at = addresses[k] + "[u]", result = results[k] + "[u]";
    out_.Line("{};", lanes > 1 ? fmt::format("store_pack({}, {})", at, result)
                               : speller_->Store(OperandType(phase.stores[k].operand), at, {result}));
  }
  if (!condition.empty()) out_.Close();
  out_.Close();
  names_ = outer;
}

void CudaEmitter::OpenTurns(int turns) {
  out_.Line("#pragma unroll");
  out_.Open("for (int u = 0; u < {}; ++u)", turns);
}

}  // namespace umbra::codegen

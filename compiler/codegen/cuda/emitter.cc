#include "compiler/codegen/cuda/emitter.h"

#include <algorithm>

#include "compiler/codegen/literal.h"
#include "compiler/codegen/reductions.h"
#include "compiler/plan/signs.h"
#include "runtime/cuda_geometry.h"

namespace umbra::codegen {

namespace {

// NVRTC knows no -fwrapv: what may overflow is computed without signs.
class CudaSpeller final : public Speller {
 public:
  explicit CudaSpeller(bool fast) : Speller(Target::kPlain, 1), fast_(fast) {}

  Expr Map(graph::Op op, DType type, const std::vector<Expr>& args, const std::vector<bool>& literal) const override {
    if (fast_ && type == DType::kFloat32 && (op == graph::Op::exp || op == graph::Op::sqrt || op == graph::Op::div)) {
      std::string operands = args[0].text;
      if (op == graph::Op::div) operands += ", " + args[1].text;
      return {fmt::format("fast_{}({})", graph::Info(op).name, operands)};
    }
    const bool overflows =
        op == graph::Op::plus || op == graph::Op::minus || op == graph::Op::mul || op == graph::Op::negative;
    if (!overflows || (type != DType::kInt32 && type != DType::kInt64)) return Speller::Map(op, type, args, literal);
    const bool narrow = type == DType::kInt32;
    std::vector<Expr> without_sign = args;
    for (Expr& arg : without_sign)  // a literal below 0 would be a conversion that compilers warn of
      if (&arg == &without_sign[0] || arg.text.rfind("(-", 0) == 0)
        arg = {fmt::format("{}({})", narrow ? "unsigned" : "static_cast<unsigned long long>", arg.text)};
    return {fmt::format("{}({})", narrow ? "int" : "i64", Speller::Map(op, type, without_sign, literal).text)};
  }

 private:
  bool fast_;
};

}  // namespace

std::string CudaFunction(const std::string& name, bool several) { return several ? name + "_several" : name; }

CudaEmitter::CudaEmitter(const CudaTask& task, Writer* out)
    : ValueEmitter(task.plan, task.kernel, task.options, out),
      variant_(task.variant),
      schedule_(task.schedule),
      rows_at_once_(static_cast<int>(runtime::RowsAtOnce(signature_, schedule_, variant_))),
      result_lanes_(variant_.vector && signature_.positional ? schedule_.lanes : 1),
      wide_(task.wide),
      became_(task.became) {
  args_ = "args.";
  speller_ = std::make_unique<CudaSpeller>(task.options.fast);
  index_type_ = variant_.wide_index ? "i64" : "int";
  if (variant_.finishes()) moments_ = plan::FindMoments(kernel_);
  for (const char* name : {"row",     "first", "step", "walk",  "column", "chunk",    "left",  "u",      "part",
                           "inside",  "x0",    "y0",   "parts", "found",  "rows",     "share", "line",   "chunks",
                           "by_line", "place", "turn", "turns", "here",   "launches", "whole", "choices"})
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
    out_.Open("extern \"C\" __global__ void __launch_bounds__({}) {}{}(const {}_args args)", threads, function,
              finish ? "_finish" : "", name);
    return;
  }
  const std::size_t operands = signature_.operands.size(), rank = signature_.axes.size();
  const std::size_t words = operands * (rank + 1) + rank + signature_.numbers.size() + signature_.scalars.size() + 1;
  out_.Line("struct {}_args : launches_of<{}_args, {}> {{}};", function, name,
            runtime::CudaMostLaunches(words, variant_.many));
  out_.Blank();
  out_.Open("extern \"C\" __global__ void __launch_bounds__({0}) {1}(const UMBRA_GRID_CONSTANT {1}_args launches)",
            threads, function);
  out_.Line("const launch_place here = place_in(launches);");
  out_.Line("const {}_args& args = launches.arguments[here.number];", name);
}

bool CudaEmitter::IsUsed(int axis) const {
  for (const auto& access : signature_.operands)
    if (Moves(access, axis)) return true;
  return std::any_of(kernel_.values.begin(), kernel_.values.end(),
                     [axis](const Value& v) { return v.kind == Value::Kind::kIndex && v.index == axis; });
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
  if (!variant_.wide_index) DeclareQuotients();
}

void CudaEmitter::DeclareQuotients() {
  std::set<int> counts;  // values that are positions and no less than 0
  std::map<int, std::string> names;  // of divisors, by value
  for (int id = 0; id < static_cast<int>(kernel_.values.size()); ++id) {
    const Value& v = value(id);
    if (v.kind == Value::Kind::kIndex) counts.insert(id);
    if (v.kind != Value::Kind::kMap || v.op != graph::Op::div || v.type != DType::kInt32 ||
        counts.count(v.args[0]) == 0)
      continue;
    counts.insert(id);
    const int by = v.args[1];
    if (uses_[static_cast<std::size_t>(id)] == 0 || value(by).scope != Scope::kUniform ||
        value(by).kind == Value::Kind::kConstant)
      continue;
    std::string& name = names[by];
    if (name.empty()) {
      name = names_.Make("by_" + AsScalar(by).text);
      out_.Line("const divisor {} = {};", name, AsScalar(by).text);
    }
    quotients_[id] = name;
  }
}

Expr CudaEmitter::SpellNumber(int id, const std::vector<Expr>& args) const {
  const auto found = quotients_.find(id);
  if (found != quotients_.end()) return {fmt::format("divided({}, {}).quotient", args[0].text, found->second)};
  const Value& v = value(id);
  if (OperandTypeOf(v) == DType::kInt64)
    return speller_->Map(v.op, DType::kInt64, args, {});  // data, too, which may overflow
  // In fast arithmetic x less its maximum may be above 0, as products are not rounded.
  const bool is_exp =
      v.op == graph::Op::exp && !options_.fast && (v.type == DType::kFloat32 || v.type == DType::kFloat64);
  if (is_exp && plan::IsAtMostZero(kernel_, v.args[0])) return {fmt::format("exp_at_most_0({})", args[0].text)};
  return ValueEmitter::SpellNumber(id, args);
}

void CudaEmitter::DeclareDivisors(const std::vector<int>& axes) {
  if (variant_.wide_index) return;
  for (std::size_t k = 1; k < axes.size(); ++k) {
    if (IsBaked(axes[k]) || divisors_.count(axes[k]) > 0) continue;
    divisors_[axes[k]] = names_.Make("by_" + ExtentName(axes[k]));
    out_.Line("const divisor {} = {};", divisors_[axes[k]], ExtentName(axes[k]));
  }
}

// From the last axis to the first, each of which takes the rest.
void CudaEmitter::DeclarePositions(const std::string& linear, const std::vector<int>& axes) {
  std::string left = linear;
  for (std::size_t k = axes.size(); k-- > 0;) {
    const int axis = axes[k];
    if (std::none_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                     [this](int a) { return IsUsed(a); }))
      return;
    const std::string extent = ExtentName(axis);
    if (k == 0) {
      out_.Line("const {} i{} = {};", index_type_, axis, left);
    } else if (const auto by = divisors_.find(axis); by != divisors_.end()) {
      const std::string parts = fmt::format("{}_{}", linear, extent);
      out_.Line("const divided {}({}, {});", parts, left, by->second);
      if (IsUsed(axis)) out_.Line("const {} i{} = {}.rest;", index_type_, axis, parts);
      left = parts + ".quotient";
    } else {
      if (IsUsed(axis)) out_.Line("const {} i{} = {} % {};", index_type_, axis, left, extent);
      left += " / " + extent;
    }
  }
}

void CudaEmitter::OpenRows(const std::vector<int>& axes, const std::string& first, const std::string& step) {
  if (HasRows(axes)) {
    DeclareDivisors(axes);
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

void CudaEmitter::GoThroughRows(const std::vector<int>& axes, const std::function<void()>& several,
                                const std::function<void()>& one) {
  if (!HasRows(axes)) {
    OpenRows(axes, "", "");
    return one();
  }
  DeclareDivisors(axes);
  out_.Line("const {} rows = {};", index_type_, Points(axes));
  out_.Line("const {} step = blockDim.y;", index_type_);
  out_.Line("const {0} share = (rows - 1) / {0}({1} * step) + 1;", index_type_, Grid("y"));
  out_.Line("const {} end = minimum(rows, ({} + 1) * share * step);", index_type_, Index(Block("y")));
  out_.Line("{} row = {} * share * step + threadIdx.y;", index_type_, Index(Block("y")));
  if (rows_at_once_ > 1) {
    out_.Open("for (; row + {}step < end; row += {} * step)",
              rows_at_once_ == 2 ? "" : fmt::format("{} * ", rows_at_once_ - 1), rows_at_once_);
    several();
    out_.Close();
  }
  out_.Line("#pragma unroll 1");
  out_.Open("for (; row < end; row += step)");
  DeclarePositions("row", axes);
  one();
  out_.Close();
}

void CudaEmitter::DeclareFound(const std::string& parts, const std::string& points) {
  out_.Line("const i64 parts = {};", parts);
  out_.Line("const i64 found = {};",
            Padded("parts * " + (points.find(' ') == std::string::npos ? points : "(" + points + ")")));
  std::size_t size = 0;
  for (const auto& reduction : SharedPhase().reductions) {
    const std::string name = names_.Make(AccumulatorName(kernel_, reduction) + "_found");
    found_[reduction.result] = name;
    out_.Line("{0}* {1} = reinterpret_cast<{0}*>(static_cast<char*>(args.scratch) + 16{2});", PartType(reduction), name,
              size == 0 ? "" : fmt::format(" + found * {}", size));
    size += SizeOf(value(reduction.result).type) * (IsOfMoments(reduction) ? 3 : 1);
  }
}

Phase CudaEmitter::SharedPhase() const {
  Phase phase = kernel_.phases[0];
  if (moments_) {
    phase.reductions.push_back(kernel_.phases[1].reductions[0]);
    phase.reductions.back().value = moments_->value;
  }
  return phase;
}

std::string CudaEmitter::PartType(const plan::Reduction& reduction) const {
  const std::string type = ScalarType(value(reduction.result).type);
  return IsOfMoments(reduction) ? "moments<" + type + ">" : type;
}

std::string CudaEmitter::PartJoiner(const plan::Reduction& reduction) const {
  return IsOfMoments(reduction) ? "Moments" : Joiner(reduction);
}

std::string CudaEmitter::DeclarePart(const plan::Reduction& reduction, int lanes) {
  const std::string name = names_.Make(AccumulatorName(kernel_, reduction) + "_part"),
                    type = ScalarType(value(reduction.result).type);
  if (IsOfMoments(reduction)) {
    out_.Line("away_from_first<{}, {}> {} = {{}};", type, lanes, name);
  } else if (lanes == 1) {
    out_.Line("{} {} = {};", type, name, Identity(kernel_, reduction));
  } else {
    out_.Line("{} {}[{}];", type, name, lanes);
    out_.Line("for (auto& part : {}) part = {};", name, Identity(kernel_, reduction));
  }
  return accumulator_[reduction.result] = name;
}

std::string CudaEmitter::PartOf(const plan::Reduction& reduction, int lanes) const {
  const std::string& name = accumulator_.at(reduction.result);
  return IsOfMoments(reduction) ? name + ".all()"
         : lanes == 1           ? name
                                : fmt::format("fold<{}>({})", Joiner(reduction), name);
}

void CudaEmitter::JoinFound(const plan::Reduction& reduction, const std::string& loop, const std::string& index,
                            const std::string& across) {
  const std::string part = names_.Make(AccumulatorName(kernel_, reduction) + "_part"),
                    found = fmt::format("{}[{}]", found_[reduction.result], index);
  const bool moments = IsOfMoments(reduction);
  out_.Line("{} {} = {};", PartType(reduction), part, moments ? "{}" : Identity(kernel_, reduction));
  out_.Line("{} {} = {};", loop, part,
            moments ? fmt::format("Moments::join({}, {})", part, found) : Joined(reduction, {part}, {found}));
  const std::string all = across.empty() ? part : fmt::format("{}<{}>({})", across, PartJoiner(reduction), part);
  if (moments) DeclareRowValues(kernel_.phases[1].row_values);
  DeclareScalar(reduction.result, {moments ? fmt::format("{}.around({})", all, AsScalar(moments_->center).text) : all});
}

void CudaEmitter::DeclareResult(const plan::Reduction& reduction, const std::string& joined) {
  if (!IsOfMoments(reduction)) return DeclareScalar(reduction.result, {joined});
  text_[reduction.result] = {names_.Make(AccumulatorName(kernel_, reduction) + "_moments")};
  out_.Line("const {} {} = {};", PartType(reduction), text_[reduction.result].text, joined);
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
    out_.Line("{}{}* {} = {};", access.store ? "" : "const ", ElementType(OperandType(static_cast<int>(k))), o.name,
              text);
  }
}

void CudaEmitter::DeclareRowValues(const std::vector<int>& ids) {
  const std::string index = columns_ ? fmt::format("i{}", vector_axis_) : "";
  for (int id : ids) {
    if (!IsReached(id)) continue;
    const Value& v = value(id);
    if (v.kind == Value::Kind::kIndex) text_[id] = DefinePositional(v, index);
    else if (const auto found = gathers_at_hand_.find(id); found != gathers_at_hand_.end())
      DeclareScalar(id, {found->second});
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
                                     row_names_[static_cast<std::size_t>(stage.row_buffer)] + " + " + index,
                                     AsPacket(stage.value)));
  for (const auto& store : phase.stores) StoreScalar(store, index);
}

void CudaEmitter::StoreScalar(const plan::Store& store, const std::string& index) {
  out_.Line("{};", speller_->Store(OperandType(store.operand), Address(store.operand, index), AsPacket(store.value)));
}

void CudaEmitter::StoreTurns(const std::vector<plan::Store>& stores, int turns, int lanes, const std::string& index,
                             const std::string& condition, const std::function<void()>& declare) {
  const Names outer = names_;
  std::vector<std::string> results, addresses;
  for (const auto& store : stores) {
    const std::string& name = operands_[static_cast<std::size_t>(store.operand)].name;
    results.push_back(names_.Make(name + "_turn"));
    addresses.push_back(names_.Make(name + "_at"));
    const std::string element = ElementType(OperandType(store.operand));
    out_.Line("{} {}[{}];",
              lanes == 1 ? ScalarType(value(store.value).type) : fmt::format("pack<{}, {}>", element, lanes),
              results.back(), turns);
    out_.Line("{}* {}[{}];", element, addresses.back(), turns);
  }
  OpenTurns(turns);
  declare();
  for (std::size_t k = 0; k < results.size(); ++k)
    out_.Line("{}[u]{} = {};", results[k], lanes > 1 ? "[k]" : "", AsPacket(stores[k].value).text);
  if (lanes > 1) out_.Close();
  for (std::size_t k = 0; k < results.size(); ++k)
    out_.Line("{}[u] = {};", addresses[k], Address(stores[k].operand, index));
  out_.Close();
  OpenTurns(turns);
  if (!condition.empty()) out_.Open("if ({})", condition);
  for (std::size_t k = 0; k < results.size(); ++k) {
    const std::string at = addresses[k] + "[u]", result = results[k] + "[u]";
    out_.Line("{};", lanes > 1 ? fmt::format("store_pack({}, {})", at, result)
                               : speller_->Store(OperandType(stores[k].operand), at, {result}));
  }
  if (!condition.empty()) out_.Close();
  out_.Close();
  names_ = outer;
}

std::string CudaEmitter::Joined(const plan::Reduction& reduction, const Expr& total, const Expr& element) const {
  const graph::Op op = JoinOp(reduction);
  const bool extreme = op == graph::Op::maximum || op == graph::Op::minimum;
  if (extreme && value(reduction.result).type == DType::kFloat32)
    return fmt::format("{}::join({}, {})", Joiner(reduction), total.text, element.text);
  return Join(*speller_, kernel_, reduction, total, element);
}

void CudaEmitter::OpenResultLanes() {
  out_.Line("#pragma unroll");
  out_.Open("for (int k = 0; k < {}; ++k)", result_lanes_);
  const auto reads_position = [this](int id) {
    const Value& v = value(id);
    return v.kind == Value::Kind::kLoad ? MovesAlongVector(v.index) && at_hand_.count(v.index) == 0
                                        : v.kind == Value::Kind::kIndex && v.index == vector_axis_;
  };
  if (!reached_ || std::any_of(reached_->begin(), reached_->end(), reads_position))
    out_.Line("const {} i{} = column + k;", index_type_, vector_axis_);
}

void CudaEmitter::OpenTurns(int turns) {
  out_.Line("#pragma unroll");
  out_.Open("for (int u = 0; u < {}; ++u)", turns);
}

}  // namespace umbra::codegen

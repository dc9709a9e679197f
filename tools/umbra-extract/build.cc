// Objects of the expression API as graph nodes, by class and operands, as umbra/bridge.h has it; and the
// memory that they read and write.
#include "compiler/graph/index_map.h"
#include "compiler/graph/op.h"
#include "tools/umbra-extract/interpreter.h"

namespace umbra::extract {

using graph::Op;
using graph::Operand;

namespace {

clang::QualType TypeArg(const Exp& exp, unsigned k) { return exp.type->getTemplateArgs()[k].getAsType(); }
const clang::CXXRecordDecl* ClassArg(const Exp& exp, unsigned k) { return TypeArg(exp, k)->getAsCXXRecordDecl(); }
std::int64_t IntArg(const Exp& exp, unsigned k) { return exp.type->getTemplateArgs()[k].getAsIntegral().getExtValue(); }

// A map that can also be assigned to.
bool IsTarget(const Exp& exp) { return exp.type->getName().ends_with("Target"); }

// The text literal in `static constexpr std::string_view name = "..."` of a class.
std::optional<std::string> TextMember(const clang::CXXRecordDecl* record, llvm::StringRef name) {
  const auto find = [](const auto& self, const clang::Stmt* s) -> const clang::StringLiteral* {
    if (s == nullptr) return nullptr;
    if (const auto* text = llvm::dyn_cast<clang::StringLiteral>(s)) return text;
    for (const clang::Stmt* child : s->children())
      if (const auto* text = self(self, child)) return text;
    return nullptr;
  };
  for (const clang::Decl* decl : record->decls())
    if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(decl); variable != nullptr && variable->getName() == name)
      if (const auto* text = find(find, variable->getInit())) return text->getString().str();
  return std::nullopt;
}

}  // namespace

int Interpreter::ReadMemory(Memory* memory) {
  memory->last_use = ++now_;
  if (memory->node >= 0) return memory->node;
  if (memory->parameter < 0)
    throw Unsupported("'" + memory->name + "' is read before it is written", "give it its elements first");
  memory->read = true;
  return memory->node = graph_.Input(memory->name, memory->dtype, memory->shape);
}

int Interpreter::Read(const Tensor& tensor) {
  int node = ReadMemory(tensor.memory.get());
  for (const Tensor::Rows& rows : tensor.part) {
    node = composer_.IndexMap("slice", {Operand::Node(node)}, {0, rows.begin, rows.end}).node;
    // The product of one element is that element, to the bit.
    if (rows.element) node = graph_.Reduce(graph::Reducer::product, node, {0}, false);
  }
  return node;
}

index_t Interpreter::KnownNumber(const Value& value, const std::string& what) const {
  const auto* number = std::get_if<Number>(&value);
  if (number != nullptr && number->kind == Number::Kind::kInteger) return number->integer;
  throw Unsupported(what + " is not known when the kernel is generated",
                    "use a literal, a constexpr or a template argument");
}

// A number that is known, or will be at the call: an extent, a number of the call, or + - * / of them.
Dimension Interpreter::SizeNumber(const Value& value, const std::string& what) {
  if (const auto* number = std::get_if<Number>(&value)) {
    if (number->kind == Number::Kind::kInteger) return Dimension(number->integer);
    if (number->kind == Number::Kind::kExtent) return graph_.Known(number->extent);
    if (number->kind == Number::Kind::kNode)
      if (const auto extent = graph_.DimensionOf(number->node, what)) return *extent;
  }
  throw Unsupported(what + " follows neither from extents nor from whole numbers of the call",
                    "compute it by + - * / from extents such as x.size(0), parameters and literals");
}

std::optional<PartialShape> Interpreter::ShapeOf(const Value& shape) {
  const auto* aggregate = std::get_if<Aggregate>(&shape);
  if (aggregate == nullptr) return std::nullopt;
  std::vector<Dimension> dims;
  for (const Cell& cell : aggregate->elements) dims.push_back(SizeNumber(cell->value, "an extent of this shape"));
  return PartialShape(std::move(dims));
}

Value Interpreter::ShapeValue(const PartialShape& shape) const {
  Aggregate aggregate;
  for (const Dimension& dim : shape) aggregate.elements.push_back(MakeCell(numbers_.Extent(graph_.Known(dim))));
  return aggregate;
}

PartialShape Interpreter::Shape(const Value& value) {
  if (const auto* exp = std::get_if<Exp>(&value); exp != nullptr && IsTarget(*exp)) return ShapeOfTarget(*exp);
  const auto* tensor = std::get_if<Tensor>(&value);
  if (tensor == nullptr)
    return graph_.node(composer_.Resolve(Build(value), "an operand whose shape is asked for")).shape;
  PartialShape shape = tensor->memory->shape;
  for (const Tensor::Rows& rows : tensor->part) {
    std::vector<Dimension> dims(shape.begin(), shape.end());
    dims[0] = LengthOf({0, rows.begin, rows.end}, dims[0], "rows of '" + tensor->memory->name + "'");
    if (rows.element) dims.erase(dims.begin());
    shape = PartialShape(std::move(dims));
  }
  return shape;
}

Operand Interpreter::Build(const Value& value) {
  CountStep();
  if (const auto* number = std::get_if<Number>(&value))
    return Operand::Node(numbers_.NodeOf(numbers_.Convert(*number, numbers_.ComputeOf(number->type))));
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    const Operand elements = Operand::Node(Read(*tensor));
    return tensor->memory->dtype == DType::kBool ? composer_.Cast(elements, DType::kInt32) : elements;
  }
  const auto* found = std::get_if<Exp>(&value);
  if (found == nullptr) throw Unsupported("a tensor, an expression or a number is expected here", kThereAre);
  const Exp& exp = *found;
  const llvm::StringRef name = exp.type->getName();
  const auto operand = [&](std::size_t k) { return Build(exp.args[k]->value); };
  if (name == "ScalarExp")
    return Build(numbers_.Convert(std::get<Number>(exp.args[0]->value), numbers_.ComputeOf(TypeArg(exp, 0))));
  if (name == "TypecastExp") {
    const DType to = numbers_.TypeOf(TypeArg(exp, 0));
    const Operand cast = composer_.Cast(operand(0), to);
    return to == DType::kBool ? composer_.Cast(cast, DType::kInt32) : cast;
  }
  if (name == "TransposeExp") return composer_.Transpose(operand(0), {});
  if (name == "UnaryMapExp") return BuildMap(exp, ClassArg(exp, 0), TypeArg(exp, 2));
  if (name == "BinaryMapExp") return BuildMap(exp, ClassArg(exp, 0), TypeArg(exp, 3));
  if (name == "TernaryMapExp") return BuildMap(exp, ClassArg(exp, 0), TypeArg(exp, 4));
  if (name == "DotExp") {
    const Number& scale = std::get<Number>(exp.args[2]->value);
    const double known = scale.kind == Number::Kind::kReal ? scale.real : static_cast<double>(scale.integer);
    const Operand a = operand(0), b = operand(1);
    const Operand product = composer_.Dot(a, b, IntArg(exp, 2) != 0, IntArg(exp, 3) != 0, scale.known() ? known : 1);
    if (scale.known()) return product;
    return composer_.Map(Op::mul, {product, Build(scale)});
  }
  if (name == "AxisMapExp") return BuildAxisMap(exp);
  if (name == "IndexMapExp") return BuildIndexMap(exp);
  if (IsTarget(exp)) return BuildTarget(exp);
  throw Unsupported("'" + name.str() + "' has no counterpart in a kernel",
                    "kernels have the expressions of umbra/tensor.h; call this outside");
}

Operand Interpreter::BuildMap(const Exp& exp, const clang::CXXRecordDecl* op, clang::QualType element) {
  std::vector<Operand> operands;
  for (const Cell& arg : exp.args) operands.push_back(Build(arg->value));
  return Apply(op, operands, numbers_.ComputeOf(element));
}

Operand Interpreter::Apply(const clang::CXXRecordDecl* op, const std::vector<Operand>& operands,
                           clang::QualType element) {
  if (const auto name = TextMember(op, "kName")) {
    const auto args = TextMember(op, "kArgs"), text = TextMember(op, "kText");
    return text ? composer_.ApplyNumeric(graph::Composite{*name, *args, *text, ""}, operands)
                : composer_.ApplyNumeric(*name, operands);
  }
  std::vector<const clang::OpaqueValueExpr*> places;
  const clang::Expr* call = MapCall(op, std::vector<clang::QualType>(operands.size(), element), &places);
  const DType dtype = numbers_.TypeOf(element);
  const auto outer = opaque_;
  // A broadcast whose shape is open yet stays open around the operator.
  const Operand* pending = nullptr;
  bool shaped = false;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (operands[k].kind == Operand::Kind::kPending) pending = &operands[k];
    else shaped = shaped || graph_.node(operands[k].node).shape.size() > 0;
    opaque_[places[k]] = MakeCell(numbers_.Node(graph_.Cast(operands[k].node, dtype), element));
  }
  if (pending != nullptr && shaped)
    throw Unsupported("the shape of a broadcast inside this operator is not known",
                      "broadcast to the shape of a tensor: broadcast<1>(bias, x.shape_)");
  const Number result = numbers_.Convert(EvalNumber(call), element);
  opaque_ = outer;
  const int node = numbers_.NodeOf(result);
  return pending != nullptr ? Operand::Pending(node, pending->dims) : Operand::Node(node);
}

// AxisMapExp(source, axis), or (source, axis, shape)
Operand Interpreter::BuildAxisMap(const Exp& exp) {
  const index_map::AxisMap map = index_map::FindAxisMap(ClassArg(exp, 0)->getName());
  if (map == nullptr)
    throw Unsupported("'" + ClassArg(exp, 0)->getQualifiedNameAsString() + "' is no axis map of Umbra's",
                      "write it with broadcast, reduce_with_axis or .T()");
  const auto axis = static_cast<int>(KnownNumber(exp.args[1]->value, "the axis of the reduction"));
  std::optional<std::string> text = "";
  if (const auto* reducer = ClassArg(exp, 2)) {
    text = TextMember(reducer, "kName");
    Require(text.has_value(), "reducer '", reducer->getQualifiedNameAsString(), "' is none of umbra::red");
  }
  const Operand made = composer_.MapAxes(map, axis, Build(exp.args[0]->value), static_cast<int>(IntArg(exp, 5)), *text);
  if (text == "argmax" || text == "argmin")
    return composer_.Cast(made, numbers_.TypeOf(numbers_.ComputeOf(TypeArg(exp, 4))));
  const auto shape = exp.args.size() > 2 ? ShapeOf(exp.args[2]->value) : std::nullopt;
  if (!shape) return made;
  return Operand::Node(composer_.ResolveTo(made, numbers_.TypeOf(TypeArg(exp, 4)), *shape));
}

Operand Interpreter::BuildIndexMap(const Exp& exp) {
  const auto* map = ClassArg(exp, 0);
  std::string name = map->getNameAsString();
  if (const auto* window = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(map))
    name +=
        "<" + TextMember(window->getTemplateArgs()[0].getAsType()->getAsCXXRecordDecl(), "kName").value_or("?") + ">";
  // IndexMapExp({params...}, sources...), or (array, count, sources...)
  const Cell list =
      std::holds_alternative<Pointer>(exp.args[0]->value) ? std::get<Pointer>(exp.args[0]->value).to : exp.args[0];
  const auto& elements = std::get<Aggregate>(list->value).elements;
  const bool counted = exp.args.size() > 1 && std::holds_alternative<Number>(exp.args[1]->value);
  const auto count = counted
                         ? static_cast<std::size_t>(KnownNumber(exp.args[1]->value, "a number that " + name + " takes"))
                         : elements.size();
  const graph::IndexMapInfo* info = graph::FindIndexMap(name);
  std::vector<Dimension> params;
  for (std::size_t k = 0; k < count; ++k) {
    const std::string what = "a number that " + name + " takes";
    const bool open = info != nullptr && info->open(static_cast<int>(k));
    params.push_back(open ? SizeNumber(elements[k]->value, what) : Dimension(KnownNumber(elements[k]->value, what)));
  }
  std::vector<Operand> sources;
  for (std::size_t k = counted ? 2 : 1; k < exp.args.size(); ++k) sources.push_back(Build(exp.args[k]->value));
  return composer_.IndexMap(name, sources, params, numbers_.TypeOf(TypeArg(exp, 1)));
}

// What can also be assigned to: slices, flip and concat of tensors.
Operand Interpreter::BuildTarget(const Exp& exp) {
  const Operand first = Build(exp.args[0]->value);
  if (exp.type->getName() == "ConcatTarget")
    return composer_.IndexMap("concat", {first, Build(exp.args[1]->value)}, {IntArg(exp, 0)});
  if (exp.type->getName() == "FlipTarget")
    return composer_.IndexMap("flip", {first}, {KnownNumber(exp.args[1]->value, "a number that flip takes")});
  const std::vector<Range> ranges = RangesOf(exp);
  if (exp.type->getName() == "SliceTarget")
    return composer_.IndexMap("slice", {first}, {IntArg(exp, 0), ranges[0].begin, ranges[0].end});
  std::vector<Dimension> numbers;
  for (const Range& range : ranges) numbers.push_back(range.begin);
  for (const Range& range : ranges) numbers.push_back(range.end);
  numbers.resize(3 * ranges.size(), Dimension(1));
  return composer_.IndexMap("slice_ex", {first}, numbers);
}

std::vector<Interpreter::Range> Interpreter::RangesOf(const Exp& slice) {
  const auto number = [&](const Value& value, const char* what) {
    return SizeNumber(value, detail::Concat("the ", what, " of slice"));
  };
  const Value &begin = slice.args[1]->value, &end = slice.args[2]->value;
  if (slice.type->getName() == "SliceTarget")
    return {{static_cast<std::size_t>(IntArg(slice, 0)), number(begin, "begin"), number(end, "end")}};
  std::vector<Range> ranges;
  const auto &begins = std::get<Aggregate>(begin).elements, &ends = std::get<Aggregate>(end).elements;
  for (std::size_t d = 0; d < begins.size(); ++d)
    ranges.push_back({d, number(begins[d]->value, "begin"), number(ends[d]->value, "end")});
  return ranges;
}

// Positions of a range, which lies within `extent`; what is not known yet a call checks: it refuses negative
// differences.
Dimension Interpreter::LengthOf(const Range& range, const Dimension& extent, const std::string& what) {
  const Dimension length = graph_.Derive(runtime::ExtentOp::kMinus, range.end, range.begin, what);
  const Dimension left = graph_.Derive(runtime::ExtentOp::kMinus, extent, range.end, what);
  for (const Dimension& known : {graph_.Known(range.begin), graph_.Known(length), graph_.Known(left)})
    Require(known.is_dynamic() || static_cast<std::int64_t>(known) >= 0, what, ": positions ", range.begin, " to ",
            range.end, " of ", extent, " are none");
  return length;
}

// What can be assigned to: a tensor, or a map of targets.
const Memory& Interpreter::MemoryOf(const Value& target) {
  if (const auto* tensor = std::get_if<Tensor>(&target)) return *tensor->memory;
  const auto* exp = std::get_if<Exp>(&target);
  if (exp == nullptr || !IsTarget(*exp))
    throw Unsupported("only a tensor, or a slice, flip or concat of tensors can be assigned to",
                      "assign to a tensor of its own");
  return MemoryOf(exp->args[0]->value);
}

// No elements are read for it: there may be none yet.
PartialShape Interpreter::ShapeOfTarget(const Exp& target) {
  const Value& inner = target.args[0]->value;
  const std::string of = "of '" + MemoryOf(inner).name + "'";
  const PartialShape whole = Shape(inner);
  std::vector<Dimension> dims(whole.begin(), whole.end());
  const llvm::StringRef name = target.type->getName();
  if (name == "ConcatTarget") {
    const Value& second = target.args[1]->value;
    const auto axis = static_cast<std::size_t>(IntArg(target, 0));
    dims[axis] = graph_.Derive(runtime::ExtentOp::kPlus, whole[axis], Shape(second)[axis],
                               "concat " + of + " and '" + MemoryOf(second).name + "'");
  } else if (name == "FlipTarget") {
    const auto axis = static_cast<std::size_t>(KnownNumber(target.args[1]->value, "a number that flip takes"));
    Require(axis < dims.size(), "flip: axis ", axis, " ", of, ", whose rank is ", dims.size());
  } else {
    for (const Range& range : RangesOf(target)) dims[range.axis] = LengthOf(range, whole[range.axis], "slice " + of);
  }
  return PartialShape(std::move(dims));
}

void Interpreter::Assign(const Value& target, std::string_view how, const Value& value) {
  const Memory& memory = MemoryOf(target);
  Operand made = Build(value);
  if (!how.empty()) made = composer_.ApplyNumeric(how, {Build(target), made});
  const PartialShape wanted = Shape(target);
  const int node = graph_.Cast(composer_.ResolveTo(made, ComputeType(memory.dtype), wanted), memory.dtype);
  const PartialShape shape = graph_.node(node).shape;
  Require(shape.size() == wanted.size(), "'", memory.name, "' has rank ", wanted.size(),
          ", what is assigned to it has rank ", shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d)
    graph_.Unify(shape[d], wanted[d], "assignment to '" + memory.name + "'");
  Put(target, node);
}

// The elements of `source`, of the shape and dtype of `target`, go where they belong.
void Interpreter::Put(const Value& target, int source) {
  if (const auto* tensor = std::get_if<Tensor>(&target)) {
    if (tensor->part.empty()) return Write(tensor->memory.get(), source);
    Tensor whole = *tensor;
    const Tensor::Rows rows = whole.part.back();
    whole.part.pop_back();
    return PutPart(whole, {{0, rows.begin, rows.end}}, rows.element ? 1 : 0, source);
  }
  const Exp& map = std::get<Exp>(target);
  const Value& inner = map.args[0]->value;
  const llvm::StringRef name = map.type->getName();
  const PartialShape shape = Shape(inner);
  if (name == "ConcatTarget") {
    const Value& second = map.args[1]->value;
    const PartialShape other = Shape(second);
    const auto axis = static_cast<std::size_t>(IntArg(map, 0));
    const int behind =
        graph_.Map(Op::plus, {graph_.Index(static_cast<int>(axis), other), graph_.ExtentOf(shape[axis])});
    const int first = GatherAlong(source, shape, {}, 0, -1), rest = GatherAlong(source, other, {{axis, behind}}, 0, -1);
    Put(inner, first);
    Put(second, rest);
  } else if (name == "FlipTarget") {
    const auto axis = static_cast<std::size_t>(KnownNumber(map.args[1]->value, "a number that flip takes"));
    const int last = graph_.Map(Op::minus, {graph_.ExtentOf(shape[axis]), graph_.Constant(1, DType::kInt64)});
    const int position = graph_.Map(Op::minus, {last, graph_.Index(static_cast<int>(axis), shape)});
    Put(inner, GatherAlong(source, shape, {{axis, position}}, 0, -1));
  } else {
    PutPart(inner, RangesOf(map), 0, source);
  }
}

// At every point of `shape` the element of `source` there, with other positions `along` some axes; its axes are those
// of `shape` without the first `dropped`.
int Interpreter::GatherAlong(int source, const PartialShape& shape, const std::map<std::size_t, int>& along,
                             std::size_t dropped, int guard) {
  std::vector<int> positions;
  for (std::size_t d = dropped; d < shape.size(); ++d) {
    const auto moved = along.find(d);
    positions.push_back(moved != along.end() ? moved->second : graph_.Index(static_cast<int>(d), shape));
  }
  return graph_.Gather(source, std::move(positions), guard, 0);
}

// `whole` gets the elements of `source` within `ranges`, and keeps its own elsewhere.
void Interpreter::PutPart(const Value& whole, const std::vector<Range>& ranges, std::size_t dropped, int source) {
  const PartialShape shape = Shape(whole);
  const DType dtype = MemoryOf(whole).dtype;
  std::map<std::size_t, int> along;
  int inside = -1;
  for (const Range& range : ranges) {
    const int at = graph_.Index(static_cast<int>(range.axis), shape);
    along[range.axis] = graph_.Map(Op::minus, {at, graph_.ExtentOf(range.begin)});
    for (const int condition :
         {graph_.Map(Op::ge, {at, graph_.ExtentOf(range.begin)}), graph_.Map(Op::lt, {at, graph_.ExtentOf(range.end)})})
      inside = inside < 0 ? condition : graph_.Map(Op::logical_and, {inside, condition});
  }
  const int placed = GatherAlong(source, shape, along, dropped, inside);
  const int kept = graph_.Cast(composer_.Resolve(Build(whole), "what is assigned in part"), dtype);
  Put(whole, graph_.Cast(graph_.Map(Op::select, {inside, placed, kept}), dtype));
}

void Interpreter::Write(Memory* memory, int node) {
  const bool first = memory->parameter < 0 && memory->node < 0;  // a local one: nobody sees what it was
  if (!active_.known() && !first) node = numbers_.Select(active_, node, ReadMemory(memory), memory->dtype);
  memory->node = node;
  memory->last_use = ++now_;
  if (memory->written == 0) memory->written = now_;
  const auto& kind = graph_.node(node).kind;
  if (graph_.label(node).empty() && kind != graph::Node::Kind::kInput && kind != graph::Node::Kind::kScalar &&
      kind != graph::Node::Kind::kConstant)
    graph_.SetLabel(node, memory->name);
  const clang::PresumedLoc place = context_.getSourceManager().getPresumedLoc(here_);
  if (place.isValid())
    statements_.push_back({place.getFilename(), static_cast<int>(place.getLine()), static_cast<int>(place.getColumn()),
                           memory->name, node});
}

}  // namespace umbra::extract

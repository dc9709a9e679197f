// Calls and constructions: what is known by name, what is run, and what may not be called.
#include <clang/Lex/Lexer.h>
#include <clang/Sema/Lookup.h>

#include "tools/umbra-extract/interpreter.h"

namespace umbra::extract {

using clang::dyn_cast;
using clang::dyn_cast_or_null;
using clang::isa;

bool IsUmbra(const clang::Decl* decl) {
  const clang::DeclContext* outermost = nullptr;
  for (const auto* context = decl->getDeclContext(); context != nullptr && !context->isTranslationUnit();
       context = context->getParent())
    if (context->isNamespace()) outermost = context;
  const auto* space = dyn_cast_or_null<clang::NamespaceDecl>(outermost);
  return space != nullptr && space->getName() == "umbra";
}

bool IsMarked(const clang::FunctionDecl* function) {
  for (const auto* redeclaration : function->redecls())
    for (const auto* note : redeclaration->specific_attrs<clang::AnnotateAttr>())
      if (note->getAnnotation() == "umbra::kernel") return true;
  const auto* pattern = function->getTemplateInstantiationPattern();
  return pattern != nullptr && pattern != function && IsMarked(pattern);
}

const clang::ClassTemplateSpecializationDecl* UmbraClass(clang::QualType type, llvm::StringRef name) {
  const auto* record =
      dyn_cast_or_null<clang::ClassTemplateSpecializationDecl>(type.getNonReferenceType()->getAsCXXRecordDecl());
  return record != nullptr && record->getName() == name && IsUmbra(record) ? record : nullptr;
}

const clang::ClassTemplateSpecializationDecl* TensorClass(clang::QualType type) {
  const auto* handle = UmbraClass(type, "Tensor");
  return handle != nullptr ? handle : UmbraClass(type, "TensorContainer");
}

namespace {

/// Classes of the expression API that are taken apart by build.cc.
bool IsExpression(const clang::CXXRecordDecl* record) {
  static constexpr llvm::StringLiteral kNames[] = {
      "ScalarExp",  "TypecastExp", "TransposeExp", "UnaryMapExp", "BinaryMapExp", "TernaryMapExp", "DotExp",
      "AxisMapExp", "IndexMapExp", "SliceTarget",  "BoxTarget",   "FlipTarget",   "ConcatTarget"};
  return IsUmbra(record) && llvm::is_contained(kNames, record->getName());
}

// The name of a Saver's operator: sv::plusto is plus.
std::string_view SaverOp(llvm::StringRef saver) {
  return saver == "plusto"    ? "plus"
         : saver == "minusto" ? "minus"
         : saver == "multo"   ? "mul"
         : saver == "divto"   ? "div"
                              : "";
}

std::optional<std::string_view> AssignedOp(clang::OverloadedOperatorKind kind) {
  switch (kind) {
    case clang::OO_Equal: return "";
    case clang::OO_PlusEqual: return "plus";
    case clang::OO_MinusEqual: return "minus";
    case clang::OO_StarEqual: return "mul";
    case clang::OO_SlashEqual: return "div";
    default: return std::nullopt;
  }
}

clang::QualType TypeArgument(const clang::FunctionDecl* function, unsigned k) {
  const auto* args = function->getTemplateSpecializationArgs();
  if (args == nullptr || k >= args->size() || args->get(k).getKind() != clang::TemplateArgument::Type) return {};
  return args->get(k).getAsType();
}

// What to write for a function of the standard library that no kernel calls.
const char* Instead(std::string_view name) {
  if (name.substr(0, 5) == "std::") name.remove_prefix(5);
  static const std::map<std::string_view, const char*> kInstead = {
      {"remquo", "std::remainder gives its result; the quotient is rint((x - std::remainder(x, y)) / y)"},
      {"isnormal", "compare std::abs(x) with std::numeric_limits<float>::min() and infinity()"},
      {"fpclassify", "kernels have std::isnan, std::isinf and std::isfinite"},
      {"nan", "write std::numeric_limits<float>::quiet_NaN()"},
      {"nexttoward", "kernels have no long double: use std::nextafter"}};
  auto found = kInstead.find(name);
  if (found == kInstead.end()) found = kInstead.find(name.substr(0, name.size() - 1));  // C's name of the float variant
  return found != kInstead.end()
             ? found->second
             : "a kernel calls the functions of <cmath> that docs/extract.md lists, constexpr functions and other kernels";
}

}  // namespace

std::vector<Cell> Interpreter::Args(const clang::FunctionDecl* function, llvm::ArrayRef<const clang::Expr*> args) {
  std::vector<Cell> cells;
  for (unsigned k = 0; k < args.size(); ++k) {
    Cell cell = Eval(args[k]);
    if (k >= function->getNumParams() || !function->getParamDecl(k)->getType()->isReferenceType()) {
      cell = MakeCell(Copy(cell->value));
      cell->born = active_;
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

void Interpreter::RequireMayCall(const clang::FunctionDecl* function) const {
  std::string name = function->getQualifiedNameAsString();
  if (name.starts_with("__builtin_")) name.erase(0, 10);  // the standard library's name for what the user wrote
  const clang::FunctionDecl* body = nullptr;
  if (IsUmbra(function)) {
    if (function->hasBody(body) && !body->hasSkippedBody()) return;
    throw Unsupported("'" + name + "' has no counterpart in a kernel",
                      "kernels have the expressions of umbra/tensor.h; call this outside");
  }
  if (IsMarked(function) || function->isConstexpr()) return;
  const auto* method = dyn_cast<clang::CXXMethodDecl>(function);
  if (method != nullptr && method->getParent()->isLambda()) return;
  if (method != nullptr && method->isStatic() && method->getDeclName().isIdentifier() && method->getName() == "Map")
    return;
  const std::string what = "'" + name + "' is not marked as a kernel, so what it does is not known here";
  if (context_.getSourceManager().isInSystemHeader(function->getLocation()) || function->getBuiltinID() != 0)
    throw Unsupported(what, Instead(name));
  const auto* family = function->getPrimaryTemplate();
  const clang::FunctionDecl* shown = family != nullptr ? family->getTemplatedDecl() : function;
  if (function->getReturnType()->isVoidType())  // it changes tensors
    throw Unsupported(what, "mark it UMBRA_KERNEL; it is then neither static nor in an unnamed namespace",
                      shown->getOuterLocStart(), "UMBRA_KERNEL ");
  throw Unsupported(what, "mark it UMBRA_KERNEL, or make it constexpr", shown->getOuterLocStart(), "constexpr ");
}

Cell Interpreter::Capture(const clang::LambdaExpr* e) {
  if (e->isMutable())
    throw Unsupported("a lambda that changes its own copies has no counterpart in a kernel",
                      "capture by reference what it changes, as [&] does");
  Closure closure;
  for (const clang::LambdaCapture& capture : e->captures()) {
    if (capture.capturesThis()) closure.self = frames_.back().self;
    if (!capture.capturesVariable()) continue;
    const clang::ValueDecl* variable = capture.getCapturedVar();
    const auto* named = dyn_cast<clang::VarDecl>(variable);
    const Cell cell = e->isInitCapture(&capture) ? Eval(named->getInit()) : Named(variable);
    closure.captured[variable] = capture.getCaptureKind() == clang::LCK_ByRef ? cell : MakeCell(Copy(cell->value));
  }
  return MakeCell(std::move(closure));
}

Cell Interpreter::CallOf(const clang::CallExpr* e) {
  const clang::FunctionDecl* function = e->getDirectCallee();
  if (function == nullptr) throw Unsupported("a call through a pointer", "call the function by its name");
  const auto* method = dyn_cast<clang::CXXMethodDecl>(function);
  llvm::SmallVector<const clang::Expr*, 8> given(e->arg_begin(), e->arg_end());
  if (function->getDeclName().isIdentifier() && function->getName() == "Require" && IsUmbra(function)) {
    // The graph makes the checks of the expression API itself.
    if (IsUmbra(frames_.back().function) || numbers_.Truth(EvalNumber(given[0])).always()) return MakeCell({});
    throw Unsupported("a check that is not known to hold when the kernel is generated",
                      "kernels check the shapes and dtypes of their operands themselves");
  }
  if (const auto* operation = dyn_cast<clang::CXXOperatorCallExpr>(e); operation != nullptr && method != nullptr)
    if (auto assigned = Assignment(operation, method)) return *assigned;
  // Whole calls that Clang can compute, std::numeric_limits<float>::max() say.
  clang::Expr::EvalResult known;
  if (function->isConstexpr() && numbers_.IsNumber(e->getType()) && e->isPRValue() &&
      e->EvaluateAsRValue(known, context_) && !known.HasSideEffects)
    if (const auto number = numbers_.Of(known.Val, e->getType())) return MakeCell(*number);
  Cell self;
  if (const auto* call = dyn_cast<clang::CXXMemberCallExpr>(e)) self = Eval(call->getImplicitObjectArgument());
  else if (isa<clang::CXXOperatorCallExpr>(e) && method != nullptr && !method->isStatic()) {
    self = Eval(given[0]);
    given.erase(given.begin());
  }
  if (self)
    if (const auto* pointer = std::get_if<Pointer>(&self->value); pointer != nullptr && pointer->to) self = pointer->to;
  // A text is for a function that prints or reads: that one is named, not the text.
  if (llvm::any_of(given, [](const clang::Expr* arg) { return isa<clang::StringLiteral>(arg->IgnoreParenImpCasts()); }))
    RequireMayCall(function);
  const std::vector<Cell> args = Args(function, given);
  if (self && method != nullptr)
    if (auto result = TensorMethod(method, self, args)) return *result;
  if (auto result = Known(function, e, args)) return *result;
  RequireMayCall(function);
  return Call(function, args, self);
}

// `y = x` of tensors, y a parameter: nearly always the elements were meant.
void Interpreter::WarnOfHandle(const clang::CXXOperatorCallExpr* e) {
  const auto* to = dyn_cast<clang::DeclRefExpr>(e->getArg(0)->IgnoreParenImpCasts());
  const clang::Expr* from = e->getArg(1);
  if (to == nullptr || !isa<clang::ParmVarDecl>(to->getDecl())) return;
  clang::DiagnosticsEngine& diagnostics = sema_.getDiagnostics();
  diagnostics.Report(
      e->getOperatorLoc(),
      diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Warning,
                                  "no element is assigned: '%0' becomes another handle of the tensor on the right"))
      << to->getDecl()->getName();
  const clang::SourceLocation end =
      clang::Lexer::getLocForEndOfToken(from->getEndLoc(), 0, context_.getSourceManager(), context_.getLangOpts());
  diagnostics.Report(from->getBeginLoc(),
                     diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Note, "this copies the elements"))
      << clang::FixItHint::CreateInsertion(from->getBeginLoc(), "umbra::F<umbra::op::identity>(")
      << clang::FixItHint::CreateInsertion(end, ")");
}

std::optional<Cell> Interpreter::Assignment(const clang::CXXOperatorCallExpr* e, const clang::CXXMethodDecl* method) {
  const auto how = AssignedOp(e->getOperator());
  if (!how) return std::nullopt;
  const Cell value = Eval(e->getArg(1));
  const Cell to = Eval(e->getArg(0));
  const clang::QualType element = TypeArgument(method, 1);
  if (auto* tensor = std::get_if<Tensor>(&to->value)) {
    const auto* type = TensorClass(context_.getRecordType(method->getParent()));
    if (type == nullptr) type = TensorClass(e->getType());
    if (method->isCopyAssignmentOperator() && type != nullptr && type->getName() == "Tensor") {
      if (frames_.size() == 1) WarnOfHandle(e);
      Store(to, Copy(value->value));
      return to;
    }
    if (!element.isNull() && type != nullptr && !context_.hasSameType(element, type->getTemplateArgs()[2].getAsType()))
      throw Unsupported("the two sides of the assignment have different dtypes", "convert with tcast<DType>(...)");
    Assign(*tensor, *how, value->value);
    return to;
  }
  if (auto* exp = std::get_if<Exp>(&to->value)) {
    Assign(*exp, *how, value->value);
    return to;
  }
  if (auto* number = std::get_if<Number>(&to->value)) {  // a 16-bit float
    Number made = AsNumber(value, e->getArg(1));
    if (!how->empty())
      made = numbers_.Binary(*how == "plus"    ? clang::BO_Add
                             : *how == "minus" ? clang::BO_Sub
                             : *how == "mul"   ? clang::BO_Mul
                                               : clang::BO_Div,
                             numbers_.Convert(*number, context_.FloatTy), numbers_.Convert(made, context_.FloatTy),
                             context_.FloatTy);
    Store(to, numbers_.Convert(made, number->type));
    return to;
  }
  if (!how->empty()) return std::nullopt;
  Store(to, Copy(value->value));
  return to;
}

std::optional<Cell> Interpreter::TensorMethod(const clang::CXXMethodDecl* method, const Cell& self,
                                              const std::vector<Cell>& args) {
  if (const auto* number = std::get_if<Number>(&self->value)) {
    if (isa<clang::CXXConversionDecl>(method)) return MakeCell(numbers_.Convert(*number, method->getReturnType()));
    return std::nullopt;
  }
  const bool index = method->getOverloadedOperator() == clang::OO_Subscript;
  const llvm::StringRef name = method->getDeclName().isIdentifier() ? method->getName() : "";
  if (auto* shape = std::get_if<Aggregate>(&self->value)) {
    if (index) return Subscript(self, std::get<Number>(args[0]->value));
    if (name == "data") return self;
    const auto product = [&](std::size_t begin, std::size_t end) {
      Number total = numbers_.Integer(1, context_.LongTy);
      for (std::size_t k = begin; k < end; ++k) {
        const Number& extent = std::get<Number>(shape->elements[k]->value);
        total = total.kind == Number::Kind::kInteger && total.integer == 1
                    ? extent
                    : numbers_.Binary(clang::BO_Mul, total, extent, context_.LongTy);
      }
      return total;
    };
    const std::size_t rank = shape->elements.size();
    if (name == "Size") return MakeCell(product(0, rank));
    if (name == "ProdShape")
      return MakeCell(
          product(static_cast<std::size_t>(KnownNumber(args[0]->value, "ProdShape's first axis")),
                  std::min(rank, static_cast<std::size_t>(KnownNumber(args[1]->value, "ProdShape's last axis")))));
    if (name == "FlatTo1D") return MakeCell(Aggregate{{MakeCell(product(0, rank))}});
    if (name == "FlatTo2D")
      return MakeCell(Aggregate{{MakeCell(product(0, rank - 1)), MakeCell(shape->elements[rank - 1]->value)}});
    return std::nullopt;
  }
  const auto* tensor = std::get_if<Tensor>(&self->value);
  if (tensor == nullptr) return std::nullopt;
  const auto rows = [&](const Dimension& begin, const Dimension& end, bool element) {
    Tensor part = *tensor;
    part.part.push_back({begin, end, element});
    return part;
  };
  if (index) {
    const Dimension at = SizeNumber(args[0]->value, "the row");
    const Tensor part = rows(
        at, graph_.Derive(runtime::ExtentOp::kPlus, at, Dimension(1), "row of '" + tensor->memory->name + "'"), true);
    if (method->getReturnType()->isRecordType()) return MakeCell(part);
    const Cell cell = MakeCell(numbers_.Node(Read(part), method->getReturnType().getNonReferenceType()));
    cell->element = true;
    return cell;
  }
  if (name == "Slice")
    return MakeCell(
        rows(SizeNumber(args[0]->value, "the begin of Slice"), SizeNumber(args[1]->value, "the end of Slice"), false));
  if (name == "Resize" && tensor->memory->parameter < 0) {
    *tensor->memory =
        std::get<Tensor>(NewContainer(args, context_.getRecordType(method->getParent()))->value).memory.operator*();
    return MakeCell({});
  }
  return std::nullopt;
}

std::optional<Cell> Interpreter::Known(const clang::FunctionDecl* function, const clang::CallExpr* e,
                                       const std::vector<Cell>& args) {
  if (!function->getDeclName().isIdentifier()) return std::nullopt;
  const llvm::StringRef name = function->getName();
  if (function->isInStdNamespace() && args.size() == 1 && (name == "move" || name == "forward" || name == "as_const"))
    return args[0];
  if (function->isInStdNamespace() && args.size() == 2 && name == "swap") {
    Value first = Copy(args[0]->value);
    Store(args[0], Copy(args[1]->value));
    Store(args[1], std::move(first));
    return MakeCell({});
  }
  // The elements of std::max({a, b, c}) are operands, too.
  const auto* list = args.size() == 1 ? std::get_if<Aggregate>(&args[0]->value) : nullptr;
  const std::vector<Cell>& given = list != nullptr ? list->elements : args;
  // std::frexp(x, &exponent) has a second result.
  const auto* written = given.empty() ? nullptr : std::get_if<Pointer>(&given.back()->value);
  const llvm::ArrayRef<Cell> values = llvm::ArrayRef(given).drop_back(written != nullptr ? 1 : 0);
  const bool numbers =
      !values.empty() && llvm::all_of(values, [](const Cell& c) { return std::holds_alternative<Number>(c->value); });
  std::vector<Number> operands;
  if (numbers)
    for (const Cell& value : values) operands.push_back(std::get<Number>(value->value));
  const auto* method = dyn_cast<clang::CXXMethodDecl>(function);
  if (!IsUmbra(function)) {
    const bool standard = method == nullptr && (function->getBuiltinID() != 0 || function->isInStdNamespace() ||
                                                context_.getSourceManager().isInSystemHeader(function->getLocation()));
    if (!standard || !numbers) return std::nullopt;
    if (written != nullptr) {
      const auto second =
          numbers_.Function("*" + name.str(), operands,
                            function->getParamDecl(function->getNumParams() - 1)->getType()->getPointeeType());
      if (!second || !written->to) return std::nullopt;
      Store(written->to, *second);
    }
    const auto made = numbers_.Function(name, operands, function->getReturnType().getNonReferenceType());
    return made ? std::optional<Cell>(MakeCell(*made)) : std::nullopt;
  }
  if (method != nullptr && name == "Map" && numbers) {  // an operator of the table or by UMBRA_OP
    const auto* base = UmbraClass(context_.getRecordType(method->getParent()), "Operator");
    if (base == nullptr) return std::nullopt;
    const clang::QualType type = operands[0].type;
    std::vector<graph::Operand> nodes;
    for (const Number& operand : operands)
      nodes.push_back(graph::Operand::Node(numbers_.NodeOf(numbers_.Convert(operand, type))));
    const graph::Operand made = Apply(base->getTemplateArgs()[0].getAsType()->getAsCXXRecordDecl(), nodes, type);
    return MakeCell(numbers_.Node(composer_.Cast(made, numbers_.TypeOf(type)).node, type));
  }
  if (method != nullptr && name == "Check" && method->getParent()->getName() == "ShapeCheck")
    return MakeCell(ShapeValue(Shape(args[0]->value)));
  if (name == "MapExp" || name == "AssignEagerly") {
    const auto* pointer = std::get_if<Pointer>(&args[0]->value);
    const clang::QualType saver = TypeArgument(function, 0);
    if (pointer == nullptr || !pointer->to || saver.isNull()) return std::nullopt;
    Assign(std::get<Tensor>(pointer->to->value), SaverOp(saver->getAsCXXRecordDecl()->getName()), args[1]->value);
    return MakeCell({});
  }
  if (name == "Copy" && method == nullptr && args.size() >= 2 && std::holds_alternative<Tensor>(args[0]->value)) {
    if (args.size() > 2 && !isa<clang::CXXDefaultArgExpr>(e->getArg(2)) &&
        !std::holds_alternative<Pointer>(args[2]->value))
      return std::nullopt;
    Assign(std::get<Tensor>(args[0]->value), "", args[1]->value);
    return MakeCell({});
  }
  return std::nullopt;
}

Cell Interpreter::Construct(const clang::CXXConstructExpr* e) {
  const clang::CXXConstructorDecl* constructor = e->getConstructor();
  const clang::CXXRecordDecl* record = constructor->getParent();
  const clang::QualType type = context_.getRecordType(record);
  const bool container = UmbraClass(type, "TensorContainer") != nullptr;
  if (constructor->isCopyOrMoveConstructor()) {
    const Cell from = Eval(e->getArg(0));
    if (!container || constructor->isMoveConstructor()) return MakeCell(Copy(from->value));
    const Tensor& source = std::get<Tensor>(from->value);
    const Cell cell = NewContainer({MakeCell(ShapeValue(Shape(source)))}, type);
    Assign(std::get<Tensor>(cell->value), "", source);
    return cell;
  }
  if (record->isInStdNamespace() && e->getNumArgs() > 0 && !container && !numbers_.IsNumber(type) &&
      record->getName() != "initializer_list")
    throw Unsupported("an object of type '" + e->getType().getAsString(context_.getPrintingPolicy()) +
                          "' has no counterpart in a kernel",
                      kThereAre);
  const std::vector<Cell> args = Args(constructor, llvm::ArrayRef(e->getArgs(), e->getNumArgs()));
  if (const auto* number = UmbraClass(type, "NumberBeside")) {  // a ScalarExp that any number makes
    const clang::QualType base = number->bases_begin()->getType(), element = number->getTemplateArgs()[0].getAsType();
    Exp exp{llvm::cast<clang::ClassTemplateSpecializationDecl>(base->getAsCXXRecordDecl()), {}};
    exp.args.push_back(MakeCell(numbers_.Convert(AsNumber(args[0], e->getArg(0)), numbers_.ComputeOf(element))));
    return MakeCell(std::move(exp));
  }
  if (IsExpression(record)) {
    Exp exp{llvm::cast<clang::ClassTemplateSpecializationDecl>(record), {}};
    for (const Cell& arg : args) exp.args.push_back(MakeCell(Copy(arg->value)));
    return MakeCell(std::move(exp));
  }
  if (container) return NewContainer(args, type);
  if (numbers_.IsNumber(type))
    return args.empty() ? Zero(type) : MakeCell(numbers_.Convert(AsNumber(args[0], e->getArg(0)), type));
  if (UmbraClass(type, "Tensor") != nullptr)
    throw Unsupported("a tensor is made of memory that the kernel does not know",
                      "pass the tensor as a parameter, or use TensorContainer");
  if (args.empty() && record->isInStdNamespace() && record->getName() == "initializer_list")
    return MakeCell(Aggregate{});
  if (args.empty() && (UmbraClass(type, "Shape") != nullptr || record->isInStdNamespace())) return Zero(type);
  if (args.empty() && record->isAggregate()) return Unwritten(type);
  throw Unsupported("an object of type '" + e->getType().getAsString(context_.getPrintingPolicy()) +
                        "' has no counterpart in a kernel",
                    kThereAre);
}

Cell Interpreter::NewContainer(const std::vector<Cell>& args, clang::QualType type) {
  const auto* tensor = TensorClass(type);
  auto memory = std::make_shared<Memory>();
  memory->dtype = numbers_.TypeOf(tensor->getTemplateArgs()[2].getAsType());
  if (!args.empty() && std::holds_alternative<Aggregate>(args[0]->value)) {
    memory->shape = ShapeOf(args[0]->value).value();
    if (args.size() > 1)
      if (const auto* number = std::get_if<Number>(&args[1]->value);
          number != nullptr && !number->type->isBooleanType())
        Assign(Tensor{memory, {}}, "", *number);
  } else {
    std::vector<Dimension> dims(static_cast<std::size_t>(tensor->getTemplateArgs()[1].getAsIntegral().getExtValue()));
    for (Dimension& dim : dims) dim = Dimension::WithSymbol(graph_.NewSymbol());
    memory->shape = PartialShape(std::move(dims));
  }
  return MakeCell(Tensor{std::move(memory), {}});
}

const clang::Expr* Interpreter::MapCall(const clang::CXXRecordDecl* op, const std::vector<clang::QualType>& types,
                                        std::vector<const clang::OpaqueValueExpr*>* operands) {
  std::vector<const clang::Type*> key;
  for (const clang::QualType& type : types) key.push_back(type.getCanonicalType().getTypePtr());
  auto& entry = map_calls_[{op->getTypeForDecl(), key}];
  if (entry.first == nullptr) {
    // Clang itself chooses the overload, converts and instantiates, as in the eager evaluation.
    const clang::SourceLocation location = op->getLocation();
    sema_.isCompleteType(location, context_.getRecordType(op));  // instantiates what no one else has needed, op<3> say
    clang::LookupResult found(sema_, &context_.Idents.get("Map"), location, clang::Sema::LookupMemberName);
    if (!sema_.LookupQualifiedName(found, const_cast<clang::CXXRecordDecl*>(op)))
      throw Unsupported("operator '" + op->getQualifiedNameAsString() + "' has no Map(...)",
                        "give it a static member function `static DType Map(DType a)`");
    llvm::SmallVector<clang::Expr*, 4> arguments;
    for (const clang::QualType& type : types) {
      auto* operand = new (context_) clang::OpaqueValueExpr(location, type, clang::VK_PRValue);
      arguments.push_back(operand);
      entry.second.push_back(operand);
    }
    clang::CXXScopeSpec scope;
    found.suppressDiagnostics();
    const clang::ExprResult name = sema_.BuildDeclarationNameExpr(scope, found, false);
    const clang::ExprResult call =
        name.isInvalid() ? clang::ExprError() : sema_.BuildCallExpr(nullptr, name.get(), location, arguments, location);
    if (call.isInvalid())
      throw Unsupported("operator '" + op->getQualifiedNameAsString() + "' does not fit its operands",
                        "give it a Map(...) for so many operands of these types");
    sema_.PerformPendingInstantiations();
    entry.first = call.get();
  }
  *operands = entry.second;
  return entry.first;
}

}  // namespace umbra::extract

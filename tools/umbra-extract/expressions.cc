// Expressions of a body: numbers, places and conversions. Calls are in calls.cc.
#include "tools/umbra-extract/interpreter.h"

namespace umbra::extract {

using clang::dyn_cast;
using clang::isa;

namespace {

std::string Described(const clang::Expr* e) {
  if (isa<clang::CXXNewExpr>(e) || isa<clang::CXXDeleteExpr>(e)) return "memory of the heap";
  if (isa<clang::CXXThrowExpr>(e)) return "an exception";
  if (isa<clang::StringLiteral>(e)) return "a text";
  return std::string("this (") + e->getStmtClassName() + ")";
}

void RequireSmall(std::uint64_t elements) {
  constexpr std::uint64_t kMost = 1 << 12;
  if (elements > kMost)
    throw Unsupported(
        "an array of " + std::to_string(elements) + " elements",
        "a kernel's own arrays have " + std::to_string(kMost) + " at most; pass a larger one as a tensor");
}

}  // namespace

Number Interpreter::AsNumber(const Cell& cell, const clang::Expr* e) {
  if (auto* number = std::get_if<Number>(&cell->value)) return *number;
  const auto* named = dyn_cast<clang::DeclRefExpr>(e->IgnoreParenImpCasts());
  if (std::holds_alternative<std::monostate>(cell->value) && named != nullptr)
    throw Unsupported("'" + named->getDecl()->getNameAsString() + "' is read before it has a value",
                      "give it a value first");
  throw Unsupported("a number is expected here", kThereAre);
}

Number Interpreter::EvalNumber(const clang::Expr* e) { return AsNumber(Eval(e), e); }

Cell Interpreter::Eval(const clang::Expr* e) {
  const At at(this, e->getExprLoc());
  if (const auto* paren = dyn_cast<clang::ParenExpr>(e)) return Eval(paren->getSubExpr());
  if (const auto* full = dyn_cast<clang::FullExpr>(e)) return Eval(full->getSubExpr());
  if (const auto* temporary = dyn_cast<clang::MaterializeTemporaryExpr>(e)) return Eval(temporary->getSubExpr());
  if (const auto* bound = dyn_cast<clang::CXXBindTemporaryExpr>(e)) return Eval(bound->getSubExpr());
  if (const auto* argument = dyn_cast<clang::SubstNonTypeTemplateParmExpr>(e)) return Eval(argument->getReplacement());
  if (const auto* given = dyn_cast<clang::CXXDefaultArgExpr>(e)) return Eval(given->getExpr());
  if (const auto* given = dyn_cast<clang::CXXDefaultInitExpr>(e)) return Eval(given->getExpr());
  if (const auto* list = dyn_cast<clang::CXXStdInitializerListExpr>(e)) return Eval(list->getSubExpr());
  if (const auto* opaque = dyn_cast<clang::OpaqueValueExpr>(e)) {
    const auto found = opaque_.find(opaque);
    if (found != opaque_.end()) return found->second;
    if (opaque->getSourceExpr() != nullptr) return Eval(opaque->getSourceExpr());
  }
  if (const auto* literal = dyn_cast<clang::IntegerLiteral>(e))
    return MakeCell(numbers_.Integer(static_cast<std::int64_t>(literal->getValue().getZExtValue()), e->getType()));
  if (const auto* literal = dyn_cast<clang::FloatingLiteral>(e))
    return MakeCell(*numbers_.Of(clang::APValue(literal->getValue()), e->getType()));
  if (const auto* literal = dyn_cast<clang::CXXBoolLiteralExpr>(e))
    return MakeCell(numbers_.Integer(literal->getValue(), e->getType()));
  if (const auto* named = dyn_cast<clang::DeclRefExpr>(e)) return Named(named->getDecl());
  if (const auto* member = dyn_cast<clang::MemberExpr>(e)) return Member(member);
  if (const auto* subscript = dyn_cast<clang::ArraySubscriptExpr>(e))
    return Subscript(Eval(subscript->getBase()), EvalNumber(subscript->getIdx()));
  if (const auto* list = dyn_cast<clang::InitListExpr>(e)) return List(list);
  if (isa<clang::ImplicitValueInitExpr>(e) || isa<clang::CXXScalarValueInitExpr>(e)) return Zero(e->getType());
  if (const auto* cast = dyn_cast<clang::CastExpr>(e)) return Cast(cast);
  if (const auto* binary = dyn_cast<clang::BinaryOperator>(e)) return Binary(binary);
  if (const auto* unary = dyn_cast<clang::UnaryOperator>(e)) return Unary(unary);
  if (const auto* choice = dyn_cast<clang::ConditionalOperator>(e)) {
    const Condition condition = numbers_.Truth(EvalNumber(choice->getCond()));
    if (condition.known()) return Eval(condition.never ? choice->getFalseExpr() : choice->getTrueExpr());
    const Condition before = active_;
    active_ = numbers_.And(before, condition);
    const Value yes = Eval(choice->getTrueExpr())->value;
    active_ = numbers_.And(before, numbers_.Not(condition));
    const Value no = Eval(choice->getFalseExpr())->value;
    active_ = before;
    return MakeCell(Merge(condition, yes, no));
  }
  if (isa<clang::CXXThisExpr>(e)) return MakeCell(Pointer{frames_.back().self});
  if (isa<clang::CXXNullPtrLiteralExpr>(e) || isa<clang::GNUNullExpr>(e)) return MakeCell(Pointer{});
  if (const auto* lambda = dyn_cast<clang::LambdaExpr>(e)) return Capture(lambda);
  if (const auto* construct = dyn_cast<clang::CXXConstructExpr>(e)) return Construct(construct);
  if (const auto* call = dyn_cast<clang::CallExpr>(e)) return CallOf(call);
  // sizeof, traits and the like.
  clang::Expr::EvalResult result;
  if (!e->isValueDependent() && e->EvaluateAsRValue(result, context_))
    if (const auto number = numbers_.Of(result.Val, e->getType())) return MakeCell(*number);
  throw Unsupported(Described(e) + " has no counterpart in a kernel", kThereAre);
}

Cell Interpreter::Cast(const clang::CastExpr* e) {
  const clang::Expr* from = e->getSubExpr();
  switch (e->getCastKind()) {
    case clang::CK_LValueToRValue: return MakeCell(Copy(Eval(from)->value));
    case clang::CK_ToVoid: Eval(from); return MakeCell({});
    case clang::CK_NullToPointer: return MakeCell(Pointer{});
    case clang::CK_IntegralCast:
    case clang::CK_IntegralToBoolean:
    case clang::CK_IntegralToFloating:
    case clang::CK_FloatingToIntegral:
    case clang::CK_FloatingToBoolean:
    case clang::CK_FloatingCast:
    case clang::CK_BooleanToSignedIntegral: return MakeCell(numbers_.Convert(EvalNumber(from), e->getType()));
    case clang::CK_NoOp:
    case clang::CK_DerivedToBase:
    case clang::CK_UncheckedDerivedToBase:
    case clang::CK_BaseToDerived:
    case clang::CK_ArrayToPointerDecay:
    case clang::CK_FunctionToPointerDecay:
    case clang::CK_ConstructorConversion:
    case clang::CK_UserDefinedConversion: return Eval(from);
    default:
      throw Unsupported("a conversion to '" + e->getType().getAsString() + "' has no counterpart in a kernel",
                        kThereAre);
  }
}

Cell Interpreter::Constant(const clang::APValue& value, clang::QualType type) {
  if (const auto number = numbers_.Of(value, type)) return MakeCell(*number);
  Aggregate aggregate;
  if (value.isArray()) {
    const clang::QualType element = context_.getAsArrayType(type)->getElementType();
    RequireSmall(value.getArraySize());
    for (unsigned k = 0; k < value.getArraySize(); ++k)
      aggregate.elements.push_back(Constant(
          k < value.getArrayInitializedElts() ? value.getArrayInitializedElt(k) : value.getArrayFiller(), element));
    return MakeCell(std::move(aggregate));
  }
  if (value.isStruct() && value.getStructNumBases() == 0)
    return Struct(type, [&](const clang::FieldDecl* field) {
      return Constant(value.getStructField(field->getFieldIndex()), field->getType());
    });
  throw Unsupported("a constant of type '" + type.getAsString() + "' has no counterpart in a kernel", kThereAre);
}

Cell Interpreter::Named(const clang::ValueDecl* decl) {
  auto& variables = frames_.back().variables;
  if (const auto found = variables.find(decl); found != variables.end()) return found->second;
  if (const auto* enumerator = dyn_cast<clang::EnumConstantDecl>(decl))
    return MakeCell(numbers_.Integer(enumerator->getInitVal().getExtValue(), decl->getType()));
  const auto* variable = dyn_cast<clang::VarDecl>(decl);
  if (variable == nullptr)
    throw Unsupported("'" + decl->getNameAsString() + "' has no value that a kernel could use",
                      "pass what it stands for as a parameter");
  if (variable->getType().isConstQualified() || variable->isConstexpr())
    if (const clang::APValue* value = variable->evaluateValue()) return Constant(*value, variable->getType());
  throw Unsupported(
      "'" + variable->getNameAsString() + "' is a variable outside the kernel, which may change between calls",
      "pass it as a parameter, or make it constexpr");
}

Cell Interpreter::Member(const clang::MemberExpr* e) {
  if (const auto* shared = dyn_cast<clang::VarDecl>(e->getMemberDecl())) return Named(shared);
  Cell base = Eval(e->getBase());
  if (const auto* pointer = std::get_if<Pointer>(&base->value); pointer != nullptr && pointer->to) base = pointer->to;
  const auto* field = dyn_cast<clang::FieldDecl>(e->getMemberDecl());
  if (field == nullptr) throw Unsupported("this member has no counterpart in a kernel", kThereAre);
  const llvm::StringRef name = field->getName();
  const auto members = field->getParent()->fields();
  const bool only = std::next(members.begin()) == members.end();
  if (only && (std::holds_alternative<Aggregate>(base->value) ||
               (std::holds_alternative<Number>(base->value) && !IsUmbra(field->getParent()))))
    return base;
  if (auto* aggregate = std::get_if<Aggregate>(&base->value)) return aggregate->elements[field->getFieldIndex()];
  const auto* exp = std::get_if<Exp>(&base->value);
  if (name == "shape_" && (exp != nullptr || std::holds_alternative<Tensor>(base->value)))
    return MakeCell(ShapeValue(Shape(base->value)));
  if (exp != nullptr && !field->getParent()->getName().starts_with("IndexMap") &&
      field->getFieldIndex() < exp->args.size())
    return exp->args[field->getFieldIndex()];
  if (std::holds_alternative<Tensor>(base->value))
    throw Unsupported("'" + name.str() + "' of a tensor: a kernel sees no pointers, strides or streams",
                      "write expressions over whole tensors");
  throw Unsupported("the member '" + name.str() + "' has no counterpart in a kernel", kThereAre);
}

Cell Interpreter::Subscript(const Cell& base, const Number& index) {
  Cell array = base;
  if (const auto* pointer = std::get_if<Pointer>(&base->value); pointer != nullptr && pointer->to) array = pointer->to;
  const auto* aggregate = std::get_if<Aggregate>(&array->value);
  if (aggregate == nullptr)
    throw Unsupported("an element is accessed through a pointer", "write expressions over whole tensors");
  if (index.kind != Number::Kind::kInteger)
    throw Unsupported("which element of an array is meant is not known when the kernel is generated",
                      "index by what is known, or choose with `?:`");
  if (index.integer < 0 || index.integer >= static_cast<std::int64_t>(aggregate->elements.size()))
    throw Unsupported("index " + std::to_string(index.integer) + " of an array of " +
                          std::to_string(aggregate->elements.size()) + " elements",
                      "indices begin with 0");
  return aggregate->elements[static_cast<std::size_t>(index.integer)];
}

Cell Interpreter::Zero(clang::QualType type) {
  if (const auto* array = context_.getAsConstantArrayType(type)) {
    Aggregate aggregate;
    RequireSmall(array->getSize().getZExtValue());
    for (std::uint64_t k = 0; k < array->getSize().getZExtValue(); ++k)
      aggregate.elements.push_back(Zero(array->getElementType()));
    return MakeCell(std::move(aggregate));
  }
  if (numbers_.IsNumber(type))
    return MakeCell(type->isRealFloatingType() ? numbers_.Real(0, type)
                                               : numbers_.Convert(numbers_.Integer(0, context_.IntTy), type));
  return Struct(type, [&](const clang::FieldDecl* field) { return Zero(field->getType()); });
}

// Its members one after the other; one of a single member, as Shape and std::array, is that member.
Cell Interpreter::Struct(clang::QualType type, const std::function<Cell(const clang::FieldDecl*)>& member) {
  const auto* record = type->getAsCXXRecordDecl();
  if (record == nullptr || record->isUnion() || record->getNumBases() > 0)
    throw Unsupported(
        "an object of type '" + type.getAsString(context_.getPrintingPolicy()) + "' has no counterpart in a kernel",
        kThereAre);
  Aggregate aggregate;
  for (const clang::FieldDecl* field : record->fields())
    aggregate.elements.push_back(MakeCell(Copy(member(field)->value)));
  return aggregate.elements.size() == 1 ? aggregate.elements[0] : MakeCell(std::move(aggregate));
}

// An array has its elements, and a struct its members, before they have values.
Cell Interpreter::Unwritten(clang::QualType type) {
  if (const auto* record = type->getAsCXXRecordDecl(); record != nullptr && record->isAggregate())
    return Struct(type, [&](const clang::FieldDecl* field) {
      return field->hasInClassInitializer() ? Eval(field->getInClassInitializer()) : Unwritten(field->getType());
    });
  const auto* array = context_.getAsConstantArrayType(type);
  if (array == nullptr) return MakeCell({});
  Aggregate aggregate;
  RequireSmall(array->getSize().getZExtValue());
  for (std::uint64_t k = 0; k < array->getSize().getZExtValue(); ++k)
    aggregate.elements.push_back(Unwritten(array->getElementType()));
  return MakeCell(std::move(aggregate));
}

Cell Interpreter::List(const clang::InitListExpr* e) {
  if (numbers_.IsNumber(e->getType())) return e->getNumInits() == 1 ? Eval(e->getInit(0)) : Zero(e->getType());
  if (e->getType()->isRecordType())
    return Struct(e->getType(), [&](const clang::FieldDecl* field) {
      return field->getFieldIndex() < e->getNumInits() ? Eval(e->getInit(field->getFieldIndex()))
                                                       : Zero(field->getType());
    });
  Aggregate aggregate;
  for (const clang::Expr* element : e->inits()) aggregate.elements.push_back(MakeCell(Copy(Eval(element)->value)));
  if (const auto* array = context_.getAsConstantArrayType(e->getType())) {
    RequireSmall(array->getSize().getZExtValue());
    while (aggregate.elements.size() < array->getSize().getZExtValue())
      aggregate.elements.push_back(Zero(array->getElementType()));
  }
  return MakeCell(std::move(aggregate));
}

Cell Interpreter::Binary(const clang::BinaryOperator* e) {
  const auto kind = e->getOpcode();
  if (kind == clang::BO_Comma) {
    Eval(e->getLHS());
    return Eval(e->getRHS());
  }
  if (kind == clang::BO_Assign) {
    Value value = Copy(Eval(e->getRHS())->value);
    const Cell to = Eval(e->getLHS());
    Store(to, std::move(value));
    return to;
  }
  if (const auto* compound = dyn_cast<clang::CompoundAssignOperator>(e)) {
    const Cell to = Eval(e->getLHS());
    const Number a = numbers_.Convert(AsNumber(to, e->getLHS()), compound->getComputationLHSType());
    const Number made = numbers_.Binary(clang::BinaryOperator::getOpForCompoundAssignment(kind), a,
                                        EvalNumber(e->getRHS()), compound->getComputationResultType());
    Store(to, numbers_.Convert(made, e->getLHS()->getType()));
    return to;
  }
  const Number a = EvalNumber(e->getLHS());
  if (kind == clang::BO_LAnd || kind == clang::BO_LOr) {
    const Condition first = numbers_.Truth(a);
    if (kind == clang::BO_LAnd ? first.never : first.always())
      return MakeCell(numbers_.Integer(kind == clang::BO_LOr, context_.BoolTy));
    const Number b = numbers_.Convert(EvalNumber(e->getRHS()), context_.BoolTy);
    if (first.known()) return MakeCell(b);
    const graph::Op op = kind == clang::BO_LAnd ? graph::Op::logical_and : graph::Op::logical_or;
    const graph::Operand sides[] = {graph::Operand::Node(numbers_.NodeOf(first)),
                                    graph::Operand::Node(numbers_.NodeOf(b))};
    return MakeCell(numbers_.Node(composer_.Map(op, {sides[0], sides[1]}).node, context_.BoolTy));
  }
  return MakeCell(numbers_.Binary(kind, a, EvalNumber(e->getRHS()), e->getType()));
}

Cell Interpreter::Unary(const clang::UnaryOperator* e) {
  const auto kind = e->getOpcode();
  const Cell cell = Eval(e->getSubExpr());
  if (kind == clang::UO_AddrOf) return MakeCell(Pointer{cell});
  if (kind == clang::UO_Deref) {
    if (const auto* pointer = std::get_if<Pointer>(&cell->value); pointer != nullptr && pointer->to) return pointer->to;
    if (std::holds_alternative<Aggregate>(cell->value)) return Subscript(cell, numbers_.Integer(0, context_.IntTy));
    throw Unsupported("a pointer is followed", "a kernel sees no pointers: write expressions over whole tensors");
  }
  const Number number = AsNumber(cell, e->getSubExpr());
  if (!e->isIncrementDecrementOp()) return MakeCell(numbers_.Unary(kind, number, e->getType()));
  const Number one = number.kind == Number::Kind::kReal
                         ? numbers_.Real(1, number.type)
                         : numbers_.Convert(numbers_.Integer(1, context_.IntTy), number.type);
  Store(cell, numbers_.Binary(e->isIncrementOp() ? clang::BO_Add : clang::BO_Sub, number, one, number.type));
  return e->isPostfix() ? MakeCell(number) : cell;
}

}  // namespace umbra::extract

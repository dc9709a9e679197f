// Statements of a body, run under a condition.
#include <exception>

#include "tools/umbra-extract/interpreter.h"

namespace umbra::extract {

namespace {
constexpr int kMaxSteps = 1 << 20;  // expressions and statements that are run for one kernel
constexpr std::size_t kMaxCalls = 128;  // of a function in itself
}  // namespace

void Interpreter::CountStep() {
  if (++steps_ > kMaxSteps)
    throw Unsupported("running this takes more than " + std::to_string(kMaxSteps) + " steps",
                      "shorten its loops and expressions");
}

Value Copy(const Value& value) {
  const auto* aggregate = std::get_if<Aggregate>(&value);
  if (aggregate == nullptr) return value;
  Aggregate copy;
  for (const Cell& cell : aggregate->elements) copy.elements.push_back(MakeCell(Copy(cell->value)));
  return copy;
}

// The nodes that were made since belong to the place that was run last.
void Interpreter::PlaceNodes() {
  const int count = static_cast<int>(graph_.nodes().size());
  if (placed_ == count) return;
  const clang::PresumedLoc place = context_.getSourceManager().getPresumedLoc(here_);
  if (place.isValid())
    graph_.SetPlaces(placed_, std::string(place.getFilename()) + ":" + std::to_string(place.getLine()));
  placed_ = count;
}

Interpreter::At::At(Interpreter* interpreter, clang::SourceLocation location)
    : interpreter_(*interpreter),
      before_(interpreter->here_),
      exceptions_(std::uncaught_exceptions()) {
  interpreter_.CountStep();
  interpreter_.PlaceNodes();
  const auto& frames = interpreter_.frames_;
  const bool users = frames.empty() || !IsUmbra(frames.back().function);
  if (users && location.isValid() && !interpreter_.context_.getSourceManager().isInSystemHeader(location))
    interpreter_.here_ = location;
}
Interpreter::At::~At() {
  if (std::uncaught_exceptions() != exceptions_) return;
  interpreter_.PlaceNodes();
  interpreter_.here_ = before_;
}

Interpreter::Interpreter(clang::Sema* sema, graph::Composer* composer)
    : sema_(*sema),
      context_(sema->getASTContext()),
      composer_(*composer),
      graph_(composer->graph()),
      numbers_(&sema->getASTContext(), composer) {}

Cell Interpreter::Call(const clang::FunctionDecl* function, const std::vector<Cell>& args, Cell self) {
  for (const Frame& frame : frames_)
    if (frame.function == function && (IsMarked(function) || frames_.size() > kMaxCalls))
      throw Unsupported("'" + function->getNameAsString() + "' calls itself",
                        "a kernel has no recursion; write a loop with a bound that is known");
  const clang::FunctionDecl* definition = nullptr;
  if (!function->hasBody(definition) || definition->hasSkippedBody())
    throw Unsupported("the body of '" + function->getQualifiedNameAsString() + "' is not in this file",
                      "define it in a header as constexpr, or mark it UMBRA_KERNEL in this file");
  called_.insert(function->getCanonicalDecl());
  Frame frame{definition, active_, {}, std::move(self), std::nullopt};
  if (auto* closure = frame.self ? std::get_if<Closure>(&frame.self->value) : nullptr) {
    frame.variables = closure->captured;
    frame.self = closure->self;
  }
  for (unsigned k = 0; k < definition->getNumParams() && k < args.size(); ++k)
    frame.variables[definition->getParamDecl(k)] = args[k];
  frames_.push_back(std::move(frame));
  const Condition before = active_;
  Run(definition->getBody());
  active_ = before;
  Value result = frames_.back().result.value_or(Value());
  frames_.pop_back();
  // A reference that is returned is the very place.
  if (auto* pointer = std::get_if<Pointer>(&result); pointer != nullptr && function->getReturnType()->isReferenceType())
    return pointer->to;
  return MakeCell(std::move(result));
}

Interpreter::Flow Interpreter::Run(const clang::Stmt* s) {
  if (s == nullptr || llvm::isa<clang::NullStmt>(s)) return Flow::kNext;
  const At at(this, s->getBeginLoc());
  if (const auto* block = llvm::dyn_cast<clang::CompoundStmt>(s)) {
    for (const clang::Stmt* part : block->body())
      if (const Flow flow = Run(part); flow != Flow::kNext) return flow;
    return Flow::kNext;
  }
  if (const auto* attributed = llvm::dyn_cast<clang::AttributedStmt>(s)) return Run(attributed->getSubStmt());
  if (const auto* declaration = llvm::dyn_cast<clang::DeclStmt>(s)) {
    for (const clang::Decl* decl : declaration->decls())
      if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(decl)) Declare(variable);
    return Flow::kNext;
  }
  if (const auto* e = llvm::dyn_cast<clang::Expr>(s)) {
    Eval(e);
    return Flow::kNext;
  }
  if (const auto* conditional = llvm::dyn_cast<clang::IfStmt>(s)) return RunIf(conditional);
  if (const auto* loop = llvm::dyn_cast<clang::ForStmt>(s))
    return RunLoop(loop->getInit(), loop->getCond(), loop->getInc(), loop->getBody(), true);
  if (const auto* loop = llvm::dyn_cast<clang::WhileStmt>(s))
    return RunLoop(nullptr, loop->getCond(), nullptr, loop->getBody(), true);
  if (const auto* loop = llvm::dyn_cast<clang::DoStmt>(s))
    return RunLoop(nullptr, loop->getCond(), nullptr, loop->getBody(), false);
  if (const auto* loop = llvm::dyn_cast<clang::CXXForRangeStmt>(s)) return RunRange(loop);
  if (const auto* choice = llvm::dyn_cast<clang::SwitchStmt>(s)) return RunSwitch(choice);
  if (const auto* label = llvm::dyn_cast<clang::SwitchCase>(s)) return Run(label->getSubStmt());
  if (llvm::isa<clang::BreakStmt>(s)) return Flow::kBreak;
  if (llvm::isa<clang::ContinueStmt>(s)) return Flow::kContinue;
  if (const auto* result = llvm::dyn_cast<clang::ReturnStmt>(s)) {
    Return(result->getRetValue());
    return Flow::kReturn;
  }
  const std::string name = llvm::isa<clang::CXXTryStmt>(s)                                   ? "a try block"
                           : llvm::isa<clang::AsmStmt>(s)                                    ? "assembly"
                           : llvm::isa<clang::GotoStmt>(s) || llvm::isa<clang::LabelStmt>(s) ? "a goto"
                                                                                             : s->getStmtClassName();
  throw Unsupported(name + " has no counterpart in a kernel", "kernels have if, switch, for, while and do");
}

Interpreter::Flow Interpreter::RunIf(const clang::IfStmt* s) {
  if (s->isConsteval()) return Run(s->isNegatedConsteval() ? s->getThen() : s->getElse());
  Run(s->getInit());
  if (s->getConditionVariable() != nullptr) Declare(s->getConditionVariable());
  const Condition condition = numbers_.Truth(EvalNumber(s->getCond()));
  if (condition.known()) return Run(condition.never ? s->getElse() : s->getThen());
  // Both sides run, each under its condition.
  const Condition before = active_;
  const Condition inside[2] = {numbers_.And(before, condition), numbers_.And(before, numbers_.Not(condition))};
  Condition after[2];
  for (const int side : {0, 1}) {
    active_ = inside[side];
    const Flow flow = Run(side == 0 ? s->getThen() : s->getElse());
    if (flow == Flow::kBreak || flow == Flow::kContinue)
      throw Unsupported("this loop or switch is left under a condition that is not known when the kernel is generated",
                        "compute both ways and choose with `?:`");
    after[side] = flow == Flow::kReturn ? Condition{true, {}} : active_;
  }
  const bool whole = after[0] == inside[0] && after[1] == inside[1];
  active_ = whole ? before : numbers_.Or(after[0], after[1]);
  return active_.never ? Flow::kReturn : Flow::kNext;
}

// From the label that is meant, through those that follow.
Interpreter::Flow Interpreter::RunSwitch(const clang::SwitchStmt* s) {
  Run(s->getInit());
  if (s->getConditionVariable() != nullptr) Declare(s->getConditionVariable());
  const Number value = EvalNumber(s->getCond());
  if (value.kind != Number::Kind::kInteger)
    throw Unsupported("which case of this switch is meant is not known when the kernel is generated",
                      "write it as if and else, which may depend on numbers of the call");
  const clang::SwitchCase* meant = nullptr;
  for (const clang::SwitchCase* label = s->getSwitchCaseList(); label != nullptr; label = label->getNextSwitchCase()) {
    const auto* numbered = llvm::dyn_cast<clang::CaseStmt>(label);
    if (numbered == nullptr ? meant == nullptr
                            : numbered->getLHS()->EvaluateKnownConstInt(context_).getExtValue() == value.integer)
      meant = label;
  }
  const auto* body = llvm::dyn_cast<clang::CompoundStmt>(s->getBody());
  if (body == nullptr) throw Unsupported("a switch without braces", "write braces around its cases");
  for (const clang::Stmt* part : body->body()) {
    for (const auto* label = llvm::dyn_cast<clang::SwitchCase>(part); label != nullptr && meant != nullptr;
         label = llvm::dyn_cast<clang::SwitchCase>(label->getSubStmt()))
      if (label == meant) meant = nullptr;  // from here on
    const Flow flow = meant == nullptr ? Run(part) : Flow::kNext;
    if (flow != Flow::kNext) return flow == Flow::kBreak ? Flow::kNext : flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::RunLoop(const clang::Stmt* init, const clang::Expr* condition, const clang::Expr* step,
                                       const clang::Stmt* body, bool test_first) {
  Run(init);
  for (bool test = test_first;; test = true) {
    if (test && condition != nullptr) {
      const At at(this, condition->getExprLoc());
      const Condition more = numbers_.Truth(EvalNumber(condition));
      if (!more.known())
        throw Unsupported("the bound of this loop is not known when the kernel is generated",
                          "use a literal, a constexpr or a template argument; over the elements of a tensor "
                          "write one expression");
      if (more.never) return Flow::kNext;
    }
    const Flow flow = Run(body);
    if (flow == Flow::kReturn) return flow;
    if (flow == Flow::kBreak) return Flow::kNext;
    if (step != nullptr) Eval(step);
  }
}

Interpreter::Flow Interpreter::RunRange(const clang::CXXForRangeStmt* s) {
  Run(s->getInit());
  const Cell range = Eval(s->getRangeInit());
  const auto* array = std::get_if<Aggregate>(&range->value);
  if (array == nullptr)
    throw Unsupported("a range-based for over something that is no array of numbers",
                      "write a loop with a bound that is known");
  const clang::VarDecl* variable = s->getLoopVariable();
  for (const Cell& element : array->elements) {
    const bool shared = variable->getType()->isReferenceType();
    frames_.back().variables[variable] = shared ? element : std::make_shared<Slot>(Slot{Copy(element->value), active_});
    const Flow flow = Run(s->getBody());
    if (flow == Flow::kReturn) return flow;
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

void Interpreter::Declare(const clang::VarDecl* variable) {
  if (variable->isStaticLocal() && !variable->getType().isConstQualified() && !variable->isConstexpr())
    throw Unsupported("the static variable '" + variable->getNameAsString() + "' outlives the call",
                      "pass it as a parameter");
  if (llvm::isa<clang::DecompositionDecl>(variable))
    throw Unsupported("a structured binding has no counterpart in a kernel", "give each part a variable of its own");
  Cell cell = variable->getInit() != nullptr ? Eval(variable->getInit()) : Unwritten(variable->getType());
  if (!variable->getType()->isReferenceType()) cell = MakeCell(Copy(cell->value));
  // What comes into being under a condition is only seen there.
  if (cell->born == Condition{}) cell->born = variable->getType()->isReferenceType() ? cell->born : active_;
  if (auto* tensor = std::get_if<Tensor>(&cell->value); tensor != nullptr && tensor->memory->name.empty())
    tensor->memory->name = variable->getNameAsString();
  frames_.back().variables[variable] = std::move(cell);
}

void Interpreter::Return(const clang::Expr* e) {
  if (e == nullptr) return;
  const Cell cell = Eval(e);
  Frame& frame = frames_.back();
  Value value = frame.function->getReturnType()->isReferenceType() ? Value(Pointer{cell}) : Copy(cell->value);
  frame.result = frame.result && !(active_ == frame.entry) ? Merge(active_, value, *frame.result) : std::move(value);
}

void Interpreter::Store(const Cell& to, Value value) {
  if (to->element)
    throw Unsupported("an element of a tensor is assigned on its own", "write one expression over the whole tensor");
  const bool plain = active_ == to->born || std::holds_alternative<std::monostate>(to->value);
  to->value = plain ? std::move(value) : Merge(active_, value, to->value);
}

Value Interpreter::Merge(const Condition& condition, const Value& a, const Value& b) {
  if (condition.known()) return condition.never ? b : a;
  if (std::holds_alternative<Number>(a) && std::holds_alternative<Number>(b))
    return numbers_.Select(condition, std::get<Number>(a), std::get<Number>(b));
  if (const auto* u = std::get_if<Aggregate>(&a), *v = std::get_if<Aggregate>(&b);
      u != nullptr && v != nullptr && u->elements.size() == v->elements.size()) {
    Aggregate merged;
    for (std::size_t k = 0; k < u->elements.size(); ++k)
      merged.elements.push_back(MakeCell(Merge(condition, u->elements[k]->value, v->elements[k]->value)));
    return merged;
  }
  const auto* x = std::get_if<Tensor>(&a);
  const auto* y = std::get_if<Tensor>(&b);
  if (x != nullptr && y != nullptr && x->memory == y->memory && x->part.empty() && y->part.empty()) return a;
  throw Unsupported("which of two tensors or expressions is meant depends on a number of the call",
                    "assign elements under the condition, or use F<op::select>");
}

}  // namespace umbra::extract

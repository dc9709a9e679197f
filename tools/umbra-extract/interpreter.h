// Runs the body of a marked function on symbols, and so builds its graph. What makes an expression is
// run as it is written, header functions of the expression API included; what would evaluate one (an
// assignment to a tensor) takes its class and its operands apart instead.
#ifndef UMBRA_TOOLS_UMBRA_EXTRACT_INTERPRETER_H_
#define UMBRA_TOOLS_UMBRA_EXTRACT_INTERPRETER_H_

#include <clang/AST/ExprCXX.h>
#include <clang/AST/StmtCXX.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Sema/Sema.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/umbra-extract/extract.h"
#include "tools/umbra-extract/numbers.h"
#include "tools/umbra-extract/value.h"

namespace umbra::extract {

/// Is the function marked by UMBRA_KERNEL?
bool IsMarked(const clang::FunctionDecl* function);
/// Is this declared in namespace umbra::...?
bool IsUmbra(const clang::Decl* decl);
/// The specialisation of the class template called `name` in namespace umbra that `type` is; null if it is another.
const clang::ClassTemplateSpecializationDecl* UmbraClass(clang::QualType type, llvm::StringRef name);
/// umbra::Tensor or TensorContainer.
const clang::ClassTemplateSpecializationDecl* TensorClass(clang::QualType type);

class Interpreter {
 public:
  Interpreter(clang::Sema* sema, graph::Composer* composer);

  /// Runs `function` on `args`; what it assigns is in the memory of their tensors afterwards.
  Cell Call(const clang::FunctionDecl* function, const std::vector<Cell>& args, Cell self);

  /// The innermost place of the user's own code that was run last.
  clang::SourceLocation here() const { return here_; }
  const std::vector<Statement>& statements() const { return statements_; }
  /// The user's functions that were run.
  const std::set<const clang::FunctionDecl*>& called() const { return called_; }
  Numbers& numbers() { return numbers_; }
  /// Counts accesses to memory.
  int now() const { return now_; }

 private:
  enum class Flow { kNext, kBreak, kContinue, kReturn };
  struct Frame {
    const clang::FunctionDecl* function;
    Condition entry;  ///< under which it was called
    std::map<const clang::ValueDecl*, Cell> variables;
    Cell self;
    std::optional<Value> result;
  };
  class At;
  void CountStep();
  void PlaceNodes();

  // statements.cc
  Flow Run(const clang::Stmt* statement);
  Flow RunIf(const clang::IfStmt* statement);
  Flow RunSwitch(const clang::SwitchStmt* statement);
  Flow RunLoop(const clang::Stmt* init, const clang::Expr* condition, const clang::Expr* step, const clang::Stmt* body,
               bool test_first);
  Flow RunRange(const clang::CXXForRangeStmt* statement);
  void Declare(const clang::VarDecl* variable);
  void Return(const clang::Expr* value);
  void Store(const Cell& to, Value value);
  Value Merge(const Condition& condition, const Value& a, const Value& b);

  // expressions.cc
  Cell Eval(const clang::Expr* e);
  Number EvalNumber(const clang::Expr* e);
  Number AsNumber(const Cell& cell, const clang::Expr* e);
  Cell Cast(const clang::CastExpr* e);
  Cell Named(const clang::ValueDecl* decl);
  Cell Constant(const clang::APValue& value, clang::QualType type);
  Cell Member(const clang::MemberExpr* e);
  Cell Subscript(const Cell& base, const Number& index);
  Cell List(const clang::InitListExpr* e);
  Cell Binary(const clang::BinaryOperator* e);
  Cell Unary(const clang::UnaryOperator* e);
  Cell Zero(clang::QualType type);
  Cell Unwritten(clang::QualType type);
  Cell Struct(clang::QualType type, const std::function<Cell(const clang::FieldDecl*)>& member);

  // calls.cc
  Cell CallOf(const clang::CallExpr* e);
  Cell Capture(const clang::LambdaExpr* e);
  Cell Construct(const clang::CXXConstructExpr* e);
  Cell NewContainer(const std::vector<Cell>& args, clang::QualType type);
  void WarnOfHandle(const clang::CXXOperatorCallExpr* e);
  std::optional<Cell> Assignment(const clang::CXXOperatorCallExpr* e, const clang::CXXMethodDecl* method);
  std::optional<Cell> TensorMethod(const clang::CXXMethodDecl* method, const Cell& self, const std::vector<Cell>& args);
  std::optional<Cell> Known(const clang::FunctionDecl* function, const clang::CallExpr* e,
                            const std::vector<Cell>& args);
  void RequireMayCall(const clang::FunctionDecl* function) const;
  std::vector<Cell> Args(const clang::FunctionDecl* function, llvm::ArrayRef<const clang::Expr*> args);
  const clang::Expr* MapCall(const clang::CXXRecordDecl* op, const std::vector<clang::QualType>& types,
                             std::vector<const clang::OpaqueValueExpr*>* operands);

  // build.cc
  graph::Operand Build(const Value& value);
  graph::Operand BuildMap(const Exp& exp, const clang::CXXRecordDecl* op, clang::QualType element);
  graph::Operand Apply(const clang::CXXRecordDecl* op, const std::vector<graph::Operand>& operands,
                       clang::QualType element);
  graph::Operand BuildAxisMap(const Exp& exp);
  graph::Operand BuildIndexMap(const Exp& exp);
  graph::Operand BuildTarget(const Exp& exp);
  /// Positions begin .. end - 1 of an axis.
  struct Range {
    std::size_t axis;
    Dimension begin, end;
  };
  /// Of the axes that a SliceTarget or BoxTarget cuts.
  std::vector<Range> RangesOf(const Exp& slice);
  Dimension LengthOf(const Range& range, const Dimension& extent, const std::string& what);
  std::optional<PartialShape> ShapeOf(const Value& shape);
  Value ShapeValue(const PartialShape& shape) const;
  PartialShape Shape(const Value& value);
  index_t KnownNumber(const Value& value, const std::string& what) const;
  Dimension SizeNumber(const Value& value, const std::string& what);
  int Read(const Tensor& tensor);
  int ReadMemory(Memory* memory);
  static const Memory& MemoryOf(const Value& target);
  PartialShape ShapeOfTarget(const Exp& target);
  /// `how` is one of plus, minus, mul, div, or empty for `=`.
  void Assign(const Value& target, std::string_view how, const Value& value);
  void Put(const Value& target, int source);
  void PutPart(const Value& whole, const std::vector<Range>& ranges, std::size_t dropped, int source);
  int GatherAlong(int source, const PartialShape& shape, const std::map<std::size_t, int>& along, std::size_t dropped,
                  int guard);
  void Write(Memory* memory, int node);

  clang::Sema& sema_;
  clang::ASTContext& context_;
  graph::Composer& composer_;
  graph::Graph& graph_;
  Numbers numbers_;
  std::vector<Frame> frames_;
  Condition active_;
  clang::SourceLocation here_;
  std::vector<Statement> statements_;
  std::set<const clang::FunctionDecl*> called_;
  std::map<std::pair<const clang::Type*, std::vector<const clang::Type*>>,
           std::pair<const clang::Expr*, std::vector<const clang::OpaqueValueExpr*>>>
      map_calls_;
  std::map<const clang::OpaqueValueExpr*, Cell> opaque_;
  int steps_ = 0, now_ = 0, locals_ = 0, placed_ = 0;
};

/// Notes the place of what is run, where that is the user's own code; after an error it stays noted.
class Interpreter::At {
 public:
  At(Interpreter* interpreter, clang::SourceLocation location);
  ~At();
  At(const At&) = delete;
  At& operator=(const At&) = delete;

 private:
  Interpreter& interpreter_;
  clang::SourceLocation before_;
  int exceptions_;
};

}  // namespace umbra::extract

#endif  // UMBRA_TOOLS_UMBRA_EXTRACT_INTERPRETER_H_

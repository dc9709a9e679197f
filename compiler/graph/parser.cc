// Its grammar: docs/text-form.md.
#include "compiler/graph/parser.h"
#include "compiler/graph/call.h"
#include "compiler/graph/index_map.h"
#include "compiler/graph/op.h"
#include "compiler/graph/shape_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace umbra::graph {

namespace {

constexpr int kMaxDepth = 256;  // of nested parentheses and operators
constexpr int kMaxHeight = 8192;  // of an expression, as x + x + x, whose readers go down call by call

bool IsBuiltIn(const std::string& name) {
  return FindCall(name) != nullptr || FindOp(name) || FindComposite(name) != nullptr || FindIndexMap(name) != nullptr ||
         !ReducersOf(name).empty();
}

class Parser {
 public:
  explicit Parser(const SourceText& source, Language language = Language::kText)
      : source_(source),
        lexer_(source, language) {
    token_ = lexer_.Next();
    ahead_ = lexer_.Next();
  }

  FileAst File() {
    FileAst file;
    while (token_.kind != Token::Kind::kEnd) {
      if (IsName("op")) file.operators.push_back(Operator(file.operators));
      else if (IsName("kernel")) file.kernels.push_back(Kernel());
      else Fail("expected 'kernel' or 'op'");
    }
    return file;
  }

  Expression WholeExpression() {
    Expression e = Expr();
    if (token_.kind != Token::Kind::kEnd) Fail("expected the end of the expression");
    return e;
  }

  // "name = expression", or an expression alone, whose name is then empty.
  Statement WholeStatement() {
    Statement statement;
    statement.position = token_.position;
    if (token_.kind == Token::Kind::kName && ahead_.kind == Token::Kind::kSymbol && ahead_.text == "=") {
      statement.name = Name("a name");
      Next();
    }
    statement.value = WholeExpression();
    return statement;
  }

  std::vector<std::string> ArgumentNames() {
    std::vector<std::string> names;
    Expect("(");
    do {
      const Position position = token_.position;
      names.push_back(Name("the name of an argument"));
      if (std::find(names.begin(), names.end() - 1, names.back()) != names.end() - 1)
        source_.Fail(position, "two arguments are called '" + names.back() + "': rename one");
    } while (Accept(","));
    Expect(")");
    return names;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) {
    const std::string given = token_.kind == Token::Kind::kEnd ? "the end of the text" : "'" + token_.text + "'";
    const char* const elements = IsSymbol("[") ? "; parts of a tensor are slice(x, axis, begin, end)" : "";
    source_.Fail(token_.position, what + ", got " + given + elements);
  }

  void Next() {
    token_ = std::move(ahead_);
    ahead_ = lexer_.Next();
  }
  bool IsName(std::string_view text) const { return token_.kind == Token::Kind::kName && token_.text == text; }
  bool IsSymbol(std::string_view text) const { return token_.kind == Token::Kind::kSymbol && token_.text == text; }
  bool Accept(std::string_view symbol) {
    if (!IsSymbol(symbol)) return false;
    Next();
    return true;
  }
  void Expect(std::string_view symbol) {
    if (!Accept(symbol)) Fail(fmt::format("expected '{}'", symbol));
  }
  std::string Name(std::string_view what) {
    if (token_.kind != Token::Kind::kName) Fail(fmt::format("expected {}", what));
    std::string name = token_.text;
    Next();
    return name;
  }

  OperatorAst Operator(const std::vector<OperatorAst>& others) {
    Next();
    OperatorAst op;
    const Position position = token_.position;
    op.name = Name("the name of the operator");
    if (IsBuiltIn(op.name))
      source_.Fail(position, "'" + op.name + "' is an operator of Umbra: choose another name for this one");
    for (const OperatorAst& other : others)
      if (other.name == op.name) source_.Fail(position, "two operators are called '" + op.name + "': rename one");
    op.arguments = ArgumentNames();
    Expect("=");
    op.body = Expr();
    return op;
  }

  KernelAst Kernel() {
    Next();
    KernelAst kernel;
    kernel.position = token_.position;
    kernel.name = Name("the name of the kernel");
    Expect("(");
    if (!IsSymbol(")")) kernel.inputs = Parameters();
    Expect(")");
    Expect("->");
    Expect("(");
    kernel.outputs = Parameters();
    Expect(")");
    Expect("{");
    while (!IsSymbol("}")) {
      Statement statement;
      statement.position = token_.position;
      statement.name = Name("a statement 'name = expression' or '}'");
      if (!Accept("=")) Fail("expected '=' after '" + statement.name + "', as a statement is 'name = expression'");
      statement.value = Expr();
      Accept(";");
      kernel.statements.push_back(std::move(statement));
    }
    Next();
    return kernel;
  }

  std::vector<Parameter> Parameters() {
    std::vector<Parameter> parameters;
    do {
      Parameter parameter;
      parameter.position = token_.position;
      parameter.name = Name("the name of an operand");
      Expect(":");
      parameter.type = TypeOf();
      parameters.push_back(std::move(parameter));
    } while (Accept(","));
    return parameters;
  }

  Type TypeOf() {
    Type type;
    const auto dtype = token_.kind == Token::Kind::kName ? FindDType(token_.text) : std::nullopt;
    if (!dtype) Fail("expected a dtype (" + DTypeNames() + ")");
    type.dtype = *dtype;
    Next();
    if (!Accept("[")) return type;
    type.has_shape = true;
    if (Accept("]")) return type;
    do {
      const bool integer = token_.kind == Token::Kind::kNumber &&
                           token_.text.find_first_not_of("0123456789") == std::string::npos && token_.text.size() <= 18;
      if (!integer && !IsSymbol("?") && token_.kind != Token::Kind::kName)
        Fail("expected an extent: a whole number, '?' or a name");
      type.dims.push_back(token_.text);
      Next();
    } while (Accept(","));
    Expect("]");
    return type;
  }

  Expression Call(Position position, std::string name, std::vector<Expression> operands) {
    Expression call;
    call.kind = Expression::Kind::kCall;
    call.position = position;
    call.name = std::move(name);
    call.operands = std::move(operands);
    return Measured(std::move(call));
  }

  // A call, with how high it is.
  Expression Measured(Expression call) {
    for (const Expression& operand : call.operands) call.height = std::max(call.height, operand.height + 1);
    if (call.height > kMaxHeight)
      source_.Fail(
          call.position,
          fmt::format("the expression has more than {} operations one after the other; name a part of it", kMaxHeight));
    return call;
  }

  Expression Binary(Position position, std::string name, Expression a, Expression b) {
    std::vector<Expression> operands;
    operands.push_back(std::move(a));
    operands.push_back(std::move(b));
    return Call(position, std::move(name), std::move(operands));
  }

  // Guards the stack of this program against texts of absurd depth.
  struct Depth {
    explicit Depth(Parser* parser) : parser(*parser) {
      if (++parser->depth_ > kMaxDepth)
        parser->source_.Fail(parser->token_.position,
                             fmt::format("the expression is nested more than {} deep; name a part "
                                         "of it",
                                         kMaxDepth));
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  Expression Expr() {
    const Depth guard(this);
    Expression condition = Or();
    const Position position = token_.position;
    if (!Accept("?")) return condition;
    Expression yes = Expr();
    Expect(":");
    Expression no = Expr();
    std::vector<Expression> operands;
    operands.push_back(std::move(condition));
    operands.push_back(std::move(yes));
    operands.push_back(std::move(no));
    Expression call = Call(position, "select", std::move(operands));
    call.conditional = true;
    return call;
  }

  Expression Or() {
    Expression left = And();
    while (IsSymbol("||")) {
      const Position position = token_.position;
      Next();
      left = Binary(position, "logical_or", std::move(left), And());
    }
    return left;
  }

  Expression And() {
    Expression left = Compare();
    while (IsSymbol("&&")) {
      const Position position = token_.position;
      Next();
      left = Binary(position, "logical_and", std::move(left), Compare());
    }
    return left;
  }

  Expression Compare() {
    Expression left = Sum();
    static constexpr std::pair<std::string_view, const char*> kRelations[] = {{"<", "lt"},  {"<=", "le"}, {">", "gt"},
                                                                              {">=", "ge"}, {"==", "eq"}, {"!=", "ne"}};
    for (const auto& [symbol, name] : kRelations) {
      if (!IsSymbol(symbol)) continue;
      const Position position = token_.position;
      Next();
      Expression right = Sum();
      if (symbol == "<" && IsSymbol(">") && ahead_.text == "(" && left.kind == Expression::Kind::kName)
        source_.Fail(left.position,
                     IsBuiltIn(left.name) ? left.name + NotParameters(left.name) : UnknownOperator(left.name));
      return Binary(position, name, std::move(left), std::move(right));
    }
    return left;
  }

  Expression Sum() {
    Expression left = Product();
    while (IsSymbol("+") || IsSymbol("-")) {
      const Position position = token_.position;
      const char* name = IsSymbol("+") ? "plus" : "minus";
      Next();
      left = Binary(position, name, std::move(left), Product());
    }
    return left;
  }

  Expression Product() {
    Expression left = Unary();
    while (IsSymbol("*") || IsSymbol("/")) {
      const Position position = token_.position;
      const char* name = IsSymbol("*") ? "mul" : "div";
      Next();
      left = Binary(position, name, std::move(left), Unary());
    }
    return left;
  }

  Expression Unary() {
    const Depth guard(this);
    const Position position = token_.position;
    const char* name = IsSymbol("-") ? "negative" : IsSymbol("!") ? "logical_not" : nullptr;
    if (name == nullptr) return Postfix();
    Next();
    std::vector<Expression> operands;
    operands.push_back(Unary());
    return Call(position, name, std::move(operands));
  }

  Expression Postfix() {
    Expression value = Primary();
    while (IsSymbol(".")) {
      const Position position = token_.position;
      Next();
      if (!IsName("T")) Fail("expected 'T' (transpose) after '.'");
      Next();
      if (Accept("(")) Expect(")");
      std::vector<Expression> operands;
      operands.push_back(std::move(value));
      value = Call(position, "transpose", std::move(operands));
    }
    return value;
  }

  // What is wrong with what stands between < and > after the name of a call that takes something else there, or
  // nothing.
  static std::string NotParameters(const std::string& name) {
    const IndexMapInfo* map = FindIndexMap(name);
    return map != nullptr && map->sources == 0 ? " takes a dtype between < and >, or nothing: " + DTypeNames()
                                               : " takes nothing between < and >";
  }

  // A '<' after the name of a call that takes some opens parameters, after others it compares.
  bool OpensParameters(const std::string& name) const {
    if (!IsSymbol("<")) return false;
    const CallInfo* call = FindCall(name);
    if (call != nullptr) return call->parametrised();
    const IndexMapInfo* map = FindIndexMap(name);
    return !ReducersOf(name).empty() || (map != nullptr && map->sources == 0 && FindDType(ahead_.text));
  }

  Expression Primary() {
    const Position position = token_.position;
    Expression e;
    e.position = position;
    if (token_.kind == Token::Kind::kNumber) {
      e.number = token_.number;
      e.literal = token_.literal;
      Next();
      return e;
    }
    if (Accept("(")) {
      e = Expr();
      Expect(")");
      return e;
    }
    if (token_.kind != Token::Kind::kName)
      Fail(IsSymbol(">")   ? "expected an expression (a >> b is shift_right(a, b))"
           : IsSymbol("<") ? "expected an expression (a << b is shift_left(a, b))"
           : IsSymbol("*") ? "expected an expression (a ** b is pow(a, b))"
                           : "expected an expression");
    e.kind = Expression::Kind::kName;
    e.name = token_.text;
    Next();
    if (e.name == "std" && Accept("::")) e.name = Name("a function of std");
    if (OpensParameters(e.name)) {
      Expect("<");
      do {
        e.parameters.push_back(token_.text);
        if (token_.kind != Token::Kind::kName && token_.kind != Token::Kind::kNumber) Fail("expected a parameter");
        Next();
      } while (Accept(","));
      Expect(">");
      if (!IsSymbol("(")) Fail("expected '('");
    }
    if (!Accept("(")) return e;
    e.kind = Expression::Kind::kCall;
    if (!IsSymbol(")")) {
      do e.operands.push_back(Expr());
      while (Accept(","));
    }
    Expect(")");
    return Measured(std::move(e));
  }

  const SourceText& source_;
  Lexer lexer_;
  Token token_, ahead_;
  int depth_ = 0;
};

}  // namespace

FileAst ParseFile(const SourceText& source) { return Parser(source).File(); }

Statement ParseStatement(const SourceText& source) { return Parser(source).WholeStatement(); }

OperatorAst ParseOperator(std::string_view name, std::string_view args, std::string_view text) {
  OperatorAst op;
  op.name = name;
  const std::string where = fmt::format("UMBRA_OP({})", name);
  const SourceText argument_text(args, where), body_text(text, where);
  op.arguments = Parser(argument_text).ArgumentNames();
  op.body = Parser(body_text, Language::kCpp).WholeExpression();
  return op;
}

}  // namespace umbra::graph

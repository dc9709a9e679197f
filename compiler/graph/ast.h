// The syntax tree of the text form.
#ifndef UMBRA_COMPILER_GRAPH_AST_H_
#define UMBRA_COMPILER_GRAPH_AST_H_

#include <memory>
#include <string>
#include <vector>

#include "umbra/dtype.h"

namespace umbra::graph {

struct Position {
  int line = 1, column = 1;
};

/// How numbers that are written are computed with before they meet a tensor: as C++ does with such literals. Those of
/// the text form are kReal. The widest comes first: what C++ makes of two has its type.
enum class LiteralType { kReal, kFloat, kInteger };

struct Expression {
  enum class Kind { kNumber, kName, kCall };
  Kind kind = Kind::kNumber;
  Position position;
  double number = 0;
  LiteralType literal = LiteralType::kReal;  ///< of a number
  std::string name;  ///< of a name or of the operator called
  std::vector<std::string> parameters;  ///< between < and >
  std::vector<Expression> operands;
  bool conditional = false;  ///< is this call of select written as `a ? b : c`?
  int height = 0;  ///< of the calls below, one in the other
};

struct Type {
  DType dtype = DType::kFloat32;
  bool has_shape = false;
  std::vector<std::string> dims;  ///< a number, `?`, or the name of a dimension
};

struct Parameter {
  std::string name;
  Type type;
  Position position;
};

struct Statement {
  std::string name;
  Position position;
  Expression value;
};

/// `op name(a, b) = expression`
struct OperatorAst {
  std::string name;
  std::vector<std::string> arguments;
  Expression body;
};

struct KernelAst {
  std::string name;
  Position position;
  std::vector<Parameter> inputs, outputs;
  std::vector<Statement> statements;
};

struct FileAst {
  std::vector<OperatorAst> operators;
  std::vector<KernelAst> kernels;
};

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_AST_H_

// Text to syntax tree, by recursive descent.
#ifndef UMBRA_COMPILER_GRAPH_PARSER_H_
#define UMBRA_COMPILER_GRAPH_PARSER_H_

#include "compiler/graph/ast.h"
#include "compiler/graph/lexer.h"

namespace umbra::graph {

/// Throws ParseError.
FileAst ParseFile(const SourceText& source);
/// "name = expression", or an expression alone: then the name is empty.
Statement ParseStatement(const SourceText& source);
/// The tree of UMBRA_OP(name, args, text): args as "(a, b)", text as written in C++.
OperatorAst ParseOperator(std::string_view name, std::string_view args, std::string_view text);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_PARSER_H_

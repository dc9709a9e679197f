// Syntax tree to graph.
#ifndef UMBRA_COMPILER_GRAPH_LOWER_AST_H_
#define UMBRA_COMPILER_GRAPH_LOWER_AST_H_

#include "compiler/graph/ast.h"
#include "compiler/graph/compose.h"
#include "compiler/graph/lexer.h"

namespace umbra::graph {

/// The value of `op` at `operands`; `operators` are those of its file, which it may call.
Operand ApplyOperator(Composer* composer, const OperatorAst& op, const std::vector<Operand>& operands,
                      const std::vector<OperatorAst>& operators);

/// The graph of one kernel; errors are shown at their place in `source`.
Graph LowerKernel(const KernelAst& kernel, const std::vector<OperatorAst>& operators, const SourceText& source);

}  // namespace umbra::graph

#endif  // UMBRA_COMPILER_GRAPH_LOWER_AST_H_

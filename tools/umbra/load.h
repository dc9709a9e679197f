// What the commands take as a kernel.
#ifndef UMBRA_TOOLS_UMBRA_LOAD_H_
#define UMBRA_TOOLS_UMBRA_LOAD_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace umbra::tools {

/// Dtype and rank of what a name in an expression stands for; rank 0 is a number.
struct OperandType {
  DType dtype = DType::kFloat32;
  int rank = 0;
};
using OperandTypes = std::map<std::string, OperandType>;

/// Is it a .umb file, and not an expression?
bool IsFile(const std::string& input);

/// The kernel called `kernel` (or the only one) of the .umb file `input`; or, if `input` is no
/// file, of the expression that it is: "gelu(x + broadcast<1>(bias))" or "y = ...". Names that are
/// not in `types` are f32 matrices, operands of broadcast f32 vectors; an expression alone gives y.
std::shared_ptr<const graph::Graph> LoadKernel(const std::string& input, const std::string& kernel,
                                               const OperandTypes& types);

/// The same for a command that shows; `numbers` are the names in an expression that are f32 numbers. Throws
/// umbra::Error if it has no such operand, ParamError if a file is given some.
std::shared_ptr<const graph::Graph> LoadKernel(const std::string& input, const std::string& kernel,
                                               const std::vector<std::string>& numbers);

/// The text of a file, or of the kernel that an expression is; throws as LoadKernel does.
std::string KernelText(const std::string& input, const std::vector<std::string>& numbers);

/// The operands of a kernel, for messages: "x, bias, s".
std::string OperandNames(const graph::Graph& graph);

}  // namespace umbra::tools

#endif  // UMBRA_TOOLS_UMBRA_LOAD_H_

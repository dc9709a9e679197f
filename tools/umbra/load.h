// What the commands take as a kernel.
#ifndef UMBRA_TOOLS_UMBRA_LOAD_H_
#define UMBRA_TOOLS_UMBRA_LOAD_H_

#include <memory>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace umbra::tools {

/// The kernel called `kernel` (or the only one) of the .umb file `input`; or, if `input` is no
/// file, of the expression that it is: "gelu(x + broadcast<1>(bias))" or "y = ...". Free names are
/// f32 matrices of one shape, operands of broadcast are vectors, names in `scalars` are numbers.
std::shared_ptr<const graph::Graph> LoadKernel(const std::string& input, const std::string& kernel,
                                               const std::vector<std::string>& scalars);

}  // namespace umbra::tools

#endif  // UMBRA_TOOLS_UMBRA_LOAD_H_

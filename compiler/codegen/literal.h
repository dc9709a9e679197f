// The printer of literals in generated source.
#ifndef UMBRA_COMPILER_CODEGEN_LITERAL_H_
#define UMBRA_COMPILER_CODEGEN_LITERAL_H_

#include <string>

#include "compiler/graph/op.h"
#include "umbra/dtype.h"

namespace umbra::codegen {

/// A C++ literal of `type` that reads back as exactly `value` (rounded to the type), infinities,
/// NaN, -0 and the smallest integer included; negative ones are in parentheses.
std::string Literal(double value, DType type);

/// The literal that a reduction starts with and that leaves it unchanged.
std::string IdentityLiteral(graph::Reducer reducer, DType type);

/// The text of runtime::Padded(count).
std::string Padded(const std::string& count);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_LITERAL_H_

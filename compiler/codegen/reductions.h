// What generated sources call the parts of a reduction, whatever the dialect.
#ifndef UMBRA_COMPILER_CODEGEN_REDUCTIONS_H_
#define UMBRA_COMPILER_CODEGEN_REDUCTIONS_H_

#include <string>

#include "compiler/codegen/speller.h"
#include "compiler/plan/plan.h"

namespace umbra::codegen {

/// What a scanned value joins elements as; its result is the value itself.
plan::Reduction JoinedBy(const plan::Kernel& kernel, int scanned);

/// What it has come to before an element, by its reducer alone.
const char* CarryName(const plan::Reduction& scan);

/// A name for what a reduction adds up to: its label, or one that says what it does.
std::string AccumulatorName(const plan::Kernel& kernel, const plan::Reduction& reduction);

/// What leaves any other element as it is.
std::string Identity(const plan::Kernel& kernel, const plan::Reduction& reduction);

/// The class of the prelude that joins two elements.
const char* Joiner(const plan::Reduction& reduction);

/// The operator that does.
graph::Op JoinOp(const plan::Reduction& reduction);

/// `total` joined with the newcomer `element`.
std::string Join(const Speller& speller, const plan::Kernel& kernel, const plan::Reduction& reduction,
                 const Expr& total, const Expr& element);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_REDUCTIONS_H_

// Why a plan is as it is.
#ifndef UMBRA_COMPILER_PLAN_EXPLAIN_H_
#define UMBRA_COMPILER_PLAN_EXPLAIN_H_

#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Every value that was weighed and why it is in memory or not, every step with its points, bytes and
/// operations, what runs as one, and why neighbours are apart; as `umbra explain` prints it. `symbols` are the
/// dynamic extents, in the order of plan.symbols; a negative one is not known and taken to be kAssumedExtent. `target`
/// is the instruction set of its kernels, as runtime::FastestWay has it; empty: GPUs.
std::string Explain(const Plan& plan, const std::vector<index_t>& symbols, std::string_view target);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_EXPLAIN_H_

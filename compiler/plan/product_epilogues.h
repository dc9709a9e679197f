// Products of matrices whose reader a GPU's library computes with them.
#ifndef UMBRA_COMPILER_PLAN_PRODUCT_EPILOGUES_H_
#define UMBRA_COMPILER_PLAN_PRODUCT_EPILOGUES_H_

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Gives each product whose result one kernel alone reads, and turns into what an epilogue of cuBLASLt computes, that
/// epilogue (runtime::ProductEpilogue), and each other product that a kernel follows the reason why it has none.
/// `fast`: epilogues that differ from what is written in more than the rounding of the product, too. A launch runs the
/// product with its epilogue, or the two steps. Where an epilogue lacks no more than a function that is the same of a
/// rounded number, as relu of 16-bit results is, a step of that follows the product.
void AddEpilogues(Plan* plan, bool fast);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_PRODUCT_EPILOGUES_H_

// How a plan computes its products.
#ifndef UMBRA_TESTS_SUPPORT_PRODUCT_PLANS_H_
#define UMBRA_TESTS_SUPPORT_PRODUCT_PLANS_H_

#include <algorithm>
#include <variant>

#include "compiler/plan/plan.h"

namespace umbra {

// The kernel that a launch may run instead of the product of the plan; null if there is none.
inline const plan::Kernel* Alternative(const plan::Plan& plan) {
  for (const auto& step : plan.steps)
    if (const auto* kernel = std::get_if<plan::Kernel>(&step); kernel != nullptr && !kernel->signature.replaces.empty())
      return kernel;
  return nullptr;
}

inline bool CallsBlas(const plan::Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [](const auto& step) { return std::holds_alternative<plan::Gemm>(step); });
}

}  // namespace umbra

#endif  // UMBRA_TESTS_SUPPORT_PRODUCT_PLANS_H_

// A mean and a variance, or what else is made of two sums over the same elements: one pass over memory tells both.
#ifndef UMBRA_COMPILER_PLAN_MOMENTS_H_
#define UMBRA_COMPILER_PLAN_MOMENTS_H_

#include <optional>

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// The first two phases of a kernel, each of which sums alone: the first values, the second the squares of what they
/// are away from a center.
struct Moments {
  int value = 0;  ///< the element value that is summed
  int center = 0;  ///< a value of the row, of which only the first sum tells it
  int squares = 0;  ///< the result of the second sum
};

/// What the kernel is, if it is that, in f32 or f64. Of any part of the elements, their number, their mean and the sum
/// of the squares of what each is away from it tell what the part adds to the second sum, whatever the center is.
std::optional<Moments> FindMoments(const Kernel& kernel);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_MOMENTS_H_

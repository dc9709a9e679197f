// Integers that 16 bits hold.
#ifndef UMBRA_COMPILER_PLAN_NARROW_INTEGERS_H_
#define UMBRA_COMPILER_PLAN_NARROW_INTEGERS_H_

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// The kernel with what it computes as i32 in i16, of which a register has twice as many, if all of that is made of
/// narrower integers and is known to fit: pictures of u8 that are added, scaled and compared. No number is another one:
/// what might wrap around stays i32. A kernel that computes anything wider, or reduces to anything but extremes of 8
/// bits, is left as it is.
Kernel WithNarrowIntegers(const Plan& plan, const Kernel& kernel);

/// May packets have as many lanes as a register has of i16, since they have nothing wider? Of a kernel that
/// WithNarrowIntegers gives, or that moves integers and conditions.
bool HasNarrowPackets(const Plan& plan, const Kernel& kernel);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_NARROW_INTEGERS_H_

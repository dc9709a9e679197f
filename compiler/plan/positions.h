// Positions are i64 values of a plan, which take several times as long as i32 on GPUs, and twice as many registers in
// packets: where a launch finds that 32 bits hold them, it takes a variant that computes them as i32.
#ifndef UMBRA_COMPILER_PLAN_POSITIONS_H_
#define UMBRA_COMPILER_PLAN_POSITIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/plan/plan.h"

namespace umbra::plan {

/// Lists in the signatures of the kernels the i64 values that are made of indices, extents and constants alone, or are
/// data between two such values: those of which a launch can tell how large they get. After all passes that move axes.
void FindPositions(Plan* plan);

/// Is the value made of indices, extents and constants alone? Such positions are far from the ends of i64.
bool IsOfPositions(const Kernel& kernel, int id);

/// By how much the position grows with each index of the axis: 0 of one that does not move along it, nothing of one
/// that is made otherwise than by sums, differences and products with numbers.
std::optional<std::int64_t> StepAlong(const Kernel& kernel, int id, int axis);

/// Which of them are i32.
enum class Narrowed {
  kAll,  ///< each of them
  kPackets,  ///< what data choose for each lane, as argmax is made of, what that is reduced to, and what becomes a
             ///< float
};

/// `kernel` with such positions as i32 values; what else reads one has it as i64. Where values are
/// made anew, `became` has what each of `kernel` has become: of both widths the narrow one.
Kernel WithNarrowPositions(const Kernel& kernel, Narrowed narrowed, std::vector<int>* became = nullptr);

}  // namespace umbra::plan

#endif  // UMBRA_COMPILER_PLAN_POSITIONS_H_

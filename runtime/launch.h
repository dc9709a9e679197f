// Launching one kernel: how its loops are laid over the operands' memory and over threads.
#ifndef UMBRA_RUNTIME_LAUNCH_H_
#define UMBRA_RUNTIME_LAUNCH_H_

#include <algorithm>
#include <string_view>
#include <vector>

#include "umbra/function.h"

namespace umbra::runtime {

/// A kernel call with everything decided but the base pointers: strides and extents after merging
/// axes, the variant, the split over threads.
struct LaunchPlan {
  umbra_kernel_fn function = nullptr;
  std::vector<index_t> stride;  ///< operand-major, as umbra_args wants it
  std::vector<index_t> extent;
  std::size_t scratch_bytes = 0;
  long long prefetch_ahead = 0;  ///< as umbra_args wants it
  double work = 0;  ///< in additions
  std::size_t axis = 0;  ///< that threads share out: axis 0, or one of more indices if that has few
  std::size_t from =
      0;  ///< where in `extent` it stands where a range of that axis begins; 0: nowhere, operands begin there
  int parts = 1;  ///< ranges of it that may run at the same time
  int pieces = 1;  ///< ranges of it that are taken one after the other, by the threads that are free, or by one
  index_t granule = 1;  ///< ranges are multiples of this
  /// An elementwise kernel over memory without gaps runs as rows of one length and this many
  /// elements left over.
  index_t remainder = 0;
  std::size_t remainder_axis = 0;  ///< along which these lie
  std::vector<index_t> remainder_offset;  ///< in elements, by operand
  /// Of a kernel with few rows: how many times all blocks of its rows are gone through; else 0. `extent` ends with
  /// the phase, the number of blocks of a row and the lengths of blocks.
  int phases = 0;
  index_t units = 0;  ///< blocks of all rows
  index_t together = 0;  ///< blocks that one parallel region runs: those of a row, so that it stays in the caches,
                         ///< or all if there is one phase
  std::size_t phase = 0;  ///< where in `extent` the phase stands
};

/// Ranges of `granule` indices that the axis can be cut into.
inline index_t Units(const LaunchPlan& plan) {
  return std::max<index_t>(1, (plan.extent[plan.axis] + plan.granule - 1) / plan.granule);
}

/// Of `threads`, those that pay for so much work, in additions.
int UsefulThreads(double work, int threads);

/// The code of a variant of `step`, made by the step's provider if this is the first call that needs it.
umbra_kernel_fn CodeOf(const KernelStep& step, const Variant& variant);

/// Decides a launch of `step` on `buffers` (all of the program, in order), or of a block of `rows` indices
/// of its axis 0, which begins where the base pointers say; `target`: what the kernel is compiled for, or empty for
/// what this CPU runs.
LaunchPlan PrepareLaunch(const KernelStep& step, const std::vector<TensorRef>& buffers,
                         const std::vector<index_t>& symbols, int threads, index_t rows = -1,
                         std::string_view target = {});

/// Runs it. `data` are base pointers by operand of the kernel.
void Launch(const LaunchPlan& plan, void* const* data, const std::vector<std::size_t>& element_size,
            const umbra_scalar* scalars);

/// A launch with its operands, for running several as one.
struct LaunchCall {
  const LaunchPlan* plan;
  void* const* data;
  const std::vector<std::size_t>* element_size;
  const umbra_scalar* scalars;
};

/// Runs launches that do not depend on each other in one parallel region: each thread gets an equal share
/// of the work of all.
void LaunchTogether(const std::vector<LaunchCall>& calls, int threads);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_LAUNCH_H_

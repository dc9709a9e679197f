// Launching one kernel: how its loops are laid over the operands' memory and over threads.
#ifndef UMBRA_RUNTIME_LAUNCH_H_
#define UMBRA_RUNTIME_LAUNCH_H_

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
  int parts = 1;        ///< ranges of axis 0 that may run at the same time
  index_t granule = 1;  ///< ranges are multiples of this
  /// An elementwise kernel over memory without gaps runs as rows of one length and this many
  /// elements left over.
  index_t remainder = 0;
  std::vector<index_t> remainder_offset;  ///< in elements, by operand
};

/// The code of a variant of `step`, made by the step's provider if this is the first call that needs it.
umbra_kernel_fn CodeOf(const KernelStep& step, const Variant& variant);

/// Decides a launch of `step` on `buffers` (all of the program, in order).
LaunchPlan PrepareLaunch(const KernelStep& step, const std::vector<TensorRef>& buffers,
                         const std::vector<index_t>& symbols, int threads);

/// Runs it. `data` are base pointers by operand of the kernel.
void Launch(const LaunchPlan& plan, void* const* data, const std::vector<std::size_t>& element_size,
            const umbra_scalar* scalars);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_LAUNCH_H_

// A place in a program that runs one program for GPUs again and again: what was decided for the shapes
// of one call is kept for the next, the loaded kernels included.
#ifndef UMBRA_CUDA_CALL_SITE_H_
#define UMBRA_CUDA_CALL_SITE_H_

#include <memory>

#include "umbra/call_site.h"
#include "umbra/cuda.h"

namespace umbra::runtime {

/// The counterpart of CallSite for programs on a GPU. Thread-safe.
class CudaCallSite {
 public:
  /// A place that runs `program`, which is compiled for GPUs and must not be null.
  explicit CudaCallSite(std::shared_ptr<const Program> program);
  CudaCallSite(const CudaCallSite&) = delete;
  CudaCallSite& operator=(const CudaCallSite&) = delete;

  /// Puts the steps of the program into `stream` and returns: nothing is waited for. The data of the operands are
  /// device addresses, in the order of the program's buffers, all of them: inputs, then outputs. Errors are those of
  /// runtime::Run.
  void Run(void* const* data, Layout layout, const umbra_scalar* scalars, cuda::StreamHandle stream);
  /// The same for operands of which nothing has been checked, in options.stream.
  void Run(const Arguments& arguments, const RunOptions& options);

  struct State;

 private:
  std::shared_ptr<State> state_;
};

/// Runs a program for GPUs once, in options.stream.
void RunOnGpu(const Program& program, const Arguments& arguments, const RunOptions& options);

}  // namespace umbra::runtime

#endif  // UMBRA_CUDA_CALL_SITE_H_

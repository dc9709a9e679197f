// A step of a program with everything decided but the addresses.
#ifndef UMBRA_RUNTIME_CUDA_PROGRAM_H_
#define UMBRA_RUNTIME_CUDA_PROGRAM_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda_kernel.h"
#include "umbra/cuda_gemm.h"
#include "umbra/cuda_launch.h"

namespace umbra::runtime {

/// A kernel or a product of matrices, ready to be launched on any addresses of the alignment it was prepared for.
class CudaStep {
 public:
  /// `buffers` are those of the program; of temporaries the data only tell how they are aligned.
  CudaStep(const KernelStep& step, const std::vector<TensorRef>& buffers, const std::vector<index_t>& symbols,
           const cuda::DeviceProperties& device);
  CudaStep(const GemmStep& step, const std::vector<TensorRef>& buffers, const std::string& program);
  /// The product with its epilogue, which it has; nothing if these operands rule it out.
  static std::optional<CudaStep> WithEpilogue(const GemmStep& step, const std::vector<TensorRef>& buffers,
                                              const std::string& program);
  /// The product, with its epilogue or without, and the kernel behind it, which reads the product's rows where it
  /// stores, by pieces of rows that a device's cache holds: a kernel's piece is IsAside. Nothing if all fits the cache,
  /// or the kernel goes about the rows in another way.
  static std::vector<CudaStep> InPieces(const GemmStep& product, bool is_whole, const KernelStep& kernel,
                                        const std::vector<TensorRef>& buffers, const std::vector<index_t>& symbols,
                                        const std::string& program, const cuda::DeviceProperties& device);
  /// May the step run beside the product that follows? It needs what comes before it.
  bool IsAside() const { return aside_; }
  /// Is it such a product?
  bool GoesOn() const { return goes_on_; }
  /// Has cuBLASLt this product? Nothing if it does not say now.
  std::optional<bool> IsThere(const std::vector<TensorRef>& buffers, cuda::StreamHandle stream) const;

  /// Makes those of `steps`, of which none needs another, one step that run equal code on little.
  static std::vector<CudaStep> Joined(const std::vector<CudaStep>& steps, const cuda::DeviceProperties& device);

  /// Makes or finds the code, which may take a compile.
  void MakeCode(const cuda::DeviceProperties& device);
  std::size_t scratch_bytes() const { return launch_.scratch_bytes; }
  /// `data` are the addresses of the program's buffers, `scratch` those of scratch_bytes() bytes.
  void Launch(void* const* data, const umbra_scalar* scalars, void* scratch, cuda::StreamHandle stream) const;

 private:
  CudaStep() = default;
  CudaStep(const KernelSignature& signature, std::shared_ptr<const CudaKernel> kernel,
           const std::vector<TensorRef>& buffers, const std::vector<index_t>& symbols,
           const cuda::DeviceProperties& device);
  bool JoinsWith(const CudaStep& other) const;
  // One step that runs all, of which each joins with the first.
  static CudaStep Join(const std::vector<const CudaStep*>& steps);
  // What the code for several launches of this one, or for many, is known by; empty if there is none.
  std::string IdentityOfSeveral(bool many) const;
  // The product of the buffers whose addresses `at` gives.
  template <typename At>
  cuda::Gemm ProductOf(const At& at) const;

  // Of a kernel, or of several launches of one.
  std::shared_ptr<const CudaKernel> kernel_;
  CudaLaunch launch_;
  CudaPasses passes_;
  struct Word {
    std::size_t at = 0;  // in arguments_
    int from = 0;  // buffer or scalar
    std::size_t offset = 0;  // bytes from where the buffer begins
  };
  std::vector<Word> addresses_, scalars_;
  std::vector<std::uint64_t> arguments_;  // all but these; the last is the address of scratch
  // Of a product.
  cuda::Gemm gemm_;
  int a_ = 0, b_ = 0, c_ = 0, bias_ = -1;  // buffers
  std::size_t a_offset_ = 0, c_offset_ = 0;  // bytes from where these begin
  int scalar_ = -1;  // a factor of the product
  bool aside_ = false, goes_on_ = false;
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_CUDA_PROGRAM_H_

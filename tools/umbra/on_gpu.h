// Dense operands of a call, copied to the memory of a GPU and back.
#ifndef UMBRA_TOOLS_UMBRA_ON_GPU_H_
#define UMBRA_TOOLS_UMBRA_ON_GPU_H_

#include <memory>
#include <vector>

#include "umbra/cuda.h"
#include "umbra/function.h"

namespace umbra::tools {

class OnGpu {
 public:
  runtime::Arguments arguments;  ///< as the GPU takes them

  explicit OnGpu(const runtime::Arguments& host) : arguments(host), host_(host) {
    for (runtime::TensorRef& tensor : arguments.inputs) {
      const void* const from = tensor.data;
      Allocate(&tensor);
      Copy(cuda::CopyKind::kHostToDevice, tensor.data, from, tensor);
    }
    for (runtime::TensorRef& tensor : arguments.outputs) Allocate(&tensor);
  }

  /// Waits for the call and copies the outputs to the host's.
  void CopyBack() const {
    for (std::size_t k = 0; k < arguments.outputs.size(); ++k)
      Copy(cuda::CopyKind::kDeviceToHost, host_.outputs[k].data, arguments.outputs[k].data, arguments.outputs[k]);
  }

 private:
  static std::size_t Bytes(const runtime::TensorRef& tensor) {
    std::size_t bytes = SizeOf(tensor.dtype);
    for (const index_t extent : tensor.shape) bytes *= static_cast<std::size_t>(extent);
    return bytes;
  }
  void Allocate(runtime::TensorRef* tensor) {
    std::size_t pitch = 0;
    memory_.emplace_back(cuda::Allocate(Bytes(*tensor), 1, &pitch), cuda::Free);
    tensor->data = memory_.back().get();
  }
  static void Copy(cuda::CopyKind kind, void* dst, const void* src, const runtime::TensorRef& tensor) {
    const std::size_t bytes = Bytes(tensor);
    if (bytes > 0) cuda::Copy(kind, dst, bytes, src, bytes, bytes, 1, nullptr);
  }

  const runtime::Arguments& host_;
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory_;
};

}  // namespace umbra::tools

#endif  // UMBRA_TOOLS_UMBRA_ON_GPU_H_

// A compiled kernel on the GPU: loaded to each device at its first launch there.
#ifndef UMBRA_RUNTIME_CUDA_KERNEL_H_
#define UMBRA_RUNTIME_CUDA_KERNEL_H_

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda_image.h"
#include "umbra/cuda.h"
#include "umbra/cuda_launch.h"

namespace umbra::cuda {

/// How many threads a launch has and what they share.
struct LaunchShape {
  std::array<unsigned, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  unsigned shared_bytes = 0;  ///< dynamic shared memory of a block
};

/// What a kernel takes of a device.
struct KernelResources {
  int registers = 0;  ///< of a thread
  std::size_t local_bytes = 0;  ///< of a thread: spilled registers and arrays
  std::size_t static_shared_bytes = 0;
};

/// `__global__ void name(const name_args args)` in one of several images. Copies share what is loaded. Thread-safe.
class Kernel {
 public:
  /// `images` for any number of architectures; the one for a device is picked when it is first launched there.
  Kernel(const std::string& name, std::vector<Image> images);

  /// Puts a launch into `stream`, with the argument struct's bytes, which are copied. Throws umbra::Error, naming the
  /// kernel, if no image fits the device, the image cannot be loaded, or the launch does not fit the device.
  void Launch(const LaunchShape& shape, const void* arguments, std::size_t argument_bytes, StreamHandle stream) const;

  KernelResources Resources(int device) const;
  /// How many blocks of so many threads run on a multiprocessor at once.
  int BlocksPerMultiprocessor(int device, int threads, std::size_t shared_bytes) const;

  const std::string& name() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace umbra::cuda

namespace umbra::runtime {

/// The loadable code of one variant: the kernel, and NAME_finish where the form has a second pass.
using CudaPasses = std::vector<cuda::Kernel>;

/// How a GPU runs a kernel of a program.
struct CudaKernel {
  CudaSchedule schedule;
  /// Makes a variant's code for devices of compute capability `major`.`minor`. Thread-safe; may throw umbra::Error.
  std::function<CudaPasses(const CudaVariant&, int major, int minor)> code;
  /// What code a variant has: kernels of equal code, whose launches one can run, say the same. Empty: none for several
  /// launches. Thread-safe.
  std::function<std::string(const CudaVariant&)> identity;
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_CUDA_KERNEL_H_

// The functions of CUDA's runtime that the host part of an emitted .cu calls, for the host, behind cuda_emulator.h: a
// launch is recorded and run.
#include <tuple>

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned across = 1, unsigned down = 1, unsigned deep = 1) : x(across), y(down), z(deep) {}
};
typedef void* cudaStream_t;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorLaunchFailure = 719 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };

namespace cuda_runtime {

// As the test has it.
struct Recorded {
  unsigned grid[3], block[3];
  unsigned long long shared, arguments[256], argument_bytes;
  int launches;
  bool dry;  // nothing is run
};
inline Recorded* recorded = nullptr;
inline long long shared_asked = 0;

// Calls a function with parameters whose addresses are given.
template <typename... P>
cudaError_t Call(cudaError_t (*function)(P...), const void* const* addresses) {
  std::tuple<P...> values;
  std::apply(
      [&](P&... value) {
        std::size_t at = 0;
        ((value = *static_cast<P const*>(addresses[at++])), ...);
      },
      values);
  return std::apply(function, values);
}

}  // namespace cuda_runtime

inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = 232448, cudaSuccess; }

template <typename Args>
cudaError_t cudaFuncSetAttribute(void (*)(Args), cudaFuncAttribute, int bytes) {
  cuda_runtime::shared_asked = bytes;
  return cudaSuccess;
}

template <typename Args>
cudaError_t cudaLaunchKernel(void (*kernel)(Args), dim3 grid, dim3 block, void** entries, std::size_t shared,
                             cudaStream_t) {
  using cuda_runtime::recorded;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || shared > 232448 ||
      (shared + 8192 > 49152 && cuda_runtime::shared_asked < (long long)shared))
    return cudaErrorInvalidValue;
  cuda_runtime::shared_asked = 0;
  const Args& args = *static_cast<const Args*>(entries[0]);
  *recorded = {{grid.x, grid.y, grid.z},
               {block.x, block.y, block.z},
               shared,
               {},
               sizeof args,
               recorded->launches + 1,
               recorded->dry};
  std::memcpy(recorded->arguments, &args, sizeof args);
  if (recorded->dry) return cudaSuccess;
  const std::string said =
      emulator::Launch({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, false, [&] { kernel(args); });
  return said.empty() ? cudaSuccess : cudaErrorLaunchFailure;
}

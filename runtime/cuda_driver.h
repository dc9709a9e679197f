// The CUDA driver, opened at run time: the functions that Umbra calls, and its errors.
#ifndef UMBRA_RUNTIME_CUDA_DRIVER_H_
#define UMBRA_RUNTIME_CUDA_DRIVER_H_

#include <cstddef>
#include <string>

namespace umbra::cuda {

// The driver's binary interface, as its documentation gives it.
using Result = int;                        // CUresult; 0 is success
using Device = int;                        // CUdevice
using Context = struct ContextHandle*;     // CUcontext
using DevicePointer = unsigned long long;  // CUdeviceptr
inline constexpr Result kSuccess = 0, kNotReady = 600;
inline constexpr unsigned kHostMemory = 1, kDeviceMemory = 2, kNonBlockingStream = 1;

struct Memcpy2D {  // CUDA_MEMCPY2D
  std::size_t src_x = 0, src_y = 0;
  unsigned src_type = 0;
  const void* src_host = nullptr;
  DevicePointer src_device = 0;
  void* src_array = nullptr;
  std::size_t src_pitch = 0;
  std::size_t dst_x = 0, dst_y = 0;
  unsigned dst_type = 0;
  void* dst_host = nullptr;
  DevicePointer dst_device = 0;
  void* dst_array = nullptr;
  std::size_t dst_pitch = 0;
  std::size_t width = 0, height = 0;
};

/// The entry points of libcuda.
struct Driver {
  std::string name;     ///< of the library; empty if there is none
  std::string problem;  ///< why not
#define UMBRA_CUDA_FUNCTIONS(F)                                                             \
  F(cuInit, (unsigned))                                                                     \
  F(cuDriverGetVersion, (int*))                                                             \
  F(cuGetErrorName, (Result, const char**))                                                 \
  F(cuGetErrorString, (Result, const char**))                                               \
  F(cuDeviceGetCount, (int*))                                                               \
  F(cuDeviceGet, (Device*, int))                                                            \
  F(cuDeviceGetName, (char*, int, Device))                                                  \
  F(cuDevicePrimaryCtxRetain, (Context*, Device))                                           \
  F(cuCtxSetCurrent, (Context))                                                             \
  F(cuMemAlloc_v2, (DevicePointer*, std::size_t))                                           \
  F(cuMemAllocPitch_v2, (DevicePointer*, std::size_t*, std::size_t, std::size_t, unsigned)) \
  F(cuMemFree_v2, (DevicePointer))                                                          \
  F(cuMemcpyHtoDAsync_v2, (DevicePointer, const void*, std::size_t, void*))                 \
  F(cuMemcpyDtoHAsync_v2, (void*, DevicePointer, std::size_t, void*))                       \
  F(cuMemcpyDtoDAsync_v2, (DevicePointer, DevicePointer, std::size_t, void*))               \
  F(cuMemcpy2DAsync_v2, (const Memcpy2D*, void*))                                           \
  F(cuStreamCreate, (void**, unsigned))                                                     \
  F(cuStreamDestroy_v2, (void*))                                                            \
  F(cuStreamSynchronize, (void*))                                                           \
  F(cuStreamQuery, (void*))
#define UMBRA_DECLARE_CUDA_FUNCTION(function, arguments) Result(*function) arguments = nullptr;
  UMBRA_CUDA_FUNCTIONS(UMBRA_DECLARE_CUDA_FUNCTION)
#undef UMBRA_DECLARE_CUDA_FUNCTION
};

/// The driver of this process, opened at the first call; `problem` says why there is none. Does not throw.
const Driver& FindDriver() noexcept;
/// The driver, ready for use. Throws umbra::Error, with what to do, if there is none.
const Driver& UseDriver();
/// Throws umbra::Error with the driver's own words unless `result` is success.
void Check(Result result, const char* function, const std::string& doing);

}  // namespace umbra::cuda

#endif  // UMBRA_RUNTIME_CUDA_DRIVER_H_

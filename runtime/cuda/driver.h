// The CUDA driver, opened at run time: the functions that Umbra calls, and its errors.
#ifndef UMBRA_RUNTIME_CUDA_DRIVER_H_
#define UMBRA_RUNTIME_CUDA_DRIVER_H_

#include <cstddef>
#include <string>

#include "runtime/opened_library.h"

namespace umbra::cuda {

// The driver's binary interface, as its documentation gives it (CUDA 12 and 13 agree on what is here).
using Result = int;  // CUresult; 0 is success
using Device = int;  // CUdevice
using Context = struct ContextHandle*;  // CUcontext
using Module = struct ModuleHandle*;  // CUmodule
using Function = struct FunctionHandle*;  // CUfunction
using MemoryPool = struct PoolHandle*;  // CUmemoryPool
using DevicePointer = unsigned long long;  // CUdeviceptr

inline constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kDeinitialized = 4, kNoBinaryForGpu = 209,
                        kInvalidPtx = 218, kUnsupportedPtxVersion = 222, kNotFound = 500, kNotReady = 600,
                        kLaunchOutOfResources = 701;
inline constexpr unsigned kHostMemory = 1, kDeviceMemory = 2;
inline constexpr unsigned kEventWithoutTiming = 2, kPortableHostMemory = 1;
inline constexpr int kCaptureRelaxed = 2;

enum DeviceAttribute {
  kMaxThreadsPerBlock = 1,
  kMaxGridX = 5,
  kMaxGridY = 6,
  kMaxGridZ = 7,
  kSharedPerBlock = 8,
  kWarpSize = 10,
  kMultiprocessors = 16,
  kL2Bytes = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kMajor = 75,
  kMinor = 76,
  kSharedPerMultiprocessor = 81,
  kRegistersPerMultiprocessor = 82,
  kSharedPerBlockOptIn = 97,
  kMaxBlocksPerMultiprocessor = 106,
  kMemoryPoolsSupported = 115,
};
enum PointerAttribute { kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9 };
enum FunctionAttribute { kStaticSharedBytes = 1, kLocalBytes = 3, kRegisters = 4, kMaxDynamicSharedBytes = 8 };
enum PoolAttribute { kReuseAllowInternalDependencies = 3, kReleaseThreshold = 4, kReservedBytes = 5 };
enum JitOption { kErrorLog = 5, kErrorLogBytes = 6 };

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

struct PeerCopySide {  // one half of CUDA_MEMCPY3D_PEER
  std::size_t x = 0, y = 0, z = 0, level = 0;
  unsigned type = kDeviceMemory;
  void* host = nullptr;
  DevicePointer device = 0;
  void* array = nullptr;
  Context context = nullptr;
  std::size_t pitch = 0, height = 0;
};
struct Memcpy3DPeer {  // CUDA_MEMCPY3D_PEER
  PeerCopySide src, dst;
  std::size_t width = 0, height = 0, depth = 1;
};

struct MemoryLocation {  // CUmemLocation
  int type = 1;  // a device
  int id = 0;
};
struct PoolProperties {  // CUmemPoolProps
  int allocation_type = 1;  // pinned, the only one
  int handle_types = 0;
  MemoryLocation location;
  void* security = nullptr;
  std::size_t max_size = 0;
  unsigned char reserved[56] = {};
};
struct AccessDescription {  // CUmemAccessDesc
  MemoryLocation location;
  int flags = 3;  // read and write
};

/// The entry points of libcuda.
struct Driver : runtime::OpenedLibrary {
#define UMBRA_CUDA_FUNCTIONS(F)                                                                      \
  F(cuInit, (unsigned))                                                                              \
  F(cuDriverGetVersion, (int*))                                                                      \
  F(cuGetErrorName, (Result, const char**))                                                          \
  F(cuGetErrorString, (Result, const char**))                                                        \
  F(cuDeviceGetCount, (int*))                                                                        \
  F(cuDeviceGet, (Device*, int))                                                                     \
  F(cuDeviceGetName, (char*, int, Device))                                                           \
  F(cuDeviceGetAttribute, (int*, int, Device))                                                       \
  F(cuDeviceTotalMem_v2, (std::size_t*, Device))                                                     \
  F(cuDeviceCanAccessPeer, (int*, Device, Device))                                                   \
  F(cuDevicePrimaryCtxRetain, (Context*, Device))                                                    \
  F(cuCtxGetCurrent, (Context*))                                                                     \
  F(cuCtxSetCurrent, (Context))                                                                      \
  F(cuCtxSynchronize, ())                                                                            \
  F(cuMemGetInfo_v2, (std::size_t*, std::size_t*))                                                   \
  F(cuMemPoolCreate, (MemoryPool*, const PoolProperties*))                                           \
  F(cuMemPoolSetAttribute, (MemoryPool, int, void*))                                                 \
  F(cuMemPoolGetAttribute, (MemoryPool, int, void*))                                                 \
  F(cuMemPoolSetAccess, (MemoryPool, const AccessDescription*, std::size_t))                         \
  F(cuMemPoolTrimTo, (MemoryPool, std::size_t))                                                      \
  F(cuMemAllocFromPoolAsync, (DevicePointer*, std::size_t, MemoryPool, void*))                       \
  F(cuMemFreeAsync, (DevicePointer, void*))                                                          \
  F(cuMemFree_v2, (DevicePointer))                                                                   \
  F(cuMemHostAlloc, (void**, std::size_t, unsigned))                                                 \
  F(cuMemFreeHost, (void*))                                                                          \
  F(cuPointerGetAttributes, (unsigned, int*, void**, DevicePointer))                                 \
  F(cuMemcpyHtoDAsync_v2, (DevicePointer, const void*, std::size_t, void*))                          \
  F(cuMemcpyDtoHAsync_v2, (void*, DevicePointer, std::size_t, void*))                                \
  F(cuMemcpyDtoDAsync_v2, (DevicePointer, DevicePointer, std::size_t, void*))                        \
  F(cuMemcpy2DAsync_v2, (const Memcpy2D*, void*))                                                    \
  F(cuMemcpyPeerAsync, (DevicePointer, Context, DevicePointer, Context, std::size_t, void*))         \
  F(cuMemcpy3DPeerAsync, (const Memcpy3DPeer*, void*))                                               \
  F(cuMemsetD2D8Async, (DevicePointer, std::size_t, unsigned char, std::size_t, std::size_t, void*)) \
  F(cuStreamCreate, (void**, unsigned))                                                              \
  F(cuStreamDestroy_v2, (void*))                                                                     \
  F(cuStreamSynchronize, (void*))                                                                    \
  F(cuStreamQuery, (void*))                                                                          \
  F(cuStreamWaitEvent, (void*, void*, unsigned))                                                     \
  F(cuStreamBeginCapture_v2, (void*, int))                                                           \
  F(cuStreamEndCapture, (void*, void**))                                                             \
  F(cuEventCreate, (void**, unsigned))                                                               \
  F(cuEventRecord, (void*, void*))                                                                   \
  F(cuEventQuery, (void*))                                                                           \
  F(cuEventSynchronize, (void*))                                                                     \
  F(cuEventElapsedTime, (float*, void*, void*))                                                      \
  F(cuEventDestroy_v2, (void*))                                                                      \
  F(cuGraphInstantiateWithFlags, (void**, void*, unsigned long long))                                \
  F(cuGraphLaunch, (void*, void*))                                                                   \
  F(cuGraphExecDestroy, (void*))                                                                     \
  F(cuGraphDestroy, (void*))                                                                         \
  F(cuModuleLoadDataEx, (Module*, const void*, unsigned, int*, void**))                              \
  F(cuModuleUnload, (Module))                                                                        \
  F(cuModuleGetFunction, (Function*, Module, const char*))                                           \
  F(cuFuncGetAttribute, (int*, int, Function))                                                       \
  F(cuFuncSetAttribute, (Function, int, int))                                                        \
  F(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int*, Function, int, std::size_t))                 \
  F(cuLaunchKernel,                                                                                  \
    (Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**))
#define UMBRA_DECLARE_CUDA_FUNCTION(function, arguments) Result(*function) arguments = nullptr;
  UMBRA_CUDA_FUNCTIONS(UMBRA_DECLARE_CUDA_FUNCTION)
#undef UMBRA_DECLARE_CUDA_FUNCTION
};

/// The driver of this process, opened at the first call; `problem` says why there is none. Does not throw.
const Driver& FindDriver() noexcept;
/// The driver, ready for use. Throws umbra::Error, with what to do, if there is none.
const Driver& UseDriver();
/// The driver's name and text of an error, and its number.
std::string Words(Result result);

}  // namespace umbra::cuda

#endif  // UMBRA_RUNTIME_CUDA_DRIVER_H_

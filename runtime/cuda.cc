#include "umbra/cuda.h"

#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda_driver.h"
#include "umbra/error.h"

namespace umbra::cuda {

namespace {

thread_local int current_device = 0;

// The primary context of each device, which other libraries of the process share.
Context ContextOf(const Driver& driver, int device) {
  static std::mutex mutex;
  static std::vector<Context> contexts;
  const std::lock_guard lock(mutex);
  const auto index = static_cast<std::size_t>(device);
  if (contexts.size() <= index) contexts.resize(index + 1);
  if (contexts[index] == nullptr) {
    Device handle = 0;
    Check(driver.cuDeviceGet(&handle, device), "cuDeviceGet", "using GPU " + std::to_string(device));
    Check(driver.cuDevicePrimaryCtxRetain(&contexts[index], handle), "cuDevicePrimaryCtxRetain",
          "using GPU " + std::to_string(device));
  }
  return contexts[index];
}

// The driver, with the calling thread's device current.
const Driver& Enter(const char* doing) {
  const Driver& driver = UseDriver();
  Require(DeviceCount() > 0, doing, ": the machine has a CUDA driver but no GPU");
  Check(driver.cuCtxSetCurrent(ContextOf(driver, current_device)), "cuCtxSetCurrent", doing);
  return driver;
}

DevicePointer Address(const void* memory) { return reinterpret_cast<DevicePointer>(memory); }

}  // namespace

int DeviceCount() noexcept {
  const Driver& driver = FindDriver();
  int count = 0;
  return !driver.name.empty() && driver.cuDeviceGetCount(&count) == kSuccess ? count : 0;
}

int CurrentDevice() noexcept { return current_device; }

void SetDevice(int device) {
  const Driver& driver = UseDriver();
  const int count = DeviceCount();
  Require(0 <= device && device < count, "SetDevice: GPU ", device, " was asked for; the machine has ", count);
  ContextOf(driver, device);
  current_device = device;
}

void* Allocate(std::size_t row_bytes, std::size_t rows, std::size_t* pitch) {
  *pitch = row_bytes;
  if (row_bytes == 0 || rows == 0) return nullptr;
  const Driver& driver = Enter("allocating GPU memory");
  std::size_t total = 0;
  Require(!__builtin_mul_overflow(row_bytes, rows, &total), "allocating GPU memory: ", rows, " rows of ", row_bytes,
          " bytes are more than memory can have");
  const std::string doing = "allocating " + std::to_string(total) + " bytes of GPU memory";
  DevicePointer memory = 0;
  if (rows == 1) Check(driver.cuMemAlloc_v2(&memory, total), "cuMemAlloc", doing);
  else Check(driver.cuMemAllocPitch_v2(&memory, pitch, row_bytes, rows, 16), "cuMemAllocPitch", doing);
  return reinterpret_cast<void*>(memory);
}

void Free(void* memory) noexcept {
  // Unified addresses tell the driver the context; a failure is one of earlier work, reported by Wait.
  if (memory != nullptr) FindDriver().cuMemFree_v2(Address(memory));
}

void Copy(CopyKind kind, void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
          std::size_t row_bytes, std::size_t rows, StreamHandle stream) {
  if (row_bytes == 0 || rows == 0) return;
  const bool from_host = kind == CopyKind::kHostToDevice, to_host = kind == CopyKind::kDeviceToHost;
  const char* const doing = from_host ? "copying from host to GPU" : to_host ? "copying from GPU to host" : "copying on the GPU";
  const Driver& driver = Enter(doing);
  if (rows == 1 || (dst_pitch == row_bytes && src_pitch == row_bytes)) {
    const std::size_t bytes = row_bytes * rows;
    if (from_host) Check(driver.cuMemcpyHtoDAsync_v2(Address(dst), src, bytes, stream), "cuMemcpyHtoDAsync", doing);
    else if (to_host) Check(driver.cuMemcpyDtoHAsync_v2(dst, Address(src), bytes, stream), "cuMemcpyDtoHAsync", doing);
    else Check(driver.cuMemcpyDtoDAsync_v2(Address(dst), Address(src), bytes, stream), "cuMemcpyDtoDAsync", doing);
  } else {
    Memcpy2D copy;
    copy.src_type = from_host ? kHostMemory : kDeviceMemory;
    if (from_host) copy.src_host = src;
    else copy.src_device = Address(src);
    copy.src_pitch = src_pitch;
    copy.dst_type = to_host ? kHostMemory : kDeviceMemory;
    if (to_host) copy.dst_host = dst;
    else copy.dst_device = Address(dst);
    copy.dst_pitch = dst_pitch;
    copy.width = row_bytes;
    copy.height = rows;
    Check(driver.cuMemcpy2DAsync_v2(&copy, stream), "cuMemcpy2DAsync", doing);
  }
  if (stream == nullptr) Wait(nullptr);
}

StreamHandle NewStream() {
  const Driver& driver = Enter("making a CUDA stream");
  StreamHandle stream = nullptr;
  Check(driver.cuStreamCreate(&stream, kNonBlockingStream), "cuStreamCreate", "making a CUDA stream");
  return stream;
}

void DeleteStream(StreamHandle stream) noexcept {
  if (stream != nullptr) FindDriver().cuStreamDestroy_v2(stream);
}

void Wait(StreamHandle stream) {
  const Driver& driver = Enter("waiting for a CUDA stream");
  Check(driver.cuStreamSynchronize(stream), "cuStreamSynchronize", "waiting for a CUDA stream");
}

bool IsIdle(StreamHandle stream) {
  const Driver& driver = Enter("asking a CUDA stream");
  const Result result = driver.cuStreamQuery(stream);
  if (result == kNotReady) return false;
  Check(result, "cuStreamQuery", "asking a CUDA stream");
  return true;
}

}  // namespace umbra::cuda

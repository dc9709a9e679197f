// Stands in for the CUDA driver's library: memory of the host, work done at once, failures on request.
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "runtime/cuda_driver.h"

using namespace umbra::cuda;  // NOLINT: the types of the driver's interface

namespace {

std::map<std::string, int> calls;
std::map<std::string, Result> failures;
std::map<DevicePointer, std::size_t> memory;
int devices = 2;
constexpr std::size_t kPitch = 512;

Result Enter(const std::string& function) {
  ++calls[function];
  const auto found = failures.find(function);
  if (found == failures.end()) return kSuccess;
  const Result result = found->second;
  failures.erase(found);
  return result;
}

char* Pointer(DevicePointer p) { return reinterpret_cast<char*>(p); }

// Does [p, p + n) lie within one allocation?
bool IsDevice(DevicePointer p, std::size_t n) {
  auto found = memory.upper_bound(p);
  if (found == memory.begin()) return false;
  --found;
  return p + n <= found->first + found->second;
}

Result CopyRow(char* dst, bool dst_is_device, const char* src, bool src_is_device, std::size_t n) {
  constexpr Result kInvalidValue = 1;
  if (dst_is_device && !IsDevice(reinterpret_cast<DevicePointer>(dst), n)) return kInvalidValue;
  if (src_is_device && !IsDevice(reinterpret_cast<DevicePointer>(src), n)) return kInvalidValue;
  std::memmove(dst, src, n);
  return kSuccess;
}

}  // namespace

extern "C" {

// Control by the test.
void stand_in_fail(const char* function, Result result) { failures[function] = result; }
int stand_in_calls(const char* function) { return calls[function]; }
std::size_t stand_in_allocations() { return memory.size(); }
void stand_in_set_devices(int count) { devices = count; }

Result cuInit(unsigned) { return std::getenv("STAND_IN_CANNOT_INIT") != nullptr ? 100 : kSuccess; }
Result cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
Result cuGetErrorName(Result result, const char** name) {
  *name = result == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : result == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_LAUNCH_FAILED";
  return kSuccess;
}
Result cuGetErrorString(Result result, const char** text) {
  *text = result == 2 ? "out of memory" : result == 100 ? "no CUDA-capable device is detected" : "unspecified launch failure";
  return kSuccess;
}
Result cuDeviceGetCount(int* count) {
  *count = devices;
  return Enter("cuDeviceGetCount");
}
Result cuDeviceGet(Device* device, int ordinal) {
  *device = ordinal;
  return Enter("cuDeviceGet");
}
Result cuDeviceGetName(char* name, int size, Device) {
  std::strncpy(name, "Stand-in", static_cast<std::size_t>(size));
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  *context = reinterpret_cast<Context>(static_cast<std::size_t>(device + 1));
  return Enter("cuDevicePrimaryCtxRetain");
}
Result cuCtxSetCurrent(Context) { return Enter("cuCtxSetCurrent"); }
Result cuMemAlloc_v2(DevicePointer* p, std::size_t n) {
  if (const Result result = Enter("cuMemAlloc_v2"); result != kSuccess) return result;
  *p = reinterpret_cast<DevicePointer>(std::malloc(n));
  memory[*p] = n;
  return kSuccess;
}
Result cuMemAllocPitch_v2(DevicePointer* p, std::size_t* pitch, std::size_t width, std::size_t height, unsigned) {
  if (const Result result = Enter("cuMemAllocPitch_v2"); result != kSuccess) return result;
  *pitch = (width + kPitch - 1) / kPitch * kPitch;
  *p = reinterpret_cast<DevicePointer>(std::malloc(*pitch * height));
  memory[*p] = *pitch * height;
  return kSuccess;
}
Result cuMemFree_v2(DevicePointer p) {
  if (memory.erase(p) == 0) std::abort();  // freed twice, or never allocated
  std::free(Pointer(p));
  return Enter("cuMemFree_v2");
}
Result cuMemcpyHtoDAsync_v2(DevicePointer dst, const void* src, std::size_t n, void*) {
  if (const Result result = Enter("cuMemcpyHtoDAsync_v2"); result != kSuccess) return result;
  return CopyRow(Pointer(dst), true, static_cast<const char*>(src), false, n);
}
Result cuMemcpyDtoHAsync_v2(void* dst, DevicePointer src, std::size_t n, void*) {
  if (const Result result = Enter("cuMemcpyDtoHAsync_v2"); result != kSuccess) return result;
  return CopyRow(static_cast<char*>(dst), false, Pointer(src), true, n);
}
Result cuMemcpyDtoDAsync_v2(DevicePointer dst, DevicePointer src, std::size_t n, void*) {
  if (const Result result = Enter("cuMemcpyDtoDAsync_v2"); result != kSuccess) return result;
  return CopyRow(Pointer(dst), true, Pointer(src), true, n);
}
Result cuMemcpy2DAsync_v2(const Memcpy2D* c, void*) {
  if (const Result result = Enter("cuMemcpy2DAsync_v2"); result != kSuccess) return result;
  const bool to = c->dst_type == kDeviceMemory, from = c->src_type == kDeviceMemory;
  char* const dst = to ? Pointer(c->dst_device) : static_cast<char*>(c->dst_host);
  const char* const src = from ? Pointer(c->src_device) : static_cast<const char*>(c->src_host);
  for (std::size_t y = 0; y < c->height; ++y)
    if (const Result result = CopyRow(dst + y * c->dst_pitch, to, src + y * c->src_pitch, from, c->width); result != kSuccess)
      return result;
  return kSuccess;
}
Result cuStreamCreate(void** stream, unsigned) {
  if (const Result result = Enter("cuStreamCreate"); result != kSuccess) return result;
  *stream = std::malloc(1);
  return kSuccess;
}
Result cuStreamDestroy_v2(void* stream) {
  std::free(stream);
  return Enter("cuStreamDestroy_v2");
}
Result cuStreamSynchronize(void*) { return Enter("cuStreamSynchronize"); }
Result cuStreamQuery(void*) { return Enter("cuStreamQuery"); }

}  // extern "C"

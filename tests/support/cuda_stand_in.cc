// Stands in for the CUDA driver's library: memory of the host, streams that work at once or as late as they may,
// failures on request.
#include "tests/support/cuda_stand_in.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

#include "tests/support/cuda_stand_in_state.h"

using namespace umbra::stand_in;  // NOLINT: the state, and the types of the driver's interface

namespace umbra::stand_in {

void Fail(const std::string& function, int result, int times, int behind) {
  The().failures[function] = {result, times, behind};
}
int Calls(const std::string& function) { return The().calls[function]; }
int Called(const std::string& function) { return Enter(function); }
std::size_t Allocations() {
  DrainAll();
  Bury();
  return The().memory.size();
}
std::size_t Objects() { return The().objects; }
void SetDevices(int count) { The().devices = count; }
void SetVersion(int version) { The().version = version; }
void Defer(bool defer) {
  The().defer = defer;
  DrainAll();
}
void FinishFrees() {
  LOCKED;
  for (Stream* stream : The().streams)
    if (stream->frees > 0) Drain(stream);
}
int Enqueue(void* stream, std::function<int()> work) {
  LOCKED;
  return Submit(stream, std::move(work));
}
void SetKernel(const std::string& name, std::function<int(const Launch&)> body) {
  The().kernels[name] = std::move(body);
}

}  // namespace umbra::stand_in

extern "C" {

Result cuInit(unsigned) { return std::getenv("STAND_IN_CANNOT_INIT") != nullptr ? 100 : kSuccess; }
Result cuDriverGetVersion(int* version) {
  const char* const chosen = std::getenv("STAND_IN_VERSION");
  *version = chosen != nullptr ? std::atoi(chosen) : The().version;
  return kSuccess;
}
Result cuGetErrorName(Result result, const char** name) {
  static const std::map<Result, const char*> names = {
      {1, "CUDA_ERROR_INVALID_VALUE"},   {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {100, "CUDA_ERROR_NO_DEVICE"},     {200, "CUDA_ERROR_INVALID_IMAGE"},
      {218, "CUDA_ERROR_INVALID_PTX"},   {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {500, "CUDA_ERROR_NOT_FOUND"},     {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {719, "CUDA_ERROR_LAUNCH_FAILED"}, {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"}};
  const auto found = names.find(result);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? kInvalidValue : kSuccess;
}
Result cuGetErrorString(Result result, const char** text) {
  *text = result == 2 ? "out of memory" : result == 100 ? "no CUDA-capable device is detected" : "what went wrong";
  return kSuccess;
}
Result cuDeviceGetCount(int* count) {
  *count = The().devices;
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
Result cuDeviceGetAttribute(int* value, int attribute, Device) {
  static const std::map<int, int> values = {{kMaxThreadsPerBlock, 1024},
                                            {kMaxGridX, 2147483647},
                                            {kMaxGridY, 65535},
                                            {kMaxGridZ, 65535},
                                            {kSharedPerBlock, 49152},
                                            {kWarpSize, 32},
                                            {kMultiprocessors, 132},
                                            {kL2Bytes, 60 << 20},
                                            {kMaxThreadsPerMultiprocessor, 2048},
                                            {kMajor, 9},
                                            {kMinor, 0},
                                            {kSharedPerMultiprocessor, 233472},
                                            {kRegistersPerMultiprocessor, 65536},
                                            {kSharedPerBlockOptIn, 232448},
                                            {kMaxBlocksPerMultiprocessor, 32},
                                            {kMemoryPoolsSupported, 1}};
  const char* const l2_bytes = attribute == kL2Bytes ? std::getenv("STAND_IN_L2_BYTES") : nullptr;
  *value = l2_bytes != nullptr ? std::atoi(l2_bytes) : values.at(attribute);
  return Enter("cuDeviceGetAttribute");
}
Result cuDeviceTotalMem_v2(std::size_t* bytes, Device) {
  *bytes = std::size_t{1} << 34;
  return kSuccess;
}
Result cuDeviceCanAccessPeer(int* can, Device, Device) {
  *can = 1;
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  *context = reinterpret_cast<Context>(static_cast<std::size_t>(device + 1));
  return Enter("cuDevicePrimaryCtxRetain");
}
Result cuCtxGetCurrent(Context* context) {
  *context = reinterpret_cast<Context>(static_cast<std::size_t>(current + 1));
  return kSuccess;
}
Result cuCtxSetCurrent(Context context) {
  current = static_cast<int>(reinterpret_cast<std::size_t>(context)) - 1;
  return Enter("cuCtxSetCurrent");
}
Result cuCtxSynchronize() {
  ENTER("cuCtxSynchronize");
  for (Stream* stream : The().streams)
    if (stream->device == current) Drain(stream);
  return Drain(StreamAt(nullptr));
}
Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = 1000;
  *total = 2000;
  return EnterContext("cuMemGetInfo_v2");
}
Result cuMemPoolCreate(MemoryPool* pool, const PoolProperties* properties) {
  *pool = reinterpret_cast<MemoryPool>(static_cast<std::size_t>(properties->location.id + 1));
  return EnterContext("cuMemPoolCreate");
}
Result cuMemPoolSetAttribute(MemoryPool pool, int attribute, void* value) {
  ENTER("cuMemPoolSetAttribute");
  if (attribute == kReuseAllowInternalDependencies && *static_cast<int*>(value) == 0) The().strict_pools.insert(pool);
  return kSuccess;
}
Result cuMemPoolGetAttribute(MemoryPool pool, int, void* value) {
  LOCKED;
  unsigned long long bytes = 0;
  for (const auto& [address, block] : The().memory)
    if (block.device + 1 == static_cast<int>(reinterpret_cast<std::size_t>(pool))) bytes += block.bytes;
  std::memcpy(value, &bytes, sizeof bytes);
  return EnterContext("cuMemPoolGetAttribute");
}
Result cuMemPoolSetAccess(MemoryPool, const AccessDescription*, std::size_t) {
  return EnterContext("cuMemPoolSetAccess");
}
Result cuMemPoolTrimTo(MemoryPool, std::size_t) { return EnterContext("cuMemPoolTrimTo"); }
Result cuMemAllocFromPoolAsync(DevicePointer* p, std::size_t n, MemoryPool pool, void* stream) {
  ENTER("cuMemAllocFromPoolAsync");
  *p = reinterpret_cast<DevicePointer>(New(n, current));
  if (The().strict_pools.count(pool) != 0) return kSuccess;
  // As the driver may, it takes what others are about to give back, which the stream has to wait for.
  return Submit(stream, [of = current] {
    for (Stream* other : The().streams)
      if (other->device == of && other->frees > 0) Drain(other);
    return kSuccess;
  });
}
Result cuMemFreeAsync(DevicePointer p, void* stream) {
  ENTER("cuMemFreeAsync");
  Stream* const in = StreamAt(stream);
  ++in->frees;
  return Submit(stream, [p, in] {
    --in->frees;
    Delete(Pointer(p));
    return kSuccess;
  });
}
Result cuMemFree_v2(DevicePointer p) {
  LOCKED;
  Delete(Pointer(p));
  return Enter("cuMemFree_v2");
}
Result cuMemHostAlloc(void** p, std::size_t n, unsigned) {
  ENTER("cuMemHostAlloc");
  *p = New(n, -1);
  return kSuccess;
}
Result cuMemFreeHost(void* p) {
  ENTER("cuMemFreeHost");
  Delete(p);
  return kSuccess;
}
Result cuPointerGetAttributes(unsigned count, int* attributes, void** values, DevicePointer p) {
  LOCKED;
  const auto* block = Around(p);
  for (unsigned k = 0; k < count; ++k) {
    unsigned value = 0;
    if (attributes[k] == kMemoryType && block != nullptr)
      value = block->second.device < 0 ? kHostMemory : kDeviceMemory;
    if (attributes[k] == kDeviceOrdinal)
      value = block == nullptr ? static_cast<unsigned>(-2) : static_cast<unsigned>(block->second.device);
    std::memcpy(values[k], &value, sizeof value);
  }
  return EnterContext("cuPointerGetAttributes");
}
Result cuMemcpyHtoDAsync_v2(DevicePointer dst, const void* src, std::size_t n, void* stream) {
  ENTER("cuMemcpyHtoDAsync_v2");
  Memcpy2D copy;
  copy.src_type = kHostMemory, copy.src_host = src, copy.dst_type = kDeviceMemory, copy.dst_device = dst,
  copy.width = n, copy.height = 1;
  return SubmitCopy(stream, src, copy);
}
Result cuMemcpyDtoHAsync_v2(void* dst, DevicePointer src, std::size_t n, void* stream) {
  ENTER("cuMemcpyDtoHAsync_v2");
  Memcpy2D copy;
  copy.src_type = kDeviceMemory, copy.src_device = src, copy.dst_type = kHostMemory, copy.dst_host = dst,
  copy.width = n, copy.height = 1;
  return SubmitCopy(stream, dst, copy);
}
Result cuMemcpyDtoDAsync_v2(DevicePointer dst, DevicePointer src, std::size_t n, void* stream) {
  ENTER("cuMemcpyDtoDAsync_v2");
  return Submit(stream, [=] { return CopyRow(Pointer(dst), true, Pointer(src), true, n); });
}
Result cuMemcpy2DAsync_v2(const Memcpy2D* c, void* stream) {
  ENTER("cuMemcpy2DAsync_v2");
  return SubmitCopy(stream,
                    c->src_type == kHostMemory   ? c->src_host
                    : c->dst_type == kHostMemory ? c->dst_host
                                                 : nullptr,
                    *c);
}
Result cuMemcpyPeerAsync(DevicePointer dst, Context to, DevicePointer src, Context from, std::size_t n, void* stream) {
  ENTER("cuMemcpyPeerAsync");
  if (!LiesOn(src, from) || !LiesOn(dst, to)) return kInvalidValue;
  return Submit(stream, [=] { return CopyRow(Pointer(dst), true, Pointer(src), true, n); });
}
Result cuMemcpy3DPeerAsync(const Memcpy3DPeer* c, void* stream) {
  ENTER("cuMemcpy3DPeerAsync");
  if (c->depth != 1 || !LiesOn(c->src.device, c->src.context) || !LiesOn(c->dst.device, c->dst.context))
    return kInvalidValue;
  if (c->src.pitch > kMaxPitch || c->dst.pitch > kMaxPitch) return kInvalidValue;
  Memcpy2D copy;
  copy.src_type = copy.dst_type = kDeviceMemory, copy.src_device = c->src.device, copy.dst_device = c->dst.device;
  copy.src_pitch = c->src.pitch, copy.dst_pitch = c->dst.pitch, copy.width = c->width, copy.height = c->height;
  return Submit(stream, [copy] { return Copy2D(copy); });
}
Result cuMemsetD2D8Async(DevicePointer p, std::size_t pitch, unsigned char value, std::size_t width, std::size_t height,
                         void* stream) {
  ENTER("cuMemsetD2D8Async");
  return Submit(stream, [=] {
    for (std::size_t y = 0; y < height; ++y) {
      if (!IsDevice(Pointer(p) + y * pitch, width)) return kIllegalAddress;
      std::memset(Pointer(p) + y * pitch, value, width);
    }
    return kSuccess;
  });
}
Result cuStreamCreate(void** handle, unsigned flags) {
  ENTER("cuStreamCreate");
  auto* const stream = new Stream;
  stream->device = current;
  stream->blocking = flags == 0;
  The().streams.insert(stream);
  ++The().objects;
  *handle = stream;
  return kSuccess;
}
Result cuStreamDestroy_v2(void* handle) {
  LOCKED;
  auto* const stream = static_cast<Stream*>(handle);
  stream->destroyed = true;
  --The().objects;
  Bury();
  return Enter("cuStreamDestroy_v2");
}
Result cuStreamSynchronize(void* handle) {
  ENTER("cuStreamSynchronize");
  Stream* const stream = StreamAt(handle);
  if (stream->capture != nullptr) {
    stream->invalidated = true;
    return kCaptureUnsupported;
  }
  if (handle == nullptr)
    if (const Result result = Submit(nullptr, [] { return kSuccess; }); result != kSuccess) return result;
  return Drain(stream);
}
Result cuStreamQuery(void* handle) {
  ENTER("cuStreamQuery");
  return StreamAt(handle)->work.empty() ? kSuccess : kNotReady;
}
Result cuStreamWaitEvent(void* handle, void* event, unsigned) {
  ENTER("cuStreamWaitEvent");
  const SharedEvent e = *static_cast<SharedEvent*>(event);
  const int wanted = e->recorded, at = e->at;
  Stream* const source = e->stream;
  return Submit(handle, [=] {
    if (source != nullptr && e->done < wanted) Drain(source, at);
    return kSuccess;
  });
}
Result cuStreamBeginCapture_v2(void* handle, int mode) {
  ENTER("cuStreamBeginCapture_v2");
  if (mode != kCaptureRelaxed) return kInvalidValue;
  static_cast<Stream*>(handle)->capture = std::make_unique<Graph>();
  static_cast<Stream*>(handle)->invalidated = false;
  return kSuccess;
}
Result cuStreamEndCapture(void* handle, void** graph) {
  LOCKED;
  auto* const stream = static_cast<Stream*>(handle);
  std::unique_ptr<Graph> capture = std::move(stream->capture);
  *graph = nullptr;
  if (const Result result = EnterContext("cuStreamEndCapture"); result != kSuccess) return result;
  if (stream->invalidated) return kCaptureInvalidated;
  ++The().objects;
  *graph = capture.release();
  return kSuccess;
}
Result cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  ENTER("cuGraphInstantiateWithFlags");
  ++The().objects;
  *executable = new Graph(*static_cast<Graph*>(graph));
  return kSuccess;
}
Result cuGraphLaunch(void* executable, void* stream) {
  ENTER("cuGraphLaunch");
  for (const Work& work : static_cast<Graph*>(executable)->work)
    if (const Result result = Submit(stream, work); result != kSuccess) return result;
  return kSuccess;
}
Result cuGraphDestroy(void* graph) {
  --The().objects;
  delete static_cast<Graph*>(graph);
  return kSuccess;
}
Result cuGraphExecDestroy(void* executable) { return cuGraphDestroy(executable); }
Result cuEventCreate(void** event, unsigned) {
  ENTER("cuEventCreate");
  ++The().objects;
  *event = new SharedEvent(std::make_shared<Event>());
  return kSuccess;
}
Result cuEventRecord(void* event, void* stream) {
  ENTER("cuEventRecord");
  const SharedEvent e = *static_cast<SharedEvent*>(event);
  e->stream = StreamAt(stream);
  const int number = ++e->recorded;
  const Result result = Submit(stream, [=] {
    e->done = number;
    return kSuccess;
  });
  e->at = e->stream->given;
  return result;
}
Result cuEventQuery(void* event) {
  ENTER("cuEventQuery");
  const SharedEvent e = *static_cast<SharedEvent*>(event);
  return e->done >= e->recorded ? kSuccess : kNotReady;
}
Result cuEventSynchronize(void* event) {
  ENTER("cuEventSynchronize");
  const SharedEvent e = *static_cast<SharedEvent*>(event);
  return e->done >= e->recorded ? kSuccess : Drain(e->stream, e->at);
}
Result cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 1.5f;
  return EnterContext("cuEventElapsedTime");
}
Result cuEventDestroy_v2(void* event) {
  LOCKED;
  --The().objects;
  delete static_cast<SharedEvent*>(event);
  return kSuccess;
}
Result cuModuleLoadDataEx(Module* module, const void* image, unsigned, int* options, void** values) {
  ENTER("cuModuleLoadDataEx");
  std::istringstream text{std::string(static_cast<const char*>(image))};
  std::string word, of;
  text >> word >> of;
  if (word == "bad") {
    if (options[0] == kErrorLog) std::strcpy(static_cast<char*>(values[0]), "ptxas: line 7: no such instruction");
    return kInvalidPtx;
  }
  auto loaded = std::make_unique<LoadedModule>();
  if (EmulatedModule::Is(image)) loaded->emulated = std::make_unique<EmulatedModule>(image);
  else if (word != "image" || of != "of") return kInvalidImage;
  if (loaded->emulated != nullptr && !loaded->emulated->loaded()) return kInvalidImage;
  while (loaded->emulated == nullptr && text >> word) loaded->kernels.insert(word);
  ++The().objects;
  *module = reinterpret_cast<Module>(loaded.release());
  The().modules.insert(*module);
  return kSuccess;
}
Result cuModuleUnload(Module module) {
  LOCKED;
  --The().objects;
  The().modules.erase(module);
  delete reinterpret_cast<LoadedModule*>(module);
  return EnterContext("cuModuleUnload");
}
Result cuModuleGetFunction(Function* function, Module module, const char* name) {
  ENTER("cuModuleGetFunction");
  const auto& loaded = *reinterpret_cast<LoadedModule*>(module);
  if (loaded.emulated == nullptr ? loaded.kernels.count(name) == 0 : !loaded.emulated->Has(name)) return kNotFound;
  The().functions.push_back(std::make_unique<LoadedFunction>(LoadedFunction{name, module}));
  *function = reinterpret_cast<Function>(The().functions.back().get());
  return kSuccess;
}
Result cuFuncGetAttribute(int* value, int attribute, Function) {
  *value = attribute == kRegisters ? 40 : attribute == kStaticSharedBytes ? 1024 : 0;
  return EnterContext("cuFuncGetAttribute");
}
Result cuFuncSetAttribute(Function, int attribute, int value) {
  if (attribute != kMaxDynamicSharedBytes || value != 232448 - 1024) return kInvalidValue;
  return EnterContext("cuFuncSetAttribute");
}
Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function, int threads, std::size_t) {
  *blocks = 2048 / threads;
  return EnterContext("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}
Result cuLaunchKernel(Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, void* stream, void** parameters, void** extra) {
  ENTER("cuLaunchKernel");
  if (parameters != nullptr || gx * gy * gz == 0 || gy > 65535 || gz > 65535 || bx * by * bz == 0 ||
      bx * by * bz > 1024)
    return kInvalidValue;
  std::string arguments;
  for (void** word = extra; *word != nullptr; word += 2)
    if (*word == reinterpret_cast<void*>(std::size_t{1}))
      arguments.assign(static_cast<const char*>(word[1]), *static_cast<std::size_t*>(extra[3]));
  const auto [name, module] = *reinterpret_cast<LoadedFunction*>(function);
  const Launch launch{{gx, gy, gz}, {bx, by, bz}, shared, arguments};
  return Submit(stream, [name = name, module = module, launch] {
    if (The().modules.count(module) == 0) return kIllegalAddress;
    const auto& emulated = reinterpret_cast<LoadedModule*>(module)->emulated;
    if (emulated == nullptr) return The().kernels.at(name)(launch);
    return emulated->Run(name, launch) ? kSuccess : kLaunchFailed;
  });
}

}  // extern "C"

// What the stand-in for the CUDA driver knows of devices, memory, streams and what was loaded, and how it does the work
// of streams: at once, or as late as it may.
#ifndef UMBRA_TESTS_SUPPORT_CUDA_STAND_IN_STATE_H_
#define UMBRA_TESTS_SUPPORT_CUDA_STAND_IN_STATE_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
#include "tests/support/cuda_stand_in.h"
#include "tests/support/emulated_module.h"

namespace umbra::stand_in {

using namespace cuda;  // NOLINT: the types of the driver's interface

using Work = std::function<Result()>;
inline constexpr Result kInvalidContext = 201, kCaptureUnsupported = 900, kCaptureInvalidated = 901,
                        kCaptureImplicit = 906, kIllegalAddress = 700, kLaunchFailed = 719, kInvalidImage = 200;

inline constexpr std::size_t kMaxPitch = 0x7fffffff;  // CU_DEVICE_ATTRIBUTE_MAX_PITCH

struct Graph {
  std::vector<Work> work;
};
struct Stream {
  int device = 0;
  bool blocking = true;
  std::deque<Work> work;
  int given = 0, done = 0;  // of its work so far
  int frees = 0;  // of memory, among the work
  std::unique_ptr<Graph> capture;
  bool invalidated = false, destroyed = false;
};
struct Event {
  Stream* stream = nullptr;
  int recorded = 0, done = 0;
  int at = 0;  // of the stream's work
};
using SharedEvent = std::shared_ptr<Event>;  // with the work that sets it
struct Block {
  std::size_t bytes;
  int device;  // -1: pinned memory of the host
};
struct Failure {
  Result result;
  int times, behind;
};
struct LoadedModule {
  std::set<std::string> kernels;
  std::unique_ptr<EmulatedModule> emulated;  // instead of these
};
struct LoadedFunction {
  std::string name;
  Module module;
};

struct State {
  std::recursive_mutex mutex;
  std::map<std::string, int> calls;
  std::map<std::string, Failure> failures;
  std::map<DevicePointer, Block> memory;
  std::map<int, Result> broken;  // devices that an error has ended
  std::set<Stream*> streams;  // those destroyed included, as long as they have work
  std::map<int, Stream> null_streams;
  std::size_t objects = 0;
  std::map<std::string, std::function<int(const Launch&)>> kernels;
  std::vector<std::unique_ptr<LoadedFunction>> functions;
  std::set<Module> modules;  // that are loaded
  std::set<MemoryPool> strict_pools;  // where no stream waits for what another gives back
  int devices = 2, version = 13000;
  bool defer = std::getenv("STAND_IN_DEFERS") != nullptr;
};
inline State& The() {
  static State& state = *new State;
  return state;
}
inline thread_local int current = -1;

#define LOCKED const std::lock_guard lock(The().mutex)
#define ENTER(function) \
  LOCKED;               \
  if (const Result result = EnterContext(function); result != kSuccess) return result

inline Result Enter(const std::string& function) {
  LOCKED;
  State& s = The();
  ++s.calls[function];
  const auto found = s.failures.find(function);
  if (found != s.failures.end()) {
    Failure& failure = found->second;
    if (failure.behind > 0) {
      --failure.behind;
    } else {
      const Result result = failure.result;
      if (--failure.times == 0) s.failures.erase(found);
      if (result >= 700 && result != 701 && result < 800) s.broken[current] = result;
      return result;
    }
  }
  return kSuccess;
}
// The same for what needs a context that works.
inline Result EnterContext(const std::string& function) {
  if (const Result result = Enter(function); result != kSuccess) return result;
  if (current < 0) return kInvalidContext;
  const auto broken = The().broken.find(current);
  return broken == The().broken.end() ? kSuccess : broken->second;
}

inline Stream* StreamAt(void* handle) {
  return handle == nullptr ? &The().null_streams[current] : static_cast<Stream*>(handle);
}

// Does the stream's work, all of it or what was given first.
inline Result Drain(Stream* stream, int until = std::numeric_limits<int>::max()) {
  while (!stream->work.empty() && stream->done < until) {
    const Work work = std::move(stream->work.front());
    stream->work.pop_front();
    ++stream->done;
    if (const Result result = work(); result != kSuccess) The().broken[stream->device] = result;
  }
  const auto broken = The().broken.find(stream->device);
  return broken == The().broken.end() ? kSuccess : broken->second;
}

inline void DrainAll() {
  for (Stream* stream : The().streams) Drain(stream);
  for (auto& [device, stream] : The().null_streams) Drain(&stream);
}

// Forgets destroyed streams that have done their work.
inline void Bury() {
  for (auto it = The().streams.begin(); it != The().streams.end();) {
    Stream* const stream = *it;
    const bool over = stream->destroyed && stream->work.empty();
    it = over ? The().streams.erase(it) : std::next(it);
    if (over) delete stream;
  }
}

// The work of a stream without a handle and that of its device's other streams wait for each other, in the order given.
inline Result Submit(void* handle, Work work) {
  Stream* const stream = StreamAt(handle);
  if (stream->capture != nullptr) {
    stream->capture->work.push_back(std::move(work));
    return kSuccess;
  }
  std::map<Stream*, int> before;
  if (handle == nullptr) {
    stream->device = current;
    for (Stream* other : The().streams) {
      if (other->device != current || !other->blocking) continue;
      if (other->capture != nullptr) {
        other->invalidated = true;
        return kCaptureImplicit;
      }
      before[other] = other->given;
    }
  } else if (Stream& null = The().null_streams[stream->device]; stream->blocking) {
    before[&null] = null.given;
  }
  ++stream->given;
  stream->work.push_back([=] {
    for (const auto& [other, given] : before)
      if (handle != nullptr || The().streams.count(other) != 0) Drain(other, given);
    return work();
  });
  if (!The().defer) Drain(stream);
  return kSuccess;
}

inline char* Pointer(DevicePointer p) { return reinterpret_cast<char*>(p); }

inline const std::pair<const DevicePointer, Block>* Around(DevicePointer p) {
  auto found = The().memory.upper_bound(p);
  if (found == The().memory.begin()) return nullptr;
  --found;
  return p < found->first + found->second.bytes ? &*found : nullptr;
}
inline bool IsDevice(const char* p, std::size_t n) {
  const auto* block = Around(reinterpret_cast<DevicePointer>(p));
  return block != nullptr && block->second.device >= 0 &&
         reinterpret_cast<DevicePointer>(p) + n <= block->first + block->second.bytes;
}

inline bool LiesOn(DevicePointer p, Context context) {
  const auto* block = Around(p);
  return block != nullptr && block->second.device + 1 == static_cast<int>(reinterpret_cast<std::size_t>(context));
}

inline Result CopyRow(char* dst, bool dst_is_device, const char* src, bool src_is_device, std::size_t n) {
  if (dst_is_device && !IsDevice(dst, n)) return kIllegalAddress;
  if (src_is_device && !IsDevice(src, n)) return kIllegalAddress;
  std::memmove(dst, src, n);
  return kSuccess;
}
inline Result Copy2D(const Memcpy2D& c) {
  const bool to = c.dst_type == kDeviceMemory, from = c.src_type == kDeviceMemory;
  char* const dst = to ? Pointer(c.dst_device) : static_cast<char*>(c.dst_host);
  const char* const src = from ? Pointer(c.src_device) : static_cast<const char*>(c.src_host);
  for (std::size_t y = 0; y < c.height; ++y)
    if (const Result result = CopyRow(dst + y * c.dst_pitch, to, src + y * c.src_pitch, from, c.width);
        result != kSuccess)
      return result;
  return kSuccess;
}
// A copy from or to ordinary host memory is done when the call returns, after all that the stream did before.
inline Result SubmitCopy(void* stream, const void* host, const Memcpy2D& copy) {
  const bool now = host != nullptr && Around(reinterpret_cast<DevicePointer>(host)) == nullptr &&
                   StreamAt(stream)->capture == nullptr;
  const Result result = Submit(stream, [copy] { return Copy2D(copy); });
  return now && result == kSuccess ? Drain(StreamAt(stream)) : result;
}

inline void* New(std::size_t n, int device) {
  void* const memory = std::malloc(n == 0 ? 1 : n);
  std::memset(memory, 0xcd, n);
  The().memory[reinterpret_cast<DevicePointer>(memory)] = {n, device};
  return memory;
}
inline void Delete(void* memory) {
  const auto found = The().memory.find(reinterpret_cast<DevicePointer>(memory));
  if (found == The().memory.end()) std::abort();  // freed twice, or never allocated
  std::memset(memory, 0xdd, found->second.bytes);
  The().memory.erase(found);
  std::free(memory);
}

}  // namespace umbra::stand_in

#endif  // UMBRA_TESTS_SUPPORT_CUDA_STAND_IN_STATE_H_

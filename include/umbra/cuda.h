// Memory, streams, events, graphs and copies of CUDA devices. umbra_cuda and the driver are opened at the first call,
// so that a program which never uses a GPU runs without one. Every function throws umbra::Error, with the driver's own
// words, if there is no driver or device or the driver refuses; an error that ends a device is told in full once and in
// short from then on. docs/cuda-runtime.md says how it is made.
#ifndef UMBRA_CUDA_H_
#define UMBRA_CUDA_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace umbra::cuda {

/// A CUstream made by NewStream; null is the thread's device's stream that waits for all others, and that
/// all others wait for.
using StreamHandle = void*;

// ---- devices ------------------------------------------------------------------------------------

/// Number of devices; 0 without a driver. Does not throw.
int DeviceCount() noexcept;
/// The device of the calling thread; 0 until SetDevice.
int CurrentDevice() noexcept;
/// Makes `device` the one that the calling thread works with.
void SetDevice(int device);

/// What launching and compiling have to know of a device.
struct DeviceProperties {
  std::string name;  ///< as the driver gives it
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0, warp_size = 0;  ///< how many, and the threads of a warp
  /// What a launch may ask for, and what is resident at once.
  int max_threads_per_block = 0, max_threads_per_multiprocessor = 0, max_blocks_per_multiprocessor = 0;
  int registers_per_multiprocessor = 0;  ///< 32-bit ones
  int max_grid[3] = {0, 0, 0};  ///< blocks along x, y and z
  std::size_t shared_per_block = 0;  ///< bytes that any kernel may have
  std::size_t shared_per_block_opt_in = 0;  ///< bytes with dynamic shared memory, which the loader asks for
  std::size_t shared_per_multiprocessor = 0, l2_bytes = 0, memory_bytes = 0;  ///< bytes
  std::size_t argument_bytes = 4096;  ///< that a launch may have: more from capability 7.0 and a driver of CUDA 12.1 on
};
/// Those of a device, read once.
const DeviceProperties& Properties(int device);

// ---- memory -------------------------------------------------------------------------------------

/// Memory of the thread's device for `rows` rows of `row_bytes` bytes, which begin `*pitch` bytes apart:
/// `row_bytes` rounded up to 128 if there is more than one. Any stream may use it at once. Null for no bytes.
void* Allocate(std::size_t row_bytes, std::size_t rows, std::size_t* pitch);
/// Gives back what Allocate gave, once all that streams have been given so far is done, without waiting for
/// it; null is allowed. Does not throw: it is called by destructors.
void Free(void* memory) noexcept;

/// Memory for work in `stream` only, from this point of its order to that of FreeInOrder; neither waits.
void* AllocateInOrder(std::size_t bytes, StreamHandle stream);
/// Gives back what AllocateInOrder gave, from this point of the stream's order on.
void FreeInOrder(void* memory, StreamHandle stream) noexcept;

/// Host memory that the device reads and writes by itself: copies from and to it return at once.
void* AllocatePinned(std::size_t bytes);
/// Gives back what AllocatePinned gave; null is allowed.
void FreePinned(void* memory) noexcept;

/// What Umbra has allocated on a device.
struct MemoryStatistics {
  std::size_t in_use = 0, peak_in_use = 0;  ///< bytes allocated by Umbra, and the most there have been
  std::size_t reserved = 0;  ///< bytes taken from the device, those kept for reuse included
  std::size_t limit = 0;  ///< of in_use; the most that a size_t holds if none was set
  std::size_t device_free = 0, device_total = 0;  ///< bytes, by the driver's account, other processes included
  std::uint64_t allocations = 0;  ///< calls of Allocate until now
};
/// Those of `device`, of this moment.
MemoryStatistics GetMemoryStatistics(int device);
/// From now on an allocation that would take in_use over `bytes` is an error, and memory beyond is not kept.
void SetMemoryLimit(int device, std::size_t bytes);
/// Gives memory that is kept for reuse back to the device. Allocations that fail do so by themselves.
void TrimMemory(int device);

/// Throws umbra::Error unless [memory, memory + bytes) is memory of `device`: if it is null, of the host or of
/// another device. `what` names it in the message. No bytes are always right.
void CheckDeviceMemory(const void* memory, std::size_t bytes, int device, const char* what);

// ---- copies -------------------------------------------------------------------------------------

/// Which memory the two sides of a copy lie in.
enum class CopyKind { kHostToDevice, kDeviceToHost, kDeviceToDevice };
/// Copies rows, in the order of the stream; with a null stream the copy is done when the call returns. Host
/// memory that is pinned must stay as it is until the stream has come that far; other host memory has been
/// read, or written, when the call returns. The devices of the two sides may differ.
void Copy(CopyKind kind, void* dst, std::size_t dst_pitch, const void* src, std::size_t src_pitch,
          std::size_t row_bytes, std::size_t rows, StreamHandle stream);

// ---- streams, events, graphs --------------------------------------------------------------------

/// A stream of the thread's device. HandleOf(owner) finds it by the address of what owns it, if any.
StreamHandle NewStream(const void* owner = nullptr);
/// Gives back what NewStream gave; null is allowed. Does not throw: it is called by destructors.
void DeleteStream(StreamHandle stream) noexcept;
/// The stream that `owner` owns, null for null. Throws umbra::Error if it has been deleted.
StreamHandle HandleOf(const void* owner);
/// Returns when all work in the stream is done. Throws umbra::Error if some of it failed.
void Wait(StreamHandle stream);
/// Is all that the stream was given done? Does not wait.
bool IsIdle(StreamHandle stream);
/// The device that a stream belongs to.
int DeviceOf(StreamHandle stream);
/// Makes the stream's handle for matrix products (umbra/cuda_gemm.h).
void CreateBlasHandle(StreamHandle stream);
/// Gives back what CreateBlasHandle made.
void DestroyBlasHandle(StreamHandle stream);

/// A point in a stream's order.
class Event {
 public:
  Event() = default;
  /// The point that `stream` has come to: all that it was given before.
  explicit Event(StreamHandle stream);
  /// Has the stream come there?
  bool IsDone() const;
  /// Returns when it has.
  void Wait() const;
  /// Time on the device from `earlier` to this event, both done, in milliseconds.
  double MillisecondsSince(const Event& earlier) const;

  struct State;

 private:
  friend void WaitFor(StreamHandle stream, const Event& event);
  State& Recorded() const;
  std::shared_ptr<State> state_;
};
/// What `stream` is given from now on runs after the event; the caller does not wait.
void WaitFor(StreamHandle stream, const Event& event);
/// What `stream` is given from now on runs after all that `other` was given before.
void WaitFor(StreamHandle stream, StreamHandle other);

/// A sequence of work that is launched as one (a CUDA graph). Memory that was given back while it was captured
/// lives as long as the graph. Copies are handles of the same graph.
class Graph {
 public:
  Graph() = default;
  /// Puts the whole sequence into `stream`.
  void Launch(StreamHandle stream) const;
  /// Is there a graph to launch? Not in one that was made without Capture.
  explicit operator bool() const { return state_ != nullptr; }

  struct State;

 private:
  friend Graph Capture(StreamHandle stream, const std::function<void()>& body);
  std::shared_ptr<State> state_;
};
/// Calls `body` and makes a graph of what it gives to `stream`, of which nothing runs. Waiting, events and copies
/// without a stream are errors meanwhile. If `body` throws, so does Capture, and the stream is as before.
Graph Capture(StreamHandle stream, const std::function<void()>& body);

}  // namespace umbra::cuda

#endif  // UMBRA_CUDA_H_

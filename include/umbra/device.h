// Devices and their streams, as mshadow's.
#ifndef UMBRA_DEVICE_H_
#define UMBRA_DEVICE_H_

#include <functional>
#include <memory>
#include <utility>

#include "umbra/cpu_stream.h"
#include "umbra/cuda.h"
#include "umbra/error.h"

namespace umbra {

/// The host processor.
struct cpu {
  static constexpr bool kDevCPU = true;  ///< memory is the host's
  static constexpr int kDevMask = 1 << 0;  ///< its bit in masks of devices
};
/// A CUDA device. Its functions are in umbra_runtime, which opens umbra_cuda and the driver when they are first called.
struct gpu {
  static constexpr bool kDevCPU = false;  ///< memory is not the host's
  static constexpr int kDevMask = 1 << 1;  ///< its bit in masks of devices
};

/// When a stream of the CPU runs what is given to it.
enum class Execution {
  kImmediate,  ///< at once, in the thread that gives it
  kAsynchronous,  ///< later, in order, in a thread of the stream's own
  kFused,  ///< compiled assignments wait, and those of a thread run as one program when it waits for the stream
};

namespace detail {
/// How streams run that are made without a word about it: what UMBRA_JIT_EXPRESSIONS says, if it is 2.
#if defined(UMBRA_JIT_EXPRESSIONS) && UMBRA_JIT_EXPRESSIONS + 0 == 2
inline constexpr Execution kDefaultExecution = Execution::kFused;
#else
inline constexpr Execution kDefaultExecution = Execution::kImmediate;
#endif
}  // namespace detail

/// An order of computations on a device.
template <typename Device>
struct Stream;
/// An order of computations on the CPU: assignments to the tensors that have this stream. One that is asynchronous
/// or fused runs them later; the memory of their tensors has to stay until then, for which what frees that of a tensor
/// with a stream waits, and streams do not wait for one another. The functions that return when their work is done wait
/// for the streams of their operands. What waits in fused streams runs, in the order in which it was written, before
/// anything else that the thread which gave it does with tensors, and when any thread waits for a stream that it was
/// given to.
template <>
struct Stream<cpu> {
  explicit Stream(Execution execution = detail::kDefaultExecution)
      : queue_(execution == Execution::kAsynchronous ? new detail::WorkQueue : nullptr),
        givers_(execution == Execution::kFused ? new detail::Givers : nullptr) {
    Enter();
  }
  Stream(Stream&& other) noexcept { Take(&other); }
  Stream& operator=(Stream&& other) noexcept {
    if (this == &other) return *this;
    Finish();
    Take(&other);
    return *this;
  }
  ~Stream() { Finish(); }

  /// Returns when all work in the stream is done, whichever thread gave it. If some of it failed, throws the first
  /// error; what was given to the stream after the failure, by the same thread, has not run.
  void Wait() {
    if (queue_ != nullptr) return queue_->Wait();
    if (givers_ == nullptr) return;
    try {
      detail::RunWaiting();
    } catch (...) {
      givers_->FinishOthers();
      throw;
    }
    givers_->RunOthers();
  }
  /// Is all work in the stream done? That of a fused stream is done now, as by Wait.
  bool CheckIdle() {
    if (queue_ != nullptr) return queue_->Idle();
    Wait();
    return true;
  }
  /// Does nothing: products of the CPU need no handle.
  void CreateBlasHandle() {}
  /// Does nothing.
  void DestroyBlasHandle() {}

  bool asynchronous() const { return queue_ != nullptr; }
  bool fused() const { return givers_ != nullptr; }
  /// Those of a fused stream; else null.
  detail::Givers* givers() const { return givers_.get(); }
  /// Runs `work` in the order of the stream. It has to own what it uses.
  void Submit(std::function<void()> work) {
    detail::RunWaiting();
    if (queue_ != nullptr) queue_->Submit(std::move(work));
    else work();
  }

 private:
  void Finish() noexcept {
    Leave();
    if (givers_ == nullptr) return;
    detail::FinishWaiting(false);
    givers_->FinishOthers();
  }
  void Enter() {
    if (queue_ != nullptr) detail::AsynchronousStreams::Add(this, queue_);
  }
  // Once nobody has work that asks for the queue.
  void Leave() noexcept {
    if (queue_ == nullptr) return;
    queue_->Finish();
    detail::AsynchronousStreams::Remove(this);
  }
  // Tensors that have the other stream do not know this one.
  void Take(Stream* other) noexcept {
    other->Leave();
    queue_ = std::move(other->queue_);
    givers_ = std::move(other->givers_);
    Enter();
  }

  std::shared_ptr<detail::WorkQueue> queue_;
  std::unique_ptr<detail::Givers> givers_;
};
/// A CUDA stream of the device that was current when it was made. What is not in any stream waits for all streams.
template <>
struct Stream<gpu> {
  Stream() { handle_ = cuda::NewStream(this); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cuda::DeleteStream(handle_); }

  /// Returns when all work in the stream is done. Throws umbra::Error if some of it failed.
  void Wait() { cuda::Wait(handle_); }
  /// Is all work in the stream done?
  bool CheckIdle() { return cuda::IsIdle(handle_); }
  /// Opens cuBLAS and makes the stream's handle, which the first product does otherwise.
  void CreateBlasHandle() { cuda::CreateBlasHandle(handle_); }
  void DestroyBlasHandle() { cuda::DestroyBlasHandle(handle_); }
  /// The point that the stream has come to.
  cuda::Event Record() { return cuda::Event(handle_); }
  /// What this stream is given from now on runs after the event, or after all that the other stream was given.
  void WaitFor(const cuda::Event& event) { cuda::WaitFor(handle_, event); }
  void WaitFor(const Stream& other) { cuda::WaitFor(handle_, other.handle_); }
  /// A graph of what `body` gives to this stream, of which nothing runs yet; see cuda::Capture.
  cuda::Graph Capture(const std::function<void()>& body) { return cuda::Capture(handle_, body); }
  void Launch(const cuda::Graph& graph) { graph.Launch(handle_); }
  int device() const { return cuda::DeviceOf(handle_); }

  /// The handle of `stream`, null for null. Throws umbra::Error if the stream has been deleted.
  static cuda::StreamHandle GetStream(const Stream* stream) { return cuda::HandleOf(stream); }

  cuda::StreamHandle handle_ = nullptr;
};

/// Makes a device ready for use; the CPU always is. Throws umbra::Error if there is no such device.
template <typename Device>
inline void InitTensorEngine(int device = 0) {
  if constexpr (Device::kDevCPU)
    Require(device == 0, "InitTensorEngine: there is one CPU, number 0; ", device, " was given");
  else cuda::SetDevice(device);
}
/// Does nothing, as there is nothing that InitTensorEngine holds; for programs written for mshadow.
template <typename Device>
inline void ShutdownTensorEngine() {}
/// The device that the calling thread works with from now on. Throws umbra::Error if there is no such device.
template <typename Device>
inline void SetDevice(int device) {
  if constexpr (Device::kDevCPU) Require(device == 0, "SetDevice: there is one CPU, number 0; ", device, " was given");
  else cuda::SetDevice(device);
}
/// A stream that the caller gives back with DeleteStream, on `device` or, if it is negative, the thread's own. Throws
/// umbra::Error if there is no such device.
template <typename Device>
inline Stream<Device>* NewStream(bool create_blas_handle = true, bool create_dnn_handle = false, int device = -1) {
  (void)create_blas_handle;  // made when first needed
  (void)create_dnn_handle;
  if (device >= 0) SetDevice<Device>(device);
  return new Stream<Device>;
}
/// A stream of the CPU that the caller gives back with DeleteStream.
template <typename Device>
inline Stream<Device>* NewStream(Execution execution) {
  static_assert(Device::kDevCPU, "umbra: streams of a GPU are asynchronous: use NewStream<gpu>()");
  return new Stream<Device>(execution);
}
/// Ends a stream once its work is done; an error of it that nobody has waited for is lost. Null is allowed.
template <typename Device>
inline void DeleteStream(Stream<Device>* stream) {
  delete stream;
}

namespace detail {
inline bool IsAsynchronous(const Stream<cpu>* stream) { return stream != nullptr && stream->asynchronous(); }
/// Waits for the work of a tensor's asynchronous stream, for who is about to touch the tensor outside of it. Work of a
/// stream does not: two might wait for each other.
[[gnu::noinline, gnu::cold]] inline void SettleAsynchronous(Stream<cpu>* stream) {
  if (WorkQueue::Current() == nullptr) stream->Wait();
}
inline void SettleQueue(Stream<cpu>* stream) {
  if (IsAsynchronous(stream)) SettleAsynchronous(stream);
}
inline void SettleQueue(Stream<gpu>*) {}
/// Waits for what other threads gave to a tensor's fused stream, under the same rule.
inline void SettleOthers(Stream<cpu>* stream) {
  if (stream != nullptr && stream->fused() && WorkQueue::Current() == nullptr) stream->givers()->RunOthers();
}
inline void SettleOthers(Stream<gpu>*) {}
/// Both, and what the calling thread gave to any fused stream.
template <typename Device>
inline void Settle(Stream<Device>* stream) {
  RunWaiting();
  SettleQueue(stream);
  SettleOthers(stream);
}
}  // namespace detail

}  // namespace umbra

#endif  // UMBRA_DEVICE_H_

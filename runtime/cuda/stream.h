// The streams that are alive, and what each of them owns.
#ifndef UMBRA_RUNTIME_CUDA_STREAM_H_
#define UMBRA_RUNTIME_CUDA_STREAM_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/cuda/staging.h"

namespace umbra::cuda {

class BlasHandle;

struct GivesBack {
  void operator()(void* memory) const noexcept { library::Free(memory); }
};
/// What a graph needs for as long as it lives.
struct Captured {
  /// Memory given back in the order of the stream meanwhile; what is captured next may have it again.
  std::vector<std::unique_ptr<void, GivesBack>> reusable;
  /// The code of its kernels, graphs within it, and memory that was given back meanwhile, which other streams may still
  /// use.
  std::vector<std::shared_ptr<void>> kept;
  std::set<Gpu*> reached;  ///< other GPUs, whose memory it uses
  std::shared_ptr<BlasHandle> blas;  ///< of its matrix products
};

struct StreamState {
  StreamState(Gpu& of, StreamHandle stream, const void* owner);
  ~StreamState();
  StreamState(const StreamState&) = delete;
  StreamState& operator=(const StreamState&) = delete;

  /// What the stream was given last uses memory of `other`, another GPU.
  void Reach(Gpu& other);
  /// Makes `other`, a stream of `its`, wait for all that this one was given.
  void LetWait(StreamHandle other, Gpu& its);

  bool IsCaptured() {
    const std::lock_guard lock(mutex);
    return captured != nullptr;
  }
  /// If the stream is captured, `what` lives as long as the graph.
  void Keep(std::shared_ptr<void> what) {
    const std::lock_guard lock(mutex);
    if (captured != nullptr) captured->kept.push_back(std::move(what));
  }

  Gpu& gpu;
  const StreamHandle handle;
  const void* const owner;
  std::mutex mutex;  ///< of what follows
  std::unique_ptr<Captured> captured;  ///< while the stream is captured
  std::shared_ptr<BlasHandle> blas;  ///< made when first needed

  Staging staging;

  /// A stream of the same GPU for what may run beside this one's work, made when first asked for; it goes with this
  /// one.
  StreamHandle Helper();
  /// That stream, if there is one, which is to be deleted now.
  StreamHandle TakeHelper() {
    const std::lock_guard lock(mutex);
    return std::exchange(helper_, nullptr);
  }

 private:
  StreamHandle helper_ = nullptr;
  void* event_ = nullptr;
};

/// The state of a stream; null: of the thread's device's own. Throws umbra::Error if the stream was deleted, or if it
/// is null while another is captured, which it would have to wait for.
std::shared_ptr<StreamState> StateOf(StreamHandle stream);
/// The same; none if the stream is not alive.
std::shared_ptr<StreamState> FindStream(StreamHandle stream) noexcept;
/// Calls `body` with every stream of `gpu` that has been made and not deleted, and those captured of others that reach
/// its memory; the stream's mutex is held.
void ForEachStream(Gpu& gpu, const std::function<void(StreamState&)>& body);
/// Makes the stream in which memory is given back wait for all that the streams of `gpu` were given.
void OrderMemoryAfterAll(Gpu& gpu);
/// Puts steps into a stream, some of them beside others. What was beside is done before what the stream is given
/// after End, or the destructor.
class Aside {
 public:
  /// Where nothing can be beside a stream, as it is captured or null, Begin gives the stream itself.
  explicit Aside(StreamHandle stream) : stream_(stream) {}
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  /// The stream for what may run beside what the stream is given from now on, after all that it was given so far.
  StreamHandle Begin();
  void End();

 private:
  const StreamHandle stream_;
  std::optional<StreamHandle> beside_;  // once it was asked for
  bool is_beside_ = false;  // was something given to it that the stream does not wait for yet?
};
/// Is some stream of `gpu` being captured?
bool IsCapturing(const Gpu& gpu);

}  // namespace umbra::cuda

#endif  // UMBRA_RUNTIME_CUDA_STREAM_H_

#include "runtime/cuda/stream.h"

#include <shared_mutex>
#include <unordered_map>

#include "runtime/cuda/memory.h"

namespace umbra::cuda {

namespace {

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<StreamHandle, std::shared_ptr<StreamState>> streams;
  std::unordered_map<const void*, StreamHandle> by_owner;
};
// Never destroyed: destructors that run at the very end look streams up.
Registry& TheRegistry() {
  static Registry& registry = *new Registry;
  return registry;
}

}  // namespace

StreamState::StreamState(Gpu& of, StreamHandle stream, const void* owning)
    : gpu(of),
      handle(stream),
      owner(owning),
      staging(of) {
  gpu.Check(gpu.driver.cuEventCreate(&event_, kEventWithoutTiming), "cuEventCreate", "making a CUDA stream");
}

StreamState::~StreamState() {
  if (!gpu.lost()) gpu.driver.cuEventDestroy_v2(event_);
}

void StreamState::Reach(Gpu& other) {
  const std::lock_guard lock(mutex);
  if (captured != nullptr) captured->reached.insert(&other);
  else LetWait(other.memory->stream(), other);
}

void StreamState::LetWait(StreamHandle other, Gpu& its) {
  const char* const doing = "ordering two CUDA streams";
  {
    const Using use(gpu);
    gpu.Check(gpu.driver.cuEventRecord(event_, handle), "cuEventRecord", doing);
  }
  const Using use(its);
  its.Check(its.driver.cuStreamWaitEvent(other, event_, 0), "cuStreamWaitEvent", doing);
}

std::shared_ptr<StreamState> FindStream(StreamHandle stream) noexcept {
  Registry& registry = TheRegistry();
  const std::shared_lock lock(registry.mutex);
  const auto found = registry.streams.find(stream);
  return found == registry.streams.end() ? nullptr : found->second;
}

std::shared_ptr<StreamState> StateOf(StreamHandle stream) {
  if (stream == nullptr) {
    Gpu& gpu = Gpu::Current();
    Require(!IsCapturing(gpu), "work without a stream was asked for while a stream of GPU ", gpu.ordinal,
            " is captured; give it the stream");
    return gpu.NullStream();
  }
  auto state = FindStream(stream);
  Require(state != nullptr,
          "a CUDA stream is used that was deleted, or that Umbra did not make; make it with NewStream<gpu>()");
  return state;
}

void ForEachStream(Gpu& gpu, const std::function<void(StreamState&)>& body) {
  Registry& registry = TheRegistry();
  const std::shared_lock lock(registry.mutex);
  for (const auto& entry : registry.streams) {
    StreamState& state = *entry.second;
    const std::lock_guard state_lock(state.mutex);
    const bool reaches = state.captured != nullptr && state.captured->reached.count(&gpu) > 0;
    if (&state.gpu == &gpu || reaches) body(state);
  }
}

void OrderMemoryAfterAll(Gpu& gpu) {
  ForEachStream(gpu, [&](StreamState& state) {
    if (state.captured == nullptr) state.LetWait(gpu.memory->stream(), gpu);
  });
  if (!IsCapturing(gpu) && gpu.null_stream_used.exchange(false)) gpu.NullStream()->LetWait(gpu.memory->stream(), gpu);
}

bool IsCapturing(const Gpu& gpu) { return gpu.captures.load(std::memory_order_relaxed) > 0; }

namespace {
StreamHandle NewStreamOf(Gpu& gpu, const void* owner) {
  const Using use(gpu);
  StreamHandle stream = nullptr;
  gpu.Check(gpu.driver.cuStreamCreate(&stream, 0), "cuStreamCreate", "making a CUDA stream");
  std::shared_ptr<StreamState> state;
  try {
    state = std::make_shared<StreamState>(gpu, stream, owner);
  } catch (...) {
    gpu.driver.cuStreamDestroy_v2(stream);
    throw;
  }
  Registry& registry = TheRegistry();
  const std::unique_lock lock(registry.mutex);
  if (owner != nullptr) registry.by_owner[owner] = stream;
  registry.streams[stream] = std::move(state);
  return stream;
}
}  // namespace

StreamHandle library::NewStream(const void* owner) { return NewStreamOf(Gpu::Current(), owner); }

StreamHandle StreamState::Helper() {
  {
    const std::lock_guard lock(mutex);
    if (helper_ != nullptr) return helper_;
  }
  StreamHandle made =
      NewStreamOf(gpu, nullptr);  // which takes the list of streams, as who goes through it takes their mutexes
  {
    const std::lock_guard lock(mutex);
    if (helper_ == nullptr) helper_ = std::exchange(made, nullptr);
  }
  library::DeleteStream(made);
  const std::lock_guard lock(mutex);
  return helper_;
}

Aside::~Aside() {
  if (!is_beside_) return;
  const Quietly quietly;  // the next call tells it
  const auto helper = FindStream(*beside_);
  try {
    End();
  } catch (const Error&) {
    // What comes next in the stream may give memory back that the helper works in.
    if (helper == nullptr || helper->gpu.lost()) return;
    try {
      const Using use(helper->gpu);
      helper->gpu.Note(helper->gpu.driver.cuStreamSynchronize(*beside_), "cuStreamSynchronize",
                       "waiting for a CUDA stream");
    } catch (const Error&) {}
  }
}

StreamHandle Aside::Begin() {
  if (!beside_) {
    const auto state = StateOf(stream_);
    beside_ = stream_ == nullptr || state->IsCaptured() ? stream_ : state->Helper();
  }
  if (*beside_ == stream_) return stream_;
  library::WaitFor(*beside_, stream_);
  is_beside_ = true;
  return *beside_;
}

void Aside::End() {
  if (!is_beside_) return;
  library::WaitFor(stream_, *beside_);
  is_beside_ = false;
}

void library::DeleteStream(StreamHandle stream) noexcept {
  const auto state = stream == nullptr ? nullptr : FindStream(stream);
  if (state == nullptr) return;
  Gpu& gpu = state->gpu;
  const Quietly quietly;
  DeleteStream(state->TakeHelper());
  state->blas.reset();  // which gives memory back while the stream is known
  try {
    const Using use(gpu);
    state->staging.Clear();
    const std::lock_guard lock(state->mutex);
    // What the stream still has to do may use memory that is given back from now on.
    state->LetWait(gpu.memory->stream(), gpu);
  } catch (const Error&) {  // the next call tells it, too
  }
  {
    Registry& registry = TheRegistry();
    const std::unique_lock lock(registry.mutex);
    registry.streams.erase(stream);
    if (state->owner != nullptr) registry.by_owner.erase(state->owner);
  }
  if (!gpu.lost()) gpu.Note(gpu.driver.cuStreamDestroy_v2(stream), "cuStreamDestroy", "deleting a CUDA stream");
}

StreamHandle library::HandleOf(const void* owner) {
  if (owner == nullptr) return nullptr;
  Registry& registry = TheRegistry();
  const std::shared_lock lock(registry.mutex);
  const auto found = registry.by_owner.find(owner);
  Require(found != registry.by_owner.end(),
          "a Stream<gpu> is used after it was deleted; a tensor that was given it by "
          "set_stream keeps it until it is given another");
  return found->second;
}

namespace {
// The state of a stream that is asked for what a captured one cannot do.
std::shared_ptr<StreamState> NotCaptured(StreamHandle stream, const char* doing) {
  auto state = StateOf(stream);
  Require(!state->IsCaptured(), doing, ": the stream is captured, and nothing in it runs before the graph is launched");
  return state;
}
}  // namespace

void library::Wait(StreamHandle stream) {
  const auto state = NotCaptured(stream, "waiting for a CUDA stream");
  const Using use(state->gpu);
  state->gpu.Check(state->gpu.driver.cuStreamSynchronize(stream), "cuStreamSynchronize", "waiting for a CUDA stream");
}

bool library::IsIdle(StreamHandle stream) {
  const auto state = NotCaptured(stream, "asking a CUDA stream");
  const Using use(state->gpu);
  const Result result = state->gpu.driver.cuStreamQuery(stream);
  if (result == kNotReady) return false;
  state->gpu.Check(result, "cuStreamQuery", "asking a CUDA stream");
  return true;
}

int library::DeviceOf(StreamHandle stream) { return StateOf(stream)->gpu.ordinal; }

namespace {

class RecordedEvent final : public Event::State {
 public:
  explicit RecordedEvent(StreamState& stream) : gpu_(stream.gpu) {
    const Using use(gpu_);
    gpu_.Check(gpu_.driver.cuEventCreate(&event_, 0), "cuEventCreate", "making a CUDA event");
    const Result result = gpu_.driver.cuEventRecord(event_, stream.handle);
    if (result == kSuccess) return;
    gpu_.driver.cuEventDestroy_v2(event_);
    gpu_.Fail(result, "cuEventRecord", "recording a CUDA event");
  }
  ~RecordedEvent() override {
    if (!gpu_.lost()) gpu_.driver.cuEventDestroy_v2(event_);
  }
  RecordedEvent(const RecordedEvent&) = delete;
  RecordedEvent& operator=(const RecordedEvent&) = delete;

  bool IsDone() override {
    const Using use(gpu_);
    const Result result = gpu_.driver.cuEventQuery(event_);
    if (result == kNotReady) return false;
    gpu_.Check(result, "cuEventQuery", "asking a CUDA event");
    return true;
  }

  void Wait() override {
    const Using use(gpu_);
    gpu_.Check(gpu_.driver.cuEventSynchronize(event_), "cuEventSynchronize", "waiting for a CUDA event");
  }

  double MillisecondsSince(const Event::State& earlier) override {
    const auto& first = static_cast<const RecordedEvent&>(earlier);
    Require(&first.gpu_ == &gpu_, "the time between two CUDA events: one is of GPU ", first.gpu_.ordinal,
            ", the other of GPU ", gpu_.ordinal);
    const Using use(gpu_);
    float milliseconds = 0;
    gpu_.Check(gpu_.driver.cuEventElapsedTime(&milliseconds, first.event_, event_), "cuEventElapsedTime",
               "the time between two CUDA events, which both have to be done");
    return static_cast<double>(milliseconds);
  }

  void HoldUp(StreamHandle stream) override {
    const auto state = NotCaptured(stream, "letting a CUDA stream wait for an event");
    const Using use(state->gpu);
    state->gpu.Check(state->gpu.driver.cuStreamWaitEvent(stream, event_, 0), "cuStreamWaitEvent",
                     "letting a CUDA stream wait for an event");
  }

 private:
  Gpu& gpu_;
  void* event_ = nullptr;
};

}  // namespace

std::shared_ptr<Event::State> library::NewEvent(StreamHandle stream) {
  return std::make_shared<RecordedEvent>(*NotCaptured(stream, "recording a CUDA event"));
}

void library::WaitFor(StreamHandle stream, StreamHandle other) {
  const char* const doing = "letting a CUDA stream wait for another";
  const auto first = NotCaptured(other, doing), then = NotCaptured(stream, doing);
  const std::lock_guard lock(first->mutex);
  first->LetWait(then->handle, then->gpu);
}

}  // namespace umbra::cuda

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
    : gpu(of), handle(stream), owner(owning), staging(of) {
  gpu.Check(gpu.driver.cuEventCreate(&event_, kEventWithoutTiming), "cuEventCreate", "making a CUDA stream");
}

StreamState::~StreamState() {
  if (!gpu.lost()) gpu.driver.cuEventDestroy_v2(event_);
}

void StreamState::LetWait(StreamHandle other) {
  gpu.Check(gpu.driver.cuEventRecord(event_, handle), "cuEventRecord", "ordering two CUDA streams");
  gpu.Check(gpu.driver.cuStreamWaitEvent(other, event_, 0), "cuStreamWaitEvent", "ordering two CUDA streams");
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
  Require(state != nullptr, "a CUDA stream is used that was deleted, or that Umbra did not make; make it with NewStream<gpu>()");
  return state;
}

void ForEachStream(const Gpu& gpu, const std::function<void(StreamState&)>& body) {
  Registry& registry = TheRegistry();
  const std::shared_lock lock(registry.mutex);
  for (const auto& entry : registry.streams)
    if (&entry.second->gpu == &gpu) {
      const std::lock_guard state_lock(entry.second->mutex);
      body(*entry.second);
    }
}

void OrderMemoryAfterAll(Gpu& gpu) {
  ForEachStream(gpu, [&](StreamState& state) {
    if (state.captured == nullptr) state.LetWait(gpu.memory->stream());
  });
  if (!IsCapturing(gpu) && gpu.null_stream_used.exchange(false)) gpu.NullStream()->LetWait(gpu.memory->stream());
}

bool IsCapturing(const Gpu& gpu) { return gpu.captures.load(std::memory_order_relaxed) > 0; }

StreamHandle NewStream(const void* owner) {
  Gpu& gpu = Gpu::Current();
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

void DeleteStream(StreamHandle stream) noexcept {
  const auto state = FindStream(stream);
  if (state == nullptr) return;
  Gpu& gpu = state->gpu;
  const Quietly quietly;
  state->blas.reset();  // which gives memory back while the stream is known
  try {
    const Using use(gpu);
    state->staging.Clear();
    const std::lock_guard lock(state->mutex);
    // What the stream still has to do may use memory that is given back from now on.
    state->LetWait(gpu.memory->stream());
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

StreamHandle HandleOf(const void* owner) {
  if (owner == nullptr) return nullptr;
  Registry& registry = TheRegistry();
  const std::shared_lock lock(registry.mutex);
  const auto found = registry.by_owner.find(owner);
  Require(found != registry.by_owner.end(), "a Stream<gpu> is used after it was deleted; a tensor that was given it by "
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

void Wait(StreamHandle stream) {
  const auto state = NotCaptured(stream, "waiting for a CUDA stream");
  const Using use(state->gpu);
  state->gpu.Check(state->gpu.driver.cuStreamSynchronize(stream), "cuStreamSynchronize", "waiting for a CUDA stream");
}

bool IsIdle(StreamHandle stream) {
  const auto state = NotCaptured(stream, "asking a CUDA stream");
  const Using use(state->gpu);
  const Result result = state->gpu.driver.cuStreamQuery(stream);
  if (result == kNotReady) return false;
  state->gpu.Check(result, "cuStreamQuery", "asking a CUDA stream");
  return true;
}

int DeviceOf(StreamHandle stream) { return StateOf(stream)->gpu.ordinal; }

struct Event::State {
  explicit State(Gpu& of) : gpu(of) {
    gpu.Check(gpu.driver.cuEventCreate(&event, 0), "cuEventCreate", "making a CUDA event");
  }
  ~State() {
    if (!gpu.lost()) gpu.driver.cuEventDestroy_v2(event);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  Gpu& gpu;
  void* event = nullptr;
};

Event::Event(StreamHandle stream) {
  const auto state = NotCaptured(stream, "recording a CUDA event");
  const Using use(state->gpu);
  state_ = std::make_shared<State>(state->gpu);
  state->gpu.Check(state->gpu.driver.cuEventRecord(state_->event, stream), "cuEventRecord", "recording a CUDA event");
}

Event::State& Event::Recorded() const {
  Require(state_ != nullptr, "a CUDA event is asked that no stream has recorded; make it as Event(stream)");
  return *state_;
}

bool Event::IsDone() const {
  State& s = Recorded();
  const Using use(s.gpu);
  const Result result = s.gpu.driver.cuEventQuery(s.event);
  if (result == kNotReady) return false;
  s.gpu.Check(result, "cuEventQuery", "asking a CUDA event");
  return true;
}

void Event::Wait() const {
  State& s = Recorded();
  const Using use(s.gpu);
  s.gpu.Check(s.gpu.driver.cuEventSynchronize(s.event), "cuEventSynchronize", "waiting for a CUDA event");
}

double Event::MillisecondsSince(const Event& earlier) const {
  State &first = earlier.Recorded(), &last = Recorded();
  Require(&first.gpu == &last.gpu, "the time between two CUDA events: one is of GPU ", first.gpu.ordinal, ", the other of GPU ",
          last.gpu.ordinal);
  const Using use(last.gpu);
  float milliseconds = 0;
  last.gpu.Check(last.gpu.driver.cuEventElapsedTime(&milliseconds, first.event, last.event), "cuEventElapsedTime",
                 "the time between two CUDA events, which both have to be done");
  return static_cast<double>(milliseconds);
}

void WaitFor(StreamHandle stream, const Event& event) {
  const auto state = StateOf(stream);
  const Using use(state->gpu);
  state->gpu.Check(state->gpu.driver.cuStreamWaitEvent(stream, event.Recorded().event, 0), "cuStreamWaitEvent",
                   "letting a CUDA stream wait for an event");
}

void WaitFor(StreamHandle stream, StreamHandle other) {
  const auto first = NotCaptured(other, "letting a CUDA stream wait for another");
  const auto then = StateOf(stream);
  const std::lock_guard lock(first->mutex);
  const Using use(first->gpu);
  first->LetWait(then->handle);
}

}  // namespace umbra::cuda

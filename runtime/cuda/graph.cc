// Capturing a sequence of work as a CUDA graph.
#include "runtime/cuda/memory.h"
#include "runtime/cuda/stream.h"

namespace umbra::cuda {

namespace {

class CapturedGraph final : public Graph::State, public std::enable_shared_from_this<CapturedGraph> {
 public:
  explicit CapturedGraph(Gpu& gpu) : gpu_(gpu) {}
  ~CapturedGraph() override {
    if (executable != nullptr && !gpu_.lost()) gpu_.driver.cuGraphExecDestroy(executable);
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  void Launch(StreamHandle stream) override {
    const auto state = StateOf(stream);
    Gpu& gpu = state->gpu;
    Require(&gpu == &gpu_, "a CUDA graph of GPU ", gpu_.ordinal, " is launched in a stream of GPU ", gpu.ordinal);
    const Using use(gpu);
    if (IsCapturing(gpu)) state->Keep(shared_from_this());
    const Result result = gpu.memory->UnderPressure([&] { return gpu.driver.cuGraphLaunch(executable, stream); });
    gpu.Check(result, "cuGraphLaunch", "launching a CUDA graph");
    for (Gpu* const other : owned.reached) state->Reach(*other);
    if (stream == nullptr) gpu.null_stream_used = true;
  }

  void* executable = nullptr;
  Captured owned;

 private:
  Gpu& gpu_;
};

// While it lives, the stream is captured.
class CaptureScope {
 public:
  explicit CaptureScope(StreamState& state) : state_(state) {
    const Using use(state.gpu);
    const std::lock_guard lock(state.mutex);
    Require(state.captured == nullptr, kDoing, ": it is captured already");
    // Relaxed: kernels may be loaded and memory taken meanwhile.
    state.gpu.Check(state.gpu.driver.cuStreamBeginCapture_v2(state.handle, kCaptureRelaxed), "cuStreamBeginCapture",
                    kDoing);
    state.captured = std::make_unique<Captured>();
    ++state.gpu.captures;
  }
  ~CaptureScope() {
    if (!over_) End(nullptr);
    if (graph_ != nullptr && !state_.gpu.lost()) state_.gpu.driver.cuGraphDestroy(graph_);
  }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  // The graph, which the scope keeps, and what it needs.
  void* Finish(Captured* needed) {
    const Result result = End(needed);
    state_.gpu.Check(result, "cuStreamEndCapture", kDoing,
                     ": something in the sequence cannot be captured, such as waiting or work in other streams");
    return graph_;
  }

  static constexpr const char* kDoing = "capturing a CUDA stream";

 private:
  Result End(Captured* needed) {
    over_ = true;
    const std::lock_guard lock(state_.mutex);
    const Result result = state_.gpu.lost() ? kSuccess : state_.gpu.driver.cuStreamEndCapture(state_.handle, &graph_);
    --state_.gpu.captures;
    (needed != nullptr ? *needed : captured_) = std::move(*state_.captured);
    state_.captured.reset();
    return result;
  }

  StreamState& state_;
  bool over_ = false;
  void* graph_ = nullptr;
  Captured captured_;
};

}  // namespace

std::shared_ptr<Graph::State> library::NewGraph(StreamHandle stream, const std::function<void()>& body) {
  Require(stream != nullptr, CaptureScope::kDoing,
          ": the stream without a handle cannot be captured; use a Stream<gpu>");
  const auto state = StateOf(stream);
  Gpu& gpu = state->gpu;
  CaptureScope scope(*state);
  body();
  const Using use(gpu);
  const auto graph = std::make_shared<CapturedGraph>(gpu);
  void* const sequence = scope.Finish(&graph->owned);
  const Result result = gpu.memory->UnderPressure(
      [&] { return gpu.driver.cuGraphInstantiateWithFlags(&graph->executable, sequence, 0); });
  gpu.Check(result, "cuGraphInstantiateWithFlags", "making a graph of a captured CUDA stream");
  return graph;
}

}  // namespace umbra::cuda

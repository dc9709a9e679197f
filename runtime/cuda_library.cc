#include "runtime/cuda_library.h"

#include "runtime/environment.h"
#include "runtime/opened_library.h"
#include "umbra/error.h"

// Not null in a program that is linked to the library.
extern "C" [[gnu::weak]] const umbra::cuda::Library* umbra_cuda_library();

namespace umbra::cuda {

namespace {

struct Found : OpenedLibrary {
  const Library* functions = nullptr;
};

void Open(Found* found) {
  if (umbra_cuda_library != nullptr) {
    found->functions = umbra_cuda_library();
    found->name = "linked to the program";
    return;
  }
#ifdef UMBRA_STATIC_RUNTIME
  throw Error(
      "a GPU is used by a program that is linked to libumbra_runtime.a and not to libumbra_cuda.a, which is for GPUs; "
      "link that, too: target Umbra::cuda_static of CMake, or module umbra-cuda of pkg-config");
#else
  const runtime::OwnLibrary library = runtime::OpenOwnLibrary(
      "libumbra_cuda", runtime::ReadEnvironment().cuda_library, "umbra_cuda_library", "Umbra's library for GPUs",
      "install the Debian package libumbra-cuda, put the file beside libumbra_runtime, or name it in "
      "UMBRA_CUDA_LIBRARY");
  found->functions = reinterpret_cast<decltype(&umbra_cuda_library)>(library.entry)();
  found->name = library.path;
#endif
}

// Never destroyed: memory is given back by destructors that run at the very end.
const Found& Find() noexcept {
  static const Found& library = *[] {
    auto* const found = new Found;
    try {
      Open(found);
    } catch (const Error& error) { found->problem = error.what(); }
    return found;
  }();
  return library;
}

}  // namespace

const OpenedLibrary& FindLibrary() noexcept { return Find(); }

const Library& UseLibrary() {
  const Found& library = Find();
  Require(library.functions != nullptr, library.problem);
  return *library.functions;
}

#define UMBRA_CALL_LIBRARY(name, result, parameters, arguments) \
  result name parameters { return UseLibrary().name arguments; }
UMBRA_CUDA_FUNCTIONS_OF_USERS(UMBRA_CALL_LIBRARY)
#undef UMBRA_CALL_LIBRARY
#define UMBRA_CALL_LIBRARY(name, result, parameters, arguments)     \
  result name parameters noexcept {                                 \
    const Library* const library = Find().functions;                \
    return library != nullptr ? library->name arguments : result(); \
  }
UMBRA_CUDA_FUNCTIONS_THAT_DO_NOT_THROW(UMBRA_CALL_LIBRARY)
#undef UMBRA_CALL_LIBRARY

Event::Event(StreamHandle stream) : state_(UseLibrary().NewEvent(stream)) {}
Event::State& Event::Recorded() const {
  Require(state_ != nullptr, "a CUDA event is asked that no stream has recorded; make it as Event(stream)");
  return *state_;
}
bool Event::IsDone() const { return Recorded().IsDone(); }
void Event::Wait() const { Recorded().Wait(); }
double Event::MillisecondsSince(const Event& earlier) const { return Recorded().MillisecondsSince(earlier.Recorded()); }
void WaitFor(StreamHandle stream, const Event& event) { event.Recorded().HoldUp(stream); }

Graph Capture(StreamHandle stream, const std::function<void()>& body) {
  Graph graph;
  graph.state_ = UseLibrary().NewGraph(stream, body);
  return graph;
}
void Graph::Launch(StreamHandle stream) const {
  Require(state_ != nullptr, "a CUDA graph is launched that nothing was captured for; make it by Capture");
  state_->Launch(stream);
}

Kernel::Kernel(const std::string& name, std::vector<Image> images)
    : state_(UseLibrary().NewKernel(name, std::move(images))) {}
void Kernel::Launch(const LaunchShape& shape, const void* arguments, std::size_t argument_bytes,
                    StreamHandle stream) const {
  state_->Launch(shape, arguments, argument_bytes, stream);
}
KernelResources Kernel::Resources(int device) const { return state_->Resources(device); }
int Kernel::BlocksPerMultiprocessor(int device, int threads, std::size_t shared_bytes) const {
  return state_->BlocksPerMultiprocessor(device, threads, shared_bytes);
}
const std::string& Kernel::name() const { return state_->name(); }

}  // namespace umbra::cuda

namespace umbra::runtime {

CudaCallSite::CudaCallSite(std::shared_ptr<const Program> program)
    : state_(cuda::UseLibrary().NewCallSite(std::move(program))) {}
void CudaCallSite::Run(void* const* data, Layout layout, const umbra_scalar* scalars, cuda::StreamHandle stream) {
  state_->Run(data, layout, scalars, stream);
}
void CudaCallSite::Run(const Arguments& arguments, const RunOptions& options) { state_->Run(arguments, options); }

void RunOnGpu(const Program& program, const Arguments& arguments, const RunOptions& options) {
  CudaCallSite(std::shared_ptr<const Program>(&program, [](const Program*) {})).Run(arguments, options);
}

}  // namespace umbra::runtime

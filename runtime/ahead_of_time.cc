// Calls of kernels that were compiled ahead of time: the choice of a target, and the C entry points.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "runtime/cpu_info.h"
#include "runtime/cuda_ahead_of_time.h"
#include "runtime/environment.h"
#include "runtime/operands.h"
#include "runtime/parallel.h"
#include "runtime/program_text.h"
#include "umbra/call_site.h"
#include "umbra/cuda_call_site.h"
#include "umbra/error.h"
#include "umbra/kernel_desc.h"

namespace umbra::runtime {

namespace {

// What a thread's last error was.
std::string& Message() {
  thread_local std::string message;
  return message;
}

// Runs `body`; exceptions become codes.
template <typename Body>
umbra_status Guarded(const Body& body) noexcept {
  const auto fail = [](umbra_status status, const char* what) {
    try {
      Message() = what;
    } catch (...) { Message().clear(); }
    return status;
  };
  try {
    body();
    return UMBRA_OK;
  } catch (const InternalError& error) {
    return fail(UMBRA_INTERNAL_ERROR, error.what());
  } catch (const std::bad_alloc&) {
    return fail(UMBRA_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) { return fail(UMBRA_ERROR, error.what()); } catch (...) {
    return fail(UMBRA_INTERNAL_ERROR, "internal error in Umbra: an exception of no known type");
  }
}

constexpr const char* kTargets[] = {"plain", "sse2", "avx2", "avx512"};

void RequireTarget(const std::string& name) {
  Require(std::ranges::find(kTargets, name) != std::end(kTargets), "unknown target '", name,
          "': expected plain, sse2, avx2 or avx512");
  Require(CpuRuns(name), "target ", name, " is not enabled: this CPU lacks the instruction set");
}

// The target that calls have to use, and how often that changed.
std::mutex g_mutex;
const char* g_chosen = nullptr;  // one of kTargets; null: UMBRA_TARGET decides
std::atomic<int> g_generation{1};

// Expects the mutex.
std::string ChosenTarget() {
  if (g_chosen != nullptr) return g_chosen;
  std::string name = ReadEnvironment().target;
  if (!name.empty()) {
    try {
      RequireTarget(name);
    } catch (const Error& error) { throw Error(std::string("environment variable UMBRA_TARGET: ") + error.what()); }
  }
  return name;
}

const umbra_target_desc& TargetOf(const umbra_kernel_desc& kernel, const std::string& chosen) {
  const umbra_target_desc* best = nullptr;
  std::string names;
  for (int k = 0; k < kernel.num_targets; ++k) {
    const umbra_target_desc& target = kernel.targets[k];
    names += (k == 0 ? "" : ", ") + std::string(target.name);
    if (chosen.empty() ? CpuRuns(target.name) : chosen == target.name) best = &target;
  }
  Require(kernel.num_targets > 0, "kernel '", kernel.name,
          "' was compiled for GPUs alone, and its operands are in memory of the CPU: "
          "add an instruction set to its targets");
  Require(best != nullptr || chosen.empty(), "kernel '", kernel.name, "' has no code for target ", chosen,
          ", which was asked for; it was compiled for ", names);
  Require(best != nullptr, "kernel '", kernel.name, "' was compiled for ", names,
          ", none of which this CPU runs; add plain to its targets");
  return *best;
}

// A kernel's code for one target.
struct Site {
  Site(const umbra_target_desc& desc, std::shared_ptr<const Program> program)
      : target(desc),
        calls(std::move(program)) {}
  const umbra_target_desc& target;
  CallSite calls;
  std::atomic<int> generation{0};  ///< of the choice that it serves
};

// What umbra_kernel_desc::state points to. Sites live as long as the process: any thread may be in one.
struct State {
  std::atomic<Site*> latest{nullptr};
  std::vector<std::unique_ptr<Site>> sites;  ///< guarded by the mutex
  std::atomic<CudaCallSite*> on_gpu{nullptr};
};

// The kernel's state, which the first call makes. Expects the mutex.
State& StateOf(const umbra_kernel_desc& kernel) {
  auto* state = static_cast<State*>(__atomic_load_n(kernel.state, __ATOMIC_ACQUIRE));
  if (state == nullptr) {
    // Kept here, too: kernels may be in a library that is closed.
    static auto& all = *new std::vector<std::unique_ptr<State>>;
    state = all.emplace_back(std::make_unique<State>()).get();
    __atomic_store_n(kernel.state, static_cast<void*>(state), __ATOMIC_RELEASE);
  }
  return *state;
}

std::shared_ptr<const Program> MakeProgram(const umbra_kernel_desc& kernel, const umbra_target_desc& target) {
  auto program = std::make_shared<Program>(ProgramFromText(kernel.program));
  program->target = target.name;
  const umbra_kernel_fn* functions = target.functions;
  for (auto& step : program->steps) {
    auto* of_kernel = std::get_if<KernelStep>(&step);
    if (of_kernel == nullptr) continue;
    of_kernel->code = [functions](const Variant& variant) { return KernelCode{functions[variant.index()], nullptr}; };
    functions += std::tuple_size_v<decltype(KernelStep::Slots::function)>;
  }
  return program;
}

Site& SiteOf(const umbra_kernel_desc& kernel) {
  auto* state = static_cast<State*>(__atomic_load_n(kernel.state, __ATOMIC_ACQUIRE));
  if (state != nullptr) {
    Site* const latest = state->latest.load(std::memory_order_acquire);
    if (latest != nullptr &&
        latest->generation.load(std::memory_order_relaxed) == g_generation.load(std::memory_order_relaxed))
      return *latest;
  }
  const std::lock_guard lock(g_mutex);
  const umbra_target_desc& target = TargetOf(kernel, ChosenTarget());
  state = &StateOf(kernel);
  Site* site = nullptr;
  for (const auto& known : state->sites)
    if (&known->target == &target) site = known.get();
  if (site == nullptr)
    site = state->sites.emplace_back(std::make_unique<Site>(target, MakeProgram(kernel, target))).get();
  site->generation.store(g_generation.load(std::memory_order_relaxed), std::memory_order_relaxed);
  state->latest.store(site, std::memory_order_release);
  return *site;
}

CudaCallSite& SiteOnGpu(const umbra_kernel_desc& kernel) {
  Require(kernel.gpu != nullptr, "kernel '", kernel.name,
          "' has no code for GPUs, and its operands are in memory of one: add a target "
          "such as cuda:sm_90, or copy them to the CPU");
  const auto* state = static_cast<State*>(__atomic_load_n(kernel.state, __ATOMIC_ACQUIRE));
  if (state != nullptr)
    if (CudaCallSite* const site = state->on_gpu.load(std::memory_order_acquire)) return *site;
  const std::lock_guard lock(g_mutex);
  std::atomic<CudaCallSite*>& site = StateOf(kernel).on_gpu;
  if (site.load() == nullptr) site.store(new CudaCallSite(ProgramOnGpu(kernel)), std::memory_order_release);
  return *site.load();
}

// The stream of the first output that has one, or else of the first input that has one.
void* StreamOf(const umbra_kernel_desc& kernel, const umbra_tensor* const* tensors) {
  const int inputs = kernel.num_inputs, count = inputs + kernel.num_outputs;
  for (int k = inputs; k < inputs + count; ++k)
    if (void* const stream = tensors[k % count]->stream) return stream;
  return nullptr;
}

void Call(const umbra_kernel_desc& kernel, const umbra_tensor* const* tensors, const umbra_scalar* scalars,
          int threads) {
  RequireThreads(threads);
  const auto count = static_cast<std::size_t>(kernel.num_inputs + kernel.num_outputs);
  Operands operands;
  for (std::size_t k = 0; k < count; ++k) {
    const char* name = kernel.operands[k].name;
    Require(tensors[k] != nullptr, "kernel '", kernel.name, "', operand '", name,
            "': the pointer to its tensor is null");
    const umbra_tensor& tensor = *tensors[k];
    Require(tensor.dtype >= 0 && tensor.dtype < static_cast<int>(std::size(kAllDTypes)), "kernel '", kernel.name,
            "', operand '", name, "': ", tensor.dtype, " is no umbra_dtype");
    Require(tensor.rank >= 0 && (tensor.rank == 0 || tensor.shape != nullptr), "kernel '", kernel.name, "', operand '",
            name, "': rank ", tensor.rank, " without as many extents");
    const int device = tensors[0]->device;
    Require(tensor.device == UMBRA_DEVICE_CPU || tensor.device == UMBRA_DEVICE_GPU, "kernel '", kernel.name,
            "', operand '", name, "': ", tensor.device, " is no umbra_device");
    Require(tensor.device == device, "kernel '", kernel.name, "': operand '", kernel.operands[0].name,
            "' is in memory of ", device == UMBRA_DEVICE_GPU ? "a GPU" : "the CPU", ", but '", name,
            "' is not; copy one of them");
    operands.Add(tensor.data, static_cast<DType>(tensor.dtype), tensor.rank, tensor.shape, tensor.stride);
  }
  if (tensors[0]->device == UMBRA_DEVICE_GPU)
    SiteOnGpu(kernel).Run(operands.data(), operands.layout(), scalars, StreamOf(kernel, tensors));
  else SiteOf(kernel).calls.Run(operands.data(), operands.layout(), scalars, threads);
}

}  // namespace

}  // namespace umbra::runtime

using namespace umbra::runtime;

umbra_status umbra_call(const umbra_kernel_desc* kernel, const umbra_tensor* const* operands,
                        const umbra_scalar* scalars, int threads) {
  return Guarded([&] { Call(*kernel, operands, scalars, threads); });
}

const char* umbra_error_message(void) { return Message().c_str(); }

umbra_status umbra_set_target(const char* name) {
  return Guarded([&] {
    const std::string wanted = name == nullptr ? "" : name;
    if (!wanted.empty()) RequireTarget(wanted);
    const std::lock_guard lock(g_mutex);
    g_chosen = wanted.empty() ? nullptr : *std::ranges::find(kTargets, wanted);
    ++g_generation;
  });
}

const char* umbra_kernel_target(const umbra_kernel_desc* kernel) {
  const char* name = nullptr;
  (void)Guarded([&] { name = SiteOf(*kernel).target.name; });
  return name;
}

#include "umbra/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "compiler/codegen/source.h"
#include "compiler/driver/background.h"
#include "compiler/driver/cuda.h"
#include "compiler/driver/kernel_cache.h"
#include "compiler/driver/known_extents.h"
#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "compiler/plan/build.h"
#include "compiler/plan/interpret.h"
#include "runtime/environment.h"
#include "runtime/launch.h"
#include "runtime/operands.h"
#include "runtime/parallel.h"
#include "runtime/side_by_side.h"
#include "umbra/call_site.h"
#include "umbra/cpu_stream.h"
#include "umbra/cuda_call_site.h"

namespace umbra {

struct Function::Impl {
  std::shared_ptr<const plan::Plan> plan;
  std::shared_ptr<const runtime::Program> program;
  std::unique_ptr<runtime::CallSite> calls;  // none if interpreted for good, or on a GPU
  std::unique_ptr<runtime::CudaCallSite> gpu_calls;
  std::atomic<bool> compiled{false};  // do calls go there by now?
  std::shared_future<void> compile;  // of a compile in the background
};

namespace {

std::shared_ptr<const runtime::Program> MakeProgram(const std::shared_ptr<const graph::Graph>& graph,
                                                    const std::shared_ptr<const plan::Plan>& plan,
                                                    const CompileOptions& options,
                                                    std::optional<codegen::Target> target) {
  auto program = std::make_shared<runtime::Program>(plan::ToProgram(*plan));
  program->on_gpu = !target;
  if (target) program->target = codegen::Name(*target);
  if (options.engine == Engine::kInterpreter) {
    program->steps.clear();
    return program;
  }
  if (target) KnowShortRows(graph, *plan, options, program.get());
  for (std::size_t k = 0; k < plan->steps.size(); ++k) {
    auto* step = std::get_if<runtime::KernelStep>(&program->steps[k]);
    if (step == nullptr) continue;
    if (!target) {
      step->cuda = MakeCudaKernel(plan, &std::get<plan::Kernel>(plan->steps[k]), options);
      continue;
    }
    step->code = [plan, k, options, target = *target](const runtime::Variant& variant) {
      return MakeKernelCode(*plan, std::get<plan::Kernel>(plan->steps[k]),
                            {target, codegen::Spelling::kPackets, variant, options.math == Math::kFast}, options);
    };
  }
  return program;
}

// Would a call run the kernel instead of the product? Extents that it brings are taken to be kAssumedExtent.
bool IsLikely(const runtime::Program& program, const runtime::GemmStep& product, const runtime::KernelStep& sum) {
  std::vector<index_t> loops;
  for (const runtime::Extent& axis : sum.signature.axes)
    loops.push_back(axis.is_static() ? axis.value : static_cast<index_t>(graph::kAssumedExtent));
  return RunsInstead(sum.signature,
                     ShapeOf(product, sum.signature, loops, program.buffers[static_cast<std::size_t>(product.c)].dtype),
                     program.target);
}

// Those that calls are likely to run: of products, and of what is before and behind them, one way.
std::vector<const runtime::KernelStep*> LikelyKernels(const runtime::Program& program) {
  std::vector<bool> runs(program.steps.size(), true);
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    const auto* kernel = std::get_if<runtime::KernelStep>(&program.steps[k]);
    if (kernel == nullptr || kernel->signature.replaces.empty()) continue;
    runs[k] = IsLikely(
        program, std::get<runtime::GemmStep>(program.steps[runtime::ProductBefore(kernel->signature, k)]), *kernel);
    if (!runs[k]) continue;
    for (const int step : kernel->signature.replaces) runs[static_cast<std::size_t>(step)] = false;
  }
  std::vector<const runtime::KernelStep*> kernels;
  for (std::size_t k = 0; k < program.steps.size(); ++k)
    if (const auto* kernel = std::get_if<runtime::KernelStep>(&program.steps[k]); kernel != nullptr && runs[k])
      kernels.push_back(kernel);
  return kernels;
}

std::vector<const runtime::KernelStep*> KernelsOf(const runtime::Program& program) {
  std::vector<const runtime::KernelStep*> kernels;
  for (const auto& step : program.steps)
    if (const auto* kernel = std::get_if<runtime::KernelStep>(&step)) kernels.push_back(kernel);
  return kernels;
}

// Makes the likeliest variant of each kernel that is likely to run, so that a failing compile is seen where it was
// asked for.
void MakeKernels(const runtime::Program& program, const std::atomic<bool>& cancelled) {
  const std::vector<const runtime::KernelStep*> kernels = LikelyKernels(program);
  runtime::SideBySide(kernels.size(), [&](std::size_t k) {
    Require(!cancelled, "the process ends before the kernels of '", program.name, "' are compiled");
    runtime::CodeOf(*kernels[k], codegen::LikelyVariants(kernels[k]->signature, program.target)[0]);
  });
}

// What the machine code of a graph follows from, its text aside; no target: GPUs.
using Key = std::tuple<std::uint64_t, std::optional<codegen::Target>, Engine, Math, bool>;

// The functions compiled so far. Of those with more kernels in all than UMBRA_MAX_KERNELS, the ones
// unused longest are let go: their kernels live on with whoever holds them.
class FunctionTable {
 public:
  Function Find(const Key& key, const std::string& text) {
    const std::lock_guard lock(mutex_);
    const auto found = Locate(key, text);
    if (found == entries_.end()) return {};
    found->second.used = ++clock_;
    return found->second.function;
  }

  // The function under this key: `function`, or the one that another thread has added before.
  Function Add(const Key& key, const std::string& text, Function function, std::size_t limit) {
    std::vector<Function> evicted;  // and destroyed when the lock is given back
    const std::lock_guard lock(mutex_);
    if (const auto found = Locate(key, text); found != entries_.end()) return found->second.function;
    const std::size_t kernels = KernelsOf(function.program()).size();
    kernels_ += kernels;
    entries_.emplace(key, Entry{text, function, kernels, ++clock_});
    while (entries_.size() > 1 && (kernels_ > limit || entries_.size() > limit)) {
      const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                           [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
      evicted.push_back(std::move(oldest->second.function));
      Erase(oldest);
    }
    return function;
  }

  void Remove(const Key& key, const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (const auto found = Locate(key, text); found != entries_.end()) Erase(found);
  }

 private:
  struct Entry {
    std::string text;
    Function function;
    std::size_t kernels;
    std::uint64_t used;
  };
  using Entries = std::multimap<Key, Entry>;

  Entries::iterator Locate(const Key& key, const std::string& text) {
    for (auto [entry, end] = entries_.equal_range(key); entry != end; ++entry)
      if (entry->second.text == text) return entry;
    return entries_.end();
  }
  void Erase(Entries::iterator entry) {
    kernels_ -= entry->second.kernels;
    entries_.erase(entry);
  }

  std::mutex mutex_;
  Entries entries_;
  std::size_t kernels_ = 0;
  std::uint64_t clock_ = 0;
};

// Never destroyed: static objects may own kernels to the end of the process.
FunctionTable& Functions() {
  static FunctionTable* const table = new FunctionTable;
  return *table;
}

}  // namespace

Function Compile(const std::shared_ptr<const graph::Graph>& graph, const CompileOptions& options) {
  Require(graph != nullptr, "Compile: the graph is null; Builder::Build and ParseText make one");
  std::optional<codegen::Target> target;
  if (options.target == kCudaTarget) RequireCuda(options);
  else target = ResolveTarget(options.target);
  const auto& [hash, text] = graph->identity();
  const Key key{hash, target, options.engine, options.math, options.use_disk_cache};
  Function function = Functions().Find(key, text);
  if (!function) {
    const auto limit = static_cast<std::size_t>(runtime::ReadEnvironment().max_kernels);
    const auto impl = std::make_shared<Function::Impl>();
    impl->plan = std::make_shared<const plan::Plan>(Lower(*graph, !target, options.math));
    impl->program = MakeProgram(graph, impl->plan, options, target);
    std::shared_ptr<std::packaged_task<void()>> task;
    if (!target) {
      impl->gpu_calls = std::make_unique<runtime::CudaCallSite>(impl->program);
      impl->compiled = true;
    } else if (options.engine != Engine::kInterpreter) {
      impl->calls = std::make_unique<runtime::CallSite>(impl->program);
      if (options.background) {
        task = std::make_shared<std::packaged_task<void()>>([unheld = std::weak_ptr(impl), key, text = text] {
          const auto held = unheld.lock();
          if (held == nullptr) return;
          try {
            MakeKernels(*held->program, BackgroundEnds());
          } catch (...) {
            Functions().Remove(key, text);
            throw;
          }
          held->compiled.store(true, std::memory_order_release);
        });
        impl->compile = task->get_future();
      } else {
        MakeKernels(*impl->program, std::atomic<bool>(false));
        impl->compiled = true;
      }
    }
    Function made;
    made.impl_ = impl;
    function = Functions().Add(key, text, made, limit);
    if (task != nullptr && function.impl_ == impl) RunInBackground([task] { (*task)(); });
  }
  if (!options.background) function.Wait();
  return function;
}

bool Function::Ready() const {
  if (!interpreted() || impl_->calls == nullptr) return true;
  if (impl_->compile.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  Wait();
  return true;
}

void Function::Wait() const {
  if (impl_ == nullptr || !impl_->compile.valid()) return;
  try {
    impl_->compile.get();
  } catch (const std::future_error&) {
    throw Error("the process ends before the kernels of '" + impl_->program->name + "' are compiled");
  }
}

void Function::operator()(const runtime::Arguments& arguments, const runtime::RunOptions& options) const {
  Require(impl_ != nullptr, "call of an empty Function: assign the result of Compile() to it first");
  detail::RunWaiting();
  runtime::RequireThreads(options.threads);
  if (impl_->gpu_calls != nullptr) return impl_->gpu_calls->Run(arguments, options);
  if (interpreted()) {
    (void)Ready();  // throws what went wrong
    plan::Interpret(*impl_->plan, arguments);
    return;
  }
  if (!impl_->calls->Takes(arguments.inputs.size(), arguments.outputs.size(), arguments.scalars.size()))
    return runtime::Run(*impl_->program, arguments, options);  // says what does not fit
  runtime::Operands operands;
  for (const auto* tensors : {&arguments.inputs, &arguments.outputs})
    for (const runtime::TensorRef& tensor : *tensors) {
      if (tensor.stride.size() != tensor.shape.size()) return runtime::Run(*impl_->program, arguments, options);
      operands.Add(tensor.data, tensor.dtype, static_cast<int>(tensor.shape.size()), tensor.shape.data(),
                   tensor.stride.data());
    }
  impl_->calls->Run(operands.data(), operands.layout(), arguments.scalars.data(), options.threads);
}

const runtime::Program& Function::program() const { return *shared_program(); }

std::shared_ptr<const runtime::Program> Function::shared_program() const {
  Require(impl_ != nullptr, "an empty Function has no program: assign the result of Compile() first");
  return impl_->program;
}

bool Function::interpreted() const { return impl_ != nullptr && !impl_->compiled.load(std::memory_order_acquire); }

void detail::TraceEager(const std::vector<std::string>& why) {
  static std::mutex mutex;
  static std::set<std::string> told;
  if (!runtime::ReadEnvironment().trace) return;
  const std::lock_guard lock(mutex);
  for (const std::string& one : why)
    if (told.insert(one).second) fmt::print(stderr, "--- eager: {}\n", one);
}

}  // namespace umbra

#include <fmt/format.h>

#include <cstdlib>

#include "compiler/driver/backend.h"
#include "compiler/driver/fatbin.h"
#include "compiler/driver/nvrtc.h"
#include "compiler/driver/target.h"
#include "runtime/blas.h"
#include "runtime/cpu_info.h"
#include "runtime/cuda_library.h"
#include "runtime/disk_cache.h"
#include "runtime/environment.h"
#include "tools/umbra/commands.h"
#include "umbra/cuda.h"
#include "umbra/error.h"

namespace umbra::tools {

UMBRA_REGISTER_PARAMETER(CacheOptions);

namespace {

void Say(const char* what, const std::string& state) { fmt::print("{:<16} {}\n", what, state); }

std::string NameOrProblem(const cuda::OpenedLibrary& library) {
  return library.name.empty() ? "missing: " + library.problem : library.name;
}

// The driver and each GPU.
void SayGpus() {
  const cuda::OpenedLibrary& driver = cuda::UseLibrary().DriverAsFound();
  if (driver.name.empty()) return Say("cuda driver", "missing: " + driver.problem);
  Say("cuda driver", fmt::format("{}, for CUDA {}.{}", driver.name, driver.version / 1000, driver.version % 1000 / 10));
  const int count = cuda::DeviceCount();
  if (count == 0) Say("gpu", "missing: the driver finds none; see nvidia-smi and CUDA_VISIBLE_DEVICES");
  for (int k = 0; k < count; ++k) {
    try {
      const cuda::DeviceProperties& p = cuda::Properties(k);
      Say(k == 0 ? "gpu" : "", fmt::format("{}: {}, sm_{}{}, {} multiprocessors, {} MiB", k, p.name, p.major, p.minor,
                                           p.multiprocessors, p.memory_bytes >> 20));
    } catch (const Error& error) { Say(k == 0 ? "gpu" : "", fmt::format("{}: cannot be used: {}", k, error.what())); }
  }
}

}  // namespace

void Doctor() {
  // What is malformed is said, and the rest looked at as if it were not set.
  for (const auto& [variable, problem] : runtime::MalformedVariables()) {
    Say("environment", problem);
    unsetenv(variable.c_str());
  }
  std::string targets;
  for (auto target : codegen::kAllTargets)
    if (HostRuns(target)) targets += (targets.empty() ? "" : " ") + std::string(Name(target));
  Say("cpu targets", fmt::format("{} (best: {})", targets, Name(HostTarget())));
  Say("processors",
      fmt::format("{}, last-level cache {} KiB", runtime::NumProcessors(), runtime::LastLevelCacheBytes() / 1024));
  try {
    Say("jit", ClangBackend().Id());
  } catch (const Error& error) { Say("jit", std::string("missing: ") + error.what()); }
  try {
    Say("system compiler", SystemBackend().Id());
  } catch (const Error& error) { Say("system compiler", std::string("missing: ") + error.what()); }
  Say("blas", runtime::BlasName().empty()
                  ? "missing: a plain loop is used; install the Debian package libopenblas0"
                  : runtime::BlasName() + (runtime::BlasCore().empty() ? "" : ", kernels for " + runtime::BlasCore()));
  if (!runtime::BlasProblem().empty()) Say("", runtime::BlasProblem());
  Say("for gpus only", "what follows up to cublas; a CPU needs none of it");
  Say("cuda library", NameOrProblem(cuda::FindLibrary()));
  const bool has_cuda = !cuda::FindLibrary().name.empty();
  if (has_cuda) SayGpus();
  const Nvrtc& nvrtc = FindNvrtc();
  Say("nvrtc", nvrtc.name.empty() ? "missing: " + nvrtc.problem
                                  : fmt::format("{}, {}.{}, for sm_{}", nvrtc.name, nvrtc.major, nvrtc.minor,
                                                fmt::join(nvrtc.architectures, " sm_")));
  Say("nvfatbin", NameOrProblem(FindFatbin()));
  if (has_cuda) Say("cublas", NameOrProblem(cuda::UseLibrary().CublasAsFound()));
  auto& cache = runtime::DiskCache::Default();
  const auto [entries, bytes] = cache.Usage();
  Say("kernel cache", cache.enabled()
                          ? fmt::format("{} ({} kernels, {} KiB)", cache.folder().string(), entries, bytes / 1024)
                          : "not used: " + cache.problem());
}

void Cache(const CacheOptions& options) {
  auto& cache = runtime::DiskCache::Default();
  Require(cache.enabled(), "the kernel cache is not used: ", cache.problem());
  if (options.action == "clear") cache.Clear();
  const auto [entries, bytes] = cache.Usage();
  fmt::print("{}\n", cache.folder().string());
  if (options.action != "folder") fmt::print("{} kernels, {} KiB\n", entries, bytes / 1024);
}

}  // namespace umbra::tools

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "compiler/driver/backend.h"
#include "compiler/driver/target.h"
#include "runtime/blas.h"
#include "runtime/cpu_info.h"
#include "runtime/disk_cache.h"
#include "runtime/environment.h"
#include "tools/umbra/commands.h"
#include "umbra/error.h"

namespace umbra::tools {

namespace {

void Say(const char* what, const std::string& state) { fmt::print("{:<16} {}\n", what, state); }

// The first of the libraries that can be opened, or nothing.
template <std::size_t n>
std::string FirstLibrary(const std::array<const char*, n>& names) {
  for (const char* name : names) {
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {
      dlclose(library);
      return name;
    }
  }
  return "";
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
  Say("processors", fmt::format("{}, last-level cache {} KiB", runtime::NumProcessors(),
                                runtime::LastLevelCacheBytes() / 1024));
  try {
    Say("jit", ClangBackend().Id());
  } catch (const Error& error) {
    Say("jit", std::string("missing: ") + error.what());
  }
  try {
    Say("system compiler", SystemBackend().Id());
  } catch (const Error& error) {
    Say("system compiler", std::string("missing: ") + error.what());
  }
  Say("blas", runtime::BlasName().empty()
                  ? "missing: a plain loop is used; install the Debian package libopenblas0"
                  : runtime::BlasName());
  if (!runtime::BlasProblem().empty()) Say("", runtime::BlasProblem());
  const std::string driver = FirstLibrary(std::array{"libcuda.so.1"});
  Say("cuda driver",
      driver.empty() ? "missing: no GPU can be used; it comes with NVIDIA's driver" : driver);
  const std::string nvrtc = FirstLibrary(std::array{"libnvrtc.so.13", "libnvrtc.so.12"});
  Say("nvrtc", nvrtc.empty() ? "missing: no CUDA code can be compiled; install NVRTC 12 or 13, "
                               "which is part of the CUDA toolkit"
                             : nvrtc);
  auto& cache = runtime::DiskCache::Default();
  const auto [entries, bytes] = cache.Usage();
  Say("kernel cache", cache.enabled() ? fmt::format("{} ({} kernels, {} KiB)",
                                                    cache.folder().string(), entries, bytes / 1024)
                                      : "not used: " + cache.problem());
}

void Cache(const std::string& action) {
  auto& cache = runtime::DiskCache::Default();
  Require(cache.enabled(), "the kernel cache is not used: ", cache.problem());
  if (action == "clear") cache.Clear();
  const auto [entries, bytes] = cache.Usage();
  fmt::print("{}\n", cache.folder().string());
  if (action != "folder") fmt::print("{} kernels, {} KiB\n", entries, bytes / 1024);
}

}  // namespace umbra::tools

#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include "runtime/cuda/library.h"
#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra::cuda {

namespace {

constexpr int kOldestVersion = 12000;

std::string Words(const Driver& driver, Result result) {
  const char *name = nullptr, *text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  return detail::Concat(name == nullptr ? "unknown error" : name, text == nullptr ? "" : ": ",
                        text == nullptr ? "" : text, " (", result, ")");
}

Driver Open() {
  Driver driver;
  const std::string chosen = runtime::ReadEnvironment().cuda_driver;
  const std::string name = chosen.empty() ? "libcuda.so.1" : chosen;
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    driver.problem = "there is no CUDA driver (" + name + "); it comes with NVIDIA's driver for the GPU";
    return driver;
  }
  const auto too_old = [&](const std::string& why) {
    driver.problem = "the CUDA driver (" + name + ") " + why +
                     ": it is too old; install NVIDIA's driver 525 or newer, which supports CUDA 12";
    return driver;
  };
#define UMBRA_FIND_CUDA_FUNCTION(function, arguments)                                       \
  driver.function = reinterpret_cast<decltype(driver.function)>(dlsym(library, #function)); \
  if (driver.function == nullptr) return too_old("has no " #function);
  UMBRA_CUDA_FUNCTIONS(UMBRA_FIND_CUDA_FUNCTION)
#undef UMBRA_FIND_CUDA_FUNCTION
  if (const Result result = driver.cuInit(0); result != kSuccess) {
    driver.problem = "the CUDA driver (" + name + ") cannot be used: " + Words(driver, result);
    return driver;
  }
  driver.cuDriverGetVersion(&driver.version);
  if (driver.version < kOldestVersion)
    return too_old("supports CUDA " + std::to_string(driver.version / 1000) + "." +
                   std::to_string(driver.version % 1000 / 10));
  driver.name = name;
  return driver;
}

}  // namespace

const Driver& FindDriver() noexcept {
  static const Driver driver = runtime::AsFound<Driver>(Open);
  return driver;
}

const Driver& UseDriver() {
  const Driver& driver = FindDriver();
  Require(!driver.name.empty(), driver.problem);
  return driver;
}

std::string Words(Result result) { return Words(FindDriver(), result); }

const OpenedLibrary& library::DriverAsFound() { return FindDriver(); }

}  // namespace umbra::cuda

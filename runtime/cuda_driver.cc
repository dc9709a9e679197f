#include "runtime/cuda_driver.h"

#include <dlfcn.h>

#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra::cuda {

namespace {

std::string Words(const Driver& driver, Result result) {
  const char *name = nullptr, *text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  return std::string(name == nullptr ? "unknown error" : name) + (text == nullptr ? "" : std::string(": ") + text);
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
#define UMBRA_FIND_CUDA_FUNCTION(function, arguments)                                               \
  driver.function = reinterpret_cast<decltype(driver.function)>(dlsym(library, #function));         \
  if (driver.function == nullptr) {                                                                 \
    driver.problem = name + " has no " #function ": it is too old; CUDA 12 or newer is expected"; \
    return driver;                                                                                  \
  }
  UMBRA_CUDA_FUNCTIONS(UMBRA_FIND_CUDA_FUNCTION)
#undef UMBRA_FIND_CUDA_FUNCTION
  if (const Result result = driver.cuInit(0); result != kSuccess) {
    driver.problem = "the CUDA driver (" + name + ") cannot be used: " + Words(driver, result);
    return driver;
  }
  driver.name = name;
  return driver;
}

}  // namespace

const Driver& FindDriver() noexcept {
  static const Driver driver = [] {
    try {
      return Open();
    } catch (const Error& error) {
      Driver none;
      none.problem = error.what();
      return none;
    }
  }();
  return driver;
}

const Driver& UseDriver() {
  const Driver& driver = FindDriver();
  Require(!driver.name.empty(), driver.problem);
  return driver;
}

void Check(Result result, const char* function, const std::string& doing) {
  Require(result == kSuccess, doing, ": ", function, " gives ", Words(FindDriver(), result), " (", result, ")");
}

}  // namespace umbra::cuda

#include "runtime/cuda/cublas.h"

#include <dlfcn.h>

#include "runtime/cuda/library.h"
#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra::cuda {

namespace {

constexpr const char* kRemedy =
    "; install cuBLAS 12 or 13, which is part of the CUDA toolkit, or name the library in UMBRA_CUBLASLT";

// Fills `cublas` from the library `name`; says why it cannot, or nothing.
std::string Use(const std::string& name, Cublas* cublas) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
#define UMBRA_FIND_CUBLAS_FUNCTION(function, result, arguments)                               \
  cublas->function = reinterpret_cast<decltype(cublas->function)>(dlsym(library, #function)); \
  if (cublas->function == nullptr) return name + " has no " #function;
  UMBRA_CUBLAS_FUNCTIONS(UMBRA_FIND_CUBLAS_FUNCTION)
#undef UMBRA_FIND_CUBLAS_FUNCTION
  cublas->name = name;
  return "";
}

Cublas Open() {
  Cublas cublas;
  const std::string chosen = runtime::ReadEnvironment().cublaslt;
  if (!chosen.empty()) {
    const std::string problem = Use(chosen, &cublas);
    if (!problem.empty()) cublas.problem = "UMBRA_CUBLASLT=" + chosen + " cannot be used: " + problem + kRemedy;
    return cublas;
  }
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so"})
    if (Use(name, &cublas).empty()) return cublas;
  cublas.problem = std::string("there is no cuBLAS for matrix products on the GPU (libcublasLt.so.13 or .12)") + kRemedy;
  return cublas;
}

}  // namespace

const Cublas& FindCublas() noexcept {
  static const Cublas cublas = [] {
    try {
      return Open();
    } catch (const Error& error) {
      Cublas none;
      none.problem = error.what();
      return none;
    }
  }();
  return cublas;
}

const Cublas& UseCublas() {
  const Cublas& cublas = FindCublas();
  Require(!cublas.name.empty(), cublas.problem);
  return cublas;
}

const OpenedLibrary& library::CublasAsFound() { return FindCublas(); }

}  // namespace umbra::cuda

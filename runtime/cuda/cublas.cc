#include "runtime/cuda/cublas.h"

#include "runtime/cuda/driver.h"
#include "runtime/cuda/library.h"
#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra::cuda {

namespace {

Cublas Open() {
  Cublas cublas;
#define UMBRA_CUBLAS_POINTER(function, result, arguments) {#function, reinterpret_cast<void**>(&cublas.function)},
  const auto use = [&](const std::string& name) {
    return runtime::FindFunctions(name, {UMBRA_CUBLAS_FUNCTIONS(UMBRA_CUBLAS_POINTER)});
  };
#undef UMBRA_CUBLAS_POINTER
  static_cast<OpenedLibrary&>(cublas) = runtime::OpenWanted(
      {{"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so"},
       "UMBRA_CUBLASLT",
       "there is no cuBLAS for matrix products on the GPU (libcublasLt.so.13 or .12)",
       "; install cuBLAS 12 or 13, which is part of the CUDA toolkit, or name the library in UMBRA_CUBLASLT",
       FindDriver().version},
      runtime::ReadEnvironment().cublaslt, use);
  return cublas;
}

}  // namespace

const Cublas& FindCublas() noexcept {
  static const Cublas cublas = runtime::AsFound<Cublas>(Open);
  return cublas;
}

const Cublas& UseCublas() {
  const Cublas& cublas = FindCublas();
  Require(!cublas.name.empty(), cublas.problem);
  return cublas;
}

const OpenedLibrary& library::CublasAsFound() { return FindCublas(); }

}  // namespace umbra::cuda

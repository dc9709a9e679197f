// The environment variables that Umbra reads, each declared once with its meaning.
#ifndef UMBRA_RUNTIME_ENVIRONMENT_H_
#define UMBRA_RUNTIME_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "umbra/parameter.h"

namespace umbra::runtime {

/// Field `cache_dir` is the variable UMBRA_CACHE_DIR, and so on.
struct Environment : Parameter<Environment> {
  std::string cache_dir;
  int cache_max_mb;
  int max_kernels;
  std::string cxx;
  std::string jit_library;
  std::string blas;
  std::string cuda_library;
  std::string cuda_driver;
  std::string nvrtc;
  std::string nvfatbin;
  std::string cublaslt;
  std::string target;
  bool trace;

  UMBRA_DECLARE_PARAMETER(Environment) {
    UMBRA_DECLARE_FIELD(cache_dir).set_default("").describe(
        "Folder of the kernel cache, or 'off'; else $XDG_CACHE_HOME/umbra or ~/.cache/umbra.");
    UMBRA_DECLARE_FIELD(cache_max_mb)
        .set_default(256)
        .set_lower_bound(1)
        .describe("Megabytes that the kernel cache may take; the kernels unused longest go first.");
    UMBRA_DECLARE_FIELD(max_kernels)
        .set_default(1024)
        .set_lower_bound(1)
        .describe(
            "Compiled kernels that a process keeps though nothing uses them; those of the graphs unused longest go first.");
    UMBRA_DECLARE_FIELD(cxx).set_default("c++").describe(
        "C++ compiler of the engine 'system', g++ or clang++; else c++.");
    UMBRA_DECLARE_FIELD(jit_library)
        .set_default("")
        .describe("Path of libumbra_jit; else it is looked for beside libumbra_runtime.");
    UMBRA_DECLARE_FIELD(blas).set_default("").describe(
        "File name of a library with CBLAS; else OpenBLAS, BLIS, MKL or a reference BLAS.");
    UMBRA_DECLARE_FIELD(cuda_library)
        .set_default("")
        .describe("Path of libumbra_cuda, Umbra's own part for GPUs; else it is looked for beside libumbra_runtime.");
    UMBRA_DECLARE_FIELD(cuda_driver)
        .set_default("")
        .describe("File name of the CUDA driver's library; else libcuda.so.1.");
    UMBRA_DECLARE_FIELD(nvrtc).set_default("").describe(
        "File name of NVRTC, which compiles for GPUs; else libnvrtc.so.13 or libnvrtc.so.12.");
    UMBRA_DECLARE_FIELD(nvfatbin).set_default("").describe(
        "File name of nvFatbin, which joins code for several GPUs in one file; else libnvfatbin.so.13 or libnvfatbin.so.12.");
    UMBRA_DECLARE_FIELD(cublaslt).set_default("").describe(
        "File name of cuBLASLt, for matrix products on GPUs; else libcublasLt.so.13 or libcublasLt.so.12.");
    UMBRA_DECLARE_FIELD(target).set_default("").describe(
        "Instruction set that kernels compiled ahead of time use; else the widest that the CPU runs.");
    UMBRA_DECLARE_FIELD(trace).set_default(false).describe(
        "Prints what each pass made and how long it took, and what keeps expressions from being compiled, on standard error.");
  }
};

/// The variables as they are now; empty ones count as not set. Throws ParamError, naming the variable, for
/// a text that is no value of it.
Environment ReadEnvironment();

/// A variable whose text is no value of it.
struct MalformedVariable {
  std::string name, problem;  ///< the problem names the variable
};
std::vector<MalformedVariable> MalformedVariables();

/// All variables with their meaning, for a help text.
std::string EnvironmentHelp();

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_ENVIRONMENT_H_

// NVRTC, opened at run time: CUDA C++ to PTX or machine code for GPUs, on machines with or without one.
#ifndef UMBRA_COMPILER_DRIVER_NVRTC_H_
#define UMBRA_COMPILER_DRIVER_NVRTC_H_

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/cuda_image.h"
#include "runtime/opened_library.h"

namespace umbra {

/// The entry points of libnvrtc, as NVIDIA documents them (CUDA 12 and 13 agree on what is here).
struct Nvrtc : runtime::OpenedLibrary {
  int major = 0, minor = 0;
  std::vector<int> architectures;  ///< that it compiles for; 80 is sm_80
#define UMBRA_NVRTC_FUNCTIONS(F)                                                                              \
  F(nvrtcVersion, int, (int*, int*))                                                                          \
  F(nvrtcGetErrorString, const char*, (int))                                                                  \
  F(nvrtcGetNumSupportedArchs, int, (int*))                                                                   \
  F(nvrtcGetSupportedArchs, int, (int*))                                                                      \
  F(nvrtcCreateProgram, int, (void**, const char*, const char*, int, const char* const*, const char* const*)) \
  F(nvrtcDestroyProgram, int, (void**))                                                                       \
  F(nvrtcCompileProgram, int, (void*, int, const char* const*))                                               \
  F(nvrtcGetProgramLogSize, int, (void*, std::size_t*))                                                       \
  F(nvrtcGetProgramLog, int, (void*, char*))                                                                  \
  F(nvrtcGetPTXSize, int, (void*, std::size_t*))                                                              \
  F(nvrtcGetPTX, int, (void*, char*))                                                                         \
  F(nvrtcGetCUBINSize, int, (void*, std::size_t*))                                                            \
  F(nvrtcGetCUBIN, int, (void*, char*))
#define UMBRA_DECLARE_NVRTC_FUNCTION(function, result, arguments) result(*function) arguments = nullptr;
  UMBRA_NVRTC_FUNCTIONS(UMBRA_DECLARE_NVRTC_FUNCTION)
#undef UMBRA_DECLARE_NVRTC_FUNCTION

  bool IsAtLeast(int wanted, int and_minor) const { return major > wanted || (major == wanted && minor >= and_minor); }
  /// "nvrtc-13.0"; part of the cache key.
  std::string Id() const;
};

/// The library of this process, opened at the first call. Does not throw.
const Nvrtc& FindNvrtc() noexcept;
/// The library, ready for use. Throws umbra::Error, with what to do, if there is none.
const Nvrtc& UseNvrtc();

/// What a compile is for.
struct CudaTarget {
  cuda::Architecture architecture;
  cuda::ImageForm form = cuda::ImageForm::kCubin;
  bool fast = false;  ///< may a * b + c be rounded once? Strict arithmetic says no
};

/// The architectures of a list such as "sm_80,sm_90", each once, from the oldest. Throws umbra::Error.
std::vector<cuda::Architecture> ParseArchitectures(const std::string& list);

/// Compiles CUDA C++, which includes nothing, to an image; an equal compile costs a look-up in the disk cache if
/// `use_disk_cache`. `name` stands for the source in messages. Thread-safe; calls run side by side. Throws umbra::Error
/// with the compiler's log and the lines that it speaks of, or if it does not know the architecture.
cuda::Image CompileCuda(const std::string& source, const std::string& name, const CudaTarget& target,
                        bool use_disk_cache = true);

/// Machine code for each of `architectures`, which are some, from the oldest, and PTX of the last for devices that are
/// later; `fast` as of CudaTarget.
std::vector<CudaTarget> TargetsForAll(const std::vector<cuda::Architecture>& architectures, bool fast = false);

}  // namespace umbra

#endif  // UMBRA_COMPILER_DRIVER_NVRTC_H_

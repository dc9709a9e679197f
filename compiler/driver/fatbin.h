// Fat binaries, which the CUDA driver and cuobjdump read: NVIDIA's library nvFatbin makes them, opened at run time.
#ifndef UMBRA_COMPILER_DRIVER_FATBIN_H_
#define UMBRA_COMPILER_DRIVER_FATBIN_H_

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/cuda_image.h"
#include "runtime/opened_library.h"

namespace umbra {

/// The entry points of libnvfatbin, as NVIDIA documents them (CUDA 12.4 and later).
struct NvFatbin : runtime::OpenedLibrary {
#define UMBRA_NVFATBIN_FUNCTIONS(F)                                                                \
  F(nvFatbinGetErrorString, const char*, (int))                                                    \
  F(nvFatbinCreate, int, (void**, const char**, std::size_t))                                      \
  F(nvFatbinDestroy, int, (void**))                                                                \
  F(nvFatbinAddPTX, int, (void*, const char*, std::size_t, const char*, const char*, const char*)) \
  F(nvFatbinAddCubin, int, (void*, const void*, std::size_t, const char*, const char*))            \
  F(nvFatbinSize, int, (void*, std::size_t*))                                                      \
  F(nvFatbinGet, int, (void*, void*))
#define UMBRA_DECLARE_NVFATBIN_FUNCTION(function, result, arguments) result(*function) arguments = nullptr;
  UMBRA_NVFATBIN_FUNCTIONS(UMBRA_DECLARE_NVFATBIN_FUNCTION)
#undef UMBRA_DECLARE_NVFATBIN_FUNCTION
};

/// The library of this process, opened at the first call. Does not throw.
const NvFatbin& FindFatbin() noexcept;
/// The library, ready for use. Throws umbra::Error, with what to do, if there is none.
const NvFatbin& UseFatbin();

/// One file of several images; `name` is what tools call its entries. Throws umbra::Error if the library refuses them.
std::string MakeFatbin(const std::vector<cuda::Image>& images, const std::string& name);

}  // namespace umbra

#endif  // UMBRA_COMPILER_DRIVER_FATBIN_H_

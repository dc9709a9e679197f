#include "compiler/driver/fatbin.h"

#include <dlfcn.h>

#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra {

namespace {

// Fills `fatbin` from the library `name`; says why it cannot, or nothing.
std::string Use(const std::string& name, NvFatbin* fatbin) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
#define UMBRA_FIND_NVFATBIN_FUNCTION(function, result, arguments)                             \
  fatbin->function = reinterpret_cast<decltype(fatbin->function)>(dlsym(library, #function)); \
  if (fatbin->function == nullptr) return name + " has no " #function;
  UMBRA_NVFATBIN_FUNCTIONS(UMBRA_FIND_NVFATBIN_FUNCTION)
#undef UMBRA_FIND_NVFATBIN_FUNCTION
  return "";
}

NvFatbin Open() {
  NvFatbin fatbin;
  const std::string chosen = runtime::ReadEnvironment().nvfatbin;
  constexpr const char* kRemedy =
      "; install nvFatbin of CUDA 12.4 or later (package nvidia-nvfatbin, or cuda-nvfatbin of the toolkit) or name the library in "
      "UMBRA_NVFATBIN; without it, --as cubin makes a file for each architecture";
  if (!chosen.empty()) {
    const std::string problem = Use(chosen, &fatbin);
    Require(problem.empty(), "UMBRA_NVFATBIN=", chosen, " cannot be used: ", problem, kRemedy);
    return fatbin;
  }
  for (const char* name : {"libnvfatbin.so.13", "libnvfatbin.so.12", "/usr/local/cuda/lib64/libnvfatbin.so"})
    if (Use(name, &fatbin).empty()) return fatbin;
  throw Error(detail::Concat("there is no nvFatbin to join code for several GPUs with (libnvfatbin.so.13 or .12)", kRemedy));
}

}  // namespace

const NvFatbin& UseFatbin() {
  static const NvFatbin fatbin = Open();
  return fatbin;
}

std::string MakeFatbin(const std::vector<cuda::Image>& images, const std::string& name) {
  const NvFatbin& library = UseFatbin();
  const auto check = [&](int status) {
    Require(status == 0, "nvFatbin cannot join the code of '", name, "' for several GPUs: ", library.nvFatbinGetErrorString(status));
  };
  struct Handle {
    ~Handle() { library.nvFatbinDestroy(&handle); }
    const NvFatbin& library;
    void* handle = nullptr;
  } of{library};
  const char* options[] = {"-64"};
  check(library.nvFatbinCreate(&of.handle, options, 1));
  for (const cuda::Image& image : images) {
    const std::string architecture = image.architecture.Name().substr(3);
    if (image.form == cuda::ImageForm::kPtx)  // its terminating zero is part of it
      check(library.nvFatbinAddPTX(of.handle, image.bytes.c_str(), image.bytes.size() + 1, architecture.c_str(), name.c_str(), nullptr));
    else
      check(library.nvFatbinAddCubin(of.handle, image.bytes.data(), image.bytes.size(), architecture.c_str(), name.c_str()));
  }
  std::size_t size = 0;
  check(library.nvFatbinSize(of.handle, &size));
  std::string file(size, '\0');
  check(library.nvFatbinGet(of.handle, file.data()));
  return file;
}

}  // namespace umbra

#include "compiler/driver/fatbin.h"

#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra {

namespace {

NvFatbin Open() {
  NvFatbin fatbin;
#define UMBRA_NVFATBIN_POINTER(function, result, arguments) {#function, reinterpret_cast<void**>(&fatbin.function)},
  const auto use = [&](const std::string& name) {
    return runtime::FindFunctions(name, {UMBRA_NVFATBIN_FUNCTIONS(UMBRA_NVFATBIN_POINTER)});
  };
#undef UMBRA_NVFATBIN_POINTER
  static_cast<runtime::OpenedLibrary&>(fatbin) = runtime::OpenWanted(
      {{"libnvfatbin.so.13", "libnvfatbin.so.12", "/usr/local/cuda/lib64/libnvfatbin.so"},
       "UMBRA_NVFATBIN",
       "there is no nvFatbin to join code for several GPUs with (libnvfatbin.so.13 or .12)",
       "; install nvFatbin of CUDA 12.4 or later (package nvidia-nvfatbin, or cuda-nvfatbin of the toolkit) or name the library in "
       "UMBRA_NVFATBIN; without it, --as cubin makes a file for each architecture"},
      runtime::ReadEnvironment().nvfatbin, use);
  return fatbin;
}

}  // namespace

const NvFatbin& FindFatbin() noexcept {
  static const NvFatbin fatbin = runtime::AsFound<NvFatbin>(Open);
  return fatbin;
}

const NvFatbin& UseFatbin() {
  const NvFatbin& fatbin = FindFatbin();
  Require(!fatbin.name.empty(), fatbin.problem);
  return fatbin;
}

std::string MakeFatbin(const std::vector<cuda::Image>& images, const std::string& name) {
  const NvFatbin& library = UseFatbin();
  const auto check = [&](int status) {
    Require(status == 0, "nvFatbin cannot join the code of '", name,
            "' for several GPUs: ", library.nvFatbinGetErrorString(status));
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
      check(library.nvFatbinAddPTX(of.handle, image.bytes.c_str(), image.bytes.size() + 1, architecture.c_str(),
                                   name.c_str(), nullptr));
    else
      check(library.nvFatbinAddCubin(of.handle, image.bytes.data(), image.bytes.size(), architecture.c_str(),
                                     name.c_str()));
  }
  std::size_t size = 0;
  check(library.nvFatbinSize(of.handle, &size));
  std::string file(size, '\0');
  check(library.nvFatbinGet(of.handle, file.data()));
  return file;
}

}  // namespace umbra

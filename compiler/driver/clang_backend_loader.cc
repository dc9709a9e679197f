#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "compiler/driver/backend.h"
#include "runtime/environment.h"
#include "umbra/error.h"

namespace umbra {

namespace {

// libumbra_jit lies beside this library, unless UMBRA_JIT_LIBRARY names another.
std::string JitLibrary() {
  const std::string chosen = runtime::ReadEnvironment().jit_library;
  if (!chosen.empty()) return chosen;
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&ClangBackend), &info) != 0 && info.dli_fname != nullptr) {
    const auto beside = std::filesystem::path(info.dli_fname).parent_path() / "libumbra_jit.so";
    if (std::filesystem::exists(beside)) return beside.string();
  }
  return "libumbra_jit.so";
}

Backend* OpenClangBackend() {
  const std::string path = JitLibrary();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw Error("the in-process compiler cannot be opened: " +
                std::string(reason != nullptr ? reason : path) +
                "; install the Debian packages libclang-cpp19 and libllvm19, or choose the system "
                "compiler (--compiler=system)");
  }
  const auto entry = reinterpret_cast<BackendEntry>(dlsym(library, kBackendEntry));
  Require(entry != nullptr, path, " is not Umbra's: it has no ", kBackendEntry);
  return entry();
}

}  // namespace

Backend& ClangBackend() {
  static Backend* backend = OpenClangBackend();
  return *backend;
}

std::string ClangBackendId() { return "clang-" UMBRA_LLVM_VERSION; }

}  // namespace umbra

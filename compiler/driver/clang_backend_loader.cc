#include "compiler/driver/backend.h"
#include "runtime/environment.h"
#include "runtime/opened_library.h"

namespace umbra {

Backend& ClangBackend() {
  static Backend* backend = [] {
    const runtime::OwnLibrary library = runtime::OpenOwnLibrary(
        "libumbra_jit", runtime::ReadEnvironment().jit_library, kBackendEntry, "the in-process compiler",
        "install the Debian packages libclang-cpp19 and libllvm19, or let a C++ compiler of the system compile: Engine::kSystem, ahead of time sources in place of objects");
    return reinterpret_cast<BackendEntry>(library.entry)();
  }();
  return *backend;
}

// The number rises when the same source becomes other code.
std::string ClangBackendId() { return "clang-" UMBRA_LLVM_VERSION "/2"; }

}  // namespace umbra

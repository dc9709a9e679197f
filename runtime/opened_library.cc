#include "runtime/opened_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include "umbra/error.h"

namespace umbra::runtime {

namespace {

// The file of this version that lies beside this library, or its bare name.
std::string FileOf(const std::string& name) {
  const std::string file = name + ".so." UMBRA_SOVERSION;
  Dl_info own;
  if (dladdr(reinterpret_cast<void*>(&OpenOwnLibrary), &own) == 0 || own.dli_fname == nullptr) return file;
  std::string beside = own.dli_fname;
  beside.replace(beside.rfind('/') + 1, std::string::npos, file);
  return access(beside.c_str(), F_OK) == 0 ? beside : file;
}

}  // namespace

OwnLibrary OpenOwnLibrary(const std::string& name, const std::string& chosen, const char* entry, const char* purpose,
                          const char* remedy) {
  OwnLibrary library{chosen.empty() ? FileOf(name) : chosen};
  void* const opened = dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* const reason = dlerror();
    throw Error(detail::Concat(purpose, " cannot be opened: ", reason != nullptr ? reason : library.path.c_str(), "; ", remedy));
  }
  library.entry = dlsym(opened, entry);
  Require(library.entry != nullptr, library.path, " is not ", name, " of Umbra: it has no ", entry);
  return library;
}

}  // namespace umbra::runtime

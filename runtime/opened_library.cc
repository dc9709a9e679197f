#include "runtime/opened_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "umbra/error.h"

namespace umbra::runtime {

namespace {

// The file of this version that lies beside this library, or its bare name.
std::string FileOf(const std::string& name) {
  const std::string file = name + ".so." UMBRA_SOVERSION;
  const std::string folder = FolderOf(reinterpret_cast<void*>(&OpenOwnLibrary)), beside = folder + file;
  return !folder.empty() && access(beside.c_str(), F_OK) == 0 ? beside : file;
}

// The CUDA that a library is of by its name: 13 of "libnvrtc.so.13", 0 of one that does not tell.
int MajorOf(const char* name) {
  const char* const end = std::strrchr(name, '.');
  return end == nullptr ? 0 : std::atoi(end + 1);
}

}  // namespace

std::string FindFunctions(const std::string& name, std::initializer_list<LibraryFunction> functions) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  for (const LibraryFunction& function : functions) {
    *function.pointer = dlsym(library, function.name);
    if (*function.pointer == nullptr) return name + " has no " + function.name;
  }
  return "";
}

OpenedLibrary OpenWanted(const WantedLibrary& wanted, const std::string& chosen,
                         const std::function<std::string(const std::string&)>& use) {
  OpenedLibrary library;
  if (!chosen.empty()) {
    const std::string problem = use(chosen);
    if (problem.empty()) library.name = chosen;
    else library.problem = detail::Concat(wanted.variable, "=", chosen, " cannot be used: ", problem, wanted.remedy);
    return library;
  }
  std::vector<const char*> names = wanted.names;
  if (wanted.driver != 0)
    std::stable_partition(names.begin(), names.end(),
                          [&](const char* name) { return MajorOf(name) <= wanted.driver / 1000; });
  for (const char* name : names)
    if (use(name).empty()) {
      library.name = name;
      return library;
    }
  library.problem = detail::Concat(wanted.absent, wanted.remedy);
  return library;
}

std::string FolderOf(const void* code) {
  Dl_info info;
  if (dladdr(code, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

OwnLibrary OpenOwnLibrary(const std::string& name, const std::string& chosen, const char* entry, const char* purpose,
                          const char* remedy) {
  OwnLibrary library{chosen.empty() ? FileOf(name) : chosen};
  void* const opened = dlopen(library.path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (opened == nullptr) {
    const char* const reason = dlerror();
    throw Error(detail::Concat(purpose, " cannot be opened: ", reason != nullptr ? reason : library.path.c_str(), "; ",
                               remedy));
  }
  library.entry = dlsym(opened, entry);
  Require(library.entry != nullptr, library.path, " is not ", name, " of Umbra: it has no ", entry);
  return library;
}

}  // namespace umbra::runtime

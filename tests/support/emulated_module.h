// An image of the stand-in for NVRTC, "emulated SIZE", a new line and a shared object, loaded for the stand-in for the
// driver.
#ifndef UMBRA_TESTS_SUPPORT_EMULATED_MODULE_H_
#define UMBRA_TESTS_SUPPORT_EMULATED_MODULE_H_

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "tests/support/cuda_stand_in.h"

namespace umbra::stand_in {

class EmulatedModule {
 public:
  static bool Is(const void* image) { return std::strncmp(static_cast<const char*>(image), "emulated ", 9) == 0; }

  explicit EmulatedModule(const void* image) {
    const char* const text = static_cast<const char*>(image) + 9;
    const std::size_t size = std::strtoul(text, nullptr, 10);
    std::string path = (std::filesystem::temp_directory_path() / "umbra-emulated-XXXXXX").string();
    const int file = mkstemp(path.data());
    const bool written = file >= 0 && write(file, std::strchr(text, '\n') + 1, size) == static_cast<ssize_t>(size);
    close(file);
    library_ = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    unlink(path.c_str());
  }
  ~EmulatedModule() {
    if (library_ != nullptr) dlclose(library_);
  }
  EmulatedModule(const EmulatedModule&) = delete;
  EmulatedModule& operator=(const EmulatedModule&) = delete;

  bool loaded() const { return library_ != nullptr; }
  bool Has(const std::string& kernel) const { return Find(kernel) != nullptr; }
  /// Runs a launch; says on standard error why it cannot end.
  bool Run(const std::string& kernel, const Launch& launch) const {
    const std::string said = Find(kernel)(launch.arguments.data(), launch.arguments.size(), launch.grid.data(),
                                          launch.block.data(), launch.shared_bytes);
    if (!said.empty()) std::fprintf(stderr, "kernel '%s': %s\n", kernel.c_str(), said.c_str());
    return said.empty();
  }

 private:
  using Emulate = const char* (*)(const void* arguments, std::size_t argument_bytes, const unsigned* grid,
                                  const unsigned* block, std::size_t shared);
  Emulate Find(const std::string& kernel) const {
    return reinterpret_cast<Emulate>(dlsym(library_, ("emulate_" + kernel).c_str()));
  }

  void* library_ = nullptr;
};

}  // namespace umbra::stand_in

#endif  // UMBRA_TESTS_SUPPORT_EMULATED_MODULE_H_

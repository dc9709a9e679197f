// Libraries that a process opens when it first needs them: what was found, and how Umbra finds its own.
#ifndef UMBRA_RUNTIME_OPENED_LIBRARY_H_
#define UMBRA_RUNTIME_OPENED_LIBRARY_H_

#include <string>

namespace umbra::runtime {

/// A library as it was found.
struct OpenedLibrary {
  std::string name;     ///< empty if there is none
  std::string problem;  ///< why not
  int version = 0;      ///< of the CUDA driver: the CUDA that it supports, 13000 for 13.0
};

/// A library of Umbra.
struct OwnLibrary {
  std::string path;
  void* entry = nullptr;  ///< a C function of it
};

/// Opens the library `name` ("libumbra_jit"), which lies beside libumbra_runtime or where the system looks, unless `chosen`
/// names a file. Throws umbra::Error: what cannot be opened, with its `purpose`, why, and the `remedy`.
OwnLibrary OpenOwnLibrary(const std::string& name, const std::string& chosen, const char* entry, const char* purpose,
                          const char* remedy);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_OPENED_LIBRARY_H_

// Libraries that a process opens when it first needs them: what was found, and how Umbra finds its own.
#ifndef UMBRA_RUNTIME_OPENED_LIBRARY_H_
#define UMBRA_RUNTIME_OPENED_LIBRARY_H_

#include <functional>
#include <initializer_list>
#include <string>

#include "umbra/error.h"

namespace umbra::runtime {

/// A library as it was found.
struct OpenedLibrary {
  std::string name;  ///< empty if there is none
  std::string problem;  ///< why not
  int version = 0;  ///< of the CUDA driver: the CUDA that it supports, 13000 for 13.0
};

/// A function of a library, by name, and the pointer to it that is to be filled.
struct LibraryFunction {
  const char* name;
  void** pointer;
};
/// Opens the library `name` and fills the pointers. Returns why it cannot, or nothing.
std::string FindFunctions(const std::string& name, std::initializer_list<LibraryFunction> functions);

/// A library of others that Umbra can do without until something needs it.
struct WantedLibrary {
  std::initializer_list<const char*> names;  ///< the best one first
  const char* variable;  ///< of the environment, which may name another
  const char* absent;  ///< "there is no NVRTC to compile with"
  const char* remedy;  ///< what to do about it
  int driver = 0;  ///< what the CUDA driver supports, as `version` says it; 0: not known
};
/// Uses the library that `chosen` names, the value of the variable, or else the first of the names that can be used;
/// those of a later CUDA than the driver's, which may refuse them, come last. `use` opens one and returns why it
/// cannot, or nothing.
OpenedLibrary OpenWanted(const WantedLibrary& wanted, const std::string& chosen,
                         const std::function<std::string(const std::string&)>& use);

/// What `open` gives, or, where it throws umbra::Error, a library that is not there for that reason.
template <typename Library, typename Open>
Library AsFound(const Open& open) {
  try {
    return open();
  } catch (const Error& error) {
    Library none;
    none.problem = error.what();
    return none;
  }
}

/// The folder of the library or program that `code` belongs to, with a slash at its end; empty if that is not known.
std::string FolderOf(const void* code);

/// A library of Umbra.
struct OwnLibrary {
  std::string path;
  void* entry = nullptr;  ///< a C function of it
};

/// Opens the library `name` ("libumbra_jit"), which lies beside libumbra_runtime or where the system looks, unless
/// `chosen` names a file. Throws umbra::Error: what cannot be opened, with its `purpose`, why, and the `remedy`.
OwnLibrary OpenOwnLibrary(const std::string& name, const std::string& chosen, const char* entry, const char* purpose,
                          const char* remedy);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_OPENED_LIBRARY_H_

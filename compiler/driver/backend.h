// The seam between the compiler and the code makers that live behind it: a backend turns a source
// into machine code. The Clang backend is in libumbra_jit, which is opened when the first kernel
// has to be compiled; the system compiler needs no library of ours.
#ifndef UMBRA_COMPILER_DRIVER_BACKEND_H_
#define UMBRA_COMPILER_DRIVER_BACKEND_H_

#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/source.h"

namespace umbra {

/// Milliseconds spent in each part of a compile.
struct CompileTimes {
  double front_end = 0, optimise = 0, codegen = 0, link = 0;
};

/// Machine code as it is stored in the disk cache.
struct ObjectCode {
  std::vector<char> bytes;  ///< a relocatable ELF object (clang) or a shared object (system)
  CompileTimes times;
};

/// What an object of a build has besides its code.
struct ObjectOptions {
  std::string file = "kernel.cc";  ///< what the source is called, in messages and for debuggers
  bool line_table = false;  ///< for debuggers and profilers
  /// OLD=NEW: names of files in the line table that begin with OLD begin with NEW.
  std::vector<std::string> prefix_maps;
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// Names the backend and its version, e.g. "clang-19.1.7"; part of the cache key.
  virtual std::string Id() const = 0;
  /// Compiles to an object in memory. Thread-safe. Throws umbra::Error with the compiler's text.
  virtual ObjectCode Compile(const codegen::Source& source, codegen::Target target) = 0;
  /// Compiles to a relocatable object that programs and shared libraries are linked with; the same bytes for the same
  /// arguments. Thread-safe. Throws umbra::Error with the compiler's text, or if this backend makes none.
  virtual std::vector<char> MakeObject(const codegen::Source& source, codegen::Target target,
                                       const ObjectOptions& options) = 0;
  /// Maps freshly compiled code into the process and finds `function`.
  virtual runtime::KernelCode Load(const ObjectCode& object, const std::string& function) = 0;
  /// Also prints LLVM IR or assembly ("llvm", "asm") for inspection.
  virtual std::string Print(const codegen::Source& source, codegen::Target target, const std::string& form) = 0;
};

/// The Clang + ORC backend; opens libumbra_jit on first use. Throws umbra::Error that says which
/// package is missing.
Backend& ClangBackend();
/// What the code that ClangBackend() makes of a source follows from, without opening the library: the LLVM that Umbra
/// was built against, and Umbra's part.
std::string ClangBackendId();
/// g++, clang++ or $UMBRA_CXX as a child process, loading a shared object.
Backend& SystemBackend();

/// The entry of libumbra_jit: `extern "C" umbra::Backend* umbra_clang_backend()`.
using BackendEntry = Backend* (*)();
inline constexpr const char* kBackendEntry = "umbra_clang_backend";

}  // namespace umbra

#endif  // UMBRA_COMPILER_DRIVER_BACKEND_H_

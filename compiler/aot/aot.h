// Kernels as a library, compiled ahead of time: graphs in, sources and objects out.
//
//   LIB.h             for C: a function and a umbra_kernel_desc per kernel; for C++: typed wrappers
//   LIB.cc            the tables and the functions of LIB.h; definitions of marked functions
//   LIB.TARGET.cc     the code for one instruction set, or LIB.UNIT.TARGET.cc; if asked for, its object LIB.TARGET.o
//   LIB.cuda.cc       the images for GPUs, or LIB.UNIT.cuda.cc
//
// Programs with them need libumbra_runtime and Umbra's headers, no compiler of Umbra's.
#ifndef UMBRA_COMPILER_AOT_AOT_H_
#define UMBRA_COMPILER_AOT_AOT_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/source.h"
#include "compiler/graph/graph.h"
#include "runtime/cuda_image.h"

namespace umbra::aot {

/// A parameter of a marked function, and what of the graph it stands for (indices into
/// Graph::inputs, outputs and scalars, or -1). One that is read and written is both input and output.
struct CppParameter {
  std::string type;  ///< fully qualified, as in "const umbra::Tensor<umbra::cpu, 2, float>&"
  std::string name;
  int input = -1, output = -1, scalar = -1;
};

/// A function of the user's, which returns nothing, that the library defines.
struct CppFunction {
  std::string symbol;  ///< mangled
  bool instance = false;  ///< of a template: several libraries of a program may define it
  std::vector<CppParameter> parameters;
  /// Pairs of parameters, by position, that must have no memory in common.
  std::vector<std::pair<int, int>> apart;
};

struct Kernel {
  std::string name;  ///< an identifier, unique in the library
  std::shared_ptr<const graph::Graph> graph;
  std::string file;  ///< where it is defined; only the last part of the path goes into the result
  int line = 1;
  std::string unit;  ///< kernels of one unit are in one source per target; may be empty
  std::optional<CppFunction> function;
  bool on_cpu = true, on_gpu = true;  ///< which of the library's targets it is compiled for
};

/// What a library is compiled for.
struct Targets {
  std::vector<codegen::Target> cpu;  ///< from the narrowest
  std::vector<cuda::Architecture> gpu;  ///< from the oldest; PTX of the last is for later ones
};

struct Library {
  std::string name;  ///< an identifier: prefix of the C functions, namespace of the C++ ones
  std::vector<Kernel> kernels;
  Targets targets;
};

struct File {
  std::string name;
  std::string text;
  std::optional<codegen::Target> target;  ///< of a source that is code for one
};

/// The targets of a list such as "sse2,avx2,cuda:sm_80,sm_90", each once. Throws umbra::Error.
Targets ParseTargets(const std::string& list);

/// The files of `library`, in the order of their names. The same for the same input, wherever and whenever.
/// Throws umbra::Error if two kernels have one name, if a name is no identifier, or if there are targets for GPUs and
/// no NVRTC that compiles for them.
std::vector<File> Emit(const Library& library);

/// How objects are made.
struct Objects {
  std::string machine = "x86_64-linux";  ///< processor and system that the code is for
  bool line_tables = false;  ///< for debuggers and profilers
  std::vector<std::string> prefix_maps;  ///< OLD=NEW, as of -fdebug-prefix-map: for the names of files in line tables
};

/// Throws umbra::Error, with what to do, if there is no making objects for the machine.
void RequireObjectsFor(const std::string& machine);

/// The object of each of `files` that has a target: NAME.o of NAME.cc, position-independent code for the linker, by the
/// in-process compiler. The same for the same input, wherever and whenever; what was made before comes from the disk
/// cache. Throws umbra::Error if the machine is another, or if the compiler is not there.
std::vector<File> MakeObjects(const std::vector<File>& files, const Objects& objects);

/// The flags that g++ and clang++ need for the sources of a target.
std::vector<std::string> SourceFlags(codegen::Target target);

}  // namespace umbra::aot

#endif  // UMBRA_COMPILER_AOT_AOT_H_

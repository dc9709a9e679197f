// Marked functions of C++ sources as graphs: what umbra-extract finds, for whatever turns it into code.
#ifndef UMBRA_TOOLS_UMBRA_EXTRACT_EXTRACT_H_
#define UMBRA_TOOLS_UMBRA_EXTRACT_EXTRACT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/graph.h"

namespace umbra::extract {

/// A parameter of a marked function. The numbers are positions among the graph's inputs, outputs and
/// scalars, or -1. A tensor that is read before it is written and written too is an input and an output.
struct Parameter {
  std::string name;
  std::string type;  ///< in full, as a declaration spells it: `const umbra::Tensor<umbra::cpu, 2, float> &`
  bool tensor = false;
  DType dtype = DType::kFloat32;  ///< of a tensor's elements, or of the number
  int rank = 0;  ///< 0 for a number
  std::string device;  ///< "cpu" or "gpu" for a tensor
  int input = -1, output = -1, scalar = -1;
};

/// An assignment to a tensor, in the order in which they are run.
struct Statement {
  std::string file;  ///< as the compiler was given it
  int line = 0, column = 0;
  std::string tensor;  ///< what is assigned to
  int node = -1;  ///< of the graph: its value afterwards
};

struct ExtractedKernel {
  std::string name;  ///< qualified, `::` as `_`, template arguments behind: `nn_scale_float_2`
  std::string symbol;  ///< mangled
  std::string signature;  ///< `void nn::scale<float, 2>(umbra::Tensor<...> y, ...)`
  std::string file;
  int line = 0;
  bool instance = false;  ///< of a template: several files of a program may have it
  std::vector<Parameter> parameters;
  std::vector<Statement> statements;
  /// Positions of parameters, the first written, that must not be the same memory: the function reads or
  /// writes the second after it has written the first. The kernel, which reads everything first, would
  /// give something else. All other pairs may be the very same tensor.
  std::vector<std::pair<int, int>> apart;
  std::shared_ptr<const graph::Graph> graph;
};

struct ExtractOptions {
  std::vector<std::string> files;
  std::vector<std::string> flags;  ///< of the compiler, for every file; used if there is no database
  std::string database;  ///< folder of compile_commands.json; empty: from the file's own upwards
  bool has_flags = false;  ///< `flags` was given, even if empty
  bool strict = false;  ///< what cannot be lowered is an error rather than a warning
};

struct Extraction {
  std::vector<ExtractedKernel> kernels;  ///< in the order of files and lines
  std::vector<std::string> dependencies;  ///< every file that was read, sorted
  int eager = 0;  ///< marked functions that stay as they are
  bool failed = false;  ///< an error was shown: nothing may be written
};

/// The compiler's flags in a file: one in each line, or behind `SHELL:` several, quoted as for a shell, as CMake's
/// target property COMPILE_OPTIONS has them. Throws umbra::Error if it cannot be read.
std::vector<std::string> ReadFlags(const std::string& path);

/// Reads the files and shows diagnostics on standard error as Clang does. Throws umbra::Error if the
/// compile commands cannot be read.
Extraction Extract(const ExtractOptions& options);

}  // namespace umbra::extract

#endif  // UMBRA_TOOLS_UMBRA_EXTRACT_EXTRACT_H_

// Compiling a run-time graph to a callable function.
#ifndef UMBRA_COMPILE_H_
#define UMBRA_COMPILE_H_

#include <memory>
#include <string>
#include <vector>

#include "umbra/function.h"
#include "umbra/parameter.h"

namespace umbra {

namespace graph {
class Graph;
}

/// Who turns the generated source into something that runs.
enum class Engine {
  kJit,  ///< Clang and ORC in the process
  kSystem,  ///< g++ or clang++ (or $UMBRA_CXX) as a child process
  kInterpreter,  ///< no machine code: the plan is interpreted, slowly
};

/// How a kernel's arithmetic may differ from what is written.
enum class Math {
  kStrict,  ///< not at all: IEEE arithmetic, the same bits for every target
  kFast,  ///< products that are summed are not rounded where the target can; on a GPU quotients, roots and exponentials
          ///< of f32 are its own, and cuBLASLt's relu and gelu may follow products of matrices (see docs/numerics.md)
};

/// CompileOptions::target of a GPU.
inline constexpr const char* kCudaTarget = "cuda";

/// What Compile heeds; the initial values are the defaults of Init.
struct CompileOptions : Parameter<CompileOptions> {
  std::string target;  ///< plain, sse2, avx2 or avx512; empty: the best that this CPU runs; cuda: a GPU
  Engine engine = Engine::kJit;  ///< who compiles
  Math math = Math::kStrict;  ///< of floats
  bool use_disk_cache = true;  ///< kernels are looked for in the disk cache, and kept there
  bool background = false;  ///< the function is interpreted until a thread has compiled it

  /// The options as names and words: of the tool, of the environment.
  UMBRA_DECLARE_PARAMETER(CompileOptions) {
    DescribeTarget(&UMBRA_DECLARE_FIELD(target));
    UMBRA_DECLARE_FIELD(engine)
        .add_enum("jit", Engine::kJit)
        .add_enum("system", Engine::kSystem)
        .add_enum("interpreter", Engine::kInterpreter)
        .set_default(engine)
        .describe("Who compiles: Clang in the process, a C++ compiler of the system, or none: the plan is interpreted");
    DescribeMath(&UMBRA_DECLARE_FIELD(math));
    UMBRA_DECLARE_FIELD(use_disk_cache)
        .set_default(use_disk_cache)
        .describe("Keep and look for compiled kernels in the cache on disk");
    UMBRA_DECLARE_FIELD(background)
        .set_default(background)
        .describe("Compile in a thread of its own; calls are interpreted until it is done");
  }
  /// Declares the words of a target: those of all that can be generated, and `best`, the default, for the
  /// empty text.
  static void DescribeTarget(parameter::FieldEntry<std::string>* field);
  /// Declares the words `strict`, the default, and `fast`.
  static void DescribeMath(parameter::FieldEntry<Math>* field);
};

/// What compiling cost so far in this process.
struct CompileStatistics {
  int compiled = 0;  ///< kernels that went through a compiler
  int disk_hits = 0;  ///< kernels that came from the disk cache
  int memory_hits = 0;  ///< kernels that this process already had
  int loaded = 0;  ///< kernels whose code is mapped now
  /// What compiling took, summed over kernels: milliseconds of wall time by stage.
  double front_end_ms = 0, optimise_ms = 0, codegen_ms = 0, link_ms = 0;
};
/// The counts of this process until now; any thread may ask.
CompileStatistics GetCompileStatistics();

/// A compiled graph. Copies share the code. Calls are thread-safe.
class Function {
 public:
  Function() = default;

  /// Runs on operands in memory; see runtime::Run for checks and errors.
  void operator()(const runtime::Arguments& arguments, const runtime::RunOptions& options = {}) const;

  /// Inputs, outputs and scalars that a call passes.
  const runtime::Program& program() const;
  /// The program for call sites that outlive this handle.
  std::shared_ptr<const runtime::Program> shared_program() const;
  /// True if calls are interpreted: always, or until a background compile is done.
  bool interpreted() const;

  /// Is nothing left to compile in the background? Throws umbra::Error if that failed, or if the process
  /// ends before it is done; calls then throw the same.
  bool Ready() const;
  /// Returns when Ready.
  void Wait() const;

  /// Is there something to call? Not in a Function that was made without Compile.
  explicit operator bool() const { return impl_ != nullptr; }

 private:
  struct Impl;
  friend Function Compile(const std::shared_ptr<const graph::Graph>&, const CompileOptions&);
  std::shared_ptr<const Impl> impl_;
};

/// Compiles `graph`; a graph equal to one compiled before with the same options costs a look-up. With
/// `background`, returns before machine code is made. Throws umbra::Error if the target is unknown or not
/// for this CPU, or if a compiler fails. With the target cuda calls take device addresses and a stream, on any
/// device; kernels are compiled for the device and the form that a call needs at the first such call.
Function Compile(const std::shared_ptr<const graph::Graph>& graph, const CompileOptions& options = {});

namespace detail {
/// Says on standard error, if UMBRA_TRACE is set, what keeps expressions from being compiled: each once in a process.
void TraceEager(const std::vector<std::string>& why);
}  // namespace detail

}  // namespace umbra

#endif  // UMBRA_COMPILE_H_

// The commands of the tool.
#ifndef UMBRA_TOOLS_UMBRA_COMMANDS_H_
#define UMBRA_TOOLS_UMBRA_COMMANDS_H_

#include <string>
#include <vector>

#include "tools/umbra/library.h"
#include "umbra/compile.h"
#include "umbra/parameter.h"

namespace umbra::tools {

struct EmitOptions : Parameter<EmitOptions> {
  std::string input, target, as, arch, spelling, stores, kernel, output;
  Math math;
  std::vector<std::string> scalar;

  UMBRA_DECLARE_PARAMETER(EmitOptions) {
    UMBRA_DECLARE_FIELD(input).describe(
        "A .umb file, or an expression such as \"gelu(x + broadcast<1>(bias))\", whose result is y");
    auto* target_field = &UMBRA_DECLARE_FIELD(target);
    CompileOptions::DescribeTarget(target_field);
    UMBRA_DECLARE_FIELD(as)
        .add_enum("text", "text")
        .add_enum("graph", "graph")
        .add_enum("dot", "dot")
        .add_enum("plan", "plan")
        .add_enum("source", "source")
        .add_enum("llvm", "llvm")
        .add_enum("asm", "asm")
        .add_enum("ptx", "ptx")
        .add_enum("cubin", "cubin")
        .add_enum("fatbin", "fatbin")
        .set_default("source")
        .describe("Stage to print; the last three are for the target cuda");
    UMBRA_DECLARE_FIELD(arch).set_default("").describe(
        "GPUs that ptx, cubin or fatbin are for: sm_90, or several with commas between; ptx and cubin are a file for each");
    UMBRA_DECLARE_FIELD(spelling)
        .add_enum("packets", "packets")
        .add_enum("intrinsics", "intrinsics")
        .set_default("packets")
        .describe("How packets are written");
    UMBRA_DECLARE_FIELD(stores)
        .add_enum("cached", "cached")
        .add_enum("streamed", "streamed")
        .add_enum("joined", "joined")
        .set_default("cached")
        .describe(
            "How results are stored: into the caches, or past them, as those are that the caches do not hold: "
            "rows that begin at cache lines, or anywhere");
    CompileOptions::DescribeMath(&UMBRA_DECLARE_FIELD(math));
    UMBRA_DECLARE_FIELD(kernel).set_default("").describe("Which kernel of the file");
    UMBRA_DECLARE_FIELD(output).set_default("").describe("File to write; else standard output");
    UMBRA_DECLARE_ALIAS(output, o);
    UMBRA_DECLARE_FIELD(scalar).set_default({}).describe("A name in the expression that is a number");
  }
};
void Emit(const EmitOptions& options);

struct ExplainOptions : Parameter<ExplainOptions> {
  std::string input, kernel, target;
  Math math;
  std::vector<std::string> shape, scalar;

  UMBRA_DECLARE_PARAMETER(ExplainOptions) {
    UMBRA_DECLARE_FIELD(input).describe("A .umb file, or an expression, whose result is y");
    UMBRA_DECLARE_FIELD(kernel).set_default("").describe("Which kernel of the file");
    auto* target_field = &UMBRA_DECLARE_FIELD(target);
    CompileOptions::DescribeTarget(target_field);
    CompileOptions::DescribeMath(&UMBRA_DECLARE_FIELD(math));
    UMBRA_DECLARE_FIELD(shape).set_default({}).describe("name=512x1024: extents of an operand that are open");
    UMBRA_DECLARE_FIELD(scalar).set_default({}).describe("A name in the expression that is a number");
  }
};
/// Says why the kernel's plan is as it is.
void Explain(const ExplainOptions& options);

struct RunOptions : Parameter<RunOptions> {
  std::string input, kernel, device;
  std::vector<std::string> in, out, scalar;
  bool time;
  int threads;

  UMBRA_DECLARE_PARAMETER(RunOptions) {
    UMBRA_DECLARE_FIELD(input).describe("A .umb file, or an expression, whose result is y");
    UMBRA_DECLARE_FIELD(kernel).set_default("").describe("Which kernel of the file");
    UMBRA_DECLARE_FIELD(in).set_default({}).describe("name=file.npy, for every input");
    UMBRA_DECLARE_FIELD(out).set_default({}).describe("name=file.npy, for every output");
    UMBRA_DECLARE_FIELD(scalar).set_default({}).describe("name=number, for every scalar");
    UMBRA_DECLARE_FIELD(device)
        .add_enum("cpu", "cpu")
        .add_enum("gpu", "gpu")
        .set_default("cpu")
        .describe("Where it runs; to the GPU and back operands are copied");
    UMBRA_DECLARE_FIELD(threads).set_default(0).set_lower_bound(0).describe("At most this many threads; 0: all");
    UMBRA_DECLARE_FIELD(time).set_default(false).describe("Run 21 times; print compile time, run time and bytes moved");
  }
};
void Run(const RunOptions& options, CompileOptions compile);

struct AotOptions : Parameter<AotOptions> {
  std::vector<std::string> files, debug_prefix_map;
  std::string targets, out, name, depfile, as, machine;
  bool debug;

  UMBRA_DECLARE_PARAMETER(AotOptions) {
    UMBRA_DECLARE_FIELD(files).describe(".umb files; the kernels of all are one library");
    DescribeTargets(&UMBRA_DECLARE_FIELD(targets));
    UMBRA_DECLARE_FIELD(out).set_default(".").describe("Folder of the generated files; it is made if it is missing");
    UMBRA_DECLARE_FIELD(name).set_default("kernels").describe(
        "Name of the library: prefix of its C functions, namespace of its C++ functions");
    UMBRA_DECLARE_FIELD(depfile).set_default("").describe(
        "File to write for Make and Ninja: what the generated files depend on");
    UMBRA_DECLARE_ALIAS(out, o);
    UMBRA_DECLARE_FIELD(as)
        .add_enum("sources", "sources")
        .add_enum("objects", "objects")
        .set_default("sources")
        .describe("Only sources, or beside those for instruction sets their objects, too");
    DescribeMachine(&UMBRA_DECLARE_FIELD(machine));
    DescribeDebug(&UMBRA_DECLARE_FIELD(debug));
    DescribePrefixMap(&UMBRA_DECLARE_FIELD(debug_prefix_map));
  }
};
/// Generates a library of kernels: sources, and objects if they are asked for. Files that would not change keep their
/// time stamps.
void Aot(const AotOptions& options);

struct OpsOptions : Parameter<OpsOptions> {
  bool markdown;

  UMBRA_DECLARE_PARAMETER(OpsOptions) {
    UMBRA_DECLARE_FIELD(markdown).set_default(false).describe("As docs/operators.md has them");
  }
};
/// The tables of operators, reductions and index maps, for a terminal or as the Markdown of docs/operators.md.
void Operators(const OpsOptions& options);

/// Says what this machine has, and how to get what it lacks.
void Doctor();

struct CacheOptions : Parameter<CacheOptions> {
  std::string action;

  UMBRA_DECLARE_PARAMETER(CacheOptions) {
    UMBRA_DECLARE_FIELD(action)
        .add_enum("folder", "folder")
        .add_enum("usage", "usage")
        .add_enum("clear", "clear")
        .set_default("usage")
        .describe("Say where it is, what it holds, or empty it");
  }
};
/// Says what the kernel cache holds, or empties it.
void Cache(const CacheOptions& options);

}  // namespace umbra::tools

#endif  // UMBRA_TOOLS_UMBRA_COMMANDS_H_

// umbra-extract: finds functions marked UMBRA_KERNEL in C++ sources, and shows their graphs or compiles
// them ahead of time.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "tools/umbra-extract/extract.h"
#include "tools/umbra-extract/library.h"
#include "tools/umbra-extract/print.h"
#include "tools/umbra/fields.h"
#include "tools/umbra/files.h"
#include "tools/umbra/library.h"
#include "tools/umbra/symbols.h"
#include "tools/umbra/usage.h"
#include "umbra/error.h"

namespace {

struct Options : umbra::Parameter<Options> {
  std::vector<std::string> files;
  std::vector<std::string> debug_prefix_map;
  std::string database, flags, output, out, name, targets, depfile, symbols, machine;
  umbra::optional<std::string> as;
  bool debug, strict, join;

  UMBRA_DECLARE_PARAMETER(Options) {
    UMBRA_DECLARE_FIELD(files).describe("C++ sources");
    UMBRA_DECLARE_FIELD(database).set_default("").describe(
        "Folder of compile_commands.json; else that of the file, or one above it");
    UMBRA_DECLARE_FIELD(flags).set_default("").describe(
        "File of the compiler's flags, a line each; a line that begins with SHELL: has several, quoted as for a shell");
    UMBRA_DECLARE_FIELD(as)
        .add_enum("graph", "graph")
        .add_enum("sources", "sources")
        .add_enum("objects", "objects")
        .set_default({})
        .describe(
            "graph, to be shown; with --out, sources or objects beside them: None shows graphs, or writes sources");
    UMBRA_DECLARE_FIELD(output).set_default("").describe("File for what is shown; else standard output");
    UMBRA_DECLARE_FIELD(out).set_default("").describe("Folder for a library that takes the place of the functions");
    UMBRA_DECLARE_FIELD(name).set_default("").describe("Name of the library");
    umbra::tools::DescribeTargets(&UMBRA_DECLARE_FIELD(targets));
    UMBRA_DECLARE_FIELD(depfile).set_default("").describe(
        "File to write for Make and Ninja: what the library depends on");
    UMBRA_DECLARE_FIELD(symbols).set_default("").describe(
        "File to write: the functions whose place the library takes, for --join");
    umbra::tools::DescribeMachine(&UMBRA_DECLARE_FIELD(machine));
    umbra::tools::DescribeDebug(&UMBRA_DECLARE_FIELD(debug));
    umbra::tools::DescribePrefixMap(&UMBRA_DECLARE_FIELD(debug_prefix_map));
    UMBRA_DECLARE_FIELD(strict).set_default(false).describe("What cannot be lowered is an error");
    UMBRA_DECLARE_FIELD(join).set_default(false).describe(
        "FILES are lists of --symbols, of libraries for one program: no two may have one function; shows the list of all");
    UMBRA_DECLARE_ALIAS(output, o);
  }
};
UMBRA_REGISTER_PARAMETER(Options);

int Run(int argc, char** argv) {
  umbra::extract::ExtractOptions extract;
  std::vector<std::string> own(argv + 1, argv + argc);
  if (const auto dashes = std::find(own.begin(), own.end(), "--"); dashes != own.end()) {
    extract.flags.assign(dashes + 1, own.end());
    extract.has_flags = true;
    own.erase(dashes, own.end());
  }
  CLI::App app(
      "Finds functions marked UMBRA_KERNEL and shows what they compute, or writes a library.\n"
      "The compiler's flags come from compile_commands.json or the file of --flags, or stand after `--`.",
      "umbra-extract");
  umbra::tools::Fields fields(&app, Options::__FIELDS__());
  fields.Need("out", {"name", "targets", "depfile", "symbols", "machine", "debug", "debug_prefix_map"});
  app.set_version_flag("--version", "umbra-extract " UMBRA_VERSION);
  std::reverse(own.begin(), own.end());
  Options options;
  try {
    app.parse(own);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    throw umbra::ParamError(error.what());
  }
  options.Init(fields.Given());
  if (options.join) {
    const auto all = umbra::tools::JoinSymbols(options.files);
    if (all) umbra::tools::WriteFile(options.output, *all);
    return all ? 0 : 1;
  }
  umbra::tools::RequireUsage(options.out.empty() || !options.name.empty(),
                             "--out needs the name of the library: --name");
  const std::string as = options.as.has_value() ? options.as.value() : options.out.empty() ? "graph" : "sources";
  umbra::tools::RequireUsage(
      options.out.empty() == (as == "graph"), "--as ", as,
      options.out.empty() ? " needs a folder: --out" : " is shown, and not written to the folder of --out");
  if (!options.flags.empty()) {
    const std::vector<std::string> flags = umbra::extract::ReadFlags(options.flags);
    extract.flags.insert(extract.flags.begin(), flags.begin(), flags.end());
    extract.has_flags = true;
  }
  extract.files = options.files;
  extract.database = options.database;
  extract.strict = options.strict;
  const umbra::extract::Extraction extraction = umbra::extract::Extract(extract);
  if (extraction.failed) return 1;
  if (!options.out.empty() && extraction.kernels.empty() && extraction.eager == 0)
    for (const std::string& file : options.files)
      std::fprintf(stderr, "%s: warning: no function of this file is a kernel; mark one: UMBRA_KERNEL void f(...)\n",
                   file.c_str());
  if (!options.out.empty()) {
    std::optional<umbra::aot::Objects> objects;
    if (as == "objects") objects = {options.machine, options.debug, options.debug_prefix_map};
    umbra::tools::WriteLibrary(umbra::extract::ToLibrary(extraction, options.name, options.targets), options.out,
                               {options.depfile, extraction.dependencies, options.symbols}, objects);
    return 0;
  }
  std::string text;
  for (const auto& kernel : extraction.kernels) text += (text.empty() ? "" : "\n") + umbra::extract::Print(kernel);
  umbra::Require(!text.empty() || extraction.eager > 0, "no function of these files is marked UMBRA_KERNEL");
  umbra::tools::WriteFile(options.output, text);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return umbra::tools::RunTool("umbra-extract", [&] { return Run(argc, argv); });
}

// umbra-extract: finds functions marked UMBRA_KERNEL in C++ sources, and shows their graphs or compiles
// them ahead of time.
// Exit codes: 0 done, 1 an error of the input or the machine, 2 wrong usage, 3 a defect of Umbra.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/umbra-extract/extract.h"
#include "tools/umbra-extract/library.h"
#include "tools/umbra-extract/print.h"
#include "tools/umbra/files.h"
#include "tools/umbra/library.h"
#include "umbra/error.h"

namespace {

int Fail(const std::string& what, int code) {
  std::fprintf(stderr, "umbra-extract: error: %s\n", what.c_str());
  return code;
}

int Run(int argc, char** argv) {
  umbra::extract::ExtractOptions options;
  std::vector<std::string> own(argv + 1, argv + argc);
  if (const auto dashes = std::find(own.begin(), own.end(), "--"); dashes != own.end()) {
    options.flags.assign(dashes + 1, own.end());
    options.has_flags = true;
    own.erase(dashes, own.end());
  }
  CLI::App app("Finds functions marked UMBRA_KERNEL and shows what they compute, or writes a library.\n"
               "The compiler's flags come from compile_commands.json, or stand after `--`.", "umbra-extract");
  std::string as, output, out, name, targets = "sse2,avx2,avx512", depfile;
  umbra::aot::Objects objects;
  app.add_option("files", options.files, "C++ sources")->required();
  app.add_option("--database", options.database, "Folder of compile_commands.json");
  app.add_option("-o,--output", output, "File for what is shown; standard output if absent");
  CLI::Option* folder = app.add_option("--out", out, "Folder for a library that takes the place of the functions");
  app.add_option("--name", name, "Name of the library")->needs(folder);
  app.add_option("--targets", targets, "Its instruction sets, with commas: plain, sse2, avx2, avx512; cuda:sm_80,sm_90 for GPUs")->needs(folder)->capture_default_str();
  app.add_option("--depfile", depfile, "Makefile rule that says what its sources depend on")->needs(folder);
  app.add_option("--as", as, "graph, to be shown; with --out only sources (if absent), or beside those for instruction sets their objects, too")
      ->check(CLI::IsMember({"graph", "sources", "objects"}));
  app.add_option("--machine", objects.machine, "Processor and system that objects are for")->needs(folder)->capture_default_str();
  app.add_flag("--debug", objects.line_tables, "Objects have line tables, for debuggers and profilers")->needs(folder);
  app.add_option("--debug-prefix-map", objects.prefix_maps, "OLD=NEW: files in line tables that begin with OLD begin with NEW")->needs(folder)->allow_extra_args(false);
  app.add_flag("--strict", options.strict, "What cannot be lowered is an error");
  app.set_version_flag("--version", UMBRA_VERSION);
  std::reverse(own.begin(), own.end());
  try {
    app.parse(own);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  umbra::Require(out.empty() || !name.empty(), "--out needs the name of the library: --name");
  umbra::Require(as.empty() || out.empty() == (as == "graph"),
                 "--as ", as, out.empty() ? " needs a folder: --out" : " is shown, and not written to the folder of --out");
  const umbra::extract::Extraction extraction = umbra::extract::Extract(options);
  if (extraction.failed) return 1;
  if (!out.empty()) {
    umbra::tools::WriteLibrary(umbra::extract::ToLibrary(extraction, name, targets), out, depfile, extraction.dependencies,
                               as == "objects" ? std::optional(objects) : std::nullopt);
    return 0;
  }
  std::string text;
  for (const auto& kernel : extraction.kernels) text += (text.empty() ? "" : "\n") + umbra::extract::Print(kernel);
  umbra::Require(!text.empty() || extraction.eager > 0, "no function of these files is marked UMBRA_KERNEL");
  umbra::tools::WriteFile(output, text);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(argc, argv);
  } catch (const umbra::Error& error) {
    return Fail(error.what(), 1);
  } catch (const std::exception& error) {
    return Fail(error.what(), 3);
  }
}

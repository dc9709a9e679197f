#include "compiler/aot/aot.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "compiler/graph/lexer.h"
#include "compiler/graph/parse.h"
#include "compiler/graph/parser.h"
#include "tools/umbra/commands.h"
#include "tools/umbra/files.h"
#include "umbra/error.h"

namespace umbra::tools {

UMBRA_REGISTER_PARAMETER(AotOptions);

namespace {

namespace fs = std::filesystem;

void AddKernels(const std::string& file, aot::Library* library) {
  const std::string text = ReadFile(file);
  const auto graphs = graph::Parse(text, file);
  const graph::FileAst ast = graph::ParseFile(graph::SourceText(text, file));
  for (std::size_t k = 0; k < graphs.size(); ++k) {
    aot::Kernel kernel;
    kernel.name = graphs[k]->name();
    kernel.graph = graphs[k];
    kernel.file = file;
    kernel.line = ast.kernels[k].position.line;
    kernel.unit = fs::path(file).stem().string();
    library->kernels.push_back(std::move(kernel));
  }
}

// A path as a makefile writes it.
std::string Escaped(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == ' ' || c == '#' || c == '\\') text += '\\';
    if (c == '$') text += '$';
    text += c;
  }
  return text;
}

}  // namespace

void Aot(const AotOptions& options) {
  aot::Library library;
  library.name = options.name;
  library.targets = aot::ParseTargets(options.targets);
  std::map<std::string, std::string> stems;
  for (const std::string& file : options.files) {
    const std::string stem = fs::path(file).stem().string();
    const auto [known, fresh] = stems.emplace(stem, file);
    Require(fresh, known->second, " and ", file, " would give sources of one name: rename one, or give them to "
            "two calls with different --name");
    AddKernels(file, &library);
  }
  // All is known to be well before the first file is touched.
  const std::vector<aot::File> files = aot::Emit(library);
  std::error_code error;
  fs::create_directories(options.out, error);
  Require(!error, "cannot make the folder ", options.out, ": ", error.message());
  std::string outputs, inputs;
  for (const aot::File& file : files) {
    const std::string path = (fs::path(options.out) / file.name).string();
    UpdateFile(path, file.text);
    outputs += (outputs.empty() ? "" : " ") + Escaped(path);
  }
  if (options.depfile.empty()) return;
  for (const std::string& file : options.files) inputs += " " + Escaped(file);
  UpdateFile(options.depfile, fmt::format("{}:{}\n", outputs, inputs));
}

}  // namespace umbra::tools

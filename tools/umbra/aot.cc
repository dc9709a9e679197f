#include "compiler/aot/aot.h"

#include <filesystem>
#include <map>
#include <optional>

#include "compiler/graph/lexer.h"
#include "compiler/graph/parse.h"
#include "compiler/graph/parser.h"
#include "tools/umbra/commands.h"
#include "tools/umbra/files.h"
#include "tools/umbra/library.h"
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

}  // namespace

void Aot(const AotOptions& options) {
  aot::Library library;
  library.name = options.name;
  library.targets = aot::ParseTargets(options.targets);
  std::map<std::string, std::string> stems;
  for (const std::string& file : options.files) {
    const std::string stem = fs::path(file).stem().string();
    const auto [known, fresh] = stems.emplace(stem, file);
    Require(fresh, known->second, " and ", file,
            " would give sources of one name: rename one, or give them to "
            "two calls with different --name");
    AddKernels(file, &library);
  }
  std::optional<aot::Objects> objects;
  if (options.as == "objects") objects = {options.machine, options.debug, options.debug_prefix_map};
  WriteLibrary(library, options.out, {options.depfile, options.files, ""}, objects);
}

}  // namespace umbra::tools

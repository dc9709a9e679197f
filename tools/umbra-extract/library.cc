#include "tools/umbra-extract/library.h"

#include <algorithm>
#include <cstdio>

namespace umbra::extract {

aot::Library ToLibrary(const Extraction& extraction, const std::string& name, const std::string& targets) {
  aot::Library library;
  library.name = name;
  library.targets = aot::ParseTargets(targets);
  for (const ExtractedKernel& extracted : extraction.kernels) {
    const bool elsewhere = std::any_of(extracted.parameters.begin(), extracted.parameters.end(),
                                       [](const Parameter& p) { return p.tensor && p.device != "cpu"; });
    if (elsewhere) {
      std::fprintf(stderr, "%s:%d: warning: kernel '%s' is for another device than the CPU; it stays eager\n",
                   extracted.file.c_str(), extracted.line, extracted.name.c_str());
      continue;
    }
    aot::Kernel kernel;
    kernel.name = extracted.name;
    kernel.graph = extracted.graph;
    kernel.file = extracted.file;
    kernel.line = extracted.line;
    aot::CppFunction function;
    function.symbol = extracted.symbol;
    for (const Parameter& p : extracted.parameters)
      function.parameters.push_back({p.type, p.name, p.input, p.output, p.scalar});
    function.apart = extracted.apart;
    kernel.function = std::move(function);
    library.kernels.push_back(std::move(kernel));
  }
  return library;
}

}  // namespace umbra::extract

#include "tools/umbra-extract/library.h"

#include <algorithm>
#include <cstdio>

namespace umbra::extract {

aot::Library ToLibrary(const Extraction& extraction, const std::string& name, const std::string& targets) {
  aot::Library library;
  library.name = name;
  library.targets = aot::ParseTargets(targets);
  for (const ExtractedKernel& extracted : extraction.kernels) {
    const bool on_gpu = std::any_of(extracted.parameters.begin(), extracted.parameters.end(),
                                    [](const Parameter& p) { return p.tensor && p.device != "cpu"; });
    if (on_gpu ? library.targets.gpu.empty() : library.targets.cpu.empty()) {
      std::fprintf(stderr, "%s:%d: warning: kernel '%s' is for %s, and no target is, such as %s; it stays eager\n",
                   extracted.file.c_str(), extracted.line, extracted.name.c_str(), on_gpu ? "GPUs" : "the CPU",
                   on_gpu ? "cuda:sm_90" : "avx2");
      continue;
    }
    aot::Kernel kernel;
    kernel.on_cpu = !on_gpu;
    kernel.on_gpu = on_gpu;
    kernel.name = extracted.name;
    kernel.graph = extracted.graph;
    kernel.file = extracted.file;
    kernel.line = extracted.line;
    aot::CppFunction function;
    function.symbol = extracted.symbol;
    function.instance = extracted.instance;
    for (const Parameter& p : extracted.parameters)
      function.parameters.push_back({p.type, p.name, p.input, p.output, p.scalar});
    function.apart = extracted.apart;
    kernel.function = std::move(function);
    library.kernels.push_back(std::move(kernel));
  }
  return library;
}

}  // namespace umbra::extract

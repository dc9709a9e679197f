#include "tools/umbra-extract/print.h"

#include <fmt/format.h>

#include <filesystem>

namespace umbra::extract {

std::string Print(const ExtractedKernel& kernel) {
  std::string text = fmt::format("# {}:{}\n# {}\n# symbol {}\n", std::filesystem::path(kernel.file).filename().string(),
                                 kernel.line, kernel.signature, kernel.symbol);
  for (const Parameter& p : kernel.parameters) {
    std::string role;
    const auto add = [&](const char* name, int position) {
      if (position >= 0) role += fmt::format("{}{} {}", role.empty() ? "" : ", ", name, position);
    };
    add("input", p.input);
    add("output", p.output);
    add("scalar", p.scalar);
    text += fmt::format("# parameter {}: {}{}: {}\n", p.name, Name(p.dtype),
                        p.tensor ? fmt::format(" of rank {} on {}", p.rank, p.device) : "",
                        role.empty() ? "its shape only" : role);
  }
  for (const Statement& s : kernel.statements) text += fmt::format("# line {}: {} = %{}\n", s.line, s.tensor, s.node);
  for (const auto& [a, b] : kernel.apart)
    text += fmt::format("# {} must lie apart from {}\n", kernel.parameters[static_cast<std::size_t>(a)].name,
                        kernel.parameters[static_cast<std::size_t>(b)].name);
  return text + graph::Print(*kernel.graph);
}

}  // namespace umbra::extract

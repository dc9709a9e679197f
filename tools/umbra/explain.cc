#include <charconv>

#include "compiler/driver/known_extents.h"
#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "compiler/plan/explain.h"
#include "tools/umbra/commands.h"
#include "tools/umbra/files.h"
#include "tools/umbra/load.h"
#include "umbra/error.h"

namespace umbra::tools {

UMBRA_REGISTER_PARAMETER(ExplainOptions);

namespace {

// "512x1024".
std::vector<index_t> ParseExtents(std::string_view text, const std::string& what) {
  std::vector<index_t> extents;
  for (const char* at = text.data(); extents.empty() || at != text.data() + text.size();) {
    if (!extents.empty()) Require(*at++ == 'x', what, ": expected extents, as in 512x1024");
    index_t extent = 0;
    const auto [rest, error] = std::from_chars(at, text.data() + text.size(), extent);
    Require(error == std::errc() && extent >= 0, what, ": expected extents, as in 512x1024");
    extents.push_back(extent);
    at = rest;
  }
  return extents;
}

// What the extents of an operand say of the plan's symbols.
void Bind(const plan::Plan& plan, const std::string& word, std::vector<index_t>* symbols) {
  const std::string what = "--shape " + word;
  const std::size_t equals = word.find('=');
  Require(equals != std::string::npos, what, ": expected name=extents, as in x=512x1024");
  const std::string name = word.substr(0, equals);
  const std::vector<index_t> extents = ParseExtents(std::string_view(word).substr(equals + 1), what);
  for (const runtime::Buffer& buffer : plan.buffers) {
    if (buffer.name != name || buffer.kind > runtime::Buffer::Kind::kOutput) continue;
    Require(extents.size() == buffer.shape.size(), what, ": '", name, "' has rank ", buffer.shape.size());
    for (std::size_t d = 0; d < extents.size(); ++d) {
      const runtime::Extent& extent = buffer.shape[d];
      index_t known = extent.is_static() ? extent.value : (*symbols)[static_cast<std::size_t>(extent.symbol)];
      Require(known < 0 || known == extents[d], what, ": dimension ", d, " is ", known, ", not ", extents[d]);
      if (!extent.is_static()) (*symbols)[static_cast<std::size_t>(extent.symbol)] = extents[d];
    }
    return;
  }
  throw Error(what + ": the kernel has no such tensor");
}

// The plan's extents as --shape gives them; -1: not given.
std::vector<index_t> SymbolsOf(const plan::Plan& plan, const std::vector<std::string>& shapes) {
  std::vector<index_t> symbols(plan.symbols.size(), -1);
  for (const std::string& word : shapes) Bind(plan, word, &symbols);
  const auto value = [&](const runtime::Extent& extent) {
    return extent.is_static() ? extent.value : symbols[static_cast<std::size_t>(extent.symbol)];
  };
  for (const runtime::DerivedExtent& derived : plan.derived)
    if (!derived.result.is_static() && value(derived.a) >= 0 && value(derived.b) >= 0)
      symbols[static_cast<std::size_t>(derived.result.symbol)] =
          runtime::Compute(derived.op.kind, value(derived.a), value(derived.b));
  return symbols;
}

}  // namespace

void Explain(const ExplainOptions& options) {
  const bool on_gpu = options.target == kCudaTarget;
  const auto graph = LoadKernel(options.input, options.kernel, options.scalar);
  plan::Plan plan = Lower(*graph, on_gpu, options.math);
  std::vector<index_t> symbols = SymbolsOf(plan, options.shape);
  std::string text;
  if (const auto known = on_gpu ? nullptr : WithKnownRows(*graph, plan, symbols)) {
    text = "a call with these extents has many short rows: it compiles kernels that know how long, and runs those\n";
    plan = Lower(*known, on_gpu, options.math);
    symbols = SymbolsOf(plan, options.shape);
  }
  WriteFile(
      "", text + plan::Explain(plan, symbols,
                               on_gpu ? ""
                                      : codegen::Name(options.target.empty() ? HostTarget()
                                                                             : *codegen::FindTarget(options.target))));
}

}  // namespace umbra::tools

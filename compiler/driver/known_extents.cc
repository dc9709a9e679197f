#include "compiler/driver/known_extents.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "compiler/plan/short_rows.h"

namespace umbra {

namespace {

using plan::OpenRows;

// Fewer rows are done before a compile would be.
constexpr double kManyRows = 4096;
// Extents of a program for which there are others.
constexpr std::size_t kMostPrograms = 32;

// The graph's word for an extent of the plan; a static one if no input has it.
Dimension DimensionOf(int symbol, const graph::Graph& graph, const plan::Plan& plan) {
  for (std::size_t k = 0; k < graph.inputs().size(); ++k)
    for (std::size_t d = 0; d < plan.buffers[k].shape.size(); ++d)
      if (plan.buffers[k].shape[d] == runtime::Extent::Symbol(symbol)) return graph.node(graph.inputs()[k]).shape[d];
  return Dimension(1);
}

class KnownExtents {
 public:
  // `dims`: the graph's word for the extent of each of the rows.
  KnownExtents(std::shared_ptr<const graph::Graph> graph, std::vector<OpenRows> rows, std::vector<Dimension> dims, CompileOptions options)
      : graph_(std::move(graph)), rows_(std::move(rows)), dims_(std::move(dims)), options_(std::move(options)) {}

  runtime::Program::Faster Find(const std::vector<index_t>& symbols) {
    Extents known;
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      const index_t elements = symbols[static_cast<std::size_t>(rows_[k].symbol)];
      if (elements > 1 && elements <= rows_[k].most && Points(rows_[k], symbols) >= kManyRows * static_cast<double>(elements))
        known[dims_[k].symbol()] = elements;
    }
    if (known.empty()) return {};
    const std::lock_guard lock(mutex_);
    const auto found = functions_.find(known);
    if (found == functions_.end() && functions_.size() >= kMostPrograms) return {};
    const Function& function = found == functions_.end() ? functions_.emplace(known, Make(known)).first->second : found->second;
    if (!function.Ready()) return {nullptr, true};
    return {function.shared_program()};
  }

 private:
  using Extents = std::map<int, index_t>;  // by the graph's symbol

  static double Points(const OpenRows& rows, const std::vector<index_t>& symbols) {
    double points = 1;
    for (const runtime::Extent& axis : rows.axes) points *= static_cast<double>(axis.is_static() ? axis.value : symbols[static_cast<std::size_t>(axis.symbol)]);
    return points;
  }

  Function Make(const Extents& known) const {
    const auto graph = std::make_shared<graph::Graph>(*graph_);
    for (const auto& [symbol, extent] : known) graph->Unify(Dimension::WithSymbol(symbol), Dimension(extent), "short rows");
    return Compile(graph, options_);
  }

  const std::shared_ptr<const graph::Graph> graph_;
  const std::vector<OpenRows> rows_;
  const std::vector<Dimension> dims_;
  const CompileOptions options_;
  std::mutex mutex_;
  std::map<Extents, Function> functions_;
};

}  // namespace

void KnowShortRows(const std::shared_ptr<const graph::Graph>& graph, const plan::Plan& plan, const CompileOptions& options,
                   runtime::Program* program) {
  std::vector<OpenRows> rows;
  std::vector<Dimension> dims;
  for (OpenRows& open : FindOpenRows(plan)) {
    const Dimension dim = DimensionOf(open.symbol, *graph, plan);
    if (dim.is_static()) continue;
    rows.push_back(std::move(open));
    dims.push_back(dim);
  }
  if (rows.empty()) return;
  const auto known = std::make_shared<KnownExtents>(graph, std::move(rows), std::move(dims), options);
  program->for_extents = [known](const std::vector<index_t>& symbols) { return known->Find(symbols); };
}

}  // namespace umbra

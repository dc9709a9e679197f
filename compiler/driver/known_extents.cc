#include "compiler/driver/known_extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "compiler/plan/batches.h"
#include "compiler/plan/open_rows.h"
#include "runtime/environment.h"
#include "umbra/error.h"

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

using Extents = std::map<int, index_t>;  // by the graph's symbol

// The open rows of a plan, and the graph's words for their extents.
class Rows {
 public:
  Rows(const graph::Graph& graph, const plan::Plan& plan) {
    Add(graph, plan, plan::FindOpenRows(plan));
    Add(graph, plan, plan::FindOpenBatches(plan));
  }

  bool empty() const { return rows_.empty(); }

  // What is worth knowing of a call with these extents, by the plan's symbol.
  Extents Known(const std::vector<index_t>& symbols) const {
    Extents known;
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      const index_t elements = symbols[static_cast<std::size_t>(rows_[k].symbol)];
      const auto are_few = [&](const plan::FewPoints& few) {
        return Points(few.axes, symbols) <= static_cast<double>(few.most);
      };
      if (elements >= rows_[k].least && elements <= rows_[k].most &&
          Points(rows_[k].axes, symbols) >= kManyRows * static_cast<double>(elements) &&
          std::all_of(rows_[k].few.begin(), rows_[k].few.end(), are_few))
        known[dims_[k].symbol()] = elements;
    }
    return known;
  }

 private:
  void Add(const graph::Graph& graph, const plan::Plan& plan, std::vector<OpenRows> all) {
    for (OpenRows& open : all) {
      const Dimension dim = DimensionOf(open.symbol, graph, plan);
      if (dim.is_static()) continue;
      rows_.push_back(std::move(open));
      dims_.push_back(dim);
    }
  }

  static double Points(const std::vector<runtime::Extent>& axes, const std::vector<index_t>& symbols) {
    double points = 1;
    for (const runtime::Extent& axis : axes) {
      const index_t extent = axis.is_static() ? axis.value : symbols[static_cast<std::size_t>(axis.symbol)];
      points *= static_cast<double>(std::max<index_t>(extent, 0));
    }
    return points;
  }

  std::vector<OpenRows> rows_;
  std::vector<Dimension> dims_;
};

std::shared_ptr<const graph::Graph> With(const graph::Graph& graph, const Extents& known) {
  auto made = std::make_shared<graph::Graph>(graph);
  for (const auto& [symbol, extent] : known)
    made->Unify(Dimension::WithSymbol(symbol), Dimension(extent), "short rows");
  for (const graph::Graph::Derived& derived : made->derived()) {
    const Dimension a = made->Known(derived.a), b = made->Known(derived.b), result = made->Known(derived.result);
    if (derived.op.kind == runtime::ExtentOp::kScalar || a.is_dynamic() || b.is_dynamic() || result.is_static())
      continue;
    made->Unify(result, Dimension(runtime::Compute(derived.op.kind, static_cast<index_t>(a), static_cast<index_t>(b))),
                "short rows");
  }
  return made;
}

class KnownExtents {
 public:
  KnownExtents(std::shared_ptr<const graph::Graph> graph, Rows rows, CompileOptions options)
      : graph_(std::move(graph)),
        rows_(std::move(rows)),
        options_(std::move(options)) {}

  runtime::Program::Faster Find(const std::vector<index_t>& symbols) {
    const Extents known = rows_.Known(symbols);
    if (known.empty()) return {};
    std::unique_lock lock(mutex_);
    auto found = functions_.find(known);
    if (found == functions_.end()) {
      if (functions_.size() >= kMostPrograms) return {};
      lock.unlock();  // calls with other extents need not wait
      Function function = Made(known);
      lock.lock();
      found = functions_.emplace(known, std::move(function)).first;
    }
    if (!found->second) return {};
    try {
      if (!found->second.Ready()) return {nullptr, true};
    } catch (const Error& error) {
      found->second = NotMade(error);
      return {};
    }
    return {found->second.shared_program()};
  }

 private:
  // An empty one if that fails: there is a program that can do without.
  Function Made(const Extents& known) const {
    try {
      return Compile(With(*graph_, known), options_);
    } catch (const Error& error) { return NotMade(error); }
  }

  static Function NotMade(const Error& error) {
    if (runtime::ReadEnvironment().trace) fmt::print(stderr, "--- known extents: not used: {}\n", error.what());
    return {};
  }

  const std::shared_ptr<const graph::Graph> graph_;
  const Rows rows_;
  const CompileOptions options_;
  std::mutex mutex_;
  std::map<Extents, Function> functions_;
};

}  // namespace

std::shared_ptr<const graph::Graph> WithKnownRows(const graph::Graph& graph, const plan::Plan& plan,
                                                  const std::vector<index_t>& symbols) {
  const Extents known = Rows(graph, plan).Known(symbols);
  return known.empty() ? nullptr : With(graph, known);
}

void KnowShortRows(const std::shared_ptr<const graph::Graph>& graph, const plan::Plan& plan,
                   const CompileOptions& options, runtime::Program* program) {
  Rows rows(*graph, plan);
  if (rows.empty()) return;
  const auto known = std::make_shared<KnownExtents>(graph, std::move(rows), options);
  program->for_extents = [known](const std::vector<index_t>& symbols) { return known->Find(symbols); };
}

}  // namespace umbra

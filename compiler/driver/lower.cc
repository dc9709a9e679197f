#include "compiler/driver/lower.h"
#include "runtime/environment.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "compiler/plan/batches.h"
#include "compiler/plan/build.h"
#include "compiler/plan/column_buffers.h"
#include "compiler/plan/few_columns.h"
#include "compiler/plan/group_steps.h"
#include "compiler/plan/keep_in_results.h"
#include "compiler/plan/positions.h"
#include "compiler/plan/product_epilogues.h"
#include "compiler/plan/ranges.h"
#include "compiler/plan/short_rows.h"
#include "compiler/plan/sum_steps.h"
#include "compiler/plan/turn_operands.h"
#include "compiler/transform/columns_apart.h"
#include "compiler/transform/compose_gathers.h"
#include "compiler/transform/few_terms.h"
#include "compiler/transform/fewest_dims.h"
#include "compiler/transform/narrow_products.h"
#include "compiler/transform/plain_gathers.h"
#include "compiler/transform/refine_axes.h"
#include "compiler/transform/separate_windows.h"
#include "compiler/transform/simplify.h"
#include "compiler/transform/split_axes.h"
#include "compiler/transform/sum_products.h"

namespace umbra {

namespace {

bool TraceIsOn() { return runtime::ReadEnvironment().trace; }

// Runs one pass; traces its result and time.
template <typename Pass, typename Printer>
auto Traced(const char* name, const Pass& pass, const Printer& printer) {
  if (!TraceIsOn()) return pass();
  const auto start = std::chrono::steady_clock::now();
  auto result = pass();
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  fmt::print(stderr, "--- {} ({:.0f} us)\n{}", name, time.count(), printer(result));
  return result;
}

}  // namespace

plan::Plan Lower(const graph::Graph& graph, bool on_gpu, Math math) {
  const auto print_graph = [](const graph::Graph& g) { return graph::Print(g); };
  const auto print_plan = [](const plan::Plan& p) { return plan::Print(p); };
  const auto plain_gathers = [&](const graph::Graph& of) {
    return Traced(
        "plain gathers", [&] { return graph::PlainGathers(of, on_gpu); }, print_graph);
  };
  const graph::Graph joined = Traced(
      "join at once", [&] { return graph::JoinAtOnce(graph); }, print_graph);
  const graph::Graph refined =
      on_gpu ? joined
             : Traced(
                   "refine axes", [&] { return graph::RefineAxes(plain_gathers(joined)); }, print_graph);
  const graph::Graph split = Traced(
      "split axes", [&] { return graph::SplitAxes(refined); }, print_graph);
  const graph::Graph plain = plain_gathers(split);
  const graph::Graph positions = Traced(
      "simplify positions", [&] { return graph::SimplifyPositions(plain); }, print_graph);
  const graph::Graph fewest = Traced(
      "fewest dimensions", [&] { return graph::InFewestDims(positions); }, print_graph);
  const graph::Graph terms = Traced(
      "few terms", [&] { return graph::SumFewTerms(fewest); }, print_graph);
  const graph::Graph separate =
      on_gpu ? terms
             : Traced(
                   "separate windows", [&] { return graph::SeparateWindows(terms); }, print_graph);
  const auto compose = [&](const graph::Graph& of) {
    return Traced(
        "compose gathers", [&] { return graph::ComposeGathers(of, on_gpu); }, print_graph);
  };
  const graph::Graph composed = compose(separate);
  graph::Graph summed = Traced(
      "sum products", [&] { return graph::SumProducts(composed, on_gpu); }, print_graph);
  if (!on_gpu) {
    if (const auto divided = graph::DivideAxes(summed))
      summed = Traced(
          "divide axes", [&] { return graph::SimplifyPositions(*divided); }, print_graph);
    if (const auto apart = graph::TakeColumnsApart(summed)) summed = compose(*apart);
  }
  graph::Graph simplified = Traced(
      "simplify", [&] { return graph::Simplify(summed); }, print_graph);
  if (on_gpu)
    simplified = Traced(
        "narrow products", [&] { return graph::NarrowProducts(simplified); }, print_graph);
#ifndef NDEBUG
  graph::Verify(simplified);
#endif
  return Traced(
      "plan",
      [&] {
        plan::Plan plan = plan::Build(simplified, on_gpu);
        if (on_gpu) {
          plan::UngroupRows(&plan);
          plan::AddEpilogues(&plan, math == Math::kFast);
        } else {
          plan::TurnOperands(&plan);
          plan::GoAcrossShortRows(&plan);
          plan::AskForDenseRows(&plan);
          plan::GoAcrossBatches(&plan);
          plan::AddSums(&plan);
          plan::KeepInResults(&plan);
          plan::FindFewColumns(&plan);
          plan::FindColumnBuffers(&plan);
          plan::FindRanges(&plan);
        }
        plan::FindPositions(&plan);
        return plan;
      },
      print_plan);
}

}  // namespace umbra

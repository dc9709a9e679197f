// Reductions that data choose the steps of: by every route the bits of the sum over all steps, in their order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "compiler/graph/graph.h"
#include "compiler/plan/plan.h"
#include "tests/support/drawn.h"
#include "tests/support/emulated.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using namespace drawn;  // NOLINT: the test's own words
using runtime::Arguments;

std::string PlanOf(const std::shared_ptr<const graph::Graph>& graph) { return plan::Print(Lower(*graph)); }
bool IsGuarded(const std::shared_ptr<const graph::Graph>& graph) {
  return PlanOf(graph).find(" where ") != std::string::npos;
}

// Whole numbers, whose sums are exact in any order, and all that is odd about floats.
void FillWithNumbers(Tensor* tensor, std::mt19937* random) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                   kNone = std::numeric_limits<double>::quiet_NaN();
  const double hard[] = {-0.0, -0.0, 0.0, kInfinity, -kInfinity, kNone};
  const auto bytes =
      static_cast<index_t>(tensor->bytes.data() + tensor->bytes.size() - static_cast<char*>(tensor->ref.data));
  SwitchDType(tensor->dtype, [&](auto tag) {
    using T = decltype(tag);
    auto* p = static_cast<T*>(tensor->ref.data);
    for (index_t k = 0; k < bytes / static_cast<index_t>(sizeof(T)); ++k) {
      const bool special = IsFloat(tensor->dtype) && (*random)() % 8 == 0;
      p[k] = static_cast<T>(special ? hard[(*random)() % 6] : static_cast<double>((*random)() % 7) - 3);
    }
  });
}

void FillWithKeys(Tensor* tensor, std::mt19937* random, index_t rows) {
  SwitchDType(tensor->dtype, [&](auto tag) {
    using T = decltype(tag);
    for (index_t k = 0; k < tensor->ref.shape[0]; ++k)  // some beyond the ends, many twice
      static_cast<T*>(tensor->ref.data)[k * tensor->ref.stride[0]] =
          static_cast<T>(static_cast<int>((*random)() % static_cast<unsigned>(rows + 4)) -
                         (IsFloat(tensor->dtype) || sizeof(T) > 1 ? 2 : 0));
  });
}

// The same bits, any NaN for any other.
bool IsSame(const Tensor& a, const Tensor& b) {
  bool same = true;
  ForEachIndex(a.ref.shape, [&](const std::vector<index_t>& at) {
    const double x = a.At(at), y = b.At(at);
    same = same && ((std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, sizeof x) == 0);
  });
  return same;
}

struct Shape {
  std::vector<index_t> extents;
  index_t padding = 0;
};

// Operands of a graph whose inputs s and l are keys of rows.
struct Operands {
  Operands(const graph::Graph& graph, const std::vector<Shape>& shapes, index_t rows, unsigned seed)
      : graph(graph),
        padding(shapes.back().padding) {
    std::mt19937 random(seed);
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const graph::Node& node = graph.node(graph.inputs()[k]);
      inputs.push_back(std::make_unique<Tensor>(node.dtype, shapes[k].extents, shapes[k].padding, nullptr));
      if (node.name == "s" || node.name == "l") FillWithKeys(inputs.back().get(), &random, rows);
      else FillWithNumbers(inputs.back().get(), &random);
      arguments.inputs.push_back(inputs.back()->ref);
    }
  }

  // New ones, which the arguments name from now on.
  std::vector<std::unique_ptr<Tensor>> Outputs(const Function& function) {
    std::vector<std::unique_ptr<Tensor>> outputs;
    arguments.outputs.clear();
    for (const auto& shape : runtime::OutputShapes(function.program(), arguments.inputs)) {
      const DType type = graph.node(graph.outputs()[outputs.size()].node).dtype;
      outputs.push_back(std::make_unique<Tensor>(type, shape, padding, nullptr));
      arguments.outputs.push_back(outputs.back()->ref);
    }
    return outputs;
  }

  const graph::Graph& graph;
  index_t padding;
  std::vector<std::unique_ptr<Tensor>> inputs;
  Arguments arguments;
};

// The interpreter and every dialect, on one thread and on two.
void OnEveryRoute(const std::shared_ptr<const graph::Graph>& graph, const std::vector<Shape>& shapes, index_t rows,
                  unsigned seed) {
  Operands operands(*graph, shapes, rows, seed);
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  const Function interpreted = Compile(graph, options);
  const auto expected = operands.Outputs(interpreted);
  interpreted(operands.arguments);
  options.engine = Engine::kJit;
  for (const auto target : codegen::kAllTargets) {
    if (!HostRuns(target)) continue;
    options.target = std::string(codegen::Name(target));
    for (const int threads : {1, 2}) {
      const Function function = Compile(graph, options);
      const auto got = operands.Outputs(function);
      function(operands.arguments, {threads});
      for (std::size_t k = 0; k < got.size(); ++k)
        EXPECT_TRUE(IsSame(*expected[k], *got[k]))
            << options.target << ", output " << k << ", " << threads << " threads\n"
            << graph::Print(*graph);
    }
  }
}

std::shared_ptr<const graph::Graph> TakeGrad(const std::string& keys, const std::string& type, index_t rows,
                                             const std::string& around = "") {
  const std::string call = "take_grad(s, g, " + std::to_string(rows) + ")";
  const std::string result = type + "[" + std::to_string(rows) + ", c]";
  return graph::ParseText("kernel k(s: " + keys + "[n], g: " + type + "[n, c]" +
                          (around.empty() ? "" : ", x: " + result) + ") -> (y: " + result + ") {\n  y = " + call +
                          around + "\n}")[0];
}

TEST(Guards, GradientsOfRowsByIndex) {
  unsigned seed = 1;
  for (const char* type : {"f32", "f64", "i32", "f16"})
    for (const index_t columns : {1, 16, 70}) {
      const auto graph = TakeGrad(seed % 2 == 0 ? "i64" : "f32", type, 40);
      EXPECT_TRUE(IsGuarded(graph)) << PlanOf(graph);
      OnEveryRoute(graph, {{{150}}, {{150, columns}, columns % 3}}, 40, ++seed);
    }
  for (const index_t steps : {0, 1, 9})
    for (const index_t rows : {1, 9})
      OnEveryRoute(TakeGrad("i32", "f32", rows), {{{steps}}, {{steps, 33}}}, rows, ++seed);
  // More columns than a block has, and more rows.
  OnEveryRoute(TakeGrad("i64", "f32", 3), {{{20}}, {{20, 8200}}}, 3, ++seed);
  OnEveryRoute(TakeGrad("i64", "f32", 2500), {{{900}}, {{900, 20}}}, 2500, ++seed);
  // Few rows and many steps, which threads share.
  OnEveryRoute(TakeGrad("i32", "f32", 2), {{{70000}}, {{70000, 21}}}, 2, ++seed);
  // What follows is done to the rows as they are stored.
  const auto added = TakeGrad("i64", "f32", 40, " * 2 + x");
  EXPECT_TRUE(IsGuarded(added));
  OnEveryRoute(added, {{{150}}, {{150, 37}}, {{40, 37}, 5}}, 40, ++seed);
  // Steps may take rows of a table.
  const auto messages = graph::ParseText(
      "kernel k(s: i64[n], h: f32[v, c], from: i32[n], w: f32[n]) -> (y: f32[40, c]) {\n"
      "  y = take_grad(s, take(from, h) * broadcast<0>(w), 40)\n}")[0];
  EXPECT_TRUE(IsGuarded(messages));
  for (const index_t columns : {5, 16, 70})
    OnEveryRoute(messages, {{{150}}, {{30, columns}, columns % 3}, {{150}}, {{150}}}, 40, ++seed);
}

// Steps that are counted for the bin that each brings, and for few bins, which packets ask at once.
TEST(Guards, Histograms) {
  unsigned seed = 70;
  for (const char* type : {"i32", "i64", "u8", "f32"})
    for (const int bins : {5, 33, 64, 300}) {
      const std::string count = std::to_string(bins);
      const auto graph = graph::ParseText(std::string("kernel k(s: ") + type + "[n]) -> (y: f32[" + count +
                                          "]) { y = sum_rows(one_hot_encode(s, " + count + ")) }")[0];
      EXPECT_EQ(IsGuarded(graph), bins > 32) << PlanOf(graph);
      for (const index_t steps : {0, 1, 150}) OnEveryRoute(graph, {{{steps}}}, bins, ++seed);
    }
  // Bins of i32, known ones, with further conditions; what a bin brings to the condition is asked for every step.
  const auto of_bins = [](const std::string& condition, const std::string& reducer, const std::string& otherwise) {
    return graph::ParseText(
        "kernel k(s: i32[n], v: f32[n], x: f32[70]) -> (y: f32[70]) {\n  keys = broadcast<0>(s)\n"
        "  bins = broadcast<1>(steps<i32>(70, 1))\n  y = reduce_with_axis<" +
        reducer + ">(" + condition + " ? broadcast_with_axis(v, 0, 70) : " + otherwise + ", 0)\n}")[0];
  };
  for (const auto& [condition, guarded] :
       {std::pair("keys == bins", true), std::pair("keys == bins && broadcast<0>(v) > 0", true),
        std::pair("keys + 1 == bins", true), std::pair("keys == bins && broadcast<1>(x) > 0", false)})
    for (const auto& [reducer, otherwise] : {std::pair("sum", "0"), std::pair("product", "1")}) {
      const auto graph = of_bins(condition, reducer, otherwise);
      EXPECT_EQ(IsGuarded(graph), guarded) << PlanOf(graph);
      OnEveryRoute(graph, {{{400}}, {{400}}, {{70}}}, 70, ++seed);
    }
  const auto weighed = graph::ParseText(
      "kernel k(s: i64[n], v: f32[n], x: f32[b]) -> (y: f32[b], z: f32[b]) {\n"
      "  keys = broadcast<0>(s, broadcast_with_axis(v, 0, extent<0>(x)))\n"
      "  bins = broadcast<1>(steps<i64>(extent<0>(x), 1), broadcast_with_axis(v, 0, extent<0>(x)))\n"
      "  y = reduce_with_axis<sum>(keys == bins ? broadcast_with_axis(v, 0, extent<0>(x)) : 0, 0) * x\n"
      "  z = reduce_with_axis<sum>(keys == bins ? 1.0 : 0.0, 0) + x\n}")[0];
  EXPECT_TRUE(IsGuarded(weighed)) << PlanOf(weighed);
  for (const index_t bins : {1, 40, 5000}) OnEveryRoute(weighed, {{{400}}, {{400}}, {{bins}}}, bins, ++seed);
}

// In the order of the steps, as one by one: bits of floats that are not whole numbers, too.
TEST(Guards, SumsGoInOrder) {
  std::mt19937 random(5);
  Tensor g(DType::kFloat32, {300, 45}, 0, &random), s(DType::kInt64, {300}, 0, nullptr),
      y(DType::kFloat32, {7, 45}, 0, nullptr);
  FillWithKeys(&s, &random, 7);
  std::vector<float> expected(7 * 45, 0.0f);
  for (index_t i = 0; i < 300; ++i) {
    const auto row = static_cast<std::size_t>(std::clamp(s.At({i}), 0.0, 6.0));
    for (std::size_t c = 0; c < 45; ++c)
      expected[row * 45 + c] += static_cast<float>(g.At({i, static_cast<index_t>(c)}));
  }
  for (const auto target : codegen::kAllTargets) {
    if (!HostRuns(target)) continue;
    CompileOptions options;
    options.target = std::string(codegen::Name(target));
    Compile(TakeGrad("i64", "f32", 7), options)(Arguments{{s.ref, g.ref}, {y.ref}, {}});
    EXPECT_EQ(std::memcmp(expected.data(), y.ref.data, expected.size() * sizeof(float)), 0) << options.target;
  }
}

// The destination is an operand, and operands lie anyhow.
TEST(Guards, InPlaceAndStrided) {
  std::mt19937 random(6);
  const auto graph = TakeGrad("i32", "f32", 12, " + x");
  Tensor s(DType::kInt32, {50}, 0, nullptr), g(DType::kFloat32, {33, 50}, 0, nullptr),
      x(DType::kFloat32, {33, 12}, 0, nullptr);
  FillWithKeys(&s, &random, 12);
  FillWithNumbers(&g, &random);
  FillWithNumbers(&x, &random);
  const auto transposed = [](const Tensor& tensor) {
    runtime::TensorRef ref = tensor.ref;
    std::swap(ref.shape[0], ref.shape[1]);
    std::swap(ref.stride[0], ref.stride[1]);
    return ref;
  };
  Tensor expected(DType::kFloat32, {33, 12}, 0, nullptr);
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  Compile(graph, options)(Arguments{{s.ref, transposed(g), transposed(x)}, {transposed(expected)}, {}});
  options.engine = Engine::kJit;
  for (const auto target : codegen::kAllTargets) {
    if (!HostRuns(target)) continue;
    options.target = std::string(codegen::Name(target));
    Tensor got(DType::kFloat32, {33, 12}, 0, nullptr);
    std::memcpy(got.ref.data, x.ref.data, 33 * 12 * sizeof(float));
    Compile(graph, options)(Arguments{{s.ref, transposed(g), transposed(got)}, {transposed(got)}, {}});
    EXPECT_TRUE(IsSame(expected, got)) << options.target;
  }
}

struct Form {
  std::string inputs, outputs, body;
  bool guarded;
};

TEST(Guards, EveryReducerAndKindOfKey) {
  const std::string g3 = "  g3 = broadcast_with_axis(g, -1, 9)\n",
                    labels = g3 + "  key = broadcast<1>(s, g3) == broadcast<0>(l)\n";
  const std::string two = "y: f32[9, c], z: f32[9, c]", one = "y: f32[9, c]";
  const auto joined = [](const std::string& reducer, const std::string& condition, const std::string& otherwise) {
    return "  y = reduce_with_axis<" + reducer + ">(select(" + condition + ", g3, " + otherwise + "), 1)\n";
  };
  const Form forms[] = {
      {"", one, labels + joined("sum", "key", "0"), true},
      {"", one, labels + joined("sum", "key", "-0.0"), true},
      {"", one, labels + joined("product", "key", "1"), true},
      {"", one, labels + joined("maximum", "key", "-1 / 0.0"), true},
      {"", one, labels + joined("minimum", "key", "1 / 0.0"), true},
      {"", one,
       g3 + "  key = broadcast<0>(steps<i64>(9, 1), g3) == broadcast<1>(tcast<i64>(s))\n" +
           joined("maximum", "key", "-1 / 0.0"),
       true},
      {"", one,
       g3 + "  key = broadcast<0>(steps<i64>(9, 1), g3) == broadcast<1>(tcast<i64>(s)) && broadcast<1>(s) != 4\n" +
           joined("sum", "key", "0"),
       true},
      // Of operands that move with the row.
      {"", one,
       g3 + "  key = broadcast<0>(steps<i64>(9, 1), g3) == broadcast<1>(tcast<i64>(s)) && broadcast<0>(l) > 2\n" +
           joined("sum", "key", "0"),
       true},
      {"", one,
       g3 +
           "  key = broadcast<0>(steps<i64>(9, 1), g3) == broadcast<1>(tcast<i64>(s)) && broadcast<1>(s, g3) + 1 == broadcast<0>(l * 2 - 1, g3)\n" +
           joined("minimum", "key", "1 / 0.0"),
       true},
      // Whatever else a selection asks is asked in lanes.
      {"", one, labels + joined("sum", "g3 > 0 && key", "0"), true},
      {"", one,
       labels + "  n = select(key, tcast<i32>(maximum(g3, -9)), 0)\n  y = reduce_with_axis<sum>(tcast<f32>(n), 1)\n",
       true},
      {"", two,
       labels + joined("sum", "key && broadcast<1>(s) > 2", "0") +
           "  z = reduce_with_axis<maximum>(select(g3 > 0 && key, g3, -1 / 0.0), 1)\n",
       true},
      // A phase of several, before one without a guard and behind one.
      {"", one,
       labels +
           "  t = reduce_with_axis<sum>(select(key, g3, 0), 1)\n  y = reduce_with_axis<sum>(g3 - broadcast_with_axis(t, 0, 37), 1)\n",
       true},
      {"", one,
       labels +
           "  t = reduce_with_axis<maximum>(g3 * 2, 1)\n  y = reduce_with_axis<sum>(select(key, g3 - broadcast_with_axis(t, 0, 37), 0), 1)\n",
       true},
      // None of these may be left out, or need be.
      {"", one, labels + joined("sum", "key", "1"), false},
      {"", one, labels + joined("maximum", "key", "0"), false},
      {"", one, labels + joined("product", "key", "0"), false},
      {"", one, labels + joined("sum", "key || g3 > 0", "0"), false},
      {"", one, labels + "  y = reduce_with_axis<sum>(select(key, 1, 0) * g3, 1)\n", false},
      {"", two, labels + joined("sum", "key", "0") + "  z = reduce_with_axis<sum>(g3, 1)\n", false},
      {"", one, g3 + joined("sum", "broadcast<1>(s, g3) == 3", "0"), false},
      {", d: i32[9, ?]", one, g3 + joined("sum", "broadcast<0>(d, g3) == 1", "0"), false},
  };
  unsigned seed = 20;
  for (const Form& form : forms) {
    const auto graph = graph::ParseText("kernel k(s: i32[?], l: i32[9], g: f32[?, c]" + form.inputs + ") -> (" +
                                        form.outputs + ") {\n" + form.body + "}")[0];
    EXPECT_EQ(IsGuarded(graph), form.guarded) << PlanOf(graph);
    std::vector<Shape> shapes = {{{37}}, {{9}}, {{37, 53}}};
    if (!form.inputs.empty()) shapes.push_back({{9, 37}});
    OnEveryRoute(graph, shapes, 9, ++seed);
    if (&form == forms) OnEveryRoute(graph, {{{400}}, {{9}}, {{400, 4200}}}, 9, ++seed);  // threads share columns
  }
}

// The elements of a step at positions of their own.
TEST(Guards, StepsThatAreMoved) {
  OnEveryRoute(graph::ParseText(
                   "kernel k(s: i32[41], g: f32[37, 47]) -> (y: f32[9, 53]) { y = take_grad(s, pad(g, 2, 3), 9) }")[0],
               {{{41}}, {{37, 47}}}, 9, 31);
  OnEveryRoute(
      graph::ParseText(
          "kernel k(s: i32[40], g: f32[30, 16], h: f32[10, 16]) -> (y: f32[9, 16]) { y = take_grad(s, concat(g, h, 0), 9) }")
          [0],
      {{{40}}, {{30, 16}}, {{10, 16}}}, 9, 32);
  OnEveryRoute(graph::ParseText(
                   "kernel k(s: i32[40], l: i32[9], g: f32[40, 33]) -> (y: f32[9, 33]) {\n"
                   "  g3 = broadcast_with_axis(crop(pad(g, 2, 3), 0, 0, 40, 33), -1, 9)\n"
                   "  y = reduce_with_axis<sum>(select(broadcast<1>(s, g3) == broadcast<0>(l, g3), g3, 0), 1)\n}")[0],
               {{{40}}, {{9}}, {{40, 33}}}, 9, 33);
}

// Each condition is looked at once, however many ways there are to it.
TEST(Guards, ConditionsOfConditions) {
  for (const bool guarded : {false, true}) {
    std::string text =
        "kernel k(s: i32[?], l: i32[9], g: f32[?, c]) -> (y: f32[9, c]) {\n  g3 = broadcast_with_axis(g, -1, 9)\n";
    text += std::string("  a0 = broadcast<1>(s, g3) ") + (guarded ? "==" : ">") + " broadcast<0>(l, g3)\n";
    for (int k = 1; k <= 40; ++k)
      text += "  a" + std::to_string(k) + " = a" + std::to_string(k - 1) + " && a" + std::to_string(k - 1) + "\n";
    const auto graph = graph::ParseText(text + "  y = reduce_with_axis<sum>(select(a40, g3, 0), 1)\n}")[0];
    EXPECT_EQ(IsGuarded(graph), guarded);
  }
}

// All that the steps of a label bring, joined.
std::shared_ptr<const graph::Graph> Segments() {
  graph::Builder b("segments");
  const auto s = b.Input("s", DType::kInt32, {Dimension()}), l = b.Input("l", DType::kInt32, {11});
  const auto g = b.Input("g", DType::kFloat32, {Dimension(), Dimension()});
  const auto like = graph::IndexMap("broadcast_with_axis", {g}, {-1, 11});
  const auto key = graph::Broadcast(1, s, like) == graph::Broadcast(0, l, like);
  b.Output("y", graph::Reduce("sum", graph::Apply("select", {key, like, graph::Value(0.0)}), {1, 2}));
  b.Output("z",
           graph::Reduce("minimum",
                         graph::Apply("select", {key, like, graph::Value(std::numeric_limits<double>::infinity())}),
                         {1, 2}));
  return b.Build();
}

// Packets go along what a step brings, where all of that is joined.
TEST(Guards, StepsOfSeveralElements) {
  const auto graph = Segments();
  EXPECT_TRUE(IsGuarded(graph)) << PlanOf(graph);
  for (const index_t columns : {3, 64, 150})
    OnEveryRoute(graph, {{{40}}, {{11}}, {{40, columns}}}, 11, static_cast<unsigned>(columns));
  OnEveryRoute(graph, {{{3000}}, {{11}}, {{3000, 100}}}, 11, 8);
}

// Every form of a reduction on a GPU, with positions of 32 bits and of 64.
TEST(Guards, Cuda) {
  struct One {
    std::unique_ptr<Operands> operands;
    std::vector<std::unique_ptr<Tensor>> expected, got;
    std::unique_ptr<emulated::Call> call;
  };
  emulated::Library library;
  std::vector<One> all;
  const auto add = [&](const std::shared_ptr<const graph::Graph>& graph, const std::vector<Shape>& shapes, index_t rows,
                       bool general) {
    One one;
    one.operands = std::make_unique<Operands>(*graph, shapes, rows, static_cast<unsigned>(all.size()));
    CompileOptions options;
    options.engine = Engine::kInterpreter;
    const Function interpreted = Compile(graph, options);
    one.expected = one.operands->Outputs(interpreted);
    interpreted(one.operands->arguments);
    one.got = one.operands->Outputs(interpreted);
    one.call = std::make_unique<emulated::Call>(&library, *graph, one.operands->arguments, runtime::CudaLimits(),
                                                general ? emulated::General : nullptr);
    all.push_back(std::move(one));
  };
  for (const bool general : {false, true}) {
    for (const index_t steps : {30, 300, 20000})
      for (const index_t columns : {1, 33})
        add(TakeGrad("i32", "f32", 7), {{{steps}}, {{steps, columns}, 3}}, 7, general);
    for (const index_t steps : {9, 2000}) add(Segments(), {{{steps}}, {{11}}, {{steps, 70}, 1}}, 11, general);
  }
  library.Build();
  for (const One& one : all) {
    one.call->Run(false);
    for (std::size_t k = 0; k < one.got.size(); ++k)
      EXPECT_TRUE(IsSame(*one.expected[k], *one.got[k])) << &one - all.data();
  }
}

}  // namespace
}  // namespace umbra

// Columns of which a value is kept in the place of a result, from phase to phase: the same bits by every instruction
// set and any number of threads, and about what the interpreter finds, whatever else lies in memory.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/lower.h"
#include "tests/support/drawn.h"
#include "tests/unit/index_map_common.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::SameBits;
using drawn::Tensor;

std::shared_ptr<const graph::Graph> Parsed(const std::string& text) { return graph::ParseText(text)[0]; }

// How many values the plan keeps.
int NumKept(const std::string& text) {
  int kept = 0;
  const plan::Plan plan = Lower(*Parsed(text));
  for (const auto& step : plan.steps) {
    const auto* kernel = std::get_if<plan::Kernel>(&step);
    if (kernel == nullptr) continue;
    for (const plan::Phase& phase : kernel->phases)
      for (const plan::Store& store : phase.stores) kept += plan::IsStoredLater(*kernel, phase, store) ? 1 : 0;
  }
  return kept;
}

std::string Typed(std::string text, DType type) {
  for (std::size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, Name(type));
  return text;
}

// Sums of up to 140,000 elements go in another order, f16 is rounded once more.
bool IsNear(const Tensor& a, const Tensor& b) {
  bool near = true;
  const double tolerance = a.dtype == DType::kFloat64 ? 1e-10 : a.dtype == DType::kFloat32 ? 1e-3 : 4e-3;
  drawn::ForEachIndex(a.ref.shape, [&](const std::vector<index_t>& i) {
    const double x = a.At(i), y = b.At(i);
    near = near && (std::abs(x - y) <= tolerance * (1 + std::abs(y)) || (std::isnan(x) && std::isnan(y)) || x == y);
  });
  return near;
}

struct Compiled {
  bool by_points = false;  // by the interpreter
  std::string target;
  Function function;
};

std::vector<Compiled> OnEveryRoute(const std::string& text) {
  std::vector<Compiled> routes;
  for (const CompileOptions& route : Routes())
    routes.push_back({route.engine == Engine::kInterpreter, route.target, Compile(Parsed(text), route)});
  return routes;
}

struct Kernel {
  const char* text;
  int kept;  // of f32
};
const Kernel kKernels[] = {
    {"kernel k(x: T[n, m], v: T[m]) -> (y: T[n, m], s: T[m]) {\n  e = exp(x - broadcast<1>(reduce_with_axis<maximum>(x, 0)))\n"
     "  s = reduce_with_axis<sum>(e, 0) + v\n  y = e / broadcast<1>(s)\n}",
     1},
    // Two phases read what is kept, and of what is dear the one that is made of the rest is.
    {"kernel k(x: T[n, m], v: T[m]) -> (y: T[n, m], s: T[m]) {\n  t = tanh(x) * 2 + sqrt(abs(x))\n  c = t - broadcast<1>(reduce_with_axis<sum>(t, 0) * v)\n"
     "  s = reduce_with_axis<maximum>(c * c, 0)\n  y = t * broadcast<1>(s)\n}",
     1},
    // There is nothing dear.
    {"kernel k(x: T[n, m], v: T[m]) -> (y: T[n, m], s: T[m]) {\n  c = x - broadcast<1>(reduce_with_axis<mean>(x, 0))\n"
     "  s = reduce_with_axis<mean>(c * c, 0) + v\n  y = c * broadcast<1>(s)\n}",
     0},
    // The result may be x, which is read to the end.
    {"kernel k(x: T[n, m], v: T[m]) -> (y: T[n, m], s: T[m]) {\n  e = exp(x)\n  s = reduce_with_axis<sum>(e, 0) + v\n  y = x - e / broadcast<1>(s)\n}",
     0},
    // Positions and conditions.
    {"kernel k(x: T[n, m], v: T[m]) -> (y: T[n, m], s: T[m]) {\n  e = sigmoid(x * broadcast<1>(v))\n  s = reduce_with_axis<maximum>(e, 0)\n"
     "  y = select(e < broadcast<1>(s), e, 7)\n}",
     1},
};

TEST(KeepInResults, SameBits) {
  for (const Kernel& kernel : kKernels) {
    EXPECT_EQ(NumKept(Typed(kernel.text, DType::kFloat32)), kernel.kept) << kernel.text;
    EXPECT_EQ(NumKept(Typed(kernel.text, DType::kFloat16)), 0) << kernel.text;
    for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
      const std::vector<Compiled> routes = OnEveryRoute(Typed(kernel.text, type));
      for (const auto& [n, m] : std::vector<std::pair<index_t, index_t>>{
               {0, 3}, {1, 40}, {2, 5}, {33, 31}, {100, 97}, {700, 67}, {35, 2100}, {30000, 3}, {140000, 2}})
        for (const index_t padding : {0, 3}) {
          std::mt19937 random(static_cast<unsigned>(n * 1000 + m));
          const Tensor x(type, {n, m}, padding, &random), v(type, {m}, 0, &random);
          std::unique_ptr<Tensor> y, s, by_points, sums_by_points;
          for (const Compiled& route : routes)
            for (const int threads : {1, 3}) {
              auto z = std::make_unique<Tensor>(type, std::vector<index_t>{n, m}, padding, nullptr),
                   t = std::make_unique<Tensor>(type, std::vector<index_t>{m}, 0, nullptr);
              route.function({{x.ref, v.ref}, {z->ref, t->ref}, {}}, {threads});
              if (route.by_points) by_points = std::move(z), sums_by_points = std::move(t);
              else if (y == nullptr) y = std::move(z), s = std::move(t);
              else
                EXPECT_TRUE(SameBits(*y, *z) && SameBits(*s, *t)) << route.target << "\n"
                                                                  << Typed(kernel.text, type) << "\n"
                                                                  << n << " x " << m;
            }
          EXPECT_TRUE(IsNear(*y, *by_points) && IsNear(*s, *sums_by_points)) << Typed(kernel.text, type) << "\n"
                                                                             << n << " x " << m;
        }
    }
  }
}

// A middle axis, long or short, and the result in the place of the operand.
TEST(KeepInResults, MiddleAxisInPlace) {
  for (const index_t steps : {3, 14, 40, 70}) {
    const std::string of = std::to_string(steps);
    const std::string text = "kernel k(x: f32[b, " + of + ", m]) -> (y: f32[b, " + of + ", m]) {\n" +
                             "  e = exp(x - broadcast_with_axis(reduce_with_axis<maximum>(x, 1), 0, " + of + "))\n" +
                             "  y = e / broadcast_with_axis(reduce_with_axis<sum>(e, 1), 0, " + of + ")\n}";
    EXPECT_EQ(NumKept(text), 1) << text;
    for (const index_t m : {3, 32, 100, 1000}) {
      std::unique_ptr<Tensor> expected;
      for (const Compiled& route : OnEveryRoute(text)) {
        std::mt19937 random(5);
        auto x = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{3, steps, m}, 0, &random);
        const Tensor y(DType::kFloat32, {3, steps, m}, 0, nullptr);
        route.function({{x->ref}, {y.ref}, {}});
        route.function({{x->ref}, {x->ref}, {}}, {2});
        EXPECT_TRUE(SameBits(*x, y)) << route.target << " " << m;
        if (expected == nullptr) expected = std::move(x);
        else EXPECT_TRUE(IsNear(*x, *expected)) << route.target << " " << m;
      }
    }
  }
}

// What follows in the same graph, which has memory of its own for the steps between, that of others among it.
TEST(KeepInResults, BetweenSteps) {
  const std::string text =
      "kernel k(x: f32[n, m], w: f32[m, m]) -> (y: f32[n, m]) {\n  h = dot(x, w)\n  e = exp(h - broadcast<1>(reduce_with_axis<maximum>(h, 0)))\n"
      "  p = e / broadcast<1>(reduce_with_axis<sum>(e, 0))\n  y = dot(p, w) + p\n}";
  EXPECT_EQ(NumKept(text), 1);
  for (const auto& [n, m] : std::vector<std::pair<index_t, index_t>>{{70, 5}, {200, 48}, {400, 130}}) {
    std::unique_ptr<Tensor> expected;
    for (const Compiled& route : OnEveryRoute(text)) {
      std::mt19937 random(6);
      const Tensor x(DType::kFloat32, {n, m}, 0, &random), w(DType::kFloat32, {m, m}, 0, &random);
      auto y = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{n, m}, 0, nullptr);
      route.function({{x.ref, w.ref}, {y->ref}, {}}, {2});
      if (expected == nullptr) expected = std::move(y);
      else
        drawn::ForEachIndex({n, m}, [&](const std::vector<index_t>& i) {
          EXPECT_NEAR(y->At(i), expected->At(i), 1e-3) << route.target;
        });
    }
  }
}

}  // namespace
}  // namespace umbra

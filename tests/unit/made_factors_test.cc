// Products whose right factor is cheap to make: kernels compute it as they read what it is made of, bit by bit as if it
// had been written to memory first.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compiler/driver/lower.h"
#include "compiler/driver/target.h"
#include "tests/support/drawn.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using drawn::SameBits;
using drawn::Tensor;

std::shared_ptr<const graph::Graph> Parsed(const std::string& text) { return graph::ParseText(text)[0]; }

const runtime::KernelSignature* Alternative(const plan::Plan& plan) {
  for (const auto& step : plan.steps)
    if (const auto* kernel = std::get_if<plan::Kernel>(&step); kernel != nullptr && !kernel->signature.replaces.empty())
      return &kernel->signature;
  return nullptr;
}

// A right factor of k rows and n columns, or of n rows and k columns that the product turns.
struct Maker {
  const char* operands;
  const char* value;
  bool turned;
};

constexpr Maker kMakers[] = {
    {"w: f16[k, n]", "tcast<f32>(w)", false},
    {"w: bf16[n, k]", "tcast<f32>(w)", true},
    {"w: i8[k, n], s: f32[n]", "tcast<f32>(w) * broadcast<1>(s)", false},
    {"w: i8[n, k], s: f32[n]", "tcast<f32>(w) * broadcast<0>(s)", true},
    {"w: u8[k, n], s: f32[k], z: i8[k, n]", "tcast<f32>(w) * broadcast<0>(s) - tcast<f32>(z)", false},
    {"w: f32[n, k], s: f32[n, k]", "relu(w - 0.5 * s)", true},
    {"w: f32[n, k]", "abs(w.T)", false},
    {"w: f32[k, n], s: f16[n, k]", "w + tcast<f32>(s.T)", false},
};

std::string Spelled(std::string text, index_t m, index_t n, index_t k) {
  const auto replace = [&](const std::string& name, index_t extent) {
    for (const std::string before : {"[", ", "})
      for (const std::string after : {"]", ","})
        for (std::size_t at = 0; (at = text.find(before + name + after, at)) != std::string::npos;)
          text.replace(at + before.size(), 1, std::to_string(extent));
  };
  replace("m", m), replace("n", n), replace("k", k);
  return text;
}

std::vector<std::unique_ptr<Tensor>> Drawn(const graph::Graph& graph, index_t padding, std::mt19937* random) {
  std::vector<std::unique_ptr<Tensor>> tensors;
  for (const int id : graph.inputs()) {
    const graph::Node& node = graph.node(id);
    std::vector<index_t> shape;
    for (std::size_t d = 0; d < node.shape.size(); ++d) shape.push_back(static_cast<index_t>(node.shape[d]));
    tensors.push_back(std::make_unique<Tensor>(node.dtype, shape, padding, random));
  }
  return tensors;
}

std::vector<runtime::TensorRef> Refs(const std::vector<std::unique_ptr<Tensor>>& tensors) {
  std::vector<runtime::TensorRef> refs;
  for (const auto& tensor : tensors) refs.push_back(tensor->ref);
  return refs;
}

// Do two sums of the same products differ by no more than their rounding, twice?
bool IsNear(const Tensor& one, const Tensor& other, const Tensor& a, const Tensor& v, bool turned) {
  const index_t inner = a.ref.shape[1];
  bool near = true;
  drawn::ForEachIndex(one.ref.shape, [&](const std::vector<index_t>& i) {
    double size = 4;  // of what is added
    for (index_t k = 0; k < inner; ++k)
      size += std::fabs(a.At({i[0], k}) * v.At(turned ? std::vector<index_t>{i[1], k} : std::vector<index_t>{k, i[1]}));
    near = near && std::fabs(one.At(i) - other.At(i)) <= static_cast<double>(2 * inner + 4) * 6e-8 * size;
  });
  return near;
}

TEST(MadeFactors, SameBitsAsFromMemory) {
  const index_t shapes[][3] = {{2, 33, 40},  {7, 48, 33},   {16, 200, 17},  {17, 31, 64},
                               {70, 97, 45}, {600, 50, 20}, {5, 1100, 600}, {40, 60, 3100}};
  unsigned seed = 0;
  for (const Maker& maker : kMakers)
    for (const auto& [m, n, k] : shapes) {
      const std::string type = "[m, n]", factor = maker.turned ? "f32[n, k]" : "f32[k, n]";
      const auto text = [&](const std::string& operands, const std::string& value) {
        return "kernel made(a: f32[m, k], c: f32[n], " + operands + ") -> (y: f32[m, n]) { v = " + value +
               " y = relu(dot(a, v" + (maker.turned ? ".T" : "") + ") + broadcast<1>(c)) }";
      };
      const auto known = Parsed(Spelled(text(maker.operands, maker.value), m, n, k)),
                 open = Parsed(text(maker.operands, maker.value));
      const auto in_memory = Parsed(text("v0: " + factor, "v0")),
                 made = Parsed(Spelled(
                     std::string("kernel v(") + maker.operands + ") -> (v: " + factor + ") { v = " + maker.value + " }",
                     m, n, k));
      std::mt19937 random(seed);
      const index_t padding = seed++ % 3;
      Tensor a(DType::kFloat32, {m, k}, padding, &random), c(DType::kFloat32, {n}, 0, &random),
          v(DType::kFloat32, maker.turned ? std::vector<index_t>{n, k} : std::vector<index_t>{k, n}, 0, nullptr);
      const auto operands = Drawn(*made, padding, &random);
      Compile(made)({Refs(operands), {v.ref}, {}});
      std::vector<runtime::TensorRef> inputs = {a.ref, c.ref};
      const std::vector<runtime::TensorRef> others = Refs(operands);
      inputs.insert(inputs.end(), others.begin(), others.end());
      for (const auto target : codegen::kAllTargets) {
        if (!HostRuns(target)) continue;
        CompileOptions options;
        options.target = std::string(codegen::Name(target));
        if (!runtime::SumIsFaster({m, n, k, false, maker.turned, 4, true}, options.target)) continue;
        const bool by_kernel =
            runtime::SumIsFaster({m, n, k, false, maker.turned}, options.target);  // of the factor in memory, too
        Tensor expected(DType::kFloat32, {m, n}, 0, nullptr);
        Compile(in_memory, options)({{a.ref, c.ref, v.ref}, {expected.ref}, {}}, {1});
        for (const auto& graph : {known, open})
          for (const int threads : {1, 3}) {
            Tensor y(DType::kFloat32, {m, n}, 0, nullptr);
            Compile(graph, options)({inputs, {y.ref}, {}}, {threads});
            bool same = by_kernel && SameBits(expected, y);
            if (!by_kernel) same = IsNear(expected, y, a, v, maker.turned);
            EXPECT_TRUE(same) << maker.value << ", " << m << " x " << n << " x " << k << ", " << options.target << ", "
                              << threads << " threads";
          }
      }
    }
}

TEST(MadeFactors, Batches) {
  const auto
      graph = Parsed(
          "kernel made(a: f32[g, m, k], w: f16[g, k, n], s: f32[n]) -> (y: f32[g, m, n]) { y = batch_dot(a, tcast<f32>(w) * broadcast<2>(s)) }"),
      in_memory = Parsed("kernel k(a: f32[g, m, k], v: f32[g, k, n]) -> (y: f32[g, m, n]) { y = batch_dot(a, v) }"),
      made =
          Parsed("kernel v(w: f16[g, k, n], s: f32[n]) -> (v: f32[g, k, n]) { v = tcast<f32>(w) * broadcast<2>(s) }");
  std::mt19937 random(5);
  const Tensor a(DType::kFloat32, {3, 30, 21}, 1, &random), w(DType::kFloat16, {3, 21, 50}, 2, &random),
      s(DType::kFloat32, {50}, 0, &random), v(DType::kFloat32, {3, 21, 50}, 0, nullptr);
  Compile(made)({{w.ref, s.ref}, {v.ref}, {}});
  for (const auto target : codegen::kAllTargets) {
    if (!HostRuns(target)) continue;
    CompileOptions options;
    options.target = std::string(codegen::Name(target));
    if (!runtime::SumIsFaster({30, 50, 21}, options.target)) continue;
    const Tensor expected(DType::kFloat32, {3, 30, 50}, 0, nullptr), y(DType::kFloat32, {3, 30, 50}, 0, nullptr);
    Compile(in_memory, options)({{a.ref, v.ref}, {expected.ref}, {}});
    Compile(graph, options)({{a.ref, w.ref, s.ref}, {y.ref}, {}});
    EXPECT_TRUE(SameBits(expected, y)) << options.target;
  }
}

// A vector by a made matrix is a sum of the graph; its order is that of other reductions.
TEST(MadeFactors, Vectors) {
  for (const Maker& maker : kMakers) {
    const index_t n = 90, k = 700;
    const std::string text = std::string("kernel made(x: f32[k], ") + maker.operands +
                             ") -> (y: f32[n], v: " + (maker.turned ? "f32[n, k]" : "f32[k, n]") +
                             ") {\n  w0 = " + maker.value + "\n  y = 0.5 * dot(x, w0" + (maker.turned ? ".T" : "") +
                             ")\n  v = " + maker.value + "\n}";
    const auto graph = Parsed(text);
    const plan::Plan plan = Lower(*graph);
    EXPECT_TRUE(std::none_of(plan.steps.begin(), plan.steps.end(), [](const auto& step) {
      return std::holds_alternative<plan::Gemm>(step);
    })) << maker.value;
    std::mt19937 random(3);
    const auto operands = Drawn(*Parsed(Spelled(text, 1, n, k)), 0, &random);
    for (const auto target : codegen::kAllTargets) {
      if (!HostRuns(target)) continue;
      CompileOptions options;
      options.target = std::string(codegen::Name(target));
      const Tensor y(DType::kFloat32, {n}, 0, nullptr),
          v(DType::kFloat32, maker.turned ? std::vector<index_t>{n, k} : std::vector<index_t>{k, n}, 0, nullptr);
      Compile(graph, options)({Refs(operands), {y.ref, v.ref}, {}});
      for (index_t j = 0; j < n; ++j) {
        double sum = 0, size = 0;
        for (index_t i = 0; i < k; ++i) {
          const double term =
              operands[0]->At({i}) * v.At(maker.turned ? std::vector<index_t>{j, i} : std::vector<index_t>{i, j});
          sum += term, size += std::fabs(term);
        }
        EXPECT_NEAR(y.At({j}), 0.5 * sum, static_cast<double>(k + 1) * 6e-8 * size)
            << maker.value << ", " << options.target;
      }
    }
  }
}

// A kernel between two products is a part of the first.
TEST(MadeFactors, OfProducts) {
  const auto graph =
      Parsed("kernel q(a: f32[m, k], b: f32[k, l], c: f32[l, n]) -> (y: f32[m, n]) { y = dot(a, 2 * dot(b, c) + 1) }");
  for (const auto& [m, k, l, n] : {std::array<index_t, 4>{4, 600, 3, 500}, {70, 90, 40, 50}, {5, 20, 30, 10}}) {
    std::mt19937 random(6);
    const Tensor a(DType::kFloat32, {m, k}, 0, &random), b(DType::kFloat32, {k, l}, 0, &random),
        c(DType::kFloat32, {l, n}, 0, &random);
    const auto run = [&](const CompileOptions& options, int threads) {
      auto y = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{m, n}, 0, nullptr);
      Compile(graph, options)({{a.ref, b.ref, c.ref}, {y->ref}, {}}, {threads});
      return y;
    };
    CompileOptions options;
    options.engine = Engine::kInterpreter;
    const auto expected = run(options, 1);
    options.engine = Engine::kJit;
    for (const auto target : codegen::kAllTargets) {
      if (!HostRuns(target)) continue;
      options.target = std::string(codegen::Name(target));
      for (const int threads : {1, 2}) {
        const auto y = run(options, threads);
        drawn::ForEachIndex({m, n}, [&](const std::vector<index_t>& i) {
          EXPECT_NEAR(y->At(i), expected->At(i), 1e-4 * static_cast<double>(k)) << options.target;
        });
      }
    }
  }
}

// Scalars of what is before and behind the product; a result that overwrites what the factor is made of is computed
// apart.
TEST(MadeFactors, OperandsOfAllSteps) {
  const auto graph =
      Parsed("kernel made(a: f32[n, n], w: f32[n, n], p: f32, q: f32) -> (y: f32[n, n]) { y = dot(a, q * w + p) * p }");
  const index_t n = 70;
  std::mt19937 random(9);
  const Tensor a(DType::kFloat32, {n, n}, 0, &random), w(DType::kFloat32, {n, n}, 0, &random),
      y(DType::kFloat32, {n, n}, 0, nullptr);
  umbra_scalar p, q;
  p.f32 = 0.5F, q.f32 = -2;
  Compile(graph)({{a.ref, w.ref}, {y.ref}, {p, q}});
  const auto expect = [&](const Tensor& got) {
    drawn::ForEachIndex({n, n}, [&](const std::vector<index_t>& i) {
      double sum = 0, size = 0;
      for (index_t k = 0; k < n; ++k) {
        const double term = a.At({i[0], k}) * (-2 * w.At({k, i[1]}) + 0.5);
        sum += term, size += std::fabs(term);
      }
      EXPECT_NEAR(got.At(i), sum * 0.5, static_cast<double>(n + 3) * 6e-8 * size);
    });
  };
  expect(y);
  Tensor over(DType::kFloat32, {n, n}, 0, nullptr);
  std::copy_n(static_cast<const float*>(w.ref.data), n * n, static_cast<float*>(over.ref.data));
  Compile(graph)({{a.ref, over.ref}, {over.ref}, {p, q}});
  expect(over);
}

TEST(MadeFactors, WhatIsMadeForTheProduct) {
  const auto replaced = [](const char* operands, const char* text, const char* more = "") {
    const auto plan = Lower(*Parsed(std::string("kernel k(a: f32[m, k], ") + operands + ") -> (y: f32[?, ?]" +
                                    (*more ? ", z: f32[?, ?]" : "") + ") { " + text + more + " }"));
    return Alternative(plan)->replaces.size();
  };
  EXPECT_EQ(replaced("w: f16[k, n]", "y = dot(a, tcast<f32>(w))"), 2u);
  EXPECT_EQ(replaced("w: f16[k, n]", "y = relu(dot(a, tcast<f32>(w)))"), 3u);
  EXPECT_EQ(replaced("w: i8[n, k], s: f32[n]", "y = dot(a, (tcast<f32>(w) * broadcast<0>(s)).T)"), 2u);
  EXPECT_EQ(replaced("b: f32[k, l], c: f32[l, n]", "y = dot(a, 2 * dot(b, c) + 1)"), 2u)
      << "what follows the first product, and no maker of the second";
  EXPECT_EQ(replaced("w: f32[k, n]", "y = dot(a, tanh(w))"), 1u) << "dearer than reading it from memory";
  EXPECT_EQ(replaced("w: f32[k, n]", "v = 2 * w y = dot(a, v)", " z = v"), 1u) << "it is a result itself";
  EXPECT_EQ(replaced("w: f32[k, n]", "y = dot(a, flip(w, 0))"), 1u) << "positions";
  EXPECT_EQ(replaced("w: f32[k, n]", "y = dot(a, w / broadcast<1>(reduce_with_axis<sum>(w, 0)))"), 1u)
      << "it needs sums of all rows";
}

}  // namespace
}  // namespace umbra

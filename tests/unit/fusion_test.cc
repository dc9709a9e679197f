// What runs as one: products with the work on their rows, many kernels in one launch. Against the
// interpreter where that is quick, else against f64.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/driver/lower.h"
#include "compiler/plan/plan.h"
#include "umbra/blas.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using runtime::Arguments;
using runtime::StepGroup;
using runtime::TensorRef;

struct Tensor {
  std::vector<float> values;
  TensorRef ref;

  explicit Tensor(std::vector<index_t> shape, unsigned seed = 0) {
    index_t count = 1;
    for (const index_t extent : shape) count *= extent;
    values.assign(static_cast<std::size_t>(count), -77);
    ref = TensorRef::Dense(values.data(), DType::kFloat32, std::move(shape));
    if (seed == 0) return;
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> draw(-1, 1);
    for (float& value : values) value = draw(random);
  }
};

std::shared_ptr<const graph::Graph> Parsed(const std::string& text) { return graph::ParseText(text)[0]; }

std::vector<const StepGroup*> Groups(const plan::Plan& plan, StepGroup::Kind kind) {
  std::vector<const StepGroup*> groups;
  for (const StepGroup& group : plan.groups)
    if (group.kind == kind) groups.push_back(&group);
  return groups;
}

CompileOptions With(Engine engine) {
  CompileOptions options;
  options.engine = engine;
  return options;
}

// Runs the interpreter and the JIT on inputs of the given shapes; all outputs agree.
void ExpectAgreement(const std::string& text, const std::vector<std::vector<index_t>>& shapes, double tolerance) {
  const auto graph = Parsed(text);
  std::vector<std::unique_ptr<Tensor>> in;
  Arguments arguments;
  for (const auto& shape : shapes) {
    in.push_back(std::make_unique<Tensor>(shape, static_cast<unsigned>(in.size() + 1)));
    arguments.inputs.push_back(in.back()->ref);
  }
  const auto run = [&](Engine engine, int threads) {
    const Function function = Compile(graph, With(engine));
    std::vector<std::unique_ptr<Tensor>> out;
    arguments.outputs.clear();
    for (const auto& shape : runtime::OutputShapes(function.program(), arguments.inputs)) {
      out.push_back(std::make_unique<Tensor>(shape));
      arguments.outputs.push_back(out.back()->ref);
    }
    function(arguments, {threads});
    return out;
  };
  const auto expected = run(Engine::kInterpreter, 1);
  for (const int threads : {1, 2}) {
    const auto got = run(Engine::kJit, threads);
    for (std::size_t k = 0; k < got.size(); ++k)
      for (std::size_t i = 0; i < got[k]->values.size(); ++i) {
        const double want = expected[k]->values[i], have = got[k]->values[i];
        ASSERT_NEAR(have, want, tolerance * (1 + std::fabs(want))) << text << " output " << k << ", element " << i;
      }
  }
}

TEST(Rows, AProductAndTheWorkOnItsRowsAreOneGroup) {
  const plan::Plan plan =
      Lower(*Parsed("kernel k(x: f32[n, k], w: f32[k, m], b: f32[m], r: f32[n, m], s: f32[n]) -> (y: f32[n, m]) {\n"
                    "  y = (gelu(dot(x, w) + broadcast<1>(b)) * 0.5 + r) * broadcast<0>(s)\n}"));
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0].kind, StepGroup::Kind::kRows);
  EXPECT_EQ(plan::NumSteps(plan, plan.groups[0]), 2);
  EXPECT_EQ(plan.buffers.back().kind, runtime::Buffer::Kind::kTemporary);
  EXPECT_EQ(plan.buffers[static_cast<std::size_t>(plan.buffers.back().place)].name, "y");
}

TEST(Rows, WorkAcrossRowsStaysApart) {
  const plan::Plan plan =
      Lower(*Parsed("kernel k(x: f32[n, k], w: f32[k, m]) -> (y: f32[m]) {\n  y = sum_rows(exp(dot(x, w)))\n}"));
  const auto groups = Groups(plan, StepGroup::Kind::kRows);
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(plan::NumSteps(plan, *groups[0]), 1);
  EXPECT_EQ(plan.groups.size(), 2u);
}

// w depends on all rows of what the first kernel makes, and the product needs both.
TEST(Rows, NothingRunsBeforeWhatItNeeds) {
  ExpectAgreement(
      "kernel k(x: f32[n, n]) -> (y: f32[n, n]) {\n"
      "  z = exp(x) * 0.1\n  c = sum_rows(z)\n  y = dot(z, z.T * broadcast<1>(c)) + z\n}",
      {{19, 19}}, 1e-4);
}

TEST(Rows, AgreeWithTheInterpreter) {
  for (const index_t n : {1, 5, 40})
    for (const index_t m : {1, 17, 33}) {
      ExpectAgreement(
          "kernel k(x: f32[n, k], w: f32[k, m], b: f32[m], r: f32[n, m], s: f32[n]) -> (y: f32[n, m]) {\n"
          "  y = (gelu(dot(x, w) + broadcast<1>(b)) * 0.5 + r) * broadcast<0>(s)\n}",
          {{n, 7}, {7, m}, {m}, {n, m}, {n}}, 1e-5);
      ExpectAgreement(
          "kernel k(x: f32[n, k], g: f32[k], w: f32[k, m], w2: f32[m, k], r: f32[n, k]) -> (y: f32[n, k], s: f32[n], h: f32[n, m]) {\n"
          "  z = x * broadcast<1>(g) / broadcast<0>(1 + reduce_with_axis<sum>(x * x, 1))\n"
          "  h = tanh(dot(z, w))\n  y = dot(h, w2) + r\n  s = reduce_with_axis<sum>(y, 1)\n}",
          {{n, 7}, {7}, {7, m}, {m, 7}, {n, 7}}, 1e-5);
      ExpectAgreement(
          "kernel k(q: f32[h, n, d], k: f32[h, m, d], v: f32[h, m, d]) -> (y: f32[h, n, d]) {\n"
          "  p = exp(batch_dot(q, transpose<0, 2, 1>(k)))\n"
          "  y = batch_dot(p / broadcast<0>(reduce_with_axis<sum>(p, 2)), v)\n}",
          {{n, 6, 5}, {n, m, 5}, {n, m, 5}}, 1e-5);
      ExpectAgreement("kernel k(x: f32[k, n], w: f32[m, k]) -> (y: f32[n, m]) {\n  y = relu(dot(x.T, w.T))\n}",
                      {{7, n}, {m, 7}}, 1e-5);
    }
}

// Vectors and matrices of one row or column, each way they may lie; the result held a NaN.
TEST(Products, WithVectors) {
  for (const index_t n : {1, 6})
    for (const index_t m : {1, 9})
      for (const auto& [body, x, w] :
           {std::tuple("dot(x, w)", std::vector<index_t>{n, 7}, std::vector<index_t>{7, m}),
            std::tuple("dot(x.T, w)", std::vector<index_t>{7, n}, std::vector<index_t>{7, m}),
            std::tuple("dot(x, w.T)", std::vector<index_t>{n, 7}, std::vector<index_t>{m, 7}),
            std::tuple("dot(x.T, w.T)", std::vector<index_t>{7, n}, std::vector<index_t>{m, 7})})
        ExpectAgreement(std::string("kernel k(x: f32[?, ?], w: f32[?, ?]) -> (y: f32[?, ?]) {\n  y = ") + body + "\n}",
                        {x, w}, 1e-5);
  ExpectAgreement("kernel k(x: f32[k], w: f32[k, m]) -> (y: f32[m]) {\n  y = relu(dot(x, w))\n}", {{7}, {7, 9}}, 1e-5);
  const float x[] = {1, 2}, w[] = {3, 4};
  float c = NAN;
  umbra_gemm_f32(0, 0, 1, 1, 2, 1, x, 2, w, 1, 0, &c, 1);
  EXPECT_EQ(c, 11);
  umbra_gemm_f32(0, 0, 1, 1, 2, 1, x, 2, w, 1, 2, &c, 1);
  EXPECT_EQ(c, 33);
}

// Small matrices in a batch are generated: one kernel, no product to call BLAS for.
TEST(Products, BatchesOfSmallMatrices) {
  for (const index_t m : {1, 3, 12}) {
    const auto type = [](const std::vector<index_t>& shape) {
      return ": f32[b, " + std::to_string(shape[1]) + ", " + std::to_string(shape[2]) + "]";
    };
    using Shape = std::vector<index_t>;
    for (const auto& [body, x, w] :
         {std::tuple("batch_dot(x, w)", Shape{37, m, 4}, Shape{37, 4, 5}),
          std::tuple("batch_dot(transpose<0, 2, 1>(x), w)", Shape{37, 4, m}, Shape{37, 4, 5}),
          std::tuple("0.5 * batch_dot(x, transpose<0, 2, 1>(w))", Shape{37, m, 4}, Shape{37, 5, 4})}) {
      const Shape r = {37, m, 5};
      const std::string text = "kernel k(x" + type(x) + ", w" + type(w) + ", r" + type(r) + ") -> (y" + type(r) +
                               ") {\n  y = relu(" + body + " + r)\n}";
      const plan::Plan plan = Lower(*Parsed(text));
      ASSERT_EQ(plan.steps.size(), 1u);
      EXPECT_TRUE(std::holds_alternative<plan::Kernel>(plan.steps[0]));
      ExpectAgreement(text, {x, w, r}, 1e-5);
    }
  }
}

// Many blocks of rows and a last one that is shorter; the result has a pitch, and may be an operand.
TEST(Rows, InBlocks) {
  constexpr index_t kRows = 60013, kInner = 5, kColumns = 24, kPitch = 29;
  const Function function =
      Compile(Parsed("kernel k(x: f32[n, k], w: f32[k, m], r: f32[n, m]) -> (y: f32[n, m], s: f32[n]) {\n"
                     "  y = relu(dot(x * 2, w)) + r\n  s = reduce_with_axis<sum>(y, 1)\n}"));
  const Tensor x({kRows, kInner}, 1), w({kInner, kColumns}, 2);
  for (const bool in_place : {false, true})
    for (const int threads : {1, 2}) {
      const Tensor r({kRows, kPitch}, 3), own({kRows, kPitch}), s({kRows});
      TensorRef in = r.ref, out = in_place ? r.ref : own.ref;
      in.shape[1] = out.shape[1] = kColumns;
      const std::vector<float> before = r.values;
      function({{x.ref, w.ref, in}, {out, s.ref}, {}}, {threads});
      const auto* y = static_cast<const float*>(out.data);
      for (index_t i = 0; i < kRows; ++i) {
        double total = 0;
        for (index_t j = 0; j < kColumns; ++j) {
          double sum = 0;
          for (index_t k = 0; k < kInner; ++k)
            sum += 2.0 * x.values[static_cast<std::size_t>(i * kInner + k)] *
                   w.values[static_cast<std::size_t>(k * kColumns + j)];
          const double want = std::max(sum, 0.0) + before[static_cast<std::size_t>(i * kPitch + j)];
          ASSERT_NEAR(y[i * kPitch + j], want, 1e-5) << "row " << i << ", column " << j << ", in place " << in_place;
          total += want;
        }
        ASSERT_NEAR(s.values[static_cast<std::size_t>(i)], total, 1e-4) << "row " << i;
      }
    }
}

// What layers of unlike widths hand on for a block of rows, while another thread is at another step of another block.
TEST(Rows, ThreadsHaveTemporariesOfTheirOwn) {
  constexpr index_t kRows = 4096;
  const Function function = Compile(Parsed(
      "kernel k(x: f32[n, 16], v: f32[16, 64], w: f32[64, 256], t: f32[256, 16], u: f32[16, 512]) -> (y: f32[n, 512]) {\n"
      "  a = exp2(-abs(dot(x, v)))\n  b = exp2(-abs(dot(a, w)))\n  c = exp2(-abs(dot(b, t)))\n  y = exp2(-abs(dot(c, u)))\n}"));
  const Tensor x({kRows, 16}, 1), v({16, 64}, 2), w({64, 256}, 3), t({256, 16}, 4), u({16, 512}, 5), one({kRows, 512}),
      several({kRows, 512});
  function({{x.ref, v.ref, w.ref, t.ref, u.ref}, {one.ref}, {}}, {1});
  for (const int threads : {2, 3, 4})
    for (int run = 0; run < 10; ++run) {
      function({{x.ref, v.ref, w.ref, t.ref, u.ref}, {several.ref}, {}}, {threads});
      for (std::size_t k = 0; k < one.values.size(); ++k)
        ASSERT_NEAR(several.values[k], one.values[k], 1e-5) << threads << " threads, run " << run << ", element " << k;
    }
}

// The destination is the matrix of weights: no row may be stored before all products are done.
TEST(Rows, InTheMemoryOfTheWeights) {
  constexpr index_t kSize = 700;
  const Function function =
      Compile(Parsed("kernel k(x: f32[n, n], w: f32[n, n]) -> (y: f32[n, n]) {\n  y = relu(dot(x, w))\n}"));
  const Tensor x({kSize, kSize}, 1), w({kSize, kSize}, 2), y({kSize, kSize});
  function({{x.ref, w.ref}, {y.ref}, {}});
  function({{x.ref, w.ref}, {w.ref}, {}});
  for (std::size_t k = 0; k < y.values.size(); ++k)
    ASSERT_NEAR(w.values[k], y.values[k], 1e-3) << "sums may be in another order";
}

// The update of many tensors: one group, few kernels to compile, each tensor its own size and rank.
std::string Update(int tensors) {
  std::string inputs, outputs, body;
  for (int k = 0; k < tensors; ++k) {
    const std::string id = std::to_string(k), n = std::to_string(1 + k * 37 % 91);
    const std::string type = ": f32[" + (k % 3 == 0 ? n : k % 3 == 1 ? "3, " + n : "2, 3, 2, " + n) + "]";
    for (const char* name : {"p", "m", "g"}) inputs += name + id + type + ", ";
    for (const char* name : {"np", "nm"}) outputs += (outputs.empty() ? "" : ", ") + (name + id) + type;
    body += "  nm" + id + " = mu * m" + id + " + g" + id + "\n  np" + id + " = p" + id + " - rate * nm" + id + "\n";
  }
  return "kernel update(" + inputs + "mu: f32, rate: f32) -> (" + outputs + ") {\n" + body + "}";
}

TEST(SideBySide, TheUpdateOf200TensorsIsOneLaunch) {
  const auto graph = Parsed(Update(200));
  const plan::Plan plan = Lower(*graph);
  EXPECT_EQ(plan.steps.size(), 200u);
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0].kind, StepGroup::Kind::kIndependent);

  CompileOptions options;
  options.use_disk_cache = false;
  const int before = GetCompileStatistics().compiled;
  const Function function = Compile(graph, options);
  EXPECT_LE(GetCompileStatistics().compiled - before, 3);

  std::vector<std::unique_ptr<Tensor>> tensors;
  umbra_scalar mu, rate;
  mu.f32 = 0.5f;
  rate.f32 = 0.25f;
  for (const bool in_place : {false, true})
    for (const int threads : {1, 2, 3}) {
      Arguments arguments{{}, {}, {mu, rate}};
      for (int k = 0; k < 600; ++k) {
        std::vector<index_t> shape;
        for (const auto& extent : function.program().buffers[static_cast<std::size_t>(k)].shape)
          shape.push_back(extent.value);
        tensors.push_back(std::make_unique<Tensor>(shape, static_cast<unsigned>(k + 1)));
        arguments.inputs.push_back(tensors.back()->ref);
        if (k % 3 == 2) continue;
        if (!in_place) tensors.push_back(std::make_unique<Tensor>(shape));
        arguments.outputs.push_back(tensors.back()->ref);
      }
      std::vector<std::vector<float>> expected;
      for (std::size_t k = 0; k < 600; k += 3) {
        const auto* p = static_cast<const float*>(arguments.inputs[k].data);
        const auto* m = static_cast<const float*>(arguments.inputs[k + 1].data);
        const auto* g = static_cast<const float*>(arguments.inputs[k + 2].data);
        index_t count = 1;
        for (const index_t extent : arguments.inputs[k].shape) count *= extent;
        std::vector<float> np, nm;
        for (index_t i = 0; i < count; ++i) {
          nm.push_back(0.5f * m[i] + g[i]);
          np.push_back(p[i] - 0.25f * nm.back());
        }
        expected.push_back(np);
        expected.push_back(nm);
      }
      function(arguments, {threads});
      for (std::size_t k = 0; k < expected.size(); ++k)
        for (std::size_t i = 0; i < expected[k].size(); ++i)
          ASSERT_EQ(static_cast<const float*>(arguments.outputs[k].data)[i], expected[k][i])
              << "output " << k << ", element " << i << ", " << threads << " threads";
    }
}

// a is written where b is read, by kernels that do not need each other: they run in their order.
TEST(SideBySide, NotWhereTheyShareMemory) {
  const Function function =
      Compile(Parsed("kernel k(a: f32[n], b: f32[m]) -> (x: f32[m], y: f32[n]) {\n  x = b + 1\n  y = a * 2\n}"));
  constexpr index_t kSize = 300000;
  const Tensor a({kSize}, 1), b({kSize}, 2), x({kSize});
  const std::vector<float> before = b.values;
  function({{a.ref, b.ref}, {x.ref, b.ref}, {}}, {2});
  for (std::size_t i = 0; i < before.size(); ++i) {
    ASSERT_EQ(x.values[i], before[i] + 1);
    ASSERT_EQ(b.values[i], a.values[i] * 2);
  }
}

// Levels: c and d may run together, e needs both.
TEST(SideBySide, OnlyWhatIsReady) {
  const std::string text =
      "kernel k(a: f32[n, 5], b: f32[m, 4]) -> (e: f32[n], f: f32[m]) {\n"
      "  c = sum_rows(a)\n  d = sum_rows(b)\n"
      "  e = reduce_with_axis<sum>(a * broadcast<1>(c), 1)\n  f = reduce_with_axis<sum>(b * broadcast<1>(d), 1)\n}";
  const plan::Plan plan = Lower(*Parsed(text));
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[0].end - plan.groups[0].begin, 2);
  EXPECT_EQ(plan.groups[1].end - plan.groups[1].begin, 2);
  ExpectAgreement(text, {{7, 5}, {9, 4}}, 1e-5);
}

// Each kernel stays within what can be compiled, and nothing is computed twice for it.
TEST(Budget, ASumOf500Inputs) {
  std::string inputs, sum;
  std::vector<std::vector<index_t>> shapes;
  for (int k = 0; k < 500; ++k) {
    inputs += (k > 0 ? ", " : "") + ("x" + std::to_string(k)) + ": f32[n]";
    sum += (k > 0 ? " + " : "") + ("x" + std::to_string(k));
    shapes.push_back({33});
  }
  const std::string text = "kernel k(" + inputs + ") -> (y: f32[n]) {\n  y = " + sum + "\n}";
  for (const auto& step : Lower(*Parsed(text)).steps)
    EXPECT_LE(std::get<plan::Kernel>(step).signature.operands.size(), 66u);
  ExpectAgreement(text, shapes, 1e-5);
}

TEST(Budget, AChainOf5000Operations) {
  std::string body = "  v0 = x\n";
  for (int k = 0; k < 5000; ++k)
    body += "  v" + std::to_string(k + 1) + " = v" + std::to_string(k) + (k % 2 == 0 ? " * 0.75" : " + x") + "\n";
  const std::string text = "kernel k(x: f32[n]) -> (y: f32[n]) {\n" + body + "  y = v5000\n}";
  const plan::Plan plan = Lower(*Parsed(text));
  EXPECT_GE(plan.steps.size(), 5u);
  EXPECT_LE(plan.steps.size(), 6u);
  ExpectAgreement(text, {{37}}, 1e-5);
}

// Of a value that is alike along a dimension, before one that is dear.
TEST(Budget, AChainOf20000Operations) {
  std::string body = "  v0 = broadcast<0>(x, z)\n";
  for (int k = 0; k < 20000; ++k) body += "  v" + std::to_string(k + 1) + " = v" + std::to_string(k) + " * 0.75 + 1\n";
  const std::string text =
      "kernel k(x: f32[n], z: f32[n, 4]) -> (y: f32[n, 4]) {\n" + body + "  y = exp(v20000) + z\n}";
  EXPECT_GE(Lower(*Parsed(text)).steps.size(), 20u);
}

TEST(Budget, SixtyFourOutputs) {
  std::string outputs, body;
  for (int k = 0; k < 64; ++k) {
    const std::string id = std::to_string(k);
    outputs += (k > 0 ? ", y" : "y") + id + ": f32[n]";
    body += "  y" + id + " = x * " + id + " + " + (k > 0 ? "y" + std::to_string(k - 1) : "x") + "\n";
  }
  const std::string text = "kernel k(x: f32[n]) -> (" + outputs + ") {\n" + body + "}";
  const plan::Plan plan = Lower(*Parsed(text));
  EXPECT_GE(plan.steps.size(), 4u);
  EXPECT_LE(plan.steps.size(), 8u);
  for (const auto& step : plan.steps) EXPECT_LE(std::get<plan::Kernel>(step).signature.operands.size(), 66u);
  ExpectAgreement(text, {{37}}, 1e-5);
}

// In two passes over a row, also where threads share it, the error of the variance is some u (1 + |mean| / deviation):
// squares are of what differs from the mean (docs/numerics.md).
TEST(Fusion, VarianceOfALargeMean) {
  const auto function = Compile(Parsed(
      "kernel k(x: f32[n, m]) -> (mean: f32[n], variance: f32[n]) {\n"
      "  mean = reduce_with_axis<sum>(x, 1) / tcast<f32>(extent<1>(x))\n"
      "  variance = reduce_with_axis<sum>((x - broadcast<0>(mean)) * (x - broadcast<0>(mean)), 1) / tcast<f32>(extent<1>(x))\n}"));
  for (const index_t columns : {1000, 300000})
    for (const int threads : {1, 3}) {
      Tensor x({3, columns}, 5), mean({3}), variance({3});
      for (float& value : x.values) value = 3000 + value;  // s is 0.58
      function({{x.ref}, {mean.ref, variance.ref}, {}}, {threads});
      for (index_t row = 0; row < 3; ++row) {
        double sum = 0, squares = 0;
        for (index_t k = 0; k < columns; ++k) sum += x.values[static_cast<std::size_t>(row * columns + k)];
        const double center = sum / static_cast<double>(columns);
        for (index_t k = 0; k < columns; ++k)
          squares += std::pow(x.values[static_cast<std::size_t>(row * columns + k)] - center, 2);
        const double exact = squares / static_cast<double>(columns), u = std::ldexp(1, -24);
        EXPECT_NEAR(mean.values[static_cast<std::size_t>(row)], center, 4 * u * center);
        EXPECT_NEAR(variance.values[static_cast<std::size_t>(row)], exact,
                    4 * u * (1 + center / std::sqrt(exact)) * exact);
      }
    }
}

// Groups of rows never need each other: of t2 and t3 and their readers, some would have to run before others of their
// own group.
TEST(Fusion, GroupsDoNotNeedEachOther) {
  ExpectAgreement(
      "kernel k(a: f32[n, n], b: f32[n, n], d: f32[n, n]) -> (y: f32[n, n], z: f32[n, n]) {\n"
      "  t0 = 0.1 * dot(b, d)\n  t1 = 0.1 * dot(b, b)\n  t2 = 0.1 * dot(t1, t0)\n  t3 = 0.1 * dot(t1, t2)\n  t4 = dot(t3, t0.T)\n"
      "  t5 = 0.1 * dot(t0, t1)\n  t6 = 2 * t5 + 0.5\n  y = t6 + a\n  z = t3 + a\n}",
      {{20, 20}, {20, 20}, {20, 20}}, 1e-5);
  std::mt19937 random(4);
  for (int round = 0; round < 20; ++round) {
    std::string text = "kernel k(t0: f32[n, n], t1: f32[n, n], t2: f32[n, n]) -> (y: f32[n, n], z: f32[n, n]) {\n";
    int count = 3;
    const auto any = [&] { return "t" + std::to_string(random() % static_cast<unsigned>(count)); };
    for (const int last = 6 + static_cast<int>(random() % 5); count < last; ++count) {
      const unsigned kind = random() % 6;
      const std::string a = any(), b = any();
      text += "  t" + std::to_string(count) + " = " +
              (kind < 3    ? "0.1 * dot(" + a + ", " + b + ")"
               : kind == 3 ? "0.1 * dot(" + a + ", " + b + ".T)"
               : kind == 4 ? "0.5 * " + a + " + 0.25"
                           : "0.5 * (" + a + " - " + b + ")") +
              "\n";
    }
    text += "  y = t" + std::to_string(count - 1) + " + 0\n  z = t" + std::to_string(count - 2) + " + 0\n}";
    ExpectAgreement(text, {{20, 20}, {20, 20}, {20, 20}}, 1e-5);
  }
}

}  // namespace
}  // namespace umbra

// Products of matrices on a GPU that do what follows them: which epilogue of cuBLASLt is asked for, that no kernel is
// launched then, and that results are the interpreter's with it and without it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/driver/lower.h"
#include "compiler/graph/graph.h"
#include "compiler/plan/build.h"
#include "runtime/program_text.h"
#include "tests/support/cublas_stand_in.h"
#include "tests/support/cuda_stand_in.h"
#include "tests/support/drawn.h"
#include "tests/support/on_gpu.h"
#include "tests/support/testing.h"
#include "tests/unit/cuda_epilogue_common.h"
#include "umbra/jit.h"

namespace umbra {
namespace {

TEST_F(CudaEpilogue, EachIsOneProduct) {
  const struct {
    const char* y;
    std::uint32_t epilogue;
    Math math;
  } kCases[] = {
      {"dot(x, w) + broadcast<1>(b)", kBias, Math::kStrict},
      {"broadcast<1>(b) + dot(x, w)", kBias, Math::kStrict},
      {"dot(x, w) * 0.5 + broadcast<1>(b)", kBias, Math::kStrict},
      {"dot(x, w) + broadcast<1>(b) > 0 ? dot(x, w) + broadcast<1>(b) : 0", kBiasRelu, Math::kStrict},
      {"relu(dot(x, w) + broadcast<1>(b))", kBiasRelu, Math::kFast},
      {"maximum(0, broadcast<1>(b) + 2 * dot(x, w))", kBiasRelu, Math::kFast},
      {"gelu(dot(x, w) + broadcast<1>(b))", kBiasGelu, Math::kFast},
      {"gelu(-0.25 * dot(x, w) + broadcast<1>(b))", kBiasGelu, Math::kFast},
  };
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    const double tolerance = dtype == "f32" ? 1e-5 : dtype == "f16" ? 4e-3 : 3e-2;
    for (const auto& c : kCases) {
      ExpectWhole(c.epilogue, Kernel(c.y, dtype), {{{7, 13}, 3}, {{13, 5}}, {{5}}}, c.math, tolerance);
      ExpectWhole(c.epilogue, Kernel(c.y, dtype), {{{33, 16}}, {{16, 70}, 2}, {{70}}}, c.math, tolerance);
      ExpectWhole(c.epilogue, Kernel(c.y, dtype), {{{1, 9}}, {{9, 1}}, {{1}}}, c.math, tolerance);
    }
  }
}

TEST_F(CudaEpilogue, WithoutABias) {
  const auto kernel = [](const std::string& y) {
    return "kernel e(x: f32[n, k], w: f32[k, m], s: f32) -> (y: f32[n, m]) { y = " + y + " }";
  };
  const std::vector<Operand> operands = {{{9, 20}}, {{20, 11}}};
  ExpectWhole(kPlain, kernel("dot(x, w) * 0.125"), operands);
  ExpectWhole(kPlain, kernel("s * dot(x, w)"), operands);
  ExpectWhole(kRelu, kernel("dot(x, w) > 0 ? dot(x, w) : 0"), operands);
  ExpectWhole(kRelu, kernel("relu(dot(x, w) * s)"), operands, Math::kFast);
  ExpectWhole(kGelu, kernel("gelu(s * dot(x, w))"), operands, Math::kFast);
}

TEST_F(CudaEpilogue, TransposedFactorsAndBatches) {
  const std::string bias = " + broadcast<1>(b)";
  ExpectWhole(kBias, Kernel("dot(x.T, w)" + bias, "f32", "[k, n] [k, m] [m] [n, m]"), {{{6, 9}, 1}, {{6, 4}}, {{4}}});
  ExpectWhole(kBias, Kernel("dot(x, w.T)" + bias, "f32", "[n, k] [m, k] [m] [n, m]"), {{{9, 6}, 1}, {{4, 6}}, {{4}}});
  ExpectWhole(kBiasRelu, Kernel("relu(dot(x.T, w.T)" + bias + ")", "f32", "[k, n] [m, k] [m] [n, m]"),
              {{{6, 9}}, {{4, 6}, 2}, {{4}}}, Math::kFast);
  for (const std::string dtype : {"f32", "bf16"}) {
    const double tolerance = dtype == "f32" ? 1e-5 : 3e-2;
    ExpectWhole(kBias, Kernel("batch_dot(x, w) + broadcast<2>(b)", dtype, "[t, n, k] [t, k, m] [m] [t, n, m]"),
                {{{3, 15, 16}}, {{3, 16, 17}}, {{17}}}, Math::kStrict, tolerance);
    ExpectWhole(kBiasGelu,
                Kernel("gelu(batch_dot(x, w) + broadcast<2>(b))", dtype, "[t, n, k] [t, k, m] [m] [t, n, m]"),
                {{{2, 15, 16}, 1}, {{2, 16, 17}}, {{17}}}, Math::kFast, tolerance);
  }
}

TEST_F(CudaEpilogue, DrawnShapes) {
  const auto pick = [this](int most) { return std::uniform_int_distribution<int>(1, most)(random_); };
  const auto turned = [](index_t rows, index_t columns, bool is) {
    return is ? std::vector<index_t>{columns, rows} : std::vector<index_t>{rows, columns};
  };
  const struct {
    const char *before, *after;
    std::uint32_t strict, fast;
  } kCases[] = {{"", "", kBias, kBias}, {"relu(", ")", kPlain, kBiasRelu}, {"gelu(", ")", kPlain, kBiasGelu}};
  for (int round = 0; round < 24; ++round) {
    const auto& c = kCases[round % 3];
    const Math math = round % 2 == 0 ? Math::kStrict : Math::kFast;
    const std::string dtype = std::vector<std::string>{"f32", "f16", "bf16"}[static_cast<std::size_t>(round / 3 % 3)];
    const double tolerance = dtype == "f32" ? 1e-4 : dtype == "f16" ? 1e-2 : 5e-2;
    const bool left = pick(2) == 1, right = pick(2) == 1;
    const index_t n = pick(40), k = pick(40), m = pick(40);
    const std::string y = std::string(c.before) + "dot(x" + (left ? ".T" : "") + ", w" + (right ? ".T" : "") +
                          ") + broadcast<1>(b)" + c.after;
    const Asked asked =
        Check(Kernel(y, dtype, "[?, ?] [?, ?] [?] [?, ?]"),
              {{turned(n, k, left), pick(4) - 1}, {turned(k, m, right), pick(4) - 1}, {{m}}}, math, tolerance);
    const bool behind =
        math == Math::kStrict && c.before == std::string("relu(") && dtype != "f32";  // relu of the rounded sum
    const std::uint32_t expected = behind ? kBias : math == Math::kStrict ? c.strict : c.fast;
    EXPECT_EQ(asked.epilogues, std::vector<std::uint32_t>{expected}) << y;
    EXPECT_EQ(asked.kernels, expected == kPlain || behind ? 1 : 0) << y;
  }
}

// A product of two layers hands its result to the next; nothing lies between them.
TEST_F(CudaEpilogue, LayerByLayer) {
  const std::string text =
      "kernel e(x: f32[n, k], w: f32[k, m], v: f32[m, p], c: f32[m], b: f32[p]) -> (y: f32[n, p]) {\n"
      "  h = dot(x, w) + broadcast<1>(c)\n  g = h > 0 ? h : 0\n  y = dot(g, v) + broadcast<1>(b)\n}";
  const Asked asked = Check(text, {{{20, 9}}, {{9, 30}}, {{30, 12}}, {{30}}, {{12}}}, Math::kStrict, 1e-4);
  EXPECT_EQ(asked.epilogues, (std::vector<std::uint32_t>{kBiasRelu, kBias}));
  EXPECT_EQ(asked.kernels, 0);
}

// Strict math has what is written: relu keeps NaN, which cuBLASLt's does not, and gelu is the prelude's.
TEST_F(CudaEpilogue, StrictMathKeepsWhatIsWritten) {
  for (const char* y : {"relu(dot(x, w) + broadcast<1>(b))", "gelu(dot(x, w) + broadcast<1>(b))"})
    ExpectApart(Kernel(y), {{{7, 13}}, {{13, 5}}, {{5}}});
  Stream<gpu> stream;
  TensorContainer<gpu, 2> x(Shape2(4, 4), std::numeric_limits<float>::quiet_NaN()), y(Shape2(4, 4), 7.0f);
  TensorContainer<gpu, 1> b(Shape1(4), 1.0f);
  TensorContainer<cpu, 2> back(Shape2(4, 4));
  const auto first = [&] {
    jit(y) = F<op::relu>(dot(x, x) + broadcast<1>(b, y.shape_));
    Copy<2, float>(back, y);
    return back[0][0];
  };
  EXPECT_TRUE(std::isnan(first()));
  jit::SetOptions(Options(Math::kFast));
  EXPECT_EQ(first(), 0);
}

// relu of a number of 16 bits is that of the number before it was rounded, so the product rounds, and a kernel follows.
TEST_F(CudaEpilogue, ReluBehindRoundedProducts) {
  for (const std::string dtype : {"f16", "bf16"}) {
    const double tolerance = dtype == "f16" ? 4e-3 : 3e-2;
    for (const char* y : {"relu(dot(x, w) + broadcast<1>(b))", "maximum(0, 0.5 * dot(x, w) + broadcast<1>(b))"}) {
      const Asked asked = Check(Kernel(y, dtype), {{{7, 13}, 3}, {{13, 6}}, {{6}}}, Math::kStrict, tolerance);
      EXPECT_EQ(asked.epilogues, std::vector<std::uint32_t>{kBias}) << y;
      EXPECT_EQ(asked.kernels, 1) << y;
      // With an odd bias the kernel does all of it, and nothing is behind it.
      ExpectApart(Kernel(y, dtype), {{{7, 13}}, {{13, 5}}, {{5}, 0, 1}}, Math::kStrict, 1, tolerance);
    }
    const Asked batch =
        Check(Kernel("relu(batch_dot(x, w) + broadcast<2>(b))", dtype, "[t, n, k] [t, k, m] [m] [t, n, m]"),
              {{{3, 5, 8}}, {{3, 8, 9}}, {{9}}}, Math::kStrict, tolerance);
    EXPECT_EQ(batch.epilogues, std::vector<std::uint32_t>{kBias});
    EXPECT_EQ(batch.kernels, 1);
    // Two layers, the second of which reads what the kernel behind the first made.
    const Asked layers =
        Check("kernel e(x: " + dtype + "[n, k], w: " + dtype + "[k, m], v: " + dtype + "[m, p], c: " + dtype +
                  "[m], b: " + dtype + "[p]) -> (y: " + dtype + "[n, p]) {\n  h = tcast<" + dtype +
                  ">(relu(dot(x, w) + broadcast<1>(c)))\n  y = relu(dot(h, v) + broadcast<1>(b))\n}",
              {{{20, 9}}, {{9, 30}}, {{30, 12}}, {{30}}, {{12}}}, Math::kStrict, 4 * tolerance);
    EXPECT_EQ(layers.epilogues, (std::vector<std::uint32_t>{kBias, kBias}));
    EXPECT_EQ(layers.kernels, 2);
  }
  Stream<gpu> stream;
  TensorContainer<gpu, 2, half_t> x(Shape2(4, 4), half_t(std::numeric_limits<float>::quiet_NaN())),
      y(Shape2(4, 4), half_t(7.0f));
  jit(y) = F<op::relu>(dot(x, x));
  TensorContainer<cpu, 2, half_t> back(Shape2(4, 4));
  Copy<2, half_t>(back, y);
  EXPECT_TRUE(std::isnan(static_cast<float>(back[0][0])));
}

// A product whose result is larger than the cache, and the kernel behind it, go by pieces of rows.
TEST_F(CudaEpilogue, Pieces) {
  const std::vector<std::uint32_t> plain(3, kPlain);
  const auto expect = [&](const std::string& text, const std::vector<Operand>& inputs,
                          const std::vector<std::uint32_t>& epilogues, double tolerance) {
    const Asked asked = Check(text, inputs, Math::kStrict, tolerance);
    EXPECT_EQ(asked.epilogues, epilogues) << text;
    EXPECT_EQ(asked.kernels, static_cast<int>(epilogues.size())) << text;
    EXPECT_TRUE(asked.biased) << text;
  };
  const std::string y = "tanh(dot(x, w) + broadcast<1>(b))";
  expect(Kernel(y), {{{700, 9}, 3}, {{9, 40}}, {{40}}}, plain, 1e-4);
  expect(Kernel("tanh(dot(x.T, w.T)) + broadcast<1>(b)", "f32", "[k, n] [m, k] [m] [n, m]"),
         {{{9, 700}}, {{41, 9}, 2}, {{41}}}, plain, 1e-4);
  expect(
      "kernel e(x: f32[n, k], w: f32[k, m], r: f32[n, m], s: f32[n], b: f32[m]) -> (y: f32[n, m], z: f32[n, m]) {\n"
      "  p = dot(x, w)\n  y = tanh(p) + r * broadcast<0>(s)\n  z = p * broadcast<1>(b)\n}",
      {{{700, 9}}, {{9, 40}}, {{700, 40}, 5}, {{700}}, {{40}}}, plain, 1e-4);
  // With extents that are known, of 16 bits, and where the product adds the bias.
  expect(Kernel(y, "f32", "[700, 9] [9, 40] [40] [700, 40]"), {{{700, 9}}, {{9, 40}}, {{40}}}, plain, 1e-4);
  expect(Kernel("relu(dot(x, w) + broadcast<1>(b))", "bf16"), {{{700, 9}}, {{9, 64}}, {{64}}},
         std::vector<std::uint32_t>(3, kBias), 3e-2);
  // Across the rows, and in batches, it is one piece.
  ExpectApart(Kernel("tanh(dot(x, w)).T + broadcast<1>(b)", "f32", "[n, k] [k, m] [n] [m, n]"),
              {{{700, 9}}, {{9, 40}}, {{700}}}, Math::kStrict, 1, 1e-4);
  ExpectApart(Kernel("tanh(batch_dot(x, w)) + broadcast<2>(b)", "f32", "[t, n, k] [t, k, m] [m] [t, n, m]"),
              {{{2, 700, 4}}, {{2, 4, 20}}, {{20}}}, Math::kStrict, 1, 1e-4);
}

// What only looks like an epilogue.
TEST_F(CudaEpilogue, OtherKernelsStay) {
  const std::vector<Operand> operands = {{{5, 8}}, {{8, 5}}, {{5}}};
  for (const char* y :
       {"dot(x, w) - broadcast<1>(b)", "dot(x, w) + broadcast<0>(b)", "gelu_erf(dot(x, w) + broadcast<1>(b))",
        "relu(dot(x, w)) + broadcast<1>(b)", "maximum(dot(x, w) + broadcast<1>(b), 1)",
        "(dot(x, w) + broadcast<1>(b)).T", "dot(x, w) + x * 0.5", "dot(x, w) >= 0 ? dot(x, w) : 0 * broadcast<1>(b)"})
    ExpectApart(Kernel(y, "f32",
                       std::string(y).find("x * 0.5") == std::string::npos ? "[n, k] [k, n] [n] [n, n]"
                                                                           : "[n, n] [n, n] [n] [n, n]"),
                std::string(y).find("x * 0.5") == std::string::npos ? operands
                                                                    : std::vector<Operand>{{{5, 5}}, {{5, 5}}, {{5}}},
                Math::kFast);
  // The result is rounded before the sum, or is wanted in two ways.
  ExpectApart(Kernel("tcast<f32>(tcast<bf16>(dot(x, w))) + broadcast<1>(b)", "bf16"), {{{5, 8}}, {{8, 6}}, {{6}}},
              Math::kFast, 1, 3e-2);
  const std::string both =
      "kernel e(x: f32[n, k], w: f32[k, m], b: f32[m]) -> (y: f32[n, m], z: f32[n, m]) {\n  p = dot(x, w)\n  y = p + broadcast<1>(b)\n  z = p\n}";
  ExpectApart(both, {{{5, 8}}, {{8, 6}}, {{6}}});
  const std::string twice =
      "kernel e(x: f32[n, k], w: f32[k, m], b: f32[m]) -> (y: f32[n, m], z: f32[n, m]) {\n  p = dot(x, w)\n  y = p + broadcast<1>(b)\n  z = y * 2\n}";
  ExpectApart(twice, {{{5, 8}}, {{8, 6}}, {{6}}});
  // A bias of another dtype.
  ExpectApart("kernel e(x: f16[n, k], w: f16[k, m], b: f32[m]) -> (y: f16[n, m]) { y = dot(x, w) + broadcast<1>(b) }",
              {{{5, 8}}, {{8, 6}}, {{6}}}, Math::kStrict, 1, 4e-3);
}

// Where cuBLASLt cannot, the plain product and the kernel run.
TEST_F(CudaEpilogue, FallsBack) {
  const std::string bias = Kernel("dot(x, w) + broadcast<1>(b)");
  const std::vector<Operand> operands = {{{7, 13}, 3}, {{13, 5}}, {{5}}};
  ExpectApart(bias, {{{7, 13}}, {{13, 5}}, {{5}, 0, 1}});  // a bias at an odd address
  ExpectApart(bias, {{{7, 13}}, {{13, 5}}, {{5}, 0, 0, 2}});  // of elements that are not side by side
  ExpectApart(Kernel("dot(x, w) + broadcast<1>(b)", "f64"), operands);
  const Asked nothing = Check(bias, {{{7, 0}}, {{0, 5}}, {{5}}});
  EXPECT_TRUE(nothing.epilogues.empty());
  EXPECT_EQ(nothing.kernels, 1);
  EXPECT_EQ(Check(bias, {{{0, 3}}, {{3, 5}}, {{5}}}).kernels, 0);
  ExpectWhole(kBias, bias, operands);
  for (const int status : {15, 7}) {  // not supported, and what a library says that does not know it
    stand_in::RefuseEpilogues(status);
    const std::vector<Operand> others = {{{7, status}, 3}, {{status, 5}}, {{5}}};  // for which nothing has been decided
    ExpectApart(Kernel("dot(x, w) + broadcast<1>(b)", "bf16"), others, Math::kStrict, 1, 3e-2);
    ExpectApart(Kernel("relu(dot(x, w) + broadcast<1>(b))", "bf16"), others, Math::kFast, 1, 3e-2);
  }
}

// Libraries made ahead of time carry it, as they are strict.
TEST_F(CudaEpilogue, TravelsAsText) {
  const auto graph = graph::ParseText(Kernel("0.5 * dot(x, w) + broadcast<1>(b)")).at(0);
  const runtime::Program program = plan::ToProgram(Lower(*graph, true));
  const runtime::Program again = runtime::ProgramFromText(runtime::ProgramToText(program));
  const auto& epilogue = std::get<runtime::GemmStep>(again.steps.at(0)).epilogue;
  EXPECT_EQ(epilogue.kind, cuda::Epilogue::kBias);
  EXPECT_EQ(epilogue.scale, 0.5);
  EXPECT_EQ(program.buffers.at(static_cast<std::size_t>(epilogue.bias)).name, "b");
  EXPECT_EQ(program.buffers.at(static_cast<std::size_t>(epilogue.result)).name, "y");
  EXPECT_EQ(epilogue.kernel, 1);
  EXPECT_EQ(std::get<runtime::GemmStep>(plan::ToProgram(Lower(*graph)).steps.at(0)).epilogue.kernel, -1);
  EXPECT_EQ(epilogue.behind, -1);
  const auto halves = graph::ParseText(Kernel("relu(dot(x, w) + broadcast<1>(b))", "bf16")).at(0);
  const runtime::Program behind =
      runtime::ProgramFromText(runtime::ProgramToText(plan::ToProgram(Lower(*halves, true))));
  EXPECT_EQ(std::get<runtime::GemmStep>(behind.steps.at(0)).epilogue.behind, 2);
  EXPECT_EQ(behind.groups.size(), 3u);
}

// A graph's name is anybody's, also that of one with a step behind.
TEST_F(CudaEpilogue, NamesOfAnyKind) {
  for (const char* name : {"a layer", "3x3", "relu-1"}) {
    graph::Builder builder(name);
    const auto x = builder.Input("x", DType::kBFloat16, {4, 8}), w = builder.Input("w", DType::kBFloat16, {8, 6});
    builder.Output("y", graph::Cast(relu(graph::Dot(x, w)), DType::kBFloat16));
    const plan::Plan plan = Lower(*builder.Build(), true);
    EXPECT_EQ(plan::StepName(plan, plan.steps.at(2)), std::string(name) + "_behind");
  }
}

}  // namespace
}  // namespace umbra

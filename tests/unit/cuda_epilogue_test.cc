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
#include "umbra/jit.h"

// mshadow's relu, which makes 0 of NaN as cuBLASLt's does.
UMBRA_OP(relu_of_numbers, (a), select(a > 0, a, 0))

namespace umbra {
namespace {

using Drawn = drawn::Tensor;

// A cache that holds the other tests' results, but not those of several pieces.
const int kChosen = on_gpu::UseStandIns() + setenv("STAND_IN_L2_BYTES", "80000", 1);

constexpr std::uint32_t kPlain = 1, kRelu = 2, kBias = 4, kBiasRelu = 6, kGelu = 32, kBiasGelu = 36;

class CudaEpilogue : public on_gpu::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(kChosen, 0);
    on_gpu::Test::SetUp();
    stand_in::TakeProducts();
  }
  void TearDown() override {
    stand_in::RefuseEpilogues(0);
    cuda::AllowTf32(false);
    jit::SetOptions({});
    on_gpu::Test::TearDown();
  }

  struct Operand {
    std::vector<index_t> extents;
    index_t padding = 0;
    index_t from = 0;  // the first element of a vector in memory
    index_t step = 1;  // elements of memory from one of a vector to the next
  };
  // What a call asked for.
  struct Asked {
    std::vector<std::uint32_t> epilogues;
    int kernels = 0;
    bool biased = true;  // do the products with a bias have the last input's?
  };
  static CompileOptions Options(Math math) {
    CompileOptions options = on_gpu::Options();
    options.math = math;
    return options;
  }

  // Runs a kernel on drawn operands, and compares with the interpreter's results.
  Asked Check(const std::string& text, const std::vector<Operand>& inputs, Math math = Math::kStrict, double tolerance = 1e-5) {
    const auto graph = graph::ParseText(text)[0];
    const Function function = Compile(graph, Options(math));
    CompileOptions interpreted;
    interpreted.engine = Engine::kInterpreter;
    const auto& buffers = function.program().buffers;
    runtime::Arguments host, device;
    std::vector<std::unique_ptr<Drawn>> operands, results;
    std::vector<std::unique_ptr<on_gpu::There>> there;
    const auto part = [](runtime::TensorRef ref, const Operand& operand) {
      if (operand.step == 1 && operand.from == 0) return ref;
      ref.data = static_cast<char*>(ref.data) + operand.from * static_cast<index_t>(SizeOf(ref.dtype));
      ref.shape = operand.extents;
      ref.stride = {operand.step};
      return ref;
    };
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      std::vector<index_t> extents = inputs[k].extents;
      if (extents.size() == 1) extents[0] = inputs[k].from + extents[0] * inputs[k].step;
      operands.push_back(std::make_unique<Drawn>(buffers[k].dtype, extents, inputs[k].padding, &random_));
      there.push_back(std::make_unique<on_gpu::There>(*operands.back()));
      host.inputs.push_back(part(operands.back()->ref, inputs[k]));
      device.inputs.push_back(part(there.back()->ref, inputs[k]));
    }
    for (std::size_t k = 0; k < function.program().scalars.size(); ++k) {
      umbra_scalar scalar{};
      scalar.f32 = 0.75f;
      host.scalars.push_back(scalar);
    }
    device.scalars = host.scalars;
    const auto shapes = runtime::OutputShapes(function.program(), device.inputs);
    for (std::size_t k = 0; k < shapes.size(); ++k)
      for (runtime::Arguments* arguments : {&host, &device}) {
        results.push_back(std::make_unique<Drawn>(buffers[inputs.size() + k].dtype, shapes[k], inputs[0].padding, nullptr));
        if (arguments == &device) there.push_back(std::make_unique<on_gpu::There>(*results.back()));
        arguments->outputs.push_back(arguments == &device ? there.back()->ref : results.back()->ref);
      }
    Compile(graph, interpreted)(host);
    Stream<gpu> stream;
    const int launches = stand_in::Calls("cuLaunchKernel");
    stand_in::TakeProducts();
    function(device, {0, stream.handle_});
    stream.Wait();
    Asked asked;
    asked.kernels = stand_in::Calls("cuLaunchKernel") - launches;
    for (const stand_in::Product& product : stand_in::TakeProducts()) {
      asked.epilogues.push_back(product.epilogue);
      if (product.bias != nullptr) asked.biased = asked.biased && product.bias == device.inputs.back().data;
    }
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      Drawn& got = *results[2 * k + 1];
      there[inputs.size() + k]->CopyBack(&got);
      ExpectSame(*results[2 * k], got, tolerance, text);
      for (index_t at = 0; at < 16; ++at) EXPECT_EQ(got.bytes[static_cast<std::size_t>(at)], 0x5a);
    }
    return asked;
  }
  // One product with this epilogue, and no kernel.
  void ExpectWhole(std::uint32_t epilogue, const std::string& text, const std::vector<Operand>& inputs, Math math = Math::kStrict,
                   double tolerance = 1e-5) {
    const Asked asked = Check(text, inputs, math, tolerance);
    EXPECT_EQ(asked.epilogues, std::vector<std::uint32_t>{epilogue}) << text;
    EXPECT_EQ(asked.kernels, 0) << text;
    EXPECT_TRUE(asked.biased) << text;
  }
  // A plain product, and `kernels` after it.
  void ExpectApart(const std::string& text, const std::vector<Operand>& inputs, Math math = Math::kStrict, int kernels = 1, double tolerance = 1e-5) {
    const Asked asked = Check(text, inputs, math, tolerance);
    EXPECT_EQ(asked.epilogues, std::vector<std::uint32_t>{kPlain}) << text;
    EXPECT_EQ(asked.kernels, kernels) << text;
  }

  static std::string Kernel(const std::string& y, const std::string& dtype = "f32", const std::string& shapes = "[n, k] [k, m] [m] [n, m]") {
    std::vector<std::string> shape(1);
    for (const char c : shapes) {
      shape.back() += c;
      if (c == ']') shape.emplace_back();
    }
    return "kernel e(x: " + dtype + shape[0] + ", w: " + dtype + shape[1] + ", b: " + dtype + shape[2] + ") -> (y: " + dtype + shape[3] + ") { y = " + y + " }";
  }

  std::mt19937 random_{20261122};
};

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
  const auto kernel = [](const std::string& y) { return "kernel e(x: f32[n, k], w: f32[k, m], s: f32) -> (y: f32[n, m]) { y = " + y + " }"; };
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
  ExpectWhole(kBiasRelu, Kernel("relu(dot(x.T, w.T)" + bias + ")", "f32", "[k, n] [m, k] [m] [n, m]"), {{{6, 9}}, {{4, 6}, 2}, {{4}}}, Math::kFast);
  for (const std::string dtype : {"f32", "bf16"}) {
    const double tolerance = dtype == "f32" ? 1e-5 : 3e-2;
    ExpectWhole(kBias, Kernel("batch_dot(x, w) + broadcast<2>(b)", dtype, "[t, n, k] [t, k, m] [m] [t, n, m]"), {{{3, 15, 16}}, {{3, 16, 17}}, {{17}}},
                Math::kStrict, tolerance);
    ExpectWhole(kBiasGelu, Kernel("gelu(batch_dot(x, w) + broadcast<2>(b))", dtype, "[t, n, k] [t, k, m] [m] [t, n, m]"),
                {{{2, 15, 16}, 1}, {{2, 16, 17}}, {{17}}}, Math::kFast, tolerance);
  }
}

TEST_F(CudaEpilogue, DrawnShapes) {
  const auto pick = [this](int most) { return std::uniform_int_distribution<int>(1, most)(random_); };
  const auto turned = [](index_t rows, index_t columns, bool is) { return is ? std::vector<index_t>{columns, rows} : std::vector<index_t>{rows, columns}; };
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
    const std::string y = std::string(c.before) + "dot(x" + (left ? ".T" : "") + ", w" + (right ? ".T" : "") + ") + broadcast<1>(b)" + c.after;
    const Asked asked = Check(Kernel(y, dtype, "[?, ?] [?, ?] [?] [?, ?]"), {{turned(n, k, left), pick(4) - 1}, {turned(k, m, right), pick(4) - 1}, {{m}}},
                              math, tolerance);
    const bool behind = math == Math::kStrict && c.before == std::string("relu(") && dtype != "f32";  // relu of the rounded sum
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
    const Asked batch = Check(Kernel("relu(batch_dot(x, w) + broadcast<2>(b))", dtype, "[t, n, k] [t, k, m] [m] [t, n, m]"), {{{3, 5, 8}}, {{3, 8, 9}}, {{9}}},
                              Math::kStrict, tolerance);
    EXPECT_EQ(batch.epilogues, std::vector<std::uint32_t>{kBias});
    EXPECT_EQ(batch.kernels, 1);
    // Two layers, the second of which reads what the kernel behind the first made.
    const Asked layers = Check("kernel e(x: " + dtype + "[n, k], w: " + dtype + "[k, m], v: " + dtype + "[m, p], c: " + dtype + "[m], b: " + dtype + "[p]) -> (y: " + dtype +
                                   "[n, p]) {\n  h = tcast<" + dtype + ">(relu(dot(x, w) + broadcast<1>(c)))\n  y = relu(dot(h, v) + broadcast<1>(b))\n}",
                               {{{20, 9}}, {{9, 30}}, {{30, 12}}, {{30}}, {{12}}}, Math::kStrict, 4 * tolerance);
    EXPECT_EQ(layers.epilogues, (std::vector<std::uint32_t>{kBias, kBias}));
    EXPECT_EQ(layers.kernels, 2);
  }
  Stream<gpu> stream;
  TensorContainer<gpu, 2, half_t> x(Shape2(4, 4), half_t(std::numeric_limits<float>::quiet_NaN())), y(Shape2(4, 4), half_t(7.0f));
  jit(y) = F<op::relu>(dot(x, x));
  TensorContainer<cpu, 2, half_t> back(Shape2(4, 4));
  Copy<2, half_t>(back, y);
  EXPECT_TRUE(std::isnan(static_cast<float>(back[0][0])));
}

// A product whose result is larger than the cache, and the kernel behind it, go by pieces of rows.
TEST_F(CudaEpilogue, Pieces) {
  const std::vector<std::uint32_t> plain(3, kPlain);
  const auto expect = [&](const std::string& text, const std::vector<Operand>& inputs, const std::vector<std::uint32_t>& epilogues, double tolerance) {
    const Asked asked = Check(text, inputs, Math::kStrict, tolerance);
    EXPECT_EQ(asked.epilogues, epilogues) << text;
    EXPECT_EQ(asked.kernels, static_cast<int>(epilogues.size())) << text;
    EXPECT_TRUE(asked.biased) << text;
  };
  const std::string y = "tanh(dot(x, w) + broadcast<1>(b))";
  expect(Kernel(y), {{{700, 9}, 3}, {{9, 40}}, {{40}}}, plain, 1e-4);
  expect(Kernel("tanh(dot(x.T, w.T)) + broadcast<1>(b)", "f32", "[k, n] [m, k] [m] [n, m]"), {{{9, 700}}, {{41, 9}, 2}, {{41}}}, plain, 1e-4);
  expect("kernel e(x: f32[n, k], w: f32[k, m], r: f32[n, m], s: f32[n], b: f32[m]) -> (y: f32[n, m], z: f32[n, m]) {\n"
         "  p = dot(x, w)\n  y = tanh(p) + r * broadcast<0>(s)\n  z = p * broadcast<1>(b)\n}",
         {{{700, 9}}, {{9, 40}}, {{700, 40}, 5}, {{700}}, {{40}}}, plain, 1e-4);
  // With extents that are known, of 16 bits, and where the product adds the bias.
  expect(Kernel(y, "f32", "[700, 9] [9, 40] [40] [700, 40]"), {{{700, 9}}, {{9, 40}}, {{40}}}, plain, 1e-4);
  expect(Kernel("relu(dot(x, w) + broadcast<1>(b))", "bf16"), {{{700, 9}}, {{9, 64}}, {{64}}}, std::vector<std::uint32_t>(3, kBias), 3e-2);
  // Across the rows, and in batches, it is one piece.
  ExpectApart(Kernel("tanh(dot(x, w)).T + broadcast<1>(b)", "f32", "[n, k] [k, m] [n] [m, n]"), {{{700, 9}}, {{9, 40}}, {{700}}}, Math::kStrict, 1, 1e-4);
  ExpectApart(Kernel("tanh(batch_dot(x, w)) + broadcast<2>(b)", "f32", "[t, n, k] [t, k, m] [m] [t, n, m]"), {{{2, 700, 4}}, {{2, 4, 20}}, {{20}}}, Math::kStrict, 1, 1e-4);
}

// What only looks like an epilogue.
TEST_F(CudaEpilogue, OtherKernelsStay) {
  const std::vector<Operand> operands = {{{5, 8}}, {{8, 5}}, {{5}}};
  for (const char* y : {"dot(x, w) - broadcast<1>(b)", "dot(x, w) + broadcast<0>(b)", "gelu_erf(dot(x, w) + broadcast<1>(b))", "relu(dot(x, w)) + broadcast<1>(b)",
                        "maximum(dot(x, w) + broadcast<1>(b), 1)", "(dot(x, w) + broadcast<1>(b)).T", "dot(x, w) + x * 0.5", "dot(x, w) >= 0 ? dot(x, w) : 0 * broadcast<1>(b)"})
    ExpectApart(Kernel(y, "f32", std::string(y).find("x * 0.5") == std::string::npos ? "[n, k] [k, n] [n] [n, n]" : "[n, n] [n, n] [n] [n, n]"),
                std::string(y).find("x * 0.5") == std::string::npos ? operands : std::vector<Operand>{{{5, 5}}, {{5, 5}}, {{5}}}, Math::kFast);
  // The result is rounded before the sum, or is wanted in two ways.
  ExpectApart(Kernel("tcast<f32>(tcast<bf16>(dot(x, w))) + broadcast<1>(b)", "bf16"), {{{5, 8}}, {{8, 6}}, {{6}}}, Math::kFast, 1, 3e-2);
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
  ExpectApart(bias, {{{7, 13}}, {{13, 5}}, {{5}, 0, 1}});     // a bias at an odd address
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

class Expressions : public CudaEpilogue {
 protected:
  template <int dim>
  TensorContainer<gpu, dim> Draw(const Shape<dim>& shape, Stream<gpu>* stream) {
    TensorContainer<cpu, dim> host(shape);
    const Shape<2> flat = shape.FlatTo2D();
    for (index_t y = 0; y < flat[0]; ++y)
      for (index_t x = 0; x < flat[1]; ++x)
        host.dptr_[(dim == 1 ? 0 : y * host.stride_) + x] = static_cast<float>(std::uniform_int_distribution<int>(-8, 8)(random_)) / 4;
    TensorContainer<gpu, dim> there(shape);
    there.set_stream(stream);
    Copy<dim, float>(there, host, stream);
    return there;
  }
  template <int dim>
  static TensorContainer<cpu, dim> Back(const Tensor<gpu, dim>& there) {
    TensorContainer<cpu, dim> host(there.shape_);
    Copy<dim, float>(host, there, there.stream_);
    return host;
  }
  template <typename T>
  static void ExpectEqual(const T& a, const T& b) {
    for (index_t y = 0; y < a.size(0); ++y)
      for (index_t x = 0; x < a.size(1); ++x) ASSERT_EQ(a[y][x], b[y][x]) << y << ", " << x;
  }
};

// The elements are quarters, so that every sum is exact.
TEST_F(Expressions, OfTheExpApi) {
  Stream<gpu> stream;
  auto x = Draw(Shape2(9, 7), &stream), w = Draw(Shape2(7, 5), &stream), y = Draw(Shape2(9, 5), &stream);
  auto b = Draw(Shape1(5), &stream);
  TensorContainer<cpu, 2> expected(Shape2(9, 5));
  const auto hx = Back<2>(x), hw = Back<2>(w);
  const auto hb = Back<1>(b);
  stand_in::TakeProducts();
  jit(y) = F<relu_of_numbers>(dot(x, w) + broadcast<1>(b, y.shape_));
  EXPECT_EQ(stand_in::TakeProducts().at(0).epilogue, kBiasRelu);
  for (const Math math : {Math::kStrict, Math::kFast}) {
    jit::SetOptions(Options(math));
    for (const bool relu : {false, true}) {
      const int launches = stand_in::Calls("cuLaunchKernel");
      stand_in::TakeProducts();
      if (relu) jit(y) = F<op::relu>(dot(x, w) + broadcast<1>(b, y.shape_));
      else jit(y) = dot(x, w) + broadcast<1>(b, y.shape_);
      const auto products = stand_in::TakeProducts();
      ASSERT_EQ(products.size(), 1u);
      const bool whole = !relu || math == Math::kFast;
      EXPECT_EQ(products[0].epilogue, relu ? (whole ? kBiasRelu : kPlain) : kBias);
      EXPECT_EQ(products[0].bias, whole ? b.dptr_ : nullptr);
      EXPECT_EQ(products[0].result == y.dptr_, whole);
      EXPECT_EQ(stand_in::Calls("cuLaunchKernel") - launches, whole ? 0 : 1);
      expected = dot(hx, hw);
      if (relu) expected = F<op::relu>(expected + broadcast<1>(hb, expected.shape_));
      else expected += broadcast<1>(hb, expected.shape_);
      ExpectEqual(Back<2>(y), expected);
    }
  }
}

// f16 and bf16 are summed in f32, and rounded once, behind the epilogue.
TEST_F(Expressions, OfNarrowTypes) {
  Stream<gpu> stream;
  TensorContainer<gpu, 2, bf16_t> x(Shape2(9, 8), bf16_t(0.25f)), y(Shape2(9, 9), bf16_t(7.0f));
  TensorContainer<gpu, 1, bf16_t> b(Shape1(9), bf16_t(-0.375f));
  CompileOptions fast;
  fast.math = Math::kFast;
  jit::SetOptions(fast);
  TensorContainer<cpu, 2, bf16_t> back(y.shape_);
  const int launches = stand_in::Calls("cuLaunchKernel");
  for (const float expected : {0.125f, 0.0f}) {
    stand_in::TakeProducts();
    if (expected > 0) jit(y) = F<op::relu>(dot(x, x.T()) + broadcast<1>(b, y.shape_));
    else jit(y) = F<op::relu>(bf16_t(0.5f) * dot(x, x.T()) + broadcast<1>(b, y.shape_));
    EXPECT_EQ(stand_in::TakeProducts().at(0).epilogue, kBiasRelu);
    Copy<2, bf16_t>(back, y);
    EXPECT_EQ(static_cast<float>(back[8][8]), expected);
  }
  EXPECT_EQ(stand_in::Calls("cuLaunchKernel"), launches);
}

// What was decided for one call is not taken for another: addresses, and operands in the result's memory.
TEST_F(Expressions, EachCallIsLookedAt) {
  Stream<gpu> stream;
  auto x = Draw(Shape2(8, 8), &stream), w = Draw(Shape2(8, 8), &stream), y = Draw(Shape2(8, 8), &stream);
  auto b = Draw(Shape1(80), &stream);
  const auto hw = Back<2>(w);
  const auto hb = Back<1>(b);
  TensorContainer<cpu, 2> expected(Shape2(8, 8));
  const auto call = [&](Tensor<gpu, 2> to, index_t from) {
    const auto hx = Back<2>(x);
    expected = dot(hx, hw);
    expected += broadcast<1>(hb.Slice(from, from + 8), expected.shape_);
    const int launches = stand_in::Calls("cuLaunchKernel");
    stand_in::TakeProducts();
    jit(to) = dot(x, w) + broadcast<1>(b.Slice(from, from + 8), to.shape_);
    EXPECT_EQ(stand_in::TakeProducts().size(), 1u);
    ExpectEqual(Back<2>(to), expected);
    return stand_in::Calls("cuLaunchKernel") - launches;
  };
  EXPECT_EQ(call(y, 0), 0);
  EXPECT_EQ(call(y, 1), 1);
  EXPECT_EQ(call(y, 4), 0);
  EXPECT_EQ(call(y, 0), 0);
  EXPECT_EQ(call(x, 0), 1);  // x, which the product reads
  EXPECT_EQ(call(y, 64), 0);
}

// The algorithms of TF32 may have other epilogues: calls ask again once it is allowed.
TEST_F(Expressions, AskAgainForTf32) {
  Stream<gpu> stream;
  auto x = Draw(Shape2(8, 8), &stream), y = Draw(Shape2(8, 8), &stream);
  auto b = Draw(Shape1(8), &stream);
  const auto call = [&] {
    stand_in::TakeProducts();
    jit(y) = dot(x, x) + broadcast<1>(b, y.shape_);
    return stand_in::TakeProducts().at(0).epilogue;
  };
  EXPECT_EQ(call(), kBias);
  stand_in::RefuseEpilogues(15);  // CUBLAS_STATUS_NOT_SUPPORTED
  EXPECT_EQ(call(), kBias);
  cuda::AllowTf32(true);
  EXPECT_EQ(call(), kPlain);
  cuda::AllowTf32(false);
  EXPECT_EQ(call(), kBias);
}

TEST_F(Expressions, TakeNoMemoryAndAreCaptured) {
  Stream<gpu> stream;
  auto x = Draw(Shape2(8, 8), &stream), y = Draw(Shape2(8, 8), &stream);
  auto b = Draw(Shape1(8), &stream);
  const auto step = [&] { jit(y) = 0.5f * dot(x, x.T()) + broadcast<1>(b, y.shape_); };
  step();
  const auto expected = Back<2>(y);
  const int allocations = stand_in::Calls("cuMemAllocFromPoolAsync"), launches = stand_in::Calls("cuLaunchKernel");
  step();
  EXPECT_EQ(stand_in::Calls("cuMemAllocFromPoolAsync"), allocations);
  EXPECT_EQ(stand_in::Calls("cuLaunchKernel"), launches);
  y = 0.0f;
  stand_in::TakeProducts();
  const cuda::Graph graph = stream.Capture([&] { step(); });
  ASSERT_EQ(stand_in::TakeProducts().at(0).epilogue, kBias);
  EXPECT_EQ(Back<2>(y)[3][3], 0);
  for (int k = 0; k < 2; ++k) {
    y = 0.0f;
    stream.Launch(graph);
    ExpectEqual(Back<2>(y), expected);
  }
}

// Pieces run beside each other in a stream, one after the other where it is captured, and as a whole where the result takes
// the place of an operand. A stream that is deleted takes along the one beside it.
TEST_F(Expressions, InPieces) {
  const auto run = [&] {
    Stream<gpu> stream;
    auto x = Draw(Shape2(700, 9), &stream), w = Draw(Shape2(9, 40), &stream), y = Draw(Shape2(700, 40), &stream), r = Draw(Shape2(700, 40), &stream);
    const auto step = [&](const Tensor<gpu, 2>& result) {
      Tensor<gpu, 2> to = result;
      stand_in::TakeProducts();
      jit(to) = F<relu_of_numbers>(dot(x, w) * r) + r;
      return stand_in::TakeProducts().size();
    };
    EXPECT_EQ(step(y), 3u);
    EXPECT_EQ(step(y), 3u);
    const auto expected = Back<2>(y);
    y = 0.0f;
    const cuda::Graph graph = stream.Capture([&] { EXPECT_EQ(step(y), 3u); });
    stream.Launch(graph);
    ExpectEqual(Back<2>(y), expected);
    y = 0.0f;
    stand_in::Fail("cuLaunchKernel", 701, 1, 1);  // the second piece
    EXPECT_THROW(step(y), Error);
    EXPECT_EQ(step(y), 3u);
    ExpectEqual(Back<2>(y), expected);
    EXPECT_EQ(step(r), 1u);
    ExpectEqual(Back<2>(r), expected);
  };
  run();
  const std::size_t objects = stand_in::Objects();  // modules among them
  run();
  EXPECT_EQ(stand_in::Objects(), objects);
}

// What a library that cannot be asked while a stream is captured would have answered, later calls ask again.
TEST_F(Expressions, AskAgainAfterACapture) {
  constexpr int kInternalError = 14;
  Stream<gpu> stream;
  auto x = Draw(Shape2(12, 12), &stream), y = Draw(Shape2(12, 12), &stream);
  auto b = Draw(Shape1(12), &stream);
  const auto step = [&] { jit(y) = 0.25f * dot(x, x) + broadcast<1>(b, y.shape_); };
  const auto epilogue_of = [&](const std::function<void()>& work) {
    stand_in::TakeProducts();
    work();
    return stand_in::TakeProducts().at(0).epilogue;
  };
  stand_in::RefuseEpilogues(kInternalError);
  cuda::Graph graph;
  EXPECT_EQ(epilogue_of([&] { graph = stream.Capture(step); }), kPlain);
  stand_in::RefuseEpilogues(0);
  EXPECT_EQ(epilogue_of(step), kBias);
  const auto expected = Back<2>(y);
  y = 0.0f;
  stream.Launch(graph);
  ExpectEqual(Back<2>(y), expected);
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
  const runtime::Program behind = runtime::ProgramFromText(runtime::ProgramToText(plan::ToProgram(Lower(*halves, true))));
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

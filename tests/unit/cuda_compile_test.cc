// Graphs compiled for a GPU and called with device addresses: the stand-in for NVRTC makes code of the CUDA text for
// the emulator, which the stand-in for the driver launches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "compiler/graph/graph.h"
#include "tests/support/drawn.h"
#include "tests/support/on_gpu.h"
#include "tests/support/testing.h"

namespace umbra {
namespace {

using namespace drawn;  // NOLINT: the test's own words

[[maybe_unused]] const int kChosen = on_gpu::UseStandIns();

class CudaCompile : public on_gpu::Test {
 protected:
  struct Shape {
    std::vector<index_t> extents;
    index_t padding = 0;
  };
  // Runs a kernel on drawn operands of these shapes in `stream`, and compares with the interpreter's results.
  void Check(const std::string& text, const std::vector<Shape>& shapes, Stream<gpu>* stream, double tolerance = 1e-5,
             Math math = Math::kStrict) {
    Check(graph::ParseText(text)[0], shapes, stream, tolerance, math);
  }
  void Check(const std::shared_ptr<const graph::Graph>& graph, const std::vector<Shape>& shapes, Stream<gpu>* stream,
             double tolerance, Math math = Math::kStrict) {
    const std::string text = graph::Print(*graph);
    CompileOptions options = on_gpu::Options();
    options.math = math;
    const Function function = Compile(graph, options);
    CompileOptions interpreted;
    interpreted.engine = Engine::kInterpreter;
    const Function reference = Compile(graph, interpreted);
    runtime::Arguments host, device;
    std::vector<std::unique_ptr<Tensor>> operands, expected, got;
    std::vector<std::unique_ptr<on_gpu::There>> there;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      operands.push_back(std::make_unique<Tensor>(function.program().buffers[k].dtype, shapes[k].extents,
                                                  shapes[k].padding, &random_));
      there.push_back(std::make_unique<on_gpu::There>(*operands.back()));
      host.inputs.push_back(operands.back()->ref);
      device.inputs.push_back(there.back()->ref);
    }
    for (const auto& scalar : function.program().scalars) {
      umbra_scalar s{};
      if (scalar.second == DType::kFloat32) s.f32 = 0.75f;
      else s.f64 = 0.75;
      host.scalars.push_back(s);
    }
    device.scalars = host.scalars;
    const auto result_shapes = runtime::OutputShapes(function.program(), device.inputs);
    for (std::size_t k = 0; k < result_shapes.size(); ++k) {
      const DType type = function.program().buffers[shapes.size() + k].dtype;
      expected.push_back(std::make_unique<Tensor>(type, result_shapes[k], shapes[0].padding, nullptr));
      got.push_back(std::make_unique<Tensor>(type, result_shapes[k], shapes[0].padding, nullptr));
      there.push_back(std::make_unique<on_gpu::There>(*got.back()));
      host.outputs.push_back(expected.back()->ref);
      device.outputs.push_back(there.back()->ref);
    }
    reference(host);
    function(device, {0, Stream<gpu>::GetStream(stream)});
    if (stream != nullptr) stream->Wait();
    for (std::size_t k = 0; k < got.size(); ++k) {
      there[shapes.size() + k]->CopyBack(got[k].get());
      ExpectSame(*expected[k], *got[k], tolerance, text);
      for (index_t at = 0; at < 16; ++at) EXPECT_EQ(got[k]->bytes[static_cast<std::size_t>(at)], 0x5a);
    }
  }

  std::mt19937 random_{20261121};
};

// As those of a model's tensors: one compile, whatever the tensors are called and how large they are.
TEST_F(CudaCompile, EqualUpdatesShareTheirCode) {
  Stream<gpu> stream;
  const auto made = [] { return GetCompileStatistics().compiled + GetCompileStatistics().disk_hits; };
  const auto before = made();
  Check(
      "kernel updates(a: f32[n], b: f32[m], c: f32[k]) -> (x: f32[n], y: f32[m], z: f32[k]) {\n"
      "  x = a * 1.25 + 0.375\n  y = b * 1.25 + 0.375\n  z = c * 1.25 + 0.375\n}",
      {{{1024}}, {{512}}, {{256}}}, &stream);
  EXPECT_EQ(made(), before + 1);
}

// A graph that computes `body` of each of `count` tensors by itself; # stands for its number.
std::string Each(int count, const std::string& input, const std::string& output, const std::string& body) {
  const auto numbered = [&](const std::string& text, const std::string& between) {
    std::string all;
    for (int k = 0; k < count; ++k) {
      all += k == 0 ? "" : between;
      for (const char c : text) all += c == '#' ? std::to_string(k) : std::string(1, c);
    }
    return all;
  };
  return "kernel each(" + numbered(input, ", ") + ", s: f32) -> (" + numbered(output, ", ") + ") {\n" +
         numbered(body, "\n") + "\n}";
}

// Launches of equal code become one, whatever their sizes: elements in packets and one by one, rows, columns, tiles.
TEST_F(CudaCompile, EqualKernelsRunAsOneLaunch) {
  Stream<gpu> stream;
  const std::vector<index_t> sizes = {5, 4097, 1, 64, 1000, 20000, 31, 0, 128};
  std::vector<Shape> vectors, updates, rows, wide;
  for (const index_t n : sizes) {
    vectors.push_back({{n}});
    rows.push_back({{n % 37, 33}});
    wide.push_back({{3 + n % 5, 2100}, n % 2});
  }
  for (int k = 0; k < 70; ++k) updates.insert(updates.end(), {{{k * 7 % 300 + 1}}, {{k * 7 % 300 + 1}}});
  Check(Each(9, "x#: f32[n#]", "y#: f32[n#]", "y# = tanh(x# * s) + 1"), vectors, &stream);
  Check(Each(9, "x#: f16[n#]", "y#: f16[n#]", "y# = x# * s"), vectors, nullptr, 1e-3);
  Check(Each(70, "x#: f32[n#], g#: f32[n#]", "y#: f32[n#]", "y# = x# - s * g#"), updates, &stream);
  const std::string softmax =
      "e# = exp(x# * s - broadcast<0>(reduce_with_axis<maximum>(x# * s, 1)))\n"
      "y# = e# / broadcast<0>(reduce_with_axis<sum>(e#, 1))";
  Check(Each(9, "x#: f32[n#, m]", "y#: f32[n#, m]", softmax), rows, &stream);
  Check(Each(9, "x#: f32[n#, m]", "y#: f32[n#, m]", softmax), wide, &stream);
  Check(Each(9, "x#: f32[n#, m]", "y#: f32[m]", "y# = reduce_with_axis<sum>(x# * s, 0)"), rows, &stream, 1e-4);
  Check(Each(9, "x#: f32[n#, m]", "y#: f32[m, n#]", "y# = x#.T * s"), rows, &stream);
  Check(Each(9, "x#: f32[n#, m]", "y#: f32[p#, q]", "y# = pad(x#, 1, 2) * s"), rows, &stream);
}

TEST_F(CudaCompile, Elements) {
  Stream<gpu> stream;
  const std::string triad = "kernel triad(a: f32[n], b: f32[n], s: f32) -> (y: f32[n]) { y = a * s + b }";
  for (Stream<gpu>* in : {&stream, static_cast<Stream<gpu>*>(nullptr)})
    for (const index_t n : {0, 1, 31, 1000, 20003}) Check(triad, {{{n}}, {{n}}}, in);
  const std::string gelu =
      "kernel bias_gelu(x: f32[n, m], bias: f32[m]) -> (y: f32[n, m]) { y = gelu(x + broadcast<1>(bias)) }";
  for (const index_t m : {1, 64, 131})
    for (const index_t padding : {0, 4, 1}) Check(gelu, {{{33, m}, padding}, {{m}}}, &stream);
}

TEST_F(CudaCompile, Reductions) {
  Stream<gpu> stream;
  const std::string softmax =
      "kernel softmax(x: f32[n, m], s: f32) -> (y: f32[n, m]) {\n  t = x * s\n  e = exp(t - broadcast<0>(reduce_with_axis<maximum>(t, 1)))\n"
      "  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}";
  for (const index_t m : {5, 64, 1024, 4100}) Check(softmax, {{{19, m}}}, &stream);
  // In two passes, over rows and over columns.
  const std::string total =
      "kernel total(x: f32[n, m]) -> (t: f32[n], u: f32[n]) {\n  t = reduce_with_axis<sum>(x * 0.5, 1)\n  u = reduce_with_axis<maximum>(x, 1)\n}";
  Check(total, {{{3, 20000}}}, &stream, 1e-4);
  Check(total, {{{3, 20000}}}, nullptr, 1e-4);
  const std::string sums =
      "kernel sums(x: f32[n, m]) -> (s: f32[m], q: f32[m]) {\n  s = reduce_with_axis<sum>(x, 0)\n  q = reduce_with_axis<sum>(x * x, 0)\n}";
  for (const index_t n : {3, 40, 5000}) Check(sums, {{{n, 40}}}, &stream, 1e-3);
  Check(sums, {{{0, 40}}}, &stream);
}

// Several kernels, with temporaries and products between them.
TEST_F(CudaCompile, Programs) {
  Stream<gpu> stream;
  const std::string dense =
      "kernel dense(x: f32[n, k], w: f32[k, m], b: f32[m], s: f32) -> (y: f32[n, m], t: f32[m]) {\n"
      "  h = relu(dot(x * s, w) + broadcast<1>(b))\n  y = h / broadcast<0>(reduce_with_axis<sum>(h, 1) + 1)\n  t = sum_rows(y)\n}";
  for (Stream<gpu>* in : {&stream, static_cast<Stream<gpu>*>(nullptr)})
    Check(dense, {{{37, 20}, 3}, {{20, 65}}, {{65}}}, in, 1e-4);
  Check(dense, {{{37, 0}}, {{0, 65}}, {{65}}}, &stream, 1e-4);
  Check(
      "kernel far(x: f64[n, m]) -> (y: f64[n, m]) {\n  t = reduce_with_axis<sum>(reduce_with_axis<sum>(x, 1), 0)\n  y = x + t\n}",
      {{{50, 44}}}, &stream, 1e-9);
}

TEST_F(CudaCompile, Products) {
  Stream<gpu> stream;
  for (const char* product : {"dot(a, b)", "dot(a, b.T)", "dot(a.T, b)", "dot(a.T, b.T)"})
    for (const char* dtype : {"f32", "f64"})
      Check("kernel k(a: " + std::string(dtype) + "[?, ?], b: " + dtype + "[?, ?]) -> (y: " + dtype +
                "[r, s]) { y = " + product + " }",
            {{{12, 12}, 1}, {{12, 12}}}, &stream, 1e-4);
  Check("kernel k(a: f32[m], b: f32[m, n]) -> (y: f32[n]) { y = dot(a, b) }", {{{7}}, {{7, 9}, 2}}, &stream, 1e-4);
  Check("kernel k(a: f32[m], b: f32[n]) -> (y: f32[m, n]) { y = dot(a, b) }", {{{7}}, {{9}}}, &stream, 1e-4);
  Check("kernel k(a: f32[t, m, k], b: f32[t, k, n]) -> (y: f32[t, m, n]) { y = batch_dot(a, b) }",
        {{{3, 5, 6}}, {{3, 6, 4}}}, &stream, 1e-4);
}

// Products of 16-bit floats take them as they are, and round once where nothing else comes of them.
TEST_F(CudaCompile, NarrowProducts) {
  Stream<gpu> stream;
  for (const std::string dtype : {"f16", "bf16"}) {
    const double tolerance = dtype == "f16" ? 2e-3 : 2e-2;
    const std::string a = "a: " + dtype + "[m, k]", b = "b: " + dtype;
    for (const std::string& text :
         {"kernel k(" + a + ", " + b + "[k, n]) -> (y: " + dtype + "[m, n]) { y = dot(a, b) }",
          "kernel k(" + a + ", " + b + "[n, k]) -> (y: f32[m, n]) { y = relu(dot(a, b.T) * 0.5) }"})
      Check(text, {{{12, 20}, 4}, text.find(".T") == std::string::npos ? Shape{{20, 9}} : Shape{{9, 20}}}, &stream,
            tolerance);
  }
  // One factor is f32: both are.
  Check("kernel k(a: f16[m, k], b: f32[k, n]) -> (y: f32[m, n]) { y = dot(a, b) }", {{{5, 8}}, {{8, 6}}}, &stream,
        1e-4);
  Check("kernel k(a: f16[t, m, k], b: f16[t, k, n]) -> (y: f16[t, m, n]) { y = batch_dot(a, b) }",
        {{{3, 5, 16}}, {{3, 16, 14}}}, &stream, 2e-3);
}

// What cuBLASLt does behind a product is what the operators say.
TEST_F(CudaCompile, ProductsWithWhatFollowsThem) {
  Stream<gpu> stream;
  for (const std::string dtype : {"f32", "f16", "bf16"})
    for (const std::string y : {"0.5 * dot(a, b)", "dot(a, b) + broadcast<1>(c)", "relu(dot(a, b) + broadcast<1>(c))",
                                "gelu(0.5 * dot(a, b) + broadcast<1>(c))"})
      for (const Math math : {Math::kStrict, Math::kFast}) {
        const double tolerance = dtype == "bf16" ? 2e-2 : dtype == "f16" || math == Math::kFast ? 2e-3 : 1e-4;
        Check("kernel k(a: " + dtype + "[m, k], b: " + dtype + "[k, n], c: " + dtype + "[n]) -> (y: " + dtype +
                  "[m, n]) { y = " + y + " }",
              {{{16, 24}}, {{24, 40}}, {{40}}}, &stream, tolerance, math);
      }
}

TEST_F(CudaCompile, TransposesMapsAndNarrowTypes) {
  Stream<gpu> stream;
  Check("kernel k(a: f32[p, q, r], b: f32[r, q, p]) -> (y: f32[r, q, p]) { y = transpose<2, 1, 0>(a) * b }",
        {{{33, 5, 40}}, {{40, 5, 33}}}, &stream);
  Check("kernel k(x: f32[n, m]) -> (y: f32[p, q]) { y = pad(x, 2, 3) + 1 }", {{{6, 9}}}, &stream);
  Check(
      "kernel k(h: f16[n, m], g: bf16[m], f: f32[n, m]) -> (a: f16[n, m], t: f16[n]) {\n"
      "  a = (h + f) * broadcast<1>(g) - h * 3\n  t = reduce_with_axis<sum>(h * 0.001, 1)\n}",
      {{{5, 80}}, {{80}}, {{5, 80}}}, &stream, 2e-3);
}

TEST_F(CudaCompile, RandomExpressions) {
  Stream<gpu> stream;
  std::mt19937 random(20261120);
  for (int round = 0; round < 6; ++round) {
    const int rank = 1 + round % 3;
    std::vector<index_t> shape(static_cast<std::size_t>(rank), 17);
    if (rank == 1) shape[0] = 4000 + round;
    const auto graph = DrawGraph(&random, round % 2 == 0 ? DType::kFloat32 : DType::kFloat64, rank);
    Check(graph, {{shape, round % 5}, {shape}, {{shape.back()}}}, &stream, 1e-5);
  }
}

// Strict and fast are code of its own each, in the process and on disk.
TEST_F(CudaCompile, FastContracts) {
#if defined(__x86_64__)
  if (std::getenv("UMBRA_TEST_GPU") == nullptr && __builtin_cpu_supports("fma") == 0)
    GTEST_SKIP() << "the emulator's CPU has no fused multiply-add";
#endif
  const auto graph = graph::ParseText("kernel k(a: f32[n], b: f32[n], c: f32[n]) -> (y: f32[n]) { y = a * b + c }")[0];
  const float one = 1 + 0x1p-12f, rounded = one * one;
  Tensor a(DType::kFloat32, {40}, 0, nullptr), c(DType::kFloat32, {40}, 0, nullptr),
      y(DType::kFloat32, {40}, 0, nullptr);
  std::fill_n(static_cast<float*>(a.ref.data), 40, one);
  std::fill_n(static_cast<float*>(c.ref.data), 40, -rounded);
  for (const bool use_disk_cache : {false, true})
    for (const Math math : {Math::kStrict, Math::kFast, Math::kStrict}) {
      CompileOptions options = on_gpu::Options();
      options.math = math;
      options.use_disk_cache = use_disk_cache;
      const on_gpu::There ga(a), gc(c), gy(y);
      Compile(graph, options)({{ga.ref, ga.ref, gc.ref}, {gy.ref}, {}}, {});
      gy.CopyBack(&y);
      EXPECT_EQ(y.At({39}), math == Math::kFast ? std::fma(one, one, -rounded) : 0.0);
    }
}

// Functions lose no more by contraction than they do on CPUs, and nothing at the edges.
TEST_F(CudaCompile, FastFunctions) {
  const auto graph = graph::ParseText(
      "kernel k(x: f32[n]) -> (a: f32[n], b: f32[n], c: f32[n], d: f32[n], e: f32[n], f: f32[n]) {\n"
      "  a = exp(x)\n  b = log(abs(x))\n  c = tanh(x)\n  d = sin(x)\n  e = erf(x)\n  f = expm1(x)\n}")[0];
  Tensor x(DType::kFloat32, {2000}, 0, nullptr);
  auto* const values = static_cast<float*>(x.ref.data);
  for (int k = 0; k < 2000; ++k) values[k] = std::ldexp(static_cast<float>(k % 40 - 20) + 0.3f, k / 40 - 25);
  values[0] = std::numeric_limits<float>::infinity();
  values[1] = std::numeric_limits<float>::quiet_NaN();
  values[2] = -values[0];
  values[3] = 0x1p-140f;
  std::vector<std::unique_ptr<Tensor>> results[2];
  for (const Math math : {Math::kStrict, Math::kFast}) {
    CompileOptions options = on_gpu::Options();
    options.math = math;
    const on_gpu::There there(x);
    std::vector<std::unique_ptr<on_gpu::There>> outputs;
    runtime::Arguments arguments{{there.ref}, {}, {}};
    auto& kept = results[math == Math::kFast ? 1 : 0];
    for (int k = 0; k < 6; ++k) {
      kept.push_back(std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{2000}, 0, nullptr));
      outputs.push_back(std::make_unique<on_gpu::There>(*kept.back()));
      arguments.outputs.push_back(outputs.back()->ref);
    }
    Compile(graph, options)(arguments, {});
    for (std::size_t k = 0; k < 6; ++k) outputs[k]->CopyBack(kept[k].get());
  }
  for (std::size_t k = 0; k < 6; ++k)
    for (index_t at = 0; at < 2000; ++at) {
      const double strict = results[0][k]->At({at}), fast = results[1][k]->At({at});
      if (std::isnan(strict)) EXPECT_TRUE(std::isnan(fast)) << k << " of " << values[at];
      else if (std::isinf(strict) || strict == 0) EXPECT_EQ(fast, strict) << k << " of " << values[at];
      else EXPECT_NEAR(fast, strict, 4 * 0x1p-23 * std::fabs(strict) + 0x1p-148) << k << " of " << values[at];
    }
}

TEST_F(CudaCompile, BadCallsAreTold) {
  const auto graph = graph::ParseText("kernel twice(x: f32[n, m]) -> (y: f32[n, m]) { y = x * 2 }")[0];
  const Function twice = Compile(graph, on_gpu::Options());
  std::size_t pitch = 0;
  const std::unique_ptr<void, void (*)(void*)> x(cuda::Allocate(400, 1, &pitch), cuda::Free),
      y(cuda::Allocate(400, 1, &pitch), cuda::Free);
  std::vector<float> host(100);
  const auto tensor = [](void* data, std::vector<index_t> shape, DType type = DType::kFloat32) {
    return TensorRef::Dense(data, type, std::move(shape));
  };
  const auto call = [&](TensorRef in, TensorRef out, cuda::StreamHandle stream = nullptr) {
    twice({{std::move(in)}, {std::move(out)}, {}}, {0, stream});
  };
  call(tensor(x.get(), {10, 10}), tensor(y.get(), {10, 10}));
  EXPECT_SAYS("kernel 'twice', input 'x', is memory of the host",
              call(tensor(host.data(), {10, 10}), tensor(y.get(), {10, 10})));
  EXPECT_SAYS("kernel 'twice', output 'y', is memory of the host",
              call(tensor(x.get(), {10, 10}), tensor(host.data(), {10, 10})));
  EXPECT_SAYS("kernel 'twice', input 'x': the pointer is null",
              call(tensor(nullptr, {10, 10}), tensor(y.get(), {10, 10})));
  EXPECT_SAYS("lie behind the end of its allocation", call(tensor(x.get(), {20, 10}), tensor(x.get(), {20, 10})));
  EXPECT_SAYS("expected dtype f32, got f64", call(tensor(x.get(), {5, 10}, DType::kFloat64), tensor(y.get(), {5, 10})));
  EXPECT_SAYS("must be 10", call(tensor(x.get(), {10, 10}), tensor(y.get(), {9, 10})));
  EXPECT_SAYS("in a way that would change the result",
              call(tensor(x.get(), {5, 10}), tensor(static_cast<float*>(x.get()) + 10, {5, 10})));
  EXPECT_SAYS("takes 1 inputs", twice({{}, {tensor(y.get(), {10, 10})}, {}}));
  int nobody = 0;
  EXPECT_SAYS("stream", call(tensor(x.get(), {10, 10}), tensor(y.get(), {10, 10}), &nobody));
  // The same memory is fine, and what was decided for it holds for no other place.
  call(tensor(x.get(), {5, 10}), tensor(x.get(), {5, 10}));
  call(tensor(x.get(), {5, 10}), tensor(y.get(), {5, 10}));
  EXPECT_SAYS("in a way that would change the result",
              call(tensor(x.get(), {5, 10}), tensor(static_cast<float*>(x.get()) + 4, {5, 10})));

  CompileOptions options = on_gpu::Options();
  options.engine = Engine::kSystem;
  EXPECT_SAYS("has one engine", Compile(graph, options));
  options = on_gpu::Options();
  options.background = true;
  EXPECT_SAYS("in the background", Compile(graph, options));
}

}  // namespace
}  // namespace umbra

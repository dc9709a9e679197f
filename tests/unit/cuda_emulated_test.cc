// Generated CUDA kernels, run by the emulator, against the interpreter: every form, and drawn graphs.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/emulated_calls.h"
#include "tests/support/map_texts.h"

namespace umbra {
namespace {

using namespace drawn;  // NOLINT: the test's own words
using emulated::Calls;

TEST(CudaEmulated, Elements) {
  Calls calls;
  const std::string triad = "kernel triad(a: f32[n], b: f32[n], s: f32) -> (y: f32[n]) { y = a * s + b }";
  for (const index_t n : {1, 3, 31, 4096, 20003}) calls.Add(triad, {{{n}}, {{n}}});
  const std::string gelu =
      "kernel bias_gelu(x: f32[n, m], bias: f32[m]) -> (y: f32[n, m]) { y = gelu(x + broadcast<1>(bias)) }";
  for (const index_t m : {1, 7, 64, 131, 1030})
    for (const index_t padding : {0, 4, 1}) calls.Add(gelu, {{{33, m}, padding}, {{m}}});
  calls.Run();
}

// To the last bit; 0 and subnormal numbers are among the results, and NaN. Where an argument may be above 0 it is also
// large.
TEST(CudaEmulated, ExponentialsOfNothingAboveZero) {
  Calls calls;
  for (const std::string type : {"f32", "f64"}) {
    const std::string of = "(x: " + type + "[n, m]) -> (y: " + type + "[n, m]) {\n  z = x * x * x * x * x * x * x\n  ";
    for (const char* y :
         {"exp(-abs(z))", "exp(-(z * z))", "exp(minimum(log(z), -0.5))", "exp(z * -abs(x))", "exp(z * abs(x))",
          "exp(-z)", "exp(minimum(z, 1))", "exp(z - broadcast<0>(reduce_with_axis<maximum>(z, 1)))",
          "exp(z - broadcast<0>(reduce_with_axis<maximum>(-z, 1)))",
          "exp(x * 20 - broadcast<0>(reduce_with_axis<maximum>(x, 1)))",
          "exp(z - broadcast<0>(reduce_with_axis<minimum>(z, 1)))"})
      calls.Add("kernel k" + of + "y = " + y + "\n}", {{{9, 67}}}, 0);
  }
  calls.Run();
}

TEST(CudaEmulated, Rows) {
  Calls calls;
  const std::string softmax =
      "kernel softmax(x: f32[n, m], s: f32) -> (y: f32[n, m]) {\n  t = x * s\n  e = exp(t - broadcast<0>(reduce_with_axis<maximum>(t, 1)))\n"
      "  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}";
  for (const index_t m : {1, 5, 32, 64, 100, 1024, 1025, 4100, 5003})
    for (const index_t padding : {0, 4, 1}) calls.Add(softmax, {{{19, m}, padding}});
  const std::string layernorm =
      "kernel layernorm(x: f32[n, m], g: f32[m], b: f32[m]) -> (y: f32[n, m], mean: f32[n]) {\n"
      "  mean = reduce_with_axis<sum>(x, 1) * 0.01\n  d = x - broadcast<0>(mean)\n"
      "  v = reduce_with_axis<sum>(d * d, 1) * 0.01\n  y = d / broadcast<0>(sqrt(v + 0.001)) * broadcast<1>(g) + broadcast<1>(b)\n}";
  for (const index_t m : {7, 128, 2048, 2049}) calls.Add(layernorm, {{{9, m}}, {{m}}, {{m}}}, 1e-4);
  // Rows that shared memory does not hold: what is dear goes to scratch, inputs are read again.
  calls.Add(softmax, {{{700, 1100}}}, 1e-5, {4096});
  EXPECT_TRUE(calls.launches()[0].variant.rows_in_scratch);
  EXPECT_GT(calls.launches()[0].scratch_bytes, 0u);
  for (const index_t m : {1101, 1104}) calls.Add(layernorm, {{{9, m}}, {{m}}, {{m}}}, 1e-4, {4096});
  EXPECT_TRUE(calls.launches()[0].variant.rows_in_scratch);
  EXPECT_EQ(calls.launches()[0].scratch_bytes, 0u);
  // Several inputs are kept, and make room for what is computed of them.
  const std::string masked =
      "kernel masked(x: f16[n, m], c: bool[n, m], w: f32[n, m]) -> (y: f16[n, m], z: f32[n, m]) {\n"
      "  t = c ? x * 2 : w\n  e = exp(t - broadcast<0>(reduce_with_axis<maximum>(t, 1)))\n  s = broadcast<0>(reduce_with_axis<sum>(e, 1))\n"
      "  p = exp(w - e / s)\n  y = p / broadcast<0>(reduce_with_axis<sum>(p, 1))\n  z = c ? e : p\n}";
  for (const index_t m : {7, 64, 1000, 1101, 1104}) {
    const Calls::Shape full = {{9, m}};
    calls.Add(masked, {full, full, full}, 2e-3);
    if (m > 1024) calls.Add(masked, {full, full, full}, 2e-3, {4096});
  }
  // Arithmetic that is dear, of several packets in flight.
  for (const index_t m : {4, 100, 516, 1024, 2052, 5000})
    calls.Add(
        "kernel share(x: f32[n, m], w: f32[n, m]) -> (y: f32[n, m]) {\n  e = exp(x) * w\n  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}",
        {{{9, m}}, {{9, m}}}, 1e-4);
  calls.Add("kernel far(x: f32[n, m]) -> (t: f32[n]) {\n  t = reduce_with_axis<sum>(exp(x), 1)\n}", {{{3, 100004}}},
            1e-4);
  EXPECT_EQ(calls.launches()[0].variant.form, runtime::CudaForm::kRowSplit);
  // Few long rows, and all of a tensor.
  const std::string total =
      "kernel total(x: f32[n, m]) -> (t: f32[n], u: f32[n]) {\n  t = reduce_with_axis<sum>(x * 0.5, 1)\n  u = reduce_with_axis<maximum>(x, 1)\n}";
  for (const index_t m : {20000, 100001}) {
    calls.Add(total, {{{3, m}}}, 1e-4);
    EXPECT_EQ(calls.launches()[0].variant.form, runtime::CudaForm::kRowSplit);
  }
  calls.Run();
}

TEST(CudaEmulated, Columns) {
  Calls calls;
  const std::string sums =
      "kernel sums(x: f32[n, m]) -> (s: f32[m], q: f32[m]) {\n  s = reduce_with_axis<sum>(x, 0)\n  q = reduce_with_axis<sum>(x * x, 0)\n}";
  for (const index_t n : {1, 3, 40, 1000, 5000})
    for (const index_t m : {1, 31, 33, 200}) calls.Add(sums, {{{n, m}, n % 2}}, 1e-3);
  calls.Add(sums, {{{5000, 40}}}, 1e-3);
  EXPECT_EQ(calls.launches()[0].variant.form, runtime::CudaForm::kColumnSplit);
  calls.Run();
}

TEST(CudaEmulated, Transposes) {
  Calls calls;
  for (const char* order : {"2, 1, 0", "0, 2, 1", "1, 2, 0", "2, 0, 1"})
    for (const index_t n : {1, 7, 33, 70}) {
      std::vector<index_t> shape = {n, 5, 40}, turned;
      for (int d = 0; d < 3; ++d) turned.push_back(shape[static_cast<std::size_t>(order[3 * d] - '0')]);
      calls.Add("kernel k(a: f32[?, ?, ?], b: f32[s, t, u], c: f32[u]) -> (y: f32[s, t, u]) {\n  y = transpose<" +
                    std::string(order) + ">(a) * b - broadcast<2>(c)\n}",
                {{shape, n % 3}, {turned, 1}, {{turned[2]}}});
    }
  calls.Add("kernel k(a: f32[p, q]) -> (y: f32[s, t]) {\n  y = a.T * 2\n}", {{{100, 70}}});
  EXPECT_EQ(calls.launches()[0].variant.form, runtime::CudaForm::kTiles);
  // Narrow elements go by twos where their lines are even, from addresses that are.
  for (const char* type : {"f16", "bf16", "u8", "bool"})
    for (const auto& [n, m] : {std::pair<index_t, index_t>{64, 64}, {2, 130}, {70, 38}, {33, 70}})
      for (const index_t padding : {0, 1, 2}) {
        const std::string t = type,
                          sum = t == "bool" ? "a.T && b && !broadcast<0>(c)" : "a.T * 2 + b - broadcast<0>(c)";
        calls.Add("kernel k(a: " + t + "[p, q], b: " + t + "[q, p], c: " + t + "[q]) -> (y: " + t +
                      "[q, p]) {\n  y = " + sum + "\n}",
                  {{{n, m}, padding}, {{m, n}, padding}, {{m}}}, 1e-2);
        EXPECT_EQ(calls.launches()[0].variant.vector, n % 2 == 0 && padding % 2 == 0) << type << n << " " << padding;
      }
  calls.Add(
      "kernel k(a: f16[r, q, p], b: u8[p]) -> (y: f16[r, p, q]) {\n  y = transpose<0, 2, 1>(a) * tcast<f16>(broadcast<1>(b))\n}",
      {{{3, 40, 66}}, {{66}}}, 1e-2);
  EXPECT_TRUE(calls.launches()[0].variant.vector);
  for (const index_t m : {41, 42}) {
    std::vector<Calls::Shape> shapes(15, {{70, m}});
    shapes.push_back({{m, 70}});
    calls.Add(SumOfTransposed("f16", 15), shapes, 1e-1);
  }
  // More than there are tiles for.
  for (const index_t padding : {0, 1}) {
    std::vector<Calls::Shape> shapes(15, {{70, 41}, padding});
    shapes.push_back({{41, 70}});
    calls.Add(SumOfTransposed("f32", 15), shapes);
  }
  calls.Run();
}

// What ahead of time stands for variants that are not compiled gives what they give.
TEST(CudaEmulated, GeneralVariants) {
  Calls calls(emulated::General);
  const std::string gelu =
      "kernel bias_gelu(x: f32[n, m], bias: f32[m]) -> (y: f32[n, m]) { y = gelu(x + broadcast<1>(bias)) }";
  const std::string turned = "kernel turned(a: f32[p, q]) -> (y: f32[q, p]) { y = a.T * 2 }";
  const std::string softmax =
      "kernel softmax(x: f32[n, m]) -> (y: f32[n, m]) {\n  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))\n"
      "  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}";
  const std::string sums =
      "kernel sums(x: f32[n, m]) -> (s: f32[n], t: f32[m]) {\n  s = reduce_with_axis<sum>(x, 1)\n  t = reduce_with_axis<sum>(x, 0)\n}";
  for (const index_t padding : {0, 1}) {
    for (const index_t m : {7, 64}) calls.Add(gelu, {{{33, m}, padding}, {{m}}});
    calls.Add(turned, {{{70, 33}, padding}});
    for (const index_t m : {64, 1100}) calls.Add(softmax, {{{9, m}, padding}});
    for (const index_t m : {3, 40, 20000})
      calls.Add(sums, {{{m, 40}, padding}}, 1e-3), calls.Add(sums, {{{3, m}, padding}}, 1e-3);
  }
  calls.Add(softmax, {{{700, 1100}}}, 1e-5, {4096});
  calls.Run();
}

// The emulator finds what goes wrong on a GPU: a barrier left out, threads that wait for different things.
TEST(CudaEmulator, SeesMissingBarriers) {
  const plan::Plan plan = Lower(*graph::ParseText("kernel k(a: f32[p, q]) -> (y: f32[q, p]) {\n  y = a.T * 2\n}")[0]);
  const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
  std::mt19937 random(1);
  Tensor a(DType::kFloat32, {64, 64}, 0, &random);
  const std::string barrier = "__syncthreads();";
  for (const char* instead : {"__syncthreads();", "", "if (threadIdx.y == 0) __syncthreads(); else __syncwarp();"}) {
    Tensor y(DType::kFloat32, {64, 64}, 0, nullptr);
    const std::vector<runtime::TensorRef> buffers = {a.ref, y.ref};
    const auto launch =
        runtime::PlanCudaLaunch(kernel.signature, codegen::ScheduleForCuda(plan, kernel), buffers, {64, 64}, {});
    codegen::CudaSource source = codegen::GenerateCuda(plan, kernel, launch.variant);
    const std::size_t at = source.kernel.find(barrier);
    ASSERT_NE(at, std::string::npos);
    source.kernel.replace(at, barrier.size(), instead);
    emulated::Library library;
    const int number = library.Add(source);
    library.Build();
    int wrong = 0;
    std::string said;
    for (const bool reverse : {false, true}) {
      said +=
          library.Try(number, launch, runtime::CudaArguments(launch, {a.ref.data, y.ref.data}, {}, nullptr), reverse);
      ForEachIndex({64, 64}, [&](const std::vector<index_t>& i) { wrong += y.At(i) != a.At({i[1], i[0]}) * 2; });
    }
    EXPECT_EQ(wrong > 0 || !said.empty(), instead != barrier) << "with '" << instead << "': " << said;
  }
}

// Memory without unit stride: a transposed view, a broadcast one, a reversed one.
TEST(CudaEmulated, AnyStrides) {
  const auto graph = graph::ParseText(
      "kernel k(x: f32[n, m], y: f32[n, m]) -> (z: f32[n, m], s: f32[n], c: f32[m]) {\n"
      "  z = x * 2 + y\n  s = reduce_with_axis<sum>(x, 1)\n  c = reduce_with_axis<maximum>(y, 0)\n}")[0];
  std::mt19937 random(11);
  Tensor xs(DType::kFloat32, {50, 40}, 0, &random), ys(DType::kFloat32, {50}, 0, &random);
  Tensor z(DType::kFloat32, {40, 50}, 0, nullptr), s(DType::kFloat32, {40}, 0, nullptr),
      c(DType::kFloat32, {50}, 0, nullptr);
  runtime::TensorRef x = xs.ref, y = ys.ref;
  x.shape = y.shape = {40, 50};
  x.stride = {1, 40};
  y.stride = {0, -1};
  y.data = static_cast<float*>(y.data) + 49;
  emulated::Library library;
  emulated::Call call(&library, *graph, {{x, y}, {z.ref, s.ref, c.ref}, {}});
  library.Build();
  for (const bool reverse : {false, true}) {
    call.Run(reverse);
    for (index_t i = 0; i < 40; ++i) {
      double sum = 0;
      for (index_t j = 0; j < 50; ++j) {
        sum += xs.At({j, i});
        EXPECT_FLOAT_EQ(static_cast<float>(z.At({i, j})), static_cast<float>(xs.At({j, i}) * 2 + ys.At({49 - j})));
      }
      EXPECT_NEAR(s.At({i}), sum, 1e-4);
    }
    for (index_t j = 0; j < 50; ++j) EXPECT_EQ(c.At({j}), ys.At({49 - j}));
  }
}

// As on the CPU, though NVRTC knows no -fwrapv and the emulator's compiler is not told of it.
TEST(CudaEmulated, IntegersWrapAround) {
  for (const DType type : {DType::kInt32, DType::kInt64}) {
    const std::string t(Name(type));
    const auto graph = graph::ParseText("kernel k(a: " + t + "[n]) -> (y: " + t + "[n], z: " + t +
                                        "[n]) {\n"
                                        "  y = tcast<" +
                                        t +
                                        ">(select(a < a + 1, 1, 2))\n"
                                        "  z = tcast<" +
                                        t + ">(select(-(a * a) < 0 - a * a - 1, 1, 2))\n}")[0];
    std::mt19937 random(12);
    Tensor a(type, {100}, 0, &random), y(type, {100}, 0, nullptr), z(type, {100}, 0, nullptr);
    const std::uint64_t large = type == DType::kInt32 ? 0x7fffffff : 0x7fffffffffffffff;
    for (std::size_t i = 0; i < 100; ++i)
      std::memcpy(static_cast<char*>(a.ref.data) + i * SizeOf(type), &large, SizeOf(type));
    emulated::Library library;
    emulated::Call call(&library, *graph, {{a.ref}, {y.ref, z.ref}, {}});
    library.Build();
    call.Run(false);
    for (index_t i = 0; i < 100; ++i) EXPECT_EQ(y.At({i}), 2) << t;
    for (index_t i = 0; i < 100; ++i) EXPECT_EQ(z.At({i}), 2) << t;
  }
}

// Mean and variance of few long rows or columns are read once: what blocks found is joined, whatever the center. Far
// from 0 a sum of squares would have lost the variance.
TEST(CudaEmulated, MomentsInOnePass) {
  Calls calls;
  const auto add = [&](const std::string& type, const std::vector<index_t>& shape, double share,
                       runtime::CudaForm form) {
    index_t count = 1;
    for (const index_t extent : shape) count *= extent;
    count /= shape[1];
    std::ostringstream text;
    text.precision(17);
    text << "kernel channels(x: " << type << (shape.size() == 2 ? "[n, c]" : "[n, c, s]") << ") -> (mean: " << type
         << "[c], variance: " << type << "[c]) {\n  v = x + 3000\n  mean = sumall_except_dim<1>(v) * "
         << share / static_cast<double>(count)
         << "\n  d = v - broadcast<1>(mean, v)\n  variance = sumall_except_dim<1>(d * d) * "
         << 1 / static_cast<double>(count) << "\n}";
    calls.Add(text.str(), {{shape}}, type == "f32" ? 1e-3 : 1e-10);
    EXPECT_EQ(calls.launches()[0].variant.form, form) << type << shape.size();
    EXPECT_EQ(calls.launches().size(), 1u);
  };
  for (const std::string type : {"f32", "f64"})
    for (const double share : {1.0, 0.75}) {  // 0.75: the center is not the mean
      for (const index_t s : {64, 61, 4000}) add(type, {40000 / s, 3, s}, share, runtime::CudaForm::kRowSplit);
      add(type, {5001, 40}, share, runtime::CudaForm::kColumnSplit);
      add(type, {5, 3, 1000}, share, runtime::CudaForm::kRowPerBlock);
    }
  // Rows of one line, which blocks that share them do not keep.
  for (const auto& shape : {std::vector<index_t>{1, 20000}, {2, 17000}, {3, 40001}, {100, 20000}}) {
    calls.Add(
        "kernel t(x: f32[n, m]) -> (y: f32[n]) {\n  mu = reduce_keepdim<mean>(x, 1)\n  d = x - broadcast_keepdim(mu, 1, extent<1>(x))\n"
        "  y = reduce_with_axis<mean>(d * d, 1)\n}",
        {{shape}}, 1e-3);
    EXPECT_EQ(calls.launches()[0].variant.form, runtime::CudaForm::kRowSplit);
    EXPECT_EQ(calls.launches()[0].shared_bytes, 0u);
  }
  calls.Run();
}

// The destination is one of the operands.
TEST(CudaEmulated, InPlace) {
  Calls calls;
  for (const index_t m : {64, 77, 1028, 2001}) {
    calls.AddInPlace("kernel k(x: f32[n, m], b: f32[m]) -> (y: f32[n, m]) {\n  y = x * 2 + broadcast<1>(b)\n}",
                     {{{9, m}}, {{m}}});
    calls.AddInPlace(
        "kernel k(x: f32[n, m]) -> (y: f32[n, m]) {\n  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))\n"
        "  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}",
        {{{9, m}}});
    calls.AddInPlace(
        "kernel k(x: f32[n, m]) -> (y: f32[n, m]) {\n  d = x - broadcast<0>(reduce_with_axis<sum>(x, 1) * 0.01)\n"
        "  y = d / broadcast<0>(sqrt(reduce_with_axis<sum>(d * d, 1)))\n}",
        {{{9, m}}}, 1e-4);
    calls.AddInPlace(
        "kernel k(r: f32[n], x: f32[n, m]) -> (t: f32[n]) {\n  t = r * 0.5 + reduce_with_axis<sum>(x, 1)\n}",
        {{{9}}, {{9, m}}}, 1e-4);
    calls.AddInPlace(
        "kernel k(r: f32[m], x: f32[n, m]) -> (t: f32[m]) {\n  t = r * 0.5 + reduce_with_axis<sum>(x, 0)\n}",
        {{{m}}, {{900, m}}}, 1e-3);
  }
  for (const index_t n : {1, 20, 77, 3000})
    calls.AddInPlace("kernel k(x: f32[n]) -> (y: f32[n]) {\n  y = x * 2 + 1\n}", {{{n}}});
  calls.AddInPlace("kernel k(r: f32[n], x: f32[n, m]) -> (t: f32[n]) {\n  t = r * 0.5 + reduce_with_axis<sum>(x, 1)\n}",
                   {{{2}}, {{2, 40000}}}, 1e-3);
  EXPECT_EQ(calls.launches()[0].variant.form, runtime::CudaForm::kRowSplit);
  calls.Run();
}

TEST(CudaEmulated, RandomExpressions) {
  Calls calls;
  std::mt19937 random(20261120);
  const index_t extents[] = {1, 3, 7, 16, 17, 33, 64, 131};
  for (int round = 0; round < 24; ++round) {
    const DType dtype = round % 4 == 3 ? DType::kInt32 : round % 4 == 2 ? DType::kFloat64 : DType::kFloat32;
    const int rank = 1 + round % 3;
    std::vector<index_t> shape;
    for (int d = 0; d < rank; ++d) shape.push_back(extents[random() % 8]);
    if (rank == 1 && round % 2 == 0) shape[0] = 4000 + round;
    calls.Add(DrawGraph(&random, dtype, rank), {{shape, round % 5}, {shape}, {{shape.back()}}}, 1e-5);
  }
  calls.Run();
}

TEST(CudaEmulated, ReductionsOverEverySetOfAxes) {
  Calls calls;
  for (const std::vector<index_t>& shape : {std::vector<index_t>{5, 33, 70}, {40, 33, 70}, {4, 1, 131}, {2, 3, 0}})
    for (int mask = 1; mask < 8; ++mask)
      for (const char* reducer : {"sum", "maximum", "minimum", "product"}) {
        const DType dtype = mask % 3 == 0 ? DType::kFloat64 : mask % 3 == 1 ? DType::kFloat32 : DType::kInt32;
        std::vector<int> axes;
        for (int d = 0; d < 3; ++d)
          if (mask >> d & 1) axes.push_back(d);
        graph::Builder builder("reduced");
        const Value x = builder.Input("x", dtype, PartialShape::dynamic(3));
        builder.Output("r", graph::Reduce(reducer, dtype == DType::kInt32 ? x : x * 0.5, axes));
        calls.Add(builder.Build(), {{shape, mask % 2}}, 5e-4);
      }
  calls.Run();
}

TEST(CudaEmulated, NarrowTypes) {
  Calls calls;
  const std::string text =
      "kernel k(h: f16[n, m], g: bf16[m], f: f32[n, m], c: bool[n, m], q: i8[n, m], u: u8[n, m], s: i16[n, m], l: i64[n, m])\n"
      "    -> (a: f16[n, m], b: bf16[n, m], d: u8[n, m], e: i16[n, m], i: i64[n, m], o: bool[n, m], t: f16[n], r: i64[m],\n"
      "        p: f16[m, n]) {\n"
      "  a = (h + f) * broadcast<1>(g) - h * 3\n  b = c ? f : h\n  d = q * u + s\n  e = s * s - q\n"
      "  i = l * l / 3 - tcast<i64>(q)\n  o = c && h > f\n  t = reduce_with_axis<sum>(h * 0.001, 1)\n"
      "  r = reduce_with_axis<maximum>(l, 0)\n  p = transpose(h)\n}";
  for (const index_t m : {77, 80}) {
    const Calls::Shape full = {{5, m}};
    calls.Add(text, {full, {{m}}, full, full, full, full, full, full}, 2e-3);
  }
  for (const DType from : kAllDTypes) {
    std::string cast = "kernel cast(x: " + std::string(Name(from)) + "[n]) -> (", body;
    for (const DType to : kAllDTypes) {
      const std::string name(Name(to));
      cast += (body.empty() ? "" : ", ") + ("to_" + name) + ": " + name + "[n]";
      body += "  to_" + name + " = tcast<" + name + ">(x)\n";
    }
    calls.Add(cast + ") {\n" + body + "}", {{{331}}}, 0);
  }
  calls.Run();
}

// Several kernels and a product of matrices, temporaries between them.
TEST(CudaEmulated, Programs) {
  Calls calls;
  calls.Add(
      "kernel dense(x: f32[n, k], w: f32[k, m], b: f32[m], s: f32) -> (y: f32[n, m], t: f32[m]) {\n"
      "  h = relu(dot(x * s, w) + broadcast<1>(b))\n  y = h / broadcast<0>(reduce_with_axis<sum>(h, 1) + 1)\n  t = sum_rows(y)\n}",
      {{{37, 20}}, {{20, 65}}, {{65}}}, 1e-4);
  calls.Add(
      "kernel far(x: f32[n, m]) -> (y: f32[n, m], c: f32[n, m]) {\n"
      "  t = reduce_with_axis<sum>(reduce_with_axis<sum>(x, 1), 0)\n  y = x + t\n  c = sin(x * 100000) + cos(x * 1e30) + erf(x) + pow(abs(x), 0.3)\n}",
      {{{50, 44}}}, 1e-3);
  calls.Run();
}

}  // namespace
}  // namespace umbra

// Random graphs through the interpreter, every dialect that this CPU runs, both compilers, dense and
// strided memory: one meaning everywhere.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "compiler/graph/graph.h"
#include "tests/support/drawn.h"
#include "tests/unit/host_targets.h"
#include "umbra/compile.h"
#include "umbra/error.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using namespace drawn;  // NOLINT: the test's own words

using graph::Builder;
using graph::Value;
using runtime::Arguments;
using runtime::TensorRef;

TEST(Differential, RandomExpressions) {
  std::mt19937 random(20261120);
  const index_t extents[] = {1, 3, 7, 16, 17, 33, 64, 131};
  int launches = 0;
  for (int round = 0; round < 24; ++round) {
    const DType dtype = round % 4 == 3 ? DType::kInt32 : round % 4 == 2 ? DType::kFloat64 : DType::kFloat32;
    const int rank = 1 + round % 3;
    std::vector<index_t> shape;
    for (int d = 0; d < rank; ++d) shape.push_back(extents[random() % 8]);
    if (rank == 1 && round % 2 == 0) shape[0] = 40000 + round;
    const auto graph = DrawGraph(&random, dtype, rank);

    const index_t padding = round % 5;
    Tensor tx(dtype, shape, padding, &random), ty(dtype, shape, 0, &random), tc(dtype, {shape.back()}, 0, &random);
    umbra_scalar scalar{};
    if (dtype == DType::kFloat32) scalar.f32 = 0.75f;
    else if (dtype == DType::kFloat64) scalar.f64 = 0.75;
    else scalar.i32 = 3;
    Arguments arguments{{tx.ref, ty.ref, tc.ref}, {}, {scalar}};
    CompileOptions options;
    options.engine = Engine::kInterpreter;
    Tensor expected(dtype, shape, padding, nullptr);
    arguments.outputs = {expected.ref};
    Compile(graph, options)(arguments);
    std::unique_ptr<Tensor> reference;
    for (const std::string& target : HostTargets()) {
      options.engine = Engine::kJit;
      options.target = target;
      auto got = std::make_unique<Tensor>(dtype, shape, padding, nullptr);
      arguments.outputs = {got->ref};
      Compile(graph, options)(arguments, {1 + round % 2});
      ++launches;
      ExpectSame(expected, *got, 1e-5, "round " + std::to_string(round) + ", " + target + "\n" + graph::Print(*graph));
      if (reference) EXPECT_TRUE(SameBits(*reference, *got)) << "bits of " << target << " in round " << round;
      else reference = std::move(got);
    }
    // In place: the destination is one of the operands, unless another point of it is read.
    Tensor same(dtype, shape, padding, nullptr);
    std::memcpy(same.ref.data, tx.ref.data, static_cast<std::size_t>(tx.ref.stride[0] * shape[0]) * SizeOf(dtype));
    arguments.inputs[0] = same.ref;
    arguments.outputs = {same.ref};
    options.target.clear();
    try {
      Compile(graph, options)(arguments);
      ExpectSame(expected, same, 1e-5, "in place, round " + std::to_string(round));
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("overlaps"), std::string::npos) << error.what();
    }
  }
  RecordProperty("launches", launches);
}

TEST(Differential, ReductionsOverEverySetOfAxes) {
  std::mt19937 random(7);
  for (const std::vector<index_t>& shape : {std::vector<index_t>{5, 33, 70}, {1, 64, 1}, {4, 1, 131}, {2, 3, 0}}) {
    for (int mask = 1; mask < 8; ++mask) {
      for (const char* reducer : {"sum", "maximum", "minimum", "product"}) {
        const DType dtype = mask % 3 == 0 ? DType::kFloat64 : mask % 3 == 1 ? DType::kFloat32 : DType::kInt32;
        std::vector<int> axes;
        std::vector<index_t> kept;
        for (int d = 0; d < 3; ++d)
          if (mask >> d & 1) axes.push_back(d);
          else kept.push_back(shape[static_cast<std::size_t>(d)]);
        Builder builder("reduced");
        const Value x = builder.Input("x", dtype, PartialShape::dynamic(3));
        const Value half = dtype == DType::kInt32 ? x : x * 0.5;
        builder.Output("r", graph::Reduce(reducer, half, axes));
        const auto graph = builder.Build();
        Tensor tx(dtype, shape, mask % 2, &random);
        Tensor expected(dtype, kept, 0, nullptr);
        Arguments arguments{{tx.ref}, {expected.ref}, {}};
        CompileOptions options;
        options.engine = Engine::kInterpreter;
        Compile(graph, options)(arguments);
        std::unique_ptr<Tensor> reference;
        for (const std::string& target : HostTargets()) {
          options.engine = Engine::kJit;
          options.target = target;
          auto got = std::make_unique<Tensor>(dtype, kept, 0, nullptr);
          arguments.outputs = {got->ref};
          Compile(graph, options)(arguments);
          ExpectSame(expected, *got, 2e-4, std::string(reducer) + " mask " + std::to_string(mask) + " " + target);
          if (reference) EXPECT_TRUE(SameBits(*reference, *got)) << reducer << " mask " << mask << " " << target;
          else reference = std::move(got);
        }
      }
    }
  }
}

TEST(Differential, SystemCompilerAgrees) {
  const auto graph = graph::ParseText(
      "kernel k(x: f32[n, m], b: f32[m]) -> (y: f32[n, m], total: f32[n]) {\n"
      "  t = sigmoid(x) + broadcast<1>(b)\n  total = reduce_with_axis<sum>(t, 1)\n"
      "  y = t / broadcast<0>(total)\n}")[0];
  std::mt19937 random(3);
  Tensor x(DType::kFloat32, {9, 77}, 3, &random), b(DType::kFloat32, {77}, 0, &random);
  std::unique_ptr<Tensor> first[2];
  for (Engine engine : {Engine::kJit, Engine::kSystem}) {
    auto y = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{9, 77}, 0, nullptr);
    auto total = std::make_unique<Tensor>(DType::kFloat32, std::vector<index_t>{9}, 0, nullptr);
    CompileOptions options;
    options.engine = engine;
    Compile(graph, options)({{x.ref, b.ref}, {y->ref, total->ref}, {}});
    if (first[0]) {
      EXPECT_TRUE(SameBits(*first[0], *y));
      EXPECT_TRUE(SameBits(*first[1], *total));
    }
    first[0] = std::move(y);
    first[1] = std::move(total);
  }
}

// Values at which conversions differ: ends of ranges, ties, subnormal halves, what no dtype holds.
double Hard(std::mt19937* random) {
  static constexpr double kHard[] = {
      0.0,    -0.0,     1,         -1,      0.5,  2.5,        3.5,           127,
      128,    129.5,    -128,      -129,    255,  256,        32767,         32768,
      65504,  65519.9,  65520,     -65520,  1e5,  2147483647, 2147483648.0,  -2147483649.0,
      3e9,    9.2e18,   9.3e18,    -9.3e18, 1e30, 1e-8,       2.98e-8,       5.96e-8,
      6.1e-5, 1e-40,    2049,      2051,    257,  259,        1.00048828125, 1.00048828126,
      1e300,  INFINITY, -INFINITY, NAN};
  if ((*random)() % 3 != 0) return kHard[(*random)() % std::size(kHard)];
  return std::uniform_real_distribution<double>(-70000, 70000)(*random);
}

void FillHard(Tensor* tensor, index_t count, std::mt19937* random) {
  SwitchDType(tensor->dtype, [&](auto tag) {
    for (index_t k = 0; k < count; ++k)
      static_cast<decltype(tag)*>(tensor->ref.data)[k] = ConvertTo<decltype(tag)>(Hard(random));
  });
}

// Every dtype converted to every other, by both compilers: the packets share a lane count.
// By themselves, which compilers take for what they know of such quotients.
TEST(Differential, QuotientsOfIntegers) {
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    const auto graph =
        graph::ParseText(detail::Concat("kernel k(x: ", Name(dtype), "[n]) -> (y: ", Name(dtype),
                                        "[n], z: ", Name(dtype), "[n]) {\n  y = x / x\n  z = x / (x - 3)\n}"))[0];
    constexpr index_t kCount = 23;
    Tensor x(dtype, {kCount}, 0, nullptr);
    for (index_t k = 0; k < kCount; ++k) {
      if (dtype == DType::kInt32) static_cast<std::int32_t*>(x.ref.data)[k] = static_cast<std::int32_t>(k - 9);
      else static_cast<std::int64_t*>(x.ref.data)[k] = k - 9;
    }
    for (const Engine engine : {Engine::kJit, Engine::kSystem})
      for (const std::string& target : HostTargets()) {
        CompileOptions options;
        options.engine = engine;
        options.target = target;
        Tensor y(dtype, {kCount}, 0, nullptr), z(dtype, {kCount}, 0, nullptr);
        Compile(graph, options)({{x.ref}, {y.ref, z.ref}, {}});
        for (index_t k = 0; k < kCount; ++k) {
          const index_t a = k - 9, b = a - 3;
          EXPECT_EQ(y.At({k}), a == 0 ? 0 : 1) << a << " of " << Name(dtype) << ", " << target;
          EXPECT_EQ(z.At({k}), b == 0 ? 0 : a / b) << a << " of " << Name(dtype) << ", " << target;
        }
      }
  }
}

TEST(Differential, ConversionsAgree) {
  std::mt19937 random(13);
  constexpr index_t kCount = 331;
  for (const DType from : kAllDTypes) {
    std::string text = "kernel k(x: " + std::string(Name(from)) + "[n]) -> (";
    std::string body;
    for (const DType to : kAllDTypes) {
      const std::string name(Name(to));
      text += (body.empty() ? "" : ", ") + ("to_" + name) + ": " + name + "[n]";
      body += "  to_" + name + " = tcast<" + name + ">(x)\n";
    }
    const auto graph = graph::ParseText(text + ") {\n" + body + "}")[0];
    Tensor x(from, {kCount}, 0, nullptr);
    FillHard(&x, kCount, &random);
    const auto run = [&](const CompileOptions& options) {
      std::vector<std::unique_ptr<Tensor>> out;
      Arguments arguments{{x.ref}, {}, {}};
      for (const DType to : kAllDTypes) {
        out.push_back(std::make_unique<Tensor>(to, std::vector<index_t>{kCount}, 0, nullptr));
        arguments.outputs.push_back(out.back()->ref);
      }
      Compile(graph, options)(arguments);
      return out;
    };
    CompileOptions options;
    options.engine = Engine::kInterpreter;
    const auto expected = run(options);
    for (Engine engine : {Engine::kJit, Engine::kSystem})
      for (const std::string& target : HostTargets()) {
        if (engine == Engine::kSystem && target != "avx2") continue;  // seconds each
        options.engine = engine;
        options.target = target;
        const auto got = run(options);
        for (std::size_t k = 0; k < got.size(); ++k)
          ForEachIndex({kCount}, [&](const std::vector<index_t>& at) {
            const double want = expected[k]->At(at), have = got[k]->At(at);
            EXPECT_TRUE(want == have || (std::isnan(want) && std::isnan(have)))
                << Name(from) << " " << x.At(at) << " to " << Name(kAllDTypes[k]) << ", " << target << ", engine "
                << static_cast<int>(engine) << ": " << have << ", expected " << want;
          });
      }
  }
}

// Narrow dtypes compute wide and are rounded once, at the store; f16 and f32 may meet.
TEST(Differential, NarrowTypesComputeWide) {
  const auto graph = graph::ParseText(
      "kernel k(h: f16[n, m], g: bf16[m], f: f32[n, m], c: bool[n, m], q: i8[n, m], u: u8[n, m], s: i16[n, m], l: i64[n, m])\n"
      "    -> (a: f16[n, m], b: bf16[n, m], d: u8[n, m], e: i16[n, m], i: i64[n, m], o: bool[n, m], t: f16[n], r: i64[m],\n"
      "        p: f16[m, n]) {\n"
      "  a = (h + f) * broadcast<1>(g) - h * 3\n  b = c ? f : h\n  d = q * u + s\n  e = s * s - q\n"
      "  i = l * l / 3 - tcast<i64>(q)\n  o = c && h > f\n  t = reduce_with_axis<sum>(h * 0.001, 1)\n"
      "  r = reduce_with_axis<maximum>(l, 0)\n  p = transpose(h)\n}")[0];
  std::mt19937 random(31);
  constexpr index_t kRows = 5, kColumns = 77;
  std::vector<std::unique_ptr<Tensor>> inputs;
  Arguments arguments;
  for (const auto id : graph->inputs()) {
    const auto& node = graph->node(id);
    const std::vector<index_t> shape =
        node.shape.size() == 1 ? std::vector<index_t>{kColumns} : std::vector<index_t>{kRows, kColumns};
    inputs.push_back(std::make_unique<Tensor>(node.dtype, shape, 0, nullptr));
    SwitchDType(node.dtype, [&](auto tag) {
      for (index_t k = 0; k < (node.shape.size() == 1 ? 1 : kRows) * kColumns; ++k)
        static_cast<decltype(tag)*>(inputs.back()->ref.data)[k] =
            ConvertTo<decltype(tag)>(std::uniform_real_distribution<double>(-200, 200)(random));
    });
    arguments.inputs.push_back(inputs.back()->ref);
  }
  std::vector<std::unique_ptr<Tensor>> expected;
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  const auto run = [&] {
    std::vector<std::unique_ptr<Tensor>> out;
    arguments.outputs.clear();
    for (const auto& output : graph->outputs()) {
      const auto& node = graph->node(output.node);
      std::vector<index_t> shape;
      if (output.name == "t") shape = {kRows};
      else if (output.name == "r") shape = {kColumns};
      else if (output.name == "p") shape = {kColumns, kRows};
      else shape = {kRows, kColumns};
      out.push_back(std::make_unique<Tensor>(node.dtype, shape, 0, nullptr));
      arguments.outputs.push_back(out.back()->ref);
    }
    Compile(graph, options)(arguments);
    return out;
  };
  expected = run();
  options.engine = Engine::kJit;
  for (const std::string& target : HostTargets()) {
    options.target = target;
    const auto got = run();
    for (std::size_t k = 0; k < got.size(); ++k)
      EXPECT_TRUE(SameBits(*expected[k], *got[k])) << "output " << graph->outputs()[k].name << ", " << target;
  }
  // One rounding: what f32 gives, rounded.
  const auto* h = static_cast<const half_t*>(inputs[0]->ref.data);
  const auto* g = static_cast<const bf16_t*>(inputs[1]->ref.data);
  const auto* f = static_cast<const float*>(inputs[2]->ref.data);
  const auto* a = static_cast<const half_t*>(expected[0]->ref.data);
  for (index_t k = 0; k < kColumns; ++k) {
    const float wide = (h[k] + f[k]) * g[k];
    const half_t once = wide - h[k] * 3.0f;
    EXPECT_EQ(a[k].bits(), once.bits()) << k;
  }
}

// Rows that end before, at and after a group of packets, with special values on both sides of its end.
TEST(Differential, PolynomialsAtEveryRowLength) {
  const double nan = std::nan(""), infinity = INFINITY;
  const double special[] = {nan, infinity, -infinity, 0.0, -0.0, 1e-40, -1e-40, 88.9, -103.9, 709.9, -745.2, 1.0, 3e38};
  std::mt19937 random(7);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64})
    for (const char* function : {"exp",  "expm1", "log", "log1p", "tanh",     "softplus", "sigmoid", "silu", "mish",
                                 "sin",  "cos",   "tan", "asin",  "acos",     "atan",     "exp2",    "log2", "sinh",
                                 "cosh", "cbrt",  "erf", "erfc",  "gelu_erf", "erfinv",   "round"}) {
      const std::string type(Name(dtype));
      const auto graph = graph::ParseText("kernel k(x: " + type + "[n, m], b: " + type + "[m]) -> (y: " + type +
                                          "[n, m]) {\n  y = " + function + "(x + broadcast<1>(b))\n}")[0];
      for (const index_t m : {1, 15, 16, 17, 31, 32, 63, 64, 65, 80, 129}) {
        Tensor x(dtype, {3, m}, 3, &random), b(dtype, {m}, 0, &random);
        SwitchDType(dtype, [&](auto tag) {
          for (index_t k = 0; k < m; ++k) static_cast<decltype(tag)*>(b.ref.data)[k] = 0;
          auto* p = static_cast<decltype(tag)*>(x.ref.data);
          for (std::size_t k = 0; k < std::size(special); ++k) {
            p[static_cast<index_t>(k) % m] = static_cast<decltype(tag)>(special[k]);
            p[x.ref.stride[0] + m - 1 - static_cast<index_t>(k) % m] = static_cast<decltype(tag)>(special[k]);
          }
        });
        CompileOptions options;
        options.target = "plain";  // one element at a time
        Tensor scalars(dtype, {3, m}, 0, nullptr);
        Compile(graph, options)({{x.ref, b.ref}, {scalars.ref}, {}});
        for (const std::string& target : HostTargets()) {
          options.target = target;
          Tensor y(dtype, {3, m}, 0, nullptr);
          Compile(graph, options)({{x.ref, b.ref}, {y.ref}, {}});
          EXPECT_TRUE(SameBits(scalars, y)) << function << " " << type << " of " << m << ", " << target;
        }
      }
    }
}

// A conversion to a narrower float and back loses digits, whatever the compiler thinks.
TEST(Differential, NarrowingAndBackLosesDigits) {
  const auto graph = graph::ParseText("kernel k(x: f64[n]) -> (y: f64[n]) {\n  y = tcast<f64>(tcast<f32>(x))\n}")[0];
  Tensor x(DType::kFloat64, {77}, 0, nullptr), y(DType::kFloat64, {77}, 0, nullptr);
  for (index_t k = 0; k < 77; ++k) static_cast<double*>(x.ref.data)[k] = 0.1 * static_cast<double>(k);
  CompileOptions options;
  for (Engine engine : {Engine::kInterpreter, Engine::kJit, Engine::kSystem}) {
    options.engine = engine;
    Compile(graph, options)({{x.ref}, {y.ref}, {}});
    for (index_t k = 0; k < 77; ++k)
      EXPECT_EQ(y.At({k}), static_cast<double>(static_cast<float>(x.At({k}))))
          << k << ", engine " << static_cast<int>(engine);
  }
}

TEST(Differential, TransposesAndDot) {
  const auto graph = graph::ParseText(
      "kernel k(a: f32[n, k], b: f32[m, k], c: f32[m, n]) -> (y: f32[n, m]) {\n"
      "  y = relu(dot(a, b.T) * 2 + c.T)\n}")[0];
  std::mt19937 random(5);
  Tensor a(DType::kFloat32, {37, 20}, 2, &random), b(DType::kFloat32, {65, 20}, 0, &random),
      c(DType::kFloat32, {65, 37}, 1, &random), expected(DType::kFloat32, {37, 65}, 0, nullptr);
  Arguments arguments{{a.ref, b.ref, c.ref}, {expected.ref}, {}};
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  Compile(graph, options)(arguments);
  for (const std::string& target : HostTargets()) {
    options.engine = Engine::kJit;
    options.target = target;
    Tensor y(DType::kFloat32, {37, 65}, 5, nullptr);
    arguments.outputs = {y.ref};
    Compile(graph, options)(arguments);
    ExpectSame(expected, y, 1e-4, target);
  }
}

// Index maps that walk evenly through memory are loads: of every dtype, whole and in part, from memory whose
// last dimension lies side by side and from a transposed view, where it does not.
TEST(Differential, EvenWalks) {
  const char* const kMaps[] = {"slice(x, 1, 3, 40)",
                               "pad(x, 2, 3)",
                               "pad(x, 0, 19)",
                               "flip(x, 1)",
                               "concat(x, x, 1)",
                               "pool<sum>(x, 2, 3, 2, 1)",
                               "pool<maximum>(x, 3, 3, 2, 2)",
                               "crop(x, 2, 1, 5, 40)",
                               "slice_ex(x, 0, 1, 9, 44, 1, 3)",
                               "crop(pad(x, 1, 1), 0, 2, 9, 47) * 2 + x",
                               "pad(tcast<TYPE>(x * 2), 2, 3)",
                               "slice_ex(x, 0, 0, 9, 46, 1, 2)",
                               "upsampling_nearest(x, 2)",
                               "upsampling_nearest(flip(x, 0), 3)",
                               "upsampling_nearest(x, 2) + reshape(slice(pad(x, 14, 0), 0, 0, 36), 18, 94)",
                               "concat(concat(x, flip(x * 2, 1), 1), concat(x, x, 1), 1)",
                               "reshape(pad(x, 0, 1), 21, 21)",
                               "unpack_patch2col(reshape(x, 1, 1, 9, 47), 3, 3, 1, 2, 1, 1)",
                               "unpack_patch2col(pad(reshape(x, 1, 3, 3, 47), 2, 1), 2, 3, 1, 1, 1, 2)",
                               "unpool<maximum>(x, pool<maximum>(x, 3, 2, 3, 2), pool<sum>(x, 3, 2, 3, 2), 3, 2, 3, 2)",
                               "unpool<sum>(x, pool<sum>(x, 2, 3, 1, 2), pool<maximum>(x, 2, 3, 1, 2), 2, 3, 1, 2)"};
  std::mt19937 random(8);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kUInt8, DType::kFloat16})
    for (std::string map : kMaps) {
      const std::string type(Name(dtype));
      if (const std::size_t at = map.find("TYPE"); at != std::string::npos) map.replace(at, 4, type);
      const auto graph =
          graph::ParseText("kernel k(x: " + type + "[9, 47]) -> (y: " + type + "[p, q]) {\n  y = " + map + "\n}")[0];
      for (const bool transposed : {false, true}) {
        Tensor x(dtype, transposed ? std::vector<index_t>{47, 9} : std::vector<index_t>{9, 47}, transposed ? 0 : 3,
                 &random);
        TensorRef view = x.ref;
        if (transposed) {
          std::swap(view.shape[0], view.shape[1]);
          std::swap(view.stride[0], view.stride[1]);
        }
        CompileOptions options;
        const auto run = [&](Engine engine, const std::string& target) {
          options.engine = engine;
          options.target = target;
          const Function function = Compile(graph, options);
          auto y = std::make_unique<Tensor>(dtype, runtime::OutputShapes(function.program(), {view})[0], 1, nullptr);
          function({{view}, {y->ref}, {}});
          return y;
        };
        const auto plain = run(Engine::kJit, "plain");
        const std::string what = map + " of " + type + (transposed ? ", transposed, " : ", ");
        ExpectSame(*run(Engine::kInterpreter, ""), *plain, 1e-6, what + "interpreter");
        for (const std::string& target : HostTargets())
          EXPECT_TRUE(SameBits(*plain, *run(Engine::kJit, target))) << what << target;
        if (dtype != DType::kFloat32) continue;
        EXPECT_TRUE(SameBits(*plain, *run(Engine::kSystem, ""))) << what << "system";
      }
    }
}

// Axes before the vector axis are reduced row by row, a block of columns at a time: more columns than a block has,
// columns and rows that do not fill packets and steps, several phases, axes around them.
TEST(Differential, BlocksOfColumns) {
  const char* const kKernels[] = {
      "kernel k(x: TYPE[n, m]) -> (y: TYPE[m], z: TYPE[m]) {\n  y = sum_rows(x) * 2\n  z = reduce_with_axis<maximum>(x, 0)\n}",
      "kernel k(x: TYPE[n, m]) -> (y: TYPE[m], z: TYPE[n, m]) {\n  y = reduce_with_axis<mean>(x, 0)\n  z = x - broadcast<1>(y)\n}",
      "kernel k(x: TYPE[n, m]) -> (y: TYPE[m], z: TYPE[n, m]) {\n  y = reduce_with_axis<minimum>(x, 0)\n"
      "  z = tcast<TYPE>(exp(tcast<f64>(x - broadcast<1>(y)) * -0.1)) * broadcast<1>(sum_rows(x))\n}",
      "kernel k(x: TYPE[n, m]) -> (y: TYPE[m], z: TYPE[n, m]) {\n  y = sum_rows(select(x > 0, x, 1))\n  z = x\n}"};
  std::mt19937 random(10);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kFloat16})
    for (std::string text : kKernels) {
      const std::string type(Name(dtype));
      for (std::size_t at; (at = text.find("TYPE")) != std::string::npos;) text.replace(at, 4, type);
      const auto graph = graph::ParseText(text)[0];
      for (const std::vector<index_t>& shape :
           {std::vector<index_t>{45, 4211}, {33, 1024}, {8, 19}, {3, 70}, {0, 33}}) {
        Tensor x(dtype, shape, 3, &random);
        CompileOptions options;
        const auto run = [&](Engine engine, const std::string& target, int threads) {
          options.engine = engine;
          options.target = target;
          const Function function = Compile(graph, options);
          const auto shapes = runtime::OutputShapes(function.program(), {x.ref});
          auto y = std::make_unique<Tensor>(dtype, shapes[0], 0, nullptr),
               z = std::make_unique<Tensor>(dtype, shapes[1], 1, nullptr);
          runtime::RunOptions how;
          how.threads = threads;
          function({{x.ref}, {y->ref, z->ref}, {}}, how);
          return std::pair(std::move(y), std::move(z));
        };
        const auto plain = run(Engine::kJit, "plain", 1), interpreted = run(Engine::kInterpreter, "", 1);
        const double tolerance = dtype == DType::kFloat16 ? 2e-2 : 1e-4;
        ExpectSame(*interpreted.first, *plain.first, tolerance, text);
        ExpectSame(*interpreted.second, *plain.second, tolerance, text);
        for (const std::string& target : HostTargets())
          for (const int threads : {1, 3}) {
            const auto got = run(Engine::kJit, target, threads);
            EXPECT_TRUE(SameBits(*plain.first, *got.first) && SameBits(*plain.second, *got.second))
                << text << target << ", " << threads;
          }
      }
    }
}

// Tiles that are transposed in registers, at extents around their size, along every pair of axes, of memory
// that is padded, and of a view whose rows do not lie side by side.
TEST(Differential, TransposedTiles) {
  std::mt19937 random(9);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kFloat16})
    for (const char* order : {"2, 1, 0", "0, 2, 1", "1, 2, 0", "2, 0, 1"})
      for (const index_t n : {1, 7, 16, 33}) {
        const std::string type(Name(dtype));
        const auto graph = graph::ParseText("kernel k(a: " + type + "[?, ?, ?], b: " + type + "[s, t, u], c: " + type +
                                            "[u]) -> (y: " + type + "[s, t, u]) {\n  y = transpose<" + order +
                                            ">(a) * b - broadcast<2>(c)\n}")[0];
        const std::vector<index_t> shape = {n, 5, n == 33 ? 18 : 17};
        std::vector<index_t> turned(3);
        for (std::size_t d = 0; d < 3; ++d) turned[d] = shape[static_cast<std::size_t>(order[3 * d] - '0')];
        for (const bool reversed : {false, true}) {
          Tensor a(dtype, reversed ? std::vector<index_t>{shape[2], shape[1], shape[0]} : shape, reversed ? 0 : 2,
                   &random),
              b(dtype, turned, 1, &random), c(dtype, {turned[2]}, 0, &random);
          TensorRef view = a.ref;
          if (reversed) {
            std::reverse(view.shape.begin(), view.shape.end());
            std::reverse(view.stride.begin(), view.stride.end());
          }
          CompileOptions options;
          options.engine = Engine::kInterpreter;
          Tensor expected(dtype, turned, 0, nullptr), y(dtype, turned, 3, nullptr);
          Compile(graph, options)({{view, b.ref, c.ref}, {expected.ref}, {}});
          options.engine = Engine::kJit;
          for (const std::string& target : HostTargets()) {
            options.target = target;
            Compile(graph, options)({{view, b.ref, c.ref}, {y.ref}, {}});
            EXPECT_TRUE(SameBits(expected, y))
                << type << " " << order << " n " << n << (reversed ? " reversed " : " ") << target;
          }
        }
      }
}

// Blocks of such tiles, whole ones and those at the edges, as threads share them out.
TEST(Differential, BlocksOfTransposedTiles) {
  std::mt19937 random(10);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64})
    for (const index_t rows : {1, 15, 130, 300})
      for (const index_t columns : {1, 24, 143, 260}) {
        const std::string type(Name(dtype));
        const auto graph = graph::ParseText("kernel k(a: " + type + "[m, n], b: " + type + "[n, m]) -> (y: " + type +
                                            "[n, m]) {\n  y = a.T * 2 - b\n}")[0];
        Tensor a(dtype, {columns, rows}, 0, &random), b(dtype, {rows, columns}, 0, &random);
        CompileOptions options;
        options.engine = Engine::kInterpreter;
        Tensor expected(dtype, {rows, columns}, 0, nullptr), y(dtype, {rows, columns}, 0, nullptr);
        Compile(graph, options)({{a.ref, b.ref}, {expected.ref}, {}});
        options.engine = Engine::kJit;
        for (const std::string& target : HostTargets())
          for (const int threads : {1, 3}) {
            options.target = target;
            Compile(graph, options)({{a.ref, b.ref}, {y.ref}, {}}, {threads});
            EXPECT_TRUE(SameBits(expected, y))
                << type << " " << rows << " x " << columns << " " << target << ", " << threads;
          }
      }
}

// Batches of matrices, of padded memory, transposed for nothing and by a kernel, against the definition.
TEST(Differential, BatchDot) {
  const auto graph = graph::ParseText(
      "kernel k(a: f32[g, k, n], b: f32[k, g, m], c: f32[m]) -> (y: f32[g, n, m]) {\n"
      "  y = batch_dot(transpose<0, 2, 1>(a), transpose<1, 0, 2>(b)) + broadcast<2>(c)\n}")[0];
  std::mt19937 random(6);
  Tensor a(DType::kFloat32, {3, 20, 7}, 2, &random), b(DType::kFloat32, {20, 3, 9}, 1, &random),
      c(DType::kFloat32, {9}, 0, &random);
  CompileOptions options;
  const auto check = [&](const std::string& what) {
    Tensor y(DType::kFloat32, {3, 7, 9}, 5, nullptr);
    Compile(graph, options)({{a.ref, b.ref, c.ref}, {y.ref}, {}});
    ForEachIndex({3, 7, 9}, [&](const std::vector<index_t>& i) {
      double sum = c.At({i[2]});
      for (index_t k = 0; k < 20; ++k) sum += a.At({i[0], k, i[1]}) * b.At({k, i[0], i[2]});
      EXPECT_NEAR(y.At(i), sum, 1e-4) << what;
    });
  };
  options.engine = Engine::kInterpreter;
  check("interpreter");
  options.engine = Engine::kJit;
  for (const std::string& target : HostTargets()) {
    options.target = target;
    check(target);
  }
}

// Memory without unit stride: a transposed view, a reversed one, a broadcast one.
TEST(Differential, AnyStrides) {
  Builder builder("strided");
  const Value x = builder.Input("x", DType::kFloat32, PartialShape::dynamic(2));
  const Value y = builder.Input("y", DType::kFloat32, PartialShape::dynamic(2));
  builder.Output("z", x * 2.0 + y);
  const Function function = Compile(builder.Build());
  std::mt19937 random(11);
  Tensor x_store(DType::kFloat32, {50, 40}, 0, &random), y_store(DType::kFloat32, {40}, 0, &random),
      z(DType::kFloat32, {40, 50}, 0, nullptr);
  TensorRef x_view = x_store.ref, y_view = y_store.ref;
  x_view.shape = {40, 50};
  x_view.stride = {1, 40};
  y_view.shape = {40, 50};
  y_view.stride = {1, 0};
  function({{x_view, y_view}, {z.ref}, {}});
  ForEachIndex({40, 50}, [&](const std::vector<index_t>& i) {
    EXPECT_FLOAT_EQ(static_cast<float>(z.At(i)), static_cast<float>(x_store.At({i[1], i[0]}) * 2 + y_store.At({i[0]})));
  });
}

}  // namespace
}  // namespace umbra

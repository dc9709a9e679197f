// Generated CUDA kernels, run by the emulator, against the interpreter.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstring>
#include <sstream>

#include "compiler/graph/graph.h"
#include "runtime/positions.h"
#include "tests/support/drawn.h"
#include "tests/support/emulated.h"
#include "tests/support/map_texts.h"
#include "umbra/compile.h"

namespace umbra {
namespace {

using namespace drawn;  // NOLINT: the test's own words

// Calls whose kernels are compiled together: what each expects is computed by the interpreter.
class Calls {
 public:
  struct Shape {
    std::vector<index_t> extents;
    index_t padding = 0;
  };

  /// `change`: makes other variants of those that launches ask for.
  explicit Calls(void (*change)(runtime::CudaVariant*) = nullptr) : change_(change) {}

  /// `text` on operands of these shapes, in the order of the graph's inputs.
  void Add(const std::string& text, const std::vector<Shape>& inputs, double tolerance = 1e-5, runtime::CudaLimits limits = {}) {
    Add(graph::ParseText(text)[0], inputs, tolerance, limits);
  }

  /// The same with the first input as the output.
  void AddInPlace(const std::string& text, const std::vector<Shape>& inputs, double tolerance = 1e-5) {
    in_place_ = true;
    Add(text, inputs, tolerance);
    in_place_ = false;
  }

  void Add(const std::shared_ptr<const graph::Graph>& graph, const std::vector<Shape>& shapes, double tolerance,
           runtime::CudaLimits limits = {}) {
    auto one = std::make_unique<One>();
    one->what = graph::Print(*graph);
    one->tolerance = tolerance;
    runtime::Arguments arguments;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const DType type = graph->node(graph->inputs()[k]).dtype;
      one->operands.push_back(std::make_unique<Tensor>(type, shapes[k].extents, shapes[k].padding, &random_));
      arguments.inputs.push_back(one->operands.back()->ref);
    }
    for (int id : graph->scalars()) arguments.scalars.push_back(ScalarOf(graph->node(id).dtype));
    CompileOptions options;
    options.engine = Engine::kInterpreter;
    const Function function = Compile(graph, options);
    const auto result_shapes = runtime::OutputShapes(function.program(), arguments.inputs);
    runtime::Arguments own = arguments;
    for (std::size_t k = 0; k < result_shapes.size(); ++k) {
      const DType type = graph->node(graph->outputs()[k].node).dtype;
      const index_t padding = shapes.empty() ? 0 : shapes[0].padding;
      one->expected.push_back(std::make_unique<Tensor>(type, result_shapes[k], padding, nullptr));
      one->got.push_back(std::make_unique<Tensor>(type, result_shapes[k], padding, nullptr));
      arguments.outputs.push_back(one->expected.back()->ref);
      own.outputs.push_back(one->got.back()->ref);
    }
    function(arguments);
    if (in_place_) {
      own.inputs[0] = own.outputs[0];
      one->in_place = true;
    }
    one->call = std::make_unique<emulated::Call>(&library_, *graph, own, limits, change_);
    calls_.push_back(std::move(one));
  }

  const std::vector<runtime::CudaLaunch>& launches() const { return calls_.back()->call->launches(); }

  void Run() {
    library_.Build();
    for (const auto& one : calls_)
      for (const bool reverse : {false, true}) {
        for (auto& tensor : one->got) std::fill(tensor->bytes.begin(), tensor->bytes.end(), 0x5a);
        if (one->in_place) {
          Tensor& first = *one->got[0];
          const Tensor& from = *one->operands[0];
          const std::size_t size = static_cast<std::size_t>(first.ref.shape[0] * first.ref.stride[0]) * SizeOf(first.dtype);
          std::memcpy(first.ref.data, from.ref.data, size);
        }
        one->call->Run(reverse);
        for (std::size_t k = 0; k < one->got.size(); ++k) {
          ExpectSame(*one->expected[k], *one->got[k], one->tolerance, one->what + (reverse ? " in reverse" : ""));
          ExpectUntouched(*one->got[k], one->what);
        }
      }
  }

 private:
  struct One {
    std::string what;
    double tolerance;
    bool in_place = false;
    std::vector<std::unique_ptr<Tensor>> operands, expected, got;
    std::unique_ptr<emulated::Call> call;
  };

  static umbra_scalar ScalarOf(DType type) {
    umbra_scalar scalar{};
    if (type == DType::kFloat32) scalar.f32 = 0.75f;
    else if (type == DType::kFloat64) scalar.f64 = 0.75;
    else if (type == DType::kInt64) scalar.i64 = 3;
    else scalar.i32 = 3;
    return scalar;
  }

  // Nothing is written between the rows and around the tensor.
  static void ExpectUntouched(const Tensor& tensor, const std::string& what) {
    std::vector<bool> own(tensor.bytes.size());
    const auto size = static_cast<index_t>(SizeOf(tensor.dtype));
    const index_t base = static_cast<const char*>(tensor.ref.data) - tensor.bytes.data();
    ForEachIndex(tensor.ref.shape, [&](const std::vector<index_t>& index) {
      index_t at = base;
      for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * tensor.ref.stride[d] * size;
      for (index_t k = 0; k < size; ++k) own[static_cast<std::size_t>(at + k)] = true;
    });
    for (std::size_t k = 0; k < own.size(); ++k)
      if (!own[k] && tensor.bytes[k] != 0x5a) {
        ADD_FAILURE() << "byte " << static_cast<index_t>(k) - base << " outside of the tensor is written: " << what;
        return;
      }
  }

  bool in_place_ = false;
  void (*change_)(runtime::CudaVariant*) = nullptr;
  std::mt19937 random_{20261121};
  emulated::Library library_;
  std::vector<std::unique_ptr<One>> calls_;
};

TEST(CudaEmulated, Elements) {
  Calls calls;
  const std::string triad = "kernel triad(a: f32[n], b: f32[n], s: f32) -> (y: f32[n]) { y = a * s + b }";
  for (const index_t n : {1, 3, 31, 4096, 20003}) calls.Add(triad, {{{n}}, {{n}}});
  const std::string gelu = "kernel bias_gelu(x: f32[n, m], bias: f32[m]) -> (y: f32[n, m]) { y = gelu(x + broadcast<1>(bias)) }";
  for (const index_t m : {1, 7, 64, 131, 1030})
    for (const index_t padding : {0, 4, 1}) calls.Add(gelu, {{{33, m}, padding}, {{m}}});
  calls.Run();
}

// To the last bit; 0 and subnormal numbers are among the results, and NaN. Where an argument may be above 0 it is also large.
TEST(CudaEmulated, ExponentialsOfNothingAboveZero) {
  Calls calls;
  for (const std::string type : {"f32", "f64"}) {
    const std::string of = "(x: " + type + "[n, m]) -> (y: " + type + "[n, m]) {\n  z = x * x * x * x * x * x * x\n  ";
    for (const char* y : {"exp(-abs(z))", "exp(-(z * z))", "exp(minimum(log(z), -0.5))", "exp(z * -abs(x))", "exp(z * abs(x))", "exp(-z)", "exp(minimum(z, 1))",
                          "exp(z - broadcast<0>(reduce_with_axis<maximum>(z, 1)))", "exp(z - broadcast<0>(reduce_with_axis<maximum>(-z, 1)))",
                          "exp(x * 20 - broadcast<0>(reduce_with_axis<maximum>(x, 1)))", "exp(z - broadcast<0>(reduce_with_axis<minimum>(z, 1)))"})
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
    calls.Add("kernel share(x: f32[n, m], w: f32[n, m]) -> (y: f32[n, m]) {\n  e = exp(x) * w\n  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}",
              {{{9, m}}, {{9, m}}}, 1e-4);
  calls.Add("kernel far(x: f32[n, m]) -> (t: f32[n]) {\n  t = reduce_with_axis<sum>(exp(x), 1)\n}", {{{3, 100004}}}, 1e-4);
  EXPECT_EQ(calls.launches()[0].variant.form, runtime::CudaForm::kRowSplit);
  // Few long rows, and all of a tensor.
  const std::string total = "kernel total(x: f32[n, m]) -> (t: f32[n], u: f32[n]) {\n  t = reduce_with_axis<sum>(x * 0.5, 1)\n  u = reduce_with_axis<maximum>(x, 1)\n}";
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
      calls.Add("kernel k(a: f32[?, ?, ?], b: f32[s, t, u], c: f32[u]) -> (y: f32[s, t, u]) {\n  y = transpose<" + std::string(order) +
                    ">(a) * b - broadcast<2>(c)\n}",
                {{shape, n % 3}, {turned, 1}, {{turned[2]}}});
    }
  calls.Add("kernel k(a: f32[p, q]) -> (y: f32[s, t]) {\n  y = a.T * 2\n}", {{{100, 70}}});
  EXPECT_EQ(calls.launches()[0].variant.form, runtime::CudaForm::kTiles);
  // Narrow elements go by twos where their lines are even, from addresses that are.
  for (const char* type : {"f16", "bf16", "u8", "bool"})
    for (const auto& [n, m] : {std::pair<index_t, index_t>{64, 64}, {2, 130}, {70, 38}, {33, 70}})
      for (const index_t padding : {0, 1, 2}) {
        const std::string t = type, sum = t == "bool" ? "a.T && b && !broadcast<0>(c)" : "a.T * 2 + b - broadcast<0>(c)";
        calls.Add("kernel k(a: " + t + "[p, q], b: " + t + "[q, p], c: " + t + "[q]) -> (y: " + t + "[q, p]) {\n  y = " + sum + "\n}",
                  {{{n, m}, padding}, {{m, n}, padding}, {{m}}}, 1e-2);
        EXPECT_EQ(calls.launches()[0].variant.vector, n % 2 == 0 && padding % 2 == 0) << type << n << " " << padding;
      }
  calls.Add("kernel k(a: f16[r, q, p], b: u8[p]) -> (y: f16[r, p, q]) {\n  y = transpose<0, 2, 1>(a) * tcast<f16>(broadcast<1>(b))\n}",
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

// The emulator finds what goes wrong on a GPU: a barrier left out, threads that wait for different things.
// What ahead of time stands for variants that are not compiled gives what they give.
TEST(CudaEmulated, GeneralVariants) {
  Calls calls(emulated::General);
  const std::string gelu = "kernel bias_gelu(x: f32[n, m], bias: f32[m]) -> (y: f32[n, m]) { y = gelu(x + broadcast<1>(bias)) }";
  const std::string turned = "kernel turned(a: f32[p, q]) -> (y: f32[q, p]) { y = a.T * 2 }";
  const std::string softmax =
      "kernel softmax(x: f32[n, m]) -> (y: f32[n, m]) {\n  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))\n"
      "  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}";
  const std::string sums = "kernel sums(x: f32[n, m]) -> (s: f32[n], t: f32[m]) {\n  s = reduce_with_axis<sum>(x, 1)\n  t = reduce_with_axis<sum>(x, 0)\n}";
  for (const index_t padding : {0, 1}) {
    for (const index_t m : {7, 64}) calls.Add(gelu, {{{33, m}, padding}, {{m}}});
    calls.Add(turned, {{{70, 33}, padding}});
    for (const index_t m : {64, 1100}) calls.Add(softmax, {{{9, m}, padding}});
    for (const index_t m : {3, 40, 20000}) calls.Add(sums, {{{m, 40}, padding}}, 1e-3), calls.Add(sums, {{{3, m}, padding}}, 1e-3);
  }
  calls.Add(softmax, {{{700, 1100}}}, 1e-5, {4096});
  calls.Run();
}

TEST(CudaEmulator, SeesMissingBarriers) {
  const plan::Plan plan = Lower(*graph::ParseText("kernel k(a: f32[p, q]) -> (y: f32[q, p]) {\n  y = a.T * 2\n}")[0]);
  const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
  std::mt19937 random(1);
  Tensor a(DType::kFloat32, {64, 64}, 0, &random);
  const std::string barrier = "__syncthreads();";
  for (const char* instead : {"__syncthreads();", "", "if (threadIdx.y == 0) __syncthreads(); else __syncwarp();"}) {
    Tensor y(DType::kFloat32, {64, 64}, 0, nullptr);
    const std::vector<runtime::TensorRef> buffers = {a.ref, y.ref};
    const auto launch = runtime::PlanCudaLaunch(kernel.signature, codegen::ScheduleForCuda(plan, kernel), buffers, {64, 64}, {});
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
      said += library.Try(number, launch, runtime::CudaArguments(launch, {a.ref.data, y.ref.data}, {}, nullptr), reverse);
      ForEachIndex({64, 64}, [&](const std::vector<index_t>& i) { wrong += y.At(i) != a.At({i[1], i[0]}) * 2; });
    }
    EXPECT_EQ(wrong > 0 || !said.empty(), instead != barrier) << "with '" << instead << "': " << said;
  }
}

// Memory without unit stride: a transposed view, a broadcast one, a reversed one.
TEST(CudaEmulated, AnyStrides) {
  const auto graph = graph::ParseText("kernel k(x: f32[n, m], y: f32[n, m]) -> (z: f32[n, m], s: f32[n], c: f32[m]) {\n"
                                      "  z = x * 2 + y\n  s = reduce_with_axis<sum>(x, 1)\n  c = reduce_with_axis<maximum>(y, 0)\n}")[0];
  std::mt19937 random(11);
  Tensor xs(DType::kFloat32, {50, 40}, 0, &random), ys(DType::kFloat32, {50}, 0, &random);
  Tensor z(DType::kFloat32, {40, 50}, 0, nullptr), s(DType::kFloat32, {40}, 0, nullptr), c(DType::kFloat32, {50}, 0, nullptr);
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
    const auto graph = graph::ParseText("kernel k(a: " + t + "[n]) -> (y: " + t + "[n], z: " + t + "[n]) {\n"
                                        "  y = tcast<" + t + ">(select(a < a + 1, 1, 2))\n"
                                        "  z = tcast<" + t + ">(select(-(a * a) < 0 - a * a - 1, 1, 2))\n}")[0];
    std::mt19937 random(12);
    Tensor a(type, {100}, 0, &random), y(type, {100}, 0, nullptr), z(type, {100}, 0, nullptr);
    const std::uint64_t large = type == DType::kInt32 ? 0x7fffffff : 0x7fffffffffffffff;
    for (std::size_t i = 0; i < 100; ++i) std::memcpy(static_cast<char*>(a.ref.data) + i * SizeOf(type), &large, SizeOf(type));
    emulated::Library library;
    emulated::Call call(&library, *graph, {{a.ref}, {y.ref, z.ref}, {}});
    library.Build();
    call.Run(false);
    for (index_t i = 0; i < 100; ++i) EXPECT_EQ(y.At({i}), 2) << t;
    for (index_t i = 0; i < 100; ++i) EXPECT_EQ(z.At({i}), 2) << t;
  }
}

// An operand that is read across its lines lies side by side where its lines have one element, or lie apart; and one that moves
// along what is reduced, of which there is one.
TEST(CudaEmulated, PacketsBesidePositions) {
  Calls calls;
  for (const index_t padding : {0, 3, 7})
    calls.Add("kernel k(b: f32[?, ?], d: f32[?]) -> (o: f32[1, 64]) { o = b.T + repmat(flip(d, 0), 1) }", {{{64, 1}, padding}, {{64}}});
  for (const std::string type : {"f32", "f64", "i64", "bf16"})
    for (const char* reducer : {"maximum", "sum"}) {
      const std::string of = ": " + type + "[4, 1, 16]";
      calls.Add("kernel k(a" + of + ", b" + of + ") -> (o: " + type + "[4, 16]) { o = reduce_with_axis<" + reducer + ">(flip(a, 2) + b, 1) }", {{{4, 1, 16}}, {{4, 1, 16}}}, 1e-2);
    }
  calls.Run();
}

// Integers wrap, also beside positions, and in sums.
TEST(CudaEmulated, IntegersWrap) {
  const auto graph = graph::ParseText("kernel k(a: i64[n, m], c: i64[n, p]) -> (o: bool[n, p], s: i64[n], q: i64[n]) {\n  y = concat(a, a, 1) + flip(c, 0)\n"
                                      "  o = y + 1 > y\n  s = reduce_with_axis<sum>(y, 1)\n  q = reduce_with_axis<product>(y, 1)\n}")[0];
  const plan::Plan plan = Lower(*graph, true);
  for (const auto& step : plan.steps)
    if (const auto* kernel = std::get_if<plan::Kernel>(&step))
      for (const bool wide : {false, true}) {
        runtime::CudaVariant variant;
        const auto schedule = codegen::ScheduleForCuda(plan, *kernel);
        variant.form = schedule.reduces ? runtime::CudaForm::kRowPerWarp : runtime::CudaForm::kElements;
        variant.wide_index = wide;
        const std::string text = codegen::GenerateCuda(plan, *kernel, variant).kernel;
        EXPECT_EQ(text.find("y + 1LL"), std::string::npos) << text;
      }
}

// Rows that lie so far apart that offsets do not fit 32 bits, where positions do; memory is there where elements are.
TEST(CudaEmulated, OffsetsBeyond32Bits) {
  constexpr index_t kRows = 4, kColumns = 40, kPitch = index_t{1} << 30;
  constexpr std::size_t kBytes = static_cast<std::size_t>(kRows * kPitch) * sizeof(float);
  for (const char* text : {"kernel k(x: f32[n, m]) -> (y: f32[n, m]) { y = flip(x, 0) * 2 }", "kernel k(x: f32[n, m]) -> (y: f32[n, m]) { y = flip(flip(x, 0), 1) * 2 }"}) {
    std::vector<runtime::TensorRef> far;
    for (int k = 0; k < 2; ++k) {
      void* const space = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      ASSERT_NE(space, MAP_FAILED);
      for (index_t row = 0; row < kRows; ++row) {
        float* const begin = static_cast<float*>(space) + row * kPitch;
        ASSERT_EQ(mprotect(begin, 4096, PROT_READ | PROT_WRITE), 0);
        for (index_t i = 0; i < kColumns; ++i) begin[i] = static_cast<float>(row * 100 + i);
      }
      far.push_back(runtime::TensorRef::Dense(space, DType::kFloat32, {kRows, kColumns}));
      far.back().stride[0] = kPitch;
    }
    const auto graph = graph::ParseText(text)[0];
    emulated::Library library;
    emulated::Call call(&library, *graph, {{far[0]}, {far[1]}, {}});
    ASSERT_EQ(call.launches().size(), 1u);
    EXPECT_TRUE(call.launches()[0].variant.wide_offset && !call.launches()[0].variant.wide_index) << text;
    library.Build();
    call.Run(false);
    const bool turned = std::string(text).find(", 1)") != std::string::npos;
    for (index_t row = 0; row < kRows; ++row)
      for (index_t i = 0; i < kColumns; ++i)
        ASSERT_EQ(static_cast<float*>(far[1].data)[row * kPitch + i], static_cast<float>(2 * ((kRows - 1 - row) * 100 + (turned ? kColumns - 1 - i : i)))) << row << " " << i;
    for (const runtime::TensorRef& tensor : far) munmap(tensor.data, kBytes);
  }
}

// What threads take: packets of 16 bytes of the widest operand, two of them where elements are not bytes; and rows that are
// written have a warp up to half the length.
TEST(CudaLaunch, Schedules) {
  const auto schedule = [](const std::string& text) {
    const plan::Plan plan = Lower(*graph::ParseText("kernel k" + text)[0]);
    return codegen::ScheduleForCuda(plan, std::get<plan::Kernel>(plan.steps[0]));
  };
  const auto packets = [&](const std::string& text) { return std::pair(schedule(text).lanes, schedule(text).packets); };
  EXPECT_EQ(packets("(a: f32[n]) -> (y: f32[n]) { y = a * 2 }"), std::pair(4, 2));
  EXPECT_EQ(packets("(a: f32[n], b: f32[n], c: f32[n]) -> (y: f32[n]) { y = a * b + c }"), std::pair(4, 1));
  EXPECT_EQ(packets("(a: f16[n], b: f32[n]) -> (y: f32[n]) { y = tcast<f32>(a) * b }"), std::pair(4, 2));
  EXPECT_EQ(packets("(a: i8[n], b: i8[n]) -> (y: i8[n]) { y = a + b }"), std::pair(16, 1));
  EXPECT_EQ(packets("(a: i8[n]) -> (y: f64[n]) { y = tcast<f64>(a) }"), std::pair(2, 2));
  EXPECT_EQ(packets("(a: i8[n]) -> (y: i8[n]) { y = flip(a, 0) }"), std::pair(8, 1));
  EXPECT_EQ(schedule("(x: f32[n, m]) -> (y: f32[n, m]) { y = exp(x) / broadcast<0>(reduce_with_axis<sum>(exp(x), 1)) }").warp_row, 512);
  EXPECT_EQ(schedule("(x: f32[n, m]) -> (y: f32[n]) { y = reduce_with_axis<sum>(exp(x), 1) }").warp_row, 1024);
}

// What a launch decides of shapes that no test has the memory for.
TEST(CudaLaunch, LargeShapes) {
  const plan::Plan plan = Lower(*graph::ParseText("kernel k(x: f32[n, m]) -> (y: f32[n, m]) { y = x * 2 }")[0]);
  const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
  const auto launch = [&](index_t n, index_t m, index_t pitch, std::uintptr_t address) {
    runtime::TensorRef x = runtime::TensorRef::Dense(reinterpret_cast<void*>(address), DType::kFloat32, {n, m});
    x.stride[0] = pitch;
    return runtime::PlanCudaLaunch(kernel.signature, codegen::ScheduleForCuda(plan, kernel), {x, x}, {n, m}, {});
  };
  // Dense rows are one: 2048 elements a block, none left over.
  const auto dense = launch(16384, 16384, 16384, 4096);
  EXPECT_TRUE(dense.variant.vector);
  EXPECT_FALSE(dense.variant.wide_index);
  EXPECT_EQ(dense.extent, (std::vector<index_t>{1, 16384 * 16384}));
  EXPECT_EQ(dense.grid.x, 16384u * 16384 / 2048);
  EXPECT_EQ(dense.grid.y, 1u);
  // An address or a pitch that packets do not fit.
  EXPECT_FALSE(launch(16384, 16384, 16384, 4100).variant.vector);
  EXPECT_FALSE(launch(16384, 16383, 16385, 4096).variant.vector);
  EXPECT_TRUE(launch(16384, 16380, 16384, 4096).variant.vector);
  // Beyond 32 bits.
  const auto wide = launch(index_t{1} << 20, 16384, 16384, 4096);
  EXPECT_TRUE(wide.variant.wide_index);
  EXPECT_EQ(wide.grid.x, (1u << 20) / 2048 * 16384);
  // Steps over the rows are up to 2^24, and 32 bits have to hold a position several steps beyond the end.
  EXPECT_FALSE(launch((index_t{1} << 31) - (index_t{1} << 28), 1, 1, 4096).variant.wide_index);
  EXPECT_TRUE(launch((index_t{1} << 31) - (index_t{1} << 26), 1, 1, 4096).variant.wide_index);
  // Without packets a thread takes four rows, or four times four, if that leaves blocks enough.
  EXPECT_EQ(launch(16384, 16383, 16385, 4096).grid.y, 1024u);
  EXPECT_EQ(launch(2048, 1023, 1025, 4096).grid.y, 512u);
  EXPECT_EQ(launch(128, 1023, 1025, 4096).grid.y, 128u);
  // One that writes five results takes a row at a time.
  const plan::Plan five = Lower(*graph::ParseText("kernel k(x: f32[n, m]) -> (a: f32[n, m], b: f32[n, m], c: f32[n, m], d: f32[n, m], e: f32[n, m]) {\n"
                                                  "  a = x * 2  b = x * 3  c = x * 5  d = x * 7  e = x * 11 }")[0]);
  EXPECT_EQ(codegen::ScheduleForCuda(plan, kernel).rows, 4);
  EXPECT_EQ(codegen::ScheduleForCuda(five, std::get<plan::Kernel>(five.steps[0])).rows, 1);
  // Rows that are not one, of two packets a thread: no thread is idle.
  const auto narrow = launch(16384, 1024, 1028, 4096);
  EXPECT_EQ(narrow.grid.x * narrow.block.x * 4 * 2, 1024u);
  EXPECT_EQ(narrow.block.x * narrow.block.y, 256u);
  // More rows than a grid has blocks along y.
  const auto rows = launch(index_t{1} << 27, 3, 4, 4096);
  EXPECT_LE(rows.grid.y, 65535u);
  EXPECT_EQ(rows.block.x * rows.block.y, 256u);
}

// Mean and variance of few long rows or columns are read once: what blocks found is joined, whatever the center. Far from 0 a
// sum of squares would have lost the variance.
TEST(CudaEmulated, MomentsInOnePass) {
  Calls calls;
  const auto add = [&](const std::string& type, const std::vector<index_t>& shape, double share, runtime::CudaForm form) {
    index_t count = 1;
    for (const index_t extent : shape) count *= extent;
    count /= shape[1];
    std::ostringstream text;
    text.precision(17);
    text << "kernel channels(x: " << type << (shape.size() == 2 ? "[n, c]" : "[n, c, s]") << ") -> (mean: " << type << "[c], variance: " << type
         << "[c]) {\n  v = x + 3000\n  mean = sumall_except_dim<1>(v) * " << share / static_cast<double>(count)
         << "\n  d = v - broadcast<1>(mean, v)\n  variance = sumall_except_dim<1>(d * d) * " << 1 / static_cast<double>(count) << "\n}";
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
    calls.Add("kernel t(x: f32[n, m]) -> (y: f32[n]) {\n  mu = reduce_keepdim<mean>(x, 1)\n  d = x - broadcast_keepdim(mu, 1, extent<1>(x))\n"
              "  y = reduce_with_axis<mean>(d * d, 1)\n}", {{shape}}, 1e-3);
    EXPECT_EQ(calls.launches()[0].variant.form, runtime::CudaForm::kRowSplit);
    EXPECT_EQ(calls.launches()[0].shared_bytes, 0u);
  }
  calls.Run();
}

// Of windows a thread has several below each other, and what is left of them.
TEST(CudaEmulated, WindowsBelowEachOther) {
  Calls calls;
  for (const auto& [call, rows] : {std::pair<std::string, int>{"pool<maximum>(x, 2, 2, 2, 2)", 4}, {"pool<sum>(x, 3, 3, 1, 1)", 2}, {"pool<sum>(x, 4, 4, 1, 1)", 1}})
    for (const index_t n : {1, 2, 300}) {
      const std::string text = "kernel pooled(x: f32[n, c, h, w]) -> (y: f32[?, ?, ?, ?]) { y = " + call + " }";
      const plan::Plan plan = Lower(*graph::ParseText(text)[0]);
      EXPECT_EQ(codegen::ScheduleForCuda(plan, std::get<plan::Kernel>(plan.steps[0])).rows, rows) << call;
      calls.Add(text, {{{n, 7, 12, 10}}}, 1e-4);
    }
  calls.Run();
}

// What computes with positions stores packets where the results' rows divide into them, whatever it reads.
TEST(CudaEmulated, ResultsInPackets) {
  Calls calls;
  const auto add = [&](const std::string& text, const std::vector<Calls::Shape>& shapes, bool vector) {
    calls.Add(text, shapes, 1e-4);
    EXPECT_EQ(calls.launches()[0].variant.vector, vector) << text;
  };
  for (const index_t m : {20, 19}) {
    const bool whole = m == 20;
    add("kernel patches(x: f32[b, c, h, w]) -> (y: f32[?, ?]) { y = unpack_patch2col(x, 3, 3, 1, 1, 1, 1) }", {{{2, 3, 9, m}}}, whole);
    add("kernel taken(a: i32[n], x: f32[k, m]) -> (y: f32[n, m]) { y = take(a, x) }", {{{37}}, {{9, m}}}, whole);
    add("kernel joined(a: f32[n, m], b: f32[n, m]) -> (y: f32[n, ?]) { y = concat(flip(a, 1), b * 2, 1) }", {{{300, m}}, {{300, m}}}, m % 2 == 0);
    add("kernel turned(a: f32[m]) -> (y: f32[m]) { y = flip(a, 0) }", {{{m}}}, whole);
    add("kernel spread(x: f32[n, h, w], y: f32[n, p, q], g: f32[n, p, q]) -> (dx: f32[n, h, w]) { dx = unpool<maximum>(x, y, g, 2, 2, 2, 2) }",
        {{{70, 8, m}}, {{70, 4, m / 2}}, {{70, 4, m / 2}}}, whole);
    add("kernel pooled(x: f32[n, h, w]) -> (y: f32[?, ?, ?]) { y = pool<maximum>(x, 2, 2, 2, 2) }", {{{3, 6, 2 * m}}}, false);
  }
  // Rows of the results that packets do not divide.
  calls.Add("kernel turned(a: f32[n, m]) -> (y: f32[n, m]) { y = flip(a, 1) }", {{{9, 20}, 1}});
  EXPECT_FALSE(calls.launches()[0].variant.vector);
  calls.Run();
}

// What they read by packets where those begin at multiples and columns have the same choices, some of them or all; where
// rows of an operand do not, or none do, by elements. Packets at other addresses trap.
TEST(CudaEmulated, PacketsOfMemory) {
  Calls calls;
  const auto add = [&](const std::string& text, const std::vector<Calls::Shape>& shapes) {
    calls.Add(text, shapes, 1e-4);
    EXPECT_TRUE(calls.launches()[0].variant.vector) << text;
  };
  const std::string three = "concat(concat(a, b, 1), c, 1)";
  for (const std::string dtype : {"f32", "f16", "i8", "f64", "i64", "bool"}) {
    const auto joined = [&](index_t a, index_t b, index_t c, index_t padding) {
      const std::string of = ": " + dtype + "[n, ?]";
      add("kernel joined(a" + of + ", b" + of + ", c" + of + ") -> (y" + of + ") { y = " + three + " }", {{{37, a}, padding}, {{37, b}}, {{37, c}, 2 * padding}});
    };
    joined(16, 40, 8, 0);
    joined(16, 32, 16, 8);
    joined(8, 7, 17, 0);   // one whose packets lie across two
    joined(1, 2, 45, 0);   // packets of all three
    joined(24, 16, 8, 8);
  }
  for (const index_t padding : {0, 4, 1})
    for (const index_t m : {32, 30, 31}) {
      const std::string x = "x: f32[n, h, " + std::to_string(m) + "]";
      const std::vector<Calls::Shape> shapes = {{{5, 6, m}, padding}};
      const auto one = [&](const std::string& y, index_t extent) {
        if (extent % 4 == 0) calls.Add("kernel k(" + x + ") -> (y: f32[?, ?, ?]) { y = " + y + " }", shapes, 1e-4);
      };
      one("flip(x, 2) * 2", m);
      one("flip(flip(x, 1), 2)", m);
      one("slice(x, 2, 4, 28)", 24);
      one("slice(x, 2, 5, 29)", 24);
      one("pad(x, 1, 4)", m + 4);
      one("concat(flip(x, 2), x, 2)", 2 * m);
      one("concat(x, x, 1) + concat(x * 2, x, 1)", m);
      one("upsampling_nearest(x, 2)", 2 * m);
      one("upsampling_nearest(x, 4) - 1", 4 * m);
      one("crop(upsampling_nearest(x, 2), 0, 8, 12, 40)", 40);
      // Packets that begin within those that share an element.
      one("slice(upsampling_nearest(x, 2), 2, 1, 41)", 40);
      one("slice(upsampling_nearest(x, 2), 2, 2, 42)", 40);
      one("slice(upsampling_nearest(x, 4), 2, 2, 42)", 40);
      one("slice(upsampling_nearest(x, 2), 2, 5, 29) + slice(upsampling_nearest(x, 2), 2, 4, 28)", 24);
    }
  // Rows of which some have no element.
  add("kernel padded(x: f32[b, c, h, w]) -> (y: f32[?, ?, ?, ?]) { y = pad(x, 3, 4) }", {{{2, 3, 5, 16}}});
  add("kernel taken(a: i32[n], x: f32[k, m]) -> (y: f32[n, m]) { y = take(a, x) * 2 + 1 }", {{{37}}, {{9, 20}, 4}});
  // Names that the text has, and what all rows have alike beside what they do not.
  add("kernel t(choices: f32[?, ?], whole: f32[?, ?]) -> (y: f32[?, 40]) { y = concat(flip(choices, 1), whole, 1) + slice(concat(whole, choices, 1), 1, 0, 40) }",
      {{{5, 16}}, {{5, 24}}});
  const auto alike = [](const std::string& of, int from) {
    return "(broadcast<0>(c) > 0 ? broadcast_keepdim(slice(upsampling_nearest(" + of + ", 2), 0, 0, 1), 0, 12) : crop(upsampling_nearest(x, 2), 0, " +
           std::to_string(from) + ", 12, 32))";
  };
  add("kernel t(a: f32[1, 16], b: f32[1, 16], x: f32[6, 20], c: f32[12]) -> (y: f32[12, 32]) { y = " + alike("a", 8) + " + " + alike("b", 4) + " }",
      {{{1, 16}}, {{1, 16}}, {{6, 20}}, {{12}}});
  calls.Run();
}

// The bytes that are kept of a row take more than its elements.
TEST(CudaLaunch, RowsKeptBeyond32Bits) {
  const plan::Plan plan = Lower(*graph::ParseText("kernel k(x: f32[n, m]) -> (y: f32[n, m]) { y = exp(x) / broadcast<0>(reduce_with_axis<sum>(exp(x), 1)) }")[0]);
  const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
  ASSERT_FALSE(kernel.signature.row_buffers.empty());
  const auto launch = [&](index_t m) {
    const runtime::TensorRef x = runtime::TensorRef::Dense(reinterpret_cast<void*>(4096), DType::kFloat32, {2, m});
    return runtime::PlanCudaLaunch(kernel.signature, codegen::ScheduleForCuda(plan, kernel), {x, x}, {2, m}, {});
  };
  EXPECT_FALSE(launch(index_t{1} << 28).variant.wide_index);
  EXPECT_TRUE(launch(index_t{1} << 29).variant.wide_index);
}

// A warp keeps no more of its row than a block may have of shared memory.
TEST(CudaLaunch, RowsOfWarpsFitSharedMemory) {
  std::string inputs, terms;
  for (int k = 0; k < 13; ++k) {
    inputs += (k == 0 ? "" : ", ") + std::string("x") + std::to_string(k) + ": f64[n, m]";
    terms += (k == 0 ? "" : " + ") + std::string("x") + std::to_string(k);
  }
  const plan::Plan plan = Lower(*graph::ParseText("kernel k(" + inputs + ") -> (y: f64[n, m]) { s = " + terms +
                                                  "  y = (" + terms + ") / broadcast<0>(reduce_with_axis<maximum>(s, 1)) }")[0]);
  const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
  const runtime::TensorRef x = runtime::TensorRef::Dense(reinterpret_cast<void*>(4096), DType::kFloat64, {64, 1024});
  const auto launch = runtime::PlanCudaLaunch(kernel.signature, codegen::ScheduleForCuda(plan, kernel), std::vector<runtime::TensorRef>(14, x), {64, 1024}, {});
  EXPECT_LE(launch.shared_bytes, runtime::CudaLimits().shared_bytes);
}

// Positions take 32 bits where all that they are computed from stays within.
TEST(CudaLaunch, Positions) {
  using Tensors = std::vector<runtime::TensorRef>;
  const auto variant = [](const std::string& text, const Tensors& inputs, std::vector<umbra_scalar> scalars = {}) {
    const plan::Plan plan = Lower(*graph::ParseText(text)[0]);
    const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
    runtime::Program face;
    face.buffers = plan.buffers;
    face.scalars = plan.scalars;
    face.num_symbols = static_cast<int>(plan.symbols.size());
    face.derived = plan.derived;
    runtime::Arguments arguments{inputs, {}, std::move(scalars)};
    arguments.outputs.push_back(runtime::TensorRef::Dense(inputs[0].data, DType::kFloat32, runtime::OutputShapes(face, inputs, arguments.scalars)[0]));
    const std::vector<index_t> symbols = runtime::CheckArguments(face, arguments);
    return runtime::PlanCudaLaunch(kernel.signature, codegen::ScheduleForCuda(plan, kernel), {inputs[0], arguments.outputs[0]}, symbols, {}).variant;
  };
  const auto is_wide = [&](const std::string& text, const Tensors& inputs, std::vector<umbra_scalar> scalars = {}) {
    return variant(text, inputs, std::move(scalars)).wide_index;
  };
  const auto dense = [](std::vector<index_t> shape) {
    return runtime::TensorRef::Dense(reinterpret_cast<void*>(4096), DType::kFloat32, std::move(shape));
  };
  const std::string flip = "kernel k(x: f32[n]) -> (y: f32[n]) { y = flip(x, 0) }";
  EXPECT_FALSE(is_wide(flip, {dense({1 << 30})}));
  EXPECT_TRUE(is_wide(flip, {dense({index_t{1} << 32})}));
  // More elements than 32 bits tell apart, in rows that they do.
  const std::string patches = "kernel k(x: f32[n, c, h, w]) -> (y: f32[p, q]) { y = unpack_patch2col(x, 3, 3, 1, 1, 1, 1) }";
  EXPECT_FALSE(variant(patches, {dense({32, 64, 56, 56})}).wide_offset);
  EXPECT_TRUE(variant(patches, {dense({1337, 64, 56, 56})}).wide_offset);
  EXPECT_FALSE(is_wide(patches, {dense({1337, 64, 56, 56})}));
  EXPECT_FALSE(variant(flip, {dense({index_t{1} << 32})}).wide_offset);
  const auto plain = variant("kernel k(x: f32[n, m]) -> (y: f32[n, m]) { y = x * 2 }", {dense({index_t{1} << 20, index_t{1} << 12})});
  EXPECT_TRUE(plain.wide_index && !plain.wide_offset);
  // What a quotient leaves is less than the divisor, so that what follows stays small.
  EXPECT_FALSE(is_wide("kernel k(x: f32[b, 3, h, w]) -> (y: f32[27, q]) { y = unpack_patch2col(x, 3, 3, 1, 1, 1, 1) }", {dense({64, 3, 1024, 1024})}));
  // Few elements of memory, at large positions.
  runtime::TensorRef same = dense({index_t{1} << 32, 4});
  same.stride[0] = 0;
  const std::string slice = "kernel k(x: f32[n, m], p: i64, q: i64) -> (y: f32[?, m]) { y = slice(x, 0, p, q) }";
  const auto number = [](long long value) {
    umbra_scalar scalar;
    scalar.i64 = value;
    return scalar;
  };
  EXPECT_FALSE(is_wide(slice, {same}, {number(1000), number(1010)}));
  EXPECT_TRUE(is_wide(slice, {same}, {number(1LL << 31), number((1LL << 31) + 10)}));
}

// Whatever is said to stay within a limit does, for every index, and all but a few of what does are said to.
TEST(CudaLaunch, PositionsStayWithinTheirRanges) {
  using Kind = runtime::Position::Kind;
  std::mt19937 random(20261124);
  const auto draw = [&](int below) { return static_cast<index_t>(random() % static_cast<unsigned>(below)); };
  int within = 0, said = 0;
  for (int round = 0; round < 20000; ++round) {
    const index_t limit = 40 + draw(200), extent = 1 + draw(12), number = draw(9) - 2;
    std::vector<runtime::Position> positions = {{Kind::kAxis, 0, 0}, {Kind::kNumber, 0, 0}, {Kind::kConstant, draw(15) - 5, 0}};
    for (index_t k = 3; k < 7; ++k)
      positions.push_back({static_cast<Kind>(3 + draw(8)), draw(static_cast<int>(k)), draw(static_cast<int>(k))});
    bool stays = true;
    for (index_t i = 0; i < extent; ++i)
      for (int choice = 0; choice < 16; ++choice) {
        std::vector<index_t> values;
        for (const auto& [kind, p, q] : positions) {
          const auto k = values.size();
          const index_t a = k < 3 ? 0 : values[static_cast<std::size_t>(p)], b = k < 3 ? 0 : values[static_cast<std::size_t>(q)];
          const index_t quotient = b == 0 ? 0 : a / b;
          const index_t by_kind[] = {i, number, p, a + b, a - b, a * b, quotient, a - quotient * b, std::min(a, b), std::max(a, b),
                                     (choice >> (k - std::min<std::size_t>(k, 3)) & 1) != 0 ? a : b};
          values.push_back(by_kind[static_cast<int>(kind)]);
          stays = stays && std::abs(values.back()) < limit;
        }
      }
    const bool may = runtime::PositionsStayWithin(limit, positions, 1, {extent, number});
    EXPECT_TRUE(stays || !may) << round;
    within += stays;
    said += may;
  }
  EXPECT_GT(said, within * 9 / 10) << "of " << within;
}

// The destination is one of the operands.
TEST(CudaEmulated, InPlace) {
  Calls calls;
  for (const index_t m : {64, 77, 1028, 2001}) {
    calls.AddInPlace("kernel k(x: f32[n, m], b: f32[m]) -> (y: f32[n, m]) {\n  y = x * 2 + broadcast<1>(b)\n}", {{{9, m}}, {{m}}});
    calls.AddInPlace("kernel k(x: f32[n, m]) -> (y: f32[n, m]) {\n  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))\n"
                     "  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}", {{{9, m}}});
    calls.AddInPlace("kernel k(x: f32[n, m]) -> (y: f32[n, m]) {\n  d = x - broadcast<0>(reduce_with_axis<sum>(x, 1) * 0.01)\n"
                     "  y = d / broadcast<0>(sqrt(reduce_with_axis<sum>(d * d, 1)))\n}", {{{9, m}}}, 1e-4);
    calls.AddInPlace("kernel k(r: f32[n], x: f32[n, m]) -> (t: f32[n]) {\n  t = r * 0.5 + reduce_with_axis<sum>(x, 1)\n}", {{{9}}, {{9, m}}}, 1e-4);
    calls.AddInPlace("kernel k(r: f32[m], x: f32[n, m]) -> (t: f32[m]) {\n  t = r * 0.5 + reduce_with_axis<sum>(x, 0)\n}", {{{m}}, {{900, m}}}, 1e-3);
  }
  for (const index_t n : {1, 20, 77, 3000}) calls.AddInPlace("kernel k(x: f32[n]) -> (y: f32[n]) {\n  y = x * 2 + 1\n}", {{{n}}});
  calls.AddInPlace("kernel k(r: f32[n], x: f32[n, m]) -> (t: f32[n]) {\n  t = r * 0.5 + reduce_with_axis<sum>(x, 1)\n}", {{{2}}, {{2, 40000}}}, 1e-3);
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

TEST(CudaEmulated, IndexMaps) {
  using runtime::CudaVariant;
  // Positions and offsets of 32 bits, offsets of 64, and what stands for others ahead of time, which has 64 for both.
  const auto offsets = [](CudaVariant* variant) { variant->wide_offset = variant->form == runtime::CudaForm::kElements; };
  for (void (*const change)(CudaVariant*) : std::initializer_list<void (*)(CudaVariant*)>{nullptr, offsets, emulated::General}) {
    Calls calls(change);
    for (const MapText& map : MapTexts())
      for (const char* dtype : {"f32", "f64", "i32", "i64"}) {
        if (change != nullptr && dtype[0] != 'f') continue;
        std::vector<Calls::Shape> shapes;
        for (const auto& shape : map.shapes) shapes.push_back({shape, static_cast<index_t>(shapes.size()) + (dtype[1] == '6')});
        calls.Add(KernelOf(map, dtype), shapes);
        for (const runtime::CudaLaunch& launch : calls.launches()) EXPECT_EQ(launch.variant.wide_index, change == emulated::General) << map.call;
      }
    calls.Run();
  }
}

// Positions as 32-bit numbers beside data of 64 bits: where one meets the other, and what is stored, is as wide as data.
TEST(CudaEmulated, PositionsBesideWideData) {
  using graph::Op;
  Calls calls;
  for (const double step : {1.0, 7.0, 1e8}) {
    auto graph = std::make_shared<graph::Graph>("k");
    const PartialShape shape = {9, 40};
    const auto map = [&](Op op, std::vector<int> args) { return graph->Map(op, std::move(args)); };
    const auto number = [&](double value) { return graph->Constant(value, DType::kInt64); };
    const int a = graph->Input("a", DType::kInt64, shape), b = graph->Input("b", DType::kInt64, shape);
    const int i = map(Op::mul, {graph->Index(1, shape), number(step)}), less = map(Op::minus, {i, number(20)});
    graph->AddOutput("x", map(Op::plus, {map(Op::minimum, {map(Op::maximum, {map(Op::mul, {a, i}), i}), b}), map(Op::div, {a, less})}));
    graph->AddOutput("y", map(Op::plus, {map(Op::select, {map(Op::gt, {a, i}), a, map(Op::negative, {i})}), map(Op::bit_and, {b, less})}));
    graph->AddOutput("z", map(Op::mul, {map(Op::abs, {less}), number(1e12)}));
    graph->AddOutput("u", graph->Cast(less, DType::kFloat32));
    graph->AddOutput("v", graph->Cast(map(Op::minimum, {map(Op::maximum, {a, number(3)}), i}), DType::kInt32));
    graph->AddOutput("s", graph->Reduce(graph::Reducer::maximum, map(Op::select, {map(Op::gt, {a, b}), i, number(-1)}), {1}, false));
    graph->AddOutput("c", graph->Reduce(graph::Reducer::sum, map(Op::plus, {i, less}), {0}, false));
    calls.Add(graph, {{{9, 40}}, {{9, 40}}}, 0);
    for (const runtime::CudaLaunch& launch : calls.launches()) EXPECT_EQ(launch.variant.wide_index, step > 7) << step;
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
  calls.Add("kernel dense(x: f32[n, k], w: f32[k, m], b: f32[m], s: f32) -> (y: f32[n, m], t: f32[m]) {\n"
            "  h = relu(dot(x * s, w) + broadcast<1>(b))\n  y = h / broadcast<0>(reduce_with_axis<sum>(h, 1) + 1)\n  t = sum_rows(y)\n}",
            {{{37, 20}}, {{20, 65}}, {{65}}}, 1e-4);
  calls.Add("kernel far(x: f32[n, m]) -> (y: f32[n, m], c: f32[n, m]) {\n"
            "  t = reduce_with_axis<sum>(reduce_with_axis<sum>(x, 1), 0)\n  y = x + t\n  c = sin(x * 100000) + cos(x * 1e30) + erf(x) + pow(abs(x), 0.3)\n}",
            {{{50, 44}}}, 1e-3);
  calls.Run();
}

}  // namespace
}  // namespace umbra

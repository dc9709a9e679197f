// The functions that launch the kernels of an emitted .cu, run behind a stand-in for CUDA's runtime: their launches are
// those of PlanCudaLaunch, their results the interpreter's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "compiler/codegen/cuda/dense.h"
#include "compiler/graph/graph.h"
#include "runtime/cuda_geometry.h"
#include "tests/support/drawn.h"
#include "tests/support/emulated.h"
#include "tests/support/map_texts.h"
#include "umbra/compile.h"

namespace umbra {
namespace {

using codegen::LaunchParameter;
using drawn::Tensor;

// As tests/support/cuda_runtime_stand_in.h has it.
struct Recorded {
  unsigned grid[3], block[3];
  unsigned long long shared, arguments[256], argument_bytes;
  int launches;
  bool dry;
};
constexpr int kSuccess = 0, kInvalidValue = 1;

// Emitted files, one after the other in one of the host's.
class Files {
 public:
  int Add(const codegen::CudaSource& source, const codegen::CudaHost& host) {
    const std::string number = std::to_string(count_);
    std::string undefine;
    for (const std::string& word : {source.function, source.function + "_args", host.function}) {
      const std::string define = "#define " + word + " k" + number + "_" + word + "\n";
      kernels_ += define, hosts_ += define;
      undefine += "#undef " + word + "\n";
    }
    kernels_ += source.kernel + undefine;
    hosts_ += host.text + "extern \"C\" [[gnu::visibility(\"default\")]] int run_" + number +
              "(const void* const* p, cuda_runtime::Recorded* recorded) {\n" +
              "  cuda_runtime::recorded = recorded;\n  return cuda_runtime::Call(" + host.function + ", p);\n}\n" +
              undefine;
    helpers_.push_back(host);
    return count_++;
  }

  void Build() {
    std::string part = codegen::CudaHostPart({}, helpers_);
    std::string texts;
    for (const auto& host : helpers_) texts += (texts.empty() ? "" : "\n") + host.text;
    part.replace(part.find(texts), texts.size(), hosts_);
    handle_ = emulated::Load("#include \"" UMBRA_EMULATOR "\"\n#include \"" UMBRA_CUDA_RUNTIME_STAND_IN "\"\n" +
                             emulated::HostPrelude(kernels_) + "namespace umbra::simd {\n" + kernels_ + "}\n" + part);
  }

  // `parameters`: the address of each.
  int Call(int number, const std::vector<const void*>& parameters, Recorded* recorded) const {
    const auto run = reinterpret_cast<int (*)(const void* const*, Recorded*)>(
        dlsym(handle_, ("run_" + std::to_string(number)).c_str()));
    Ensure(run != nullptr, "no function ", number);
    return run(parameters.data(), recorded);
  }

  ~Files() {
    if (handle_ != nullptr) dlclose(handle_);
  }

 private:
  int count_ = 0;
  std::string kernels_, hosts_;
  std::vector<codegen::CudaHost> helpers_;
  void* handle_ = nullptr;
};

class Calls {
 public:
  using Shape = std::vector<index_t>;

  // `fits`: are the operands such that the variant that is emitted is for them?
  void Add(bool fits, const std::string& text, const std::vector<Shape>& inputs, double tolerance = 1e-4) {
    Add(graph::ParseText(text)[0], inputs, tolerance);
    calls_.back()->fits = fits;
  }

  void Add(const std::shared_ptr<const graph::Graph>& graph, const std::vector<Shape>& shapes, double tolerance) {
    auto one = std::make_unique<One>();
    one->what = graph::Print(*graph);
    one->tolerance = tolerance;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      one->operands.push_back(std::make_unique<Tensor>(graph->node(graph->inputs()[k]).dtype, shapes[k], 0, &random_));
      one->arguments.inputs.push_back(one->operands.back()->ref);
    }
    one->arguments.scalars = ScalarsOf(*graph);
    CompileOptions options;
    options.engine = Engine::kInterpreter;
    const Function function = Compile(graph, options);
    runtime::Arguments expected = one->arguments;
    const auto results = runtime::OutputShapes(function.program(), expected.inputs, expected.scalars);
    for (std::size_t k = 0; k < results.size(); ++k)
      for (auto* list : {&one->expected, &one->got}) {
        list->push_back(std::make_unique<Tensor>(graph->node(graph->outputs()[k].node).dtype, results[k], 0, nullptr));
        (list == &one->got ? one->arguments : expected).outputs.push_back(list->back()->ref);
      }
    function(expected);
    AddSteps(one.get(), *graph);
    calls_.push_back(std::move(one));
  }

  // One on operands that there is no memory for: it is launched where the runtime would launch the same, and not run.
  void AddLarge(const std::string& text, const std::vector<Shape>& shapes) {
    const auto graph = graph::ParseText(text)[0];
    auto one = std::make_unique<One>();
    one->what = text;
    one->dry = true;
    const auto operand = [](int id, const graph::Graph& g, const Shape& shape) {
      return runtime::TensorRef::Dense(reinterpret_cast<void*>(4096), g.node(id).dtype, shape);
    };
    for (std::size_t k = 0; k < shapes.size(); ++k)
      one->arguments.inputs.push_back(operand(graph->inputs()[k], *graph, shapes[k]));
    one->arguments.scalars = ScalarsOf(*graph);
    runtime::Program face;
    const plan::Plan plan = Lower(*graph, true);
    face.buffers = plan.buffers;
    face.scalars = plan.scalars;
    face.num_symbols = static_cast<int>(plan.symbols.size());
    face.derived = plan.derived;
    for (const Shape& shape : runtime::OutputShapes(face, one->arguments.inputs, one->arguments.scalars))
      one->arguments.outputs.push_back(operand(graph->outputs()[0].node, *graph, shape));
    AddSteps(one.get(), *graph);
    calls_.push_back(std::move(one));
  }

  // How many calls ran to their end.
  int Run() {
    files_.Build();
    int ran = 0;
    for (const auto& one : calls_) {
      SCOPED_TRACE(one->what);
      bool all = true;
      for (std::size_t k = 0; k < one->steps.size() && all; ++k)
        all = RunStep(*one, one->steps[k], one->call->launches()[k]);
      EXPECT_EQ(all, one->fits.value_or(all));
      if (!all) continue;
      ++ran;
      for (std::size_t k = 0; k < one->got.size(); ++k)
        drawn::ExpectSame(*one->expected[k], *one->got[k], one->tolerance, one->what);
    }
    return ran;
  }

 private:
  struct Step {
    const plan::Kernel* kernel = nullptr;
    runtime::CudaVariant variant;
    codegen::CudaHost host;
    int number = 0;
  };
  struct One {
    std::string what;
    double tolerance = 0;
    std::optional<bool> fits;
    bool dry = false;
    std::vector<std::unique_ptr<Tensor>> operands, expected, got;
    runtime::Arguments arguments;
    std::unique_ptr<emulated::Call> call;
    std::vector<Step> steps;
  };

  static std::vector<umbra_scalar> ScalarsOf(const graph::Graph& graph) {
    std::vector<umbra_scalar> scalars(graph.scalars().size());
    for (std::size_t k = 0; k < scalars.size(); ++k) {
      const DType type = graph.node(graph.scalars()[k]).dtype;
      if (type == DType::kFloat32) scalars[k].f32 = 0.75f;
      else if (type == DType::kInt64) scalars[k].i64 = 3 + 4 * static_cast<index_t>(k);
      else scalars[k].i32 = 3;
    }
    return scalars;
  }

  void AddSteps(One* one, const graph::Graph& graph) {
    runtime::CudaLimits limits;
    limits.shared_bytes = 232448 - runtime::kCudaStaticShared;
    one->call = std::make_unique<emulated::Call>(&planned_, graph, one->arguments, limits);
    for (const auto& step : one->call->plan().steps) {
      const auto& kernel = std::get<plan::Kernel>(step);
      Step made;
      made.kernel = &kernel;
      made.variant = codegen::TypicalCudaVariant(one->call->plan(), kernel);
      const codegen::CudaSource source = codegen::GenerateCuda(one->call->plan(), kernel, made.variant);
      made.host = codegen::LaunchOfCuda(one->call->plan(), kernel, made.variant, source.function);
      made.number = files_.Add(source, made.host);
      one->steps.push_back(std::move(made));
    }
  }

  // Did it run? It does where the runtime would launch the same variant.
  bool RunStep(const One& one, const Step& step, const runtime::CudaLaunch& launch) const {
    std::vector<const void*> parameters;
    for (const LaunchParameter& parameter : step.host.parameters) {
      const auto index = static_cast<std::size_t>(parameter.index);
      parameters.push_back(
          parameter.kind == LaunchParameter::Kind::kBuffer ? static_cast<const void*>(&one.call->buffers()[index].data)
          : parameter.kind == LaunchParameter::Kind::kExtent ? static_cast<const void*>(&one.call->symbols()[index])
                                                             : &one.arguments.scalars[index]);
    }
    void* const stream = nullptr;
    parameters.push_back(&stream);
    auto recorded = std::make_unique<Recorded>();
    recorded->launches = 0;
    recorded->dry = one.dry;
    const int result = files_.Call(step.number, parameters, recorded.get());
    const auto& symbols = one.call->symbols();
    const bool generic = std::find(symbols.begin(), symbols.end(), 1) == symbols.end();  // an axis of one index is none
    // What computes with positions takes results of any extent, one by one, unless it is written into the graph.
    runtime::CudaVariant fitting = launch.variant;
    fitting.vector = fitting.vector && (!step.kernel->signature.positional || step.variant.vector);
    if (one.dry) { EXPECT_EQ(result == kSuccess, fitting == step.variant) << step.host.text; }
    if (result != kSuccess) {
      EXPECT_EQ(result, kInvalidValue);
      EXPECT_FALSE(generic && fitting == step.variant) << "it is refused:\n" << step.host.text;
      return false;
    }
    std::vector<void*> data;
    std::vector<umbra_scalar> scalars;
    bool stores = false;
    for (const auto& access : step.kernel->signature.operands) {
      const auto& buffer = one.call->buffers()[static_cast<std::size_t>(access.buffer)];
      data.push_back(buffer.data);
      stores = stores || (access.store && std::find(buffer.shape.begin(), buffer.shape.end(), 0) == buffer.shape.end());
    }
    EXPECT_EQ(recorded->launches, stores ? 1 : 0) << step.host.text;
    if (!stores || !generic || !(launch.variant == step.variant)) return true;
    for (const int scalar : step.kernel->signature.scalars)
      scalars.push_back(one.arguments.scalars[static_cast<std::size_t>(scalar)]);
    const auto dims = [](const unsigned* d) { return std::vector<unsigned>(d, d + 3); };
    EXPECT_EQ(dims(recorded->grid), (std::vector<unsigned>{launch.grid.x, launch.grid.y, launch.grid.z}))
        << step.host.text;
    EXPECT_EQ(dims(recorded->block), (std::vector<unsigned>{launch.block.x, launch.block.y, launch.block.z}))
        << step.host.text;
    EXPECT_EQ(recorded->shared, launch.shared_bytes) << step.host.text;
    std::vector<std::uint64_t> wanted = runtime::CudaArguments(launch, data, scalars, nullptr),
                               got(recorded->argument_bytes / 8);
    std::memcpy(got.data(), recorded->arguments, recorded->argument_bytes);
    EXPECT_EQ(got, wanted) << step.host.text;
    return true;
  }

  std::mt19937 random_{20261125};
  emulated::Library planned_;
  Files files_;
  std::vector<std::unique_ptr<One>> calls_;
};

const char* const kSoftmax =
    "kernel softmax(x: f32[n, m], s: f32) -> (y: f32[n, m]) {\n  t = x * s\n  e = exp(t - broadcast<0>(reduce_with_axis<maximum>(t, 1)))\n"
    "  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}";

TEST(CudaHost, LaunchesAreTheRuntimes) {
  Calls calls;
  for (const index_t n : {0, 3, 4, 31, 20003})
    calls.Add(n != 3, "kernel triad(a: f32[n], b: f32[n], s: f32) -> (y: f32[n]) { y = a * s + b }", {{n}, {n}});
  for (const index_t m : {7, 64, 132, 1032})
    calls.Add(m != 7,
              "kernel bias_gelu(x: f32[n, m], bias: f32[m]) -> (y: f32[n, m]) { y = gelu(x + broadcast<1>(bias)) }",
              {{33, m}, {m}});
  calls.Add(true, "kernel bias(x: f32[n, 7], bias: f32[7]) -> (y: f32[n, 7]) { y = x + broadcast<1>(bias) }",
            {{9, 7}, {7}});  // no packets ever fit
  calls.Add(true, "kernel many(x: f32[n, 7], bias: f32[7]) -> (y: f32[n, 7]) { y = x + broadcast<1>(bias) }",
            {{20000, 7}, {7}});
  calls.Add(true, "kernel flat(a: f32[n, m, k], b: f32[n, m, k]) -> (y: f32[n, m, k]) { y = a * b }",
            {{5, 3, 7}, {5, 3, 7}});
  calls.Add(true, "kernel rows(a: f32[n, m, k], b: f32[n]) -> (y: f32[n, m, k]) { y = a * broadcast<0>(b) }",
            {{5, 3, 8}, {5}});
  calls.Add(true, "kernel fixed(x: f32[6, 100]) -> (y: f32[6, 100]) { y = x * 2 }", {{6, 100}});
  for (const index_t m : {5, 32, 100, 1024, 2048, 12000}) calls.Add(m % 4 == 0, kSoftmax, {{19, m}});
  calls.Add(false, kSoftmax, {{2, 60000}});  // more than a block has
  calls.Add(
      true,
      "kernel long(x: f32[n, 2000]) -> (y: f32[n, 2000]) {\n  y = x / broadcast<0>(reduce_with_axis<sum>(abs(x), 1))\n}",
      {{9, 2000}});
  for (const index_t m : {0, 4, 100})
    calls.Add(m > 0, "kernel total(x: f32[n, m]) -> (t: f32[n]) { t = reduce_with_axis<sum>(x * 0.5, 1) }", {{9, m}});
  calls.Add(true, "kernel total(x: f32[n, m, k]) -> (t: f32[n]) { t = sumall_except_dim<0>(x) }", {{9, 5, 8}});
  for (const index_t n : {1, 3, 40, 1000})
    for (const index_t m : {1, 31, 200})
      calls.Add(true, "kernel sums(x: f16[n, m]) -> (s: f32[m]) { s = reduce_with_axis<sum>(tcast<f32>(x), 0) }",
                {{n, m}}, 1e-2);
  for (const index_t m : {32, 33})
    calls.Add(true, "kernel pooled(x: f32[n, h, w]) -> (y: f32[?, ?, ?]) { y = pool<maximum>(x, 2, 2, 2, 2) }",
              {{3, 2 * m, 64}});
  calls.Add(true, "kernel wide(x: f32[n, h, w]) -> (y: f32[?, ?, ?]) { y = pool<sum>(x, 7, 7, 1, 1) }", {{3, 20, 20}});
  for (const index_t n : {1, 7, 70}) {
    calls.Add(true, "kernel turned(a: f32[p, q], b: f32[q, p]) -> (y: f32[q, p]) { y = a.T * 2 + b }",
              {{n, 40}, {40, n}});
    calls.Add(n % 2 == 0, "kernel narrow(a: f16[p, q], b: f16[q, p]) -> (y: f16[q, p]) { y = a.T * 2 + b }",
              {{n, 40}, {40, n}}, 1e-2);
    calls.Add(true, "kernel back(a: f32[p, q, r]) -> (y: f32[r, q, p]) { y = transpose<2, 1, 0>(a) * 2 }",
              {{n, 5, 40}});
  }
  calls.Add(true, "kernel padded(x: f32[n, m]) -> (y: f32[?, ?]) { y = pad(x, 1, 2) }", {{9, 20}});
  calls.Add(true, "kernel patches(x: f32[b, c, h, w]) -> (y: f32[?, ?]) { y = unpack_patch2col(x, 3, 3, 1, 1, 1, 1) }",
            {{2, 3, 9, 8}});
  calls.Add(true, "kernel cut(x: f32[n, m], from: i64, to: i64) -> (y: f32[?, m]) { y = slice(x, 0, from, to) }",
            {{9, 20}});
  calls.Add(true, "kernel shaped(x: f32[n, m]) -> (y: f32[30, 40]) { y = reshape(x * 2, 30, 40) }", {{60, 20}});
  calls.Add(true,
            "kernel two(x: f32[n, m]) -> (y: f32[n, m], s: f32[n], c: f32[m]) {\n"
            "  y = x * 2\n  s = reduce_with_axis<sum>(x, 1)\n  c = reduce_with_axis<maximum>(x, 0)\n}",
            {{40, 32}});
  calls.Add(
      true,
      "kernel mixed(across: i8[n, m], grid: bool[n, m], args: f64[n, m]) -> (stream: bf16[n, m], rows: i64[n, m]) {\n"
      "  stream = grid ? tcast<bf16>(across) : tcast<bf16>(args)\n  rows = tcast<i64>(across) + 1\n}",
      {{8, 16}, {8, 16}, {8, 16}}, 1e-2);
  calls.Run();
}

TEST(CudaHost, EveryIndexMap) {
  Calls calls;
  for (const drawn::MapText& map : drawn::MapTexts())
    calls.Add(graph::ParseText(drawn::KernelOf(map, "f32"))[0], map.shapes, 1e-4);
  EXPECT_GE(calls.Run(), static_cast<int>(drawn::MapTexts().size()) - 3);
}

TEST(CudaHost, LargeShapes) {
  Calls calls;
  const auto add = [&](const std::string& call, const std::vector<Calls::Shape>& shapes, int rank) {
    calls.AddLarge(drawn::KernelOf({call, shapes, rank}, "f32"), shapes);
  };
  for (const index_t n : {64, 4096}) {
    add("unpack_patch2col(a, 3, 3, 1, 1, 1, 1)", {{n, 16, 112, 112}}, 2);
    add("pack_col2patch(a, 64, 16, 110, 110, 3, 3, 1, 1, 1, 1)", {{144, 64 * 108 * 108}}, 4);
    add("pool<maximum>(a, 3, 3, 2, 2)", {{n, 64, 112, 112}}, 4);
    add("unpool<maximum>(a, b, c, 2, 2, 2, 2)", {{n, 64, 56, 56}, {n, 64, 28, 28}, {n, 64, 28, 28}}, 4);
    add("pad(a, 2, 3)", {{n, 10000}}, 2);
    add("concat(a, b, 1)", {{n, 10000}, {n, 20000}}, 2);
    add("upsampling_nearest(a, 3)", {{n, 5000}}, 2);
    add("flip(a, 1)", {{n, 100000}}, 2);
    add("repmat(a, 6000)", {{20 * n}}, 2);
    add("slice_ex(a, 0, 1, 9, 44, 1, 3)", {{n, 100000}}, 2);
    add("take(a, b)", {{30 * n}, {1000, 600}}, 2);
    add("reshape(a, 4000, 16000)", {{40, 1000, 1600}}, 2);
  }
  for (const index_t n : {1000, 100000}) {
    calls.AddLarge("kernel sums(x: f32[n, m]) -> (s: f32[m]) { s = reduce_with_axis<sum>(x, 0) }", {{40, 16 * n}});
    calls.AddLarge("kernel turned(a: f32[p, q]) -> (y: f32[q, p]) { y = a.T * 2 }", {{n, 30000}});
    calls.AddLarge("kernel twice(a: f32[p, q]) -> (y: f32[p, q]) { y = a * 2 }", {{n, 30000}});
    calls.AddLarge(kSoftmax, {{20 * n, 512}});
  }
  calls.Run();
}

TEST(CudaHost, DrawnGraphs) {
  Calls calls;
  std::mt19937 random(20261125);
  for (int round = 0; round < 24; ++round) {
    const int rank = 1 + round % 3;
    const DType dtype = round % 4 == 3 ? DType::kInt32 : DType::kFloat32;
    const auto graph = drawn::DrawGraph(&random, dtype, rank);
    Calls::Shape shape;
    for (int d = 0; d < rank; ++d) shape.push_back(2 + static_cast<index_t>(random() % 20));
    shape.back() *= round % 5 == 0 ? 1 : 4;
    calls.Add(graph, {shape, shape, {shape.back()}}, 1e-4);
  }
  EXPECT_GE(calls.Run(), 18);
}

// What no test has the memory for is told before anything is launched.
TEST(CudaHost, WhatDoesNotFitIsRefused) {
  const auto host = [](const std::string& text) {
    const plan::Plan plan = Lower(*graph::ParseText(text)[0], true);
    const auto& kernel = std::get<plan::Kernel>(plan.steps[0]);
    const runtime::CudaVariant variant = codegen::TypicalCudaVariant(plan, kernel);
    const codegen::CudaSource source = codegen::GenerateCuda(plan, kernel, variant);
    return std::pair(source, codegen::LaunchOfCuda(plan, kernel, variant, source.function));
  };
  const auto [source, launch] = host("kernel triad(a: f32[n], b: f32[n]) -> (y: f32[n]) { y = a * 2 + b }");
  Files files;
  const int number = files.Add(source, launch);
  files.Build();
  std::vector<double> memory(2 * 20);
  const auto call = [&](index_t n, std::size_t offset) {
    char* const base = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 15) / 16 * 16);
    const void* const y = base;
    const void* const a = base + offset;
    void* const stream = nullptr;
    Recorded recorded{};
    const int result = files.Call(number, {&a, &y, &y, &n, &stream}, &recorded);
    EXPECT_EQ(recorded.launches, result == kSuccess && n > 0);
    return result;
  };
  EXPECT_EQ(call(8, 0), kSuccess);
  EXPECT_EQ(call(0, 0), kSuccess);
  EXPECT_EQ(call(8, 4), kInvalidValue);
  EXPECT_EQ(call(-8, 0), kInvalidValue);
  EXPECT_EQ(call(runtime::kIndexLimit, 0), kInvalidValue);
  EXPECT_EQ(call(index_t{1} << 62, 0), kInvalidValue);
  // Static extents say which variant there is: what has room for 64 bits is not refused.
  const auto wide = host("kernel wide(a: f32[65536, 65536]) -> (y: f32[65536, 65536]) { y = a * 2 }");
  EXPECT_NE(wide.first.kernel.find("const i64 i1"), std::string::npos) << wide.first.kernel;
  EXPECT_EQ(wide.second.text.find(">="), std::string::npos) << wide.second.text;
}

}  // namespace
}  // namespace umbra

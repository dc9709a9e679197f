// bench_gpu [ELEMENTS], or bench_gpu first NUMBER: times generated kernels on the GPU with CUDA events, beside a plain copy and bare cuBLASLt. Prints a
// JSON object a line: what ran, microseconds (median of five times twenty launches), and bytes moved or operations done.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "compiler/driver/nvrtc.h"
#include "compiler/graph/graph.h"
#include "runtime/cuda_kernel.h"
#include "umbra/cuda_gemm.h"
#include "umbra/jit.h"

namespace umbra {
namespace {

class Bench {
 public:
  explicit Bench(index_t elements) : elements_(elements) {}

  void Run() {
    Copy();
    const index_t n = elements_, rows = std::max<index_t>(1, n / 1024), side = static_cast<index_t>(std::sqrt(static_cast<double>(n)));
    Kernel("triad", "kernel triad(a: f32[n], b: f32[n], s: f32) -> (y: f32[n]) { y = a * s + b }", {{n}, {n}});
    Kernel("gelu", "kernel gelu_bias(x: f32[n, m], b: f32[m]) -> (y: f32[n, m]) { y = gelu(x + broadcast<1>(b)) }", {{rows, 1024}, {1024}});
    Kernel("adam", "kernel adam(p: f32[n], g: f32[n], m: f32[n], v: f32[n], lr: f32) -> (p2: f32[n], m2: f32[n], v2: f32[n]) {\n"
                   "  m2 = m * 0.9 + g * 0.1\n  v2 = v * 0.999 + g * g * 0.001\n  p2 = p - m2 * lr / (sqrt(v2) + 0.00000001)\n}",
           {{n}, {n}, {n}, {n}});
    Kernel("softmax", "kernel softmax(x: f32[n, m]) -> (y: f32[n, m]) {\n  e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))\n"
                      "  y = e / broadcast<0>(reduce_with_axis<sum>(e, 1))\n}", {{rows, 1024}});
    Kernel("layernorm", "kernel layernorm(x: f32[n, m], g: f32[m], b: f32[m]) -> (y: f32[n, m]) {\n"
                        "  d = x - broadcast<0>(reduce_with_axis<sum>(x, 1) * 0.0009765625)\n"
                        "  v = reduce_with_axis<sum>(d * d, 1) * 0.0009765625\n"
                        "  y = d / broadcast<0>(sqrt(v + 0.00001)) * broadcast<1>(g) + broadcast<1>(b)\n}", {{rows, 1024}, {1024}, {1024}});
    Kernel("transpose", "kernel transpose2(x: f32[n, m]) -> (y: f32[m, n]) { y = transpose(x) }", {{side, side}});
    Kernel("channel_statistics", "kernel statistics(x: f32[n, m]) -> (s: f32[m], q: f32[m]) {\n  s = reduce_with_axis<sum>(x, 0)\n"
                                 "  q = reduce_with_axis<sum>(x * x, 0)\n}", {{rows, 1024}});
    Product();
    Overhead();
  }

 private:
  static void Print(const std::string& workload, const char* library, double us, double bytes, double operations = 0) {
    std::printf("{\"workload\": \"%s\", \"library\": \"%s\", \"us\": %.3f, \"GBps\": %.1f, \"TFLOPS\": %.1f}\n", workload.c_str(), library, us,
                bytes / us / 1e3, operations / us / 1e6);
    std::fflush(stdout);
  }

  // Median microseconds of a launch.
  double Time(const std::function<void()>& launch) {
    for (int k = 0; k < 3; ++k) launch();
    std::vector<double> times;
    for (int k = 0; k < 5; ++k) {
      const cuda::Event begin = stream_.Record();
      for (int l = 0; l < 20; ++l) launch();
      const cuda::Event end = stream_.Record();
      end.Wait();
      times.push_back(end.MillisecondsSince(begin) * 1e3 / 20);
    }
    std::sort(times.begin(), times.end());
    return times[2];
  }

  template <int dim, typename DType = float>
  TensorContainer<gpu, dim, DType> New(const Shape<dim>& shape, float value) {
    TensorContainer<gpu, dim, DType> tensor(false);
    tensor.Resize(shape);
    tensor.set_stream(&stream_);
    tensor = static_cast<DType>(value);
    return tensor;
  }

  void Copy() {
    auto from = New(Shape1(elements_), 0.5f), to = New(Shape1(elements_), 0.0f);
    Print("copy", "driver", Time([&] { umbra::Copy<1, float>(to, from, &stream_); }), 8.0 * static_cast<double>(elements_));
  }

  void Kernel(const std::string& name, const std::string& text, const std::vector<std::vector<index_t>>& shapes) {
    CompileOptions options;
    options.target = "cuda";
    const Function function = Compile(graph::ParseText(text)[0], options);
    std::vector<TensorContainer<gpu, 1>> memory;
    double bytes = 0;
    runtime::Arguments arguments;
    const auto add = [&](const std::vector<index_t>& shape, std::vector<runtime::TensorRef>* tensors) {
      index_t count = 1;
      for (const index_t extent : shape) count *= extent;
      memory.push_back(New(Shape1(count), 0.5f));
      tensors->push_back(runtime::TensorRef::Dense(memory.back().dptr_, DType::kFloat32, shape));
      bytes += 4.0 * static_cast<double>(count);
    };
    for (const auto& shape : shapes) add(shape, &arguments.inputs);
    for (const auto& shape : runtime::OutputShapes(function.program(), arguments.inputs)) add(shape, &arguments.outputs);
    for (std::size_t k = 0; k < function.program().scalars.size(); ++k) {
      umbra_scalar scalar{};
      scalar.f32 = 0.001f;
      arguments.scalars.push_back(scalar);
    }
    Print(name, "umbra", Time([&] { function(arguments, {0, stream_.handle_}); }), bytes);
  }

  // relu(dot(a, b) + bias) in bf16: strict math keeps NaN, which cuBLASLt's relu does not, so a kernel follows the product.
  void Product() {
    const index_t n = elements_ >= (index_t{1} << 26) ? 8192 : 256;
    auto a = New<2, bf16_t>(Shape2(n, n), 0.5f), b = New<2, bf16_t>(Shape2(n, n), 0.25f), y = New<2, bf16_t>(Shape2(n, n), 0.0f);
    auto bias = New<1, bf16_t>(Shape1(n), 0.5f);
    const double operations = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    cuda::Gemm gemm;
    gemm.dtype = DType::kBFloat16;
    gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = n;
    gemm.a = a.dptr_;
    gemm.b = b.dptr_;
    gemm.c = y.dptr_;
    Print("dot_bf16", "cublaslt", Time([&] { cuda::Run(gemm, stream_.handle_); }), 0, operations);
    for (const Math math : {Math::kStrict, Math::kFast}) {
      CompileOptions options;
      options.math = math;
      jit::SetOptions(options);
      Print("relu_dot_bias_bf16", math == Math::kFast ? "umbra_fast" : "umbra",
            Time([&] { jit(y) = F<op::relu>(dot(a, b) + broadcast<1>(bias, y.shape_)); }), 0, operations);
    }
    jit::SetOptions({});
    gemm.bias = bias.dptr_;
    gemm.epilogue = cuda::Epilogue::kBiasRelu;
    if (cuda::CanRun(gemm, stream_.handle_))
      Print("relu_dot_bias_bf16", "cublaslt", Time([&] { cuda::Run(gemm, stream_.handle_); }), 0, operations);
  }

  // Host time of a call: the Exp API, and a bare launch of an empty kernel.
  void Overhead() {
    auto x = New(Shape1(256), 0.5f), y = New(Shape1(256), 0.0f);
    const cuda::DeviceProperties& device = cuda::Properties(0);
    const std::string source = "struct nothing_args { void* data[2]; };\nextern \"C\" __global__ void nothing(const nothing_args args) {}\n";
    const cuda::Kernel nothing("nothing", {CompileCuda("namespace umbra::simd {\n" + source + "}\n", "nothing", {{device.major, device.minor}})});
    const std::array<void*, 2> data{};
    const auto time = [&](const std::function<void()>& call) {
      std::vector<double> times;
      for (int k = 0; k < 7; ++k) {
        stream_.Wait();
        const auto begin = std::chrono::steady_clock::now();
        for (int l = 0; l < 500; ++l) call();
        times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / 500);
      }
      std::sort(times.begin(), times.end());
      return times[3];
    };
    Print("host_time_of_a_launch", "driver", time([&] { nothing.Launch({}, data.data(), sizeof data, stream_.handle_); }), 0);
    Print("host_time_of_a_launch", "umbra", time([&] { y = x * 2.0f + 1.0f; }), 0);
  }

  // From text to the first launch of a kernel with `number` in it: by NVRTC, or from the disk cache.
 public:
  void FirstCall(const std::string& number) {
    auto x = New(Shape1(4096), 0.5f), y = New(Shape1(4096), 0.0f);
    stream_.Wait();
    const int compiled = GetCompileStatistics().compiled;
    const auto begin = std::chrono::steady_clock::now();
    CompileOptions options;
    options.target = "cuda";
    const Function function = Compile(graph::ParseText("kernel first(x: f32[n]) -> (y: f32[n]) { y = gelu(x * " + number + ") + x }")[0], options);
    function({{runtime::TensorRef::Dense(x.dptr_, DType::kFloat32, {4096})}, {runtime::TensorRef::Dense(y.dptr_, DType::kFloat32, {4096})}, {}},
             {0, stream_.handle_});
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    Print(GetCompileStatistics().compiled > compiled ? "first_call_compiles" : "first_call_from_disk", "umbra", time.count(), 0);
  }

 private:
  index_t elements_;
  Stream<gpu> stream_;
};

}  // namespace
}  // namespace umbra

int main(int argc, char** argv) {
  try {
    umbra::SetDevice<umbra::gpu>(0);
    if (argc > 2) umbra::Bench(1).FirstCall(argv[2]);
    else umbra::Bench(argc > 1 ? std::atoll(argv[1]) : umbra::index_t{1} << 28).Run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_gpu: error: %s\n", error.what());
    return 1;
  }
}

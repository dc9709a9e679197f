// bench_gpu [ELEMENTS], or bench_gpu first NUMBER: times the suite's workloads on the GPU with CUDA events, at ELEMENTS
// elements (256 Mi unless told) and at the shapes of models. Prints a line a result, its fields apart by tabs:
//   WORKLOAD LIBRARY MICROSECONDS BYTES OPERATIONS, or WORKLOAD LIBRARY error WHY
// The library `limit` is what the GPU can do: the bytes at the bandwidth of the driver's copy, the bare product of
// cuBLASLt, the bare launch of the driver. With fewer than 1 Mi elements all is small, and results are first compared
// with the interpreter's.
#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "benchmarks/calls.h"
#include "benchmarks/workloads.h"
#include "compiler/driver/nvrtc.h"
#include "runtime/cuda/driver.h"
#include "umbra/cuda_gemm.h"
#include "umbra/graph.h"
#include "umbra/jit.h"

namespace bench {
namespace {

using namespace umbra;
using runtime::TensorRef;

// As Dense, in the numbers of tensor cores.
struct DenseBf16 {
  Size rows, inner, columns;
  const bf16_t *x, *w, *bias;
  bf16_t* out;
};

Call CallOf(const DenseBf16& d) {
  const auto ref = [](const bf16_t* p, std::vector<index_t> shape) {
    return TensorRef::Dense(const_cast<bf16_t*>(p), DType::kBFloat16, std::move(shape));
  };
  return {graph::ParseText("kernel dense_bf16(x: bf16[n, k], w: bf16[k, m], bias: bf16[m]) -> (y: bf16[n, m]) {\n"
                           "  y = relu(dot(x, w) + broadcast<1>(bias))\n}")[0],
          {{ref(d.x, {d.rows, d.inner}), ref(d.w, {d.inner, d.columns}), ref(d.bias, {d.columns})},
           {ref(d.out, {d.rows, d.columns})},
           {}}};
}

Bytes BytesOf(const DenseBf16& d) {
  return {2.0 * static_cast<double>((d.rows + d.columns) * d.inner), 2.0 * static_cast<double>(d.rows * d.columns)};
}

template <typename Workload>
inline constexpr bool kIsProduct = std::is_same_v<Workload, Dense> || std::is_same_v<Workload, DenseBf16>;

// Has the workload a result of its own with fast arithmetic? As on the CPU; and products, which cuBLASLt's relu may
// then follow.
template <typename Workload>
inline constexpr bool kHasFast =
    kIsProduct<Workload> || std::is_same_v<decltype(umbra_fast::Run(std::declval<const Workload&>())), Prepared>;

double ElementOf(const TensorRef& t, std::size_t i) {
  if (t.dtype == DType::kBFloat16) return static_cast<float>(static_cast<const bf16_t*>(t.data)[i]);
  if (t.dtype == DType::kInt8) return static_cast<const std::int8_t*>(t.data)[i];
  return static_cast<const float*>(t.data)[i];
}

std::size_t CountOf(const TensorRef& t) {
  std::size_t count = 1;
  for (const index_t extent : t.shape) count *= static_cast<std::size_t>(extent);
  return count;
}

// Numbers in the GPU's memory, drawn there.
class OnGpu {
 public:
  explicit OnGpu(umbra::Stream<gpu>* stream) : stream_(stream), random_(7) { random_.set_stream(stream); }

  template <typename T = float>
  T* operator()(Size n, float low, float high) {
    auto tensor = std::make_shared<TensorContainer<gpu, 1, T>>(false);
    tensor->set_stream(stream_);
    tensor->Resize(Shape1(n));
    if constexpr (std::is_same_v<T, float>) random_.SampleUniform<1>(tensor.get(), low, high);
    else if constexpr (std::is_integral_v<T>) *tensor = tcast<T>(F<op::floor>(random_.uniform(Shape1(n), low, high)));
    else *tensor = tcast<T>(random_.uniform(Shape1(n), low, high));
    memory_.push_back(tensor);
    return tensor->dptr_;
  }
  void Free() { memory_.clear(); }

 private:
  umbra::Stream<gpu>* stream_;
  Random<gpu> random_;
  std::vector<std::shared_ptr<void>> memory_;
};

// Products draw so much power that a GPU slows down with what ran before; this long before each is timed nothing runs,
// nor does in peers.py.
constexpr std::chrono::milliseconds kRest{100};

class Bench {
 public:
  explicit Bench(Size elements) : elements_(elements), small_(elements < Size{1} << 20), make_(&stream_) {}

  void Run() {
    Copy();
    const Size n = elements_, c = Of(64), h = Of(56), w = Of(56);
    Vectors(n);
    Matrices(std::max<Size>(1, n / 1024), static_cast<Size>(std::sqrt(static_cast<double>(n))) / 4 * 4);
    Images(std::max<Size>(1, n / (c * h * w)), c, h, w);
    Take(std::max<Size>(1, n / 256));
    Products();
    Run(
        "update_of_tensors", [&](Size tensors) { return MakeAdamSteps(make_, static_cast<int>(tensors), 1e-3f); },
        Size{small_ ? 3 : 200});
    // As models have them.
    Matrices(Of(4096), Of(4096));
    Images(Of(32), c, h, w);
    Take(Of(65536));
    Overhead();
  }

  // From text to the first launch of a kernel with `number` in it, by NVRTC, or from the disk cache: in a process that
  // has called none, which opens NVRTC, or in one that has.
  void FirstCall(const std::string& number, const std::string& name) {
    Try(name, "umbra", [&] {
      const float* const x = make_(4096, -1, 1);
      float* const y = make_(4096, 0, 1);
      stream_.Wait();
      const int compiled = GetCompileStatistics().compiled;
      const auto begin = std::chrono::steady_clock::now();
      const Function function = Compile(
          graph::ParseText("kernel first(x: f32[n]) -> (y: f32[n]) { y = gelu(x * " + number + ") + x }")[0], Target());
      function({{TensorRef::Dense(const_cast<float*>(x), DType::kFloat32, {4096})},
                {TensorRef::Dense(y, DType::kFloat32, {4096})},
                {}},
               Options());
      const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
      Print(name + (GetCompileStatistics().compiled > compiled ? "_compiles" : "_from_disk"), "umbra", time.count());
    });
  }

  bool failed() const { return failed_; }

 private:
  // An extent of a model, or a small one.
  Size Of(Size extent) const { return small_ ? std::min<Size>(extent, 16) : extent; }

  static CompileOptions Target(Math math = Math::kStrict) {
    CompileOptions options;
    options.target = kCudaTarget;
    options.math = math;
    return options;
  }
  runtime::RunOptions Options() const { return {0, stream_.handle_}; }

  static void Print(const std::string& workload, const char* library, double us, double bytes = 0,
                    double operations = 0) {
    std::printf("%s\t%s\t%.3f\t%.0f\t%.0f\n", workload.c_str(), library, us, bytes, operations);
    std::fflush(stdout);
  }

  // What a library cannot run is a line that says so; the others go on.
  void Try(const std::string& workload, const char* library, const std::function<void()>& body) {
    try {
      body();
    } catch (const std::exception& error) {
      std::string why = error.what();
      for (char& c : why)
        if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
      std::printf("%s\t%s\terror\t%s\n", workload.c_str(), library, why.c_str());
      std::fflush(stdout);
      failed_ = true;
    }
  }

  // Median microseconds of each launch, of five times up to twenty, as many as take 20 ms. They take turns, and nothing
  // runs for `rest` before each, so that they find the device as warm.
  std::vector<double> Times(const std::vector<std::function<void()>>& launches, std::chrono::milliseconds rest = {}) {
    const auto run = [&](const std::function<void()>& launch, int times) {
      const cuda::Event begin = stream_.Record();
      for (int k = 0; k < times; ++k) launch();
      const cuda::Event end = stream_.Record();
      end.Wait();
      return end.MillisecondsSince(begin) * 1e3 / times;
    };
    std::vector<double> medians;
    std::vector<int> repeats;
    std::vector<std::array<double, 5>> times(launches.size());
    for (const auto& launch : launches) {
      launch();
      medians.push_back(run(launch, 1));
      repeats.push_back(static_cast<int>(std::clamp(20e3 / std::max(medians.back(), 1.0), 1.0, 20.0)));
    }
    if (small_) return medians;
    for (std::size_t round = 0; round < 5; ++round)
      for (std::size_t k = 0; k < launches.size(); ++k) {
        std::this_thread::sleep_for(rest);
        times[k][round] = run(launches[k], repeats[k]);
      }
    for (std::size_t k = 0; k < launches.size(); ++k) {
      std::sort(times[k].begin(), times[k].end());
      medians[k] = times[k][2];
    }
    return medians;
  }

  // The workload that `build` makes of the extents, which are part of its name.
  template <typename Build, typename... Extents>
  void Run(const std::string& kind, const Build& build, Extents... extents) {
    std::string name = kind;
    for (const Size extent : {Size{extents}...}) name += (name == kind ? "_" : "x") + std::to_string(extent);
    Try(name, "umbra", [&] { RunOne(name, build(Size{extents}...)); });
    make_.Free();
  }

  template <typename Workload>
  void RunOne(const std::string& name, const Workload& d) {
    const auto [read, written] = BytesOf(d);
    const double bytes = read + written;
    double operations = 0, limit = us_per_byte_ * bytes;
    std::vector<const char*> libraries;
    std::vector<std::function<void()>> launches;
    if constexpr (kIsProduct<Workload>) {
      operations = 2.0 * static_cast<double>(d.rows) * static_cast<double>(d.inner) * static_cast<double>(d.columns);
      libraries.push_back("limit");
      launches.push_back([this, gemm = BareProduct(d)] { cuda::Run(gemm, stream_.handle_); });
    }
    const Call call = CallOf(d);
    const auto add = [&](const char* library, Math math) {
      Try(name, library, [&] {
        const Function function = Compile(call.kernel, Target(math));
        if (small_) Check(call, function);
        function(call.arguments, Options());
        libraries.push_back(library);
        launches.push_back([this, function, &call] { function(call.arguments, Options()); });
      });
    };
    add("umbra", Math::kStrict);
    if constexpr (kHasFast<Workload>) add("umbra_fast", Math::kFast);
    const std::vector<double> times = Times(launches, kIsProduct<Workload> ? kRest : std::chrono::milliseconds());
    if constexpr (kIsProduct<Workload>) limit = std::max(limit, times[0]);
    Print(name, "limit", limit, bytes, operations);
    for (std::size_t k = kIsProduct<Workload> ? 1 : 0; k < launches.size(); ++k)
      Print(name, libraries[k], times[k], bytes, operations);
  }

  template <typename Product>
  static cuda::Gemm BareProduct(const Product& d) {
    cuda::Gemm gemm;
    gemm.dtype = DTypeOf<std::remove_pointer_t<decltype(d.out)>>::value;
    gemm.m = d.rows;
    gemm.k = gemm.lda = d.inner;
    gemm.n = gemm.ldb = gemm.ldc = d.columns;
    gemm.a = d.x;
    gemm.b = d.w;
    gemm.c = d.out;
    return gemm;
  }

  // Throws unless the results are those of the interpreter for copies of the operands, up to rounding.
  void Check(const Call& call, const Function& function) {
    stream_.Wait();
    std::map<void*, std::vector<char>> copies;  // one of operands that are the same
    runtime::Arguments host = call.arguments;
    for (auto* tensors : {&host.inputs, &host.outputs})
      for (TensorRef& tensor : *tensors) {
        std::vector<char>& copy = copies[tensor.data];
        if (copy.empty()) copy = Fetched(tensor);
        tensor.data = copy.data();
      }
    CompileOptions interpreted;
    interpreted.engine = Engine::kInterpreter;
    Compile(call.kernel, interpreted)(host);
    function(call.arguments, Options());
    stream_.Wait();
    for (std::size_t k = 0; k < host.outputs.size(); ++k) {
      TensorRef got = call.arguments.outputs[k];
      std::vector<char> bytes = Fetched(got);
      got.data = bytes.data();
      const double tolerance = got.dtype == DType::kBFloat16 ? 2e-2 : 1e-3;
      for (std::size_t i = 0; i < CountOf(got); ++i) {
        const double expected = ElementOf(host.outputs[k], i), given = ElementOf(got, i);
        Require(std::fabs(given - expected) <= tolerance * (1 + std::fabs(expected)), "result ", k, " is ", given,
                " at ", i, ", expected ", expected);
      }
    }
  }

  static std::vector<char> Fetched(const TensorRef& tensor) {
    std::vector<char> bytes(CountOf(tensor) * SizeOf(tensor.dtype));
    cuda::Copy(cuda::CopyKind::kDeviceToHost, bytes.data(), bytes.size(), tensor.data, bytes.size(), bytes.size(), 1,
               nullptr);
    return bytes;
  }

  // What the driver's copy does is the GPU's bandwidth.
  void Copy() {
    Try("copy_" + std::to_string(elements_), "limit", [&] {
      const float* const from = make_(elements_, 0, 1);
      float* const to = make_(elements_, 0, 1);
      const auto row = static_cast<std::size_t>(elements_) * sizeof(float);
      const double us =
          Times({[&] { cuda::Copy(cuda::CopyKind::kDeviceToDevice, to, row, from, row, row, 1, stream_.handle_); }})[0];
      const double bytes = 2.0 * static_cast<double>(row);
      us_per_byte_ = us / bytes;
      Print("copy_" + std::to_string(elements_), "limit", us, bytes);
    });
    make_.Free();
  }

  void Vectors(Size n) {
    Run(
        "triad", [&](Size m) { return MakeTriad(make_, m); }, n);
    Run(
        "adam", [&](Size m) { return MakeAdam(make_, m, 1e-3f); }, n);
    Run(
        "black_scholes", [&](Size m) { return MakeOptions(make_, m); }, n);
    Run(
        "mixed_f16", [&](Size m) { return MakeMixed(make_, m); }, n);
    Run(
        "saxpy_i8", [&](Size m) { return MakeSaxpy8(make_, m); }, n);
    std::vector<const float*> inputs;
    Run(
        "sum_of_500", [&](Size m) { return MakeSum500(make_, m, &inputs); }, std::max<Size>(1, n / Sum500::kInputs));
  }

  // Rows of 1024, and square ones.
  void Matrices(Size rows, Size side) {
    const Size columns = 1024;
    Run(
        "gelu", [&](auto... e) { return MakeGelu(make_, e...); }, rows, columns);
    Run(
        "softmax", [&](auto... e) { return Softmax{MakeRows(make_, e...)}; }, rows, columns);
    Run(
        "softmax_gradient", [&](auto... e) { return MakeSoftmaxGradient(make_, e...); }, rows, columns);
    Run(
        "layernorm", [&](auto... e) { return LayerNorm{MakeRows(make_, e...)}; }, rows, columns);
    Run(
        "layernorm_gradient", [&](auto... e) { return MakeLayerNormGradient(make_, e...); }, rows, columns);
    Run(
        "log_sum_exp", [&](auto... e) { return LogSumExp{MakeRows(make_, e...)}; }, rows, columns);
    Run(
        "transpose", [&](Size n, Size) { return MakeTranspose(make_, n); }, side, side);
    Run(
        "concat_4_of", [&](auto... e) { return MakeConcat(make_, e...); }, side, side / 4);
  }

  void Images(Size n, Size c, Size h, Size w) {
    Run(
        "mean_variance", [&](Size n, Size c, Size h, Size w) { return MakeChannels(make_, n, c, h * w); }, n, c, h, w);
    Run(
        "patch2col_3x3", [&](auto... e) { return MakePatches(make_, e...); }, n, c, h, w);
    Run(
        "max_pool_2x2", [&](auto... e) { return MakeMaxPool(make_, e...); }, n, c, h, w);
    Run(
        "max_unpool_2x2",
        [&](auto... e) {
          const MaxPool pool = MakeMaxPool(make_, e...);
          const Call call = CallOf(pool);
          Compile(call.kernel, Target())(call.arguments, Options());
          return MakeUnpool(make_, pool);
        },
        n, c, h, w);
  }

  void Take(Size count) {
    Run(
        "take", [&](auto... e) { return MakeTake(make_, e...); }, count, Size{256});
  }

  // relu(dot(a, b) + bias): strict math keeps NaN, which cuBLASLt's relu does not, so a kernel follows the product.
  void Products() {
    Run(
        "dense_bf16",
        [&](Size m, Size k, Size l) {
          const auto make = [&](Size n) { return make_.operator()<bf16_t>(n, -1, 1); };
          return DenseBf16{m, k, l, make(m * k), make(k * l), make(l), make(m * l)};
        },
        Of(8192), Of(8192), Of(8192));
    static constexpr Size kShapes[][3] = {{512, 1024, 1024}, {4, 512, 1024}, {16, 1024, 1024}, {4096, 512, 16}};
    for (const auto& [rows, inner, columns] : kShapes)
      Run(
          "dense", [&](auto... e) { return MakeDense(make_, e...); }, Of(rows), Of(inner), Of(columns));
  }

  // Host time of a call: the Exp API, and the driver's launch of an empty kernel with nothing in between, in turns.
  void Overhead() {
    const std::string name = "host_time_of_a_launch";
    const auto time = [](const std::function<void()>& call, const std::function<void()>& wait) {
      wait();
      const auto begin = std::chrono::steady_clock::now();
      for (int l = 0; l < 500; ++l) call();
      return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / 500;
    };
    Try(name, "umbra", [&] {
      const cuda::Driver& driver = cuda::UseDriver();
      const auto done = [](cuda::Result result) {
        Require(result == cuda::kSuccess, "the driver: ", cuda::Words(result));
      };
      const cuda::DeviceProperties& device = cuda::Properties(0);
      const cuda::Image image = CompileCuda(
          "namespace umbra::simd {\nstruct nothing_args { void* data[2]; };\n"
          "extern \"C\" __global__ void nothing(const nothing_args args) {}\n}\n",
          "nothing", {{device.major, device.minor}});
      cuda::Module module = nullptr;
      done(driver.cuModuleLoadDataEx(&module, image.bytes.data(), 0, nullptr, nullptr));
      cuda::Function nothing = nullptr;
      done(driver.cuModuleGetFunction(&nothing, module, "nothing"));
      void* stream = nullptr;
      done(driver.cuStreamCreate(&stream, 1));  // which waits for no other
      std::array<void*, 2> data{};
      std::size_t size = sizeof data;
      void* extra[] = {reinterpret_cast<void*>(1), data.data(), reinterpret_cast<void*>(2), &size, nullptr};
      const Tensor<gpu, 1> x(make_(256, 0, 1), Shape1(256), &stream_);
      Tensor<gpu, 1> y(make_(256, 0, 1), Shape1(256), &stream_);
      std::array<double, 15> bare, whole;
      for (std::size_t round = 0; round < bare.size(); ++round) {
        bare[round] = time([&] { driver.cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, extra); },
                           [&] { done(driver.cuStreamSynchronize(stream)); });
        whole[round] = time([&] { y = x * 2.0f + 1.0f; }, [&] { stream_.Wait(); });
      }
      for (auto* times : {&bare, &whole}) {
        std::sort(times->begin(), times->end());
        Print(name, times == &bare ? "limit" : "umbra", (*times)[times->size() / 2]);
      }
      done(driver.cuStreamSynchronize(stream));
      done(driver.cuStreamDestroy_v2(stream));
      done(driver.cuModuleUnload(module));
    });
    make_.Free();
  }

  Size elements_;
  bool small_, failed_ = false;
  double us_per_byte_ = 0;  // of memory that is read or written
  umbra::Stream<gpu> stream_;
  OnGpu make_;
};

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    const bool first = argc > 2 && std::string(argv[1]) == "first";
    const bench::Size elements = argc == 2 ? std::atoll(argv[1]) : bench::Size{1} << 28;
    umbra::Require((first && argc == 3) || (!first && argc < 3 && elements > 0),
                   "expected a number of elements, or first and a number; given: ", argc > 1 ? argv[1] : "nothing",
                   argc > 2 ? " " : "", argc > 2 ? argv[2] : "");
    umbra::SetDevice<umbra::gpu>(0);
    bench::Bench bench(elements);
    if (first) {
      bench.FirstCall(argv[2], "first_call");
      bench.FirstCall("1" + std::string(argv[2]), "next_call");
    } else {
      bench.Run();
    }
    return bench.failed() ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_gpu: error: %s\n", error.what());
    return 1;
  }
}

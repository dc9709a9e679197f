// The same on a real GPU, where the machine has one: NVRTC, launches, copies, graphs, matrix products, a device that
// fails.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "compiler/driver/nvrtc.h"
#include "runtime/cuda/cublas.h"
#include "runtime/cuda_kernel.h"
#include "tests/support/testing.h"
#include "umbra/compile.h"
#include "umbra/graph.h"
#include "umbra/tensor.h"

namespace umbra {
namespace {

#define NEEDS_GPU() \
  if (cuda::DeviceCount() == 0) GTEST_SKIP() << "no GPU: " << MessageOf([] { SetDevice<gpu>(0); })
#define NEEDS_NVRTC() \
  if (FindNvrtc().name.empty()) GTEST_SKIP() << FindNvrtc().problem

struct Arguments {
  float* data;
  long long extent;
  double factor;
};
constexpr const char* kSource = R"(
struct scale_args { float* data; long long extent; double factor; };
extern "C" __global__ void scale(const scale_args args) {
  extern __shared__ float staged[];
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  staged[threadIdx.x] = i < args.extent ? args.data[i] : 0.0f;
  __syncthreads();
  if (i < args.extent) args.data[i] = staged[threadIdx.x] * (float)args.factor;
}
)";

cuda::Kernel Scale(cuda::ImageForm form) {
  const cuda::DeviceProperties& p = cuda::Properties(0);
  return {"scale", {CompileCuda(kSource, "scale", {cuda::Architecture{p.major, p.minor, 0}, form}, false)}};
}

TEST(Gpu, LaunchesWhatNvrtcCompiles) {
  NEEDS_GPU();
  NEEDS_NVRTC();
  for (const cuda::ImageForm form : {cuda::ImageForm::kCubin, cuda::ImageForm::kPtx}) {
    const cuda::Kernel scale = Scale(form);
    Stream<gpu> stream;
    TensorContainer<cpu, 1> x(Shape1(100003)), back(x.shape_);
    for (index_t i = 0; i < x.size(0); ++i) x[i] = static_cast<float>(i % 1000);
    TensorContainer<gpu, 1> there(x.shape_);
    Copy<1, float>(there, x, &stream);
    const Arguments args{there.dptr_, x.size(0), 2.0};
    const auto most =
        static_cast<unsigned>(cuda::Properties(0).shared_per_block_opt_in);  // more than a launch may have unasked
    scale.Launch({{(100003 + 255) / 256, 1, 1}, {256, 1, 1}, most}, &args, sizeof args, stream.handle_);
    const cuda::Graph graph = stream.Capture([&] {
      scale.Launch({{(100003 + 255) / 256, 1, 1}, {256, 1, 1}, 1024}, &args, sizeof args, stream.handle_);
    });
    stream.Launch(graph);
    Copy<1, float>(back, there, &stream);
    stream.Wait();
    for (index_t i = 0; i < x.size(0); ++i) ASSERT_EQ(back[i], 4 * x[i]);
    EXPECT_GT(scale.Resources(0).registers, 0);
    EXPECT_EQ(scale.Resources(0).local_bytes, 0u);
    EXPECT_GT(scale.BlocksPerMultiprocessor(0, 256, 1024), 0);
  }
}

TEST(Gpu, CopiesAndMemory) {
  NEEDS_GPU();
  Stream<gpu> one, two;
  const cuda::MemoryStatistics before = cuda::GetMemoryStatistics(0);
  {
    TensorContainer<cpu, 2> x(Shape2(3001, 1003)), back(x.shape_);
    for (index_t y = 0; y < 3001; ++y)
      for (index_t k = 0; k < 1003; ++k) x[y][k] = static_cast<float>(y * 7 + k);
    TensorContainer<gpu, 2> a(x.shape_), b(x.shape_);
    Copy<2, float>(a, x, &one);
    const cuda::Event start = one.Record();
    two.WaitFor(one);
    Copy<2, float>(b, a, &two);
    a.Release();  // two may still read it
    TensorContainer<gpu, 2> other(x.shape_, -1.0f);
    const cuda::Event end = two.Record();
    Copy<2, float>(back, b, &two);
    two.Wait();
    EXPECT_GE(end.MillisecondsSince(start), 0.0);
    for (index_t y = 0; y < 3001; ++y)
      for (index_t k = 0; k < 1003; ++k) ASSERT_EQ(back[y][k], x[y][k]);
  }
  EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, before.in_use);
  std::size_t pitch = 0;
  EXPECT_SAYS("bytes free", cuda::Allocate(std::size_t{1} << 50, 1, &pitch));
  cuda::TrimMemory(0);
}

template <typename T>
void Multiply(double tolerance) {
  Stream<gpu> stream;
  TensorContainer<cpu, 2, T> a(Shape2(130, 70)), b(Shape2(90, 70)), back(Shape2(130, 90)), expected(Shape2(130, 90));
  for (index_t i = 0; i < 130; ++i)
    for (index_t k = 0; k < 70; ++k) a[i][k] = static_cast<float>(std::sin(static_cast<double>(i * 3 + k)));
  for (index_t j = 0; j < 90; ++j)
    for (index_t k = 0; k < 70; ++k) b[j][k] = static_cast<float>(std::cos(static_cast<double>(j + k * 5)));
  TensorContainer<gpu, 2, T> ga(a.shape_), gb(b.shape_), gc(back.shape_);
  for (auto* t : {&ga, &gb, &gc}) t->set_stream(&stream);
  Copy<2, T>(ga, a, &stream);
  Copy<2, T>(gb, b, &stream);
  expected = dot(a, b.T());
  const auto multiply = [&] { gc = dot(ga, gb.T()); };
  for (const bool captured : {false, true}) {
    back = T(0.0f);
    Copy<2, T>(gc, back, &stream);
    if (captured) stream.Launch(stream.Capture(multiply));
    else multiply();
    Copy<2, T>(back, gc, &stream);
    stream.Wait();
    for (index_t i = 0; i < 130; ++i)
      for (index_t j = 0; j < 90; ++j)
        ASSERT_NEAR(static_cast<double>(back[i][j]), static_cast<double>(expected[i][j]), tolerance) << captured;
  }
}
TEST(Gpu, MultipliesMatrices) {
  NEEDS_GPU();
  if (cuda::FindCublas().name.empty()) GTEST_SKIP() << cuda::FindCublas().problem;
  Multiply<float>(2e-5);  // sums of 70 products of numbers up to 1, in another order
  Multiply<double>(2e-14);
  Multiply<half_t>(0.04);  // an ULP of a sum below 64
  Multiply<bf16_t>(0.3);
}

// `text`, of x and w, on the GPU in fast arithmetic.
std::vector<float> Fast(const std::string& text, std::vector<float> x, std::vector<float> w) {
  CompileOptions options;
  options.target = "cuda";
  options.math = Math::kFast;
  const Function function =
      Compile(graph::ParseText("kernel k(x: f32[n], w: f32[n]) -> (y: f32[n]) { y = " + text + " }")[0], options);
  const auto n = static_cast<index_t>(x.size());
  TensorContainer<gpu, 1> first(Shape1(n)), second(Shape1(n)), result(Shape1(n));
  std::vector<float> y(x.size());
  Copy<1, float>(first, Tensor<cpu, 1>(x.data(), Shape1(n)));
  Copy<1, float>(second, Tensor<cpu, 1>(w.data(), Shape1(n)));
  const auto ref = [n](const auto& tensor) { return runtime::TensorRef::Dense(tensor.dptr_, DType::kFloat32, {n}); };
  function({{ref(first), ref(second)}, {ref(result)}, {}});
  Copy<1, float>(Tensor<cpu, 1>(y.data(), Shape1(n)), result);
  return y;
}

// One float in `every`, and the last and the odd ones.
std::vector<float> Floats(std::uint64_t every) {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += every) {
    const auto pattern = static_cast<std::uint32_t>(bits);
    float argument;
    std::memcpy(&argument, &pattern, sizeof argument);
    x.push_back(argument);
  }
  const float infinity = std::numeric_limits<float>::infinity(), largest = std::numeric_limits<float>::max();
  x.insert(x.end(), {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), largest, -largest, 0.0f, -0.0f});
  return x;
}

// Fast exponentials, quotients and roots are the GPU's own (docs/numerics.md): over arguments of every size, and those
// that are no numbers.
TEST(Gpu, FastFunctionsAreClose) {
  NEEDS_GPU();
  NEEDS_NVRTC();
  const std::vector<float> x = Floats(211);
  std::vector<float> w(x.size());
  for (std::size_t k = 0; k < w.size(); ++k) w[k] = x[k * 1000003 % x.size()];
  struct One {
    const char* text;
    double (*exact)(double, double);
    double allowed;  // ULP
  };
  for (const auto& [text, exact, allowed] : {One{"exp(x)", [](double a, double) { return std::exp(a); }, 3},
                                             One{"x / w", [](double a, double b) { return a / b; }, 2.5},
                                             One{"sqrt(x)", [](double a, double) { return std::sqrt(a); }, 1.5}}) {
    const std::vector<float> y = Fast(text, x, w);
    double most = 0;
    for (std::size_t k = 0; k < y.size(); ++k) {
      const double right = exact(static_cast<double>(x[k]), static_cast<double>(w[k]));
      if (std::isnan(right)) {
        ASSERT_TRUE(std::isnan(y[k])) << text << " of " << x[k] << " and " << w[k] << " is " << y[k];
        continue;
      }
      if (std::fabs(right) > static_cast<double>(std::numeric_limits<float>::max())) {
        ASSERT_TRUE(right > 0 ? y[k] >= std::numeric_limits<float>::max() : y[k] <= -std::numeric_limits<float>::max())
            << text << " of " << x[k] << " and " << w[k];
        continue;
      }
      const double ulp = std::ldexp(1.0, std::max(std::ilogb(std::max(std::fabs(right), 1e-300)), -126) - 23);
      most = std::max(most, std::fabs(static_cast<double>(y[k]) - right) / ulp);
      ASSERT_LE(std::fabs(static_cast<double>(y[k]) - right) / ulp, allowed)
          << text << " of " << x[k] << " and " << w[k] << " is " << y[k];
    }
    std::printf("%s: largest error %.2f ULP\n", text, most);
  }
}

// NVIDIA's library has what plans expect of it, so that no kernel follows.
TEST(Gpu, ProductsHaveEpilogues) {
  NEEDS_GPU();
  if (cuda::FindCublas().name.empty()) GTEST_SKIP() << cuda::FindCublas().problem;
  Stream<gpu> stream;
  const auto check = [&](auto of, index_t batch) {
    using T = decltype(of);
    TensorContainer<gpu, 2, T> a(Shape2(256, 256)), b(a.shape_), c(a.shape_);
    TensorContainer<gpu, 1, T> bias(Shape1(256));
    cuda::Gemm gemm;
    gemm.dtype = DTypeOf<T>::value;
    gemm.batch = batch;
    gemm.m = gemm.n = gemm.k = 256 / batch;
    gemm.lda = gemm.ldb = gemm.ldc = 256;
    gemm.stride_a = gemm.stride_b = gemm.stride_c = 256 * gemm.m;
    gemm.a = a.dptr_, gemm.b = b.dptr_, gemm.c = c.dptr_, gemm.bias = bias.dptr_;
    using cuda::Epilogue;
    for (const Epilogue epilogue :
         {Epilogue::kBias, Epilogue::kRelu, Epilogue::kBiasRelu, Epilogue::kGelu, Epilogue::kBiasGelu}) {
      gemm.epilogue = epilogue;
      EXPECT_TRUE(cuda::CanRun(gemm, stream.handle_))
          << Name(gemm.dtype) << ", epilogue " << static_cast<int>(epilogue) << ", batch " << batch;
    }
  };
  check(float(), 1);
  check(half_t(), 1);
  for (const index_t batch : {1, 2}) check(bf16_t(), batch);
}

void ReadWhatIsNotThere() {
  const cuda::Kernel scale = Scale(cuda::ImageForm::kCubin);
  Stream<gpu> stream;
  const Arguments args{reinterpret_cast<float*>(16), 1000, 2.0};
  scale.Launch({{4, 1, 1}, {256, 1, 1}, 1024}, &args, sizeof args, stream.handle_);
  std::string said = MessageOf([&] { stream.Wait(); });
  said += "|" + MessageOf([&] { stream.Wait(); });
  std::fputs(said.c_str(), stderr);
  std::_Exit(0);
}
TEST(GpuDeathTest, AFailureIsTold) {
  NEEDS_GPU();
  NEEDS_NVRTC();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      ReadWhatIsNotThere(), ::testing::ExitedWithCode(0),
      "has failed: waiting for a CUDA stream: .*CUDA_ERROR_ILLEGAL_ADDRESS.*the kernel launched last is 'scale'.*[|]GPU 0 cannot be used any more");
}

}  // namespace
}  // namespace umbra

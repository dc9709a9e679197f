// A program in mshadow's style, built with Umbra's JIT (UMBRA_JIT_EXPRESSIONS=2), beside what the original took. That
// was measured once, together with the hand-written loops of hand.cc (g++ -O3 -march=native for both, one thread); the
// loops are run here again, on memory as they had then, so that the figures carry over to this machine. Tensors have
// the memory that AllocSpace gives.
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <vector>

#include "mshadow/tensor.h"
#include "suite.h"
#include "umbra/call_site.h"
#include "workloads.h"

using namespace mshadow;
using namespace mshadow::expr;
using bench::Size;

namespace {

UMBRA_OP(gelu_tanh, (x), 0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x * x * x))))
UMBRA_OP(norm_scale, (x), 1 / sqrt(x + 1e-5))
UMBRA_OP(squared, (x), x* x)
UMBRA_OP(positive, (x), x > 0 ? x : 0)
UMBRA_OP(root, (x), sqrt(x))
UMBRA_OP(power_of_e, (x), exp(x))
UMBRA_OP(logarithm, (x), log(x))
UMBRA_OP(normal_cdf, (x), 0.5 + 0.5 * erf(x * 0.70710678))

Stream<cpu>* g_stream = nullptr;

Tensor<cpu, 1> Vector(const float* p, Size n) { return {const_cast<float*>(p), Shape1(n), g_stream}; }
Tensor<cpu, 2> Matrix(const float* p, Size rows, Size columns) {
  return {const_cast<float*>(p), Shape2(rows, columns), g_stream};
}
Tensor<cpu, 4> Images(const float* p, Size n, Size c, Size h, Size w) {
  return {const_cast<float*>(p), Shape4(n, c, h, w), g_stream};
}

void Run(const bench::Triad& d) {
  Tensor<cpu, 1> out = Vector(d.out, d.n);
  out = Vector(d.a, d.n) * Vector(d.b, d.n) + Vector(d.c, d.n) * d.s;
}

void Run(const bench::Gelu& d) {
  Tensor<cpu, 2> out = Matrix(d.out, d.rows, d.columns);
  out = F<gelu_tanh>(Matrix(d.a, d.rows, d.columns) * Matrix(d.b, d.rows, d.columns) +
                     broadcast<1>(Vector(d.bias, d.columns), out.shape_));
}

void Run(const bench::Softmax& d) { Softmax(Matrix(d.out, d.rows, d.columns), Matrix(d.x, d.rows, d.columns)); }

void Run(const bench::LayerNorm& d) {
  static std::vector<float> row(static_cast<std::size_t>(d.rows) * 2);
  Tensor<cpu, 2> x = Matrix(d.x, d.rows, d.columns), out = Matrix(d.out, d.rows, d.columns);
  Tensor<cpu, 1> mean = Vector(row.data(), d.rows), scale = Vector(row.data() + d.rows, d.rows);
  const float inverse = 1.0f / static_cast<float>(d.columns);
  mean = inverse * sumall_except_dim<0>(x);
  scale = inverse * sumall_except_dim<0>(F<squared>(x - broadcast<0>(mean, x.shape_)));
  scale = F<norm_scale>(scale);
  out = (x - broadcast<0>(mean, x.shape_)) * broadcast<0>(scale, x.shape_);
}

void Run(const bench::Channels& d) {
  Tensor<cpu, 3> x(const_cast<float*>(d.x), Shape3(d.n, d.c, d.hw), g_stream);
  Tensor<cpu, 1> mean = Vector(d.mean, d.c), variance = Vector(d.variance, d.c);
  const float inverse = 1.0f / static_cast<float>(d.n * d.hw);
  mean = inverse * sumall_except_dim<1>(x);
  variance = inverse * sumall_except_dim<1>(F<squared>(x - broadcast<1>(mean, x.shape_)));
}

void Run(const bench::Adam& d) {
  Tensor<cpu, 1> p = Vector(d.p, d.n), m = Vector(d.m, d.n), v = Vector(d.v, d.n), g = Vector(d.g, d.n);
  m = d.beta1 * m + (1 - d.beta1) * g;
  v = d.beta2 * v + (1 - d.beta2) * F<squared>(g);
  p -= d.rate * m / (F<root>(v) + d.epsilon);
}

void Run(const bench::Options& d) {
  Tensor<cpu, 1> spot = Vector(d.spot, d.n), strike = Vector(d.strike, d.n), time = Vector(d.time, d.n),
                 call = Vector(d.call, d.n);
  auto spread = d.volatility * F<root>(time);
  auto d1 = (F<logarithm>(spot / strike) + (d.rate + 0.5f * d.volatility * d.volatility) * time) / spread;
  call = spot * F<normal_cdf>(d1) - strike * F<power_of_e>(-d.rate * time) * F<normal_cdf>(d1 - spread);
}

void Run(const bench::Dense& d) {
  Tensor<cpu, 2> out = Matrix(d.out, d.rows, d.columns);
  out = dot(Matrix(d.x, d.rows, d.inner), Matrix(d.w, d.inner, d.columns));
  out = F<positive>(out + repmat(Vector(d.bias, d.columns), d.rows));
}

void Run(const bench::Transpose& d) {
  Tensor<cpu, 2> out = Matrix(d.out, d.n, d.n);
  out = Matrix(d.a, d.n, d.n).T() * 2.0f + Matrix(d.b, d.n, d.n);
}

void Run(const bench::Patches& d) {
  Tensor<cpu, 2> out = Matrix(d.out, d.c * 9, d.n * (d.h - 2) * (d.w - 2));
  out = unpack_patch2col(Images(d.x, d.n, d.c, d.h, d.w), 3, 3, 1, 1, 1, 1);
}

void Run(const bench::MaxPool& d) {
  Tensor<cpu, 4> out = Images(d.out, d.n, d.c, d.h / 2, d.w / 2);
  out = pool<red::maximum>(Images(d.x, d.n, d.c, d.h, d.w), 2, 2, 2, 2);
}

// ---- measuring --------------------------------------------------------------------------------------------

// Gives memory for n numbers.
using Memory = float*(Size n);
std::vector<std::unique_ptr<float, decltype(&std::free)>> g_aligned;
std::vector<TensorContainer<cpu, 1>> g_tensors;
// As the original's AllocSpace does it.
float* Aligned(Size n) {
  auto* memory =
      static_cast<float*>(std::aligned_alloc(64, (static_cast<std::size_t>(n) * sizeof(float) + 63) / 64 * 64));
  g_aligned.emplace_back(memory, &std::free);
  return memory;
}
// By Umbra's.
float* OfTensor(Size n) { return g_tensors.emplace_back(Shape1(n)).dptr_; }
float* Filled(float* memory, Size n, float low, float high) {
  unsigned random = 7;
  for (Size k = 0; k < n; ++k) {
    random = random * 1664525 + 1013904223;
    memory[k] = low + (high - low) * static_cast<float>(random >> 8) * 0x1p-24f;
  }
  return memory;
}

// Of the processor, so that other programs on the machine count less.
double Seconds(const std::function<void()>& run, int repeats) {
  const std::clock_t start = std::clock();
  for (int k = 0; k < repeats; ++k) run();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / repeats;
}

// The sums of the logarithms of the speed-ups so far.
double g_logarithms = 0, g_logarithms_apart = 0;
int g_workloads = 0;

// `original` and `hand`: what mshadow and the loops took, in one unit. `workload` takes a function that makes numbers.
template <typename Workload>
void Compare(const char* name, double original, double hand, const Workload& workload) {
  const auto made = [&](Memory* memory) {
    return workload([=](Size n, float low, float high) { return Filled(memory(n), n, low, high); });
  };
  const auto of_hand = made(Aligned), d = made(OfTensor);
  static Stream<cpu>*const fused = NewStream<cpu>(), *const apart = NewStream<cpu>(umbra::Execution::kImmediate);
  const auto in = [&d](Stream<cpu>* stream) {
    return [&d, stream] {
      g_stream = stream;
      Run(d);
      stream->Wait();
    };
  };
  const std::function<void()> runs[] = {[&] { bench::hand::Run(of_hand); }, in(fused), in(apart)};
  for (const auto& run : runs) run();
  const int repeats = static_cast<int>(std::clamp(2e-2 / std::max(Seconds(runs[0], 1), 1e-7), 1.0, 1e5));
  std::vector<double> times[3];
  for (int k = 0; k < 11; ++k)
    for (int run = 0; run < 3; ++run) {
      Seconds(runs[run], repeats);  // what the one before left in the caches is written back meanwhile
      times[run].push_back(Seconds(runs[run], repeats));
    }
  for (auto& of_run : times) std::nth_element(of_run.begin(), of_run.begin() + 5, of_run.end());
  const double hand_now = times[0][5], ours = times[1][5], ours_apart = times[2][5], then = original / hand * hand_now;
  std::printf("| %s | %.4g | %.4g | %.4g | %.4g | %.2f | %.2f |\n", name, original / hand, hand_now * 1e6,
              ours_apart * 1e6, ours * 1e6, then / ours_apart, then / ours);
  std::fflush(stdout);
  g_logarithms += std::log(then / ours);
  g_logarithms_apart += std::log(then / ours_apart);
  ++g_workloads;
  g_aligned.clear();
  g_tensors.clear();
}

}  // namespace

int main() {
  umbra::runtime::CallSite::SetThreads(1);
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // else what was a tensor's, on large pages, may be the loops' next
  std::printf(
      "| workload | mshadow / hand | hand us | statement by statement us | statements fused us | mshadow / statement by "
      "statement | mshadow / statements fused |\n|---|---|---|---|---|---|---|\n");
  const auto triad = [](Size n) { return [n](auto make) { return bench::MakeTriad(make, n); }; };
  Compare("triad 16 Mi", 20.5, 17.9, triad(Size{1} << 24));
  Compare("triad 32 Ki", 8.1, 4.5, triad(Size{1} << 15));
  Compare("triad 256", 67, 16, triad(256));
  Compare("gelu 4096x4096", 382, 18.4, [](auto make) { return bench::MakeGelu(make, 4096, 4096); });
  Compare("transpose 4096x4096", 180, 47, [](auto make) { return bench::MakeTranspose(make, 4096); });
  Compare("softmax 4096x1024", 17.3, 2.4, [](auto make) { return bench::Softmax{bench::MakeRows(make, 4096, 1024)}; });
  Compare("layernorm 4096x1024", 7.1, 1.45,
          [](auto make) { return bench::LayerNorm{bench::MakeRows(make, 4096, 1024)}; });
  Compare("mean and variance 32x64x56x56", 8.5, 0.99,
          [](auto make) { return bench::MakeChannels(make, 32, 64, 56 * 56); });
  Compare("patch2col 3x3 32x64x56x56", 329, 32, [](auto make) { return bench::MakePatches(make, 32, 64, 56, 56); });
  Compare("max pool 2x2 32x64x56x56", 23, 1.2, [](auto make) { return bench::MakeMaxPool(make, 32, 64, 56, 56); });
  Compare("Adam 8 Mi", 27.6, 10.3, [](auto make) { return bench::MakeAdam(make, Size{1} << 23, 1e-3f); });
  Compare("Black-Scholes 4 Mi", 253, 13.0, [](auto make) { return bench::MakeOptions(make, Size{1} << 22); });
  Compare("relu(dot + b) 512x1024x1024", 7.8, 7.7, [](auto make) { return bench::MakeDense(make, 512, 1024, 1024); });
  std::printf("\ngeometric mean of mshadow / Umbra: %.2f statement by statement, %.2f with statements fused\n",
              std::exp(g_logarithms_apart / g_workloads), std::exp(g_logarithms / g_workloads));
}

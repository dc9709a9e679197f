// Registers every workload of the suite for every peer that has it, and checks that they agree before timing.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <regex>
#include <string>
#include <type_traits>
#include <vector>

#ifdef BENCH_OPENMP
#include <omp.h>
#endif

#include "halves.h"
#include "suite.h"
#include "umbra/half.h"

namespace bench {

namespace {

using Memory = std::unique_ptr<void, decltype(&std::free)>;

std::vector<Memory> g_memory;

template <typename T>
T* Allocate(Size n) {
  const std::size_t bytes = (static_cast<std::size_t>(n) * sizeof(T) + 63) / 64 * 64;
  g_memory.emplace_back(std::aligned_alloc(64, bytes), &std::free);
  return static_cast<T*>(g_memory.back().get());
}

// Aligned memory with values in [low, high), rounded down to integers for an integer T.
template <typename T = float>
T* Make(Size n, float low, float high) {
  T* p = Allocate<T>(n);
  std::uint64_t random = g_memory.size();
  for (Size i = 0; i < n; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const float x = low + (high - low) * (static_cast<float>(random >> 40) * 0x1p-24f);
    p[i] = static_cast<T>(std::is_integral_v<T> ? std::floor(x) : x);
  }
  return p;
}

std::uint16_t* MakeHalves(Size n, float low, float high) {
  auto* p = Allocate<std::uint16_t>(n);
  const float* values = Make(n, low, high);
  for (Size i = 0; i < n; ++i) {
    const umbra::half_t half(values[i]);
    std::memcpy(p + i, &half, sizeof half);
  }
  return p;
}

std::string Suffix(int threads) { return threads > 1 ? "_2threads" : ""; }

struct Peer {
  std::string name;
  std::function<void()> run;
  int threads = 1;  // of Umbra's kernels, and of oneDNN's primitives
};

void SetThreads(int threads) {
  umbra_jit::SetThreads(threads);
#ifdef BENCH_OPENMP
  omp_set_num_threads(threads);
#endif
}

template <typename Run>
void Add(std::vector<Peer>* peers, const char* name, Run run, int threads = 1) {
  using Result = decltype(run());
  if constexpr (std::is_same_v<Result, Prepared>) peers->push_back({name + Suffix(threads), run(), threads});
  else if constexpr (std::is_void_v<Result>) peers->push_back({name + Suffix(threads), run, threads});
}

// A peer that has no threads: alone, and half by half on two.
template <typename Workload, typename Run>
void AddWithHalves(std::vector<Peer>* peers, const char* name, const Workload& d, Run run) {
  Add(peers, name, [=] { return run(d); });
#ifdef BENCH_OPENMP
  Add(peers, name, [=]() -> decltype(run(d)) {
    if constexpr (std::is_void_v<decltype(run(d))>) {
#pragma omp parallel num_threads(2)
      run(Half(d, omp_get_thread_num()));
    } else {
      return {};
    }
  }, 2);
#endif
}

template <typename Workload>
std::vector<Peer> PeersOf(const Workload& d) {
  std::vector<Peer> peers;
  AddWithHalves(&peers, "hand", d, [](const auto& part) { return hand::Run(part); });
  const auto add = [&](const char* name, auto run) {
    if constexpr (kHalvesAreStrided<Workload>) Add(&peers, name, [=] { return run(d); });
    else AddWithHalves(&peers, name, d, run);
  };
  add("eigen", [](const auto& part) { return eigen::Run(part); });
  Add(&peers, "xtensor", [=] { return xtensor::Run(d); });
#ifdef BENCH_HALIDE
  add("halide", [](const auto& part) { return halide::Run(part); });
#endif
#ifdef BENCH_ONEDNN
  Add(&peers, "onednn", [=] { return onednn::Run(d); });
#ifdef BENCH_OPENMP
  Add(&peers, "onednn", [=] { return onednn::Run(d); }, 2);
#endif
#endif
  Add(&peers, "umbra_eager", [=] { return umbra_eager::Run(d); });
  Add(&peers, "umbra_fast", [=] { return umbra_fast::Run(d); });
  for (const int threads : {1, 2}) Add(&peers, "umbra_jit", [=] { return umbra_jit::Run(d); }, threads);
  return peers;
}

// Bytes that a workload has to read and to write.
struct Bytes {
  double read, written;
};

// The peers of `workload`, whose `results` numbers at `result` must be the same up to rounding. If it works in
// place, they are what they were before.
template <typename Workload, typename T>
void Register(const std::string& name, const Workload& workload, Bytes bytes, T* result, Size results,
              bool in_place = false) {
  std::vector<T> expected;
  std::vector<Peer> peers = PeersOf(workload);
  const std::regex filter(benchmark::GetBenchmarkFilter());
  std::erase_if(peers, [&](const Peer& peer) { return !std::regex_search(name + "/" + peer.name, filter); });
  for (const Peer& peer : peers) {
    for (Size i = 0; i < results && !in_place; ++i) result[i] = std::is_floating_point_v<T> ? static_cast<T>(NAN) : T(99);
    SetThreads(peer.threads);
    peer.run();
    if (expected.empty()) expected.assign(result, result + results);
    for (Size i = 0; i < results; i += results > 1 << 16 ? 97 : 1) {
      const auto e = static_cast<float>(expected[static_cast<std::size_t>(i)]), r = static_cast<float>(result[i]);
      if (std::fabs(r - e) <= 1e-3f * (1 + std::fabs(e)) || (r == e)) continue;  // never for NaN
      std::fprintf(stderr, "%s: %s gives %g at %lld, expected %g\n", name.c_str(), peer.name.c_str(), r,
                   static_cast<long long>(i), e);
      std::exit(1);
    }
  }
  for (const Peer& peer : peers)
    benchmark::RegisterBenchmark((name + "/" + peer.name).c_str(), [peer, bytes](benchmark::State& state) {
      SetThreads(peer.threads);
      for (auto _ : state) peer.run();
      state.counters["read"] = bytes.read;
      state.counters["written"] = bytes.written;
    })->UseRealTime()->MinTime(0.1);
}

void RegisterElementwise() {
  for (const Size n : {Size{1} << 24, Size{1} << 15, Size{256}}) {
    float* out = Make(n, 0, 1);
    const double size = 4.0 * static_cast<double>(n);
    Register("triad_" + std::to_string(n), Triad{n, Make(n, -1, 1), Make(n, -1, 1), Make(n, -1, 1), 0.5f, out},
             {3 * size, size}, out, n);
  }
  for (const auto& [rows, columns] : {std::pair<Size, Size>{4096, 4096}, {64, 512}}) {
    const Size n = rows * columns;
    float* out = Make(n, 0, 1);
    Register("gelu_" + std::to_string(rows) + "x" + std::to_string(columns),
             Gelu{rows, columns, Make(n, -2, 2), Make(n, -2, 2), Make(columns, -1, 1), out},
             {8.0 * static_cast<double>(n), 4.0 * static_cast<double>(n)}, out, n);
  }
  {
    const Size n = Size{1} << 23;
    float* p = Make(n, -1, 1);
    // Rate 0 in the check: every peer steps the same memory.
    const Adam d{n, p, Make(n, 0, 0.1f), Make(n, 0, 0.1f), Make(n, -1, 1), 0.0f, 0.9f, 0.999f, 1e-8f};
    Register("adam_8Mi", d, {16.0 * n, 12.0 * n}, p, n, true);
  }
  {
    const Size n = Size{1} << 22;
    float* call = Make(n, 0, 1);
    const Options d{n, Make(n, 50, 150), Make(n, 60, 140), Make(n, 0.2f, 2), 0.02f, 0.3f, call};
    Register("black_scholes_4Mi", d, {12.0 * n, 4.0 * n}, call, n);
  }
  {
    const Size n = Size{1} << 24;
    float* out = Make(n, 0, 1);
    Register("mixed_f16_16Mi", Mixed{n, MakeHalves(n, -1, 1), Make(n, -1, 1), MakeHalves(n, -1, 1), out},
             {8.0 * n, 4.0 * n}, out, n);
  }
  {
    const Size n = Size{1} << 25;
    auto* out = Make<std::int8_t>(n, 0, 1);
    Register("saxpy_i8_32Mi", Saxpy8{n, Make<std::int8_t>(n, -128, 128), Make<std::int8_t>(n, -128, 128), 3, out},
             {2.0 * n, 1.0 * n}, out, n);
  }
  {
    const Size n = Size{1} << 16;
    static std::vector<const float*> inputs;
    for (int k = 0; k < Sum500::kInputs; ++k) inputs.push_back(Make(n, -1, 1));
    float* out = Make(n, 0, 1);
    Register("sum_of_500x64Ki", Sum500{n, inputs.data(), out}, {2000.0 * n, 4.0 * n}, out, n);
  }
}

void RegisterRows() {
  const Size rows = 4096, columns = 1024, n = rows * columns;
  float* out = Make(n, 0, 1);
  const Rows d{rows, columns, Make(n, -4, 4), out};
  const float* g = Make(n, -1, 1);
  Register("softmax_4096x1024", Softmax{d}, {4.0 * n, 4.0 * n}, out, n);
  Register("softmax_gradient_4096x1024", SoftmaxGradient{rows, columns, Make(n, 0, 0.002f), g, out}, {8.0 * n, 4.0 * n},
           out, n);
  Register("layernorm_4096x1024", LayerNorm{d}, {4.0 * n, 4.0 * n}, out, n);
  Register("layernorm_gradient_4096x1024",
           LayerNormGradient{rows, columns, d.x, g, Make(rows, -0.1f, 0.1f), Make(rows, 4, 6), out}, {8.0 * n, 4.0 * n},
           out, n);
  Register("log_sum_exp_4096x1024", LogSumExp{d}, {4.0 * n, 0}, out, rows);
}

void RegisterImages() {
  const Size n = 32, c = 64, h = 56, w = 56, size = n * c * h * w;
  const float* x = Make(size, -1, 1);
  float* variance = Make(c, 0, 1);
  Register("mean_variance_32x64x56x56", Channels{n, c, h * w, x, Make(c, 0, 1), variance}, {4.0 * size, 0}, variance, c);
  const Size patches = c * 9 * n * (h - 2) * (w - 2);
  float* out = Make(patches, 0, 1);
  Register("patch2col_3x3_32x64x56x56", Patches{n, c, h, w, x, out}, {4.0 * size, 4.0 * static_cast<double>(patches)}, out,
           patches);
  float* pooled = Make(size / 4, 0, 1);
  Register("max_pool_2x2_32x64x56x56", MaxPool{n, c, h, w, x, pooled}, {4.0 * size, 1.0 * size}, pooled, size / 4);
  hand::Run(MaxPool{n, c, h, w, x, pooled});
  Register("max_unpool_2x2_32x64x56x56", Unpool{n, c, h, w, x, pooled, Make(size / 4, -1, 1), out},
           {6.0 * size, 4.0 * size}, out, size);
}

void RegisterMatrices() {
  static constexpr Size kProducts[][3] = {{512, 1024, 1024}, {4, 512, 1024}, {16, 1024, 1024}, {4096, 512, 16}};
  for (const auto& [rows, inner, columns] : kProducts) {
    float* out = Make(rows * columns, 0, 1);
    const Dense d{rows, inner, columns, Make(rows * inner, -1, 1), Make(inner * columns, -1, 1), Make(columns, -1, 1), out};
    Register("dense_" + std::to_string(rows) + "x" + std::to_string(inner) + "x" + std::to_string(columns), d,
             {4.0 * static_cast<double>((rows + columns) * inner), 4.0 * static_cast<double>(rows * columns)}, out, rows * columns);
  }
  {
    const Size n = 4096;
    float* out = Make(n * n, 0, 1);
    Register("transpose_4096x4096", Transpose{n, Make(n * n, -1, 1), Make(n * n, -1, 1), out}, {8.0 * n * n, 4.0 * n * n},
             out, n * n);
    const Size part = n / 4;
    const Concat d{n, part, {Make(n * part, -1, 1), Make(n * part, -1, 1), Make(n * part, -1, 1), Make(n * part, -1, 1)}, out};
    Register("concat_4_of_4096x1024", d, {4.0 * n * n, 4.0 * n * n}, out, n * n);
  }
  {
    const Size count = Size{1} << 16, columns = 256, n = count * columns;
    float* out = Make(n, 0, 1);
    Register("take_64Ki_rows_of_256",
             Take{count, count, columns, Make(count, 0, static_cast<float>(count) - 1),
                  Make(n, -1, 1), out},
             {4.0 * static_cast<double>(n + count), 4.0 * static_cast<double>(n)}, out, n);
  }
}

// What the machine can do, timed among the workloads, so that both have the same neighbours.
void RegisterLimits() {
  const Size n = Size{1} << 24;
  const Streams streams{n, Make(n, -1, 1), Make(n, -1, 1), Make(n, -1, 1), Make(n, 0, 1)};
  const auto add = [&](const std::string& name, Mix mix, int read, int written) {
    for (int threads = 1; threads <= 2; ++threads)
      benchmark::RegisterBenchmark(("limit_" + name + "/machine" + Suffix(threads)).c_str(), [=](benchmark::State& state) {
        for (auto _ : state) Stream(mix, streams, threads);
        state.counters["read"] = static_cast<double>(read * n) * sizeof(float);
        state.counters["written"] = static_cast<double>(written * n) * sizeof(float);
      })->UseRealTime()->MinTime(0.1);
  };
  add("read", Mix::kRead, 1, 0);
  add("triad", Mix::kTriad, 3, 1);
  add("copy", Mix::kCopy, 1, 1);
  add("write", Mix::kWrite, 0, 1);
}

}  // namespace

}  // namespace bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  bench::RegisterElementwise();
  bench::RegisterRows();
  bench::RegisterImages();
  bench::RegisterMatrices();
  bench::RegisterLimits();
  benchmark::RunSpecifiedBenchmarks();
}

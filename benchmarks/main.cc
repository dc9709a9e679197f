// Registers every workload of the suite for every peer that has it, and checks that they agree before timing.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
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
#include "workloads.h"

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
struct InMemory {
  template <typename T = float>
  T* operator()(Size n, float low, float high) const {
    T* p = Allocate<T>(n);
    std::uint64_t random = g_memory.size();
    for (Size i = 0; i < n; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const float x = low + (high - low) * (static_cast<float>(random >> 40) * 0x1p-24f);
      p[i] = static_cast<T>(std::is_integral_v<T> ? std::floor(x) : x);
    }
    return p;
  }
};
constexpr InMemory kMake;

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
  Add(
      peers, name,
      [=]() -> decltype(run(d)) {
        if constexpr (std::is_void_v<decltype(run(d))>) {
#pragma omp parallel num_threads(2)
          run(Half(d, omp_get_thread_num()));
        } else {
          return {};
        }
      },
      2);
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
  Add(
      &peers, "onednn", [=] { return onednn::Run(d); }, 2);
#endif
#endif
  Add(&peers, "umbra_eager", [=] { return umbra_eager::Run(d); });
  Add(&peers, "umbra_fast", [=] { return umbra_fast::Run(d); });
  for (const int threads : {1, 2})
    Add(
        &peers, "umbra_jit", [=] { return umbra_jit::Run(d); }, threads);
  return peers;
}

// The peers of `workload`, whose `results` numbers at `result` must be the same up to rounding. If it works in
// place, they are what they were before.
template <typename Workload, typename T>
void Register(const std::string& name, const Workload& workload, T* result, Size results, bool in_place = false) {
  std::vector<T> expected;
  std::vector<Peer> peers = PeersOf(workload);
  const std::regex filter(benchmark::GetBenchmarkFilter());
  std::erase_if(peers, [&](const Peer& peer) { return !std::regex_search(name + "/" + peer.name, filter); });
  for (const Peer& peer : peers) {
    for (Size i = 0; i < results && !in_place; ++i)
      result[i] = std::is_floating_point_v<T> ? static_cast<T>(NAN) : T(99);
    SetThreads(peer.threads);
    peer.run();
    if (expected.empty()) expected.assign(result, result + results);
    for (Size i = 0; i<results; i += results> 1 << 16 ? 97 : 1) {
      const auto e = static_cast<float>(expected[static_cast<std::size_t>(i)]), r = static_cast<float>(result[i]);
      if (std::fabs(r - e) <= 1e-3f * (1 + std::fabs(e)) || (r == e)) continue;  // never for NaN
      std::fprintf(stderr, "%s: %s gives %g at %lld, expected %g\n", name.c_str(), peer.name.c_str(), r,
                   static_cast<long long>(i), e);
      std::exit(1);
    }
  }
  const Bytes bytes = BytesOf(workload);
  for (const Peer& peer : peers)
    benchmark::RegisterBenchmark((name + "/" + peer.name).c_str(),
                                 [peer, bytes](benchmark::State& state) {
                                   SetThreads(peer.threads);
                                   for (auto _ : state) peer.run();
                                   state.counters["read"] = bytes.read;
                                   state.counters["written"] = bytes.written;
                                 })
        ->UseRealTime()
        ->MinTime(0.1);
}

void RegisterElementwise() {
  for (const Size n : {Size{1} << 24, Size{1} << 15, Size{256}}) {
    const Triad d = MakeTriad(kMake, n);
    Register("triad_" + std::to_string(n), d, d.out, n);
  }
  for (const auto& [rows, columns] : {std::pair<Size, Size>{4096, 4096}, {64, 512}}) {
    const Gelu d = MakeGelu(kMake, rows, columns);
    Register("gelu_" + std::to_string(rows) + "x" + std::to_string(columns), d, d.out, rows * columns);
  }
  const Adam adam = MakeAdam(kMake, Size{1} << 23, 0);  // rate 0: every peer steps the same memory
  Register("adam_8Mi", adam, adam.p, adam.n, true);
  const Options options = MakeOptions(kMake, Size{1} << 22);
  Register("black_scholes_4Mi", options, options.call, options.n);
  const Mixed mixed = MakeMixed(kMake, Size{1} << 24);
  Register("mixed_f16_16Mi", mixed, mixed.out, mixed.n);
  const Saxpy8 saxpy = MakeSaxpy8(kMake, Size{1} << 25);
  Register("saxpy_i8_32Mi", saxpy, saxpy.out, saxpy.n);
  static std::vector<const float*> inputs;
  const Sum500 sum = MakeSum500(kMake, Size{1} << 16, &inputs);
  Register("sum_of_500x64Ki", sum, sum.out, sum.n);
}

void RegisterRows() {
  const Size rows = 4096, columns = 1024, n = rows * columns;
  const Rows d = MakeRows(kMake, rows, columns);
  Register("softmax_4096x1024", Softmax{d}, d.out, n);
  const Rows classes = MakeRows(kMake, n / 8, 10);
  Register("softmax_512Kix10", ShortSoftmax{classes}, classes.out, classes.rows * classes.columns);
  const SoftmaxGradient softmax = MakeSoftmaxGradient(kMake, rows, columns);
  Register("softmax_gradient_4096x1024", softmax, softmax.out, n);
  Register("layernorm_4096x1024", LayerNorm{d}, d.out, n);
  const LayerNormGradient layernorm = MakeLayerNormGradient(kMake, rows, columns);
  Register("layernorm_gradient_4096x1024", layernorm, layernorm.out, n);
  Register("log_sum_exp_4096x1024", LogSumExp{d}, d.out, rows);
}

void RegisterImages() {
  const Size n = 32, c = 64, h = 56, w = 56, size = n * c * h * w;
  const Channels channels = MakeChannels(kMake, n, c, h * w);
  Register("mean_variance_32x64x56x56", channels, channels.variance, c);
  const Planes planes = MakePlanes(kMake, Size{1} << 22);
  Register("planes_of_4Mi_pixels", planes, planes.out, planes.n * Planes::kChannels);
  const Opaque opaque = MakeOpaque(kMake, Size{1} << 22);
  Register("opaque_4Mi_pixels", opaque, opaque.out, 4 * opaque.n);
  const ComplexProduct product = MakeComplexProduct(kMake, Size{1} << 22);
  Register("complex_product_4Mi", product, product.out, 2 * product.n);
  const Patches patches = MakePatches(kMake, n, c, h, w);
  Register("patch2col_3x3_32x64x56x56", patches, patches.out, c * 9 * n * (h - 2) * (w - 2));
  const MaxPool pool = MakeMaxPool(kMake, n, c, h, w);
  Register("max_pool_2x2_32x64x56x56", pool, pool.out, size / 4);
  hand::Run(pool);
  const Unpool unpool = MakeUnpool(kMake, pool);
  Register("max_unpool_2x2_32x64x56x56", unpool, unpool.out, size);
  const Overlapping overlapping = MakeOverlapping(kMake, n, c, h, w);
  Register("max_unpool_3x3_by_2_32x64x56x56", overlapping, overlapping.out, size);
}

void RegisterMatrices() {
  static constexpr Size kProducts[][3] = {
      {512, 1024, 1024}, {4, 512, 1024}, {16, 1024, 1024}, {4, 4096, 4096}, {4096, 512, 16}};
  for (const auto& [rows, inner, columns] : kProducts) {
    const Dense d = MakeDense(kMake, rows, inner, columns);
    Register("dense_" + std::to_string(rows) + "x" + std::to_string(inner) + "x" + std::to_string(columns), d, d.out,
             rows * columns);
  }
  for (const Size rows : {4, 256}) {
    const Quantized d = MakeQuantized(kMake, rows, 4096, 4096);
    Register("quantized_" + std::to_string(rows) + "x4096x4096", d, d.out, rows * d.columns);
  }
  const Scores scores = MakeScores(kMake, 64, 512, 64, 512);
  Register("scores_64x512x64x512", scores, scores.out, scores.batch * scores.rows * scores.columns);
  const Size n = 4096;
  const Transpose transpose = MakeTranspose(kMake, n);
  Register("transpose_4096x4096", transpose, transpose.out, n * n);
  const Concat concat = MakeConcat(kMake, n, n / 4);
  Register("concat_4_of_4096x1024", concat, concat.out, n * n);
  const Take take = MakeTake(kMake, Size{1} << 16, 256);
  Register("take_64Ki_rows_of_256", take, take.out, take.count * take.columns);
}

// What the machine can do, timed among the workloads, so that both have the same neighbours.
void RegisterLimits() {
  const Size n = Size{1} << 24;
  const Streams streams{n, kMake(n, -1, 1), kMake(n, -1, 1), kMake(n, -1, 1), kMake(n, 0, 1)};
  const auto add = [&](const std::string& name, Mix mix, int read, int written) {
    for (int threads = 1; threads <= 2; ++threads)
      benchmark::RegisterBenchmark(("limit_" + name + "/machine" + Suffix(threads)).c_str(),
                                   [=](benchmark::State& state) {
                                     for (auto _ : state) Stream(mix, streams, threads);
                                     state.counters["read"] = static_cast<double>(read * n) * sizeof(float);
                                     state.counters["written"] = static_cast<double>(written * n) * sizeof(float);
                                   })
          ->UseRealTime()
          ->MinTime(0.1);
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

// Registers every workload of the suite for every peer, and checks that they agree before timing.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "suite.h"

namespace bench {

namespace {

using Memory = std::unique_ptr<float, decltype(&std::free)>;

// Aligned memory with values in [low, high).
Memory Make(Size n, float low, float high) {
  auto* p = static_cast<float*>(std::aligned_alloc(64, (static_cast<std::size_t>(n) * 4 + 63) / 64 * 64));
  std::mt19937 random(7);
  std::uniform_real_distribution<float> draw(low, high);
  for (Size i = 0; i < n; ++i) p[i] = draw(random);
  return {p, &std::free};
}

struct Peer {
  std::string name;
  std::function<void()> run;
};

void Register(const std::string& workload, double bytes, std::vector<Peer> peers, float* result,
              Size results, bool in_place = false) {
  // All peers compute the same, up to rounding.
  std::vector<float> expected;
  for (const Peer& peer : peers) {
    if (!in_place) std::fill(result, result + results, NAN);
    peer.run();
    if (expected.empty()) expected.assign(result, result + results);
    for (Size i = 0; i < results; i += 97) {
      const float e = expected[static_cast<std::size_t>(i)];
      if (std::fabs(result[i] - e) <= 1e-3f * (1 + std::fabs(e))) continue;  // never for NaN
      std::fprintf(stderr, "%s: %s gives %g at %lld, expected %g\n", workload.c_str(),
                   peer.name.c_str(), result[i], static_cast<long long>(i), e);
      std::exit(1);
    }
  }
  for (const Peer& peer : peers) {
    const bool ours = peer.name == "umbra_jit";
    for (int threads = 1; threads <= (ours ? 2 : 1); ++threads) {
      const std::string name = workload + "/" + peer.name + (threads > 1 ? "_2threads" : "");
      benchmark::RegisterBenchmark(name.c_str(), [run = peer.run, bytes, threads](benchmark::State& state) {
        umbra_jit::SetThreads(threads);
        for (auto _ : state) run();
        state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
      })->UseRealTime()->MinTime(0.1);
    }
  }
}

#define BENCH_PEERS(call)                                              \
  {{"hand", [=] { hand::call; }},     {"eigen", [=] { eigen::call; }}, \
   {"xtensor", [=] { xtensor::call; }}, {"umbra_eager", [=] { umbra_eager::call; }}, \
   {"umbra_jit", [=] { umbra_jit::call; }}}

std::vector<Memory> g_memory;
float* Keep(Memory memory) {
  g_memory.push_back(std::move(memory));
  return g_memory.back().get();
}

void RegisterAll() {
  for (const Size n : {Size{1} << 24, Size{1} << 15, Size{256}}) {
    float* out = Keep(Make(n, 0, 1));
    const Triad d{n, Keep(Make(n, -1, 1)), Keep(Make(n, -1, 1)), Keep(Make(n, -1, 1)), 0.5f, out};
    Register("triad_" + std::to_string(n), 16.0 * static_cast<double>(n), BENCH_PEERS(Run(d)), out, n);
  }
  for (const auto& [rows, columns] : {std::pair<Size, Size>{4096, 4096}, {64, 512}}) {
    const Size n = rows * columns;
    float* out = Keep(Make(n, 0, 1));
    const Gelu d{rows, columns, Keep(Make(n, -2, 2)), Keep(Make(n, -2, 2)), Keep(Make(columns, -1, 1)), out};
    Register("gelu_" + std::to_string(rows) + "x" + std::to_string(columns), 12.0 * static_cast<double>(n),
             BENCH_PEERS(Run(d)), out, n);
  }
  {
    const Size n = 4096 * 1024;
    float* out = Keep(Make(n, 0, 1));
    const Rows d{4096, 1024, Keep(Make(n, -4, 4)), out};
    Register("softmax_4096x1024", 8.0 * n, BENCH_PEERS(Softmax(d)), out, n);
    Register("layernorm_4096x1024", 8.0 * n, BENCH_PEERS(LayerNorm(d)), out, n);
  }
  {
    const Size n = 32 * 64 * 56 * 56;
    float* variance = Keep(Make(64, 0, 1));
    const Channels d{32, 64, 56 * 56, Keep(Make(n, -1, 1)), Keep(Make(64, 0, 1)), variance};
    Register("mean_variance_32x64x56x56", 4.0 * n, BENCH_PEERS(Run(d)), variance, 64);
  }
  {
    const Size n = Size{1} << 23;
    float* p = Keep(Make(n, -1, 1));
    // Rate 0 in the check: every peer steps the same memory.
    const Adam d{n, p, Keep(Make(n, 0, 0.1f)), Keep(Make(n, 0, 0.1f)), Keep(Make(n, -1, 1)), 0.0f, 0.9f, 0.999f, 1e-8f};
    Register("adam_8Mi", 28.0 * static_cast<double>(n), BENCH_PEERS(Run(d)), p, n, true);
  }
  {
    const Size n = Size{1} << 22;
    float* call = Keep(Make(n, 0, 1));
    const Options d{n, Keep(Make(n, 50, 150)), Keep(Make(n, 60, 140)), Keep(Make(n, 0.2f, 2)), 0.02f, 0.3f, call};
    Register("black_scholes_4Mi", 16.0 * static_cast<double>(n), BENCH_PEERS(Run(d)), call, n);
  }
  {
    float* out = Keep(Make(512 * 1024, 0, 1));
    const Dense d{512, 1024, 1024, Keep(Make(512 * 1024, -1, 1)), Keep(Make(1024 * 1024, -1, 1)), Keep(Make(1024, -1, 1)), out};
    Register("dense_512x1024x1024", 4.0 * (512 * 1024 * 2 + 1024 * 1024), BENCH_PEERS(Run(d)), out, 512 * 1024);
  }
  {
    const Size n = 4096;
    float* out = Keep(Make(n * n, 0, 1));
    const Transpose d{n, Keep(Make(n * n, -1, 1)), Keep(Make(n * n, -1, 1)), out};
    Register("transpose_4096x4096", 12.0 * n * n, BENCH_PEERS(Run(d)), out, n * n);
  }
}

}  // namespace

}  // namespace bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("triad_GBps_1", std::to_string(bench::TriadBandwidth(1)));
  benchmark::AddCustomContext("triad_GBps_2", std::to_string(bench::TriadBandwidth(2)));
  bench::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
}

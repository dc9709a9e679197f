// Two halves of so many microseconds of work, on the caller's thread alone, by oneTBB and by the runtime's own pool.
#include <benchmark/benchmark.h>
#include <tbb/parallel_for.h>

#include <functional>
#include <string>

#include "runtime/thread_pool.h"

namespace {

// Of the processor's own: a clock would be read by two threads at once in as much time as by one after the other.
void Work(int steps) {
  for (int k = 0; k < steps; ++k) benchmark::DoNotOptimize(k);
}

void Register(const std::string& name, const std::function<void(const std::function<void(int)>&)>& share_out,
              int steps) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    for (auto _ : state) share_out([=](int) { Work(steps); });
  })->UseRealTime();
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const int steps : {1'000, 10'000, 100'000}) {
    const std::string name = "halves_of_" + std::to_string(steps) + "_steps/";
    Register(
        name + "one_thread", [](const auto& body) { body(0), body(1); }, steps);
    Register(
        name + "tbb", [](const auto& body) { tbb::parallel_for(0, 2, 1, body, tbb::static_partitioner()); }, steps);
    Register(
        name + "umbra", [](const auto& body) { umbra::runtime::ThreadPool::OfProcess().ShareOut(2, 2, body); }, steps);
  }
  benchmark::RunSpecifiedBenchmarks();
}

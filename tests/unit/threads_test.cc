// Kernels on several threads: the same bits for any number of them, and how work is shared out.
#include <gtest/gtest.h>
#include <tbb/parallel_for.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime/launch.h"
#include "runtime/parallel.h"
#include "umbra/compile.h"
#include "umbra/graph.h"

namespace umbra {
namespace {

using runtime::TensorRef;

constexpr int kThreadCounts[] = {1, 2, 3, 7};

std::vector<float> Numbers(std::size_t count) {
  std::vector<float> numbers(count);
  for (std::size_t k = 0; k < count; ++k) numbers[k] = 1 + std::sin(static_cast<float>(k)) * 1e-3f;
  return numbers;
}

index_t Product(const std::vector<index_t>& shape) {
  index_t product = 1;
  for (index_t extent : shape) product *= extent;
  return product;
}

// Runs `kernel` on x of `shape` with each number of threads.
void ExpectSameBits(const std::string& kernel, const std::vector<index_t>& shape) {
  const Function f = Compile(graph::ParseText(kernel)[0]);
  std::vector<float> x = Numbers(static_cast<std::size_t>(Product(shape)));
  const TensorRef input = TensorRef::Dense(x.data(), DType::kFloat32, shape);
  const auto shapes = runtime::OutputShapes(f.program(), {input});
  std::vector<std::vector<char>> expected;
  for (const int threads : kThreadCounts) {
    std::vector<std::vector<char>> results;
    runtime::Arguments arguments{{input}, {}, {}};
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const DType dtype = f.program().buffers[1 + k].dtype;
      results.emplace_back(static_cast<std::size_t>(Product(shapes[k])) * SizeOf(dtype), '\x5a');
      arguments.outputs.push_back(TensorRef::Dense(results[k].data(), dtype, shapes[k]));
    }
    f(arguments, {threads});
    if (expected.empty()) expected = results;
    EXPECT_EQ(expected == results, true) << threads << " threads: " << kernel;
  }
}

// Every reducer over every set of axes, of a tensor large enough for seven threads.
TEST(Threads, ReductionsHaveTheSameBits) {
  for (const char* reducer : {"sum", "maximum", "minimum", "product", "mean", "argmax", "argmin"}) {
    const std::string name = reducer;
    for (int axis = 0; axis < 3; ++axis)
      ExpectSameBits("kernel k(x: f32[a, b, c]) -> (y: f32[?, ?]) { y = tcast<f32>(reduce_with_axis<" + name + ">(x, " +
                         std::to_string(axis) + ")) }", {67, 130, 331});
    if (name == "mean" || name[0] == 'a') continue;
    for (int axis = 0; axis < 3; ++axis)
      ExpectSameBits("kernel k(x: f32[a, b, c]) -> (y: f32[?]) { t = reduce_with_axis<" + name + ">(x, " + std::to_string(axis) +
                         ") y = reduce_with_axis<" + name + ">(t, " + std::to_string(axis % 2) + ") }", {67, 130, 331});
    ExpectSameBits("kernel k(x: f32[n]) -> (y: f32[1]) { y = reduce_with_axis<" + name + ">(x, 0) }", {3000017});
  }
}

TEST(Threads, FusedRowsAndSeveralOutputsHaveTheSameBits) {
  ExpectSameBits("kernel softmax(x: f32[n, m]) -> (y: f32[n, m]) {"
                 " e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))"
                 " y = e * broadcast<0>(1 / reduce_with_axis<sum>(e, 1)) }", {1003, 517});
  ExpectSameBits("kernel channels(x: f32[n, c, s]) -> (mean: f32[c], variance: f32[c]) {"
                 " mean = sumall_except_dim<1>(x) * 0.001"
                 " d = x - broadcast<1>(mean, x)"
                 " variance = sumall_except_dim<1>(d * d) }", {16, 61, 2117});
  ExpectSameBits("kernel k(x: f32[n, m]) -> (y: f32[n, m], t: f32[m, n]) { y = exp(x) t = x.T * 2 }", {1003, 517});
}

// The split of a call of y = x * 2 + 1 on `count` elements.
int Parts(index_t count, int threads) {
  const Function f = Compile(graph::ParseText("kernel k(x: f32[n]) -> (y: f32[n]) { y = x * 2 + 1 }")[0]);
  std::vector<float> memory(16);
  const std::vector<TensorRef> buffers(2, TensorRef::Dense(memory.data(), DType::kFloat32, {count}));
  const auto& step = std::get<runtime::KernelStep>(f.program().steps[0]);
  return runtime::PrepareLaunch(step, buffers, {count}, threads).parts;
}

TEST(Threads, SmallWorkStaysOnTheCallersThread) {
  for (const int threads : kThreadCounts) {
    EXPECT_EQ(Parts(256, threads), 1);
    EXPECT_EQ(Parts(16 << 20, threads), threads);
  }
  EXPECT_EQ(Parts(16 << 20, 64), 64);
}

// A thread that waits for the parts of one call must not take up another call meanwhile: the temporaries of
// both are this thread's.
TEST(Threads, WhoWaitsTakesUpNoOtherCall) {
  static thread_local bool t_calling = false;
  std::atomic<int> interrupted{0};
  const auto call = [&](int) {
    interrupted += t_calling;
    t_calling = true;
    runtime::ParallelFor(2, [](int part) {
      std::this_thread::sleep_for(std::chrono::microseconds(part == 0 ? 10 : 300));
    });
    t_calling = false;
  };
  tbb::parallel_for(0, 1500, call, tbb::simple_partitioner());
  EXPECT_EQ(interrupted, 0);
}

}  // namespace
}  // namespace umbra

// Kernels on several threads: the same bits for any number of them, and how work is shared out.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "compiler/driver/target.h"
#include "runtime/launch.h"
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

using Results = std::vector<std::vector<char>>;

// What the function makes of x of `shape`.
Results Run(const Function& f, std::vector<float>* x, const std::vector<index_t>& shape, int threads) {
  const TensorRef input = TensorRef::Dense(x->data(), DType::kFloat32, shape);
  const auto shapes = runtime::OutputShapes(f.program(), {input});
  Results results;
  runtime::Arguments arguments{{input}, {}, {}};
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    const DType dtype = f.program().buffers[1 + k].dtype;
    results.emplace_back(static_cast<std::size_t>(Product(shapes[k])) * SizeOf(dtype), '\x5a');
    arguments.outputs.push_back(TensorRef::Dense(results[k].data(), dtype, shapes[k]));
  }
  f(arguments, {threads});
  return results;
}

// Runs `kernel` on x of `shape` with each number of threads.
void ExpectSameBits(const std::string& kernel, const std::vector<index_t>& shape) {
  const Function f = Compile(graph::ParseText(kernel)[0]);
  std::vector<float> x = Numbers(static_cast<std::size_t>(Product(shape)));
  Results expected;
  for (const int threads : kThreadCounts) {
    const Results results = Run(f, &x, shape, threads);
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
                         std::to_string(axis) + ")) }",
                     {67, 130, 331});
    if (name == "mean" || name[0] == 'a') continue;
    for (int axis = 0; axis < 3; ++axis)
      ExpectSameBits("kernel k(x: f32[a, b, c]) -> (y: f32[?]) { t = reduce_with_axis<" + name + ">(x, " +
                         std::to_string(axis) + ") y = reduce_with_axis<" + name + ">(t, " + std::to_string(axis % 2) +
                         ") }",
                     {67, 130, 331});
    ExpectSameBits("kernel k(x: f32[n]) -> (y: f32[1]) { y = reduce_with_axis<" + name + ">(x, 0) }", {3000017});
  }
}

TEST(Threads, FusedRowsAndSeveralOutputsHaveTheSameBits) {
  ExpectSameBits(
      "kernel softmax(x: f32[n, m]) -> (y: f32[n, m]) {"
      " e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))"
      " y = e * broadcast<0>(1 / reduce_with_axis<sum>(e, 1)) }",
      {1003, 517});
  ExpectSameBits(
      "kernel channels(x: f32[n, c, s]) -> (mean: f32[c], variance: f32[c]) {"
      " mean = sumall_except_dim<1>(x) * 0.001"
      " d = x - broadcast<1>(mean, x)"
      " variance = sumall_except_dim<1>(d * d) }",
      {16, 61, 2117});
  ExpectSameBits("kernel k(x: f32[n, m]) -> (y: f32[n, m], t: f32[m, n]) { y = exp(x) t = x.T * 2 }", {1003, 517});
}

// How the program's only kernel is launched.
runtime::LaunchPlan PlanOf(const Function& f, std::vector<float>* numbers, const std::vector<index_t>& shape,
                           int threads) {
  static char results[64];  // nothing is written
  const TensorRef x = TensorRef::Dense(numbers->data(), DType::kFloat32, shape);
  runtime::Arguments arguments{{x}, {}, {}};
  std::vector<TensorRef> buffers{x};
  for (const auto& output : runtime::OutputShapes(f.program(), {x}))
    buffers.push_back(
        arguments.outputs.emplace_back(TensorRef::Dense(results, f.program().buffers[buffers.size()].dtype, output)));
  const auto& step = std::get<runtime::KernelStep>(f.program().steps.at(0));
  return runtime::PrepareLaunch(step, buffers, runtime::CheckArguments(f.program(), arguments), threads);
}

// Floats may be summed in another order.
void ExpectNear(const Function& f, const Results& got, const Results& meant, const std::string& what) {
  for (std::size_t k = 0; k < got.size(); ++k) {
    if (f.program().buffers[1 + k].dtype != DType::kFloat32) {
      EXPECT_TRUE(got[k] == meant[k]) << what;
      continue;
    }
    const auto *numbers = reinterpret_cast<const float*>(got[k].data()),
               *wanted = reinterpret_cast<const float*>(meant[k].data());
    for (std::size_t i = 0; i < got[k].size() / sizeof(float); ++i)
      ASSERT_NEAR(numbers[i], wanted[i], 2e-5 * std::fabs(wanted[i])) << what << " at " << i;
  }
}

// The same bits for all numbers of threads and targets, and what the interpreter finds. `check` looks at how the one
// kernel is launched; none: there are several.
void ExpectOnAllTargets(const std::string& text, const std::vector<index_t>& shape,
                        const std::function<void(const runtime::LaunchPlan& plan, int threads)>& check) {
  const auto graph = graph::ParseText(text)[0];
  std::vector<float> x = Numbers(static_cast<std::size_t>(Product(shape)));
  CompileOptions options;
  options.engine = Engine::kInterpreter;
  const Results meant = Run(Compile(graph, options), &x, shape, 1);
  options.engine = Engine::kJit;
  Results first;
  for (const auto target : codegen::kAllTargets) {
    if (!HostRuns(target)) continue;
    options.target = codegen::Name(target);
    const Function f = Compile(graph, options);
    ASSERT_EQ(f.program().steps.size() == 1, check != nullptr) << text;
    for (const int threads : kThreadCounts) {
      SCOPED_TRACE(options.target + ", " + std::to_string(threads) + " threads: " + text);
      if (check) check(PlanOf(f, &x, shape, threads), threads);
      const Results results = Run(f, &x, shape, threads);
      if (first.empty()) ExpectNear(f, first = results, meant, text);
      EXPECT_TRUE(first == results);
    }
  }
}

// Kernels of few rows, whose blocks are shared out.
void ExpectSplit(const std::string& text, const std::vector<index_t>& shape) {
  ExpectOnAllTargets(text, shape, [](const runtime::LaunchPlan& plan, int) { EXPECT_GT(plan.phases, 0); });
}

TEST(Threads, RowsThatAreFewAreSharedOut) {
  ExpectSplit("kernel all(x: f32[n]) -> (y: f32[1]) { y = sqrt(reduce_with_axis<sum>(x * x, 0)) }", {300017});
  ExpectSplit("kernel all(x: f32[n]) -> (y: i64[1]) { y = reduce_with_axis<argmax>(x, 0) }", {200017});
  ExpectSplit(
      "kernel softmax(x: f32[n, m]) -> (y: f32[n, m]) {"
      " e = exp(x - broadcast<0>(reduce_with_axis<maximum>(x, 1)))"
      " y = e * broadcast<0>(1 / reduce_with_axis<sum>(e, 1)) }",
      {2, 140001});
  // Blocks of the outer axis, of the inner one, and of both.
  for (const auto& shape : {std::vector<index_t>{700, 3, 301}, {2, 1, 190003}, {3, 2, 100003}})
    ExpectSplit(
        "kernel channels(x: f32[n, c, s]) -> (mean: f32[c], variance: f32[c]) {"
        " mean = sumall_except_dim<1>(x) * 0.00001"
        " d = x - broadcast<1>(mean, x) * 0.1"
        " variance = sumall_except_dim<1>(d * d) }",
        shape);
  for (const index_t columns : {1, 5, 64})
    ExpectSplit(
        "kernel columns(x: f32[n, m]) -> (y: f32[m], z: f32[m]) {"
        " y = reduce_with_axis<sum>(x, 0) * 2 z = reduce_with_axis<maximum>(x, 0) }",
        {300001 / columns, columns});
  // Rows of memory, walked along: whole packets of columns and what is left of them.
  for (const index_t columns : {40, 256, 1001})
    for (const char* body :
         {"y = reduce_with_axis<sum>(x, 0) * 0.01 z = reduce_with_axis<maximum>(x * x, 0)",
          "m = reduce_with_axis<sum>(x, 0) * 0.0001 y = m d = x - broadcast<1>(m) z = reduce_with_axis<sum>(d * d, 0)"})
      ExpectSplit(std::string("kernel columns(x: f32[n, m]) -> (y: f32[m], z: f32[m]) { ") + body + " }",
                  {400003 / columns, columns});
  ExpectSplit("kernel columns(x: f32[n, m]) -> (y: f32[n, m]) { y = x - broadcast<1>(reduce_with_axis<sum>(x, 0)) }",
              {3001, 130});
  ExpectSplit("kernel middle(x: f32[a, n, m]) -> (y: f32[a, m]) { y = reduce_with_axis<sum>(x, 1) }", {2, 20011, 17});
}

// A kernel whose first axis has too few indices for the threads: each has a part of another one.
void ExpectSharedOut(const std::string& text, const std::vector<index_t>& shape) {
  ExpectOnAllTargets("kernel k" + text, shape, [&](const runtime::LaunchPlan& plan, int threads) {
    if (shape[0] % threads == 0) return;
    const index_t units = runtime::Units(plan);
    EXPECT_EQ(plan.parts, threads);
    EXPECT_GT(plan.axis, 0U);
    EXPECT_TRUE(units % threads == 0 || units >= 2 * threads) << units << " units";
  });
}

TEST(Threads, PositionsOfFewRowsAreSharedOut) {
  ExpectSharedOut("(x: f32[n]) -> (y: f32[n]) { y = exp(flip(x, 0)) - x }", {300007});
  ExpectSharedOut("(x: f32[n]) -> (y: u8[n]) { y = tcast<u8>(flip(x, 0) * 100) }", {800007});
  ExpectSharedOut("(x: f32[n]) -> (y: f32[?]) { y = concat(x, flip(x, 0), 0) }", {500009});
  ExpectSharedOut("(x: f32[800000]) -> (y: f32[800000]) { y = complex_mul_cc(x, flip(x, 0)) }", {800000});
  ExpectSharedOut("(x: f32[n]) -> (y: f32[n]) { y = take(tcast<i64>((x - 0.999) * 1000000), x) }", {300007});
  ExpectSharedOut("(x: f32[n, m]) -> (y: f32[n, m]) { y = flip(x, 1) * 2 }", {3, 200003});
  ExpectSharedOut("(x: f32[n, c, h, w]) -> (y: f32[n, c, ?, ?]) { y = pad(x, 2, 3) }", {1, 17, 211, 203});
  ExpectSharedOut("(x: f32[n, c, h, w]) -> (y: f32[n, c, ?, ?]) { y = pool<maximum>(x, 2, 2, 2, 2) }",
                  {1, 64, 112, 112});
  ExpectSharedOut("(x: f32[n, c, h, w]) -> (y: f32[n, c, ?, ?]) { y = pool<maximum>(x, 3, 3, 1, 1) }",
                  {1, 3, 310, 311});
  ExpectOnAllTargets("kernel k(x: f32[n, h, w]) -> (y: f32[n, w, h]) { y = swapaxis(flip(x, 2), 2, 1) }",
                     {1, 700, 1031}, nullptr);
  ExpectSharedOut("(x: f32[n, w, 3]) -> (y: f32[n, w, 3]) { y = flip(x, 2) * 2 }", {1, 200003, 3});
  ExpectSharedOut("(x: f32[n, h, w]) -> (y: f32[n, h]) { y = reduce_with_axis<maximum>(flip(x, 1), 2) }",
                  {1, 700, 1031});
  ExpectOnAllTargets(
      "kernel k(x: f32[n, c]) -> (y: f32[5, c]) {"
      " y = take_grad(tcast<i64>(reduce_with_axis<maximum>(x, 1) * 1000 - 1000), x, 5) }",
      {300, 2003}, nullptr);
}

// How many threads a call of the kernel of x and y on `count` elements takes.
int Parts(const std::string& text, index_t count, int threads) {
  const Function f = Compile(graph::ParseText(text)[0]);
  std::vector<float> memory(16);
  const TensorRef x = TensorRef::Dense(memory.data(), DType::kFloat32, {count});
  const TensorRef y = TensorRef::Dense(memory.data(), DType::kFloat32, runtime::OutputShapes(f.program(), {x})[0]);
  const auto& step = std::get<runtime::KernelStep>(f.program().steps[0]);
  return runtime::PrepareLaunch(step, {x, y}, {count}, threads).parts;
}

TEST(Threads, SmallWorkStaysOnTheCallersThread) {
  for (const std::string kernel : {"kernel k(x: f32[n]) -> (y: f32[n]) { y = x * 2 + 1 }",
                                   "kernel k(x: f32[n]) -> (y: f32[1]) { y = reduce_with_axis<sum>(x * 2, 0) }"}) {
    for (const int threads : kThreadCounts) {
      EXPECT_EQ(Parts(kernel, 256, threads), 1);
      EXPECT_EQ(Parts(kernel, 16 << 20, threads), threads);
    }
    EXPECT_EQ(Parts(kernel, 16 << 20, 64), 64);
  }
}

}  // namespace
}  // namespace umbra

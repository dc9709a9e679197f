// Compiling: what is kept and what is freed, many threads at once, and in the background.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/testing.h"
#include "umbra/compile.h"
#include "umbra/error.h"
#include "umbra/graph.h"
#include "umbra/jit.h"

namespace umbra {
namespace {

using runtime::TensorRef;

CompileOptions Fresh() {
  CompileOptions options;
  options.use_disk_cache = false;
  return options;
}

CompileOptions InBackground() {
  CompileOptions options = Fresh();
  options.background = true;
  return options;
}

std::shared_ptr<const graph::Graph> Plus(int number) {
  return graph::ParseText("kernel k(x: f32[n]) -> (y: f32[n]) { y = x + " + std::to_string(number) + " }")[0];
}

// `count` kernels over operands of different lengths.
std::shared_ptr<const graph::Graph> Many(int count, int number) {
  std::string inputs, outputs, body;
  for (int k = 0; k < count; ++k) {
    const std::string id = std::to_string(k), shape = ": f32[n" + id + "]", comma = k > 0 ? ", " : "";
    inputs += comma + "x" + id + shape;
    outputs += comma + "y" + id + shape;
    body += "y" + id + " = x" + id + " * " + std::to_string(number + k) + "\n";
  }
  return graph::ParseText("kernel k(" + inputs + ") -> (" + outputs + ") {" + body + "}")[0];
}

float Call(const Function& f, float x) {
  float y = -1;
  f({{TensorRef::Dense(&x, DType::kFloat32, {1})}, {TensorRef::Dense(&y, DType::kFloat32, {1})}, {}});
  return y;
}

// Pages of memory that may be executed and belong to no file.
int CodeMappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find(" r-xp ") != std::string::npos && line.find('/') == std::string::npos &&
             line.find('[') == std::string::npos;
  return count;
}

class Bounded : public testing::Test {
 protected:
  Bounded() { setenv("UMBRA_MAX_KERNELS", "4", 1); }
  ~Bounded() override { unsetenv("UMBRA_MAX_KERNELS"); }
};

TEST_F(Bounded, KernelsThatNobodyHoldsAreUnmapped) {
  const Function held = Compile(Plus(1), Fresh());
  for (int k = 2; k < 8; ++k) Compile(Plus(k), Fresh());
  const int mappings = CodeMappings(), loaded = GetCompileStatistics().loaded;
  EXPECT_EQ(loaded, 5);
  EXPECT_GT(mappings, 0);
  for (int k = 8; k < 40; ++k) EXPECT_EQ(Call(Compile(Plus(k), Fresh()), 1), 1 + static_cast<float>(k));
  EXPECT_EQ(GetCompileStatistics().loaded, loaded);
  EXPECT_LE(CodeMappings(), mappings + 1);
  EXPECT_EQ(Call(held, 2), 3);
}

TEST_F(Bounded, TheOnesUnusedLongestGo) {
  for (int k = 1; k <= 4; ++k) Compile(Plus(50 + k), Fresh());
  Compile(Plus(51), Fresh());
  Compile(Plus(55), Fresh());
  const int compiled = GetCompileStatistics().compiled;
  Compile(Plus(51), Fresh());
  EXPECT_EQ(GetCompileStatistics().compiled, compiled);
  Compile(Plus(52), Fresh());
  EXPECT_EQ(GetCompileStatistics().compiled, compiled + 1);
}

TEST_F(Bounded, AHeldFunctionLendsItsKernels) {
  const Function held = Compile(Plus(61), Fresh());
  for (int k = 0; k < 6; ++k) Compile(Plus(62 + k), Fresh());
  const int compiled = GetCompileStatistics().compiled;
  EXPECT_EQ(Call(Compile(Plus(61), Fresh()), 1), 62);
  EXPECT_EQ(GetCompileStatistics().compiled, compiled);
}

TEST_F(Bounded, AGraphWithMoreKernelsThanMayBeKept) {
  const Function f = Compile(Many(6, 100), Fresh());
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {};
  runtime::Arguments arguments;
  for (int k = 0; k < 6; ++k) {
    arguments.inputs.push_back(TensorRef::Dense(x + k, DType::kFloat32, {1}));
    arguments.outputs.push_back(TensorRef::Dense(y + k, DType::kFloat32, {1}));
  }
  f(arguments);
  for (int k = 0; k < 6; ++k) EXPECT_EQ(y[k], x[k] * static_cast<float>(100 + k));
}

// Different kernels, and the same ones, from several threads; some are evicted meanwhile.
TEST_F(Bounded, Storm) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([t, &right] {
      for (int k = 0; k < 8; ++k) {
        const int number = 1000 + (t % 2 == 0 ? k : 100 * t + k);
        CompileOptions options = k % 3 == 0 ? InBackground() : Fresh();
        const Function f = Compile(Plus(number), options);
        if (k % 2 == 0) f.Wait();
        right += Call(f, 1) == 1 + static_cast<float>(number);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 48);
}

TEST(Compile, TheSameKernelIsCompiledOnce) {
  const int before = GetCompileStatistics().compiled;
  std::vector<std::thread> threads;
  std::vector<Function> functions(6);
  for (Function& f : functions) threads.emplace_back([&f] { f = Compile(Many(4, 300), Fresh()); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(GetCompileStatistics().compiled, before + 4);
}

TEST(Background, CallsAreServedMeanwhile) {
  const Function f = Compile(Many(1, 700), InBackground());
  while (f.interpreted()) ASSERT_EQ(Call(f, 3), 2100);
  EXPECT_TRUE(f.Ready());
  EXPECT_EQ(Call(f, 3), 2100);
  const Function now = Compile(Many(8, 710), InBackground());
  now.Wait();
  EXPECT_FALSE(now.interpreted());
  // Who does not ask for the background gets a compiled function, whoever asked first.
  Compile(Many(8, 720), InBackground());
  EXPECT_FALSE(Compile(Many(8, 720), Fresh()).interpreted());
}

TEST(Background, TheInterpreterIsReady) {
  CompileOptions options = InBackground();
  options.engine = Engine::kInterpreter;
  const Function f = Compile(Plus(80), options);
  f.Wait();
  EXPECT_TRUE(f.Ready());
  EXPECT_TRUE(f.interpreted());
}

TEST(Background, AFailureIsReported) {
  setenv("UMBRA_CXX", "/nonexistent/compiler", 1);
  CompileOptions options = InBackground();
  options.engine = Engine::kSystem;
  const Function f = Compile(Plus(90), options);
  EXPECT_SAYS("no system compiler: '/nonexistent/compiler'", f.Wait());
  EXPECT_SAYS("no system compiler", f.Ready());
  EXPECT_SAYS("no system compiler", Call(f, 1));
  options.background = false;
  EXPECT_SAYS("no system compiler", Compile(Plus(90), options));
  unsetenv("UMBRA_CXX");
}

TEST(Background, TheProcessMayEndMeanwhile) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const bool other_thread : {false, true})
    EXPECT_EXIT(
        {
          const auto compile = [] {
            for (int k = 0; k < 20; ++k) Compile(Many(5, 10000 + 10 * k), InBackground());
          };
          if (other_thread) std::thread(compile).join();
          else compile();
          std::exit(7);
        },
        testing::ExitedWithCode(7), "");
}

TEST(Background, ExpressionsAreEvaluatedEagerlyMeanwhile) {
  TensorContainer<cpu, 2> a(Shape2(5, 9), 0.5f), b(Shape2(5, 9), 3.0f), c(Shape2(5, 9), 0.0f),
      product(Shape2(5, 5), 1.0f);
  jit::SetOptions(InBackground());
  for (int k = 0; k < 200; ++k) {
    jit(c) = F<op::sigmoid>(a) * b + 1.0f;
    jit(product) += dot(a, b.T());
    ASSERT_EQ(c[4][8], 1 / (1 + std::exp(-0.5f)) * 3 + 1);
    ASSERT_EQ(product[4][4], 1 + 13.5f * static_cast<float>(k + 1));
  }
  jit::SetOptions({});
}

TEST(Background, AFailureReachesTheExpression) {
  setenv("UMBRA_CXX", "/nonexistent/compiler", 1);
  CompileOptions options = InBackground();
  options.engine = Engine::kSystem;
  jit::SetOptions(options);
  TensorContainer<cpu, 1> a(Shape1(4), 1.0f), b(Shape1(4));
  std::string message = "no error";
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (message == "no error" && std::chrono::steady_clock::now() < patience)
    message = MessageOf([&] { jit(b) = a * 3.0f - a; });
  EXPECT_NE(message.find("no system compiler"), std::string::npos) << message;
  jit::SetOptions({});
  unsetenv("UMBRA_CXX");
}

}  // namespace
}  // namespace umbra

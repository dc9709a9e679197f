// What calls on a GPU ask of the driver, and what they say if it refuses.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/cuda_stand_in.h"
#include "tests/support/on_gpu.h"
#include "tests/support/testing.h"
#include "umbra/compile.h"
#include "umbra/graph.h"
#include "umbra/jit.h"

namespace umbra {
namespace {

const int kChosen = on_gpu::UseStandIns();

class CudaCall : public on_gpu::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(kChosen, 0);
    on_gpu::Test::SetUp();
  }
  static int Waits() {
    return stand_in::Calls("cuStreamSynchronize") + stand_in::Calls("cuCtxSynchronize") +
           stand_in::Calls("cuEventSynchronize");
  }
};

// Calls in a loop find what was decided before, and wait for nothing.
TEST_F(CudaCall, NothingIsWaitedFor) {
  Stream<gpu> stream;
  TensorContainer<gpu, 2> y(Shape2(8, 32), 1.0f), a(Shape2(8, 32), 0.5f), b(Shape2(32, 32), 0.25f);
  for (auto* tensor : {&y, &a, &b}) tensor->set_stream(&stream);
  const auto step = [&] {
    jit(y) = F<op::relu>(dot(a, b) + a);
    y += a * 2.0f;
  };
  step();
  const int waits = Waits(), loads = stand_in::Calls("cuModuleLoadDataEx"),
            launches = stand_in::Calls("cuLaunchKernel");
  for (int k = 0; k < 3; ++k) step();
  EXPECT_EQ(Waits(), waits);
  EXPECT_EQ(stand_in::Calls("cuModuleLoadDataEx"), loads);
  EXPECT_EQ(stand_in::Calls("cuLaunchKernel"), launches + 6);
  TensorContainer<cpu, 2> back(y.shape_);
  Copy<2, float>(back, y, &stream);
  EXPECT_EQ(back[7][31], 32 * 0.5f * 0.25f + 0.5f + 1.0f);
}

// A function of 300 independent updates.
struct Updates {
  static constexpr int kCount = 300;
  Updates() {
    graph::Builder builder("updates");
    const auto rate = builder.Scalar("rate", DType::kFloat32);
    std::vector<graph::Value> results;
    for (int k = 0; k < kCount; ++k) {
      const auto x = builder.Input("x" + std::to_string(k), DType::kFloat32, {Dimension()});
      const auto g = builder.Input("g" + std::to_string(k), DType::kFloat32, {Dimension()});
      results.push_back(x - rate * g);
    }
    for (int k = 0; k < kCount; ++k) builder.Output("y" + std::to_string(k), results[static_cast<std::size_t>(k)]);
    function = Compile(builder.Build(), on_gpu::Options());
  }
  // On the rows of a matrix: x0, g0, x1, g1, ...; y0 is row `first`, y1 two rows behind it.
  void Run(Tensor<gpu, 2> rows, int first, Stream<gpu>* stream = nullptr) const {
    runtime::Arguments arguments;
    const auto at = [&](int k) {
      return runtime::TensorRef::Dense(rows[static_cast<index_t>(k)].dptr_, DType::kFloat32, {rows.shape_[1]});
    };
    for (int k = 0; k < kCount; ++k) arguments.inputs.insert(arguments.inputs.end(), {at(2 + 2 * k), at(3 + 2 * k)});
    for (int k = 0; k < kCount; ++k) arguments.outputs.push_back(at(first + 2 * k));
    umbra_scalar rate{};
    rate.f32 = 0.5f;
    arguments.scalars = {rate};
    function(arguments, {0, stream == nullptr ? nullptr : stream->handle_});
  }
  Function function;
};

// As many as have room for their arguments in a launch: 292 of 13 words each. Where one writes what another has read,
// they run in their order.
TEST_F(CudaCall, EqualKernelsRunAsOneLaunch) {
  const Updates updates;
  TensorContainer<gpu, 2> rows(Shape2(2 * Updates::kCount + 4, 48));
  TensorContainer<cpu, 2> back(rows.shape_);
  for (const auto& [first, launches] : {std::pair(2, 2), std::pair(0, Updates::kCount)}) {
    rows = 2.0f;
    updates.Run(rows, first);
    const int before = stand_in::Calls("cuLaunchKernel");
    updates.Run(rows, first);
    EXPECT_EQ(stand_in::Calls("cuLaunchKernel"), before + launches) << first;
    Copy<2, float>(back, rows);
    for (int k = 0; k < Updates::kCount; ++k) {
      // x - g / 2 again and again; of the second run x is what the first has left of the x before it.
      const float twice = first == 2 ? 0.0f : k + 1 < Updates::kCount ? 0.0f : 1.0f;
      EXPECT_EQ(back[static_cast<index_t>(first + 2 * k)][47], twice) << first << " " << k;
      EXPECT_EQ(back[static_cast<index_t>(3 + 2 * k)][0], 2.0f);
    }
  }
  EXPECT_SAYS("overlaps input", updates.Run(rows, 4));  // each writes what the next is to read
}

// Captured, too, each launch with the arguments that it had.
TEST_F(CudaCall, ManyArgumentsAreCaptured) {
  const Updates updates;
  Stream<gpu> stream;
  TensorContainer<gpu, 2> rows(Shape2(2 * Updates::kCount + 4, 48), 2.0f);
  TensorContainer<cpu, 2> back(rows.shape_);
  const cuda::Graph graph = stream.Capture([&] { updates.Run(rows, 2, &stream); });
  stream.Wait();
  for (int k = 0; k < 2; ++k) stream.Launch(graph);
  Copy<2, float>(back, rows, &stream);
  stream.Wait();
  for (index_t k = 0; k < 2 * Updates::kCount; ++k) ASSERT_EQ(back[2 + k][47], k % 2 == 0 ? 0.0f : 2.0f) << k;
}

// In a process of its own; the exit code is the number of launches.
void UpdateWithDriver(const char* version) {
  setenv("STAND_IN_VERSION", version, 1);
  const Updates updates;
  TensorContainer<gpu, 2> rows(Shape2(2 * Updates::kCount + 4, 48), 2.0f);
  updates.Run(rows, 2);
  TensorContainer<cpu, 2> back(rows.shape_);
  Copy<2, float>(back, rows);
  for (index_t k = 0; k < 2 * Updates::kCount; ++k)
    if (back[2 + k][47] != (k % 2 == 0 ? 1.0f : 2.0f)) std::exit(255);
  std::exit(stand_in::Calls("cuLaunchKernel"));
}

// Those before CUDA 12.1 take 36.
TEST(CudaCallDeathTest, OldDriversTakeFewArguments) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(UpdateWithDriver("12000"), ::testing::ExitedWithCode(9), "");
  EXPECT_EXIT(UpdateWithDriver("12010"), ::testing::ExitedWithCode(2), "");
}

TEST_F(CudaCall, FailuresAreToldAndLeaveTheRest) {
  TensorContainer<gpu, 1> x(Shape1(5), 2.0f), y(Shape1(5), 7.0f);
  TensorContainer<cpu, 1> back(Shape1(5));
  stand_in::Fail("cuModuleLoadDataEx", 2, 2);
  EXPECT_SAYS("out of memory", y = F<op::square>(x) * 5.0f);
  stand_in::Fail("cuLaunchKernel", 1);
  EXPECT_SAYS("launching kernel 'expression", y = F<op::square>(x) * 5.0f);
  Copy<1, float>(back, y);
  EXPECT_EQ(back[4], 7.0f);
  y = F<op::square>(x) * 5.0f;
  Copy<1, float>(back, y);
  EXPECT_EQ(back[4], 20.0f);
}

// The temporaries of a call are one block, which a failed call gives back, too.
TEST_F(CudaCall, TooLittleMemoryForTemporaries) {
  Stream<gpu> stream;
  TensorContainer<gpu, 2> a(Shape2(8, 8), 1.0f), y(Shape2(8, 8), 7.0f);
  for (auto* tensor : {&a, &y}) tensor->set_stream(&stream);
  const auto call = [&] { jit(y) = F<op::relu>(dot(a, a) + 1.0f); };
  stand_in::Fail("cuMemAllocFromPoolAsync", 2, 2);
  EXPECT_SAYS("out of memory", call());
  const int taken = stand_in::Calls("cuMemAllocFromPoolAsync");
  call();
  call();
  EXPECT_EQ(stand_in::Calls("cuMemAllocFromPoolAsync"), taken + 2);
  stand_in::Fail("cuLaunchKernel", 1);
  EXPECT_SAYS("launching kernel", call());
  TensorContainer<cpu, 2> back(y.shape_);
  call();
  Copy<2, float>(back, y, &stream);
  EXPECT_EQ(back[7][7], 9.0f);
}

TEST_F(CudaCall, DevicesAreNotMixed) {
  TensorContainer<gpu, 1> here(Shape1(5), 2.0f);
  SetDevice<gpu>(1);
  Stream<gpu> stream;
  TensorContainer<gpu, 1> there(Shape1(5), 3.0f);
  EXPECT_SAYS("input 'a0', is memory of GPU 0, and the work is on GPU 1", there = here * 4.0f);
  SetDevice<gpu>(0);
  EXPECT_SAYS("output 'dst', is memory of GPU 1, and the work is on GPU 0", there = here * 4.0f);
  there.set_stream(&stream);
  there = there * 4.0f + 0.5f;  // in a stream of GPU 1
  TensorContainer<cpu, 1> back(Shape1(5));
  Copy<1, float>(back, there, &stream);
  EXPECT_EQ(back[4], 12.5f);
}

TEST_F(CudaCall, ThreadsShareAnExpression) {
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &results] {
      Stream<gpu> stream;
      TensorContainer<cpu, 1> back(Shape1(5));
      for (index_t n = 5; n < 9; ++n) {
        TensorContainer<gpu, 1> x(Shape1(n), static_cast<float>(t)), y(Shape1(n), 1.0f);
        for (auto* tensor : {&x, &y}) tensor->set_stream(&stream);
        for (int k = 0; k < 10; ++k) y += x * 0.5f;
        Copy<1, float>(back, y.Slice(0, 5), &stream);
        results[static_cast<std::size_t>(t)] += back[4];
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 4; ++t)
    EXPECT_EQ(results[static_cast<std::size_t>(t)], 4 * (1.0f + 5.0f * static_cast<float>(t)));
}

// A sequence of expressions is captured, their compiling included, and launched as one.
TEST_F(CudaCall, GraphsKeepTheirKernels) {
  Stream<gpu> stream;
  TensorContainer<gpu, 1> x(Shape1(5), 2.0f), y(Shape1(5), 0.0f);
  for (auto* tensor : {&x, &y}) tensor->set_stream(&stream);
  const cuda::Graph graph = stream.Capture([&] {
    y = x * 6.0f;
    y += x;
  });
  TensorContainer<cpu, 1> back(Shape1(5));
  Copy<1, float>(back, y, &stream);
  EXPECT_EQ(back[0], 0.0f);
  for (const float expected : {14.0f, 14.0f}) {
    stream.Launch(graph);
    Copy<1, float>(back, y, &stream);
    EXPECT_EQ(back[4], expected);
  }
}

}  // namespace
}  // namespace umbra

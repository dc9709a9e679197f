// What calls on a GPU ask of the driver, and what they say if it refuses.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/cuda_stand_in.h"
#include "tests/support/on_gpu.h"
#include "tests/support/testing.h"
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
    return stand_in::Calls("cuStreamSynchronize") + stand_in::Calls("cuCtxSynchronize") + stand_in::Calls("cuEventSynchronize");
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
  const int waits = Waits(), loads = stand_in::Calls("cuModuleLoadDataEx"), launches = stand_in::Calls("cuLaunchKernel");
  for (int k = 0; k < 3; ++k) step();
  EXPECT_EQ(Waits(), waits);
  EXPECT_EQ(stand_in::Calls("cuModuleLoadDataEx"), loads);
  EXPECT_EQ(stand_in::Calls("cuLaunchKernel"), launches + 6);
  TensorContainer<cpu, 2> back(y.shape_);
  Copy<2, float>(back, y, &stream);
  EXPECT_EQ(back[7][31], 32 * 0.5f * 0.25f + 0.5f + 1.0f);
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
  for (int t = 0; t < 4; ++t) EXPECT_EQ(results[static_cast<std::size_t>(t)], 4 * (1.0f + 5.0f * static_cast<float>(t)));
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

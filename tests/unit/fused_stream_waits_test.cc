// What runs the statements of a fused stream that wait.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/fused_stream_common.h"

namespace umbra {
namespace {

TEST(FusedStreamWaits, AssignmentsToTensorsWithoutOneRunWhatWaits) {
  Waits eager, compiled;
  eager.b = eager.a + 1.0f;
  EXPECT_EQ(eager.b[4], 5);
  jit(compiled.b) = compiled.a + 1.0f;
  EXPECT_EQ(compiled.b[4], 5);
  // What is written before a number is taken from memory again.
  Held<1> w(compiled.stream.get(), Shape1(5), 1);
  w = 0.0f;
  for (int k = 1; k <= 3; ++k) {
    compiled.b = static_cast<float>(k);
    jit(w) += compiled.b;
  }
  compiled.stream->Wait();
  EXPECT_EQ(w[4], 6);
}

TEST(FusedStreamWaits, FunctionsRunWhatWaits) {
  Waits w;
  Held<2> table(w.stream.get(), Shape2(3, 2), 1);
  table = 1.0f;
  {
    Held<1> index(nullptr, Shape1(1), 2);
    Held<2> rows(nullptr, Shape2(1, 2), 3);
    index = 1.0f;
    rows = 2.0f;
    AddTakeGrad(static_cast<Tensor<cpu, 2>>(table), static_cast<Tensor<cpu, 1>>(index),
                static_cast<Tensor<cpu, 2>>(rows));
  }
  EXPECT_EQ(w.a[4], 4);
  EXPECT_EQ(table[1][1], 3);
  jit(w.a) = w.a + 1.0f;
  const Tensor<cpu, 1> fresh = NewTensor<cpu>(Shape1(7), 3.0f, true, w.stream.get());
  EXPECT_EQ(fresh[6], 3);
  Tensor<cpu, 1> freed = fresh;
  FreeSpace(&freed);
  EXPECT_EQ(w.a[4], 5);
  jit(w.a) = w.a + 1.0f;
  { const detail::CallOperand<1> operand(w.b); }  // of a kernel that was compiled ahead of time
  EXPECT_EQ(w.a[4], 6);
  jit(w.a) = w.a + 1.0f;
  const Function doubled = Compile(graph::ParseText("kernel k(x: f32[n]) -> (y: f32[n]) { y = x * 2 }")[0]);
  doubled({{runtime::TensorRef::Dense(w.a.dptr_, DType::kFloat32, {5})},
           {runtime::TensorRef::Dense(w.b.dptr_, DType::kFloat32, {5})},
           {}});
  EXPECT_EQ(w.b[4], 14);
}

TEST(FusedStreamWaits, CopiesOfContainersComeAfterWhatWaits) {
  Waits w;
  w.b = 9.0f;
  static_cast<TensorContainer<cpu, 1>&>(w.a) = static_cast<const TensorContainer<cpu, 1>&>(w.b);
  w.stream->Wait();
  EXPECT_EQ(w.a[4], 9);
}

TEST(FusedStreamWaits, MemoryIsFreedAfterWhatWaits) {
  Waits w;
  {
    Held<1> local(w.stream.get(), Shape1(5), 3);
    jit(local) = w.a + 1.0f;
    jit(w.a) = local * 10.0f;
  }
  EXPECT_EQ(w.a[4], 50);
  try {
    Held<1> local(w.stream.get(), Shape1(5), 3);
    jit(local) = w.a + 1.0f;
    jit(w.a) = local - 1.0f;
    throw 1;
  } catch (int) {}
  EXPECT_EQ(w.a[4], 50);
  {
    Held<1> local(w.stream.get(), Shape1(6), 3);  // an error meanwhile is for who waits
    jit(local) = w.a + 1.0f;
  }
  EXPECT_SAYS("6", w.stream->Wait());
  w.stream->Wait();
}

TEST(FusedStreamWaits, AsynchronousStreamsFindWhatWaitedDone) {
  Waits w;
  const Owner other = Make(Execution::kAsynchronous);
  w.b.set_stream(other.get());
  jit(w.b) = w.a + 1.0f;
  other->Wait();
  EXPECT_EQ(w.b[4], 5);
  // Work of such a stream may use a fused one.
  other->Submit([&] {
    jit(w.a) = w.a + 1.0f;
    jit(w.a) = w.a * 3.0f;
  });
  other->Wait();
  EXPECT_EQ(w.a[4], 15);
}

// An expression of a user's with an engine of its own.
struct RunningSum : expr::Exp<RunningSum, float, expr::type::kComplex> {
  explicit RunningSum(const Tensor<cpu, 1>& source) : source(source) {}
  Tensor<cpu, 1> source;
};

}  // namespace
template <typename SV>
struct expr::ExpComplexEngine<SV, Tensor<cpu, 1>, RunningSum, float> {
  static void Eval(Tensor<cpu, 1>* dst, const RunningSum& e) {
    float sum = 0;
    for (index_t k = 0; k < dst->size(0); ++k) dst->dptr_[k] = sum += e.source.dptr_[k];
  }
};
namespace {

TEST(FusedStreamWaits, EnginesOfAUsersFindWhatWaitedDone) {
  Waits w;
  w.b = RunningSum(w.a);
  EXPECT_EQ(w.b[4], 20);
}

// An object of a thread that was made before its first statement is destroyed after the last one.
TEST(FusedStreamWaits, DestructorsOfAThreadMayAssign) {
  const Owner stream = Make(Execution::kFused);
  Held<1> x(stream.get(), Shape1(5), 1), y(stream.get(), Shape1(5), 1);
  const auto add = [&] {
    jit(x) = y + 1.0f;
    jit(x) = x * 2.0f;
  };
  struct AtExit {
    std::function<void()> run;
    ~AtExit() { run(); }
  };
  std::thread([&] {
    thread_local AtExit at_exit{[&] {
      y = 3.0f;
      for (int k = 0; k < 50; ++k) add();  // more than wait at a time
      stream->Wait();
    }};
    (void)&at_exit;
    add();
  }).join();
  EXPECT_EQ(x.Elements(), std::vector<float>(5, 8.0f));
}

}  // namespace
}  // namespace umbra

// Streams of the CPU: order, Wait and CheckIdle, at once and asynchronously.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/testing.h"
#include "umbra/jit.h"
#include "umbra/tensor.h"

namespace umbra {
namespace {

using Owner = std::unique_ptr<Stream<cpu>, void (*)(Stream<cpu>*)>;
Owner Asynchronous() { return {NewStream<cpu>(Execution::kAsynchronous), DeleteStream<cpu>}; }

// Holds a stream up until Open.
class Gate {
 public:
  explicit Gate(Stream<cpu>* stream) {
    stream->Submit([future = opened_.get_future().share()] { future.wait(); });
  }
  void Open() { opened_.set_value(); }

 private:
  std::promise<void> opened_;
};

struct Matrix : TensorContainer<cpu, 2> {
  Matrix(float value, Stream<cpu>* stream) : TensorContainer<cpu, 2>(Shape2(9, 33), value) { set_stream(stream); }
  using TensorContainer<cpu, 2>::operator=;
};

TEST(Stream, OneThatIsImmediateIsAlwaysIdle) {
  Stream<cpu>* stream = NewStream<cpu>();
  Matrix a(1, stream);
  a += 1.0f;
  EXPECT_EQ(a[8][32], 2);
  EXPECT_TRUE(stream->CheckIdle());
  EXPECT_FALSE(stream->asynchronous());
  bool ran = false;
  stream->Submit([&] { ran = true; });
  EXPECT_TRUE(ran);
  stream->Wait();
  DeleteStream(stream);
}

TEST(Stream, AssignmentsRunLaterAndInOrder) {
  const Owner stream = Asynchronous();
  Matrix a(1, stream.get()), b(0, stream.get()), c(0, stream.get());
  TensorContainer<cpu, 2> product(Shape2(9, 9), 0.0f);
  product.set_stream(stream.get());
  Gate gate(stream.get());
  float expected = 1;
  for (int k = 0; k < 10; ++k) {
    const auto factor = static_cast<float>(k % 2 + 1);  // of which the expression keeps a copy
    b = a * factor + 1.0f;
    jit(c) = F<op::relu>(b) - 0.5f;
    a = c * 0.5f;
    expected = (expected * factor + 1 - 0.5f) * 0.5f;
  }
  product = dot(a, a.T());
  product += 1.0f;
  EXPECT_FALSE(stream->CheckIdle());
  EXPECT_EQ(product[8][8], 0);
  gate.Open();
  stream->Wait();
  EXPECT_TRUE(stream->CheckIdle());
  EXPECT_EQ(a[8][32], expected);
  EXPECT_NEAR(product[8][8], 33 * expected * expected + 1, 1e-4);
}

TEST(Stream, StreamsAreIndependent) {
  const Owner first = Asynchronous(), second = Asynchronous();
  Matrix a(1, first.get()), b(1, second.get());
  Gate gate(first.get());
  a += 1.0f;
  b += 1.0f;
  second->Wait();
  EXPECT_EQ(b[8][32], 2);
  EXPECT_TRUE(second->CheckIdle());
  EXPECT_FALSE(first->CheckIdle());
  EXPECT_EQ(a[8][32], 1);
  gate.Open();
  first->Wait();
  EXPECT_EQ(a[8][32], 2);
}

TEST(Stream, ErrorsAreThrownByWait) {
  const Owner stream = Asynchronous();
  Matrix a(1, stream.get());
  const TensorContainer<cpu, 2> other(Shape2(2, 2), 1.0f);
  a = other + 1.0f;
  a += 1.0f;  // is not run: it would compute with what the failure left
  EXPECT_SAYS("assignment to a tensor of shape (9,33)", stream->Wait());
  EXPECT_EQ(a[0][0], 1);
  stream->Wait();
  a += 1.0f;
  stream->Wait();
  EXPECT_EQ(a[0][0], 2);
  jit(a) = other + 1.0f;
  EXPECT_SAYS("with shape [2, 2]", stream->Wait());
  a = other * 1.0f;  // nobody waits
}

// What is done on return, or is given to the caller's thread, sees what the streams of its operands hold.
TEST(Stream, OtherWorkWaits) {
  const Owner stream = Asynchronous();
  const auto later = [&](Matrix& m) {
    stream->Submit([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    m += 1.0f;
  };
  Matrix a(1, stream.get()), result(0, nullptr);
  later(a);
  result = a * 2.0f;
  EXPECT_EQ(result[8][32], 4);
  later(a);
  jit(result) = a * 2.0f;
  EXPECT_EQ(result[8][32], 6);
  later(a);
  Copy(result, a);
  EXPECT_EQ(result[8][32], 4);
  later(a);
  const TensorContainer<cpu, 2> copy(a);
  EXPECT_EQ(copy[8][32], 5);
  later(a);
  Softmax(result, a);
  EXPECT_EQ(a[8][32], 6);
  EXPECT_FLOAT_EQ(result[8][32], 1.0f / 33);
  const TensorContainer<cpu, 2> other(Shape2(1, 1), 0.0f);
  a += other + 1.0f;
  EXPECT_SAYS("shape", Softmax(result, a));
}

TEST(Stream, CopiesKeepTheOrder) {
  const Owner stream = Asynchronous();
  Matrix a(1, stream.get()), b(0, nullptr);
  Gate gate(stream.get());
  a += 1.0f;
  Copy(b, a, stream.get());
  a += 1.0f;
  EXPECT_EQ(b[8][32], 0);
  gate.Open();
  stream->Wait();
  EXPECT_EQ(b[8][32], 2);
  EXPECT_EQ(a[8][32], 3);
}

TEST(Stream, WorkMayUseItsOwnStream) {
  const Owner stream = Asynchronous();
  Matrix a(1, stream.get());
  float seen = 0;
  stream->Submit([&] {
    a += 1.0f;
    stream->Wait();
    seen = a[0][0];
  });
  stream->Wait();
  EXPECT_EQ(seen, 2);
}

TEST(Stream, TheEndOfAStreamFinishesItsWork) {
  Matrix a(0, nullptr);
  {
    const Owner stream = Asynchronous();
    a.set_stream(stream.get());
    for (int k = 0; k < 1000; ++k) a += 1.0f;
  }
  a.set_stream(nullptr);
  EXPECT_EQ(a[8][32], 1000);
}

TEST(Stream, MemoryStaysUntilTheStreamHasUsedIt) {
  const Owner stream = Asynchronous();
  Matrix a(3, stream.get()), b(0, stream.get());
  Gate gate(stream.get());
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.Open();
  });
  {
    Matrix between(0, nullptr);
    between.set_stream(stream.get());
    between = a * 2.0f;
    b = between + a;
  }
  EXPECT_TRUE(stream->CheckIdle());
  stream->Wait();
  EXPECT_EQ(b[8][32], 9);
  opener.join();
}

TEST(Stream, ErrorsOfFreedTensorsAreForWait) {
  const Owner stream = Asynchronous();
  Matrix a(3, stream.get());
  {
    Matrix b(0, nullptr);
    b.set_stream(stream.get());
    stream->Submit([] { throw Error("it failed"); });
  }
  EXPECT_SAYS("it failed", stream->Wait());
}

TEST(Stream, TensorsMayOutliveTheirStream) {
  Matrix a(3, nullptr);
  {
    Stream<cpu> first(Execution::kAsynchronous), stream(std::move(first));
    a.set_stream(&stream);
    a += 1.0f;
  }
  EXPECT_EQ(a.dptr_[0], 4);
}

TEST(Stream, ManyThreadsMaySubmit) {
  const Owner stream = Asynchronous();
  Matrix a(0, stream.get());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) a += 1.0f;
      stream->Wait();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(stream->CheckIdle());
  EXPECT_EQ(a[8][32], 400);
}

}  // namespace
}  // namespace umbra

// Fused streams that one thread gives to and another waits for.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "umbra/jit.h"
#include "umbra/tensor.h"
#include "umbra/tensor_functions.h"

namespace umbra {
namespace {

using Owner = std::unique_ptr<Stream<cpu>, void (*)(Stream<cpu>*)>;
Owner Make() { return {NewStream<cpu>(Execution::kFused), DeleteStream<cpu>}; }

using Line = TensorContainer<cpu, 1, float>;
constexpr index_t kLength = 33;

// A thread that gives something, and then waits for nothing until it is told to end.
class Gives {
 public:
  template <typename Body>
  explicit Gives(const Body& body)
      : thread_([this, body] {
          body();
          given_.set_value();
          end_.get_future().wait();
        }) {
    given_.get_future().wait();
  }
  ~Gives() {
    end_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> given_, end_;
  std::thread thread_;
};

struct Lines {
  Lines(Stream<cpu>* stream, float value) : x(Shape1(kLength), value), y(Shape1(kLength), 0.0f) {
    x.set_stream(stream);
    y.set_stream(stream);
  }
  void ExpectY(float expected) const {
    for (index_t k = 0; k < kLength; ++k) ASSERT_EQ(y.dptr_[k], expected) << "element " << k;
  }
  Line x, y;
};

TEST(FusedStreamOfThreads, IsDoneWhereAnyThreadHasWaited) {
  const Owner stream = Make();
  Lines lines(stream.get(), 3);
  const Gives gives([&] {
    jit(lines.y) = lines.x * 2.0f;
    jit(lines.y) = lines.y + 1.0f;
  });
  lines.ExpectY(0);
  stream->Wait();
  lines.ExpectY(7);
}

TEST(FusedStreamOfThreads, IsIdleWhereAnyThreadHasAsked) {
  const Owner stream = Make();
  Lines lines(stream.get(), 3);
  const Gives gives([&] { jit(lines.y) = lines.x * 2.0f; });
  EXPECT_TRUE(stream->CheckIdle());
  lines.ExpectY(6);
}

TEST(FusedStreamOfThreads, FinishesBeforeItEnds) {
  Owner stream = Make();
  Lines lines(stream.get(), 3);
  const Gives gives([&] { jit(lines.y) = lines.x * 2.0f; });
  stream.reset();
  lines.ExpectY(6);
}

TEST(FusedStreamOfThreads, IsWaitedForByFunctions) {
  const Owner stream = Make();
  Lines lines(stream.get(), 3);
  const Gives gives([&] { jit(lines.y) = lines.x * 2.0f; });
  Line copy(Shape1(kLength), 0.0f);
  Copy(copy, lines.y);
  for (index_t k = 0; k < kLength; ++k) ASSERT_EQ(copy.dptr_[k], 6);
}

TEST(FusedStreamOfThreads, OthersAreLeftAlone) {
  const Owner stream = Make(), other = Make();
  Lines lines(stream.get(), 3);
  const Gives gives([&] { jit(lines.y) = lines.x * 2.0f; });
  other->Wait();
  lines.ExpectY(0);
}

// Several threads, one stream; who waits does all, in each thread's own order.
TEST(FusedStreamOfThreads, HasManyGivers) {
  const Owner stream = Make();
  std::vector<std::unique_ptr<Lines>> lines;
  for (int k = 0; k < 4; ++k) lines.push_back(std::make_unique<Lines>(stream.get(), static_cast<float>(k)));
  for (int round = 1; round <= 3; ++round) {
    std::vector<std::unique_ptr<Gives>> gives;
    for (int k = 0; k < 3; ++k)
      gives.push_back(std::make_unique<Gives>([&l = *lines[static_cast<std::size_t>(k)]] {
        jit(l.y) = l.y + l.x;
        jit(l.y) = l.y + 1.0f;
      }));
    jit(lines[3]->y) = lines[3]->y + lines[3]->x;
    jit(lines[3]->y) = lines[3]->y + 1.0f;
    stream->Wait();
    for (int k = 0; k < 4; ++k) lines[static_cast<std::size_t>(k)]->ExpectY(static_cast<float>(round * (k + 1)));
  }
}

// Of two threads that wait, neither returns while the statements run, whoever runs them.
TEST(FusedStreamOfThreads, IsDoneForAllThatWait) {
  const Owner stream = Make();
  constexpr index_t kMuch = 1 << 22;
  Line x(Shape1(kMuch), 1.0f), y(Shape1(kMuch), 0.0f);
  x.set_stream(stream.get());
  y.set_stream(stream.get());
  for (int round = 1; round <= 20; ++round) {
    const Gives gives([&] { jit(y) = y + tanh(x) / tanh(x); });
    std::atomic<int> late{0};
    std::vector<std::thread> waits;
    for (int k = 0; k < 3; ++k)
      waits.emplace_back([&] {
        stream->Wait();
        late += y.dptr_[kMuch - 1] != static_cast<float>(round);
      });
    for (auto& thread : waits) thread.join();
    ASSERT_EQ(late, 0) << "round " << round;
  }
}

// A statement that reads what an asynchronous stream makes waits for that, whose work reads what the thread gave
// before.
TEST(FusedStreamOfThreads, AndAsynchronousStreamsWaitForEachOther) {
  const Owner stream = Make(), queue{NewStream<cpu>(Execution::kAsynchronous), DeleteStream<cpu>};
  for (int round = 0; round < 50; ++round) {
    Lines lines(stream.get(), 3);
    Line z(Shape1(kLength), 0.0f), w(Shape1(kLength), 0.0f), copy(Shape1(kLength), 0.0f);
    z.set_stream(queue.get());
    w.set_stream(stream.get());
    jit(lines.y) = lines.x * 2.0f;
    z = lines.y + 1.0f;
    Copy(copy, lines.y, queue.get());
    jit(w) = z * 2.0f;
    jit(lines.y) = lines.x * 5.0f;  // later than what the queue reads
    queue->Wait();
    stream->Wait();
    ASSERT_EQ(z.dptr_[0], 7);
    ASSERT_EQ(copy.dptr_[0], 6);
    ASSERT_EQ(w.dptr_[0], 14);
    ASSERT_EQ(lines.y.dptr_[0], 15);
  }
}

TEST(FusedStreamOfThreads, ComesBeforeAssignmentsAtOnce) {
  const Owner stream = Make();
  Lines lines(stream.get(), 3);
  Line z(Shape1(kLength), 0.0f);
  {
    const Gives gives([&] { jit(lines.y) = lines.x * 2.0f; });
    jit(z) = lines.y + 1.0f;
    ASSERT_EQ(z.dptr_[0], 7);
  }
  const Gives gives([&] { jit(lines.y) = lines.x * 4.0f; });
  z = lines.y + 1.0f;
  EXPECT_EQ(z.dptr_[0], 13);
}

TEST(FusedStreamOfThreads, FinishesBeforeAnotherTakesItsPlace) {
  Stream<cpu> stream(Execution::kFused);
  Lines lines(&stream, 3);
  const Gives gives([&] { jit(lines.y) = lines.x * 2.0f; });
  stream = Stream<cpu>(Execution::kImmediate);
  lines.ExpectY(6);
  EXPECT_FALSE(stream.fused());
}

// A child has no other threads, whatever they held.
TEST(FusedStreamOfThreads, AreOfTheirProcess) {
  const Owner stream = Make();
  Lines lines(stream.get(), 3);
  const Gives gives([&] { jit(lines.y) = lines.x * 2.0f; });
  const pid_t child = fork();
  if (child == 0) {
    stream->Wait();
    _exit(lines.y.dptr_[0] == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  stream->Wait();
  lines.ExpectY(6);
}

// The error goes to who waits, and to the thread that gave, which begins anew then.
TEST(FusedStreamOfThreads, ErrorsGoToWhoWaits) {
  const Owner stream = Make();
  Lines lines(stream.get(), 3);
  Line longer(Shape1(kLength + 1), 1.0f);
  longer.set_stream(stream.get());
  std::promise<void> given, waited, end;
  std::thread thread([&] {
    // An overlap that only the launch sees.
    Tensor<cpu, 1> ahead(lines.y.dptr_ + 1, Shape1(kLength - 1), stream.get()),
        whole(lines.y.dptr_, Shape1(kLength - 1), stream.get());
    jit(ahead) = whole * 2.0f;
    given.set_value();
    waited.get_future().wait();
    EXPECT_THROW(stream->Wait(), Error);
    jit(lines.y) = lines.x * 5.0f;
    stream->Wait();
    end.set_value();
  });
  given.get_future().wait();
  EXPECT_THROW(stream->Wait(), Error);
  EXPECT_NO_THROW(stream->Wait());
  waited.set_value();
  end.get_future().wait();
  thread.join();
  lines.ExpectY(15);
}

// What a thread gave and did not wait for is done when it ends; later waits find nothing of it.
TEST(FusedStreamOfThreads, OutlivesItsGivers) {
  const Owner stream = Make();
  Lines lines(stream.get(), 3);
  for (int k = 1; k <= 20; ++k) {
    std::thread([&] { jit(lines.y) = lines.y + lines.x; }).join();
    lines.ExpectY(static_cast<float>(3 * k));
    stream->Wait();
  }
}

// One gives and waits all the time, while another waits for the same stream.
TEST(FusedStreamOfThreads, WaitsCross) {
  const Owner stream = Make();
  Lines lines(stream.get(), 1);
  std::atomic<bool> end{false};
  std::thread waits([&] {
    while (!end) stream->Wait();
  });
  for (int k = 1; k <= 3000; ++k) {
    jit(lines.y) = lines.y + lines.x;
    if (k % 3 != 0) continue;
    stream->Wait();
    lines.ExpectY(static_cast<float>(k));
  }
  end = true;
  waits.join();
}

}  // namespace
}  // namespace umbra

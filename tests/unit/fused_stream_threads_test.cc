// Fused streams that one thread gives to and another waits for.
#include <gtest/gtest.h>

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

// The error goes to the one that waits; the thread that gave begins anew.
TEST(FusedStreamOfThreads, ErrorsGoToWhoWaits) {
  const Owner stream = Make();
  Lines lines(stream.get(), 3);
  Line longer(Shape1(kLength + 1), 1.0f);
  longer.set_stream(stream.get());
  std::promise<void> given, waited, end;
  std::thread thread([&] {
    // An overlap that only the launch sees.
    Tensor<cpu, 1> ahead(lines.y.dptr_ + 1, Shape1(kLength - 1), stream.get()), whole(lines.y.dptr_, Shape1(kLength - 1), stream.get());
    jit(ahead) = whole * 2.0f;
    given.set_value();
    waited.get_future().wait();
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

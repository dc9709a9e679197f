// The mutex of a thread's statements: whoever holds it is alone, with the system's help and without.
#include "umbra/biased_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace umbra::detail {
namespace {

class Mutex : public ::testing::TestWithParam<bool> {};

TEST_P(Mutex, HoldersAreAlone) {
  BiasedMutex mutex(GetParam());
  long long first = 0, second = 0;  // changed together
  bool together = true;
  const auto change = [&] {
    together = together && first == second;
    ++first;
    ++second;
  };
  constexpr int kOutside = 2, kTurns = 12000;
  std::atomic<int> ended{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < kOutside; ++k)
    threads.emplace_back([&, k] {
      for (int turn = 0; turn < kTurns; ++turn) {
        for (std::atomic<int> pause{(turn * 37 + k * 11) % 1500}; pause > 0; --pause) {}  // while the owner goes on
        const BiasedMutex::Outside lock(&mutex);
        change();
      }
      ++ended;
    });
  long long turns = 0;
  std::vector<char> far(std::size_t{1} << 26, 1);
  for (; ended < kOutside; ++turns) {
    // What the owner stores next takes a while until others see it.
    for (std::size_t line = 0; line < 16; ++line)
      far[(static_cast<std::size_t>(turns) * 16 + line) * 4160 % far.size()] = 1;
    const std::lock_guard<BiasedMutex> lock(mutex);
    change();
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(together);
  EXPECT_EQ(first, kOutside * kTurns + turns);
  EXPECT_EQ(second, first);
}

TEST_P(Mutex, TheOwnerMayHoldItAtLeisure) {
  BiasedMutex mutex(GetParam());
  int value = 0;
  std::thread other;
  {
    const std::lock_guard<BiasedMutex> lock(mutex);
    other = std::thread([&] {
      const BiasedMutex::Outside outside(&mutex);
      value *= 2;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    value = 21;
  }
  other.join();
  EXPECT_EQ(value, 42);
}

INSTANTIATE_TEST_SUITE_P(OrderedByTheOwnerOrTheSystem, Mutex, ::testing::Values(false, BiasedMutex::SystemOrders()));

}  // namespace
}  // namespace umbra::detail

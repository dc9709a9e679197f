// Threads that share out pieces of work: each done once, by whoever is free, in every state of the pool.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cpu_info.h"
#include "runtime/parallel.h"
#include "runtime/thread_pool.h"

namespace umbra::runtime {
namespace {

using std::chrono::microseconds;

// Until `condition` holds, or so late that it never will.
template <typename Condition>
bool Await(const Condition& condition) {
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition())
    if (std::chrono::steady_clock::now() > late) return false;
    else std::this_thread::yield();
  return true;
}

void ExpectEachOnce(ThreadPool* pool, int threads, int pieces) {
  std::vector<std::atomic<int>> done(static_cast<std::size_t>(pieces));
  pool->ShareOut(threads, pieces, [&](int piece) { ++done[static_cast<std::size_t>(piece)]; });
  for (const auto& times : done) EXPECT_EQ(times, 1) << threads << " threads, " << pieces << " pieces";
}

// Each of as many pieces waits until all have begun, and then does `work`.
template <typename Work>
void ExpectSideBySide(ThreadPool* pool, int threads, const Work& work) {
  std::atomic<int> working{0};
  pool->ShareOut(threads, threads, [&](int piece) {
    ++working;
    EXPECT_TRUE(Await([&] { return working == threads; }));
    work(piece);
  });
}

TEST(ThreadPool, EachPieceIsDoneOnce) {
  for (const int workers : {0, 1, 3, 6}) {
    ThreadPool pool(workers);
    for (const int threads : {0, 1, 2, 3, 7, 100})
      for (const int pieces : {0, 1, 2, 7, 64}) ExpectEachOnce(&pool, threads, pieces);
  }
}

// What one thread wrote for a call is there for the others, and what they wrote for who waited: plain memory.
TEST(ThreadPool, WhatIsWrittenIsSeen) {
  ThreadPool pool(3);
  std::vector<int> numbers(1024, 0);
  for (int call = 1; call <= 2000; ++call) {
    pool.ShareOut(4, 16, [&](int piece) {
      for (int k = 0; k < 64; ++k) ++numbers[static_cast<std::size_t>(piece * 64 + k)];
    });
    ASSERT_EQ(numbers, std::vector<int>(1024, call));
  }
}

TEST(ThreadPool, ThreadsWorkSideBySide) {
  ThreadPool pool(3);
  for (int call = 0; call < 3; ++call) ExpectSideBySide(&pool, 4, [](int) {});
}

TEST(ThreadPool, NoMoreThreadsThanAskedFor) {
  ThreadPool pool(7);
  std::atomic<int> working{0}, most{0};
  pool.ShareOut(3, 60, [&](int) {
    int now = ++working, before = most;
    while (now > before && !most.compare_exchange_weak(before, now)) {}
    std::this_thread::sleep_for(microseconds(100));
    --working;
  });
  EXPECT_GE(most, 1);
  EXPECT_LE(most, 3);
}

TEST(ThreadPool, WhoIsDoneHelpsOut) {
  // The thread of piece 0 is held up until all others are done, those of its own share too.
  ThreadPool pool(1);
  std::atomic<int> done{0};
  pool.ShareOut(2, 8, [&](int piece) {
    if (piece == 0) {
      EXPECT_TRUE(Await([&] { return done == 7; }));
    }
    ++done;
  });
  EXPECT_EQ(done, 8);
}

TEST(ThreadPool, WorkersThatSleepAreWoken) {
  ThreadPool pool(3);
  for (int call = 0; call < 20; ++call) {
    std::this_thread::sleep_for(microseconds(100 * call));
    ExpectSideBySide(&pool, 4, [](int) {});
  }
}

// Each caller is on another processor than the one before, and allows itself no other.
TEST(ThreadPool, WorkersAreWokenElsewhere) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  if (CPU_COUNT(&allowed) < 2) GTEST_SKIP() << "this process may run on one processor only";
  ThreadPool pool(1);
  ExpectSideBySide(&pool, 2, [](int) {});
  for (std::size_t cpu = 0, seen = 0; seen < 2; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    ++seen;
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(cpu, &here);
    ASSERT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> together{true};
    for (int attempt = 0; attempt < 50 && together; ++attempt) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // mostly enough for the worker to be asleep
      ExpectSideBySide(&pool, 2, [&](int) {
        cpu_set_t of_worker;
        if (std::this_thread::get_id() != caller && sched_getaffinity(0, sizeof of_worker, &of_worker) == 0)
          together = CPU_ISSET(cpu, &of_worker) || CPU_COUNT(&of_worker) != CPU_COUNT(&allowed) - 1;
      });
    }
    EXPECT_FALSE(together);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

TEST(ThreadPool, SharesStayWithTheirThreads) {
  ThreadPool pool(3);
  std::vector<std::thread::id> before(4), now(4);
  for (int call = 0; call < 10; ++call) {
    ExpectSideBySide(&pool, 4, [&](int piece) { now[static_cast<std::size_t>(piece)] = std::this_thread::get_id(); });
    EXPECT_EQ(now[0], std::this_thread::get_id());
    if (call > 0) { EXPECT_EQ(now, before); }
    before = now;
  }
}

TEST(ThreadPool, SeveralCallersHaveTheirOwnPieces) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&pool, caller] {
      for (int call = 0; call < 500; ++call) ExpectEachOnce(&pool, 2 + caller, 1 + call % 40);
    });
  for (auto& caller : callers) caller.join();
}

// A call that found all workers taken has their help as soon as they are free.
TEST(ThreadPool, WorkersJoinCallsThatHaveBegun) {
  ThreadPool pool(1);
  std::atomic<bool> taken{false}, begun{false};
  std::thread other([&] {
    pool.ShareOut(2, 2, [&](int) {
      taken = true;
      EXPECT_TRUE(Await([&] { return begun.load(); }));
    });
  });
  EXPECT_TRUE(Await([&] { return taken.load(); }));
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> helped{false};
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!helped && std::chrono::steady_clock::now() < late)
    pool.ShareOut(2, 1000, [&](int piece) {
      helped = helped || std::this_thread::get_id() != caller;
      if (piece == 1) begun = true;
      if (!helped) std::this_thread::sleep_for(microseconds(20));
    });
  EXPECT_TRUE(helped);
  other.join();
}

// Of brief calls that find a thread asleep one in sixteen wakes it, and does not wait for it.
TEST(ThreadPool, BriefCallsLeaveThreadsAsleep) {
  ThreadPool pool(1);
  ExpectSideBySide(&pool, 2, [](int) {});
  const auto caller = std::this_thread::get_id();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (int call = 0; call < 15; ++call) {
    int done = 0;  // plain, since one thread does both
    pool.ShareOut(
        2, 2, [&](int) { done += std::this_thread::get_id() == caller; }, true);
    ASSERT_EQ(done, 2) << "call " << call;
  }
  std::atomic<bool> helped{false};
  pool.ShareOut(
      2, 2,
      [&](int) {
        if (std::this_thread::get_id() == caller) EXPECT_TRUE(Await([&] { return helped.load(); }));
        else helped = true;
      },
      true);
  EXPECT_TRUE(helped);
  for (int call = 0; call < 10000; ++call) {
    std::atomic<int> done{0};
    pool.ShareOut(
        2, 3, [&](int) { ++done; }, true);
    ASSERT_EQ(done, 3) << "call " << call;
    if (call % 1000 == 0) std::this_thread::sleep_for(microseconds(call / 20));
  }
}

TEST(ThreadPool, CallsFromWithinPieces) {
  ThreadPool pool(3);
  std::atomic<int> done{0};
  pool.ShareOut(4, 8, [&](int) { pool.ShareOut(4, 8, [&](int) { pool.ShareOut(2, 3, [&](int) { ++done; }); }); });
  EXPECT_EQ(done, 8 * 8 * 3);
}

// The temporaries of a call are its thread's.
TEST(ThreadPool, WhoWaitsTakesUpNoOtherCall) {
  static thread_local bool t_calling = false;
  ThreadPool pool(3);
  std::atomic<int> interrupted{0};
  pool.ShareOut(4, 1500, [&](int) {
    interrupted += t_calling;
    t_calling = true;
    pool.ShareOut(2, 2, [](int piece) { std::this_thread::sleep_for(microseconds(piece == 0 ? 10 : 300)); });
    t_calling = false;
  });
  EXPECT_EQ(interrupted, 0);
}

TEST(ThreadPool, TheFirstExceptionIsThrownAgain) {
  ThreadPool pool(3);
  for (const int failing : {0, 1, 63}) {
    std::atomic<int> done{0};
    try {
      pool.ShareOut(4, 64, [&](int piece) {
        if (piece == failing) throw std::runtime_error("piece " + std::to_string(piece));
        ++done;
      });
      ADD_FAILURE() << "no exception";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "piece " + std::to_string(failing));
    }
    EXPECT_LT(done, 64);
    ExpectEachOnce(&pool, 4, 64);
  }
}

TEST(ThreadPool, WorkersRoundAsTheCallerDoes) {
  ThreadPool pool(3);
  for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TONEAREST}) {
    std::fesetround(rounding);
    std::vector<double> thirds(4);
    volatile double one = 1, three = 3;
    ExpectSideBySide(&pool, 4, [&](int piece) { thirds[static_cast<std::size_t>(piece)] = one / three; });
    const double expected = one / three;
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(thirds, std::vector<double>(4, expected));
  }
}

TEST(ThreadPool, AForkedProcessHasThreadsOfItsOwn) {
  if (NumProcessors() < 2) GTEST_SKIP() << "one processor: the process has one thread";
#ifdef UMBRA_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer has no threads after a fork";
#endif
  const auto side_by_side = [] {
    std::atomic<int> working{0};
    ParallelFor(2, [&](int) {
      ++working;
      Await([&] { return working == 2; });
    });
    return working == 2;
  };
  EXPECT_TRUE(side_by_side());
  const pid_t child = fork();
  if (child == 0) _exit(side_by_side() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// The process ends while a call is under way, and after its end other static objects call.
TEST(ThreadPoolDeathTest, AProcessMayEndAtAnyTime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static struct Last {
          ~Last() {
            ParallelFor(4, [](int) {});
          }
        } last;
        ParallelFor(4, [](int piece) {
          if (piece == 0) std::exit(0);
          std::this_thread::sleep_for(microseconds(2000));
        });
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace umbra::runtime

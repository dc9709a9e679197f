#include "runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <system_error>
#include <thread>

#include "runtime/cpu_info.h"

namespace umbra::runtime {

namespace {

using Clock = std::chrono::steady_clock;

// How long a thread without work, or one that waits for others, stays awake: at least, at most, and as a part of the
// time that it worked before.
constexpr Clock::duration kLeastAwake = std::chrono::microseconds(30), kMostAwake = std::chrono::microseconds(500);
constexpr int kAwakePart = 8;
Clock::duration AwakeAfter(Clock::duration work) { return std::clamp(work / kAwakePart, kLeastAwake, kMostAwake); }

// Brief calls of which one wakes a thread.
constexpr unsigned kBriefCalls = 16;

// Looks whether done(), for a while; at the clock not at once.
template <typename Done>
bool Watch(Clock::duration awake, const Done& done) {
  for (Clock::time_point until{};;) {
    for (int k = 0; k < 16; ++k) {
      if (done()) return true;
#if defined(__SSE2__)
      _mm_pause();
#endif
    }
    const Clock::time_point now = Clock::now();
    if (until == Clock::time_point{}) until = now + awake;
    if (now > until) return false;
  }
}

// Consecutive pieces, which who has them and who helps out take one by one.
struct Share {
  std::atomic<int> next{0};
  int end = 0;
  Share* following = nullptr;

  void Set(int first, int past) {
    next.store(first, std::memory_order_relaxed);
    end = past;
    following = nullptr;
  }
};

#if defined(__SSE2__)
unsigned int FloatingPointControl() { return _mm_getcsr(); }
void SetFloatingPointControl(unsigned int control) { _mm_setcsr(control); }
#else
unsigned int FloatingPointControl() { return 0; }
void SetFloatingPointControl(unsigned int) {}
#endif

}  // namespace

struct ThreadPool::Call {
  explicit Call(bool is_brief) : brief(is_brief) {}

  const bool brief;
  Share own;  // the caller's; those of its helpers follow
  Worker* helpers = nullptr;
  Worker** last = &helpers;
  int helping = 0;
  std::atomic<bool> failed{false};
  std::exception_ptr error;

  // Was there a piece to take?
  bool TakeOne(PieceBody body, Share* share) {
    if (share->next.load(std::memory_order_relaxed) >= share->end || failed.load(std::memory_order_relaxed))
      return false;
    const int piece = share->next.fetch_add(1, std::memory_order_relaxed);
    if (piece >= share->end) return false;
    try {
      body(piece);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
    return true;
  }

  // The pieces of `first`, then those of the shares that follow it and at last of those before it.
  void TakeAll(PieceBody body, Share* first) {
    for (Share* share = first; share != nullptr; share = share->following)
      while (TakeOne(body, share)) {}
    for (Share* share = &own; share != nullptr && share != first; share = share->following)
      while (TakeOne(body, share)) {}
  }
};

struct alignas(64) ThreadPool::Worker {
  enum Holder : std::uint32_t { kUnborn, kFree, kTaken };
  enum State : std::uint32_t { kPosted, kWorking, kDone };

  // In one cache line: what a worker looks at while it waits, and reads when it begins. It fetches no other from the
  // caller's processor first, and the caller writes to it at once, since it takes it from the worker's.
  std::atomic<std::uint32_t> state{kDone};
  unsigned int control = 0;
  bool brief = false;
  Share share;
  PieceBody body;
  Call* call = nullptr;  // none: to end

  // In another: what those that call look at. Who makes a worker of kUnborn or kFree kTaken has it alone, and gives it
  // back when none that it helps is at work.
  alignas(64) std::atomic<std::uint32_t> holder{kUnborn};
  std::atomic<bool> asleep{false};
  std::atomic<std::uint32_t> woken{0};  // how often
  Worker* next = nullptr;
  std::thread thread;
  cpu_set_t allowed;  // processors, but for the one that it keeps away from; negative: none yet
  int away = -1;

  static bool Move(std::atomic<std::uint32_t>* value, std::uint32_t from, std::uint32_t to) {
    return value->load(std::memory_order_relaxed) == from &&
           value->compare_exchange_strong(from, to, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  bool Take(Holder from) { return Move(&holder, from, kTaken); }

  void Post(Call* of, const PieceBody& what) {
    call = of;
    body = what;
    control = FloatingPointControl();
    brief = of != nullptr && of->brief;
    // One that falls asleep at this moment may miss a brief call, whose caller does its share then.
    if (brief) state.store(kPosted, std::memory_order_release);
    else state.store(kPosted);
    if (!asleep.load()) return;
    StayAway(sched_getcpu());
    ++woken;
    woken.notify_one();
  }

  // Keeps the worker from the caller's processor, if it may run on others: systems that know of no cache that
  // processors share start and wake a thread where the one runs that does so, and leave it there though others have
  // nothing to do.
  void StayAway(int processor) {
    if (processor == away ||
        (away < 0 && pthread_getaffinity_np(thread.native_handle(), sizeof allowed, &allowed) != 0))
      return;
    cpu_set_t others = allowed;
    CPU_CLR(static_cast<std::size_t>(processor), &others);
    if (CPU_COUNT(&others) > 0 && pthread_setaffinity_np(thread.native_handle(), sizeof others, &others) == 0)
      away = processor;
  }

  void AwaitEnd(Clock::duration awake) {
    const auto ended = [&] { return state.load(std::memory_order_acquire) != kWorking; };
    if (!Watch(awake, ended)) state.wait(kWorking);
  }

  // Until something is posted. Who is woken may come too late for that, but is awake for what follows.
  void Sleep() {
    const std::uint32_t before = woken.load();
    asleep.store(true);
    if (state.load() != kPosted) woken.wait(before);  // else who posted it may not have seen that this one sleeps
    asleep.store(false);
  }

  void Work() {
    for (Clock::duration awake = kLeastAwake;;) {
      const auto posted = [&] { return state.load(std::memory_order_relaxed) == kPosted; };
      while (!Watch(awake, posted)) Sleep();
      if (!Move(&state, kPosted, kWorking)) continue;
      if (call == nullptr) return;
      SetFloatingPointControl(control);
      if (brief) {  // who waits for this one helps it, if need be
        while (call->TakeOne(body, &share)) {}
        awake = kLeastAwake;
      } else {
        const Clock::time_point start = Clock::now();
        call->TakeAll(body, &share);
        awake = AwakeAfter(Clock::now() - start);
      }
      state.store(kDone);
      state.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int workers)
    : most_(std::max(workers, 0)),
      workers_(std::make_unique<Worker[]>(static_cast<std::size_t>(most_))) {}

ThreadPool::~ThreadPool() { Dismiss(); }

// Ends the threads that are not at work, and starts no more.
void ThreadPool::Dismiss() {
  for (int k = 0; k < most_; ++k) {
    Worker& worker = workers_[static_cast<std::size_t>(k)];
    if (worker.Take(Worker::kUnborn) || !worker.Take(Worker::kFree)) continue;
    worker.Post(nullptr, {});
    worker.thread.join();
  }
}

// In a process that was forked, which has none of them.
void ThreadPool::ForgetThreads() {
  for (int k = 0; k < most_; ++k) std::construct_at(&workers_[static_cast<std::size_t>(k)]);
}

ThreadPool& ThreadPool::OfProcess() {
  static ThreadPool* process_pool = nullptr;
  // Never destroyed: when the process ends, other threads may be in a call.
  static struct Process {
    Process() {
      process_pool = new ThreadPool(NumProcessors() - 1);
      pthread_atfork(nullptr, nullptr, [] { process_pool->ForgetThreads(); });
    }
    ~Process() { process_pool->Dismiss(); }
  } process;
  return *process_pool;
}

// Claims free workers for `call` until `wanted` help; the first of them, the others follow.
ThreadPool::Worker* ThreadPool::Enlist(int wanted, Call* call, bool brief) {
  Worker** const first = call->last;
  bool wake = !brief;
  for (int k = 0; k < most_ && call->helping < wanted; ++k) {
    Worker& worker = workers_[static_cast<std::size_t>(k)];
    if (!wake && worker.asleep.load(std::memory_order_relaxed)) {
      wake = without_help_.fetch_add(1, std::memory_order_relaxed) % kBriefCalls == kBriefCalls - 1;
      if (!wake) break;  // those that follow are mostly asleep, too
    }
    if (worker.Take(Worker::kUnborn)) {
      try {
        worker.thread = std::thread(&Worker::Work, &worker);
        pthread_setname_np(worker.thread.native_handle(), "umbra");
        worker.StayAway(sched_getcpu());
      } catch (const std::system_error&) {  // no more threads are to be had
        worker.holder.store(Worker::kUnborn, std::memory_order_release);
        break;
      }
    } else if (!worker.Take(Worker::kFree)) {
      continue;
    }
    worker.next = nullptr;
    *call->last = &worker;
    call->last = &worker.next;
    ++call->helping;
  }
  return *first;
}

void ThreadPool::ShareOut(int threads, int pieces, PieceBody body, bool brief) {
  const int wanted = std::min({threads, pieces, most_ + 1}) - 1;
  Call call(brief);
  if (wanted > 0) Enlist(wanted, &call, brief);
  if (wanted <= 0 || (brief && call.helping == 0)) {
    for (int piece = 0; piece < pieces; ++piece) body(piece);
    return;
  }
  const Clock::time_point start = brief ? Clock::time_point{} : Clock::now();
  const int shares = call.helping + 1;
  const auto first = [&](int share) { return static_cast<int>(std::int64_t{pieces} * share / shares); };
  call.own.Set(0, first(1));
  Share* before = &call.own;
  int share = 1;
  for (Worker* worker = call.helpers; worker != nullptr; worker = worker->next, ++share) {
    worker->share.Set(first(share), first(share + 1));
    before = before->following = &worker->share;
  }
  for (Worker* worker = call.helpers; worker != nullptr; worker = worker->next) worker->Post(&call, body);
  // Those that other calls have may be free later.
  while (!brief && call.helping < wanted && call.TakeOne(body, &call.own))
    for (Worker* worker = Enlist(wanted, &call, brief); worker != nullptr; worker = worker->next) {
      worker->share.Set(0, 0);
      worker->Post(&call, body);
    }
  call.TakeAll(body, &call.own);
  // None is free before all have ended: they look into each other's shares.
  const Clock::duration awake = brief ? kLeastAwake : AwakeAfter(Clock::now() - start);
  for (Worker* worker = call.helpers; worker != nullptr; worker = worker->next)
    if (!Worker::Move(&worker->state, Worker::kPosted, Worker::kDone)) worker->AwaitEnd(awake);
  for (Worker* worker = call.helpers; worker != nullptr;) {
    Worker* const next = worker->next;
    worker->holder.store(Worker::kFree, std::memory_order_release);
    worker = next;
  }
  if (call.error) std::rethrow_exception(call.error);
}

}  // namespace umbra::runtime

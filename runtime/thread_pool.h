// Threads that share out a call's work with the thread that calls.
#ifndef UMBRA_RUNTIME_THREAD_POOL_H_
#define UMBRA_RUNTIME_THREAD_POOL_H_

#include <atomic>
#include <memory>

#include "runtime/piece_body.h"

namespace umbra::runtime {

/// Threads that wait for work; one that has just done some stays awake for a while, since the next call mostly follows
/// at once and is often shorter than waking a thread takes. Each is started when it is first needed.
class ThreadPool {
 public:
  /// A pool of at most `workers` threads beside those that call.
  explicit ThreadPool(int workers);
  /// Ends its threads. No call may be under way.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The pool that all of the process share, with a thread for each further processor; a process that was forked has
  /// its own.
  static ThreadPool& OfProcess();

  /// Calls body(0) .. body(pieces - 1), each once, on at most `threads` threads, that of the caller among them; returns
  /// when all are done. Each thread has its share of consecutive pieces, the same from call to call where the same
  /// threads are free; one that is done with it helps out with those of the others, which may be held up or still
  /// asleep. All have the caller's rounding and treatment of denormals. After an exception, the first of which is
  /// thrown again, pieces that have not begun are left out. Calls may come from several threads at a time and from
  /// within pieces: a thread that waits takes up no work of another call. A `brief` call, shorter than waking a thread
  /// takes, has the help of those that are awake, which do their own pieces only; one in sixteen that find one asleep
  /// wakes it, for others that follow at once.
  void ShareOut(int threads, int pieces, PieceBody body, bool brief = false);

 private:
  struct Call;
  struct Worker;

  Worker* Enlist(int wanted, Call* call, bool brief);
  void Dismiss();
  void ForgetThreads();

  const int most_;
  const std::unique_ptr<Worker[]> workers_;
  std::atomic<unsigned> without_help_{0};  // brief calls that found a thread asleep
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_THREAD_POOL_H_

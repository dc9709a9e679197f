// What waits in streams of the CPU: the queue and the thread behind an asynchronous one, the statements of fused ones.
#ifndef UMBRA_CPU_STREAM_H_
#define UMBRA_CPU_STREAM_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace umbra::detail {

/// What the calling thread gave to fused streams and has not run; in umbra/statements.h. One for a program and its
/// libraries, even if they are compiled with hidden symbols.
class [[gnu::visibility("default")]] Waiting {
 public:
  virtual ~Waiting() = default;
  /// Runs it. If a statement fails, throws its error; what follows it is dropped. Who calls this or Finish has set
  /// of_thread to null.
  virtual void Run() = 0;
  /// Runs it; an error is for the next Run, or lost.
  virtual void Finish(bool keep_error) noexcept = 0;
  /// Null if nothing waits.
  static inline thread_local Waiting* of_thread = nullptr;
};

/// Who is about to read or write memory has what waits done first.
inline void RunWaiting() {
  if (Waiting::of_thread != nullptr) std::exchange(Waiting::of_thread, nullptr)->Run();
}
inline void FinishWaiting(bool keep_error) noexcept {
  if (Waiting::of_thread != nullptr) std::exchange(Waiting::of_thread, nullptr)->Finish(keep_error);
}

/// Work in order, on a thread of its own.
class WorkQueue {
 public:
  WorkQueue() : thread_([this] { Work(); }) {}
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  /// Finishes what was submitted; an error that nobody waited for is lost.
  ~WorkQueue() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
      wake_.notify_one();
    }
    thread_.join();
  }

  /// Runs `work` after all that was submitted before; at once if it comes from work of this queue.
  void Submit(std::function<void()> work) {
    if (Current() == this) {
      work();
      return;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
    ++unfinished_;
    wake_.notify_one();
  }
  /// Returns when all work is done; throws the first exception that came out of it, after which the queue
  /// begins anew. Work of the queue itself does not wait.
  void Wait() {
    if (Current() == this) return;
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [this] { return unfinished_ == 0; });
    if (const std::exception_ptr error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
  }
  bool Idle() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return unfinished_ == 0;
  }
  /// The queue whose work the calling thread runs, or none.
  static WorkQueue*& Current() {
    static thread_local WorkQueue* current = nullptr;
    return current;
  }

 private:
  void Work() {
    Current() = this;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ends_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      std::exception_ptr error = error_;  // what follows a failure would compute with what it left
      lock.unlock();
      try {
        if (error == nullptr) work();
        RunWaiting();
      } catch (...) {
        error = std::current_exception();
      }
      work = nullptr;
      lock.lock();
      error_ = std::move(error);
      if (--unfinished_ == 0) idle_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<std::function<void()>> queue_;
  std::size_t unfinished_ = 0;
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace umbra::detail

#endif  // UMBRA_CPU_STREAM_H_

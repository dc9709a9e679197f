// What waits in streams of the CPU: the queue and the thread behind an asynchronous one, the statements of fused ones.
#ifndef UMBRA_CPU_STREAM_H_
#define UMBRA_CPU_STREAM_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

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

/// A thread that gives to fused streams.
class [[gnu::visibility("default")]] Giver {
 public:
  virtual ~Giver() = default;
  /// Runs what it gave to any of them and has not run itself. Called by another thread. If a statement fails, throws
  /// its error, as does what the giver does next; what follows the statement is dropped.
  virtual void RunForAnother() = 0;
  std::atomic<bool> ended{false};  ///< has the thread?
  /// The calling thread; null if it has given nothing yet.
  static inline thread_local const Giver* of_thread = nullptr;
};

/// Who gave to a fused stream.
class Givers {
 public:
  /// Called by the giver's thread, while nobody can run what it gives. Null if other threads know it no more.
  void Note(const std::shared_ptr<Giver>& giver) {
    if (latest_.load(std::memory_order_relaxed) != giver.get()) Enter(giver);
  }
  /// Returns when what threads other than the calling one gave has run. Throws the first error.
  void RunOthers() {
    const void* const only = only_.load(std::memory_order_acquire);  // null: sees what was run
    if (only != nullptr && only != Giver::of_thread) RunAll();
  }
  /// The same; an error is lost, but for the thread that gave what failed.
  void FinishOthers() noexcept {
    try {
      RunOthers();
    } catch (...) {}
  }

 private:
  [[gnu::noinline, gnu::cold]] void RunAll() {
    const std::lock_guard<std::mutex> alone(running_);
    std::exception_ptr error;
    for (const auto& giver : TakeOthers()) {
      try {
        giver->RunForAnother();
      } catch (...) {
        if (error == nullptr) error = std::current_exception();
      }
    }
    EndRun();
    if (error != nullptr) std::rethrow_exception(error);
  }
  [[gnu::noinline, gnu::cold]] void Enter(const std::shared_ptr<Giver>& giver) {
    if (giver == nullptr) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    givers_.erase(std::remove_if(givers_.begin(), givers_.end(),
                                 [&](const auto& known) { return known == giver || known->ended; }),
                  givers_.end());
    givers_.push_back(giver);
    Remember(giver.get());
  }
  // They enter again with what they give next.
  std::vector<std::shared_ptr<Giver>> TakeOthers() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto others = std::partition(givers_.begin(), givers_.end(),
                                       [](const auto& giver) { return giver.get() == Giver::of_thread; });
    std::vector<std::shared_ptr<Giver>> taken(others, givers_.end());
    givers_.erase(others, givers_.end());
    runs_ = true;
    Remember(givers_.empty() ? nullptr : givers_.front().get());
    return taken;
  }
  void EndRun() {
    const std::lock_guard<std::mutex> lock(mutex_);
    runs_ = false;
    Remember(givers_.empty() ? nullptr : givers_.back().get());
  }
  void Remember(const Giver* latest) {
    latest_.store(latest, std::memory_order_relaxed);
    only_.store(runs_ || givers_.size() > 1 ? static_cast<const void*>(this) : latest, std::memory_order_release);
  }

  std::mutex running_;  // by one thread at a time; who waits meanwhile waits for that
  std::mutex mutex_;  // of all below
  bool runs_ = false;
  std::vector<std::shared_ptr<Giver>> givers_;
  std::atomic<const Giver*> latest_{nullptr};  // of those, or null
  std::atomic<const void*> only_{nullptr};  // the one giver; something that is none if there are several, or run now
};

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
  /// Returns when all work is done; an error is for the next Wait. Work of the queue itself does not wait.
  void Finish() {
    if (Current() == this) return;
    std::unique_lock<std::mutex> lock(mutex_);
    idle_.wait(lock, [this] { return unfinished_ == 0; });
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
      } catch (...) { error = std::current_exception(); }
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

/// The asynchronous streams that there are, by address, for who knows one of a stream that may be gone.
class [[gnu::visibility("default")]] AsynchronousStreams {
 public:
  static void Add(const void* stream, const std::shared_ptr<WorkQueue>& queue) {
    const std::lock_guard<std::mutex> lock(All().mutex);
    All().queues[stream] = queue;
  }
  static void Remove(const void* stream) {
    const std::lock_guard<std::mutex> lock(All().mutex);
    All().queues.erase(stream);
  }
  /// Returns when all work of the stream is done, if it is one of them; work of any does not wait.
  static void Finish(const void* stream) {
    if (WorkQueue::Current() != nullptr) return;
    std::shared_ptr<WorkQueue> queue;
    {
      const std::lock_guard<std::mutex> lock(All().mutex);
      const auto found = All().queues.find(stream);
      if (found != All().queues.end()) queue = found->second;
    }
    if (queue != nullptr) queue->Finish();
  }

 private:
  struct Streams {
    std::mutex mutex;
    std::map<const void*, std::shared_ptr<WorkQueue>> queues;
  };
  // Never destroyed: static containers may end later.
  static Streams& All() {
    static Streams& all = *new Streams;
    return all;
  }
};

}  // namespace umbra::detail

#endif  // UMBRA_CPU_STREAM_H_

#include "compiler/driver/background.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace umbra {

namespace {

class Worker {
 public:
  void Add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (ends_) return;
    queue_.push_back(std::move(work));
    if (thread_.joinable() && process_ != getpid()) thread_.detach();  // it stayed in the parent of a fork
    if (!thread_.joinable()) {
      process_ = getpid();
      thread_ = std::thread([this] { Work(); });
    }
    wake_.notify_one();
  }

  void Stop() {
    std::deque<std::function<void()>> dropped;
    std::thread thread;
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      dropped.swap(queue_);
      thread.swap(thread_);
      wake_.notify_one();
    }
    if (!thread.joinable()) return;
    if (process_ == getpid()) thread.join();
    else thread.detach();
  }

  const std::atomic<bool>& ends() const { return ends_; }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      if (queue_.empty()) {
        wake_.wait(lock);
        continue;
      }
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      StopAtExit();
      lock.lock();
    }
  }

  // Compilers keep static objects, which are destroyed in the reverse order of their making: what is
  // registered after the first compile runs before theirs are gone.
  static void StopAtExit();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  std::thread thread_;
  pid_t process_ = 0;
  std::atomic<bool> ends_{false};
};

// Never destroyed: static objects may compile to the end of the process.
Worker& TheWorker() {
  static Worker* const worker = new Worker;
  return *worker;
}

void Worker::StopAtExit() {
  [[maybe_unused]] static const int registered = std::atexit([] { TheWorker().Stop(); });
}

// What is local to the main thread goes before any static object does, even one that the first compile
// is making while the process ends.
struct EndOfMain {
  ~EndOfMain() {
    if (syscall(SYS_gettid) == getpid()) TheWorker().Stop();
  }
};
thread_local EndOfMain t_end_of_main;
[[gnu::used]] const EndOfMain* const g_made_by_the_main_thread = &t_end_of_main;

}  // namespace

void RunInBackground(std::function<void()> work) { TheWorker().Add(std::move(work)); }

const std::atomic<bool>& BackgroundEnds() { return TheWorker().ends(); }

}  // namespace umbra

// A mutex that one thread takes all the time, and others seldom.
#ifndef UMBRA_BIASED_MUTEX_H_
#define UMBRA_BIASED_MUTEX_H_

#include <atomic>
#include <mutex>

namespace umbra::detail {

/// Costs its owner two stores and a load; any other thread a system call, which orders the owner's memory for it.
class BiasedMutex {
 public:
  /// Where the system has no such call, the owner orders its memory by itself, at the price of an exchange.
  explicit BiasedMutex(bool system_orders = SystemOrders()) : system_orders_(system_orders) {}
  BiasedMutex(const BiasedMutex&) = delete;
  BiasedMutex& operator=(const BiasedMutex&) = delete;

  /// For the owner.
  void lock() {
    Hold();
    if (__builtin_expect(wanted_.load(std::memory_order_seq_cst), 0)) GiveWay();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

  /// Holds a mutex that another thread owns.
  class Outside {
   public:
    explicit Outside(BiasedMutex* mutex);
    ~Outside();
    Outside(const Outside&) = delete;
    Outside& operator=(const Outside&) = delete;

   private:
    BiasedMutex* mutex_;
  };

  /// Has the system a call that orders the memory of all threads of the process?
  static bool SystemOrders();

 private:
  void Hold() {
    if (system_orders_) {
      held_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      held_.exchange(true, std::memory_order_seq_cst);
    }
  }
  void GiveWay();

  const bool system_orders_;
  std::atomic<bool> held_{false}, wanted_{false};
  std::mutex others_;  // whoever wants it, or holds it, from outside
};

}  // namespace umbra::detail

#endif  // UMBRA_BIASED_MUTEX_H_

#include "umbra/biased_mutex.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace umbra::detail {

bool BiasedMutex::SystemOrders() {
  static const bool orders = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return orders;
}

// Who wants it from outside comes first.
void BiasedMutex::GiveWay() {
  do {
    unlock();
    const std::lock_guard<std::mutex> after_others(others_);
    Hold();
  } while (wanted_.load(std::memory_order_seq_cst));
}

// Whatever the owner did before the barrier is seen behind it; whatever it does later sees that the mutex is wanted. The
// owner tells nobody that it is done, so that it need not ask who waits: mostly it is at once.
BiasedMutex::Outside::Outside(BiasedMutex* mutex) : mutex_(mutex) {
  mutex->others_.lock();
  mutex->wanted_.store(true, std::memory_order_seq_cst);
  if (mutex->system_orders_) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  constexpr int kSoon = 64;  // turns
  for (int turn = 0; mutex->held_.load(std::memory_order_seq_cst); ++turn) {
    if (turn < kSoon) std::this_thread::yield();
    else std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

BiasedMutex::Outside::~Outside() {
  mutex_->wanted_.store(false, std::memory_order_release);
  mutex_->others_.unlock();
}

}  // namespace umbra::detail

#include "umbra/biased_mutex.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "umbra/error.h"

namespace umbra::detail {

namespace {

bool Succeeds(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

// Whatever any thread did before this, the caller sees from now on; whatever it does later sees what the caller did
// before.
void OrderAll() {
  if (Succeeds(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  // A process that was forked may have to say anew that it will.
  Ensure(Succeeds(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && Succeeds(MEMBARRIER_CMD_PRIVATE_EXPEDITED),
         "membarrier fails, which did not before");
}

}  // namespace

bool BiasedMutex::SystemOrders() {
  static const bool orders = Succeeds(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
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

// The owner tells nobody that it is done, so that it need not ask who waits: mostly it is at once.
BiasedMutex::Outside::Outside(BiasedMutex* mutex) : mutex_(mutex) {
  std::unique_lock<std::mutex> others(mutex->others_);
  mutex->wanted_.store(true, std::memory_order_seq_cst);
  try {
    if (mutex->system_orders_) OrderAll();
  } catch (...) {
    mutex->wanted_.store(false, std::memory_order_release);
    throw;
  }
  others.release();  // by the destructor
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

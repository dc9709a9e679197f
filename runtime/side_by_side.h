// Jobs that take long enough for threads of their own, such as compiles.
#ifndef UMBRA_RUNTIME_SIDE_BY_SIDE_H_
#define UMBRA_RUNTIME_SIDE_BY_SIDE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/cpu_info.h"

namespace umbra::runtime {

/// Calls `job(k)` for each k below `count`, on as many threads as there are processors: threads of their own, as one
/// of a pool might meanwhile take up work that waits for this. If some throw, the others that have not begun are left
/// out, and one of the exceptions is thrown on.
template <typename Job>
void SideBySide(std::size_t count, const Job& job) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (std::size_t k; (k = next++) < count;) job(k);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (error == nullptr) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    const auto threads = std::min(count, static_cast<std::size_t>(NumProcessors()));
    try {
      while (helpers.size() + 1 < threads) helpers.emplace_back(work);
    } catch (const std::system_error&) {  // fewer threads do
    }
    work();
  }
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_SIDE_BY_SIDE_H_

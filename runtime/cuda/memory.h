// Memory of one GPU: a pool of the driver, which reuses memory in the order of streams, counted and bounded.
#ifndef UMBRA_RUNTIME_CUDA_MEMORY_H_
#define UMBRA_RUNTIME_CUDA_MEMORY_H_

#include <cstddef>
#include <mutex>
#include <set>

#include "runtime/cuda/gpu.h"

namespace umbra::cuda {

class DeviceMemory {
 public:
  /// The GPU's context is current.
  explicit DeviceMemory(Gpu& gpu);

  /// The stream in which memory is given back that belongs to no other stream's order.
  StreamHandle stream() const { return stream_; }

  /// Memory for what comes next in `stream`.
  void* Take(std::size_t bytes, StreamHandle stream);
  /// Memory that any stream may use at once. Of what was given back it has that whose streams have come so far; none is
  /// waited for.
  void* TakeForAll(std::size_t bytes);
  /// Gives memory of Take back, in the order of `stream`.
  void GiveBack(void* memory, StreamHandle stream) noexcept;

  /// Calls `attempt`; if the device has too little memory, gives back what is kept for reuse and calls it again.
  template <typename Attempt>
  Result UnderPressure(const Attempt& attempt, Result too_little = kOutOfMemory) {
    const Result result = attempt();
    if (result != too_little) return result;
    Reclaim();
    return attempt();
  }
  /// Lets another device reach this memory, if the machine can do that.
  void ShareWith(Gpu& other);
  void Trim();
  void SetLimit(std::size_t bytes);
  MemoryStatistics Statistics();

 private:
  void Reclaim();

  Gpu& gpu_;
  MemoryPool pool_ = nullptr;
  StreamHandle stream_ = nullptr, idle_ = nullptr;  // the idle one has no work and waits for no other
  std::mutex mutex_;  // of what follows
  MemoryStatistics counts_;
  std::set<int> shared_with_;
};

}  // namespace umbra::cuda

#endif  // UMBRA_RUNTIME_CUDA_MEMORY_H_

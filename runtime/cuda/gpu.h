// One GPU of the process: its primary context, which other libraries share, and whether it still works.
#ifndef UMBRA_RUNTIME_CUDA_GPU_H_
#define UMBRA_RUNTIME_CUDA_GPU_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/library.h"
#include "umbra/cuda.h"
#include "umbra/error.h"

namespace umbra::cuda {

class DeviceMemory;
struct StreamState;

class Gpu {
 public:
  static constexpr std::size_t kMost = 64;  ///< GPUs of a process

  explicit Gpu(int ordinal);

  /// GPU `ordinal`, opened at the first call. Throws umbra::Error if the machine does not have it.
  static Gpu& At(int ordinal);
  /// The calling thread's.
  static Gpu& Current() { return At(library::CurrentDevice()); }

  const int ordinal;
  const Driver& driver;
  Device handle = 0;
  Context context = nullptr;
  DeviceProperties properties;
  std::shared_ptr<DeviceMemory> memory;
  std::atomic<int> captures{0};  ///< of its streams that go on
  std::atomic<bool> null_stream_used{false};  ///< by work that nobody has waited for; set once it is given

  /// The stream that waits for all others.
  const std::shared_ptr<StreamState>& NullStream() const { return null_stream_; }

  /// Throws umbra::Error if an earlier error has made the device unusable: the whole story the first time,
  /// a short reminder from then on. No call of the driver is made that could hang.
  void RequireWorking();
  /// Whether it has been found unusable.
  bool lost() const { return lost_.load(std::memory_order_acquire); }

  /// Throws umbra::Error unless `result` is success: what was done, in words, and what the driver says.
  template <typename... Parts>
  void Check(Result result, const char* function, const Parts&... doing) {
    if (result != kSuccess) Fail(result, function, detail::Concat(doing...));
  }
  [[noreturn]] void Fail(Result result, const char* function, const std::string& doing);
  /// Notes a failure where nothing can be thrown; an error that ends the device is reported by the next call.
  void Note(Result result, const char* function, const char* doing) noexcept;

  /// The kernel launched last, which is the first suspect of an error found later. Names live forever.
  std::atomic<const std::string*> last_kernel{nullptr};

 private:
  void Lose(Result result, const char* function, const std::string& doing);

  std::shared_ptr<StreamState> null_stream_;
  std::atomic<bool> lost_{false};
  std::mutex mutex_;  // of what follows
  std::string story_, reminder_;
  bool told_ = false;
};

/// While it lives, what the thread finds out about a device that has failed counts as not told: it runs in destructors,
/// which have nobody to tell.
class Quietly {
 public:
  Quietly();
  ~Quietly();
  Quietly(const Quietly&) = delete;
  Quietly& operator=(const Quietly&) = delete;
};

/// Makes a GPU's context current for a scope. The context of another library is put back at the end.
class Using {
 public:
  explicit Using(Gpu& gpu);
  ~Using();
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;

 private:
  Gpu& gpu_;
  Context before_ = nullptr;
};

inline DevicePointer Address(const void* memory) { return reinterpret_cast<DevicePointer>(memory); }

}  // namespace umbra::cuda

#endif  // UMBRA_RUNTIME_CUDA_GPU_H_

// Pinned memory through which a stream copies from ordinary host memory, which the device cannot read by itself.
#ifndef UMBRA_RUNTIME_CUDA_STAGING_H_
#define UMBRA_RUNTIME_CUDA_STAGING_H_

#include <array>
#include <cstddef>
#include <mutex>

#include "runtime/cuda/gpu.h"

namespace umbra::cuda {

/// A ring of blocks, which are made when they are first needed. The GPU's context is current in every call.
class Staging {
 public:
  static constexpr std::size_t kBlockBytes = std::size_t{4} << 20;

  explicit Staging(Gpu& gpu) : gpu_(gpu) {}
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  std::mutex mutex;  ///< held from Place to the copy that it is for

  /// Room for `bytes`, at most kBlockBytes, which the next copy in `stream` reads. Waits only if the whole ring is on
  /// its way.
  char* Place(std::size_t bytes, StreamHandle stream);
  /// Gives the blocks back when all copies are done.
  void Clear();

 private:
  struct Block {
    char* memory = nullptr;
    void* done = nullptr;  // an event behind the last copy from it
    bool on_its_way = false;
  };
  Gpu& gpu_;
  std::array<Block, 4> blocks_;
  std::size_t current_ = 0, used_ = 0;
  StreamHandle stream_ = nullptr;
};

}  // namespace umbra::cuda

#endif  // UMBRA_RUNTIME_CUDA_STAGING_H_

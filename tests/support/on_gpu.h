// What tests on a GPU share: which GPU, and operands in its memory. The GPU is the emulator behind the stand-ins for
// NVIDIA's libraries, unless the environment asks for a real one.
#ifndef UMBRA_TESTS_SUPPORT_ON_GPU_H_
#define UMBRA_TESTS_SUPPORT_ON_GPU_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/drawn.h"
#include "umbra/compile.h"
#include "umbra/cuda.h"
#include "umbra/device.h"
#include "umbra/graph.h"

namespace umbra::on_gpu {

/// Makes this process work with the stand-ins, before anything opens a library; with UMBRA_TEST_GPU=1 in the
/// environment it works with the machine's GPU.
inline int UseStandIns() {
  if (std::getenv("UMBRA_TEST_GPU") != nullptr) return 0;
  return setenv("UMBRA_CUDA_DRIVER", UMBRA_CUDA_STAND_IN, 1) + setenv("UMBRA_CUBLASLT", UMBRA_CUBLAS_STAND_IN, 1) +
         setenv("UMBRA_NVRTC", UMBRA_NVRTC_STAND_IN, 1) + setenv("STAND_IN_DEFERS", "1", 1);
}

/// A test on the GPU: it leaves no memory behind.
class Test : public ::testing::Test {
 protected:
  void SetUp() override { SetDevice<gpu>(0); }
  void TearDown() override {
    cuda::DestroyBlasHandle(nullptr);
    EXPECT_EQ(cuda::GetMemoryStatistics(0).in_use, 0u);
  }
};

inline CompileOptions Options() {
  CompileOptions options;
  options.target = "cuda";
  return options;
}

/// A copy of a host tensor, slack included, in device memory: aligned to 16 bytes as there.
class There {
 public:
  explicit There(const drawn::Tensor& host) : ref(host.ref), bytes_(host.bytes.size()) {
    std::size_t pitch = 0;
    memory_ = cuda::Allocate(bytes_ + 16, 1, &pitch);
    begin_ = static_cast<char*>(memory_) + reinterpret_cast<std::uintptr_t>(host.bytes.data()) % 16;
    ref.data = begin_ + (static_cast<const char*>(host.ref.data) - host.bytes.data());
    cuda::Copy(cuda::CopyKind::kHostToDevice, begin_, bytes_, host.bytes.data(), bytes_, bytes_, 1, nullptr);
  }
  ~There() { cuda::Free(memory_); }
  There(const There&) = delete;
  There& operator=(const There&) = delete;

  void CopyBack(drawn::Tensor* host) const {
    cuda::Copy(cuda::CopyKind::kDeviceToHost, host->bytes.data(), bytes_, begin_, bytes_, bytes_, 1, nullptr);
  }

  runtime::TensorRef ref;

 private:
  std::size_t bytes_;
  void* memory_ = nullptr;
  char* begin_ = nullptr;
};

}  // namespace umbra::on_gpu

#endif  // UMBRA_TESTS_SUPPORT_ON_GPU_H_

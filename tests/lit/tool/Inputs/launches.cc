// A program that calls what an emitted .cu launches, where there may be no GPU.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdio>

extern "C" cudaError_t softmax_launch(const float* x, float* y, long long n, long long m, float scale, cudaStream_t stream);
extern "C" cudaError_t column_sums_launch(const __half* x, float* s, long long n, long long m, cudaStream_t stream);

int main() {
  const cudaError_t refused = softmax_launch(nullptr, nullptr, 4, 3, 1, nullptr), empty = column_sums_launch(nullptr, nullptr, 4, 0, nullptr);
  std::printf("%s, %s\n", cudaGetErrorName(refused), cudaGetErrorName(empty));
  return refused == cudaErrorInvalidValue && empty == cudaSuccess ? 0 : 1;
}

#include <dlfcn.h>
#include <immintrin.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "runtime/blas.h"
#include "suite.h"

namespace bench {

namespace {

void StreamTriad(const float* a, const float* b, const float* c, float* out, Size begin, Size end) {
#if defined(__AVX512F__)
  const __m512 s = _mm512_set1_ps(0.5f);
  for (Size i = begin; i < end; i += 16)
    _mm512_stream_ps(out + i, _mm512_fmadd_ps(_mm512_loadu_ps(c + i), s,
                                              _mm512_mul_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i))));
#else
  const __m128 s = _mm_set1_ps(0.5f);
  for (Size i = begin; i < end; i += 4)
    _mm_stream_ps(out + i, _mm_add_ps(_mm_mul_ps(_mm_loadu_ps(c + i), s),
                                      _mm_mul_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i))));
#endif
  _mm_sfence();
}

}  // namespace

void BareGemm(const Dense& d) {
  constexpr int kRowMajor = 101, kNoTranspose = 111;
  using Gemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  static const auto gemm = reinterpret_cast<Gemm>(
      dlsym(dlopen(umbra::runtime::BlasName().c_str(), RTLD_NOW), "cblas_sgemm"));
  const auto m = static_cast<int>(d.rows), k = static_cast<int>(d.inner), n = static_cast<int>(d.columns);
  gemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1, d.x, k, d.w, n, 0, d.out, n);
}

double TriadBandwidth(int threads) {
  constexpr Size n = Size{1} << 24;
  float* memory[4];
  for (float*& p : memory) {
    p = static_cast<float*>(std::aligned_alloc(64, n * sizeof(float)));
    for (Size i = 0; i < n; ++i) p[i] = 1;
  }
  double best = 1e30;
  for (int repeat = 0; repeat < 9; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t)
      others.emplace_back([&, t] {
        StreamTriad(memory[0], memory[1], memory[2], memory[3], n / threads * t, n / threads * (t + 1));
      });
    StreamTriad(memory[0], memory[1], memory[2], memory[3], 0, n / threads);
    for (std::thread& other : others) other.join();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    best = time.count() < best ? time.count() : best;
  }
  for (float* p : memory) std::free(p);
  return 4.0 * n * sizeof(float) / best * 1e-9;
}

}  // namespace bench

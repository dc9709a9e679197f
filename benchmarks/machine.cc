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

#if defined(__AVX512F__)
using Packet = __m512;
Packet Load(const float* p) { return _mm512_loadu_ps(p); }
void Stream(float* p, Packet x) { _mm512_stream_ps(p, x); }
#else
using Packet = __m128;
Packet Load(const float* p) { return _mm_loadu_ps(p); }
void Stream(float* p, Packet x) { _mm_stream_ps(p, x); }
#endif
constexpr Size kWidth = sizeof(Packet) / sizeof(float);

// What is done with the elements [begin, end) of a, b, c and out.
using Pass = void (*)(const float* a, const float* b, const float* c, float* out, Size begin, Size end);

void Read(const float* a, const float*, const float*, float*, Size begin, Size end) {
  Packet sum[4] = {};
  for (Size i = begin; i < end; i += 4 * kWidth)
    for (Size k = 0; k < 4; ++k) sum[k] += Load(a + i + k * kWidth);
  volatile float keep = (sum[0] + sum[1] + sum[2] + sum[3])[0];
  static_cast<void>(keep);
}

void StreamTriad(const float* a, const float* b, const float* c, float* out, Size begin, Size end) {
  for (Size i = begin; i < end; i += kWidth) Stream(out + i, Load(a + i) * Load(b + i) + Load(c + i) * 0.5f);
}

void Copy(const float* a, const float*, const float*, float* out, Size begin, Size end) {
  for (Size i = begin; i < end; i += kWidth) Stream(out + i, Load(a + i));
}

void Write(const float*, const float*, const float*, float* out, Size begin, Size end) {
  for (Size i = begin; i < end; i += kWidth) Stream(out + i, Packet{} + 1.0f);
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

Bandwidth MeasureBandwidth(int threads) {
  constexpr Size n = Size{1} << 24;
  float* memory[4];
  for (float*& p : memory) {
    p = static_cast<float*>(std::aligned_alloc(64, n * sizeof(float)));
    for (Size i = 0; i < n; ++i) p[i] = 1;
  }
  const auto measure = [&](Pass pass, int streams) {
    double best = 1e30;
    for (int repeat = 0; repeat < 9; ++repeat) {
      const auto start = std::chrono::steady_clock::now();
      const auto part = [&](int t) {
        pass(memory[0], memory[1], memory[2], memory[3], n / threads * t, n / threads * (t + 1));
        _mm_sfence();
      };
      std::vector<std::thread> others;
      for (int t = 1; t < threads; ++t) others.emplace_back(part, t);
      part(0);
      for (std::thread& other : others) other.join();
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      best = time.count() < best ? time.count() : best;
    }
    return streams * static_cast<double>(n * sizeof(float)) / best * 1e-9;
  };
  const Bandwidth bandwidth{measure(Read, 1), measure(StreamTriad, 4), measure(Copy, 2), measure(Write, 1)};
  for (float* p : memory) std::free(p);
  return bandwidth;
}

}  // namespace bench

#include <dlfcn.h>
#include <immintrin.h>

#include <thread>
#include <vector>

#include "runtime/blas.h"
#include "suite.h"

namespace bench {

namespace {

#if defined(__AVX512F__)
using Packet = __m512;
Packet Load(const float* p) { return _mm512_loadu_ps(p); }
void StoreStream(float* p, Packet x) { _mm512_stream_ps(p, x); }
#else
using Packet = __m128;
Packet Load(const float* p) { return _mm_loadu_ps(p); }
void StoreStream(float* p, Packet x) { _mm_stream_ps(p, x); }
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
  for (Size i = begin; i < end; i += kWidth) StoreStream(out + i, Load(a + i) * Load(b + i) + Load(c + i) * 0.5f);
}

void Copy(const float* a, const float*, const float*, float* out, Size begin, Size end) {
  for (Size i = begin; i < end; i += kWidth) StoreStream(out + i, Load(a + i));
}

void Write(const float*, const float*, const float*, float* out, Size begin, Size end) {
  for (Size i = begin; i < end; i += kWidth) StoreStream(out + i, Packet{} + 1.0f);
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

void Stream(Mix mix, const Streams& s, int threads) {
  static constexpr Pass kPasses[] = {Read, StreamTriad, Copy, Write};
  const auto part = [&](int t) {
    kPasses[static_cast<int>(mix)](s.a, s.b, s.c, s.out, s.n / threads * t, s.n / threads * (t + 1));
    _mm_sfence();
  };
  std::vector<std::jthread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(part, t);
  part(0);
}

}  // namespace bench

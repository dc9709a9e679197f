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

enum Transposition { kNone = 111, kTransposed = 112 };

void Gemm(Transposition of_b, Size m, Size n, Size k, float alpha, const float* a, const float* b, float* c) {
  constexpr int kRowMajor = 101;
  using Function =
      void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  static const auto gemm =
      reinterpret_cast<Function>(dlsym(dlopen(umbra::runtime::BlasName().c_str(), RTLD_NOW), "cblas_sgemm"));
  const auto rows = static_cast<int>(m), columns = static_cast<int>(n), inner = static_cast<int>(k);
  gemm(kRowMajor, kNone, of_b, rows, columns, inner, alpha, a, inner, b, of_b == kNone ? columns : inner, 0, c,
       columns);
}

}  // namespace

void BareGemm(const Dense& d) { Gemm(kNone, d.rows, d.columns, d.inner, 1, d.x, d.w, d.out); }

void BareGemm(const Scores& d) {
  for (Size b = 0; b < d.batch; ++b)
    Gemm(kTransposed, d.rows, d.columns, d.inner, d.scale, d.q + b * d.rows * d.inner, d.k + b * d.columns * d.inner,
         d.out + b * d.rows * d.columns);
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

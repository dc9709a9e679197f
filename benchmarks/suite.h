// The workloads of the suite, their operands, and the peers that run them.
#ifndef UMBRA_BENCHMARKS_SUITE_H_
#define UMBRA_BENCHMARKS_SUITE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace bench {

using Size = std::int64_t;

struct Triad {  // out = a * b + c * s
  Size n;
  const float *a, *b, *c;
  float s;
  float* out;
};

struct Gelu {  // out = gelu(a * b + bias), bias along rows
  Size rows, columns;
  const float *a, *b, *bias;
  float* out;
};

struct Rows {  // a function of every row
  Size rows, columns;
  const float* x;
  float* out;
};
struct Softmax : Rows {};
struct ShortSoftmax : Rows {};  // the same of rows of a few elements
struct LayerNorm : Rows {};
struct LogSumExp : Rows {};  // one result a row

struct SoftmaxGradient {  // of the result y and its gradient g
  Size rows, columns;
  const float *y, *g;
  float* out;
};

struct LayerNormGradient {  // of x, the gradient g of the result, and every row's mean and variance
  Size rows, columns;
  const float *x, *g, *mean, *variance;
  float* out;
};

struct Channels {  // mean and variance of every channel of an NCHW tensor
  Size n, c, hw;
  const float* x;
  float *mean, *variance;
  Size all = c;  // channels of the tensor
};

struct Adam {  // one step, in place
  Size n;
  float *p, *m, *v;
  const float* g;
  float rate, beta1, beta2, epsilon;
};

struct AdamSteps {  // one of every tensor of a model, at the same rates
  std::vector<Adam> of;
};

struct Options {  // Black-Scholes price of a call
  Size n;
  const float *spot, *strike, *time;
  float rate, volatility;
  float* call;
};

struct Dense {  // out = relu(dot(x, w) + bias)
  Size rows, inner, columns;
  const float *x, *w, *bias;
  float* out;
};

struct Scores {  // of attention: out[b] = scale * dot(q[b], transpose(k[b]))
  Size batch, rows, inner, columns;
  const float *q, *k;
  float scale;
  float* out;
};

struct Transpose {  // out = transpose(a) * 2 + b
  Size n;
  const float *a, *b;
  float* out;
  Size rows = n;  // of the result
};

struct Patches {  // 3x3 patches of an NCHW tensor as columns: [c 9, n (h - 2) (w - 2)]
  Size n, c, h, w;
  const float* x;
  float* out;
  Size all = c;  // channels of the tensor
};

struct MaxPool {  // 2x2 windows of an NCHW tensor of even h and w, next to each other
  Size n, c, h, w;
  const float* x;
  float* out;
};

struct Unpool {  // the gradient of MaxPool from its input, its result and that one's gradient
  Size n, c, h, w;
  const float *x, *pooled, *g;
  float* out;
};

struct Planes {  // out[c][i] = x[i][c] * scale[c]: bytes of pixels as planes of floats
  Size n;
  static constexpr Size kChannels = 3;
  const std::uint8_t* x;
  const float* scale;
  float* out;
  Size all = n;  // pixels of a plane
};

struct Overlapping {  // the gradient of the maximum of 3x3 windows by steps of 2
  Size n, c, h, w;
  const float *x, *pooled, *g;  // the pooled ones [n, c, Windows(h), Windows(w)]
  float* out;
  static Size Windows(Size extent) { return (extent - 3) / 2 + 1; }
};

struct Opaque {  // out[i] = x[i] backwards, alpha[i]: three channels in another order, and a fourth
  Size n;
  const float *x, *alpha;
  float* out;
};

struct ComplexProduct {  // out = a * b, n complex numbers
  Size n;
  const float *a, *b;
  float* out;
};

struct Concat {  // four matrices side by side
  Size rows, columns;
  const float* x[4];
  float* out;
};

struct Take {  // row index[i] of x for every i
  Size count, rows, columns;
  const float *index, *x;
  float* out;
};

struct Mixed {  // out = a * b + c; a and c are f16
  Size n;
  const std::uint16_t* a;
  const float* b;
  const std::uint16_t* c;
  float* out;
};

struct Saxpy8 {  // out = x * s + y, which wraps around
  Size n;
  const std::int8_t *x, *y;
  int s;
  std::int8_t* out;
};

struct Quantized {  // out = dot(x, w * scale): weights of a byte, a scale for each column
  Size rows, inner, columns;
  const float* x;
  const std::int8_t* w;
  const float* scale;
  float* out;
  Size all = columns;  // of the matrices
};

struct Sum500 {  // out = x[0] + ... + x[499]
  static constexpr int kInputs = 500;
  Size n;
  const float* const* x;
  float* out;
};

/// What a peer that has no function for a workload says.
struct Absent {};

/// A workload that was compiled, with its operands.
using Prepared = std::function<void()>;

/// A peer whose functions `Run` do the work (void), or prepare it (Prepared).
#define BENCH_PEER(peer, result) \
  namespace peer {               \
  using Result = result;         \
  template <typename Workload>   \
  Absent Run(const Workload&) {  \
    return {};                   \
  }                              \
  }
#define BENCH_RUNS(peer, workload) \
  namespace peer {                 \
  Result Run(const workload&);     \
  }
#define BENCH_RUNS_CORE(peer) \
  BENCH_RUNS(peer, Triad)     \
  BENCH_RUNS(peer, Gelu)      \
  BENCH_RUNS(peer, Softmax)   \
  BENCH_RUNS(peer, LayerNorm) \
  BENCH_RUNS(peer, Channels) BENCH_RUNS(peer, Adam) BENCH_RUNS(peer, Options) BENCH_RUNS(peer, Transpose)
#define BENCH_RUNS_ROWS(peer) \
  BENCH_RUNS(peer, LogSumExp) BENCH_RUNS(peer, SoftmaxGradient) BENCH_RUNS(peer, LayerNormGradient)
#define BENCH_RUNS_MAPS(peer) \
  BENCH_RUNS(peer, Patches)   \
  BENCH_RUNS(peer, MaxPool) BENCH_RUNS(peer, Unpool) BENCH_RUNS(peer, Concat) BENCH_RUNS(peer, Take)
#define BENCH_RUNS_PERIODS(peer) BENCH_RUNS(peer, Overlapping) BENCH_RUNS(peer, Opaque) BENCH_RUNS(peer, ComplexProduct)
#define BENCH_RUNS_TYPES(peer) \
  BENCH_RUNS(peer, Mixed)      \
  BENCH_RUNS(peer, Saxpy8) BENCH_RUNS(peer, Sum500) BENCH_RUNS(peer, Planes) BENCH_RUNS(peer, Quantized)
#define BENCH_RUNS_ALL(peer) \
  BENCH_RUNS_CORE(peer)      \
  BENCH_RUNS(peer, Dense)    \
  BENCH_RUNS(peer, Scores) BENCH_RUNS_ROWS(peer) BENCH_RUNS_MAPS(peer) BENCH_RUNS_PERIODS(peer) BENCH_RUNS_TYPES(peer)

BENCH_PEER(hand, void)
BENCH_RUNS_ALL(hand)
BENCH_PEER(umbra_jit, Prepared)
BENCH_RUNS_ALL(umbra_jit)
BENCH_PEER(umbra_fast, Prepared)
BENCH_RUNS(umbra_fast, Gelu)
BENCH_RUNS(umbra_fast, Softmax)
BENCH_RUNS(umbra_fast, LayerNorm)
BENCH_RUNS(umbra_fast, Channels)
BENCH_RUNS(umbra_fast, Options)
BENCH_RUNS_ROWS(umbra_fast)
BENCH_PEER(umbra_eager, void)
BENCH_RUNS_CORE(umbra_eager)
BENCH_RUNS(umbra_eager, Dense)
BENCH_RUNS_ROWS(umbra_eager)
BENCH_RUNS_MAPS(umbra_eager)
BENCH_RUNS_PERIODS(umbra_eager)
BENCH_RUNS(umbra_eager, Mixed)
BENCH_RUNS(umbra_eager, Saxpy8)
BENCH_PEER(eigen, void)
BENCH_RUNS_CORE(eigen)
BENCH_RUNS(eigen, Dense)
BENCH_RUNS(eigen, Scores)
BENCH_RUNS_ROWS(eigen)
BENCH_RUNS_MAPS(eigen)
BENCH_RUNS_PERIODS(eigen)
BENCH_RUNS(eigen, Mixed)
BENCH_RUNS(eigen, Saxpy8)
BENCH_RUNS(eigen, Planes)
BENCH_RUNS(eigen, Quantized)
BENCH_PEER(xtensor, void)
BENCH_RUNS_CORE(xtensor)
BENCH_RUNS(xtensor, Dense)
BENCH_RUNS_ROWS(xtensor)
BENCH_RUNS(xtensor, Concat)
BENCH_RUNS(xtensor, Take)
BENCH_RUNS(xtensor, Opaque)
BENCH_RUNS(xtensor, ComplexProduct)
BENCH_RUNS(xtensor, Saxpy8)
BENCH_RUNS(xtensor, Planes)
#ifdef BENCH_HALIDE
BENCH_PEER(halide, void)
BENCH_RUNS_CORE(halide)
BENCH_RUNS_ROWS(halide)
BENCH_RUNS_MAPS(halide)
BENCH_RUNS(halide, Mixed)
BENCH_RUNS(halide, Saxpy8)
#endif
#ifdef BENCH_ONEDNN
BENCH_PEER(onednn, void)
BENCH_RUNS(onednn, Gelu)
BENCH_RUNS(onednn, Softmax)
BENCH_RUNS(onednn, SoftmaxGradient)
BENCH_RUNS(onednn, LayerNorm)
BENCH_RUNS(onednn, LayerNormGradient)
BENCH_RUNS(onednn, Dense)
BENCH_RUNS(onednn, Scores)
BENCH_RUNS(onednn, MaxPool)
BENCH_RUNS(onednn, Unpool)
BENCH_RUNS(onednn, Concat)
#endif
// Peers that take rows of any length; Halide's schedule does not.
#define BENCH_RUNS_SHORT(peer)                                         \
  namespace peer {                                                     \
  inline Result Run(const ShortSoftmax& d) { return Run(Softmax{d}); } \
  }
BENCH_RUNS_SHORT(hand)
BENCH_RUNS_SHORT(umbra_jit)
BENCH_RUNS_SHORT(umbra_fast)
BENCH_RUNS_SHORT(umbra_eager)
BENCH_RUNS_SHORT(eigen)
BENCH_RUNS_SHORT(xtensor)
#ifdef BENCH_ONEDNN
BENCH_RUNS_SHORT(onednn)
#endif
namespace umbra_jit {
/// Threads that the compiled kernels may use from now on.
void SetThreads(int threads);
}  // namespace umbra_jit

/// out = x . w by the BLAS that Umbra uses, called directly.
void BareGemm(const Dense& d);
void BareGemm(const Scores& d);

/// What a pass over arrays far larger than the caches does: reads one; reads three and writes one; reads one and writes
/// one; writes one.
enum class Mix { kRead, kTriad, kCopy, kWrite };
struct Streams {
  Size n;  ///< a multiple of 64 for each thread
  const float *a, *b, *c;
  float* out;
};
/// A pass as fast as the machine allows; what is written goes past the caches.
void Stream(Mix mix, const Streams& s, int threads);

}  // namespace bench

#endif  // UMBRA_BENCHMARKS_SUITE_H_

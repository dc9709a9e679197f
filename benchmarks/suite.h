// The workloads of the suite, their operands, and the peers that run them.
#ifndef UMBRA_BENCHMARKS_SUITE_H_
#define UMBRA_BENCHMARKS_SUITE_H_

#include <cstddef>
#include <cstdint>

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

struct Rows {  // softmax and layernorm of every row
  Size rows, columns;
  const float* x;
  float* out;
};

struct Channels {  // mean and variance of every channel of an NCHW tensor
  Size n, c, hw;
  const float* x;
  float *mean, *variance;
};

struct Adam {  // one step, in place
  Size n;
  float *p, *m, *v;
  const float* g;
  float rate, beta1, beta2, epsilon;
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

struct Transpose {  // out = transpose(a) * 2 + b
  Size n;
  const float *a, *b;
  float* out;
};

#define BENCH_DECLARE_PEER(peer)      \
  namespace peer {                    \
  void Run(const Triad&);             \
  void Run(const Gelu&);              \
  void Softmax(const Rows&);          \
  void LayerNorm(const Rows&);        \
  void Run(const Channels&);          \
  void Run(const Adam&);              \
  void Run(const Options&);           \
  void Run(const Dense&);             \
  void Run(const Transpose&);         \
  }

BENCH_DECLARE_PEER(hand)
BENCH_DECLARE_PEER(eigen)
BENCH_DECLARE_PEER(xtensor)
BENCH_DECLARE_PEER(umbra_eager)
BENCH_DECLARE_PEER(umbra_jit)

namespace umbra_jit {
/// Threads that the compiled kernels may use from now on.
void SetThreads(int threads);
}  // namespace umbra_jit

/// out = x . w by the BLAS that Umbra uses, called directly.
void BareGemm(const Dense& d);
/// GB/s of the machine for out = a * b + c * s on arrays far larger than the caches, with
/// non-temporal stores, counting bytes read and written.
double TriadBandwidth(int threads);

}  // namespace bench

#endif  // UMBRA_BENCHMARKS_SUITE_H_

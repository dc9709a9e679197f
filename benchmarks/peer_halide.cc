// Calls what halide_kernels.cc has written.
#include <HalideBuffer.h>

#include "halide_kernels.h"
#include "suite.h"

namespace bench::halide {

namespace {

// A dense tensor, the innermost dimension first.
template <typename T, typename... Extents>
auto Dense(const T* p, Extents... extents) {
  return Halide::Runtime::Buffer<T, -1, 6>(const_cast<T*>(p), static_cast<int>(extents)...);
}

auto Halves(const std::uint16_t* p, Size n) {
  return Halide::Runtime::Buffer<>(halide_type_t(halide_type_float, 16), const_cast<std::uint16_t*>(p),
                                   static_cast<int>(n));
}

}  // namespace

void Run(const Triad& d) { halide_triad(Dense(d.a, d.n), Dense(d.b, d.n), Dense(d.c, d.n), d.s, Dense(d.out, d.n)); }

void Run(const Gelu& d) {
  halide_gelu(Dense(d.a, d.columns, d.rows), Dense(d.b, d.columns, d.rows), Dense(d.bias, d.columns),
              Dense(d.out, d.columns, d.rows));
}

void Run(const Adam& d) {
  auto p = Dense(d.p, d.n), m = Dense(d.m, d.n), v = Dense(d.v, d.n);
  halide_adam(p, m, v, Dense(d.g, d.n), d.rate, d.beta1, d.beta2, d.epsilon, p, m, v);
}

void Run(const Options& d) {
  halide_black_scholes(Dense(d.spot, d.n), Dense(d.strike, d.n), Dense(d.time, d.n), d.rate, d.volatility,
                       Dense(d.call, d.n));
}

void Run(const Mixed& d) { halide_mixed(Halves(d.a, d.n), Dense(d.b, d.n), Halves(d.c, d.n), Dense(d.out, d.n)); }

void Run(const Saxpy8& d) { halide_saxpy8(Dense(d.x, d.n), Dense(d.y, d.n), d.s, Dense(d.out, d.n)); }

void Run(const Softmax& d) { halide_softmax(Dense(d.x, d.columns, d.rows), Dense(d.out, d.columns, d.rows)); }

void Run(const LayerNorm& d) { halide_layernorm(Dense(d.x, d.columns, d.rows), Dense(d.out, d.columns, d.rows)); }

void Run(const LogSumExp& d) { halide_log_sum_exp(Dense(d.x, d.columns, d.rows), Dense(d.out, d.rows)); }

void Run(const SoftmaxGradient& d) {
  halide_softmax_gradient(Dense(d.y, d.columns, d.rows), Dense(d.g, d.columns, d.rows),
                          Dense(d.out, d.columns, d.rows));
}

void Run(const LayerNormGradient& d) {
  halide_layernorm_gradient(Dense(d.x, d.columns, d.rows), Dense(d.g, d.columns, d.rows), Dense(d.mean, d.rows),
                            Dense(d.variance, d.rows), Dense(d.out, d.columns, d.rows));
}

void Run(const Channels& d) { halide_channels(Dense(d.x, d.hw, d.c, d.n), Dense(d.mean, d.c), Dense(d.variance, d.c)); }

void Run(const Patches& d) {
  halide_patches(Dense(d.x, d.w, d.h, d.c, d.n), Dense(d.out, d.w - 2, d.h - 2, d.n, 3, 3, d.c));
}

void Run(const MaxPool& d) {
  halide_max_pool(Dense(d.x, d.w, d.h, d.c, d.n), Dense(d.out, d.w / 2, d.h / 2, d.c, d.n));
}

void Run(const Unpool& d) {
  halide_max_unpool(Dense(d.x, d.w, d.h, d.c, d.n), Dense(d.pooled, d.w / 2, d.h / 2, d.c, d.n),
                    Dense(d.g, d.w / 2, d.h / 2, d.c, d.n), Dense(d.out, 2, d.w / 2, d.h, d.c, d.n));
}

void Run(const Transpose& d) { halide_transpose(Dense(d.a, d.n, d.n), Dense(d.b, d.n, d.n), Dense(d.out, d.n, d.n)); }

void Run(const Concat& d) {
  const auto part = [&](int k) { return Dense(d.x[k], d.columns, d.rows); };
  halide_concat(part(0), part(1), part(2), part(3), Dense(d.out, d.columns, 4, d.rows));
}

void Run(const Take& d) {
  halide_take(Dense(d.index, d.count), Dense(d.x, d.columns, d.rows), Dense(d.out, d.columns, d.count));
}

}  // namespace bench::halide

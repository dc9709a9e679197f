// Halves of the suite's workloads, one for each of two threads of a peer.
#ifndef UMBRA_BENCHMARKS_HALVES_H_
#define UMBRA_BENCHMARKS_HALVES_H_

#include <type_traits>
#include <vector>

#include "suite.h"

namespace bench {

/// Is a half of the workload a part of larger tensors, so that only peers that take strides can run it?
template <typename Workload>
inline constexpr bool kHalvesAreStrided =
    std::is_same_v<Workload, Channels> || std::is_same_v<Workload, Transpose> || std::is_same_v<Workload, Patches> ||
    std::is_same_v<Workload, Planes> || std::is_same_v<Workload, Quantized>;

// Halves an even extent; where the half `k` begins.
inline Size Cut(Size& extent, int k) {
  extent /= 2;
  return extent * k;
}

template <typename... P>
void Advance(Size by, P&... pointers) {
  ((pointers += by), ...);
}

/// The half `k` of a workload, 0 or 1.
inline Triad Half(Triad d, int k) {
  Advance(Cut(d.n, k), d.a, d.b, d.c, d.out);
  return d;
}

inline Gelu Half(Gelu d, int k) {
  Advance(Cut(d.rows, k) * d.columns, d.a, d.b, d.out);
  return d;
}

template <typename Workload, typename = std::enable_if_t<std::is_base_of_v<Rows, Workload>>>
Workload Half(Workload d, int k) {
  const Size first = Cut(d.rows, k);
  d.x += first * d.columns;
  d.out += std::is_same_v<Workload, LogSumExp> ? first : first * d.columns;
  return d;
}

inline SoftmaxGradient Half(SoftmaxGradient d, int k) {
  Advance(Cut(d.rows, k) * d.columns, d.y, d.g, d.out);
  return d;
}

inline LayerNormGradient Half(LayerNormGradient d, int k) {
  const Size first = Cut(d.rows, k);
  Advance(first, d.mean, d.variance);
  Advance(first * d.columns, d.x, d.g, d.out);
  return d;
}

inline Channels Half(Channels d, int k) {
  const Size first = Cut(d.c, k);
  d.x += first * d.hw;
  Advance(first, d.mean, d.variance);
  return d;
}

inline Adam Half(Adam d, int k) {
  Advance(Cut(d.n, k), d.p, d.m, d.v, d.g);
  return d;
}

inline Options Half(Options d, int k) {
  Advance(Cut(d.n, k), d.spot, d.strike, d.time, d.call);
  return d;
}

inline Dense Half(Dense d, int k) {
  const Size first = Cut(d.rows, k);
  d.x += first * d.inner;
  d.out += first * d.columns;
  return d;
}

inline Scores Half(Scores d, int k) {
  const Size first = Cut(d.batch, k);
  d.q += first * d.rows * d.inner;
  d.k += first * d.columns * d.inner;
  d.out += first * d.rows * d.columns;
  return d;
}

inline Transpose Half(Transpose d, int k) {
  const Size first = Cut(d.rows, k);
  d.a += first;
  Advance(first * d.n, d.b, d.out);
  return d;
}

inline Patches Half(Patches d, int k) {
  const Size first = Cut(d.c, k);
  d.x += first * d.h * d.w;
  d.out += first * 9 * d.n * (d.h - 2) * (d.w - 2);
  return d;
}

inline MaxPool Half(MaxPool d, int k) {
  const Size first = Cut(d.n, k) * d.c * d.h * d.w;
  d.x += first;
  d.out += first / 4;
  return d;
}

inline Unpool Half(Unpool d, int k) {
  const Size first = Cut(d.n, k) * d.c * d.h * d.w;
  Advance(first, d.x, d.out);
  Advance(first / 4, d.pooled, d.g);
  return d;
}

inline Overlapping Half(Overlapping d, int k) {
  const Size planes = Cut(d.n, k) * d.c, windows = planes * d.Windows(d.h) * d.Windows(d.w);
  Advance(planes * d.h * d.w, d.x, d.out);
  Advance(windows, d.pooled, d.g);
  return d;
}

inline Opaque Half(Opaque d, int k) {
  const Size first = Cut(d.n, k);
  d.x += 3 * first;
  d.alpha += first;
  d.out += 4 * first;
  return d;
}

inline ComplexProduct Half(ComplexProduct d, int k) {
  Advance(2 * Cut(d.n, k), d.a, d.b, d.out);
  return d;
}

inline Concat Half(Concat d, int k) {
  const Size first = Cut(d.rows, k) * d.columns;
  for (const float*& x : d.x) x += first;
  d.out += 4 * first;
  return d;
}

inline Take Half(Take d, int k) {
  const Size first = Cut(d.count, k);
  d.index += first;
  d.out += first * d.columns;
  return d;
}

inline Mixed Half(Mixed d, int k) {
  const Size first = Cut(d.n, k);
  Advance(first, d.a, d.b, d.c, d.out);
  return d;
}

inline Planes Half(Planes d, int k) {
  const Size first = Cut(d.n, k);
  d.x += first * Planes::kChannels;
  d.out += first;
  return d;
}

inline Quantized Half(Quantized d, int k) {
  Advance(Cut(d.columns, k), d.w, d.scale, d.out);
  return d;
}

inline Saxpy8 Half(Saxpy8 d, int k) {
  Advance(Cut(d.n, k), d.x, d.y, d.out);
  return d;
}

inline Sum500 Half(Sum500 d, int k) {
  const Size first = Cut(d.n, k);
  static std::vector<const float*> inputs[2];
  inputs[k].assign(d.x, d.x + Sum500::kInputs);
  for (const float*& x : inputs[k]) x += first;
  d.x = inputs[k].data();
  d.out += first;
  return d;
}

}  // namespace bench

#endif  // UMBRA_BENCHMARKS_HALVES_H_

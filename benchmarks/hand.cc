// Plain loops as a careful person writes them; compiled with -O3 -march=native -ffast-math, so the
// compiler vectorises them and calls libmvec.

#include <cmath>
#include <vector>

#include "suite.h"

namespace bench::hand {

void Run(const Triad& d) {
  const float* __restrict a = d.a, * __restrict b = d.b, * __restrict c = d.c;
  float* __restrict out = d.out;
  for (Size i = 0; i < d.n; ++i) out[i] = a[i] * b[i] + c[i] * d.s;
}

void Run(const Gelu& d) {
  const float* __restrict bias = d.bias;
  for (Size r = 0; r < d.rows; ++r) {
    const float* __restrict a = d.a + r * d.columns, * __restrict b = d.b + r * d.columns;
    float* __restrict out = d.out + r * d.columns;
    for (Size i = 0; i < d.columns; ++i) {
      const float t = a[i] * b[i] + bias[i];
      out[i] = 0.5f * t * (1 + tanhf(0.7978845608f * (t + 0.044715f * t * t * t)));
    }
  }
}

void Run(const Softmax& d) {
  for (Size r = 0; r < d.rows; ++r) {
    const float* __restrict x = d.x + r * d.columns;
    float* __restrict out = d.out + r * d.columns;
    float largest = x[0];
    for (Size i = 0; i < d.columns; ++i) largest = x[i] > largest ? x[i] : largest;
    float sum = 0;
    for (Size i = 0; i < d.columns; ++i) {
      out[i] = expf(x[i] - largest);
      sum += out[i];
    }
    const float scale = 1 / sum;
    for (Size i = 0; i < d.columns; ++i) out[i] *= scale;
  }
}

void Run(const LayerNorm& d) {
  const float inverse = 1.0f / static_cast<float>(d.columns);
  for (Size r = 0; r < d.rows; ++r) {
    const float* __restrict x = d.x + r * d.columns;
    float* __restrict out = d.out + r * d.columns;
    float sum = 0;
    for (Size i = 0; i < d.columns; ++i) sum += x[i];
    const float mean = sum * inverse;
    float squares = 0;
    for (Size i = 0; i < d.columns; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const float scale = 1 / sqrtf(squares * inverse + 1e-5f);
    for (Size i = 0; i < d.columns; ++i) out[i] = (x[i] - mean) * scale;
  }
}

void Run(const Channels& d) {
  const float inverse = 1.0f / static_cast<float>(d.n * d.hw);
  for (Size c = 0; c < d.c; ++c) {
    float sum = 0;
    for (Size n = 0; n < d.n; ++n) {
      const float* __restrict x = d.x + (n * d.all + c) * d.hw;
      for (Size i = 0; i < d.hw; ++i) sum += x[i];
    }
    const float mean = sum * inverse;
    float squares = 0;
    for (Size n = 0; n < d.n; ++n) {
      const float* __restrict x = d.x + (n * d.all + c) * d.hw;
      for (Size i = 0; i < d.hw; ++i) squares += (x[i] - mean) * (x[i] - mean);
    }
    d.mean[c] = mean;
    d.variance[c] = squares * inverse;
  }
}

void Run(const Adam& d) {
  float* __restrict p = d.p, * __restrict m = d.m, * __restrict v = d.v;
  const float* __restrict g = d.g;
  for (Size i = 0; i < d.n; ++i) {
    m[i] = d.beta1 * m[i] + (1 - d.beta1) * g[i];
    v[i] = d.beta2 * v[i] + (1 - d.beta2) * g[i] * g[i];
    p[i] -= d.rate * m[i] / (sqrtf(v[i]) + d.epsilon);
  }
}

void Run(const Options& d) {
  const float* __restrict spot = d.spot, * __restrict strike = d.strike, * __restrict time = d.time;
  float* __restrict call = d.call;
  for (Size i = 0; i < d.n; ++i) {
    const float spread = d.volatility * sqrtf(time[i]);
    const float d1 = (logf(spot[i] / strike[i]) + (d.rate + 0.5f * d.volatility * d.volatility) * time[i]) / spread;
    const float d2 = d1 - spread;
    call[i] = spot[i] * (0.5f + 0.5f * erff(d1 * 0.70710678f)) -
              strike[i] * expf(-d.rate * time[i]) * (0.5f + 0.5f * erff(d2 * 0.70710678f));
  }
}

void Run(const Dense& d) {
  BareGemm(d);
  for (Size r = 0; r < d.rows; ++r) {
    float* __restrict out = d.out + r * d.columns;
    for (Size i = 0; i < d.columns; ++i) {
      const float t = out[i] + d.bias[i];
      out[i] = t > 0 ? t : 0;
    }
  }
}

void Run(const Scores& d) { BareGemm(d); }

void Run(const Transpose& d) {
  constexpr Size kBlock = 32;
  for (Size i0 = 0; i0 < d.rows; i0 += kBlock)
    for (Size j0 = 0; j0 < d.n; j0 += kBlock)
      for (Size i = i0; i < i0 + kBlock && i < d.rows; ++i)
        for (Size j = j0; j < j0 + kBlock && j < d.n; ++j) d.out[i * d.n + j] = d.a[j * d.n + i] * 2 + d.b[i * d.n + j];
}

}  // namespace bench::hand

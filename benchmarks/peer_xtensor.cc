// The suite in xtensor's own style, with xsimd.

#include <array>
#include <cmath>
#include <complex>

#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xsort.hpp>
#include <xtensor/xview.hpp>

#include "suite.h"

namespace bench::xtensor {

namespace {

auto Vector(float* data, Size n) {
  return xt::adapt(data, static_cast<std::size_t>(n), xt::no_ownership(),
                   std::array<std::size_t, 1>{static_cast<std::size_t>(n)});
}
auto Vector(const float* data, Size n) {
  return xt::adapt(data, static_cast<std::size_t>(n), xt::no_ownership(),
                   std::array<std::size_t, 1>{static_cast<std::size_t>(n)});
}
template <typename T>
auto Matrix(T* data, Size rows, Size columns) {
  return xt::adapt(data, static_cast<std::size_t>(rows * columns), xt::no_ownership(),
                   std::array<std::size_t, 2>{static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)});
}
template <typename T>
auto Cube(T* data, Size a, Size b, Size c) {
  return xt::adapt(data, static_cast<std::size_t>(a * b * c), xt::no_ownership(),
                   std::array<std::size_t, 3>{static_cast<std::size_t>(a), static_cast<std::size_t>(b),
                                              static_cast<std::size_t>(c)});
}

}  // namespace

void Run(const Triad& d) {
  auto a = Vector(d.a, d.n), b = Vector(d.b, d.n), c = Vector(d.c, d.n);
  auto out = Vector(d.out, d.n);
  xt::noalias(out) = a * b + c * d.s;
}

void Run(const Gelu& d) {
  auto bias = Vector(d.bias, d.columns);
  for (Size r = 0; r < d.rows; ++r) {
    auto a = Vector(d.a + r * d.columns, d.columns), b = Vector(d.b + r * d.columns, d.columns);
    auto out = Vector(d.out + r * d.columns, d.columns);
    auto t = a * b + bias;
    xt::noalias(out) = 0.5f * t * (1.0f + xt::tanh(0.7978845608f * (t + 0.044715f * t * t * t)));
  }
}

void Run(const Softmax& d) {
  for (Size r = 0; r < d.rows; ++r) {
    auto x = Vector(d.x + r * d.columns, d.columns);
    auto out = Vector(d.out + r * d.columns, d.columns);
    const float largest = xt::amax(x, xt::evaluation_strategy::immediate)();
    xt::noalias(out) = xt::exp(x - largest);
    const float scale = 1 / xt::sum(out, xt::evaluation_strategy::immediate)();
    xt::noalias(out) = out * scale;
  }
}

void Run(const LayerNorm& d) {
  const float inverse = 1.0f / static_cast<float>(d.columns);
  for (Size r = 0; r < d.rows; ++r) {
    auto x = Vector(d.x + r * d.columns, d.columns);
    auto out = Vector(d.out + r * d.columns, d.columns);
    const float mean = xt::sum(x, xt::evaluation_strategy::immediate)() * inverse;
    const float variance = xt::sum(xt::square(x - mean), xt::evaluation_strategy::immediate)() * inverse;
    xt::noalias(out) = (x - mean) * (1 / std::sqrt(variance + 1e-5f));
  }
}

void Run(const Channels& d) {
  auto x = Cube(d.x, d.n, d.c, d.hw);
  auto mean = Vector(d.mean, d.c), variance = Vector(d.variance, d.c);
  xt::noalias(mean) = xt::mean(x, {0, 2}, xt::evaluation_strategy::immediate);
  auto centred = x - xt::view(mean, xt::newaxis(), xt::all(), xt::newaxis());
  xt::noalias(variance) = xt::mean(xt::square(centred), {0, 2}, xt::evaluation_strategy::immediate);
}

void Run(const Adam& d) {
  auto p = Vector(d.p, d.n), m = Vector(d.m, d.n), v = Vector(d.v, d.n);
  auto g = Vector(d.g, d.n);
  xt::noalias(m) = d.beta1 * m + (1 - d.beta1) * g;
  xt::noalias(v) = d.beta2 * v + (1 - d.beta2) * g * g;
  xt::noalias(p) = p - d.rate * m / (xt::sqrt(v) + d.epsilon);
}

void Run(const Options& d) {
  auto spot = Vector(d.spot, d.n), strike = Vector(d.strike, d.n), time = Vector(d.time, d.n);
  auto call = Vector(d.call, d.n);
  auto spread = d.volatility * xt::sqrt(time);
  auto d1 = (xt::log(spot / strike) + (d.rate + 0.5f * d.volatility * d.volatility) * time) / spread;
  auto d2 = d1 - spread;
  xt::noalias(call) = spot * (0.5f + 0.5f * xt::erf(d1 * 0.70710678f)) -
                      strike * xt::exp(-d.rate * time) * (0.5f + 0.5f * xt::erf(d2 * 0.70710678f));
}

void Run(const Dense& d) {
  BareGemm(d);
  auto out = Matrix(d.out, d.rows, d.columns);
  auto bias = Vector(d.bias, d.columns);
  xt::noalias(out) = xt::maximum(out + bias, 0.0f);
}

void Run(const Transpose& d) {
  auto a = Matrix(d.a, d.n, d.n), b = Matrix(d.b, d.n, d.n);
  auto out = Matrix(d.out, d.n, d.n);
  xt::noalias(out) = xt::transpose(a) * 2.0f + b;
}

void Run(const LogSumExp& d) {
  for (Size r = 0; r < d.rows; ++r) {
    auto x = Vector(d.x + r * d.columns, d.columns);
    const float largest = xt::amax(x, xt::evaluation_strategy::immediate)();
    d.out[r] = largest + std::log(xt::sum(xt::exp(x - largest), xt::evaluation_strategy::immediate)());
  }
}

void Run(const SoftmaxGradient& d) {
  for (Size r = 0; r < d.rows; ++r) {
    auto y = Vector(d.y + r * d.columns, d.columns), g = Vector(d.g + r * d.columns, d.columns);
    auto out = Vector(d.out + r * d.columns, d.columns);
    const float sum = xt::sum(y * g, xt::evaluation_strategy::immediate)();
    xt::noalias(out) = y * (g - sum);
  }
}

void Run(const LayerNormGradient& d) {
  const float inverse = 1.0f / static_cast<float>(d.columns);
  for (Size r = 0; r < d.rows; ++r) {
    auto x = Vector(d.x + r * d.columns, d.columns), g = Vector(d.g + r * d.columns, d.columns);
    auto out = Vector(d.out + r * d.columns, d.columns);
    const float mean = d.mean[r], scale = 1 / std::sqrt(d.variance[r] + 1e-5f);
    auto normal = (x - mean) * scale;
    const float sum = xt::sum(g, xt::evaluation_strategy::immediate)() * inverse;
    const float product = xt::sum(g * normal, xt::evaluation_strategy::immediate)() * inverse;
    xt::noalias(out) = scale * (g - sum - normal * product);
  }
}

void Run(const Concat& d) {
  auto out = Matrix(d.out, d.rows, d.columns * 4);
  for (Size k = 0; k < 4; ++k)
    xt::view(out, xt::all(), xt::range(k * d.columns, (k + 1) * d.columns)) = Matrix(d.x[k], d.rows, d.columns);
}

void Run(const Take& d) {
  auto x = Matrix(d.x, d.rows, d.columns);
  auto out = Matrix(d.out, d.count, d.columns);
  for (Size i = 0; i < d.count; ++i) xt::row(out, i) = xt::row(x, static_cast<Size>(d.index[i]));
}

void Run(const Opaque& d) {
  auto x = Matrix(d.x, d.n, 3);
  auto out = Matrix(d.out, d.n, 4);
  xt::view(out, xt::all(), xt::range(0, 3)) = xt::view(x, xt::all(), xt::range(2, xt::placeholders::_, -1));
  xt::view(out, xt::all(), 3) = Vector(d.alpha, d.n);
}

void Run(const ComplexProduct& d) {
  const std::array<std::size_t, 1> shape{static_cast<std::size_t>(d.n)};
  const auto numbers = [&](const float* p) {
    return xt::adapt(reinterpret_cast<std::complex<float>*>(const_cast<float*>(p)), shape[0], xt::no_ownership(),
                     shape);
  };
  auto out = numbers(d.out);
  xt::noalias(out) = numbers(d.a) * numbers(d.b);
}

void Run(const Saxpy8& d) {
  const std::array<std::size_t, 1> shape{static_cast<std::size_t>(d.n)};
  auto x = xt::adapt(d.x, shape[0], xt::no_ownership(), shape), y = xt::adapt(d.y, shape[0], xt::no_ownership(), shape);
  auto out = xt::adapt(d.out, shape[0], xt::no_ownership(), shape);
  xt::noalias(out) = x * static_cast<std::int8_t>(d.s) + y;
}

void Run(const Planes& d) {
  const auto n = static_cast<std::size_t>(d.n);
  const std::array<std::size_t, 2> pixels{n, 3}, planes{3, n};
  const std::array<std::size_t, 1> channels{3};
  auto x = xt::adapt(d.x, 3 * n, xt::no_ownership(), pixels);
  auto scale = xt::adapt(d.scale, 3, xt::no_ownership(), channels);
  auto out = xt::adapt(d.out, 3 * n, xt::no_ownership(), planes);
  xt::noalias(out) = xt::cast<float>(xt::transpose(x)) * xt::view(scale, xt::all(), xt::newaxis());
}

}  // namespace bench::xtensor

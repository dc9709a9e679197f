// The suite through the header-only Exp API.
#include <cmath>

#include "suite.h"
#include "umbra/tensor.h"

namespace bench::umbra_eager {

using namespace umbra;

namespace {
Tensor<cpu, 1> Vector(const float* p, Size n) { return {const_cast<float*>(p), Shape1(n)}; }
Tensor<cpu, 2> Matrix(const float* p, Size rows, Size columns) {
  return {const_cast<float*>(p), Shape2(rows, columns)};
}
Tensor<cpu, 4> Images(const float* p, Size n, Size c, Size h, Size w) {
  return {const_cast<float*>(p), Shape4(n, c, h, w)};
}
UMBRA_OP(normal_cdf, (x), 0.5 + 0.5 * erf(x * 0.70710678))
}  // namespace

void Run(const Triad& d) { Vector(d.out, d.n) = Vector(d.a, d.n) * Vector(d.b, d.n) + Vector(d.c, d.n) * d.s; }

void Run(const Gelu& d) {
  auto a = Matrix(d.a, d.rows, d.columns), b = Matrix(d.b, d.rows, d.columns);
  Matrix(d.out, d.rows, d.columns) = F<op::gelu>(a * b + broadcast<1>(Vector(d.bias, d.columns), a.shape_));
}

void Run(const Softmax& d) {
  for (Size r = 0; r < d.rows; ++r) {
    auto x = Vector(d.x + r * d.columns, d.columns), out = Vector(d.out + r * d.columns, d.columns);
    float most = 0, total = 0;
    Vector(&most, 1) = reduce_with_axis<red::maximum>(x, 0);
    out = F<op::exp>(x - most);
    Vector(&total, 1) = reduce_with_axis<red::sum>(out, 0);
    out *= 1 / total;
  }
}

void Run(const LayerNorm& d) {
  const float inverse = 1.0f / static_cast<float>(d.columns);
  for (Size r = 0; r < d.rows; ++r) {
    auto x = Vector(d.x + r * d.columns, d.columns), out = Vector(d.out + r * d.columns, d.columns);
    float sum = 0, squares = 0;
    Vector(&sum, 1) = reduce_with_axis<red::sum>(x, 0);
    const float mean = sum * inverse;
    Vector(&squares, 1) = reduce_with_axis<red::sum>(F<op::square>(x - mean), 0);
    out = (x - mean) * (1 / std::sqrt(squares * inverse + 1e-5f));
  }
}

void Run(const Channels& d) {
  const Tensor<cpu, 3> x(const_cast<float*>(d.x), Shape3(d.n, d.c, d.hw));
  const float inverse = 1.0f / static_cast<float>(d.n * d.hw);
  auto mean = Vector(d.mean, d.c), variance = Vector(d.variance, d.c);
  mean = sumall_except_dim<1>(x) * inverse;
  variance = sumall_except_dim<1>(F<op::square>(x - broadcast<1>(mean, x.shape_))) * inverse;
}

void Run(const Adam& d) {
  auto p = Vector(d.p, d.n), m = Vector(d.m, d.n), v = Vector(d.v, d.n), g = Vector(d.g, d.n);
  m = m * d.beta1 + g * (1 - d.beta1);
  v = v * d.beta2 + g * g * (1 - d.beta2);
  p -= m * d.rate / (F<op::sqrt>(v) + d.epsilon);
}

void Run(const Options& d) {
  auto spot = Vector(d.spot, d.n), strike = Vector(d.strike, d.n), time = Vector(d.time, d.n);
  auto spread = F<op::sqrt>(time) * d.volatility;
  auto d1 = (F<op::log>(spot / strike) + time * (d.rate + 0.5f * d.volatility * d.volatility)) / spread;
  Vector(d.call, d.n) = spot * F<normal_cdf>(d1) - strike * F<op::exp>(time * -d.rate) * F<normal_cdf>(d1 - spread);
}

void Run(const Dense& d) {
  auto out = Matrix(d.out, d.rows, d.columns);
  out = dot(Matrix(d.x, d.rows, d.inner), Matrix(d.w, d.inner, d.columns));
  out = F<op::relu>(out + broadcast<1>(Vector(d.bias, d.columns), out.shape_));
}

void Run(const Transpose& d) { Matrix(d.out, d.n, d.n) = Matrix(d.a, d.n, d.n).T() * 2.0f + Matrix(d.b, d.n, d.n); }

void Run(const LogSumExp& d) {
  for (Size r = 0; r < d.rows; ++r) {
    auto x = Vector(d.x + r * d.columns, d.columns);
    float most = 0, total = 0;
    Vector(&most, 1) = reduce_with_axis<red::maximum>(x, 0);
    Vector(&total, 1) = reduce_with_axis<red::sum>(F<op::exp>(x - most), 0);
    d.out[r] = most + std::log(total);
  }
}

void Run(const SoftmaxGradient& d) {
  for (Size r = 0; r < d.rows; ++r) {
    auto y = Vector(d.y + r * d.columns, d.columns), g = Vector(d.g + r * d.columns, d.columns);
    float total = 0;
    Vector(&total, 1) = reduce_with_axis<red::sum>(y * g, 0);
    Vector(d.out + r * d.columns, d.columns) = y * (g - total);
  }
}

void Run(const LayerNormGradient& d) {
  const float inverse = 1.0f / static_cast<float>(d.columns);
  for (Size r = 0; r < d.rows; ++r) {
    auto x = Vector(d.x + r * d.columns, d.columns), g = Vector(d.g + r * d.columns, d.columns);
    const float mean = d.mean[r], scale = 1 / std::sqrt(d.variance[r] + 1e-5f);
    float total = 0, product = 0;
    Vector(&total, 1) = reduce_with_axis<red::sum>(g, 0);
    Vector(&product, 1) = reduce_with_axis<red::sum>(g * ((x - mean) * scale), 0);
    total *= inverse;
    product *= inverse;
    Vector(d.out + r * d.columns, d.columns) = (g - total - (x - mean) * scale * product) * scale;
  }
}

void Run(const Patches& d) {
  Matrix(d.out, d.c * 9, d.n * (d.h - 2) * (d.w - 2)) =
      unpack_patch2col(Images(d.x, d.n, d.c, d.h, d.w), 3, 3, 1, 1, 1, 1);
}

void Run(const MaxPool& d) {
  Images(d.out, d.n, d.c, d.h / 2, d.w / 2) = pool<red::maximum>(Images(d.x, d.n, d.c, d.h, d.w), 2, 2, 2, 2);
}

void Run(const Unpool& d) {
  Images(d.out, d.n, d.c, d.h, d.w) =
      unpool<red::maximum>(Images(d.x, d.n, d.c, d.h, d.w), Images(d.pooled, d.n, d.c, d.h / 2, d.w / 2),
                           Images(d.g, d.n, d.c, d.h / 2, d.w / 2), 2, 2, 2, 2);
}

void Run(const Overlapping& d) {
  const Size rows = d.Windows(d.h), columns = d.Windows(d.w);
  Images(d.out, d.n, d.c, d.h, d.w) =
      unpool<red::maximum>(Images(d.x, d.n, d.c, d.h, d.w), Images(d.pooled, d.n, d.c, rows, columns),
                           Images(d.g, d.n, d.c, rows, columns), 3, 3, 2, 2);
}

void Run(const Opaque& d) { Matrix(d.out, d.n, 4) = concat<1>(flip(Matrix(d.x, d.n, 3), 1), Matrix(d.alpha, d.n, 1)); }

void Run(const ComplexProduct& d) {
  Vector(d.out, 2 * d.n) = complex_mul_cc(Vector(d.a, 2 * d.n), Vector(d.b, 2 * d.n));
}

void Run(const Concat& d) {
  const auto part = [&](int k) { return Matrix(d.x[k], d.rows, d.columns); };
  Matrix(d.out, d.rows, d.columns * 4) = concat<1>(concat<1>(part(0), part(1)), concat<1>(part(2), part(3)));
}

void Run(const Take& d) {
  Matrix(d.out, d.count, d.columns) = take(Vector(d.index, d.count), Matrix(d.x, d.rows, d.columns));
}

void Run(const Mixed& d) {
  const auto half = [&](const std::uint16_t* p) {
    return Tensor<cpu, 1, half_t>(reinterpret_cast<half_t*>(const_cast<std::uint16_t*>(p)), Shape1(d.n));
  };
  Vector(d.out, d.n) = tcast<float>(half(d.a)) * Vector(d.b, d.n) + tcast<float>(half(d.c));
}

void Run(const Saxpy8& d) {
  const auto bytes = [&](const std::int8_t* p) {
    return Tensor<cpu, 1, std::int8_t>(const_cast<std::int8_t*>(p), Shape1(d.n));
  };
  bytes(d.out) = bytes(d.x) * static_cast<std::int8_t>(d.s) + bytes(d.y);
}

}  // namespace bench::umbra_eager

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
UMBRA_OP(normal_cdf, (x), 0.5 + 0.5 * erf(x * 0.70710678))
}  // namespace

void Run(const Triad& d) {
  Vector(d.out, d.n) = Vector(d.a, d.n) * Vector(d.b, d.n) + Vector(d.c, d.n) * d.s;
}

void Run(const Gelu& d) {
  auto a = Matrix(d.a, d.rows, d.columns), b = Matrix(d.b, d.rows, d.columns);
  Matrix(d.out, d.rows, d.columns) =
      F<op::gelu>(a * b + broadcast<1>(Vector(d.bias, d.columns), a.shape_));
}

void Softmax(const Rows& d) {
  for (Size r = 0; r < d.rows; ++r) {
    auto x = Vector(d.x + r * d.columns, d.columns), out = Vector(d.out + r * d.columns, d.columns);
    float most, total;
    Vector(&most, 1) = reduce_with_axis<red::maximum>(x, 0);
    out = F<op::exp>(x - most);
    Vector(&total, 1) = reduce_with_axis<red::sum>(out, 0);
    out *= 1 / total;
  }
}

void LayerNorm(const Rows& d) {
  const float inverse = 1.0f / static_cast<float>(d.columns);
  for (Size r = 0; r < d.rows; ++r) {
    auto x = Vector(d.x + r * d.columns, d.columns), out = Vector(d.out + r * d.columns, d.columns);
    float sum, squares;
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
  Vector(d.call, d.n) = spot * F<normal_cdf>(d1) -
                        strike * F<op::exp>(time * -d.rate) * F<normal_cdf>(d1 - spread);
}

void Run(const Dense& d) {
  auto out = Matrix(d.out, d.rows, d.columns);
  out = dot(Matrix(d.x, d.rows, d.inner), Matrix(d.w, d.inner, d.columns));
  out = F<op::relu>(out + broadcast<1>(Vector(d.bias, d.columns), out.shape_));
}

void Run(const Transpose& d) {
  Matrix(d.out, d.n, d.n) = Matrix(d.a, d.n, d.n).T() * 2.0f + Matrix(d.b, d.n, d.n);
}

}  // namespace bench::umbra_eager

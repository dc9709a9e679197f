// The suite in Eigen 3.4's own style.
#include <Eigen/Dense>
#include <unsupported/Eigen/SpecialFunctions>

#include "suite.h"

namespace bench::eigen {

namespace {
using Array = Eigen::Map<Eigen::ArrayXf>;
using ConstArray = Eigen::Map<const Eigen::ArrayXf>;
using Grid = Eigen::Array<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Map = Eigen::Map<Grid>;
using ConstMap = Eigen::Map<const Grid>;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
}  // namespace

void Run(const Triad& d) {
  Array(d.out, d.n) = ConstArray(d.a, d.n) * ConstArray(d.b, d.n) + ConstArray(d.c, d.n) * d.s;
}

void Run(const Gelu& d) {
  const Eigen::Map<const Eigen::Array<float, 1, Eigen::Dynamic>> bias(d.bias, d.columns);
  for (Size r = 0; r < d.rows; ++r) {
    const Eigen::Map<const Eigen::Array<float, 1, Eigen::Dynamic>> a(d.a + r * d.columns, d.columns),
        b(d.b + r * d.columns, d.columns);
    Eigen::Map<Eigen::Array<float, 1, Eigen::Dynamic>> out(d.out + r * d.columns, d.columns);
    const auto t = a * b + bias;
    out = 0.5f * t * (1 + (0.7978845608f * (t + 0.044715f * t * t * t)).tanh());
  }
}

void Run(const Softmax& d) {
  for (Size r = 0; r < d.rows; ++r) {
    const ConstArray x(d.x + r * d.columns, d.columns);
    Array out(d.out + r * d.columns, d.columns);
    out = (x - x.maxCoeff()).exp();
    out *= 1 / out.sum();
  }
}

void Run(const LayerNorm& d) {
  for (Size r = 0; r < d.rows; ++r) {
    const ConstArray x(d.x + r * d.columns, d.columns);
    const float mean = x.mean();
    const float variance = (x - mean).square().mean();
    Array(d.out + r * d.columns, d.columns) = (x - mean) * (1 / std::sqrt(variance + 1e-5f));
  }
}

void Run(const Channels& d) {
  using Strided = Eigen::Map<const Grid, 0, Eigen::OuterStride<>>;
  for (Size c = 0; c < d.c; ++c) {
    const Strided x(d.x + c * d.hw, d.n, d.hw, Eigen::OuterStride<>(d.c * d.hw));
    d.mean[c] = x.mean();
    d.variance[c] = (x - d.mean[c]).square().mean();
  }
}

void Run(const Adam& d) {
  Array p(d.p, d.n), m(d.m, d.n), v(d.v, d.n);
  const ConstArray g(d.g, d.n);
  m = d.beta1 * m + (1 - d.beta1) * g;
  v = d.beta2 * v + (1 - d.beta2) * g.square();
  p -= d.rate * m / (v.sqrt() + d.epsilon);
}

void Run(const Options& d) {
  const ConstArray spot(d.spot, d.n), strike(d.strike, d.n), time(d.time, d.n);
  const auto spread = d.volatility * time.sqrt();
  const auto d1 = ((spot / strike).log() + (d.rate + 0.5f * d.volatility * d.volatility) * time) / spread;
  const auto d2 = d1 - spread;
  Array(d.call, d.n) = spot * (0.5f + 0.5f * (d1 * 0.70710678f).erf()) -
                       strike * (-d.rate * time).exp() * (0.5f + 0.5f * (d2 * 0.70710678f).erf());
}

void Run(const Dense& d) {
  const Eigen::Map<const Matrix> x(d.x, d.rows, d.inner), w(d.w, d.inner, d.columns);
  Eigen::Map<Matrix> out(d.out, d.rows, d.columns);
  const Eigen::Map<const Eigen::RowVectorXf> bias(d.bias, d.columns);
  out.noalias() = x * w;
  out = (out.rowwise() + bias).cwiseMax(0.0f);
}

void Run(const Scores& d) {
  for (Size b = 0; b < d.batch; ++b) {
    const Eigen::Map<const Matrix> q(d.q + b * d.rows * d.inner, d.rows, d.inner),
        k(d.k + b * d.columns * d.inner, d.columns, d.inner);
    Eigen::Map<Matrix>(d.out + b * d.rows * d.columns, d.rows, d.columns).noalias() = d.scale * q * k.transpose();
  }
}

void Run(const Transpose& d) {
  Map(d.out, d.n, d.n) = ConstMap(d.a, d.n, d.n).transpose() * 2.0f + ConstMap(d.b, d.n, d.n);
}

}  // namespace bench::eigen

// Gradients, index maps and mixed types in Eigen 3.4's own style.
#include <Eigen/Dense>

#include <algorithm>
#include <complex>

#include "suite.h"

namespace bench::eigen {

namespace {
using Array = Eigen::Map<Eigen::ArrayXf>;
using ConstArray = Eigen::Map<const Eigen::ArrayXf>;
using Grid = Eigen::Array<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Map = Eigen::Map<Grid>;
using ConstMap = Eigen::Map<const Grid>;
}  // namespace

void Run(const LogSumExp& d) {
  for (Size r = 0; r < d.rows; ++r) {
    const ConstArray x(d.x + r * d.columns, d.columns);
    const float most = x.maxCoeff();
    d.out[r] = most + std::log((x - most).exp().sum());
  }
}

void Run(const SoftmaxGradient& d) {
  for (Size r = 0; r < d.rows; ++r) {
    const ConstArray y(d.y + r * d.columns, d.columns), g(d.g + r * d.columns, d.columns);
    const float sum = (y * g).sum();
    Array(d.out + r * d.columns, d.columns) = y * (g - sum);
  }
}

void Run(const LayerNormGradient& d) {
  for (Size r = 0; r < d.rows; ++r) {
    const ConstArray x(d.x + r * d.columns, d.columns), g(d.g + r * d.columns, d.columns);
    const float mean = d.mean[r], scale = 1 / std::sqrt(d.variance[r] + 1e-5f);
    const auto normal = (x - mean) * scale;
    const float sum = g.mean(), product = (g * normal).mean();
    Array(d.out + r * d.columns, d.columns) = scale * (g - sum - normal * product);
  }
}

void Run(const Patches& d) {
  for (Size c = 0; c < d.c; ++c)
    for (Size k = 0; k < 9; ++k)
      for (Size n = 0; n < d.n; ++n)
        Map(d.out + ((c * 9 + k) * d.n + n) * (d.h - 2) * (d.w - 2), d.h - 2, d.w - 2) =
            ConstMap(d.x + (n * d.c + c) * d.h * d.w, d.h, d.w).block(k / 3, k % 3, d.h - 2, d.w - 2);
}

void Run(const MaxPool& d) {
  using Strided = Eigen::Map<const Eigen::ArrayXf, 0, Eigen::InnerStride<2>>;
  const Size half = d.w / 2;
  for (Size row = 0; row < d.n * d.c * d.h / 2; ++row) {
    const float* top = d.x + row * 2 * d.w;
    Array(d.out + row * half, half) =
        Strided(top, half).max(Strided(top + 1, half)).max(Strided(top + d.w, half)).max(Strided(top + d.w + 1, half));
  }
}

void Run(const Unpool& d) {
  using Strided = Eigen::Map<Eigen::ArrayXf, 0, Eigen::InnerStride<2>>;
  using ConstStrided = Eigen::Map<const Eigen::ArrayXf, 0, Eigen::InnerStride<2>>;
  const Size half = d.w / 2;
  for (Size row = 0; row < d.n * d.c * d.h; ++row)
    for (Size k = 0; k < 2; ++k) {
      const ConstArray pooled(d.pooled + row / 2 * half, half), g(d.g + row / 2 * half, half);
      Strided(d.out + row * d.w + k, half) = (ConstStrided(d.x + row * d.w + k, half) == pooled).select(g, 0.0f);
    }
}

void Run(const Overlapping& d) {
  using Strided = Eigen::Map<Eigen::ArrayXf, 0, Eigen::InnerStride<2>>;
  using ConstStrided = Eigen::Map<const Eigen::ArrayXf, 0, Eigen::InnerStride<2>>;
  const Size rows = d.Windows(d.h), columns = d.Windows(d.w);
  Array(d.out, d.n * d.c * d.h * d.w).setZero();
  for (Size p = 0; p < d.n * d.c; ++p)
    for (Size r = 0; r < rows; ++r) {
      const ConstArray pooled(d.pooled + (p * rows + r) * columns, columns), g(d.g + (p * rows + r) * columns, columns);
      for (Size i = 0; i < 9; ++i) {
        const Size at = (p * d.h + 2 * r + i / 3) * d.w + i % 3;
        Strided(d.out + at, columns) += (ConstStrided(d.x + at, columns) == pooled).select(g, 0.0f);
      }
    }
}

void Run(const Opaque& d) {
  const ConstMap x(d.x, d.n, 3);
  Map out(d.out, d.n, 4);
  out.leftCols(3) = x.rowwise().reverse();
  out.col(3) = ConstArray(d.alpha, d.n);
}

void Run(const ComplexProduct& d) {
  using Numbers = Eigen::Map<const Eigen::ArrayXcf>;
  const auto numbers = [&](const float* p) { return Numbers(reinterpret_cast<const std::complex<float>*>(p), d.n); };
  Eigen::Map<Eigen::ArrayXcf>(reinterpret_cast<std::complex<float>*>(d.out), d.n) = numbers(d.a) * numbers(d.b);
}

void Run(const Concat& d) {
  Map out(d.out, d.rows, d.columns * 4);
  for (Size k = 0; k < 4; ++k) out.middleCols(k * d.columns, d.columns) = ConstMap(d.x[k], d.rows, d.columns);
}

void Run(const Take& d) {
  const ConstMap x(d.x, d.rows, d.columns);
  Map out(d.out, d.count, d.columns);
  for (Size i = 0; i < d.count; ++i) out.row(i) = x.row(std::clamp(static_cast<Size>(d.index[i]), Size{0}, d.rows - 1));
}

void Run(const Mixed& d) {
  using Halves = Eigen::Map<const Eigen::Array<Eigen::half, Eigen::Dynamic, 1>>;
  const Halves a(reinterpret_cast<const Eigen::half*>(d.a), d.n), c(reinterpret_cast<const Eigen::half*>(d.c), d.n);
  Array(d.out, d.n) = a.cast<float>() * ConstArray(d.b, d.n) + c.cast<float>();
}

void Run(const Saxpy8& d) {
  using Bytes = Eigen::Array<std::int8_t, Eigen::Dynamic, 1>;
  const Eigen::Map<const Bytes> x(d.x, d.n), y(d.y, d.n);
  Eigen::Map<Bytes>(d.out, d.n) = x * static_cast<std::int8_t>(d.s) + y;
}

void Run(const Quantized& d) {
  using Bytes = Eigen::Matrix<std::int8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Floats> x(d.x, d.rows, d.inner);
  const Eigen::Map<const Bytes, 0, Eigen::OuterStride<>> w(d.w, d.inner, d.columns, Eigen::OuterStride<>(d.all));
  const Eigen::Map<const Eigen::VectorXf> scale(d.scale, d.columns);
  Eigen::Map<Floats, 0, Eigen::OuterStride<>>(d.out, d.rows, d.columns, Eigen::OuterStride<>(d.all)).noalias() =
      x * w.cast<float>() * scale.asDiagonal();
}

void Run(const Planes& d) {
  using Channel = Eigen::Map<const Eigen::Array<std::uint8_t, Eigen::Dynamic, 1>, 0, Eigen::InnerStride<3>>;
  for (Size c = 0; c < 3; ++c) Array(d.out + c * d.all, d.n) = Channel(d.x + c, d.n).cast<float>() * d.scale[c];
}

}  // namespace bench::eigen

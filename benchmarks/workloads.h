// The operands of every workload, and the bytes that it moves. `make(n, low, high)` gives n numbers of [low, high) in
// whatever memory the workload is to run; make.template operator()<T>(n, low, high) gives them as T.
#ifndef UMBRA_BENCHMARKS_WORKLOADS_H_
#define UMBRA_BENCHMARKS_WORKLOADS_H_

#include <algorithm>
#include <utility>
#include <vector>

#include "suite.h"
#include "umbra/half.h"

namespace bench {

template <typename Make>
Triad MakeTriad(Make&& make, Size n) {
  return {n, make(n, -1, 1), make(n, -1, 1), make(n, -1, 1), 0.5f, make(n, 0, 1)};
}

template <typename Make>
Gelu MakeGelu(Make&& make, Size rows, Size columns) {
  const Size n = rows * columns;
  return {rows, columns, make(n, -2, 2), make(n, -2, 2), make(columns, -1, 1), make(n, 0, 1)};
}

template <typename Make>
Rows MakeRows(Make&& make, Size rows, Size columns) {
  return {rows, columns, make(rows * columns, -4, 4), make(rows * columns, 0, 1)};
}

template <typename Make>
SoftmaxGradient MakeSoftmaxGradient(Make&& make, Size rows, Size columns) {
  const Size n = rows * columns;
  return {rows, columns, make(n, 0, 0.002f), make(n, -1, 1), make(n, 0, 1)};
}

template <typename Make>
LayerNormGradient MakeLayerNormGradient(Make&& make, Size rows, Size columns) {
  const Size n = rows * columns;
  return {rows, columns, make(n, -4, 4), make(n, -1, 1), make(rows, -0.1f, 0.1f), make(rows, 4, 6), make(n, 0, 1)};
}

template <typename Make>
Channels MakeChannels(Make&& make, Size n, Size c, Size hw) {
  return {n, c, hw, make(n * c * hw, -1, 1), make(c, 0, 1), make(c, 0, 1)};
}

template <typename Make>
Adam MakeAdam(Make&& make, Size n, float rate) {
  return {n, make(n, -1, 1), make(n, 0, 0.1f), make(n, 0, 0.1f), make(n, -1, 1), rate, 0.9f, 0.999f, 1e-8f};
}

template <typename Make>
AdamSteps MakeAdamSteps(Make&& make, int tensors, float rate) {
  AdamSteps steps;
  for (int k = 0; k < tensors; ++k) steps.of.push_back(MakeAdam(make, 64 + Size{k} * 7919 % 16384, rate));
  return steps;
}

template <typename Make>
Options MakeOptions(Make&& make, Size n) {
  return {n, make(n, 50, 150), make(n, 60, 140), make(n, 0.2f, 2), 0.02f, 0.3f, make(n, 0, 1)};
}

template <typename Make>
Dense MakeDense(Make&& make, Size rows, Size inner, Size columns) {
  return {rows,
          inner,
          columns,
          make(rows * inner, -1, 1),
          make(inner * columns, -1, 1),
          make(columns, -1, 1),
          make(rows * columns, 0, 1)};
}

template <typename Make>
Scores MakeScores(Make&& make, Size batch, Size rows, Size inner, Size columns) {
  return {batch,
          rows,
          inner,
          columns,
          make(batch * rows * inner, -1, 1),
          make(batch * columns * inner, -1, 1),
          0.125f,
          make(batch * rows * columns, 0, 1)};
}

template <typename Make>
Transpose MakeTranspose(Make&& make, Size n) {
  return {n, make(n * n, -1, 1), make(n * n, -1, 1), make(n * n, 0, 1)};
}

template <typename Make>
Patches MakePatches(Make&& make, Size n, Size c, Size h, Size w) {
  return {n, c, h, w, make(n * c * h * w, -1, 1), make(c * 9 * n * (h - 2) * (w - 2), 0, 1)};
}

template <typename Make>
MaxPool MakeMaxPool(Make&& make, Size n, Size c, Size h, Size w) {
  return {n, c, h, w, make(n * c * h * w, -1, 1), make(n * c * h * w / 4, 0, 1)};
}

/// Of a MaxPool that has run.
template <typename Make>
Unpool MakeUnpool(Make&& make, const MaxPool& d) {
  const Size size = d.n * d.c * d.h * d.w;
  return {d.n, d.c, d.h, d.w, d.x, d.out, make(size / 4, -1, 1), make(size, 0, 1)};
}

/// In memory that the processor reads.
template <typename Make>
Overlapping MakeOverlapping(Make&& make, Size n, Size c, Size h, Size w) {
  const Size planes = n * c, rows = Overlapping::Windows(h), columns = Overlapping::Windows(w);
  const float* const x = make(planes * h * w, -1, 1);
  float* const pooled = make(planes * rows * columns, -1, 1);
  for (Size p = 0; p < planes; ++p)
    for (Size r = 0; r < rows; ++r)
      for (Size k = 0; k < columns; ++k) {
        float most = -1;
        for (Size i = 0; i < 9; ++i) most = std::max(most, x[(p * h + 2 * r + i / 3) * w + 2 * k + i % 3]);
        pooled[(p * rows + r) * columns + k] = most;
      }
  return {n, c, h, w, x, pooled, make(planes * rows * columns, -1, 1), make(planes * h * w, 0, 1)};
}

template <typename Make>
Opaque MakeOpaque(Make&& make, Size n) {
  return {n, make(3 * n, 0, 1), make(n, 0, 1), make(4 * n, 0, 1)};
}

template <typename Make>
ComplexProduct MakeComplexProduct(Make&& make, Size n) {
  return {n, make(2 * n, -1, 1), make(2 * n, -1, 1), make(2 * n, 0, 1)};
}

template <typename Make>
Concat MakeConcat(Make&& make, Size rows, Size columns) {
  const Size n = rows * columns;
  return {rows, columns, {make(n, -1, 1), make(n, -1, 1), make(n, -1, 1), make(n, -1, 1)}, make(4 * n, 0, 1)};
}

template <typename Make>
Take MakeTake(Make&& make, Size count, Size columns) {
  return {count,
          count,
          columns,
          make(count, 0, static_cast<float>(count) - 1),
          make(count * columns, -1, 1),
          make(count * columns, 0, 1)};
}

template <typename Make>
Mixed MakeMixed(Make&& make, Size n) {
  const auto halves = [&] {
    return reinterpret_cast<std::uint16_t*>(make.template operator()<umbra::half_t>(n, -1, 1));
  };
  return {n, halves(), make(n, -1, 1), halves(), make(n, 0, 1)};
}

template <typename Make>
Saxpy8 MakeSaxpy8(Make&& make, Size n) {
  const auto bytes = [&](float low, float high) { return make.template operator()<std::int8_t>(n, low, high); };
  return {n, bytes(-128, 128), bytes(-128, 128), 3, bytes(0, 1)};
}

template <typename Make>
Quantized MakeQuantized(Make&& make, Size rows, Size inner, Size columns) {
  return {rows,
          inner,
          columns,
          make(rows * inner, -1, 1),
          make.template operator()<std::int8_t>(inner * columns, -128, 128),
          make(columns, 0, 0.01f),
          make(rows * columns, 0, 1)};
}

template <typename Make>
Planes MakePlanes(Make&& make, Size n) {
  return {n, make.template operator()<std::uint8_t>(n * Planes::kChannels, 0, 256), make(Planes::kChannels, 0, 1),
          make(n * Planes::kChannels, 0, 1)};
}

/// `inputs` is to live as long as the workload.
template <typename Make>
Sum500 MakeSum500(Make&& make, Size n, std::vector<const float*>* inputs) {
  for (int k = 0; k < Sum500::kInputs; ++k) inputs->push_back(make(n, -1, 1));
  return {n, inputs->data(), make(n, 0, 1)};
}

/// What a workload has to read and to write.
struct Bytes {
  double read, written;
};

namespace detail {
inline Bytes Floats(Size read, Size written) {
  return {4.0 * static_cast<double>(read), 4.0 * static_cast<double>(written)};
}
}  // namespace detail

inline Bytes BytesOf(const Triad& d) { return detail::Floats(3 * d.n, d.n); }
inline Bytes BytesOf(const Gelu& d) { return detail::Floats(2 * d.rows * d.columns, d.rows * d.columns); }
inline Bytes BytesOf(const Rows& d) { return detail::Floats(d.rows * d.columns, d.rows * d.columns); }
inline Bytes BytesOf(const LogSumExp& d) { return detail::Floats(d.rows * d.columns, 0); }
inline Bytes BytesOf(const SoftmaxGradient& d) { return detail::Floats(2 * d.rows * d.columns, d.rows * d.columns); }
inline Bytes BytesOf(const LayerNormGradient& d) { return detail::Floats(2 * d.rows * d.columns, d.rows * d.columns); }
inline Bytes BytesOf(const Channels& d) { return detail::Floats(d.n * d.c * d.hw, 0); }
inline Bytes BytesOf(const Adam& d) { return detail::Floats(4 * d.n, 3 * d.n); }
inline Bytes BytesOf(const AdamSteps& d) {
  Size n = 0;
  for (const Adam& one : d.of) n += one.n;
  return detail::Floats(4 * n, 3 * n);
}
inline Bytes BytesOf(const Options& d) { return detail::Floats(3 * d.n, d.n); }
inline Bytes BytesOf(const Dense& d) { return detail::Floats((d.rows + d.columns) * d.inner, d.rows * d.columns); }
inline Bytes BytesOf(const Scores& d) {
  return detail::Floats(d.batch * (d.rows + d.columns) * d.inner, d.batch * d.rows * d.columns);
}
inline Bytes BytesOf(const Transpose& d) { return detail::Floats(2 * d.n * d.n, d.n * d.n); }
inline Bytes BytesOf(const Patches& d) {
  return detail::Floats(d.n * d.c * d.h * d.w, d.c * 9 * d.n * (d.h - 2) * (d.w - 2));
}
inline Bytes BytesOf(const MaxPool& d) { return detail::Floats(d.n * d.c * d.h * d.w, d.n * d.c * d.h * d.w / 4); }
inline Bytes BytesOf(const Unpool& d) {
  const Size size = d.n * d.c * d.h * d.w;
  return detail::Floats(size + size / 2, size);
}
inline Bytes BytesOf(const Overlapping& d) {
  const Size planes = d.n * d.c;
  return detail::Floats(planes * (d.h * d.w + 2 * d.Windows(d.h) * d.Windows(d.w)), planes * d.h * d.w);
}
inline Bytes BytesOf(const Opaque& d) { return detail::Floats(4 * d.n, 4 * d.n); }
inline Bytes BytesOf(const ComplexProduct& d) { return detail::Floats(4 * d.n, 2 * d.n); }
inline Bytes BytesOf(const Concat& d) { return detail::Floats(4 * d.rows * d.columns, 4 * d.rows * d.columns); }
inline Bytes BytesOf(const Take& d) { return detail::Floats(d.count * d.columns + d.count, d.count * d.columns); }
inline Bytes BytesOf(const Mixed& d) { return detail::Floats(2 * d.n, d.n); }
inline Bytes BytesOf(const Saxpy8& d) { return {2.0 * static_cast<double>(d.n), 1.0 * static_cast<double>(d.n)}; }
inline Bytes BytesOf(const Quantized& d) {
  return {static_cast<double>(d.inner * d.columns) + 4.0 * static_cast<double>(d.rows * d.inner + d.columns),
          4.0 * static_cast<double>(d.rows * d.columns)};
}
inline Bytes BytesOf(const Planes& d) {
  return {1.0 * static_cast<double>(Planes::kChannels * d.n), 4.0 * static_cast<double>(Planes::kChannels * d.n)};
}
inline Bytes BytesOf(const Sum500& d) { return detail::Floats(Sum500::kInputs * d.n, d.n); }

}  // namespace bench

#endif  // UMBRA_BENCHMARKS_WORKLOADS_H_

// Random numbers from a counter: number i of a sequence is a function of seed and i (Philox 4x32-10,
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011), so that any part can be drawn
// by anybody, in any order, with the same result.
#ifndef UMBRA_RANDOM_H_
#define UMBRA_RANDOM_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "umbra/tensor.h"

namespace umbra {

/// Four random words of block `counter` of the sequence of `key`.
inline std::array<std::uint32_t, 4> Philox(std::uint64_t key, std::uint64_t counter) {
  std::array<std::uint32_t, 4> c = {static_cast<std::uint32_t>(counter),
                                    static_cast<std::uint32_t>(counter >> 32), 0, 0};
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0], p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

/// Draws tensors of random numbers; the same seed gives the same tensors.
template <typename Device, typename DType = default_real_t>
class Random {
  static_assert(std::is_floating_point_v<DType>, "umbra: Random draws float or double");

 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}
  void Seed(std::uint64_t seed) {
    seed_ = seed;
    next_ = 0;
  }
  void set_stream(Stream<Device>*) {}

  /// Uniform in [a, b): every element of `dst`.
  template <int dim>
  void SampleUniform(Tensor<Device, dim, DType>* dst, DType a = 0, DType b = 1) {
    Fill(dst, [&](std::uint64_t i) { return a + Unit(i) * (b - a); });
  }
  /// Normal with mean `mu` and standard deviation `sigma` (Box and Muller's method).
  template <int dim>
  void SampleGaussian(Tensor<Device, dim, DType>* dst, DType mu = 0, DType sigma = 1) {
    Fill(dst, [&](std::uint64_t i) {
      const double u = 1 - Unit53(2 * i), v = Unit53(2 * i + 1);
      return mu + sigma * static_cast<DType>(std::sqrt(-2 * std::log(u)) *
                                             std::cos(6.283185307179586 * v));
    });
    next_ *= 2;
  }
  /// A tensor of `shape` with uniform or normal elements for use in an expression. It holds until the
  /// next call with the same rank.
  template <int dim>
  Tensor<Device, dim, DType> uniform(const Shape<dim>& shape) {
    Tensor<Device, dim, DType> drawn = Buffer(shape);
    SampleUniform(&drawn);
    return drawn;
  }
  template <int dim>
  Tensor<Device, dim, DType> gaussian(const Shape<dim>& shape) {
    Tensor<Device, dim, DType> drawn = Buffer(shape);
    SampleGaussian(&drawn);
    return drawn;
  }
  /// Brings the rows of `data` into a random order, every order equally likely.
  template <int dim, typename T>
  void Shuffle(Tensor<Device, dim, T>* data) {
    for (index_t i = data->size(0) - 1; i > 0; --i) {
      const auto j = static_cast<index_t>(Unit53(next_++) * static_cast<double>(i + 1));
      if (i == j) continue;
      if constexpr (dim == 1) {
        std::swap(data->dptr_[i], data->dptr_[j]);
      } else {
        TensorContainer<Device, dim - 1, T> row(data->shape_.SubShape());
        Copy<dim - 1, T>(row, (*data)[i]);
        Copy<dim - 1, T>((*data)[i], (*data)[j]);
        Copy<dim - 1, T>((*data)[j], row);
      }
    }
  }

 private:
  // Number i of the sequence, uniform in [0, 1), with 53 bits.
  double Unit53(std::uint64_t i) const {
    const auto words = Philox(seed_, i / 2);
    const std::size_t half = i % 2 * 2;
    const std::uint64_t bits = (std::uint64_t{words[half]} << 32 | words[half + 1]) >> 11;
    return static_cast<double>(bits) * 0x1p-53;
  }
  DType Unit(std::uint64_t i) const {
    if constexpr (sizeof(DType) == 4) return static_cast<DType>(Philox(seed_, i / 4)[i % 4] >> 8) * 0x1p-24f;
    else return Unit53(i);
  }
  template <int dim, typename Draw>
  void Fill(Tensor<Device, dim, DType>* dst, const Draw& draw) {
    const Shape<2> flat = dst->shape_.FlatTo2D();
    for (index_t y = 0; y < flat[0]; ++y)
      for (index_t x = 0; x < flat[1]; ++x)
        dst->dptr_[(dim == 1 ? 0 : y * dst->stride_) + x] = draw(next_++);
  }
  template <int dim>
  Tensor<Device, dim, DType> Buffer(const Shape<dim>& shape) {
    buffer_.Resize(Shape1(static_cast<index_t>(shape.Size())));
    return Tensor<Device, dim, DType>(buffer_.dptr_, shape);
  }

  std::uint64_t seed_ = 0, next_ = 0;
  TensorContainer<Device, 1, DType> buffer_;
};

}  // namespace umbra

#endif  // UMBRA_RANDOM_H_

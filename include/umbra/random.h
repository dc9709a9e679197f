// Random numbers from a counter: number i of a sequence is a function of seed and i (umbra/prelude/random.h), so
// that any part can be drawn by anybody, in any order, eagerly or in a compiled kernel, with the same result. Random
// has the name and members of mshadow's for uniform and normal numbers.
#include "umbra/tensor.h"  // before the guard: it includes this header where all that it needs is declared

#ifndef UMBRA_RANDOM_H_
#define UMBRA_RANDOM_H_

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "umbra/prelude/random.h"

namespace umbra {

namespace detail {
/// Uniform in [a, b), or a if they are equal.
template <typename DType>
struct Uniform {
  static constexpr const char* kName = "uniform";
  DType a, b, last;  // the largest number of the interval
  template <typename Int>
  simd::Rebind<Int, DType> operator()(Int counter, Int key) const {
    using V = simd::Rebind<Int, DType>;
    const V u = simd::random_uniform<DType>(counter, key);
    const V x = a * (DType(1) - u) + b * u;
    return simd::minimum(simd::maximum(x, simd::fill<V>(a)), simd::fill<V>(last));
  }
};

/// Normal with mean `mu` and standard deviation `sigma`.
template <typename DType>
struct Gaussian {
  static constexpr const char* kName = "gaussian";
  DType mu, sigma;
  template <typename Int>
  simd::Rebind<Int, DType> operator()(Int counter, Int key) const {
    return mu + sigma * simd::random_gaussian<DType>(counter, key);
  }
};
}  // namespace detail

namespace expr {
/// A tensor of random numbers that is never stored: element i of it, counted row by row, is number first_ + i of
/// the sequence of the key.
template <typename Distribution, typename DType, int dim>
struct RandomExp : MakeTensorExp<RandomExp<Distribution, DType, dim>, void, dim, DType> {
  /// Numbers `first`, `first` + 1, ... of the sequence of `key`, in `shape`; Random::uniform and gaussian make it.
  RandomExp(Distribution distribution, const Shape<dim>& shape, std::uint64_t key, std::uint64_t first)
      : distribution_(distribution),
        key_(key),
        first_(first) {
    this->shape_ = shape;
  }
  Distribution distribution_;  ///< what words become
  std::uint64_t key_, first_;  ///< see above
};
template <typename Distribution, typename DType, int dim>
struct ExpInfo<RandomExp<Distribution, DType, dim>> {
  static constexpr int kDim = dim;
  static constexpr int kDevMask = cpu::kDevMask | gpu::kDevMask;
  static constexpr bool kPacket = kHasPackets<DType>;
};
template <typename Distribution, typename DType, int dim>
struct Plan<RandomExp<Distribution, DType, dim>, DType> {
  explicit Plan(const RandomExp<Distribution, DType, dim>& e)
      : distribution_(e.distribution_),
        key_(static_cast<simd::i64>(e.key_)),
        first_(static_cast<simd::i64>(e.first_)),
        columns_(e.shape_[dim - 1]) {}
  DType Eval(index_t y, index_t x) const { return distribution_(first_ + y * columns_ + x, key_); }
  template <typename V>
  V EvalPacket(index_t y, index_t x, index_t) const {
    using Int = simd::Rebind<V, simd::i64>;
    return distribution_(simd::ramp<Int>(first_ + y * columns_ + x, 1), simd::fill<Int>(key_));
  }
  Distribution distribution_;
  simd::i64 key_, first_;
  index_t columns_;
};
}  // namespace expr

/// Draws random numbers of DType, float or double; the same seed gives the same numbers, in the order of the calls, on
/// every device, but for the last bits of normal numbers, whose logarithm and cosine a GPU may round otherwise. Every
/// call takes numbers of its own. On a GPU they are drawn by generated kernels: include umbra/jit.h.
template <typename Device, typename DType = default_real_t>
class Random {
  static_assert(std::is_floating_point_v<DType>, "umbra: Random draws float or double");

 public:
  /// The sequence of `seed`, from its beginning.
  explicit Random(std::uint64_t seed) { Seed(seed); }
  /// Begins the sequence of `seed`.
  void Seed(std::uint64_t seed) {
    seed_ = seed;
    next_ = 0;
  }
  /// The seed of the sequence that is drawn from.
  std::uint64_t GetSeed() const { return seed_; }
  /// Where a GPU draws for tensors that have no stream of their own; the CPU draws at once.
  void set_stream(Stream<Device>* stream) { stream_ = stream; }

  /// Uniform in [a, b): every element of `dst`. Throws umbra::Error unless a <= b, both finite.
  template <int dim>
  void SampleUniform(Tensor<Device, dim, DType>* dst, DType a = 0, DType b = 1) {
    Draw(*dst, uniform(dst->shape_, a, b));
  }
  /// Normal with mean `mu` and standard deviation `sigma`, by the method of Box and Muller: every element of `dst`.
  template <int dim>
  void SampleGaussian(Tensor<Device, dim, DType>* dst, DType mu = 0, DType sigma = 1) {
    Draw(*dst, gaussian(dst->shape_, mu, sigma));
  }
  /// A tensor of `shape` with uniform or normal elements, as an expression: nothing is stored, it is fused into a
  /// compiled kernel, and it can be evaluated any number of times, with the same result. Throws umbra::Error unless
  /// a <= b, both finite. mshadow's uniform and gaussian, which are stored.
  template <int dim>
  expr::RandomExp<detail::Uniform<DType>, DType, dim> uniform(const Shape<dim>& shape, DType a = 0, DType b = 1) {
    Require(std::isfinite(a) && std::isfinite(b) && a <= b, "Random: uniform numbers of [", a, ", ", b,
            "): two finite numbers in ascending order are expected");
    return Take(detail::Uniform<DType>{a, b, a == b ? a : std::nextafter(b, a)}, shape);
  }
  /// The same for a normal distribution, with any `mu` and `sigma`.
  template <int dim>
  expr::RandomExp<detail::Gaussian<DType>, DType, dim> gaussian(const Shape<dim>& shape, DType mu = 0,
                                                                DType sigma = 1) {
    return Take(detail::Gaussian<DType>{mu, sigma}, shape);
  }
  /// Brings the sub-tensors data[0], data[1], ..., of a vector the elements, into a random order, every order equally
  /// likely, and the same on every device, by the method of Fisher and Yates. Of any dtype. Umbra's own.
  template <int dim, typename T>
  void Shuffle(Tensor<Device, dim, T>* data) {
    expr::CheckTensor(*data);
    if constexpr (!Device::kDevCPU) {
      TensorContainer<cpu, 1, index_t> order(Shape1(data->size(0)));
      for (index_t i = 0; i < order.size(0); ++i) order[i] = i;
      Shuffle(static_cast<Tensor<cpu, 1, index_t>*>(&order),
              [](auto* o, index_t i, index_t j) { std::swap((*o)[i], (*o)[j]); });
      Reorder(*data, order);
    } else {
      Shuffle(data, [](Tensor<Device, dim, T>* t, index_t i, index_t j) {
        if constexpr (dim == 1) {
          std::swap(t->dptr_[i], t->dptr_[j]);
        } else {
          TensorContainer<Device, dim - 1, T> row(t->shape_.SubShape());
          Copy<dim - 1, T>(row, (*t)[i]);
          Copy<dim - 1, T>((*t)[i], (*t)[j]);
          Copy<dim - 1, T>((*t)[j], row);
        }
      });
    }
  }

 private:
  // Exchanges pairs of sub-tensors by swap(data, i, j), so that every order is equally likely.
  template <typename Data, typename Swap>
  void Shuffle(Data* data, const Swap& swap) {
    for (index_t i = data->size(0) - 1; i > 0; --i) {
      const double u = simd::random_uniform<double>(static_cast<simd::i64>(next_++), static_cast<simd::i64>(seed_));
      const auto j = static_cast<index_t>(u * static_cast<double>(i + 1));
      if (i != j) swap(data, i, j);
    }
  }
  // data[i] = data[order[i]], in the stream that Draw takes.
  template <int dim, typename T>
  void Reorder(const Tensor<Device, dim, T>& data, const Tensor<cpu, 1, index_t>& order) {
    if (data.shape_.Size() == 0) return;
    Stream<Device>* const stream = data.stream_ != nullptr ? data.stream_ : stream_;
    TensorContainer<Device, 1, index_t> there(order.shape_);
    Copy<1, index_t>(there, order, stream);
    const index_t width = dim == 1 ? 1 : data.shape_[dim - 1],
                  pitch = dim == 1 ? 1 : static_cast<index_t>(data.template MemSize<1>());
    const index_t parts = dim == 1 ? 1 : data.shape_.ProdShape(1, dim - 1);
    TensorContainer<Device, 2, T> reordered(Shape2(order.size(0), width));
    reordered.stream_ = stream;
    for (index_t k = 0; k < parts; ++k) {
      Tensor<Device, 2, T> part(data.dptr_ + k * data.stride_, reordered.shape_, pitch, stream);
      reordered = expr::take(static_cast<const Tensor<Device, 1, index_t>&>(there), part);
      Copy<2, T>(part, reordered, stream);
    }
  }
  template <int dim, typename E>
  void Draw(Tensor<Device, dim, DType> dst, const E& numbers) {
    if (dst.stream_ == nullptr) dst.stream_ = stream_;
    expr::MapExp<sv::saveto>(&dst, numbers);
  }
  template <typename Distribution, int dim>
  expr::RandomExp<Distribution, DType, dim> Take(const Distribution& distribution, const Shape<dim>& shape) {
    const std::uint64_t first = next_;
    next_ += static_cast<std::uint64_t>(shape.Size());
    return {distribution, shape, seed_, first};
  }

  std::uint64_t seed_ = 0, next_ = 0;  // the next number that nobody has drawn
  Stream<Device>* stream_ = nullptr;
};

}  // namespace umbra

#endif  // UMBRA_RANDOM_H_

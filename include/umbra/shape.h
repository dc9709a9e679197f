// Devices, static-rank shapes and the CPU's stream.
#ifndef UMBRA_SHAPE_H_
#define UMBRA_SHAPE_H_

#include <cstddef>
#include <ostream>

#include "umbra/dtype.h"

namespace umbra {

using default_real_t = float;

/// The host processor.
struct cpu {
  static constexpr bool kDevCPU = true;
  static constexpr int kDevMask = 1 << 0;
};

/// Extents of a tensor with `dimension` axes; axis 0 is the highest.
template <int dimension>
struct Shape {
  static constexpr int kDimension = dimension;
  static constexpr int kSubdim = dimension - 1;
  index_t shape_[dimension > 0 ? dimension : 1] = {};

  index_t& operator[](index_t i) { return shape_[i]; }
  const index_t& operator[](index_t i) const { return shape_[i]; }

  bool operator==(const Shape& other) const {
    for (int i = 0; i < dimension; ++i)
      if (shape_[i] != other.shape_[i]) return false;
    return true;
  }
  bool operator!=(const Shape& other) const { return !(*this == other); }

  /// Number of elements; 1 for rank 0. Throws umbra::Error if it overflows.
  std::size_t Size() const { return static_cast<std::size_t>(ProdShape(0, dimension)); }
  /// Product of the extents of axes [begin, end); 0 if one is 0, however large the others are. Throws
  /// umbra::Error if it overflows.
  index_t ProdShape(int begin, int end) const {
    index_t product = 1;
    bool overflow = false;
    for (int i = begin; i < end; ++i) {
      if (shape_[i] == 0) return 0;
      overflow = __builtin_mul_overflow(product, shape_[i], &product) || overflow;
    }
    if (overflow) throw Error(detail::Concat("the number of elements of shape ", *this, " overflows"));
    return product;
  }
  Shape<1> FlatTo1D() const {
    Shape<1> flat;
    flat[0] = ProdShape(0, dimension);
    return flat;
  }
  /// All axes but the lowest as one; a vector becomes a matrix of one row.
  Shape<2> FlatTo2D() const {
    Shape<2> flat;
    flat[0] = ProdShape(0, dimension - 1);
    flat[1] = shape_[dimension - 1];
    return flat;
  }
  /// Without axis 0.
  Shape<(dimension > 1 ? dimension - 1 : 1)> SubShape() const {
    static_assert(dimension > 1, "umbra: a shape of one axis has no sub-shape");
    Shape<dimension - 1> sub;
    for (int i = 1; i < dimension; ++i) sub[i - 1] = shape_[i];
    return sub;
  }
  /// Axes [begin, end).
  template <int begin, int end>
  Shape<end - begin> Slice() const {
    static_assert(0 <= begin && begin < end && end <= dimension, "umbra: Slice beyond the rank");
    Shape<end - begin> slice;
    for (int i = begin; i < end; ++i) slice[i - begin] = shape_[i];
    return slice;
  }

  /// A Python tuple: (3,) and (3,4).
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    out << '(';
    for (int i = 0; i < dimension; ++i) out << (i ? "," : "") << shape.shape_[i];
    return out << (dimension == 1 ? ",)" : ")");
  }
};

inline Shape<1> Shape1(index_t s0) { return {{s0}}; }
inline Shape<2> Shape2(index_t s0, index_t s1) { return {{s0, s1}}; }
inline Shape<3> Shape3(index_t s0, index_t s1, index_t s2) { return {{s0, s1, s2}}; }
inline Shape<4> Shape4(index_t s0, index_t s1, index_t s2, index_t s3) {
  return {{s0, s1, s2, s3}};
}
inline Shape<5> Shape5(index_t s0, index_t s1, index_t s2, index_t s3, index_t s4) {
  return {{s0, s1, s2, s3, s4}};
}

/// An order of computations on a device. Work on the CPU is done when a call returns.
template <typename Device>
struct Stream {
  void Wait() {}
  bool CheckIdle() { return true; }
  void CreateBlasHandle() {}
};

}  // namespace umbra

#endif  // UMBRA_SHAPE_H_

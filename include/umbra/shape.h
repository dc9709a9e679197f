// Shapes of static rank, as mshadow's Shape; extents are in elements.
#ifndef UMBRA_SHAPE_H_
#define UMBRA_SHAPE_H_

#include <cstddef>
#include <ostream>
#include <string>

#include "umbra/dtype.h"

namespace umbra {

/// The element type where none is named, as in mshadow.
using default_real_t = float;

/// Extents of a tensor with `dimension` axes; axis 0 is the highest.
template <int dimension>
struct Shape {
  static constexpr int kDimension = dimension;  ///< the rank
  static constexpr int kSubdim = dimension - 1;  ///< the rank of SubShape
  index_t shape_[dimension > 0 ? dimension : 1] = {};  ///< the extents, in elements

  /// Extent of axis i, which is not checked.
  index_t& operator[](index_t i) { return shape_[i]; }
  const index_t& operator[](index_t i) const { return shape_[i]; }

  /// Equal extents.
  bool operator==(const Shape& other) const {
    for (int i = 0; i < dimension; ++i)
      if (shape_[i] != other.shape_[i]) return false;
    return true;
  }
  bool operator!=(const Shape& other) const { return !(*this == other); }

  /// Number of elements; 1 for rank 0. Throws umbra::Error if it overflows or an extent is negative.
  std::size_t Size() const { return static_cast<std::size_t>(ProdShape(0, dimension)); }
  /// Product of the extents of axes [begin, end); 0 if one is 0, however large the others are. Throws
  /// umbra::Error if it overflows, an extent is negative, or the shape does not have the axes.
  index_t ProdShape(int begin, int end) const {
    if (begin < 0 || end > dimension)
      throw Error(
          detail::Concat("ProdShape(", begin, ", ", end, ") of shape ", *this, ": it has ", dimension, " axes"));
    index_t product = 1;
    bool overflow = false, negative = false, none = false;
    for (int i = begin; i < end; ++i) {
      negative = negative || shape_[i] < 0;
      none = none || shape_[i] == 0;
      overflow = __builtin_mul_overflow(product, shape_[i], &product) || overflow;
    }
    if (negative) throw Error(detail::Concat("shape ", *this, " has a negative extent"));
    if (none) return 0;
    if (overflow) throw Error(detail::Concat("the number of elements of shape ", *this, " overflows"));
    return product;
  }
  /// All axes as one. Throws umbra::Error as Size does.
  Shape<1> FlatTo1D() const {
    Shape<1> flat;
    flat[0] = ProdShape(0, dimension);
    return flat;
  }
  /// All axes but the lowest as one; a vector becomes a matrix of one row. Empty rows that are too many
  /// to be counted are none. Throws umbra::Error as ProdShape does.
  Shape<2> FlatTo2D() const {
    static_assert(dimension > 0, "umbra: a shape of rank 0 is no matrix");
    Shape<2> flat;
    index_t rows = 1;
    for (int i = 0; i < dimension - 1 && shape_[dimension - 1] == 0; ++i)
      if (__builtin_mul_overflow(rows, shape_[i], &rows)) return flat;
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
    for (int i = 0; i < dimension; ++i) out << (i ? "," : "") << std::to_string(shape.shape_[i]);
    return out << (dimension == 1 ? ",)" : ")");
  }
};

/// The shape of one to five extents, that of axis 0 first. mshadow's Shape1 to Shape5.
inline Shape<1> Shape1(index_t s0) { return {{s0}}; }
inline Shape<2> Shape2(index_t s0, index_t s1) { return {{s0, s1}}; }
inline Shape<3> Shape3(index_t s0, index_t s1, index_t s2) { return {{s0, s1, s2}}; }
inline Shape<4> Shape4(index_t s0, index_t s1, index_t s2, index_t s3) { return {{s0, s1, s2, s3}}; }
inline Shape<5> Shape5(index_t s0, index_t s1, index_t s2, index_t s3, index_t s4) { return {{s0, s1, s2, s3, s4}}; }

}  // namespace umbra

#endif  // UMBRA_SHAPE_H_

// The memory of a tensor: which bytes it is, whether it can be walked over, and its rows.
#ifndef UMBRA_REGION_H_
#define UMBRA_REGION_H_

#include <cstdint>

#include "umbra/device.h"
#include "umbra/error.h"
#include "umbra/shape.h"

namespace umbra {
template <typename Device, int dimension, typename DType>
struct Tensor;
template <typename Device, int dimension, typename DType>
class TensorContainer;
}  // namespace umbra

namespace umbra::expr {

/// The bytes of a tensor: `rows` rows of `width` bytes, `pitch` bytes from one to the next.
struct Region {
  const char* first;  ///< the lowest byte
  index_t rows, width, pitch;  ///< how many rows, and bytes: of a row, from one to the next

  /// Behind the last byte.
  const char* last() const { return rows == 0 ? first : first + (rows - 1) * pitch + width; }
  /// Have the two no byte in common? Rows that lie between each other's rows have none.
  bool Apart(const Region& other) const {
    if (width == 0 || other.width == 0) return true;
    if (last() <= other.first || other.last() <= first) return true;
    if (rows > 1 && other.rows > 1 && pitch != other.pitch) return false;
    const index_t period = rows > 1 ? pitch : other.pitch;
    if (period <= 0) return false;
    const index_t offset = ((first - other.first) % period + period) % period;
    return offset >= other.width && offset + width <= period;
  }
  /// Are the two the same elements at the same places?
  bool Same(const Region& other) const {
    return first == other.first && rows == other.rows && width == other.width && (rows == 1 || pitch == other.pitch);
  }
};

/// The memory that a tensor covers.
template <typename Device, int dim, typename DType>
inline Region RegionOf(const Tensor<Device, dim, DType>& t) {
  const Shape<2> flat = t.shape_.FlatTo2D();
  constexpr auto kBytes = static_cast<index_t>(sizeof(DType));
  const index_t pitch = dim == 1 ? flat[1] : t.stride_;
  return {reinterpret_cast<const char*>(t.dptr_), flat[0], flat[1] * kBytes, pitch * kBytes};
}

/// Throws umbra::Error unless `t` describes memory that can be walked over.
template <typename Device, int dim, typename DType>
inline void CheckHandle(const Tensor<Device, dim, DType>& t) {
  bool empty = false;
  for (int i = 0; i < dim; ++i) {
    Require(t.shape_[i] >= 0, "a tensor has a negative extent: shape ", t.shape_);
    empty = empty || t.shape_[i] == 0;
  }
  if (empty) return;
  Require(t.dptr_ != nullptr, "a tensor of shape ", t.shape_,
          " has no memory: call AllocSpace, or use TensorContainer");
  Require(reinterpret_cast<std::uintptr_t>(t.dptr_) % alignof(DType) == 0, "the data of a tensor of shape ", t.shape_,
          " are not aligned to their elements of ", sizeof(DType), " bytes");
  Require(dim == 1 || t.stride_ >= t.shape_[dim - 1], "a tensor of shape ", t.shape_, " has stride ", t.stride_,
          ": it must be at least the length of a row");
}
/// The same of what is about to be read or written, outside of its stream: what that has to do comes first.
template <typename Device, int dim, typename DType>
inline void CheckTensor(const Tensor<Device, dim, DType>& t) {
  umbra::detail::Settle(t.stream_);
  CheckHandle(t);
}

}  // namespace umbra::expr

namespace umbra::detail {

/// Calls body(y, p) with the first element p of each row y of a tensor; not at all if it has no element.
/// Throws umbra::Error as CheckTensor does.
template <typename Device, int dim, typename DType, typename Body>
inline void ForEachRow(const Tensor<Device, dim, DType>& t, Body body) {
  expr::CheckTensor(t);
  const Shape<2> flat = t.shape_.FlatTo2D();
  if (flat[1] == 0) return;
  for (index_t y = 0; y < flat[0]; ++y) body(y, t.dptr_ + (dim == 1 ? 0 : y * t.stride_));
}

}  // namespace umbra::detail

#endif  // UMBRA_REGION_H_

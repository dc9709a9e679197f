// Tensors as bytes: the shape as 32-bit unsigned numbers, then the elements row by row, as mshadow
// writes them.
#ifndef UMBRA_TENSOR_IO_H_
#define UMBRA_TENSOR_IO_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "umbra/tensor.h"

namespace umbra {

/// Writes `src` to `out`, which has Write(const void*, size_t). Throws umbra::Error for an extent
/// beyond 32 bits.
template <int dim, typename DType, typename Stream>
inline void SaveBinary(Stream& out, const Tensor<cpu, dim, DType>& src) {
  for (int d = 0; d < dim; ++d) {
    Require(src.shape_[d] >= 0 && src.shape_[d] <= std::numeric_limits<std::uint32_t>::max(),
            "SaveBinary: an extent of shape ", src.shape_, " does not fit 32 bits");
    const auto extent = static_cast<std::uint32_t>(src.shape_[d]);
    out.Write(&extent, sizeof extent);
  }
  const Shape<2> flat = src.shape_.FlatTo2D();
  for (index_t y = 0; y < flat[0]; ++y)
    out.Write(src.dptr_ + (dim == 1 ? 0 : y * src.stride_),
              static_cast<std::size_t>(flat[1]) * sizeof(DType));
}

/// Reads a tensor from `in`, which has size_t Read(void*, size_t). With `pre_alloc` the memory of `dst`
/// is used, and its shape must be the one that is read; else it is allocated row by row as the bytes
/// arrive, so that a false shape does not take memory that the input does not have. Throws umbra::Error
/// if the input ends early or the shape does not fit; `dst` is then as before.
template <int dim, typename DType, typename Stream>
inline void LoadBinary(Stream& in, Tensor<cpu, dim, DType>* dst, bool pre_alloc) {
  Shape<dim> shape;
  for (int d = 0; d < dim; ++d) {
    std::uint32_t extent = 0;
    Require(in.Read(&extent, sizeof extent) == sizeof extent, "LoadBinary: the input ends within the shape");
    shape[d] = extent;
  }
  const Shape<2> flat = shape.FlatTo2D();
  const std::size_t row = static_cast<std::size_t>(flat[1]) * sizeof(DType);
  const auto read_row = [&](void* to) {
    Require(in.Read(to, row) == row, "LoadBinary: the input ends within a tensor of shape ", shape);
  };
  if (pre_alloc) {
    Require(shape == dst->shape_, "LoadBinary: the input has shape ", shape, ", the tensor ", dst->shape_);
    for (index_t y = 0; y < flat[0]; ++y) read_row(dst->dptr_ + (dim == 1 ? 0 : y * dst->stride_));
    return;
  }
  std::vector<char> bytes;
  constexpr std::size_t kStep = 1 << 20;
  const std::size_t total = shape.Size() * sizeof(DType);
  while (bytes.size() < total) {
    const std::size_t begin = bytes.size(), step = std::min(kStep, total - begin);
    bytes.resize(begin + step);
    Require(in.Read(bytes.data() + begin, step) == step, "LoadBinary: the input ends within a tensor of shape ",
            shape);
  }
  Tensor<cpu, dim, DType> fresh(shape);
  AllocSpace(&fresh);
  for (index_t y = 0; y < flat[0]; ++y)
    if (row > 0)
      std::memcpy(fresh.dptr_ + (dim == 1 ? 0 : y * fresh.stride_),
                  bytes.data() + static_cast<std::size_t>(y) * row, row);
  fresh.stream_ = dst->stream_;
  *dst = fresh;
}

}  // namespace umbra

#endif  // UMBRA_TENSOR_IO_H_

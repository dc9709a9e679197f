// Tensors as bytes: the shape as 32-bit unsigned numbers, then the elements row by row, as mshadow writes them
// where its index_t has 32 bits. Elements have any of the ten dtypes; all is in the byte order of the machine.
#ifndef UMBRA_TENSOR_IO_H_
#define UMBRA_TENSOR_IO_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "umbra/tensor.h"

namespace umbra {

/// Writes `src` to `out`, which has Write(const void*, size_t in bytes). Throws umbra::Error for an extent
/// beyond 32 bits. mshadow's SaveBinary.
template <int dim, typename DType, typename Stream>
inline void SaveBinary(Stream& out, const Tensor<cpu, dim, DType>& src) {
  for (int d = 0; d < dim; ++d) {
    Require(src.shape_[d] >= 0 && src.shape_[d] <= std::numeric_limits<std::uint32_t>::max(),
            "SaveBinary: an extent of shape ", src.shape_, " does not fit 32 bits");
    const auto extent = static_cast<std::uint32_t>(src.shape_[d]);
    out.Write(&extent, sizeof extent);
  }
  detail::ForEachRow(src, [&](index_t, const DType* row) {
    out.Write(row, static_cast<std::size_t>(src.shape_[dim - 1]) * sizeof(DType));
  });
}

/// Reads a tensor from `in`, which has size_t Read(void*, size_t in bytes). With `pre_alloc` the memory of `dst`
/// is used, and its shape must be the one that is read; else it is allocated once the bytes are there, so
/// that a false shape does not take memory that the input does not have. Throws umbra::Error if the input
/// ends early or the shape does not fit; `dst` is then as before. mshadow's LoadBinary.
template <int dim, typename DType, typename Stream>
inline void LoadBinary(Stream& in, Tensor<cpu, dim, DType>* dst, bool pre_alloc) {
  Shape<dim> shape;
  for (int d = 0; d < dim; ++d) {
    std::uint32_t extent = 0;
    Require(in.Read(&extent, sizeof extent) == sizeof extent, "LoadBinary: the input ends within the shape");
    shape[d] = extent;
  }
  Require(!pre_alloc || shape == dst->shape_, "LoadBinary: the input has shape ", shape, ", the tensor ", dst->shape_);
  if (pre_alloc) expr::CheckTensor(*dst);
  std::size_t total = 0;
  Require(!__builtin_mul_overflow(shape.Size(), sizeof(DType), &total), "LoadBinary: a tensor of shape ", shape,
          " is larger than memory can be");
  std::vector<char> bytes;
  constexpr std::size_t kStep = 1 << 20;
  while (bytes.size() < total) {
    const std::size_t begin = bytes.size(), step = std::min(kStep, total - begin);
    bytes.resize(begin + step);
    Require(in.Read(bytes.data() + begin, step) == step, "LoadBinary: the input ends within a tensor of shape ", shape);
  }
  if (!pre_alloc) {
    Tensor<cpu, dim, DType> fresh(shape);
    AllocSpace(&fresh);
    fresh.stream_ = dst->stream_;
    *dst = fresh;
  }
  const char* next = bytes.data();
  const std::size_t row_bytes = static_cast<std::size_t>(shape[dim - 1]) * sizeof(DType);
  detail::ForEachRow(*dst, [&](index_t, DType* row) {
    std::memcpy(row, next, row_bytes);
    next += row_bytes;
  });
}
/// The same of a tensor of a GPU, by way of the host: of what it holds once its stream has come so far.
template <int dim, typename DType, typename Stream>
inline void SaveBinary(Stream& out, const Tensor<gpu, dim, DType>& src) {
  TensorContainer<cpu, dim, DType> host(src.shape_);
  Copy<dim, DType>(host, src, src.stream_);
  SaveBinary<dim, DType>(out, host);
}
/// The same into a tensor of a GPU, by way of the host, in the order of its stream. Throws umbra::Error also if the
/// driver refuses; `dst` has then the memory that it had.
template <int dim, typename DType, typename Stream>
inline void LoadBinary(Stream& in, Tensor<gpu, dim, DType>* dst, bool pre_alloc) {
  TensorContainer<cpu, dim, DType> host;
  if (pre_alloc) host.Resize(dst->shape_);
  LoadBinary(in, static_cast<Tensor<cpu, dim, DType>*>(&host), pre_alloc);
  if (pre_alloc) return Copy<dim, DType>(*dst, host, dst->stream_);
  Tensor<gpu, dim, DType> fresh(nullptr, host.shape_, dst->stream_);
  AllocSpace(&fresh);
  try {
    Copy<dim, DType>(fresh, host, dst->stream_);
  } catch (...) {
    FreeSpace(&fresh);
    throw;
  }
  *dst = fresh;
}
/// The same into a container, which takes the shape that is read unless `pre_alloc`.
template <int dim, typename DType, typename Stream, typename Device>
inline void LoadBinary(Stream& in, TensorContainer<Device, dim, DType>* dst, bool pre_alloc) {
  if (pre_alloc) return LoadBinary(in, static_cast<Tensor<Device, dim, DType>*>(dst), true);
  TensorContainer<cpu, dim, DType> host;
  LoadBinary(in, static_cast<Tensor<cpu, dim, DType>*>(&host), false);
  dst->Resize(host.shape_);
  if constexpr (Device::kDevCPU) Copy<dim, DType>(*dst, host);
  else Copy<dim, DType>(*dst, host, dst->stream_);
}

}  // namespace umbra

#endif  // UMBRA_TENSOR_IO_H_

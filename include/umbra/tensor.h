// Tensors as handles of memory with row pitch, and their eager expressions.
#ifndef UMBRA_TENSOR_H_
#define UMBRA_TENSOR_H_

#include <cstdint>
#include <cstring>

#include "umbra/expression.h"
#include "umbra/packet.h"

namespace umbra {

/// Base of what holds a tensor's memory and can be assigned to.
template <typename Container, typename Device, int dimension, typename DType>
struct TRValue : expr::RValueExp<Container, DType> {};

/// A handle of `dimension` axes: element (i0, ..., x) lies at dptr_[y * stride_ + x] where y counts
/// the rows. It does not own memory; copying it copies the handle, assigning an expression writes
/// the elements.
template <typename Device, int dimension, typename DType = default_real_t>
struct Tensor : TRValue<Tensor<Device, dimension, DType>, Device, dimension, DType> {
  static constexpr bool kDevCPU = Device::kDevCPU;
  static constexpr int kSubdim = dimension - 1;
  static constexpr int kDimension = dimension;

  DType* dptr_ = nullptr;
  Shape<dimension> shape_;
  index_t stride_ = 0;  ///< elements from one row to the next
  Stream<Device>* stream_ = nullptr;

  Tensor() = default;
  Tensor(const Tensor&) = default;
  explicit Tensor(const Shape<dimension>& shape) : shape_(shape), stride_(shape[kSubdim]) {}
  Tensor(DType* dptr, const Shape<dimension>& shape, Stream<Device>* stream = nullptr)
      : dptr_(dptr), shape_(shape), stride_(shape[kSubdim]), stream_(stream) {}
  Tensor(DType* dptr, const Shape<dimension>& shape, index_t stride, Stream<Device>* stream)
      : dptr_(dptr), shape_(shape), stride_(stride), stream_(stream) {}

  void set_stream(Stream<Device>* stream) { stream_ = stream; }
  /// Elements of memory from `startdim` on, padding included.
  template <int startdim>
  std::size_t MemSize() const {
    std::size_t size = static_cast<std::size_t>(stride_);
    for (int i = startdim; i < kSubdim; ++i) size *= static_cast<std::size_t>(shape_[i]);
    return size;
  }
  std::size_t MSize() const { return MemSize<0>(); }
  index_t size(index_t i) const { return shape_[i]; }
  /// No padding between rows?
  bool CheckContiguous() const { return shape_[kSubdim] == stride_; }

  /// The elements as one vector; throws umbra::Error if rows are padded.
  Tensor<Device, 1, DType> FlatTo1D() const {
    Require(CheckContiguous() || dimension == 1, "FlatTo1D of a tensor with padded rows: shape ",
            shape_, ", stride ", stride_, "; use FlatTo2D");
    return Tensor<Device, 1, DType>(dptr_, shape_.FlatTo1D(), shape_.FlatTo1D()[0], stream_);
  }
  Tensor<Device, 2, DType> FlatTo2D() const {
    return Tensor<Device, 2, DType>(dptr_, shape_.FlatTo2D(), stride_, stream_);
  }
  /// Rows [begin, end) of axis 0. Throws umbra::Error if the tensor does not have them.
  Tensor Slice(index_t begin, index_t end) const {
    Require(0 <= begin && begin <= end && end <= shape_[0], "Slice(", begin, ", ", end,
            ") of a tensor of shape ", shape_, ": the range must lie within axis 0");
    Shape<dimension> shape = shape_;
    shape[0] = end - begin;
    if constexpr (dimension == 1)
      return Tensor(dptr_ + begin, shape, shape[0], stream_);
    else
      return Tensor(dptr_ + static_cast<index_t>(MemSize<1>()) * begin, shape, stride_, stream_);
  }
  /// The sub-tensor, or the element of a vector, at index `i` of axis 0.
  decltype(auto) operator[](index_t i) const {
    if constexpr (dimension == 1)
      return static_cast<DType&>(dptr_[i]);
    else
      return Tensor<Device, kSubdim, DType>(dptr_ + static_cast<index_t>(MemSize<1>()) * i,
                                            shape_.SubShape(), stride_, stream_);
  }

  Tensor& operator=(const Tensor& other) = default;
  Tensor& operator=(DType s) { return this->__assign(s); }
  template <typename E, typename EDType, int etype>
  Tensor& operator=(const expr::Exp<E, EDType, etype>& exp) {
    return this->__assign(exp);
  }
};

/// Allocates a tensor's memory, rows padded to 64 bytes if `pad`; FreeSpace gives it back. Throws
/// umbra::Error if an extent is negative, the size overflows or memory runs out.
template <int dim, typename DType>
inline void AllocSpace(Tensor<cpu, dim, DType>* tensor, bool pad = true) {
  for (int i = 0; i < dim; ++i)
    Require(tensor->shape_[i] >= 0, "a tensor has a negative extent: shape ", tensor->shape_);
  const bool padded = pad && dim > 1;
  const Shape<2> flat = padded ? tensor->shape_.FlatTo2D() : tensor->shape_.FlatTo1D().FlatTo2D();
  std::size_t row = 0, pitch = 0;
  const bool overflow =
      __builtin_mul_overflow(static_cast<std::size_t>(flat[1]), sizeof(DType), &row);
  Require(!overflow, "a tensor of shape ", tensor->shape_, " is larger than memory can be");
  tensor->dptr_ =
      static_cast<DType*>(packet::AlignedMallocPitch(&pitch, row, static_cast<std::size_t>(flat[0])));
  tensor->stride_ = padded ? static_cast<index_t>(pitch / sizeof(DType)) : tensor->shape_[dim - 1];
}
template <int dim, typename DType>
inline void FreeSpace(Tensor<cpu, dim, DType>* tensor) {
  packet::AlignedFree(tensor->dptr_);
  tensor->dptr_ = nullptr;
}
/// A new tensor with every element `initial`; the caller frees it.
template <typename Device, typename DType, int dim>
inline Tensor<Device, dim, DType> NewTensor(const Shape<dim>& shape, DType initial,
                                            bool pad = true) {
  Tensor<Device, dim, DType> tensor(shape);
  AllocSpace(&tensor, pad);
  tensor = initial;
  return tensor;
}
/// Copies elements between tensors of one shape.
template <int dim, typename DType>
inline void Copy(Tensor<cpu, dim, DType> dst, const Tensor<cpu, dim, DType>& src,
                 Stream<cpu>* = nullptr) {
  Require(dst.shape_ == src.shape_, "Copy: the shapes differ: ", dst.shape_, " and ", src.shape_);
  const Shape<2> flat = dst.shape_.FlatTo2D();
  for (index_t y = 0; y < flat[0]; ++y)
    if (flat[1] > 0)
      std::memmove(dst.dptr_ + (dim == 1 ? 0 : y * dst.stride_),
                   src.dptr_ + (dim == 1 ? 0 : y * src.stride_),
                   static_cast<std::size_t>(flat[1]) * sizeof(DType));
}

/// A tensor that owns its memory.
template <typename Device, int dimension, typename DType = default_real_t>
class TensorContainer : public Tensor<Device, dimension, DType> {
 public:
  using Base = Tensor<Device, dimension, DType>;
  explicit TensorContainer(bool pad = true) : pad_(pad) {}
  explicit TensorContainer(const Shape<dimension>& shape, bool pad = true) : pad_(pad) {
    Resize(shape);
  }
  TensorContainer(const Shape<dimension>& shape, DType initial, bool pad = true)
      : TensorContainer(shape, pad) {
    *this = initial;
  }
  TensorContainer(const TensorContainer& other) : Base(), pad_(other.pad_) {
    Resize(other.shape_);
    Copy<dimension, DType>(*this, other);
  }
  TensorContainer(TensorContainer&& other) noexcept : Base(other), pad_(other.pad_) {
    static_cast<Base&>(other) = Base();
  }
  ~TensorContainer() { FreeSpace(static_cast<Base*>(this)); }

  /// Gives the tensor a shape; its elements are then undefined unless the shape was the same.
  void Resize(const Shape<dimension>& shape) {
    if (this->dptr_ != nullptr && shape == this->shape_) return;
    Base fresh(shape);
    AllocSpace(&fresh, pad_);
    FreeSpace(static_cast<Base*>(this));
    fresh.stream_ = this->stream_;
    static_cast<Base&>(*this) = fresh;
  }
  /// Gives the tensor a shape and every element a value.
  void Resize(const Shape<dimension>& shape, DType initial) {
    Resize(shape);
    this->__assign(initial);
  }
  TensorContainer& operator=(const TensorContainer& other) {
    Resize(other.shape_);
    Copy<dimension, DType>(*this, other);
    return *this;
  }
  TensorContainer& operator=(DType s) {
    this->__assign(s);
    return *this;
  }
  template <typename E, typename EDType, int etype>
  TensorContainer& operator=(const expr::Exp<E, EDType, etype>& exp) {
    this->__assign(exp);
    return *this;
  }

 private:
  bool pad_;
};

}  // namespace umbra

#include "umbra/dot.h"
#include "umbra/expr_engine.h"
#include "umbra/extension/broadcast.h"
#include "umbra/extension/index_map.h"
#include "umbra/extension/reduce.h"
#if defined(UMBRA_JIT_EXPRESSIONS)
#include "umbra/jit.h"
#endif

#endif  // UMBRA_TENSOR_H_

// Tensors as handles of memory with row pitch, as mshadow's Tensor, and their eager expressions.
#ifndef UMBRA_TENSOR_H_
#define UMBRA_TENSOR_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "umbra/device.h"
#include "umbra/elementwise.h"
#include "umbra/expression.h"
#include "umbra/packet.h"
#include "umbra/region.h"

namespace umbra {

/// Base of what holds a tensor's memory and can be assigned to.
template <typename Container, typename Device, int dimension, typename DType>
struct TRValue : expr::RValueExp<Container, DType> {};

/// A handle of `dimension` axes: element (i0, ..., x) lies at dptr_[y * stride_ + x] where y counts
/// the rows. It does not own memory; copying it copies the handle, assigning an expression writes
/// the elements.
template <typename Device, int dimension, typename DType = default_real_t>
struct Tensor : TRValue<Tensor<Device, dimension, DType>, Device, dimension, DType> {
  static constexpr bool kDevCPU = Device::kDevCPU;  ///< whether memory is the host's
  static constexpr int kSubdim = dimension - 1;  ///< the rank of a sub-tensor
  static constexpr int kDimension = dimension;  ///< the rank

  DType* dptr_ = nullptr;  ///< the first element; null if there is no memory
  Shape<dimension> shape_;  ///< extents, in elements
  index_t stride_ = 0;  ///< elements from one row to the next
  Stream<Device>* stream_ = nullptr;  ///< the order in which assignments run; null: at once, on a GPU after all streams

  Tensor() = default;
  Tensor(const Tensor&) = default;
  /// A shape without memory, for AllocSpace.
  Tensor(const Shape<dimension>& shape) : shape_(shape), stride_(shape[kSubdim]) {}
  Tensor(DType* dptr, const Shape<dimension>& shape, Stream<Device>* stream = nullptr)
      : dptr_(dptr),
        shape_(shape),
        stride_(shape[kSubdim]),
        stream_(stream) {}
  Tensor(DType* dptr, const Shape<dimension>& shape, index_t stride, Stream<Device>* stream)
      : dptr_(dptr),
        shape_(shape),
        stride_(stride),
        stream_(stream) {}

  /// Assignments to this handle run in `stream` from now on.
  void set_stream(Stream<Device>* stream) { stream_ = stream; }
  /// Elements of memory from axis `startdim` on, padding between rows included; a vector has none. Throws
  /// umbra::Error if the number overflows.
  template <int startdim>
  std::size_t MemSize() const {
    if constexpr (dimension == 1) return static_cast<std::size_t>(shape_[0]);
    Shape<dimension> padded = shape_;
    padded[kSubdim] = stride_;
    return static_cast<std::size_t>(padded.ProdShape(startdim, dimension));
  }
  /// Elements of memory, padding between rows included. Throws umbra::Error as MemSize does.
  std::size_t MSize() const { return MemSize<0>(); }
  /// Extent of axis `i`; of a vector its length, whatever `i` is.
  index_t size(index_t i) const { return shape_[dimension == 1 ? 0 : i]; }
  /// No padding between rows?
  bool CheckContiguous() const { return dimension == 1 || shape_[kSubdim] == stride_; }

  /// The elements as one vector; throws umbra::Error if rows are padded.
  Tensor<Device, 1, DType> FlatTo1D() const {
    Require(CheckContiguous(), "FlatTo1D of a tensor with padded rows: shape ", shape_, ", stride ", stride_,
            "; use FlatTo2D");
    return Tensor<Device, 1, DType>(dptr_, shape_.FlatTo1D(), shape_.FlatTo1D()[0], stream_);
  }
  /// All axes but the lowest as one; rows may be padded. A vector becomes a matrix of one row. Throws umbra::Error as
  /// Shape::FlatTo2D does.
  Tensor<Device, 2, DType> FlatTo2D() const {
    return Tensor<Device, 2, DType>(dptr_, shape_.FlatTo2D(), stride_, stream_);
  }
  /// Rows [begin, end) of axis 0. Throws umbra::Error if the tensor does not have them.
  Tensor Slice(index_t begin, index_t end) const {
    Require(0 <= begin && begin <= end && end <= shape_[0], "Slice(", begin, ", ", end, ") of a tensor of shape ",
            shape_, ": the range must lie within axis 0");
    Shape<dimension> shape = shape_;
    shape[0] = end - begin;
    if constexpr (dimension == 1) return Tensor(dptr_ + begin, shape, shape[0], stream_);
    else return Tensor(dptr_ + static_cast<index_t>(MemSize<1>()) * begin, shape, stride_, stream_);
  }
  /// The sub-tensor, or the element of a vector, at index `i` of axis 0, which is not checked.
  decltype(auto) operator[](index_t i) const {
    if constexpr (dimension == 1) return static_cast<DType&>(dptr_[i]);
    else
      return Tensor<Device, kSubdim, DType>(dptr_ + static_cast<index_t>(MemSize<1>()) * i, shape_.SubShape(), stride_,
                                            stream_);
  }

  Tensor& operator=(const Tensor& other) = default;
  /// Every element `s`, or the elements of `exp`, whose shape must be this one's; see ExpEngine::Eval.
  Tensor& operator=(DType s) { return this->__assign(s); }
  template <typename E, typename EDType, int etype>
  Tensor& operator=(const expr::Exp<E, EDType, etype>& exp) {
    return this->__assign(exp);
  }
};

/// Allocates a tensor's memory, rows padded to 64 bytes (on a GPU as it prefers) if `pad`; FreeSpace
/// gives it back. On a CPU, Linux is asked to put 4 MiB and more on large pages. Throws
/// umbra::Error if an extent is negative, the size overflows or memory runs out.
template <typename Device, int dim, typename DType>
inline void AllocSpace(Tensor<Device, dim, DType>* tensor, bool pad = true) {
  (void)tensor->shape_.Size();
  const bool padded = pad && dim > 1;
  const Shape<2> flat = padded ? tensor->shape_.FlatTo2D() : tensor->shape_.FlatTo1D().FlatTo2D();
  std::size_t row = 0, pitch = 0;
  const bool overflow = flat[1] < 0 || __builtin_mul_overflow(static_cast<std::size_t>(flat[1]), sizeof(DType), &row);
  Require(!overflow, "a tensor of shape ", tensor->shape_, " is larger than memory can be");
  const auto rows = static_cast<std::size_t>(flat[0]);
  void* memory;
  if constexpr (Device::kDevCPU) memory = packet::AlignedMallocPitch(&pitch, row, rows);
  else memory = cuda::Allocate(row, rows, &pitch);
  tensor->dptr_ = static_cast<DType*>(memory);
  tensor->stride_ = padded ? static_cast<index_t>(pitch / sizeof(DType)) : tensor->shape_[dim - 1];
}
/// Gives back what AllocSpace gave `tensor`, whose pointer is null afterwards. What waits in the thread's fused
/// streams, and in an asynchronous one that the tensor has, is done before; an error of it is for the next Wait. What
/// other threads gave to fused streams has to be waited for before.
template <typename Device, int dim, typename DType>
inline void FreeSpace(Tensor<Device, dim, DType>* tensor) {
  if (tensor->dptr_ != nullptr) detail::FinishWaiting(true);
  if constexpr (Device::kDevCPU) {
    if (tensor->dptr_ != nullptr && tensor->stream_ != nullptr) detail::AsynchronousStreams::Finish(tensor->stream_);
    packet::AlignedFree(tensor->dptr_);
  } else {
    cuda::Free(tensor->dptr_);
  }
  tensor->dptr_ = nullptr;
}
/// Copies elements between tensors of one shape, which may overlap, in the order of `stream`; done on
/// return without one. Throws umbra::Error if the shapes differ or one has no memory.
template <int dim, typename DType>
inline void Copy(Tensor<cpu, dim, DType> dst, const Tensor<cpu, dim, DType>& src, Stream<cpu>* stream = nullptr) {
  if (detail::IsAsynchronous(stream)) {
    stream->Submit([dst, src] { Copy(dst, src); });
    return;
  }
  detail::Settle(stream);
  Require(dst.shape_ == src.shape_, "Copy: the shapes differ: ", dst.shape_, " and ", src.shape_);
  expr::CheckTensor(dst);
  expr::CheckTensor(src);
  const expr::Region to = expr::RegionOf(dst), from = expr::RegionOf(src);
  if (to.width == 0) return;
  std::unique_ptr<char[]> rows;  // rows at different distances, of which one may lie on two others
  const char* first = from.first;
  index_t pitch = from.pitch;
  if (!to.Apart(from) && to.pitch != from.pitch) {
    rows.reset(new char[static_cast<std::size_t>(from.rows * from.width)]);
    for (index_t y = 0; y < from.rows; ++y)
      std::memcpy(rows.get() + y * from.width, from.first + y * from.pitch, static_cast<std::size_t>(from.width));
    first = rows.get();
    pitch = from.width;
  }
  const bool backwards = to.first > from.first;
  for (index_t k = 0; k < to.rows; ++k) {
    const index_t y = backwards ? to.rows - 1 - k : k;
    std::memmove(reinterpret_cast<char*>(dst.dptr_) + y * to.pitch, first + y * pitch,
                 static_cast<std::size_t>(to.width));
  }
}

namespace detail {
template <typename Dst, typename Src, int dim, typename DType>
inline void CopyBetween(cuda::CopyKind kind, const Tensor<Dst, dim, DType>& dst, const Tensor<Src, dim, DType>& src,
                        Stream<gpu>* stream) {
  Require(dst.shape_ == src.shape_, "Copy: the shapes differ: ", dst.shape_, " and ", src.shape_);
  expr::CheckTensor(dst);
  expr::CheckTensor(src);
  const expr::Region to = expr::RegionOf(dst), from = expr::RegionOf(src);
  if (to.width == 0 || to.rows == 0) return;
  cuda::Copy(kind, dst.dptr_, static_cast<std::size_t>(to.pitch), src.dptr_, static_cast<std::size_t>(from.pitch),
             static_cast<std::size_t>(to.width), static_cast<std::size_t>(to.rows), Stream<gpu>::GetStream(stream));
}
}  // namespace detail

/// Copies between host and devices, or among devices, in the order of `stream`; done on return without one. Pinned
/// host memory (cuda::AllocatePinned) must stay as it is until the stream has come that far; see cuda::Copy.
/// Throws umbra::Error if the shapes differ, one has no memory, or the driver refuses.
template <int dim, typename DType>
inline void Copy(Tensor<gpu, dim, DType> dst, const Tensor<cpu, dim, DType>& src, Stream<gpu>* stream = nullptr) {
  detail::CopyBetween(cuda::CopyKind::kHostToDevice, dst, src, stream);
}
template <int dim, typename DType>
inline void Copy(Tensor<cpu, dim, DType> dst, const Tensor<gpu, dim, DType>& src, Stream<gpu>* stream = nullptr) {
  detail::CopyBetween(cuda::CopyKind::kDeviceToHost, dst, src, stream);
}
template <int dim, typename DType>
inline void Copy(Tensor<gpu, dim, DType> dst, const Tensor<gpu, dim, DType>& src, Stream<gpu>* stream = nullptr) {
  detail::CopyBetween(cuda::CopyKind::kDeviceToDevice, dst, src, stream);
}

namespace detail {
/// Every element `value`; of a GPU's tensor by a copy from the host.
template <typename Device, int dim, typename DType>
inline void Fill(Tensor<Device, dim, DType>* tensor, DType value) {
  if constexpr (Device::kDevCPU) {
    ForEachRow(*tensor, [&](index_t, DType* row) { std::fill_n(row, tensor->shape_[dim - 1], value); });
  } else {
    Tensor<cpu, dim, DType> host(tensor->shape_);
    AllocSpace(&host);
    const std::unique_ptr<DType, void (*)(void*)> owner(host.dptr_, packet::AlignedFree);
    host = value;
    Copy(*tensor, host);
  }
}
}  // namespace detail

/// A new tensor with every element `initial`; the caller frees it by FreeSpace. Throws umbra::Error as AllocSpace does,
/// or as the assignment of a number does, and has no memory then. mshadow's NewTensor.
template <typename Device, typename DType, int dim>
inline Tensor<Device, dim, DType> NewTensor(const Shape<dim>& shape, DType initial, bool pad = true,
                                            Stream<Device>* stream = nullptr) {
  Tensor<Device, dim, DType> tensor(shape);
  tensor.stream_ = stream;
  AllocSpace(&tensor, pad);
  try {
    detail::Fill(&tensor, initial);
  } catch (...) {
    FreeSpace(&tensor);
    throw;
  }
  return tensor;
}

/// A tensor that owns its memory.
template <typename Device, int dimension, typename DType = default_real_t>
class TensorContainer : public Tensor<Device, dimension, DType> {
 public:
  using Base = Tensor<Device, dimension, DType>;
  /// No memory yet; rows will be padded if `pad`.
  explicit TensorContainer(bool pad = true) : pad_(pad) {}
  explicit TensorContainer(const Shape<dimension>& shape) : TensorContainer() { Resize(shape); }
  TensorContainer(const Shape<dimension>& shape, DType initial, bool pad = true) : TensorContainer(pad) {
    Resize(shape, initial);
  }
  /// Does not compile: was it `initial` or `pad`?
  template <typename Bool, std::enable_if_t<std::is_same_v<Bool, bool> && !std::is_same_v<DType, bool>, int> = 0>
  TensorContainer(const Shape<dimension>&, Bool) {
    static_assert(!std::is_same_v<Bool, bool>,
                  "umbra: a bool alone is neither an element nor pad: write TensorContainer(shape, initial, pad)");
  }
  TensorContainer(const TensorContainer& other) : TensorContainer(other.pad_) { *this = other; }
  TensorContainer(TensorContainer&& other) noexcept : Base(other), pad_(other.pad_) {
    static_cast<Base&>(other) = Base();
  }
  ~TensorContainer() { FreeSpace(static_cast<Base*>(this)); }

  /// Whether rows are padded from the next allocation on.
  void set_pad(bool pad) { pad_ = pad; }
  /// Frees the memory; the shape is then all zeros.
  void Release() {
    FreeSpace(static_cast<Base*>(this));
    this->shape_ = {};
    this->stride_ = 0;
  }

  /// Gives the tensor a shape; its elements are then undefined unless the shape was the same. Throws umbra::Error as
  /// AllocSpace does, and the tensor is as it was.
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
    detail::Fill(static_cast<Base*>(this), initial);
  }
  /// Copies shape, elements and stream; of a tensor without memory (moved from, say) there are none.
  TensorContainer& operator=(const TensorContainer& other) {
    if (this == &other) return *this;
    detail::Settle(this->stream_);
    this->stream_ = other.stream_;
    if (other.dptr_ == nullptr) {
      Release();
      return *this;
    }
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
#include "umbra/extension/complex.h"
#include "umbra/extension/index_map.h"
#include "umbra/extension/reduce.h"
#include "umbra/extension/target.h"
#include "umbra/extension/window.h"
#include "umbra/kernel.h"
#include "umbra/layout.h"
#include "umbra/random.h"
#include "umbra/tensor_functions.h"
#include "umbra/tensor_io.h"
#if defined(UMBRA_JIT_EXPRESSIONS)
#include "umbra/jit.h"
#endif

#endif  // UMBRA_TENSOR_H_

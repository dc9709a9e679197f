// Tensors whose rank, device and element type are known at run time, as mshadow's TBlob.
#ifndef UMBRA_TBLOB_H_
#define UMBRA_TBLOB_H_

#include <algorithm>
#include <utility>

#include "umbra/data_type.h"
#include "umbra/tensor.h"
#include "umbra/tshape.h"

namespace umbra {

/// A handle of memory of any rank, device and element type, as mshadow's TBlob. It owns nothing and
/// computes nothing; `get` and its relatives make tensors of it. Rows (the last dimension) lie
/// `stride_` elements apart. Every conversion checks device, element type and shape and throws
/// umbra::Error that names both sides. Unlike the original, a blob may have rank 0: then it has one
/// element, or none if it has no memory either, as a default blob and one that was moved from.
class TBlob {
 public:
  /// The first element; may be null.
  void* dptr_ = nullptr;
  /// Extents, in elements.
  TShape shape_;
  /// Elements from one row to the next.
  index_t stride_ = 0;
  /// `Device::kDevMask` of the memory's device.
  int dev_mask_ = cpu::kDevMask;
  /// Element type, one of TypeFlag.
  int type_flag_ = DataType<default_real_t>::kFlag;

  /// Rank 0 on the CPU, without memory, of default_real_t.
  TBlob() = default;
  /// Compact memory on the device with `dev_mask` (cpu::kDevMask for the CPU). Throws umbra::Error
  /// for a negative extent.
  template <typename DType>
  TBlob(DType* dptr, const TShape& shape, int dev_mask) : TBlob(dptr, shape, dev_mask, DataType<DType>::kFlag) {}
  /// Compact memory of the element type `type_flag`, whatever the pointer's; `dev_id` counts the
  /// devices with that mask. Throws umbra::Error for a negative extent or a number that is no flag.
  TBlob(void* dptr, const TShape& shape, int dev_mask, int type_flag, int dev_id = 0)
      : dptr_(dptr),
        shape_(shape),
        stride_(shape.ndim() == 0 ? 1 : shape[shape.ndim() - 1]),
        dev_mask_(dev_mask),
        type_flag_(type_flag),
        dev_id_(dev_id) {
    (void)SizeOfFlag(type_flag);
    for (const index_t extent : shape_) Require(extent >= 0, "TBlob: shape ", shape_, " has a negative extent");
  }
  /// A handle of the same memory.
  TBlob(const TBlob&) = default;
  /// A handle of the same memory.
  TBlob& operator=(const TBlob&) = default;
  /// The handle of `other`, which is then as a default blob.
  TBlob(TBlob&& other) noexcept { *this = std::move(other); }
  /// The handle of `other`, which is then as a default blob, unless it is this one.
  TBlob& operator=(TBlob&& other) noexcept {
    dptr_ = std::exchange(other.dptr_, nullptr);
    shape_ = std::move(other.shape_);
    stride_ = std::exchange(other.stride_, 0);
    dev_mask_ = std::exchange(other.dev_mask_, cpu::kDevMask);
    type_flag_ = std::exchange(other.type_flag_, DataType<default_real_t>::kFlag);
    dev_id_ = std::exchange(other.dev_id_, 0);
    return *this;
  }
  /// The memory, shape and row pitch of a tensor.
  template <typename Device, int dim, typename DType>
  TBlob(const Tensor<Device, dim, DType>& src) {  // NOLINT: mirrors the original
    *this = src;
  }
  /// The memory, shape and row pitch of a tensor.
  template <typename Device, int dim, typename DType>
  TBlob& operator=(const Tensor<Device, dim, DType>& src) {
    dptr_ = src.dptr_;
    shape_ = src.shape_;
    stride_ = src.stride_;
    dev_mask_ = Device::kDevMask;
    dev_id_ = Device::kDevCPU ? 0 : cuda::CurrentDevice();
    type_flag_ = DataType<DType>::kFlag;
    return *this;
  }

  /// `Device::kDevMask` of the memory's device.
  int dev_mask() const { return dev_mask_; }
  /// Which of the devices with that mask, from 0.
  int dev_id() const { return dev_id_; }
  /// Element type, one of TypeFlag.
  int type_flag() const { return type_flag_; }
  /// The rank.
  int ndim() const { return static_cast<int>(shape_.ndim()); }
  /// Extent of dimension `i`; checked in debug builds.
  index_t size(index_t i) const { return shape_[i]; }
  /// Number of elements. Throws umbra::Error if it overflows.
  index_t Size() const { return ndim() == 0 && dptr_ == nullptr ? 0 : static_cast<index_t>(shape_.Size()); }
  /// No padding between rows? True for a single row of any pitch, and for no element, too, unlike in
  /// the original. Never throws.
  bool CheckContiguous() const noexcept {
    if (shape_.ndim() == 0) return true;
    const index_t* const row = shape_.end() - 1;
    return *row == stride_ || std::count(shape_.begin(), row, 1) == row - shape_.begin() ||
           std::find(shape_.begin(), shape_.end(), 0) != shape_.end();
  }

  /// The first element as DType. Throws umbra::Error if the element type is another.
  template <typename DType>
  DType* dptr() const {
    CheckType<DType>("dptr");
    return static_cast<DType*>(dptr_);
  }
  /// As a tensor of the same shape and row pitch. Throws umbra::Error if device, element type or
  /// rank differ.
  template <typename Device, int dim, typename DType>
  Tensor<Device, dim, DType> get(Stream<Device>* stream = nullptr) const {
    CheckDevice<Device>("get");
    CheckType<DType>("get");
    return Tensor<Device, dim, DType>(static_cast<DType*>(dptr_), shape_.get<dim>(), stride_, stream);
  }
  /// As a compact tensor of another shape of as many elements. Throws umbra::Error if device,
  /// element type or number of elements differ, if an extent is negative, or if rows are padded.
  template <typename Device, int dim, typename DType>
  Tensor<Device, dim, DType> get_with_shape(const Shape<dim>& shape, Stream<Device>* stream = nullptr) const {
    CheckDevice<Device>("get_with_shape");
    CheckType<DType>("get_with_shape");
    Require(CheckContiguous(), "TBlob.get_with_shape: rows of shape ", shape_, " lie ", stride_,
            " elements apart; copy it to dense memory first");
    const auto elements = static_cast<index_t>(TShape(shape).Size());
    Require(elements == Size(), "TBlob.get_with_shape: shape ", shape, " has ", elements,
            " elements, the blob of shape ", shape_, " has ", Size());
    return Tensor<Device, dim, DType>(static_cast<DType*>(dptr_), shape, shape[dim - 1], stream);
  }
  /// All elements as a vector; errors as of get_with_shape.
  template <typename Device, typename DType>
  Tensor<Device, 1, DType> FlatTo1D(Stream<Device>* stream = nullptr) const {
    return get_with_shape<Device, 1, DType>(Shape1(Size()), stream);
  }
  /// All dimensions but the last as one; rows may be padded. Throws umbra::Error if device or
  /// element type differ.
  template <typename Device, typename DType>
  Tensor<Device, 2, DType> FlatTo2D(Stream<Device>* stream = nullptr) const {
    CheckDevice<Device>("FlatTo2D");
    CheckType<DType>("FlatTo2D");
    const bool scalar = ndim() == 0;
    return Tensor<Device, 2, DType>(static_cast<DType*>(dptr_), scalar ? Shape2(Size(), Size()) : shape_.FlatTo2D(),
                                    scalar ? Size() : stride_, stream);
  }
  /// The dimensions before `axis_begin`, those from there to `axis_end` inclusive, and those behind
  /// it, each as one. Throws umbra::Error if the blob has no such dimensions; further errors as of
  /// get_with_shape.
  template <typename Device, typename DType>
  Tensor<Device, 3, DType> FlatTo3D(int axis_begin, int axis_end, Stream<Device>* stream = nullptr) const {
    return get_with_shape<Device, 3, DType>(
        ndim() == 0 ? Shape3(Size(), Size(), Size()) : shape_.FlatTo3D(axis_begin, axis_end), stream);
  }
  /// The dimensions before `axis`, `axis` itself, and those behind it, each as one.
  template <typename Device, typename DType>
  Tensor<Device, 3, DType> FlatTo3D(int axis, Stream<Device>* stream = nullptr) const {
    return FlatTo3D<Device, DType>(axis, axis, stream);
  }

 private:
  template <typename Device>
  void CheckDevice(const char* where) const {
    Require(Device::kDevMask == dev_mask_, "TBlob.", where, ": the memory is of device mask ", dev_mask_,
            ", a tensor of device mask ", Device::kDevMask, " was asked for");
  }
  template <typename DType>
  void CheckType(const char* where) const {
    Require(DataType<DType>::kFlag == type_flag_, "TBlob.", where, ": the elements are ", TypeFlagName(type_flag_),
            ", a tensor of ", TypeFlagName(DataType<DType>::kFlag), " was asked for");
  }

  int dev_id_ = 0;
};

}  // namespace umbra

#endif  // UMBRA_TBLOB_H_

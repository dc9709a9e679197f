// Tensors whose rank, device and element type are known at run time.
#ifndef UMBRA_TBLOB_H_
#define UMBRA_TBLOB_H_

#include "umbra/data_type.h"
#include "umbra/tensor.h"
#include "umbra/tshape.h"

namespace umbra {

/// A handle of memory of any rank, device and element type, as mshadow's TBlob. It owns nothing. Rows
/// (the last dimension) lie `stride_` elements apart. Every conversion checks device and type; errors
/// name both sides.
class TBlob {
 public:
  void* dptr_ = nullptr;
  TShape shape_;
  index_t stride_ = 0;
  int type_flag_ = DataType<default_real_t>::kFlag;

  TBlob() = default;
  /// Dense memory. `dev_mask` is cpu::kDevMask for the CPU.
  template <typename DType>
  TBlob(DType* dptr, const TShape& shape, int dev_mask, int dev_id = 0)
      : TBlob(dptr, shape, dev_mask, DataType<DType>::kFlag, dev_id) {}
  /// Dense memory of the type that `type_flag` says. Throws umbra::Error if it is no flag.
  TBlob(void* dptr, const TShape& shape, int dev_mask, int type_flag, int dev_id)
      : dptr_(dptr), shape_(shape), stride_(shape.ndim() == 0 ? 1 : shape[shape.ndim() - 1]),
        type_flag_(type_flag), dev_mask_(dev_mask), dev_id_(dev_id) {
    SizeOfFlag(type_flag);
  }
  template <typename Device, int dim, typename DType>
  TBlob(const Tensor<Device, dim, DType>& src) { *this = src; }  // NOLINT: mirrors the original
  template <typename Device, int dim, typename DType>
  TBlob& operator=(const Tensor<Device, dim, DType>& src) {
    dptr_ = src.dptr_;
    shape_ = src.shape_;
    stride_ = src.stride_;
    dev_mask_ = Device::kDevMask;
    dev_id_ = 0;
    type_flag_ = DataType<DType>::kFlag;
    return *this;
  }

  int dev_mask() const { return dev_mask_; }
  int dev_id() const { return dev_id_; }
  int type_flag() const { return type_flag_; }
  int ndim() const { return static_cast<int>(shape_.ndim()); }
  index_t size(index_t i) const { return shape_[i]; }
  /// Number of elements. Throws umbra::Error if it overflows.
  index_t Size() const { return static_cast<index_t>(shape_.Size()); }
  /// No padding between rows?
  bool CheckContiguous() const { return ndim() == 0 || shape_[ndim() - 1] == stride_ || Rows() <= 1; }

  /// The data as DType. Throws umbra::Error if the type is another.
  template <typename DType>
  DType* dptr() const {
    CheckType<DType>("dptr");
    return static_cast<DType*>(dptr_);
  }
  /// As a tensor of the same shape. Throws umbra::Error if device, type or rank differ.
  template <typename Device, int dim, typename DType>
  Tensor<Device, dim, DType> get(Stream<Device>* stream = nullptr) const {
    CheckDevice<Device>("get");
    CheckType<DType>("get");
    return Tensor<Device, dim, DType>(static_cast<DType*>(dptr_), shape_.get<dim>(), stride_, stream);
  }
  /// As a tensor of another shape of as many elements. Throws umbra::Error if rows are padded, too.
  template <typename Device, int dim, typename DType>
  Tensor<Device, dim, DType> get_with_shape(const Shape<dim>& shape, Stream<Device>* stream = nullptr) const {
    CheckDevice<Device>("get_with_shape");
    CheckType<DType>("get_with_shape");
    Require(CheckContiguous(), "TBlob.get_with_shape: rows of shape ", shape_, " lie ", stride_,
            " elements apart; copy it to dense memory first");
    Require(shape.Size() == shape_.Size(), "TBlob.get_with_shape: shape ", shape, " has ", shape.Size(),
            " elements, ", shape_, " has ", shape_.Size());
    return Tensor<Device, dim, DType>(static_cast<DType*>(dptr_), shape, shape[dim - 1], stream);
  }
  template <typename Device, typename DType>
  Tensor<Device, 1, DType> FlatTo1D(Stream<Device>* stream = nullptr) const {
    return get_with_shape<Device, 1, DType>(Shape1(Size()), stream);
  }
  template <typename Device, typename DType>
  Tensor<Device, 2, DType> FlatTo2D(Stream<Device>* stream = nullptr) const {
    CheckDevice<Device>("FlatTo2D");
    CheckType<DType>("FlatTo2D");
    return Tensor<Device, 2, DType>(static_cast<DType*>(dptr_), shape_.FlatTo2D(), stride_, stream);
  }
  template <typename Device, typename DType>
  Tensor<Device, 3, DType> FlatTo3D(int axis_begin, int axis_end, Stream<Device>* stream = nullptr) const {
    return get_with_shape<Device, 3, DType>(shape_.FlatTo3D(axis_begin, axis_end), stream);
  }
  template <typename Device, typename DType>
  Tensor<Device, 3, DType> FlatTo3D(int axis, Stream<Device>* stream = nullptr) const {
    return FlatTo3D<Device, DType>(axis, axis, stream);
  }

 private:
  index_t Rows() const { return shape_.ProdShape(0, ndim() - 1); }
  template <typename Device>
  void CheckDevice(const char* where) const {
    Require(Device::kDevMask == dev_mask_, "TBlob.", where, ": the memory is of device mask ", dev_mask_,
            ", a tensor of device mask ", Device::kDevMask, " was asked for");
  }
  template <typename DType>
  void CheckType(const char* where) const {
    Require(DataType<DType>::kFlag == type_flag_, "TBlob.", where, ": the elements are ",
            TypeFlagName(type_flag_), ", a tensor of ", TypeFlagName(DataType<DType>::kFlag),
            " was asked for");
  }

  int dev_mask_ = cpu::kDevMask;
  int dev_id_ = 0;
};

}  // namespace umbra

#endif  // UMBRA_TBLOB_H_

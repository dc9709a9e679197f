// Tensors shared with other libraries by DLPack (package libdlpack-dev has its header).
#ifndef UMBRA_DLPACK_H_
#define UMBRA_DLPACK_H_

#include <dlpack/dlpack.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "umbra/tblob.h"

namespace umbra {

namespace detail {
/// DLPack's code of truth values, which its older headers do not name.
inline constexpr std::uint8_t kDLPackBool = 6;

/// The row pitch of a tensor with these extents and strides, in elements. Throws umbra::Error if it
/// is not made of compact rows at one distance. No extent is 0, and their product does not
/// overflow.
inline index_t RowPitch(const TShape& shape, const TShape& strides) {
  const index_t last = shape.ndim() - 1;
  bool fits = shape[last] == 1 || strides[last] == 1;
  index_t pitch = shape[last], rows = 1;
  for (index_t d = last - 1; d >= 0 && fits; --d) {
    if (shape[d] == 1) continue;  // the stride is of no meaning
    if (rows == 1) pitch = strides[d];
    index_t expected = 0;
    fits = pitch >= shape[last] && !__builtin_mul_overflow(pitch, rows, &expected) && strides[d] == expected;
    rows *= shape[d];
  }
  Require(fits, "DLPack: strides ", strides, " of shape ", shape,
          ": a TBlob has compact rows, all at one distance; copy the tensor to compact memory first");
  return pitch;
}
}  // namespace detail

/// DLPack's element type of a TypeFlag, with that many lanes. Throws umbra::Error for a number that
/// is no flag, or lanes below 1 or beyond 16 bits.
inline DLDataType ToDLPackType(int flag, int lanes = 1) {
  const auto bits = static_cast<std::uint8_t>(8 * SizeOfFlag(flag));
  Require(lanes >= 1 && lanes <= std::numeric_limits<std::uint16_t>::max(), "DLPack: 1 to 65535 lanes are expected, ",
          lanes, " were given");
  const std::string_view name = TypeFlagName(flag);
  const auto begins = [&](std::string_view with) { return name.substr(0, with.size()) == with; };
  const auto code = begins("float")    ? static_cast<std::uint8_t>(kDLFloat)
                    : begins("bfloat") ? static_cast<std::uint8_t>(kDLBfloat)
                    : begins("uint")   ? static_cast<std::uint8_t>(kDLUInt)
                    : begins("bool")   ? detail::kDLPackBool
                                       : static_cast<std::uint8_t>(kDLInt);
  return {code, bits, static_cast<std::uint16_t>(lanes)};
}

/// The TypeFlag of DLPack's element type, whose lanes take no part. Throws umbra::Error if Umbra
/// has no such type.
inline int FromDLPackType(DLDataType type) {
  for (const DType dtype : kAllDTypes) {
    const int flag = detail::RowOf(dtype).number;
    const DLDataType known = ToDLPackType(flag);
    if (known.code == type.code && known.bits == type.bits) return flag;
  }
  throw Error(
      detail::Concat("DLPack: there is no element type for code ", int{type.code}, " with ", int{type.bits}, " bits"));
}

/// A view of what `tensor` describes, byte_offset added; the caller keeps the memory alive as long
/// as the view is used. Elements of several lanes become a further, last dimension. Throws
/// umbra::Error for memory of another device than the CPU or a CUDA GPU, an unknown element type,
/// negative extents, too many elements, no or misaligned data, and strides other than of compact rows
/// at one distance.
inline TBlob BorrowDLPack(const DLTensor& tensor) {
  const bool is_gpu = tensor.device.device_type == kDLCUDA;
  Require(is_gpu || tensor.device.device_type == kDLCPU, "DLPack: a tensor of device type ",
          static_cast<int>(tensor.device.device_type), "; memory of the CPU (1) or of a CUDA GPU (2) is expected");
  const int flag = FromDLPackType(tensor.dtype);
  const index_t lanes = tensor.dtype.lanes;
  Require(lanes >= 1, "DLPack: elements of 0 lanes; 1 or more are expected");
  Require(tensor.ndim >= 0 && (tensor.ndim == 0 || tensor.shape != nullptr), "DLPack: a tensor of ", tensor.ndim,
          " dimensions with ", tensor.shape == nullptr ? "no" : "a", " shape");

  std::vector<index_t> extents(tensor.shape, tensor.shape + tensor.ndim);
  if (lanes > 1) extents.push_back(lanes);
  TShape shape;
  shape = extents;
  const std::size_t elements = shape.Size(), element_bytes = SizeOfFlag(flag);
  Require(elements <= std::numeric_limits<index_t>::max() / element_bytes, "DLPack: a tensor of shape ", shape,
          " is larger than memory can be");
  Require(elements == 0 || tensor.data != nullptr, "DLPack: a tensor of shape ", shape, " without data");
  char* const data = tensor.data == nullptr ? nullptr : static_cast<char*>(tensor.data) + tensor.byte_offset;
  Require(elements == 0 || reinterpret_cast<std::uintptr_t>(data) % element_bytes == 0,
          "DLPack: data with byte_offset ", tensor.byte_offset, " is not aligned to the ", element_bytes, " bytes of ",
          TypeFlagName(flag));
  TBlob blob(data, shape, is_gpu ? gpu::kDevMask : cpu::kDevMask, flag, is_gpu ? tensor.device.device_id : 0);
  if (tensor.strides == nullptr || elements == 0 || shape.ndim() == 0) return blob;

  std::vector<index_t> steps(tensor.strides, tensor.strides + tensor.ndim);
  for (index_t& step : steps)
    Require(!__builtin_mul_overflow(step, lanes, &step), "DLPack: a stride of shape ", shape,
            " reaches further than memory can be");
  if (lanes > 1) steps.push_back(1);
  TShape strides;
  strides = steps;
  blob.stride_ = detail::RowPitch(shape, strides);
  index_t bytes = 0;
  const bool overflow =
      __builtin_mul_overflow(static_cast<index_t>(elements) / shape[shape.ndim() - 1], blob.stride_, &bytes) ||
      __builtin_mul_overflow(bytes, static_cast<index_t>(element_bytes), &bytes);
  Require(!overflow, "DLPack: strides ", strides, " of shape ", shape, " reach further than memory can be");
  return blob;
}

/// A blob as a DLTensor that borrows: the blob's memory, and this object, which has the extents and
/// strides, must outlive its use.
class DLPackView {
 public:
  /// With `lanes` above 1 the last dimension, which must have that extent, becomes the lanes of the
  /// element type. Throws umbra::Error if that is not so or rows do not lie whole elements apart,
  /// if the blob has elements but no memory, or is neither on the CPU nor on a GPU.
  explicit DLPackView(const TBlob& blob, int lanes = 1) {
    const bool is_gpu = blob.dev_mask() == gpu::kDevMask;
    Require(is_gpu || blob.dev_mask() == cpu::kDevMask, "DLPack: a TBlob of device mask ", blob.dev_mask(), "; ",
            cpu::kDevMask, " (the CPU) or ", gpu::kDevMask, " (a GPU) is expected");
    const DLDataType type = ToDLPackType(blob.type_flag_, lanes);
    const index_t elements = static_cast<index_t>(blob.shape_.Size());
    Require(elements == 0 || blob.dptr_ != nullptr, "DLPack: a TBlob of shape ", blob.shape_, " without memory");
    shape_.assign(blob.shape_.begin(), blob.shape_.end());
    strides_.assign(shape_.size(), 1);
    for (std::size_t d = shape_.size(); d-- > 1;) {
      const bool row = d + 1 == shape_.size();
      const bool overflow =
          __builtin_mul_overflow(row ? blob.stride_ : strides_[d], row ? 1 : shape_[d], &strides_[d - 1]);
      Require(!overflow || elements == 0, "DLPack: rows of shape ", blob.shape_, " lie ", blob.stride_,
              " elements apart, further than memory can be");
    }
    if (lanes > 1) {
      Require(!shape_.empty() && shape_.back() == lanes && blob.stride_ % lanes == 0, "DLPack: ", lanes,
              " lanes of shape ", blob.shape_, ", rows ", blob.stride_,
              " elements apart: the last extent must be the lanes, and the distance a multiple");
      shape_.pop_back();
      strides_.pop_back();
      for (std::int64_t& stride : strides_) stride /= lanes;
    }
    tensor_.data = blob.dptr_;
    tensor_.device = {is_gpu ? kDLCUDA : kDLCPU, is_gpu ? blob.dev_id() : 0};
    tensor_.ndim = static_cast<int>(shape_.size());
    tensor_.dtype = type;
    tensor_.shape = shape_.data();
    tensor_.strides = strides_.data();
  }
  DLPackView(const DLPackView&) = delete;
  DLPackView& operator=(const DLPackView&) = delete;

  /// The tensor; valid as long as this object.
  const DLTensor& tensor() const { return tensor_; }

 private:
  std::vector<std::int64_t> shape_, strides_;
  DLTensor tensor_{};
};

/// A tensor taken over from another library: its deleter is called when the last copy is gone.
/// Copies share it; there is no move, so that no object is left with memory that it does not keep.
class DLPackTensor {
 public:
  /// Takes over `managed`, also if this throws umbra::Error, as BorrowDLPack does.
  explicit DLPackTensor(DLManagedTensor* managed)
      : owner_(managed, [](DLManagedTensor* m) {
          if (m != nullptr && m->deleter != nullptr) m->deleter(m);
        }) {
    Require(managed != nullptr, "DLPack: a null tensor");
    blob_ = BorrowDLPack(managed->dl_tensor);
  }
  DLPackTensor(const DLPackTensor&) = default;
  DLPackTensor& operator=(const DLPackTensor&) = default;
  ~DLPackTensor() = default;

  /// The memory; valid as long as a copy of this object.
  const TBlob& blob() const { return blob_; }

 private:
  std::shared_ptr<DLManagedTensor> owner_;
  TBlob blob_;
};

/// `blob` for another library, which calls the deleter once when it is done; `owner` keeps the
/// memory until then (null if something else does). Lanes and errors as of DLPackView; the blob and
/// its owner are not changed by one.
inline DLManagedTensor* ToDLPack(const TBlob& blob, std::shared_ptr<void> owner, int lanes = 1) {
  struct Holder {
    Holder(const TBlob& held, int held_lanes, std::shared_ptr<void> keeper)
        : view(held, held_lanes),
          owner(std::move(keeper)) {
      managed.dl_tensor = view.tensor();
      managed.manager_ctx = this;
      managed.deleter = [](DLManagedTensor* m) { delete static_cast<Holder*>(m->manager_ctx); };
    }
    DLPackView view;
    std::shared_ptr<void> owner;
    DLManagedTensor managed{};
  };
  return &(new Holder(blob, lanes, std::move(owner)))->managed;
}

}  // namespace umbra

#endif  // UMBRA_DLPACK_H_

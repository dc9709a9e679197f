// Tensors shared with other libraries by DLPack (package libdlpack-dev has its header).
#ifndef UMBRA_DLPACK_H_
#define UMBRA_DLPACK_H_

#include <dlpack/dlpack.h>

#include <memory>
#include <vector>

#include "umbra/tblob.h"

namespace umbra {

/// DLPack's element type of a flag. Throws umbra::Error for a number that is no flag.
inline DLDataType ToDLPackType(int flag) {
  const auto bits = static_cast<std::uint8_t>(8 * SizeOfFlag(flag));
  const bool is_float = flag == kFloat16 || flag == kFloat32 || flag == kFloat64;
  const auto code = is_float ? kDLFloat : flag == kUint8 ? kDLUInt : kDLInt;
  return {static_cast<std::uint8_t>(code), bits, 1};
}

/// A view of what `tensor` describes; its owner keeps the memory alive. Throws umbra::Error if it is not
/// on the CPU, has an element type or several lanes that a TBlob does not have, negative extents, or
/// strides other than dense rows that lie any distance apart.
inline TBlob BorrowDLPack(const DLTensor& tensor) {
  Require(tensor.device.device_type == kDLCPU, "DLPack: a tensor of device type ",
          static_cast<int>(tensor.device.device_type), "; only memory of the CPU can be used here");
  Require(tensor.dtype.lanes == 1, "DLPack: elements of ", tensor.dtype.lanes, " lanes; one is expected");
  int flag = 0;
  while (flag <= kInt64) {
    const DLDataType type = ToDLPackType(flag);
    if (type.code == tensor.dtype.code && type.bits == tensor.dtype.bits) break;
    ++flag;
  }
  Require(flag <= kInt64, "DLPack: no element type of code ", int{tensor.dtype.code}, " and ",
          int{tensor.dtype.bits}, " bits");
  Require(tensor.ndim >= 0 && (tensor.ndim == 0 || tensor.shape != nullptr), "DLPack: a shape of ",
          tensor.ndim, " dimensions");
  for (int d = 0; d < tensor.ndim; ++d)
    Require(tensor.shape[d] >= 0, "DLPack: a negative extent ", tensor.shape[d]);
  const TShape shape(tensor.shape, tensor.shape + tensor.ndim);
  TBlob blob(static_cast<char*>(tensor.data) + tensor.byte_offset, shape, cpu::kDevMask, flag, 0);
  if (tensor.strides == nullptr || shape.Size() == 0 || tensor.ndim == 0) return blob;
  const int last = tensor.ndim - 1;
  Require(shape[last] == 1 || tensor.strides[last] == 1, "DLPack: the last dimension has stride ",
          tensor.strides[last], "; 1 is expected");
  if (last == 0) return blob;
  // The pitch is what the innermost dimension of several rows says.
  index_t pitch = shape[last], rows = 1;
  bool known = false;
  for (int d = last - 1; d >= 0; --d) {
    if (shape[d] == 1) continue;
    if (!known) {
      Require(tensor.strides[d] % rows == 0, "DLPack: dimension ", d, " has stride ", tensor.strides[d]);
      pitch = tensor.strides[d] / rows;
      known = true;
    }
    Require(tensor.strides[d] == pitch * rows && pitch >= shape[last], "DLPack: dimension ", d,
            " has stride ", tensor.strides[d], ", ", pitch * rows, " is expected: copy it to rows side by side");
    rows *= shape[d];
  }
  blob.stride_ = pitch;
  return blob;
}

/// A tensor taken over from another library: its deleter is called when the last copy is gone.
class DLPackTensor {
 public:
  /// Takes over `managed`, also if this throws umbra::Error, as BorrowDLPack does.
  explicit DLPackTensor(DLManagedTensor* managed)
      : owner_(managed, [](DLManagedTensor* m) { if (m != nullptr && m->deleter != nullptr) m->deleter(m); }) {
    Require(managed != nullptr, "DLPack: a null tensor");
    blob_ = BorrowDLPack(managed->dl_tensor);
  }
  const TBlob& blob() const { return blob_; }

 private:
  std::shared_ptr<DLManagedTensor> owner_;
  TBlob blob_;
};

/// `blob` for another library, which calls the deleter when it is done; `owner` is kept until then.
inline DLManagedTensor* ToDLPack(const TBlob& blob, std::shared_ptr<void> owner) {
  Require(blob.dev_mask() == cpu::kDevMask, "DLPack: a TBlob of device mask ", blob.dev_mask());
  struct Holder {
    DLManagedTensor managed{};
    std::vector<std::int64_t> shape, strides;
    std::shared_ptr<void> owner;
  };
  auto holder = std::make_unique<Holder>();
  const int ndim = blob.ndim();
  holder->shape.assign(blob.shape_.begin(), blob.shape_.end());
  holder->strides.assign(static_cast<std::size_t>(ndim), 1);
  for (int d = ndim - 2; d >= 0; --d)
    holder->strides[static_cast<std::size_t>(d)] =
        d == ndim - 2 ? blob.stride_ : holder->strides[static_cast<std::size_t>(d) + 1] * blob.shape_[d + 1];
  holder->owner = std::move(owner);
  DLTensor& tensor = holder->managed.dl_tensor;
  tensor.data = blob.dptr_;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = ndim;
  tensor.dtype = ToDLPackType(blob.type_flag_);
  tensor.shape = holder->shape.data();
  tensor.strides = holder->strides.data();
  holder->managed.manager_ctx = holder.get();
  holder->managed.deleter = [](DLManagedTensor* m) { delete static_cast<Holder*>(m->manager_ctx); };
  return &holder.release()->managed;
}

}  // namespace umbra

#endif  // UMBRA_DLPACK_H_

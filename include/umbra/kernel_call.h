// Calls of kernels that were compiled ahead of time, for C++: what generated headers stand on.
#ifndef UMBRA_KERNEL_CALL_H_
#define UMBRA_KERNEL_CALL_H_

#include <new>
#include <string>
#include <vector>

#include "umbra/kernel_desc.h"
#include "umbra/tblob.h"
#include "umbra/tensor.h"

namespace umbra {

#define UMBRA_DTYPE(dtype, name, ...) static_assert(static_cast<int>(DType::dtype) == UMBRA_DTYPE_##name);
#include "umbra/dtypes.def"

namespace detail {

/// The strides of rows that lie `pitch` elements apart.
inline void PitchedStrides(const index_t* shape, int rank, index_t pitch, index_t* stride) {
  for (int d = rank - 1; d >= 0; --d)
    stride[d] = d == rank - 1 ? 1 : d == rank - 2 ? pitch : stride[d + 1] * shape[d + 1];
}

template <typename Device>
constexpr int kCallDevice = Device::kDevCPU ? UMBRA_DEVICE_CPU : UMBRA_DEVICE_GPU;

/// A tensor as umbra_call takes it. It refers to the shape of the tensor that it was made of. One function for all
/// kernels with such a tensor: hundreds of calls stay small and compile fast.
template <int rank>
class CallOperand {
 public:
  template <typename Device, typename DType>
  [[gnu::noinline]] explicit CallOperand(const Tensor<Device, rank, DType>& t)
      : tensor_{const_cast<std::remove_const_t<DType>*>(t.dptr_),
                t.shape_.shape_,
                stride_,
                rank,
                static_cast<int>(DTypeOf<std::remove_const_t<DType>>::value),
                kCallDevice<Device>,
                nullptr} {
    Settle(t.stream_);
    if constexpr (!Device::kDevCPU) tensor_.stream = Stream<Device>::GetStream(t.stream_);
    PitchedStrides(t.shape_.shape_, rank, t.stride_, stride_);
  }
  CallOperand(const CallOperand&) = delete;
  CallOperand& operator=(const CallOperand&) = delete;
  operator const umbra_tensor*() const { return &tensor_; }  // NOLINT: an argument

 private:
  index_t stride_[rank];
  umbra_tensor tensor_;
};

/// The same of a blob, or of one element, which is the CPU's unless said otherwise.
template <>
class CallOperand<0> {
 public:
  [[gnu::noinline]] explicit CallOperand(const TBlob& blob)
      : stride_(static_cast<std::size_t>(blob.ndim())),
        tensor_{blob.dptr_,
                blob.shape_.begin(),
                stride_.data(),
                blob.ndim(),
                0,
                blob.dev_mask_ == cpu::kDevMask ? UMBRA_DEVICE_CPU : UMBRA_DEVICE_GPU,
                nullptr} {
    RunWaiting();
    const auto dtype = FindFlag(blob.type_flag_);
    Require(dtype.has_value(), "TBlob: type flag ", blob.type_flag_, " is none");
    Require(blob.dev_mask_ == cpu::kDevMask || blob.dev_mask_ == gpu::kDevMask, "TBlob: the memory is of device mask ",
            blob.dev_mask_, ", but kernels take memory of device mask ", cpu::kDevMask, ", the CPU's, or ",
            gpu::kDevMask, ", a GPU's");
    tensor_.dtype = static_cast<int>(*dtype);
    PitchedStrides(blob.shape_.begin(), blob.ndim(), blob.stride_, stride_.data());
  }
  template <typename DType>
  explicit CallOperand(DType* element, int device = UMBRA_DEVICE_CPU)
      : tensor_{const_cast<std::remove_const_t<DType>*>(element),
                nullptr,
                nullptr,
                0,
                static_cast<int>(DTypeOf<std::remove_const_t<DType>>::value),
                device,
                nullptr} {
    RunWaiting();
  }
  CallOperand(const CallOperand&) = delete;
  CallOperand& operator=(const CallOperand&) = delete;
  operator const umbra_tensor*() const { return &tensor_; }  // NOLINT: an argument

 private:
  std::vector<index_t> stride_;
  umbra_tensor tensor_;
};

template <typename Device, int rank, typename DType>
CallOperand(const Tensor<Device, rank, DType>&) -> CallOperand<rank>;
CallOperand(const TBlob&)->CallOperand<0>;
template <typename DType>
CallOperand(DType*, int = UMBRA_DEVICE_CPU) -> CallOperand<0>;

/// Throws umbra::Error with `message` if two tensors have memory in common.
template <typename Device, int rank_a, typename A, int rank_b, typename B>
[[gnu::noinline]] inline void RequireApart(const Tensor<Device, rank_a, A>& a, const Tensor<Device, rank_b, B>& b,
                                           const char* message) {
  Require(expr::RegionOf(a).Apart(expr::RegionOf(b)), message);
}

/// Throws what `status` stands for, which is not UMBRA_OK: umbra::Error, umbra::InternalError or std::bad_alloc. One
/// function for all kernels: calls that are checked are small and compile fast.
[[gnu::cold, gnu::noinline]] inline void Throw(umbra_status status) {
  if (status == UMBRA_OUT_OF_MEMORY) throw std::bad_alloc();
  const std::string message = umbra_error_message();
  if (status == UMBRA_INTERNAL_ERROR) throw InternalError(message);
  throw Error(message);
}

/// Throws what `status` stands for, unless it is UMBRA_OK.
inline void Check(umbra_status status) {
  if (status != UMBRA_OK) Throw(status);
}

}  // namespace detail
}  // namespace umbra

#endif  // UMBRA_KERNEL_CALL_H_

// Functions over whole tensors on the CPU, with the names and meaning of mshadow's.
#ifndef UMBRA_TENSOR_FUNCTIONS_H_
#define UMBRA_TENSOR_FUNCTIONS_H_

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "umbra/tensor.h"

namespace umbra {

/// Makes a device ready for use; the CPU always is. Throws umbra::Error for a CPU other than 0.
template <typename Device>
inline void InitTensorEngine(int device = 0) {
  Require(device == 0, "InitTensorEngine: there is one CPU, number 0; ", device, " was given");
}
template <typename Device>
inline void ShutdownTensorEngine() {}
template <typename Device>
inline void SetDevice(int device) {
  Require(device == 0, "SetDevice: there is one CPU, number 0; ", device, " was given");
}
/// A stream that the caller gives back with DeleteStream.
template <typename Device>
inline Stream<Device>* NewStream(bool create_blas_handle = true, bool create_dnn_handle = false) {
  (void)create_dnn_handle;
  auto stream = std::make_unique<Stream<Device>>();
  if (create_blas_handle) stream->CreateBlasHandle();
  return stream.release();
}
template <typename Device>
inline void DeleteStream(Stream<Device>* stream) {
  delete stream;
}

namespace detail {
inline void RequireShapes(bool fit, const char* name) {
  Require(fit, name, ": the shapes of the tensors do not fit together");
}
// A position given as a number of any dtype, held within 0 .. extent - 1.
template <typename IType>
inline index_t ClippedPosition(IType value, index_t extent) {
  if (!(value > IType(0))) return 0;
  return value >= static_cast<IType>(extent - 1) ? extent - 1 : static_cast<index_t>(value);
}
}  // namespace detail

/// Each row of `dst` is the softmax of that row of `src`: exp(x - max) / sum. They may be one tensor.
template <typename DType>
inline void Softmax(Tensor<cpu, 1, DType> dst, const Tensor<cpu, 1, DType>& src) {
  detail::RequireShapes(dst.shape_ == src.shape_, "Softmax");
  if (src.size(0) == 0) return;
  DType most = src[0], sum = 0;
  for (index_t i = 1; i < src.size(0); ++i) most = simd::maximum(src[i], most);
  for (index_t i = 0; i < src.size(0); ++i) sum += dst[i] = simd::exp(src[i] - most);
  for (index_t i = 0; i < src.size(0); ++i) dst[i] /= sum;
}
template <typename DType>
inline void Softmax(Tensor<cpu, 2, DType> dst, const Tensor<cpu, 2, DType>& src) {
  detail::RequireShapes(dst.shape_ == src.shape_, "Softmax");
  for (index_t y = 0; y < src.size(0); ++y) Softmax(dst[y], src[y]);
}
/// The gradient of cross-entropy over softmax: `src` less 1 at each row's label. Throws umbra::Error
/// for a label that is no column.
template <typename DType>
inline void SoftmaxGrad(Tensor<cpu, 2, DType> dst, const Tensor<cpu, 2, DType>& src,
                        const Tensor<cpu, 1, DType>& label) {
  detail::RequireShapes(dst.shape_ == src.shape_ && label.size(0) == src.size(0), "SoftmaxGrad");
  for (index_t y = 0; y < src.size(0); ++y) {
    Require(label[y] >= DType(0) && label[y] < static_cast<DType>(src.size(1)), "SoftmaxGrad: label ",
            label[y], " of row ", y, " is none of ", src.size(1), " classes");
    const auto k = static_cast<index_t>(label[y]);
    for (index_t x = 0; x < src.size(1); ++x) dst[y][x] = x == k ? src[y][x] - DType(1) : src[y][x];
  }
}
/// The same, with zeros in the rows whose label is `ignore_label`.
template <typename DType>
inline void SoftmaxGrad(Tensor<cpu, 2, DType> dst, const Tensor<cpu, 2, DType>& src,
                        const Tensor<cpu, 1, DType>& label, const DType& ignore_label) {
  detail::RequireShapes(dst.shape_ == src.shape_ && label.size(0) == src.size(0), "SoftmaxGrad");
  for (index_t y = 0; y < src.size(0); ++y) {
    if (label[y] == ignore_label) dst[y] = DType(0);
    else SoftmaxGrad(dst.Slice(y, y + 1), src.Slice(y, y + 1), label.Slice(y, y + 1));
  }
}

/// dst[index[y]] += src[y]; positions beyond `dst` are clipped, as take() reads them.
template <typename IndexType, typename DType>
inline void AddTakeGrad(Tensor<cpu, 2, DType> dst, const Tensor<cpu, 1, IndexType>& index,
                        const Tensor<cpu, 2, DType>& src) {
  detail::RequireShapes(index.size(0) == src.size(0) && dst.size(1) == src.size(1), "AddTakeGrad");
  if (dst.size(0) == 0) return;
  for (index_t y = 0; y < index.size(0); ++y)
    dst[detail::ClippedPosition(index[y], dst.size(0))] += src[y];
}
/// dst[sorted[y]] += src[index[y]], where `sorted` is in ascending order and `index` says which row of
/// `src` each of its elements came from.
template <typename IndexType, typename DType>
inline void AddTakeGradLargeBatch(Tensor<cpu, 2, DType> dst, const Tensor<cpu, 1, IndexType>& sorted,
                                  const Tensor<cpu, 1, IndexType>& index,
                                  const Tensor<cpu, 2, DType>& src) {
  detail::RequireShapes(sorted.size(0) == index.size(0) && dst.size(1) == src.size(1),
                        "AddTakeGradLargeBatch");
  for (index_t y = 0; y < sorted.size(0); ++y) {
    Require(index[y] >= IndexType(0) && static_cast<index_t>(index[y]) < src.size(0),
            "AddTakeGradLargeBatch: row ", index[y], " of a tensor of shape ", src.shape_);
    dst[detail::ClippedPosition(sorted[y], dst.size(0))] += src[static_cast<index_t>(index[y])];
  }
}
/// dst[index[y]] = src[y]. Throws umbra::Error for a row that `dst` does not have.
template <typename IndexType, typename DType>
inline void IndexFill(Tensor<cpu, 2, DType> dst, const Tensor<cpu, 1, IndexType>& index,
                      const Tensor<cpu, 2, DType>& src) {
  detail::RequireShapes(index.size(0) == src.size(0) && dst.size(1) == src.size(1), "IndexFill");
  for (index_t y = 0; y < index.size(0); ++y) {
    Require(index[y] >= IndexType(0) && static_cast<index_t>(index[y]) < dst.size(0),
            "IndexFill: row ", index[y], " of a tensor of shape ", dst.shape_);
    Copy<1, DType>(dst[static_cast<index_t>(index[y])], src[y]);
  }
}

/// Sorts `keys` and brings `values` into the same order; equal keys keep theirs. NaN comes last.
template <typename KDType, typename VDType>
inline void SortByKey(Tensor<cpu, 1, KDType> keys, Tensor<cpu, 1, VDType> values,
                      bool is_ascend = true) {
  detail::RequireShapes(keys.size(0) == values.size(0), "SortByKey");
  std::vector<index_t> order(static_cast<std::size_t>(keys.size(0)));
  std::iota(order.begin(), order.end(), index_t{0});
  std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) {
    const KDType x = keys[a], y = keys[b];
    if (x != x || y != y) return x == x;
    return is_ascend ? x < y : y < x;
  });
  std::vector<KDType> sorted_keys;
  std::vector<VDType> sorted_values;
  for (index_t k : order) {
    sorted_keys.push_back(keys[k]);
    sorted_values.push_back(values[k]);
  }
  std::copy(sorted_keys.begin(), sorted_keys.end(), keys.dptr_);
  std::copy(sorted_values.begin(), sorted_values.end(), values.dptr_);
}
/// Sorts the elements of every segment: `segments` says which one each of `values` belongs to, and is
/// in ascending order afterwards.
template <typename VDType, typename SDType>
inline void VectorizedSort(Tensor<cpu, 1, VDType> values, Tensor<cpu, 1, SDType> segments) {
  SortByKey(values, segments, true);
  SortByKey(segments, values, true);
}

/// dst[0] = sum of lhs[i] * rhs[i]
template <typename DType>
inline void VectorDot(Tensor<cpu, 1, DType> dst, const Tensor<cpu, 1, DType>& lhs,
                      const Tensor<cpu, 1, DType>& rhs) {
  detail::RequireShapes(lhs.size(0) == rhs.size(0) && dst.size(0) == 1, "VectorDot");
  dst[0] = DType(0);
  if (lhs.size(0) > 0)
    blas::Gemm<DType>(false, false, 1, 1, lhs.size(0), DType(1), lhs.dptr_, lhs.size(0), rhs.dptr_, 1,
                      DType(0), dst.dptr_, 1);
}
/// dst[k] = alpha * op(lhs[k]) . op(rhs[k]) + beta * dst[k] for every matrix k. `workspace` is for
/// other devices; the CPU needs none.
template <bool transpose_left, bool transpose_right, typename DType>
inline void BatchGEMM(Tensor<cpu, 3, DType> dst, const Tensor<cpu, 3, DType>& lhs,
                      const Tensor<cpu, 3, DType>& rhs, DType alpha, DType beta,
                      Tensor<cpu, 1, DType*> workspace = Tensor<cpu, 1, DType*>()) {
  (void)workspace;
  const index_t m = dst.size(1), n = dst.size(2);
  const index_t k = transpose_left ? lhs.size(1) : lhs.size(2);
  detail::RequireShapes(lhs.size(0) == dst.size(0) && rhs.size(0) == dst.size(0) &&
                            lhs.size(transpose_left ? 2 : 1) == m &&
                            rhs.size(transpose_right ? 1 : 2) == n &&
                            rhs.size(transpose_right ? 2 : 1) == k,
                        "BatchGEMM");
  for (index_t b = 0; b < dst.size(0); ++b)
    blas::Gemm<DType>(transpose_left, transpose_right, m, n, k, alpha, lhs[b].dptr_, lhs.stride_,
                      rhs[b].dptr_, rhs.stride_, beta, dst[b].dptr_, dst.stride_);
}

}  // namespace umbra

#endif  // UMBRA_TENSOR_FUNCTIONS_H_

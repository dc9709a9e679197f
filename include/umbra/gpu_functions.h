// Functions over whole tensors of a GPU, as those of umbra/tensor_functions.h: each is one expression, compiled by
// umbra/jit.h and put into the stream of `dst`.
#ifndef UMBRA_GPU_FUNCTIONS_H_
#define UMBRA_GPU_FUNCTIONS_H_

#include "umbra/jit.h"

namespace umbra {

/// The elements of each row become their softmax, exp(x - max) / sum. `dst` and `src` may be one tensor.
template <typename DType>
inline void Softmax(Tensor<gpu, 2, DType> dst, const Tensor<gpu, 2, DType>& src) {
  const auto e = F<op::exp>(src - broadcast<0>(reduce_with_axis<red::maximum>(src, 1), src.shape_));
  jit(dst) = e / broadcast<0>(reduce_with_axis<red::sum>(e, 1), src.shape_);
}
/// The gradient of cross-entropy over softmax: `src` less 1 at the class that the row's label names. Nothing is looked
/// at by the host: of a row whose label is no class, nothing is taken away.
template <typename DType>
inline void SoftmaxGrad(Tensor<gpu, 2, DType> dst, const Tensor<gpu, 2, DType>& src, const Tensor<gpu, 1, DType>& label) {
  jit(dst) = src - one_hot_encode(label, src.size(1));
}
/// The same, with zeros where the label is `ignore_label`.
template <typename DType>
inline void SoftmaxGrad(Tensor<gpu, 2, DType> dst, const Tensor<gpu, 2, DType>& src, const Tensor<gpu, 1, DType>& label,
                        const DType& ignore_label) {
  jit(dst) = F<op::select>(broadcast<0>(F<op::eq>(label, scalar(ignore_label)), src.shape_), scalar(DType(0)),
                           src - one_hot_encode(label, src.size(1)));
}
/// dst[0] = sum of lhs[i] * rhs[i]
template <typename DType>
inline void VectorDot(Tensor<gpu, 1, DType> dst, const Tensor<gpu, 1, DType>& lhs, const Tensor<gpu, 1, DType>& rhs) {
  jit(dst) = reduce_with_axis<red::sum>(lhs * rhs, 0);
}

}  // namespace umbra

#endif  // UMBRA_GPU_FUNCTIONS_H_

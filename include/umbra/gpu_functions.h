// Functions over whole tensors of a GPU, as those of umbra/tensor_functions.h: expressions, compiled by umbra/jit.h,
// and products by cuBLASLt, all put into the stream of the first tensor. Shapes, dtypes and errors are as there, names
// and meaning mshadow's; what differs is said. What a GPU's driver refuses is an umbra::Error, too.
#ifndef UMBRA_GPU_FUNCTIONS_H_
#define UMBRA_GPU_FUNCTIONS_H_

#include "umbra/cuda_gemm.h"
#include "umbra/jit.h"

namespace umbra {

namespace detail {
// Of the elements of `e`, of the shape of `src`, along its classes: those that Reducer joins to, at every class.
template <typename Reducer, int dim, typename DType, typename E>
inline auto OverClasses(const E& e, const Tensor<gpu, dim, DType>& src) {
  static_assert(1 <= dim && dim <= 3, "umbra: Softmax and SoftmaxGrad take tensors of rank 1 to 3");
  if constexpr (dim == 1) return broadcast_scalar(reduce_with_axis<Reducer>(e, 0), src.shape_);
  else if constexpr (dim == 2) return broadcast<0>(reduce_with_axis<Reducer>(e, 1), src.shape_);
  else return broadcast_with_axis(reduce_with_axis<Reducer>(e, 1), 0, src.size(1));
}
}  // namespace detail
/// The classes become their softmax, exp(x - max) / sum: the elements of a vector, of each row of a matrix, or along
/// axis 1 of a tensor of rank 3. `dst` and `src` may be one tensor.
template <int dim, typename DType>
inline void Softmax(Tensor<gpu, dim, DType> dst, const Tensor<gpu, dim, DType>& src) {
  const auto e = F<op::exp>(src - detail::OverClasses<red::maximum>(src, src));
  jit(dst) = e / detail::OverClasses<red::sum>(e, src);
}
namespace detail {
// 1 at the class that a label names, 0 at all others, of the shape of `src`; labels stand along its axes but axis 1.
template <int dim, typename DType>
inline auto IsLabel(const Tensor<gpu, dim, DType>& src, const Tensor<gpu, dim - 1, DType>& label) {
  static_assert(dim == 2 || dim == 3, "umbra: SoftmaxGrad takes tensors of rank 2 or 3");
  const auto classes = broadcast<1>(range<index_t>(0, src.size(1)), src.shape_);
  return tcast<DType>(F<op::eq>(tcast<index_t>(broadcast_with_axis(label, 0, src.size(1))), classes));
}
template <int dim, typename DType>
inline auto SmoothSoftmaxGrad(const Tensor<gpu, dim, DType>& src, const Tensor<gpu, dim - 1, DType>& label,
                              float alpha) {
  const SoftmaxTarget<DType> target(alpha, src.size(1));
  const auto named = IsLabel(src, label);
  return src -
         (named * static_cast<DType>(target.label) + (scalar(DType(1)) - named) * static_cast<DType>(target.other));
}
// `e`, and zeros where the label is `ignore_label`.
template <int dim, typename DType, typename E>
inline auto UnlessIgnored(const E& e, const Tensor<gpu, dim, DType>& src, const Tensor<gpu, dim - 1, DType>& label,
                          DType ignore_label) {
  return F<op::select>(F<op::eq>(broadcast_with_axis(label, 0, src.size(1)), scalar(ignore_label)), scalar(DType(0)),
                       e);
}
}  // namespace detail
/// The gradient of cross-entropy over softmax: `src` less 1 at the class that the label names, which is one for each
/// row of a matrix and for each (axis 0, axis 2) of a tensor of rank 3. Nothing is looked at by the host: where the
/// label is no class, nothing is taken away.
template <int dim, typename DType>
inline void SoftmaxGrad(Tensor<gpu, dim, DType> dst, const Tensor<gpu, dim, DType>& src,
                        const Tensor<gpu, dim - 1, DType>& label) {
  jit(dst) = src - detail::IsLabel(src, label);
}
/// The same, with zeros where the label is `ignore_label`.
template <int dim, typename DType>
inline void SoftmaxGrad(Tensor<gpu, dim, DType> dst, const Tensor<gpu, dim, DType>& src,
                        const Tensor<gpu, dim - 1, DType>& label, const DType& ignore_label) {
  jit(dst) = detail::UnlessIgnored(src - detail::IsLabel(src, label), src, label, ignore_label);
}
/// The same where `alpha` of the labelled class is shared alike by all others. Where the label is no class, each loses
/// alpha / (classes - 1).
template <int dim, typename DType>
inline void SmoothSoftmaxGrad(Tensor<gpu, dim, DType> dst, const Tensor<gpu, dim, DType>& src,
                              const Tensor<gpu, dim - 1, DType>& label, float alpha) {
  jit(dst) = detail::SmoothSoftmaxGrad(src, label, alpha);
}
template <int dim, typename DType>
inline void SmoothSoftmaxGrad(Tensor<gpu, dim, DType> dst, const Tensor<gpu, dim, DType>& src,
                              const Tensor<gpu, dim - 1, DType>& label, const DType& ignore_label, float alpha) {
  jit(dst) = detail::UnlessIgnored(detail::SmoothSoftmaxGrad(src, label, alpha), src, label, ignore_label);
}
/// dst[0] = sum of lhs[i] * rhs[i], of any dtype; there is no BLAS in it.
template <typename DType>
inline void VectorDot(Tensor<gpu, 1, DType> dst, const Tensor<gpu, 1, DType>& lhs, const Tensor<gpu, 1, DType>& rhs) {
  jit(dst) = reduce_with_axis<red::sum>(lhs * rhs, 0);
}

/// dst[index[y]] += src[y]; positions beyond `dst` are clipped, as take() reads them. Each row of `dst` looks at all of
/// `index`, in its order, so that the sum is the same in every run.
template <typename IndexType, typename DType>
inline void AddTakeGrad(Tensor<gpu, 2, DType> dst, const Tensor<gpu, 1, IndexType>& index,
                        const Tensor<gpu, 2, DType>& src) {
  if (dst.size(0) > 0) jit(dst) += take_grad(index, src, dst.size(0));
}
/// dst[sorted[y]] += src[index[y]], where `index` says which row of `src` each element of `sorted` came from. Positions
/// beyond either are clipped.
template <typename IndexType, typename DType>
inline void AddTakeGradLargeBatch(Tensor<gpu, 2, DType> dst, const Tensor<gpu, 1, IndexType>& sorted,
                                  const Tensor<gpu, 1, IndexType>& index, const Tensor<gpu, 2, DType>& src) {
  if (dst.size(0) > 0 && src.size(0) > 0) jit(dst) += take_grad(sorted, take(index, src), dst.size(0));
}
/// dst[index[y]] = src[y], of several for one row the last. Nothing is looked at by the host: rows that `dst` does not
/// have are left out.
template <typename IndexType, typename DType>
inline void IndexFill(Tensor<gpu, 2, DType> dst, const Tensor<gpu, 1, IndexType>& index,
                      const Tensor<gpu, 2, DType>& src) {
  detail::RequireShapes(index.size(0) == src.size(0) && dst.size(1) == src.size(1), "IndexFill");
  if (index.size(0) == 0 || dst.size(0) == 0) return;
  const auto names =
      tcast<index_t>(one_hot_encode(flip(index, 0), dst.size(0)));  // of each row, those that name it, last first
  const auto last = (index.size(0) - 1) - reduce_with_axis<red::argmax>(names, 0);
  const auto named = tcast<DType>(reduce_with_axis<red::maximum>(names, 0));
  jit(dst) = F<op::select>(broadcast<0>(named, dst.shape_), take(last, src), dst);
}

/// dst[k] = alpha * op(lhs[k]) . op(rhs[k]) + beta * dst[k] for every matrix k, one call of cuBLASLt; f16 and bf16 are
/// summed in f32. `workspace` is not used. Throws umbra::Error if the shapes do not fit or `dst` overlaps an operand.
template <bool transpose_left, bool transpose_right, typename DType>
inline void BatchGEMM(Tensor<gpu, 3, DType> dst, const Tensor<gpu, 3, DType>& lhs, const Tensor<gpu, 3, DType>& rhs,
                      DType alpha, DType beta, Tensor<gpu, 1, DType*> workspace = Tensor<gpu, 1, DType*>()) {
  (void)workspace;
  const auto [m, n, k] = detail::BatchExtentsOf<transpose_left, transpose_right>(dst, lhs, rhs);
  if (dst.shape_.Size() == 0) return;
  expr::RunOnGpu(transpose_left, transpose_right, m, n, k, static_cast<double>(alpha), lhs, rhs,
                 static_cast<double>(beta), dst, expr::DotBatch::Of(lhs, rhs, dst));
}

namespace detail {
UMBRA_OP(sorts_before, (a, b), a < b || (a == a && b != b))
UMBRA_OP(sorts_before_descending, (a, b), a > b || (a == a && b != b))
UMBRA_OP(sorts_alike, (a, b), a == b || (a != a && b != b))
UMBRA_OP(bitonic_half, (i, n), i / n - i / n / 2 * 2)
UMBRA_OP(bitonic_partner, (i, n), select(i / n - i / n / 2 * 2 == 0, i + n, i - n))

/// One step of a bitonic network over `order`, the positions of keys, as many as a power of two: `here` counts them,
/// and those from `count` on stand for no key and come last. Before is how keys are compared.
template <typename Before, typename KDType>
inline auto SortingStep(const Tensor<gpu, 1, index_t>& order, const Tensor<gpu, 1, index_t>& here,
                        const Tensor<gpu, 1, KDType>& keys, index_t count, index_t distance, index_t block) {
  const auto other = take(F<bitonic_partner>(here, scalar(distance)), order);
  const auto key = take(order, keys);
  const auto other_key = take(other, keys);
  const auto earlier = F<op::lt>(other, order);  // equal keys keep their order
  const auto keys_say = F<op::logical_or>(tcast<index_t>(F<Before>(other_key, key)),
                                          F<op::logical_and>(tcast<index_t>(F<sorts_alike>(other_key, key)), earlier));
  const auto before = F<op::select>(F<op::lt>(F<op::maximum>(order, other), scalar(count)), keys_say, earlier);
  const auto keeps_first = F<op::eq>(F<bitonic_half>(here, scalar(distance)), F<bitonic_half>(here, scalar(block)));
  return F<op::select>(F<op::eq>(before, keeps_first), other, order);
}

/// The positions of `keys` in sorted order, then those beyond them.
template <typename Before, typename KDType>
inline TensorContainer<gpu, 1, index_t> SortedOrder(const Tensor<gpu, 1, KDType>& keys) {
  index_t padded = 1;
  while (padded < keys.size(0)) padded *= 2;
  TensorContainer<gpu, 1, index_t> order(Shape1(padded)), here(order.shape_), next(order.shape_);
  for (auto* const t : {&order, &here, &next}) t->set_stream(keys.stream_);
  jit(here.Slice(0, 1)) = index_t{0};
  for (index_t known = 1; known < padded; known *= 2) jit(here.Slice(known, 2 * known)) = here.Slice(0, known) + known;
  Copy<1, index_t>(order, here, keys.stream_);
  for (index_t block = 2; block <= padded; block *= 2)
    for (index_t distance = block / 2; distance > 0; distance /= 2) {
      jit(next) = SortingStep<Before>(order, here, keys, keys.size(0), distance, block);
      std::swap(static_cast<Tensor<gpu, 1, index_t>&>(order), static_cast<Tensor<gpu, 1, index_t>&>(next));
    }
  return order;
}

/// data[i] = data[order[i]].
template <typename DType>
inline void TakeInPlace(const Tensor<gpu, 1, DType>& data, const Tensor<gpu, 1, index_t>& order, Stream<gpu>* stream) {
  TensorContainer<gpu, 1, DType> taken(data.shape_);
  taken.set_stream(stream);
  jit(taken) = take(order, data);
  Copy<1, DType>(data, taken, stream);
}
}  // namespace detail

/// Sorts `keys` and brings `values` into the same order; equal keys keep theirs. NaN comes last. For n keys
/// log2(n) (log2(n) + 1) / 2 launches of one kernel over the next power of two, all in the stream of `keys`. Throws
/// umbra::Error if the lengths differ or the tensors overlap.
template <typename KDType, typename VDType>
inline void SortByKey(Tensor<gpu, 1, KDType> keys, Tensor<gpu, 1, VDType> values, bool is_ascend = true) {
  detail::RequireShapes(keys.size(0) == values.size(0), "SortByKey");
  detail::RequireMemory("SortByKey", keys, values);
  if (keys.size(0) < 2) return;
  const auto all = is_ascend ? detail::SortedOrder<detail::sorts_before>(keys)
                             : detail::SortedOrder<detail::sorts_before_descending>(keys);
  const Tensor<gpu, 1, index_t> order = all.Slice(0, keys.size(0));
  detail::TakeInPlace(keys, order, keys.stream_);
  detail::TakeInPlace(values, order, keys.stream_);
}
/// Sorts the elements of every segment: `segments` says which one each of `values` belongs to, and is
/// in ascending order afterwards.
template <typename VDType, typename SDType>
inline void VectorizedSort(Tensor<gpu, 1, VDType> values, Tensor<gpu, 1, SDType> segments) {
  SortByKey(values, segments, true);
  segments.set_stream(values.stream_);
  SortByKey(segments, values, true);
}

}  // namespace umbra

#endif  // UMBRA_GPU_FUNCTIONS_H_

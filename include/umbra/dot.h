// Eager evaluation of dst = scale * dot(a, b), mshadow's product by BLAS, and of its += and -= forms.
#ifndef UMBRA_DOT_H_
#define UMBRA_DOT_H_

#include "umbra/cuda_gemm.h"
#include "umbra/expr_engine.h"
#include "umbra/gemm.h"
#include "umbra/tensor.h"

namespace umbra::expr {

/// A GPU computes a batch of products at once: how many, and the elements from one matrix to the next.
struct DotBatch {
  index_t count = 1, lhs = 0, rhs = 0, dst = 0;  ///< products, and the steps of the three operands

  /// Of matrices that lie one after the other.
  template <typename DType>
  static DotBatch Of(const Tensor<gpu, 3, DType>& lhs, const Tensor<gpu, 3, DType>& rhs,
                     const Tensor<gpu, 3, DType>& dst) {
    const auto step = [](const auto& t) { return static_cast<index_t>(t.template MemSize<1>()); };
    return {dst.size(0), step(lhs), step(rhs), step(dst)};
  }
};

/// dst = alpha * op(lhs) . op(rhs) + beta * dst by cuBLASLt, in the stream of `dst`: matrices of m x k and k x n, or
/// vectors, or batches of them. Throws umbra::Error as cuda::Run does.
template <typename DType, int ldim, int rdim, int dim>
inline void RunOnGpu(bool transpose_left, bool transpose_right, index_t m, index_t n, index_t k, double alpha,
                     const Tensor<gpu, ldim, DType>& lhs, const Tensor<gpu, rdim, DType>& rhs, double beta,
                     const Tensor<gpu, dim, DType>& dst, const DotBatch& batch) {
  cuda::Gemm gemm;
  gemm.dtype = DTypeOf<DType>::value;
  gemm.transpose_a = transpose_left;
  gemm.transpose_b = transpose_right;
  gemm.m = m;
  gemm.n = n;
  gemm.k = k;
  gemm.alpha = alpha;
  gemm.beta = beta;
  gemm.a = lhs.dptr_;
  gemm.b = rhs.dptr_;
  gemm.c = dst.dptr_;
  gemm.lda = lhs.stride_;
  gemm.ldb = rhs.stride_;
  gemm.ldc = dst.stride_;
  gemm.batch = batch.count;
  gemm.stride_a = batch.lhs;
  gemm.stride_b = batch.rhs;
  gemm.stride_c = batch.dst;
  cuda::Run(gemm, Stream<gpu>::GetStream(dst.stream_));
}
/// dst Saver= scale * op(a) . op(b) by BLAS, for all ranks but batches; EvalDot has checked the dtype.
template <typename Saver, typename Device, int dim, typename DType, typename TA, typename TB, bool lt, bool rt>
inline void EvalMatrixDot(Tensor<Device, dim, DType>* dst, const DotExp<TA, TB, lt, rt, DType>& e,
                          const DotBatch& batch = {});

/// dst Saver= a product, in the dtype that DType is computed in. Throws umbra::Error if the shapes do not fit
/// or `dst` overlaps an operand.
template <typename Saver, typename Device, int dim, typename DType, typename TA, typename TB, bool lt, bool rt>
inline void EvalDot(Tensor<Device, dim, DType>* dst, const DotExp<TA, TB, lt, rt, DType>& e) {
  static_assert(std::is_floating_point_v<ComputeOf<DType>>,
                "umbra: dot() takes tensors of float, double, half_t or bf16_t");
  static_assert(
      std::is_same_v<Saver, sv::saveto> || std::is_same_v<Saver, sv::plusto> || std::is_same_v<Saver, sv::minusto>,
      "umbra: dot() can be assigned by =, += and -= only");
  constexpr int ldim = ExpInfo<TA>::kDim, rdim = ExpInfo<TB>::kDim;
  static_assert(ExpInfo<TA>::kDevMask == Device::kDevMask && ExpInfo<TB>::kDevMask == Device::kDevMask,
                "umbra: the expression and its destination are on different devices");
  umbra::detail::Settle(dst->stream_);
  if constexpr (Device::kDevCPU && !kHasPackets<DType>) {
    // In f32, rounded once.
    using C = ComputeOf<DType>;
    TensorContainer<Device, ldim, C> lhs(e.lhs_.shape_);
    TensorContainer<Device, rdim, C> rhs(e.rhs_.shape_);
    TensorContainer<Device, dim, C> product(dst->shape_);
    lhs = tcast<C>(e.lhs_);
    rhs = tcast<C>(e.rhs_);
    EvalDot<sv::saveto>(&product, DotExp<Tensor<Device, ldim, C>, Tensor<Device, rdim, C>, lt, rt, C>(
                                      lhs, rhs, static_cast<C>(e.scale_)));
    umbra::detail::ForEachRow(*dst, [&](index_t y, DType* row) {
      for (index_t x = 0; x < dst->shape_[dim - 1]; ++x)
        Store<Saver>(&row[x], product.dptr_[(dim == 1 ? 0 : y * product.stride_) + x]);
    });
    return;
  } else if constexpr (dim == 3 && ldim == 3 && rdim == 3) {
    Require(dst->size(0) == e.lhs_.size(0) && dst->size(0) == e.rhs_.size(0), "batch_dot: shapes ", e.lhs_.shape_,
            " and ", e.rhs_.shape_, " do not give shape ", dst->shape_);
    if constexpr (!Device::kDevCPU) {
      if (dst->size(0) == 0) return;
      const Region region = RegionOf(*dst);
      Require(AliasCheck<TA>::Apart(e.lhs_, region) && AliasCheck<TB>::Apart(e.rhs_, region),
              "batch_dot: the destination overlaps an operand; assign to memory of its own");
      Tensor<Device, 2, DType> matrix = (*dst)[0];
      EvalMatrixDot<Saver>(
          &matrix,
          DotExp<Tensor<Device, 2, DType>, Tensor<Device, 2, DType>, lt, rt, DType>(e.lhs_[0], e.rhs_[0], e.scale_),
          DotBatch::Of(e.lhs_, e.rhs_, *dst));
      return;
    }
    for (index_t k = 0; k < dst->size(0); ++k) {
      Tensor<Device, 2, DType> matrix = (*dst)[k];
      EvalDot<Saver>(&matrix, DotExp<Tensor<Device, 2, DType>, Tensor<Device, 2, DType>, lt, rt, DType>(
                                  e.lhs_[k], e.rhs_[k], e.scale_));
    }
    return;
  } else {
    EvalMatrixDot<Saver>(dst, e);
  }
}

template <typename Saver, typename Device, int dim, typename DType, typename TA, typename TB, bool lt, bool rt>
inline void EvalMatrixDot(Tensor<Device, dim, DType>* dst, const DotExp<TA, TB, lt, rt, DType>& e,
                          const DotBatch& batch) {
  constexpr int ldim = ExpInfo<TA>::kDim, rdim = ExpInfo<TB>::kDim;
  static_assert((dim == 2 && ldim == 2 && rdim == 2) || (dim == 1 && ldim == 1 && rdim == 2) ||
                    (dim == 2 && ldim == 1 && rdim == 1),
                "umbra: dot() is matrix . matrix, vector . matrix, or vector . vector (outer "
                "product), assigned to a tensor of the result's rank");
  using C = ComputeOf<DType>;
  const C alpha = std::is_same_v<Saver, sv::minusto> ? -static_cast<C>(e.scale_) : static_cast<C>(e.scale_);
  const C beta = std::is_same_v<Saver, sv::saveto> ? C(0) : C(1);
  // A vector is a row on the left; on the right of an outer product too, its partner a column.
  constexpr bool outer = ldim == 1 && rdim == 1;
  const Shape<2> a = e.lhs_.shape_.FlatTo2D(), b = e.rhs_.shape_.FlatTo2D();
  const bool ta = (lt && ldim == 2) || outer, tb = rt && rdim == 2;
  const index_t m = ta ? a[1] : a[0], ka = ta ? a[0] : a[1];
  const index_t n = tb ? b[0] : b[1], kb = tb ? b[1] : b[0];
  const Shape<2> c = dst->shape_.FlatTo2D();
  Require(ka == kb && c[0] == m && c[1] == n, "dot: shapes ", e.lhs_.shape_, lt ? ".T" : "", " and ", e.rhs_.shape_,
          rt ? ".T" : "", " do not give shape ", dst->shape_, ": ", ka, " columns of the left meet ", kb,
          " rows of the right, in a product of shape (", m, ",", n, ")");
  CheckTensor(*dst);
  CheckTensor(e.lhs_);
  CheckTensor(e.rhs_);
  const Region region = RegionOf(*dst);
  Require(AliasCheck<TA>::Apart(e.lhs_, region) && AliasCheck<TB>::Apart(e.rhs_, region),
          "dot: the destination overlaps an operand; assign to memory of its own");
  if (m == 0 || n == 0) return;
  if constexpr (Device::kDevCPU) {
    blas::Gemm<DType>(ta, tb, m, n, ka, alpha, e.lhs_.dptr_, e.lhs_.stride_, e.rhs_.dptr_, e.rhs_.stride_, beta,
                      dst->dptr_, dst->stride_);
  } else {
    RunOnGpu(ta, tb, m, n, ka, static_cast<double>(alpha), e.lhs_, e.rhs_, static_cast<double>(beta), *dst, batch);
  }
}

}  // namespace umbra::expr

#endif  // UMBRA_DOT_H_

// Eager evaluation of dst = scale * dot(a, b), and of its += and -= forms.
#ifndef UMBRA_DOT_H_
#define UMBRA_DOT_H_

#include "umbra/blas.h"
#include "umbra/expr_engine.h"
#include "umbra/tensor.h"

namespace umbra::blas {

/// c = alpha * op(a) . op(b) + beta * c of row-major matrices, as in umbra/blas.h: by the runtime
/// where the program links it, else by a loop here.
template <typename DType>
inline void Gemm(bool ta, bool tb, index_t m, index_t n, index_t k, DType alpha, const DType* a,
                 index_t lda, const DType* b, index_t ldb, DType beta, DType* c, index_t ldc) {
#if defined(UMBRA_HAS_RUNTIME)
  if constexpr (std::is_same_v<DType, float>)
    umbra_gemm_f32(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else
    umbra_gemm_f64(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
#else
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j)
      c[i * ldc + j] = beta == DType(0) ? DType(0) : beta * c[i * ldc + j];
  constexpr index_t kBlock = 256;  // rows of b that stay in cache while all rows of a pass by
  for (index_t p0 = 0; p0 < k; p0 += kBlock)
    for (index_t i = 0; i < m; ++i)
      for (index_t p = p0; p < k && p < p0 + kBlock; ++p) {
        const DType factor = alpha * (ta ? a[p * lda + i] : a[i * lda + p]);
        DType* row = c + i * ldc;
        if (tb)
          for (index_t j = 0; j < n; ++j) row[j] += factor * b[j * ldb + p];
        else
          for (index_t j = 0; j < n; ++j) row[j] += factor * b[p * ldb + j];
      }
#endif
}

}  // namespace umbra::blas

namespace umbra::expr {

template <typename Saver, typename Device, int dim, typename DType, typename TA, typename TB,
          bool lt, bool rt>
inline void EvalMatrixDot(Tensor<Device, dim, DType>* dst, const DotExp<TA, TB, lt, rt, DType>& e);

template <typename Saver, typename Device, int dim, typename DType, typename TA, typename TB,
          bool lt, bool rt>
inline void EvalDot(Tensor<Device, dim, DType>* dst, const DotExp<TA, TB, lt, rt, DType>& e) {
  static_assert(std::is_same_v<DType, float> || std::is_same_v<DType, double>,
                "umbra: dot() takes tensors of float or of double");
  static_assert(std::is_same_v<Saver, sv::saveto> || std::is_same_v<Saver, sv::plusto> ||
                    std::is_same_v<Saver, sv::minusto>,
                "umbra: dot() can be assigned by =, += and -= only");
  constexpr int ldim = ExpInfo<TA>::kDim, rdim = ExpInfo<TB>::kDim;
  if constexpr (dim == 3 && ldim == 3 && rdim == 3) {
    Require(dst->size(0) == e.lhs_.size(0) && dst->size(0) == e.rhs_.size(0), "batch_dot: shapes ",
            e.lhs_.shape_, " and ", e.rhs_.shape_, " do not give shape ", dst->shape_);
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

template <typename Saver, typename Device, int dim, typename DType, typename TA, typename TB,
          bool lt, bool rt>
inline void EvalMatrixDot(Tensor<Device, dim, DType>* dst, const DotExp<TA, TB, lt, rt, DType>& e) {
  constexpr int ldim = ExpInfo<TA>::kDim, rdim = ExpInfo<TB>::kDim;
  static_assert((dim == 2 && ldim == 2 && rdim == 2) || (dim == 1 && ldim == 1 && rdim == 2) ||
                    (dim == 2 && ldim == 1 && rdim == 1),
                "umbra: dot() is matrix . matrix, vector . matrix, or vector . vector (outer "
                "product), assigned to a tensor of the result's rank");
  const DType alpha = std::is_same_v<Saver, sv::minusto> ? -e.scale_ : e.scale_;
  const DType beta = std::is_same_v<Saver, sv::saveto> ? DType(0) : DType(1);
  // A vector is a row on the left; on the right of an outer product too, its partner a column.
  constexpr bool outer = ldim == 1 && rdim == 1;
  const Shape<2> a = e.lhs_.shape_.FlatTo2D(), b = e.rhs_.shape_.FlatTo2D();
  const bool ta = (lt && ldim == 2) || outer, tb = rt && rdim == 2;
  const index_t m = ta ? a[1] : a[0], ka = ta ? a[0] : a[1];
  const index_t n = tb ? b[0] : b[1], kb = tb ? b[1] : b[0];
  const Shape<2> c = dst->shape_.FlatTo2D();
  Require(ka == kb && c[0] == m && c[1] == n, "dot: shapes ", e.lhs_.shape_, lt ? ".T" : "",
          " and ", e.rhs_.shape_, rt ? ".T" : "", " do not give shape ", dst->shape_);
  CheckTensor(*dst);
  CheckTensor(e.lhs_);
  CheckTensor(e.rhs_);
  const Region region = RegionOf(*dst);
  Require(AliasCheck<TA>::Apart(e.lhs_, region) && AliasCheck<TB>::Apart(e.rhs_, region),
          "dot: the destination overlaps an operand; assign to memory of its own");
  if (m == 0 || n == 0) return;
  blas::Gemm<DType>(ta, tb, m, n, ka, alpha, e.lhs_.dptr_, e.lhs_.stride_, e.rhs_.dptr_,
                    e.rhs_.stride_, beta, dst->dptr_, dst->stride_);
}

}  // namespace umbra::expr

#endif  // UMBRA_DOT_H_

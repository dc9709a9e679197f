// Matrix products of float and double for C++: by the runtime where the program links it, else by a loop.
#ifndef UMBRA_GEMM_H_
#define UMBRA_GEMM_H_

#include <type_traits>

#include "umbra/blas.h"
#include "umbra/dtype.h"

namespace umbra::blas {

/// c = alpha * op(a) . op(b) + beta * c of row-major matrices, as in umbra/blas.h: by the runtime
/// where the program links it, else by a loop here.
template <typename DType>
inline void Gemm(bool ta, bool tb, index_t m, index_t n, index_t k, DType alpha, const DType* a, index_t lda,
                 const DType* b, index_t ldb, DType beta, DType* c, index_t ldc) {
#if defined(UMBRA_HAS_RUNTIME)
  if constexpr (std::is_same_v<DType, float>) umbra_gemm_f32(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else umbra_gemm_f64(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
#else
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) c[i * ldc + j] = beta == DType(0) ? DType(0) : beta * c[i * ldc + j];
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

#endif  // UMBRA_GEMM_H_

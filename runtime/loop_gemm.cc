#include "runtime/loop_gemm.h"

#include <algorithm>

namespace umbra::runtime {

template <typename T>
void LoopGemm(bool ta, bool tb, long long m, long long n, long long k, T alpha, const T* a, long long lda, const T* b,
              long long ldb, T beta, T* c, long long ldc) {
  constexpr long long kBlock = 256;
  for (long long i = 0; i < m; ++i)
    for (long long j = 0; j < n; ++j) c[i * ldc + j] = beta == T(0) ? T(0) : beta * c[i * ldc + j];
  for (long long p0 = 0; p0 < k; p0 += kBlock)
    for (long long i = 0; i < m; ++i)
      for (long long p = p0; p < std::min(k, p0 + kBlock); ++p) {
        const T factor = alpha * (ta ? a[p * lda + i] : a[i * lda + p]);
        for (long long j = 0; j < n; ++j) c[i * ldc + j] += factor * (tb ? b[j * ldb + p] : b[p * ldb + j]);
      }
}

template void LoopGemm<float>(bool, bool, long long, long long, long long, float, const float*, long long, const float*,
                              long long, float, float*, long long);
template void LoopGemm<double>(bool, bool, long long, long long, long long, double, const double*, long long,
                               const double*, long long, double, double*, long long);

}  // namespace umbra::runtime

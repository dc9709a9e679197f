// A product for machines without a BLAS and for sizes beyond its int.
#ifndef UMBRA_RUNTIME_LOOP_GEMM_H_
#define UMBRA_RUNTIME_LOOP_GEMM_H_

namespace umbra::runtime {

/// c = alpha a b + beta c of row-major matrices, as CBLAS has it: rows of c in turn, sums over k in order.
template <typename T>
void LoopGemm(bool ta, bool tb, long long m, long long n, long long k, T alpha, const T* a, long long lda, const T* b,
              long long ldb, T beta, T* c, long long ldc);

extern template void LoopGemm<float>(bool, bool, long long, long long, long long, float, const float*, long long,
                                     const float*, long long, float, float*, long long);
extern template void LoopGemm<double>(bool, bool, long long, long long, long long, double, const double*, long long,
                                      const double*, long long, double, double*, long long);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_LOOP_GEMM_H_

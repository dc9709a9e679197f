// Matrix products in C: the runtime's entry points, which use the machine's BLAS where there is one.
#ifndef UMBRA_BLAS_H_
#define UMBRA_BLAS_H_

#ifdef __cplusplus
extern "C" {
#endif

/// c = alpha * op(a) . op(b) + beta * c with row-major matrices: op(a) is m x k, op(b) is k x n; a
/// leading dimension is the distance of two rows as they lie in memory. `c` is not read if beta is
/// 0. Without a BLAS a blocked loop computes the same.
void umbra_gemm_f32(int transpose_a, int transpose_b, long long m, long long n, long long k, float alpha,
                    const float* a, long long lda, const float* b, long long ldb, float beta, float* c, long long ldc);
void umbra_gemm_f64(int transpose_a, int transpose_b, long long m, long long n, long long k, double alpha,
                    const double* a, long long lda, const double* b, long long ldb, double beta, double* c,
                    long long ldc);

#ifdef __cplusplus
}
#endif

#endif  // UMBRA_BLAS_H_

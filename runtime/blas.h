// The machine's CBLAS, opened at run time.
#ifndef UMBRA_RUNTIME_BLAS_H_
#define UMBRA_RUNTIME_BLAS_H_

#include <string>

#include "umbra/blas.h"

namespace umbra::runtime {

/// File name of the BLAS in use; empty if none was found. UMBRA_BLAS names another.
const std::string& BlasName();
/// Why the library that UMBRA_BLAS names is not the one in use; empty if it is, or names none.
const std::string& BlasProblem();

/// The processor that OpenBLAS has chosen its kernels for, in its words: Haswell, SkylakeX; empty for another library.
const std::string& BlasCore();

/// May several threads call BLAS at once, each with one thread of its own while a BlasThreads(1) lives?
bool BlasMayRunSideBySide();

/// While it lives, BLAS uses at most this many threads (0: as many as the host has set); then the
/// host's own setting holds again.
class BlasThreads {
 public:
  explicit BlasThreads(int threads);
  ~BlasThreads();
  BlasThreads(const BlasThreads&) = delete;
  BlasThreads& operator=(const BlasThreads&) = delete;

 private:
  int before_ = 0;  // 0: nothing to restore
};

inline void Gemm(int ta, int tb, long long m, long long n, long long k, float alpha, const float* a, long long lda,
                 const float* b, long long ldb, float beta, float* c, long long ldc) {
  umbra_gemm_f32(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
inline void Gemm(int ta, int tb, long long m, long long n, long long k, double alpha, const double* a, long long lda,
                 const double* b, long long ldb, double beta, double* c, long long ldc) {
  umbra_gemm_f64(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_BLAS_H_

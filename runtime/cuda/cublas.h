// cuBLASLt, opened at run time.
#ifndef UMBRA_RUNTIME_CUDA_CUBLAS_H_
#define UMBRA_RUNTIME_CUDA_CUBLAS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/opened_library.h"

namespace umbra::cuda {

// The library's binary interface, as its documentation gives it (CUDA 12 and 13 agree on what is here).
using BlasStatus = int;  // cublasStatus_t; 0 is success
inline constexpr BlasStatus kBlasAllocationFailed = 3, kBlasInvalidValue = 7, kBlasNotSupported = 15;
inline constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2, kRealBf16 = 14;  // cudaDataType
inline constexpr int kCompute32 = 68, kCompute64 = 70, kCompute32Tf32 = 77;  // cublasComputeType_t
enum MatmulAttribute {
  kTransposeA = 3,
  kTransposeB = 4,
  kEpilogue = 7,
  kBiasPointer = 8
};  // cublasLtMatmulDescAttributes_t
enum LayoutAttribute { kBatchCount = 5, kBatchStride = 6 };  // cublasLtMatrixLayoutAttribute_t
enum PreferenceAttribute {
  kMaxWorkspace = 1,
  kReductionSchemes = 3,
  kAlignmentA = 5,
  kAlignmentB,
  kAlignmentC,
  kAlignmentD
};

inline constexpr std::uint32_t kReductionInComputeType = 2;  // of cublasLtReductionScheme_t; none is always allowed

struct MatmulAlgorithm {  // cublasLtMatmulAlgo_t
  std::uint64_t data[8];
};
struct MatmulHeuristic {  // cublasLtMatmulHeuristicResult_t
  MatmulAlgorithm algorithm;
  std::size_t workspace_bytes;
  BlasStatus state;
  float waves;
  int reserved[4];
};

/// The entry points of libcublasLt.
struct Cublas : runtime::OpenedLibrary {
#define UMBRA_CUBLAS_FUNCTIONS(F)                                                                                      \
  F(cublasLtCreate, BlasStatus, (void**))                                                                              \
  F(cublasLtGetVersion, std::size_t, ())                                                                               \
  F(cublasLtGetStatusName, const char*, (BlasStatus))                                                                  \
  F(cublasLtGetStatusString, const char*, (BlasStatus))                                                                \
  F(cublasLtMatmulDescCreate, BlasStatus, (void**, int, int))                                                          \
  F(cublasLtMatmulDescDestroy, BlasStatus, (void*))                                                                    \
  F(cublasLtMatmulDescSetAttribute, BlasStatus, (void*, int, const void*, std::size_t))                                \
  F(cublasLtMatrixLayoutCreate, BlasStatus, (void**, int, std::uint64_t, std::uint64_t, std::int64_t))                 \
  F(cublasLtMatrixLayoutDestroy, BlasStatus, (void*))                                                                  \
  F(cublasLtMatrixLayoutSetAttribute, BlasStatus, (void*, int, const void*, std::size_t))                              \
  F(cublasLtMatmulPreferenceCreate, BlasStatus, (void**))                                                              \
  F(cublasLtMatmulPreferenceDestroy, BlasStatus, (void*))                                                              \
  F(cublasLtMatmulPreferenceSetAttribute, BlasStatus, (void*, int, const void*, std::size_t))                          \
  F(cublasLtMatmulAlgoGetHeuristic, BlasStatus,                                                                        \
    (void*, void*, void*, void*, void*, void*, void*, int, MatmulHeuristic*, int*))                                    \
  F(cublasLtMatmul, BlasStatus,                                                                                        \
    (void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*, void*, void*, \
     const MatmulAlgorithm*, void*, std::size_t, void*))
#define UMBRA_DECLARE_CUBLAS_FUNCTION(function, result, arguments) result(*function) arguments = nullptr;
  UMBRA_CUBLAS_FUNCTIONS(UMBRA_DECLARE_CUBLAS_FUNCTION)
#undef UMBRA_DECLARE_CUBLAS_FUNCTION
};

/// The library of this process, opened at the first call. Does not throw.
const Cublas& FindCublas() noexcept;
/// The library, ready for use. Throws umbra::Error, with what to do, if there is none.
const Cublas& UseCublas();

}  // namespace umbra::cuda

#endif  // UMBRA_RUNTIME_CUDA_CUBLAS_H_

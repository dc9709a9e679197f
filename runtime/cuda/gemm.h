// Matrix products, for the steps of programs.
#ifndef UMBRA_RUNTIME_CUDA_GEMM_H_
#define UMBRA_RUNTIME_CUDA_GEMM_H_

#include "umbra/cuda_gemm.h"

namespace umbra::cuda {

/// What addresses are looked at for: products at addresses that agree in these low bits run by the same algorithm.
inline constexpr std::size_t kGemmAlignment = 256;

/// CanRun of a product whose addresses say how they are aligned, and need not be memory. Nothing if cuBLASLt gives an
/// error instead of an answer, as it may while the stream is captured.
std::optional<bool> HasGemm(const Gemm& gemm, StreamHandle stream);

/// What AllowTf32 was given last.
bool Tf32Allowed() noexcept;

}  // namespace umbra::cuda

#endif  // UMBRA_RUNTIME_CUDA_GEMM_H_

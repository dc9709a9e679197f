// Matrix products on a GPU, by cuBLASLt, which is opened at the first of them.
#ifndef UMBRA_CUDA_GEMM_H_
#define UMBRA_CUDA_GEMM_H_

#include <optional>

#include "umbra/cuda.h"
#include "umbra/dtype.h"

namespace umbra::cuda {

/// What becomes of a product before it is stored.
enum class Epilogue {
  kNone,
  kBias,  ///< + bias[j] in column j
  kRelu,  ///< x where it is above 0, else 0, of NaN, too
  kBiasRelu,  ///< + bias, then relu
  kGelu,  ///< GELU in its tanh form, as Umbra's operator gelu; how exact, NVIDIA does not say
  kBiasGelu,  ///< + bias, then GELU
};

/// c = epilogue(alpha * op(a) . op(b) + beta * c) of row-major matrices: op(a) is m x k, op(b) is k x n, c is m x n. A
/// leading dimension is the distance of two rows as they lie in memory, in elements. `batch` products lie the strides
/// apart; a stride of 0 uses one matrix for all. c is not read if beta is 0.
struct Gemm {
  DType dtype = DType::kFloat32;  ///< of c and the bias: f32, f64, f16 or bf16, the last two summed in f32
  std::optional<DType> factors;  ///< of a and b, if not c's: f16 or bf16 where c is f32
  bool transpose_a = false, transpose_b = false;  ///< of a and b as they lie in memory
  index_t m = 0, n = 0, k = 0;  ///< rows, columns, and the extent that is summed over
  double alpha = 1, beta = 0;  ///< factors of the product and of what c held
  const void* a = nullptr;  ///< device address of the left matrices
  const void* b = nullptr;  ///< device address of the right matrices
  void* c = nullptr;  ///< device address of the results
  index_t lda = 0, ldb = 0, ldc = 0;  ///< leading dimensions, at least the columns in memory
  index_t batch = 1, stride_a = 0, stride_b = 0,
          stride_c = 0;  ///< how many products, and elements from one matrix to the next
  Epilogue epilogue = Epilogue::kNone;  ///< applied last
  const void* bias = nullptr;  ///< n elements
};

/// Has cuBLASLt such a product, with its epilogue? A bias has to be aligned to 16 bytes; f64 has few epilogues.
bool CanRun(const Gemm& gemm, StreamHandle stream);
/// Puts a product into `stream`. Throws umbra::Error if cuBLASLt is not there, the dtype is none of these, memory is
/// not the device's, or CanRun says no.
void Run(const Gemm& gemm, StreamHandle stream);

/// May products of f32 round their operands to TF32, which has 10 bits of mantissa and is much faster? No, unless
/// this says so, for all products from now on.
void AllowTf32(bool allow) noexcept;

}  // namespace umbra::cuda

#endif  // UMBRA_CUDA_GEMM_H_

// The interfaces that the runtime declares for itself are those of NVIDIA's headers, where these are installed.
#if __has_include(<cuda.h>) && __has_include(<cublasLt.h>) && __has_include(<nvrtc.h>)
#include <cublasLt.h>
#include <cuda.h>
#include <nvrtc.h>
#define UMBRA_HAS_CUDA_HEADERS 1
#endif

#include <gtest/gtest.h>

#include "compiler/driver/nvrtc.h"
#include "runtime/cuda/cublas.h"
#include "runtime/cuda/driver.h"

namespace umbra {
namespace {

#if defined(UMBRA_HAS_CUDA_HEADERS)
template <typename F>
struct Sizes;
template <typename R, typename... Arguments>
struct Sizes<R (*)(Arguments...)> {
  static std::vector<std::size_t> Of() { return {sizeof(R), sizeof(Arguments)...}; }
};

TEST(CudaAbi, FunctionsTakeWhatTheHeadersSay) {
#define UMBRA_COMPARE(function, arguments) \
  EXPECT_EQ(Sizes<decltype(cuda::Driver::function)>::Of(), Sizes<decltype(&::function)>::Of()) << #function;
  UMBRA_CUDA_FUNCTIONS(UMBRA_COMPARE)
#undef UMBRA_COMPARE
#define UMBRA_COMPARE(function, result, arguments) \
  EXPECT_EQ(Sizes<decltype(cuda::Cublas::function)>::Of(), Sizes<decltype(&::function)>::Of()) << #function;
  UMBRA_CUBLAS_FUNCTIONS(UMBRA_COMPARE)
#undef UMBRA_COMPARE
#define UMBRA_COMPARE(function, result, arguments) \
  EXPECT_EQ(Sizes<decltype(Nvrtc::function)>::Of(), Sizes<decltype(&::function)>::Of()) << #function;
  UMBRA_NVRTC_FUNCTIONS(UMBRA_COMPARE)
#undef UMBRA_COMPARE
}

#define EXPECT_PLACE(ours, our_field, theirs, their_field) \
  EXPECT_EQ(offsetof(ours, our_field), offsetof(theirs, their_field)) << #their_field

TEST(CudaAbi, StructsLieAsTheHeadersSay) {
  EXPECT_EQ(sizeof(cuda::Memcpy2D), sizeof(CUDA_MEMCPY2D));
  EXPECT_PLACE(cuda::Memcpy2D, src_device, CUDA_MEMCPY2D, srcDevice);
  EXPECT_PLACE(cuda::Memcpy2D, dst_pitch, CUDA_MEMCPY2D, dstPitch);
  EXPECT_PLACE(cuda::Memcpy2D, height, CUDA_MEMCPY2D, Height);
  EXPECT_EQ(sizeof(cuda::Memcpy3DPeer), sizeof(CUDA_MEMCPY3D_PEER));
  EXPECT_PLACE(cuda::Memcpy3DPeer, src.type, CUDA_MEMCPY3D_PEER, srcMemoryType);
  EXPECT_PLACE(cuda::Memcpy3DPeer, src.device, CUDA_MEMCPY3D_PEER, srcDevice);
  EXPECT_PLACE(cuda::Memcpy3DPeer, src.context, CUDA_MEMCPY3D_PEER, srcContext);
  EXPECT_PLACE(cuda::Memcpy3DPeer, src.pitch, CUDA_MEMCPY3D_PEER, srcPitch);
  EXPECT_PLACE(cuda::Memcpy3DPeer, dst.device, CUDA_MEMCPY3D_PEER, dstDevice);
  EXPECT_PLACE(cuda::Memcpy3DPeer, dst.context, CUDA_MEMCPY3D_PEER, dstContext);
  EXPECT_PLACE(cuda::Memcpy3DPeer, width, CUDA_MEMCPY3D_PEER, WidthInBytes);
  EXPECT_EQ(sizeof(cuda::PoolProperties), sizeof(CUmemPoolProps));
  EXPECT_PLACE(cuda::PoolProperties, location, CUmemPoolProps, location);
  EXPECT_PLACE(cuda::PoolProperties, max_size, CUmemPoolProps, maxSize);
  EXPECT_EQ(sizeof(cuda::AccessDescription), sizeof(CUmemAccessDesc));
  EXPECT_EQ(sizeof(cuda::MatmulAlgorithm), sizeof(cublasLtMatmulAlgo_t));
  EXPECT_EQ(sizeof(cuda::MatmulHeuristic), sizeof(cublasLtMatmulHeuristicResult_t));
  EXPECT_PLACE(cuda::MatmulHeuristic, workspace_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize);
  EXPECT_PLACE(cuda::MatmulHeuristic, state, cublasLtMatmulHeuristicResult_t, state);
}

TEST(CudaAbi, NumbersAreTheHeaders) {
  const std::vector<std::pair<int, int>> pairs = {
      {cuda::kInvalidValue, CUDA_ERROR_INVALID_VALUE},
      {cuda::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY},
      {cuda::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU},
      {cuda::kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
      {cuda::kInvalidPtx, CUDA_ERROR_INVALID_PTX},
      {cuda::kNotFound, CUDA_ERROR_NOT_FOUND},
      {cuda::kNotReady, CUDA_ERROR_NOT_READY},
      {cuda::kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES},
      {cuda::kHostMemory, CU_MEMORYTYPE_HOST},
      {cuda::kDeviceMemory, CU_MEMORYTYPE_DEVICE},
      {cuda::kEventWithoutTiming, CU_EVENT_DISABLE_TIMING},
      {cuda::kPortableHostMemory, CU_MEMHOSTALLOC_PORTABLE},
      {cuda::kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED},
      {cuda::kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
      {cuda::kMaxGridX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X},
      {cuda::kMaxGridY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y},
      {cuda::kMaxGridZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z},
      {cuda::kSharedPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
      {cuda::kWarpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
      {cuda::kMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
      {cuda::kL2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
      {cuda::kMaxThreadsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
      {cuda::kMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
      {cuda::kMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
      {cuda::kSharedPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
      {cuda::kRegistersPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
      {cuda::kSharedPerBlockOptIn, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
      {cuda::kMaxBlocksPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
      {cuda::kMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
      {cuda::kMemoryType, CU_POINTER_ATTRIBUTE_MEMORY_TYPE},
      {cuda::kIsManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED},
      {cuda::kDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL},
      {cuda::kStaticSharedBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES},
      {cuda::kLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES},
      {cuda::kRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS},
      {cuda::kMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES},
      {cuda::kReuseAllowInternalDependencies, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES},
      {cuda::kReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD},
      {cuda::kReservedBytes, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT},
      {cuda::kErrorLog, CU_JIT_ERROR_LOG_BUFFER},
      {cuda::kErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
      {cuda::kBlasAllocationFailed, CUBLAS_STATUS_ALLOC_FAILED},
      {cuda::kBlasInvalidValue, CUBLAS_STATUS_INVALID_VALUE},
      {cuda::kBlasNotSupported, CUBLAS_STATUS_NOT_SUPPORTED},
      {cuda::kReal32, CUDA_R_32F},
      {cuda::kReal64, CUDA_R_64F},
      {cuda::kReal16, CUDA_R_16F},
      {cuda::kRealBf16, CUDA_R_16BF},
      {cuda::kCompute32, CUBLAS_COMPUTE_32F},
      {cuda::kCompute64, CUBLAS_COMPUTE_64F},
      {cuda::kCompute32Tf32, CUBLAS_COMPUTE_32F_FAST_TF32},
      {cuda::kTransposeA, CUBLASLT_MATMUL_DESC_TRANSA},
      {cuda::kTransposeB, CUBLASLT_MATMUL_DESC_TRANSB},
      {cuda::kEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE},
      {cuda::kBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER},
      {cuda::kBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT},
      {cuda::kBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET},
      {cuda::kMaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES},
      {cuda::kAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES},
      {cuda::kAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}};
  for (std::size_t k = 0; k < pairs.size(); ++k) EXPECT_EQ(pairs[k].first, pairs[k].second) << "pair " << k;
}
#else
TEST(CudaAbi, NeedsHeaders) { GTEST_SKIP() << "no CUDA toolkit is installed, whose headers these are compared with"; }
#endif

}  // namespace
}  // namespace umbra

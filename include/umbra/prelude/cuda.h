// What a generated CUDA kernel has besides the functions of one number: packets in memory, and reductions over
// the threads of a warp, a block or a column, in an order that depends on the shape of the block alone.
#ifndef UMBRA_PRELUDE_CUDA_H_
#define UMBRA_PRELUDE_CUDA_H_

#include "umbra/prelude/arith.h"

#if defined(__CUDACC__)

// As in umbra/kernel_abi.h.
union umbra_scalar {
  float f32;
  double f64;
  int i32;
  long long i64;
};

// Dynamic shared memory.
extern __shared__ __align__(16) char shared_memory[];

namespace umbra::simd {

// N elements that lie side by side, read and written 16 bytes at a time.
template <typename T, int N>
struct pack {
  alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) T at[N];
  UMBRA_INLINE T& operator[](int k) { return at[k]; }
  UMBRA_INLINE const T& operator[](int k) const { return at[k]; }
};

template <int N, typename T>
UMBRA_INLINE pack<T, N> load_pack(const T* p) { return *reinterpret_cast<const pack<T, N>*>(p); }

template <typename T, int N>
UMBRA_INLINE void store_pack(T* p, const pack<T, N>& v) { *reinterpret_cast<pack<T, N>*>(p) = v; }

// The first packet makes room for the one after it. Loops that compute of the first and go on so have packets in flight,
// in registers, and are written once.
template <typename T, int N, int M>
UMBRA_INLINE void advance(pack<T, N> (&packs)[M]) {
#pragma unroll
  for (int u = 1; u < M; ++u) packs[u - 1] = packs[u];
}

// The values of a warp's threads joined, in every thread.
template <typename Join, typename T>
UMBRA_INLINE T warp_all(T v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v = Join::join(v, __shfl_xor_sync(0xffffffff, v, step));
  return v;
}

// The values of a block's threads joined, in every thread; they are a multiple of 32.
template <typename Join, typename T>
UMBRA_INLINE T block_all(T v) {
  __shared__ T parts[32];
  const int thread = threadIdx.y * blockDim.x + threadIdx.x;
  const int warps = blockDim.x * blockDim.y / 32;
  v = warp_all<Join>(v);
  __syncthreads();
  if (thread % 32 == 0) parts[thread / 32] = v;
  __syncthreads();
  T all = parts[0];
  for (int warp = 1; warp < warps; ++warp) all = Join::join(all, parts[warp]);
  return all;
}

namespace detail {
// Shared memory of 8 bytes for each thread of a block of 32 columns, the same for all joins of a kernel.
UMBRA_INLINE void* column_parts() {
  __shared__ double parts[32][32];
  return parts;
}
}  // namespace detail

// The values of the threads of a block of 32 columns joined that share threadIdx.x, in each of them.
template <typename Join, typename T>
UMBRA_INLINE T column_all(T v) {
  T (*const parts)[32] = static_cast<T (*)[32]>(detail::column_parts());
  __syncthreads();
  parts[threadIdx.y][threadIdx.x] = v;
  __syncthreads();
  T all = parts[0][threadIdx.x];
  for (int y = 1; y < static_cast<int>(blockDim.y); ++y) all = Join::join(all, parts[y][threadIdx.x]);
  return all;
}

// The arguments of several launches that run as one: the blocks of the first, then those of the next. Places that are
// left over begin behind the last block. They are read where they lie, though a number chooses which.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
#define UMBRA_GRID_CONSTANT __grid_constant__
#else
#define UMBRA_GRID_CONSTANT
#endif
template <typename Arguments, int most>
struct launches_of {
  unsigned first[most + 1], across[most];
  Arguments arguments[most];
};

// Which of them a block belongs to, and where it is in that launch's grid.
struct launch_place {
  int number;
  uint3 block, grid;
};

template <typename Arguments, int most>
UMBRA_INLINE launch_place place_in(const launches_of<Arguments, most>& launches) {
  int number = 0;
#pragma unroll
  for (int step = 256; step > 0; step /= 2)
    if (number + step < most && launches.first[number + step] <= blockIdx.x) number += step;
  const unsigned at = blockIdx.x - launches.first[number], across = launches.across[number];
  return {number, {at % across, at / across, 0}, {across, (launches.first[number + 1] - launches.first[number]) / across, 1}};
}

}  // namespace umbra::simd

#endif

#endif  // UMBRA_PRELUDE_CUDA_H_

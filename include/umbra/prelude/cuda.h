// What a generated CUDA kernel has besides the functions of one number: packets in memory, and reductions over
// the threads of a warp, a block or a column, in an order that depends on the shape of the block alone.
#ifndef UMBRA_PRELUDE_CUDA_H_
#define UMBRA_PRELUDE_CUDA_H_

#include "umbra/prelude/reduce.h"

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
UMBRA_INLINE pack<T, N> load_pack(const T* p) {
  return *reinterpret_cast<const pack<T, N>*>(p);
}

template <typename T, int N>
UMBRA_INLINE void store_pack(T* p, const pack<T, N>& v) {
  *reinterpret_cast<pack<T, N>*>(p) = v;
}

// Has a packet brought from global to shared memory, past the registers; what `fetched` returns after, is there, for
// the thread itself. So a row is in flight as a whole.
template <int N, typename T>
UMBRA_INLINE void fetch_pack(T* to, const T* from) {
  constexpr int bytes = N * sizeof(T), step = bytes < 16 ? bytes : 16;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (step >= 4) {
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to));
#pragma unroll
    for (int k = 0; k < bytes; k += step) {
      const char* source = reinterpret_cast<const char*>(from) + k;
      if constexpr (step == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place + k), "l"(source) : "memory");
      else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place + k), "l"(source), "n"(step) : "memory");
    }
  } else
#endif
  {
    store_pack(to, load_pack<N>(from));
  }
}
UMBRA_INLINE void fetched() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// The packet there, or `outside` in each lane where there is none.
template <int N, typename T, typename U>
UMBRA_INLINE pack<T, N> load_pack_or(const T* p, U outside) {
  pack<T, N> v;
  if (p != nullptr) {
    v = load_pack<N>(p);
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = static_cast<T>(outside);
  }
  return v;
}

// May a packet of N elements begin there?
template <int N, typename T>
UMBRA_INLINE bool is_aligned(const T* p) {
  return reinterpret_cast<unsigned long long>(p) % alignof(pack<T, N>) == 0;
}

// Divides numbers of 0 and more by one number again and again. The quotient by a rounded inverse is the right one, or
// one too small. As `div` has it, x / 0 is 0; so it is by less than 0, where no element is computed.
struct divisor {
  UMBRA_INLINE divisor(int n)
      : by(n > 0 ? n : 2147483647),
        inverse(n > 0 ? 0xffffffffu / static_cast<unsigned>(n) : 0) {}
  int by;
  unsigned inverse;
};
struct divided {
  UMBRA_INLINE divided(int n, divisor d) {
    quotient = static_cast<int>(static_cast<unsigned long long>(n) * d.inverse >> 32);
    rest = n - quotient * d.by;
    if (rest >= d.by) {
      rest -= d.by;
      ++quotient;
    }
  }
  int quotient, rest;
};

// Where sums and products of integers overflow they wrap.
template <>
UMBRA_INLINE int Sum::join(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}
template <>
UMBRA_INLINE i64 Sum::join(i64 a, i64 b) {
  return static_cast<i64>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
}
template <>
UMBRA_INLINE int Product::join(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) * static_cast<unsigned>(b));
}
template <>
UMBRA_INLINE i64 Product::join(i64 a, i64 b) {
  return static_cast<i64>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b));
}
template <>
UMBRA_INLINE float Maximum::join(float a, float b) {
  return maximum_at_once(a, b);
}
template <>
UMBRA_INLINE float Minimum::join(float a, float b) {
  return minimum_at_once(a, b);
}

// How many numbers there are, their mean, and the sum of the squares of what each is away from it.
template <typename T>
struct moments {
  T count, mean, squares;

  // The sum of the squares of what each number is away from `center`.
  UMBRA_INLINE T around(T center) const { return squares + count * ((mean - center) * (mean - center)); }
};

// The moments of both (Chan, Golub and LeVeque, 1979).
struct Moments {
  template <typename T>
  static UMBRA_INLINE moments<T> join(const moments<T>& a, const moments<T>& b) {
    const T count = a.count + b.count, share = count > T(0) ? b.count / count : T(0), away = b.mean - a.mean;
    return {count, a.mean + away * share, a.squares + b.squares + away * away * (a.count * share)};
  }
};

// What a thread makes moments of: N numbers at a time, less the first of all, which lies closer to them than 0 does.
template <typename T, int N>
struct away_from_first {
  T count, first, sum[N], squares[N];

  UMBRA_INLINE void add(const pack<T, N>& v) {
    first = count > T(0) ? first : v[0];
    count = count + T(N);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const T away = v[k] - first;
      sum[k] = sum[k] + away;
      squares[k] = squares[k] + away * away;
    }
  }
  UMBRA_INLINE moments<T> all() {
    const T total = fold<Sum>(sum), share = count > T(0) ? total / count : T(0),
            rest = fold<Sum>(squares) - total * share;
    return {count, first + share, rest < T(0) ? T(0) : rest};
  }
};

// The first packet makes room for the one after it. Loops that compute of the first and go on so have packets in
// flight, in registers, and are written once.
template <typename T, int N, int M>
UMBRA_INLINE void advance(pack<T, N> (&packs)[M]) {
#pragma unroll
  for (int u = 1; u < M; ++u) packs[u - 1] = packs[u];
}

// Quotient and root by the GPU's own unit; docs/numerics.md has the errors.
UMBRA_INLINE float fast_div(float a, float b) {
#if defined(__CUDA_ARCH__)
  float quotient;
  asm("div.full.f32 %0, %1, %2;" : "=f"(quotient) : "f"(a), "f"(b));
  return quotient;
#else
  return a / b;
#endif
}
UMBRA_INLINE float fast_sqrt(float x) {
#if defined(__CUDA_ARCH__)
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
#else
  return sqrt(x);
#endif
}

// 2^t of the GPU's own unit, with t = x log2(e), and a step for what t has lost when it was rounded.
UMBRA_INLINE float fast_exp(float x) {
#if defined(__CUDA_ARCH__)
  const float t = x * 1.44269504088896341f;
  const float lost = __fmaf_rn(x, 1.925963033500011e-8f, __fmaf_rn(x, 1.44269504088896341f, -t));
  float power;
  asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(t));
  const float close = __fmaf_rn(power, lost * 0.693147180559945309f, power);
  return close == close ? close : power;  // infinite ones, and 0
#else
  return exp(x);
#endif
}

namespace detail {
// The value of the thread of a warp whose number differs in one bit.
template <typename T>
UMBRA_INLINE T across_warp(T v, int step) {
  return __shfl_xor_sync(0xffffffff, v, step);
}
template <typename T>
UMBRA_INLINE moments<T> across_warp(const moments<T>& v, int step) {
  return {across_warp(v.count, step), across_warp(v.mean, step), across_warp(v.squares, step)};
}
}  // namespace detail

// The values of a warp's threads joined, in every thread.
template <typename Join, typename T>
UMBRA_INLINE T warp_all(T v) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) v = Join::join(v, detail::across_warp(v, step));
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

// What the elements of a row come to up to the one of each thread of a warp; `carry`, up to the last one.
template <typename Join, typename T>
UMBRA_INLINE T warp_scan(T v, T& carry) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T before = __shfl_up_sync(0xffffffff, v, step);
    if (threadIdx.x % 32 >= step) v = Join::join(before, v);
  }
  const T scanned = Join::join(carry, v);
  carry = Join::join(carry, __shfl_sync(0xffffffff, v, 31));
  return scanned;
}

// The same of a block of one row of threads, a multiple of 32.
template <typename Join, typename T>
UMBRA_INLINE T block_scan(T v, T& carry, T identity) {
  __shared__ T parts[32];
  const int own = threadIdx.x / 32, warps = blockDim.x / 32;
  T of_warp = identity;
  v = warp_scan<Join>(v, of_warp);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[own] = of_warp;
  __syncthreads();
  T before = carry;
  for (int warp = 0; warp < warps; ++warp) {
    if (warp == own) before = carry;
    carry = Join::join(carry, parts[warp]);
  }
  return Join::join(before, v);
}

namespace detail {
// Shared memory for a value of each thread of a block of 32 columns, the same for all joins of numbers of a kernel.
template <int bytes>
UMBRA_INLINE void* column_parts() {
  __shared__ double parts[16][32][bytes / 8];
  return parts;
}
}  // namespace detail

// The values of the threads of a block of 32 columns joined that share threadIdx.x, in each of them.
template <typename Join, typename T>
UMBRA_INLINE T column_all(T v) {
  T(*const parts)[32] = static_cast<T(*)[32]>(detail::column_parts<(sizeof(T) + 7) / 8 * 8>());
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
  for (int step = 512; step > 0; step /= 2)
    if (number + step < most && launches.first[number + step] <= blockIdx.x) number += step;
  const unsigned at = blockIdx.x - launches.first[number], across = launches.across[number];
  return {number,
          {at % across, at / across, 0},
          {across, (launches.first[number + 1] - launches.first[number]) / across, 1}};
}

}  // namespace umbra::simd

#endif

#endif  // UMBRA_PRELUDE_CUDA_H_

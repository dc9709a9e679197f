// Runs the text of generated CUDA kernels as host C++: one fibre a thread, blocks one after the other. The threads
// of a block run in order, or in reverse; a warp runs until it has to wait for other warps, so that a missing barrier
// shows in one of the two orders. This header goes in front of the text, in a file that is compiled on its own.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <sys/mman.h>

#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __shared__ static
#define __align__(n) alignas(n)
#define __launch_bounds__(n)
#define __grid_constant__

struct uint3 {
  unsigned x, y, z;
};

namespace emulator {

constexpr std::size_t kStack = 256 * 1024;
constexpr int kMaxThreads = 1024;

// Saves what a function keeps, and goes on with another stack.
extern "C" void emulator_switch(void** from, void* to);
asm(R"(
.text
.globl emulator_switch
.type emulator_switch, @function
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");

struct Thread {
  void* stack = nullptr;
  uint3 index{};
  bool done = false;
  long long block_arrivals = 0, warp_arrivals = 0;
  enum class Wait { kNothing, kBlock, kWarp } wait = Wait::kNothing;
  unsigned mask = 0;
  std::uint64_t slot[2] = {};  // what it offers to its warp, for two exchanges in turn
};

inline std::vector<Thread> threads;
inline int current = 0;
inline void* main_stack = nullptr;
inline char* stacks = nullptr;
inline const std::function<void()>* body = nullptr;
inline std::string failure;

inline void Yield() { emulator_switch(&threads[static_cast<std::size_t>(current)].stack, main_stack); }

inline void Enter() {
  (*body)();
  threads[static_cast<std::size_t>(current)].done = true;
  Yield();
  std::abort();
}

inline Thread& Current() { return threads[static_cast<std::size_t>(current)]; }

inline bool IsFree(int number) {
  Thread& t = threads[static_cast<std::size_t>(number)];
  if (t.wait == Thread::Wait::kNothing) return true;
  if (t.wait == Thread::Wait::kBlock) {
    for (const Thread& other : threads)
      if (!other.done && other.block_arrivals < t.block_arrivals) return false;
    return true;
  }
  for (int lane = 0; lane < 32; ++lane) {
    if ((t.mask >> lane & 1) == 0) continue;
    const std::size_t other = static_cast<std::size_t>(number / 32 * 32 + lane);
    if (other >= threads.size()) {
      failure = "the mask of a shuffle names threads that the block has not";
      return false;
    }
    if (threads[other].warp_arrivals < t.warp_arrivals) return false;
  }
  return true;
}

inline void WaitFor(Thread::Wait what, unsigned mask) {
  Thread& t = Current();
  (what == Thread::Wait::kBlock ? t.block_arrivals : t.warp_arrivals) += 1;
  t.wait = what;
  t.mask = mask;
  Yield();
}

template <typename T>
T Exchange(unsigned mask, T value, int lane) {
  static_assert(sizeof(T) <= 8);
  Thread& t = Current();
  const int turn = static_cast<int>(t.warp_arrivals % 2);
  std::memcpy(&t.slot[turn], &value, sizeof value);
  WaitFor(Thread::Wait::kWarp, mask);
  T result;
  std::memcpy(&result, &threads[static_cast<std::size_t>(current / 32 * 32 + lane)].slot[turn], sizeof result);
  return result;
}

}  // namespace emulator

inline uint3 blockIdx, blockDim, gridDim;
#define threadIdx (emulator::Current().index)

inline void __syncthreads() { emulator::WaitFor(emulator::Thread::Wait::kBlock, 0); }
inline void __syncwarp(unsigned mask = 0xffffffff) { emulator::WaitFor(emulator::Thread::Wait::kWarp, mask); }
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask) {
  return emulator::Exchange(mask, value, emulator::current % 32 ^ lane_mask);
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane) {
  return emulator::Exchange(mask, value, lane % 32);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta) {
  const int lane = emulator::current % 32 + static_cast<int>(delta);
  return emulator::Exchange(mask, value, lane < 32 ? lane : emulator::current % 32);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta) {
  const int lane = emulator::current % 32 - static_cast<int>(delta);
  return emulator::Exchange(mask, value, lane < 0 ? emulator::current % 32 : lane);
}
template <typename T>
T atomicAdd(T* address, T value) {
  const T old = *address;
  *address += value;
  return old;
}
inline void __threadfence() {}

template <typename To, typename From>
To bits_as(From from) {
  To to;
  static_assert(sizeof to == sizeof from);
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline float __int_as_float(int bits) { return bits_as<float>(bits); }
inline double __longlong_as_double(long long bits) { return bits_as<double>(bits); }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }

alignas(16) char shared_memory[256 * 1024];

namespace emulator {

// Runs `kernel` for every thread of the grid. Returns what went wrong, or nothing.
inline std::string Launch(uint3 grid, uint3 block, std::size_t shared_bytes, bool reverse,
                          const std::function<void()>& kernel) {
  const int count = static_cast<int>(block.x * block.y * block.z);
  if (count < 1 || count > kMaxThreads) return "a block of " + std::to_string(count) + " threads";
  if (shared_bytes > sizeof shared_memory) return "too much shared memory";
  if (stacks == nullptr)
    stacks = static_cast<char*>(mmap(nullptr, kStack * kMaxThreads, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  body = &kernel;
  failure.clear();
  gridDim = grid;
  blockDim = block;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
        threads.assign(static_cast<std::size_t>(count), {});
        std::memset(shared_memory, 0x7f, shared_bytes);
        for (int k = 0; k < count; ++k) {
          Thread& t = threads[static_cast<std::size_t>(k)];
          const unsigned n = static_cast<unsigned>(k);
          t.index = {n % block.x, n / block.x % block.y, n / block.x / block.y};
          void** top = reinterpret_cast<void**>(stacks + kStack * static_cast<std::size_t>(k + 1)) - 2;
          top[0] = reinterpret_cast<void*>(&Enter);
          top[1] = nullptr;
          t.stack = top - 6;
        }
        int left = count;
        while (left > 0) {
          bool moved = false;
          for (int at = 0; at < count;) {  // a warp goes on until it has to wait for others
            bool warp_moved = false;
            const int end = std::min(at + 32, count);
            for (int k = at; k < end; ++k) {
              current = reverse ? count - 1 - k : k;
              Thread& t = Current();
              if (t.done || !IsFree(current)) continue;
              t.wait = Thread::Wait::kNothing;
              emulator_switch(&main_stack, t.stack);
              warp_moved = true;
              left -= Current().done ? 1 : 0;
            }
            moved = moved || warp_moved;
            if (!warp_moved) at = end;
          }
          if (!failure.empty()) return failure;
          if (!moved) return "threads wait for each other for ever";
        }
      }
  return "";
}

}  // namespace emulator

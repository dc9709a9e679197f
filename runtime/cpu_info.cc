#include "runtime/cpu_info.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "umbra/program.h"

namespace umbra::runtime {

int NumProcessors() {
  static const int count = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return std::max(1, CPU_COUNT(&set));
  }();
  return count;
}

namespace {

// What the kernel tells of the cache `index`, or 0.
std::size_t CacheBytes(const std::string& index) {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/" + index + "/size");
  std::size_t kilobytes = 0;
  char unit = '\0';
  return file >> kilobytes >> unit && unit == 'K' ? kilobytes << 10 : 0;
}

// The kernel tells what this machine has of a cache; sysconf may tell of the whole chip.
std::size_t LastLevelCacheTold() {
  for (const char* index : {"index3", "index2"})
    if (const std::size_t size = CacheBytes(index); size > 0) return size;
  for (int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const long size = sysconf(level); size > 0) return static_cast<std::size_t>(size);
  return std::size_t{8} << 20;
}

}  // namespace

std::size_t LastLevelCacheShare() {
  constexpr std::size_t kShareOfOne = std::size_t{16} << 20;
  static const std::size_t bytes = std::min(
      LastLevelCacheTold(), kShareOfOne * static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
  return bytes;
}

std::size_t LastLevelCacheBytes() {
  constexpr std::size_t kPartOfAll = 8;
  static const std::size_t bytes = std::max(LastLevelCacheShare(), LastLevelCacheTold() / kPartOfAll);
  return bytes;
}

std::size_t SecondLevelCacheBytes() {
  static const std::size_t bytes = [] {
    const std::size_t size = CacheBytes("index2");
    return size > 0 ? size : std::size_t{1} << 20;
  }();
  return bytes;
}

namespace {

// The one of its family that has AVX-512.
bool IsZen4() {
  static const bool zen4 = [] {
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_is("amdfam19h") && __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
  }();
  return zen4;
}

}  // namespace

long long PrefetchAhead() { return IsZen4() ? 0 : kPrefetchAhead; }  // docs/fusion.md

double CachesOfMostlyResults() { return IsZen4() ? 2 : 1; }

bool CpuRuns(std::string_view target) {
  if (target == "plain") return true;
#if defined(__x86_64__)
  __builtin_cpu_init();  // a program's own initialisers may call
  if (target == "sse2") return __builtin_cpu_supports("sse2");
  // All that the in-process compiler may use (compiler/jit/front_end.cc), which a virtual machine may lack in part.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("lzcnt") && __builtin_cpu_supports("popcnt");
  if (target == "avx2") return avx2;
  if (target == "avx512")
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
#endif
  return false;
}

}  // namespace umbra::runtime

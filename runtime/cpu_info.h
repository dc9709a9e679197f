// What the runtime needs to know of the processor.
#ifndef UMBRA_RUNTIME_CPU_INFO_H_
#define UMBRA_RUNTIME_CPU_INFO_H_

#include <cstddef>
#include <string_view>

namespace umbra::runtime {

/// Number of processors this process may run on.
int NumProcessors();
/// Bytes of the last-level cache that are this machine's processors' own: 8 MiB where the system does not tell, and no
/// more than 16 MiB for each of them, as a virtual machine is told of a whole chip's cache, which others use as well.
std::size_t LastLevelCacheShare();
/// Bytes of it that they can count on: their share, or an eighth of all. (Of 480 MiB two processors keep about 96 where
/// their neighbours do little.)
std::size_t LastLevelCacheBytes();
/// Bytes of the second-level cache of one processor; 1 MiB where the system does not tell.
std::size_t SecondLevelCacheBytes();
/// umbra_args::prefetch_ahead on this CPU.
long long PrefetchAhead();
/// How many times what is touched may take the last-level cache before results go past it, if most of it are results: 2
/// on a Zen 4, whose chiplets write to memory at half the rate that they read at, so that each line that a cache keeps
/// counts.
double CachesOfMostlyResults();
/// Does this CPU run code for the target: plain, sse2, avx2 or avx512? False for any other name.
bool CpuRuns(std::string_view target);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_CPU_INFO_H_

// What the runtime needs to know of the processor.
#ifndef UMBRA_RUNTIME_CPU_INFO_H_
#define UMBRA_RUNTIME_CPU_INFO_H_

#include <cstddef>

namespace umbra::runtime {

/// Number of processors this process may run on.
int NumProcessors();
/// Bytes of the last-level cache; 8 MiB where the system does not tell.
std::size_t LastLevelCacheBytes();
/// Bytes of the second-level cache of one processor; 1 MiB where the system does not tell.
std::size_t SecondLevelCacheBytes();

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_CPU_INFO_H_

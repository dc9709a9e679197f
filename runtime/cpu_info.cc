#include "runtime/cpu_info.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

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

std::size_t LastLevelCacheBytes() {
  static const std::size_t bytes = [] {
    // The kernel tells what this machine has of a cache; sysconf may tell of the whole chip.
    for (const char* index : {"index3", "index2"}) {
      std::ifstream file(std::string("/sys/devices/system/cpu/cpu0/cache/") + index + "/size");
      std::size_t kilobytes = 0;
      char unit = '\0';
      if (file >> kilobytes >> unit && unit == 'K' && kilobytes > 0) return kilobytes << 10;
    }
    for (int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
      if (const long size = sysconf(level); size > 0) return static_cast<std::size_t>(size);
    return std::size_t{8} << 20;
  }();
  return bytes;
}

}  // namespace umbra::runtime

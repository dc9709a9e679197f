// The dialects that this CPU runs.
#ifndef UMBRA_TESTS_UNIT_HOST_TARGETS_H_
#define UMBRA_TESTS_UNIT_HOST_TARGETS_H_

#include <string>
#include <vector>

#include "compiler/driver/target.h"

namespace umbra {

inline std::vector<std::string> HostTargets() {
  std::vector<std::string> names;
  for (const auto target : codegen::kAllTargets)
    if (HostRuns(target)) names.emplace_back(codegen::Name(target));
  return names;
}

// Has the target fused multiply-add, so that products which are summed stay unrounded?
inline bool Fuses(const std::string& target) { return target == "avx2" || target == "avx512"; }

}  // namespace umbra

#endif  // UMBRA_TESTS_UNIT_HOST_TARGETS_H_

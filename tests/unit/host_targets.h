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

}  // namespace umbra

#endif  // UMBRA_TESTS_UNIT_HOST_TARGETS_H_

// ORC: maps freshly compiled objects into the process.
#ifndef UMBRA_COMPILER_JIT_LINKER_H_
#define UMBRA_COMPILER_JIT_LINKER_H_

#include <string>
#include <vector>

#include "umbra/program.h"

namespace umbra {

/// Links `object` in a space of its own, which is freed with the code's last owner.
runtime::KernelCode LinkObject(const std::vector<char>& object, const std::string& function);

}  // namespace umbra

#endif  // UMBRA_COMPILER_JIT_LINKER_H_

// Maps a relocatable x86-64 ELF object, as the disk cache keeps it, into the process without LLVM.
#ifndef UMBRA_RUNTIME_OBJECT_LOADER_H_
#define UMBRA_RUNTIME_OBJECT_LOADER_H_

#include <string>
#include <string_view>

#include "umbra/program.h"

namespace umbra::runtime {

/// Loads `object` (the bytes of an ELF64 relocatable file) and finds `function`. Symbols that the
/// object does not define are looked up in the process and libm. Throws umbra::Error on anything
/// malformed, unsupported or unresolved; never reads outside `object`.
KernelCode LoadObject(std::string_view object, const std::string& function);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_OBJECT_LOADER_H_

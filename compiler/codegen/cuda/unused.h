// Declarations that nothing reads.
#ifndef UMBRA_COMPILER_CODEGEN_CUDA_UNUSED_H_
#define UMBRA_COMPILER_CODEGEN_CUDA_UNUSED_H_

#include <string>
#include <string_view>

namespace umbra::codegen {

/// The text of kernels without the lines `type name = ...;` whose name no later line of the function has: forms
/// declare what they may need of a kernel's signature, and keep what they do.
std::string WithoutUnused(std::string_view text);

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CUDA_UNUSED_H_

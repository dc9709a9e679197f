// What `umbra emit --target cuda` writes.
#ifndef UMBRA_TOOLS_UMBRA_EMIT_CUDA_H_
#define UMBRA_TOOLS_UMBRA_EMIT_CUDA_H_

#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "umbra/compile.h"

namespace umbra::tools {

/// A file to write.
struct CudaFile {
  std::string architecture;  ///< that it is for, as "sm_90", if there is one file for each of several
  std::string content;
};

/// The kernels of a plan, which has some, in the forms that dense operands take: `as` source, a .cu file that stands
/// alone; as ptx or cubin, compiled for each architecture of the list `arch`; as fatbin, machine code for all of them
/// and PTX of the last, in one file. `name` stands for the source in messages. Throws umbra::Error.
std::vector<CudaFile> EmitCuda(const plan::Plan& plan, const std::string& name, const std::string& as,
                               const std::string& arch, Math math);

}  // namespace umbra::tools

#endif  // UMBRA_TOOLS_UMBRA_EMIT_CUDA_H_

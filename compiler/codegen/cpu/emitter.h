// The function of a kernel for a CPU, and which of the ways through rows and columns it goes.
#ifndef UMBRA_COMPILER_CODEGEN_CPU_EMITTER_H_
#define UMBRA_COMPILER_CODEGEN_CPU_EMITTER_H_

#include <string>

#include "compiler/codegen/cpu/columns.h"

namespace umbra::codegen {

class CpuEmitter : private ColumnEmitter {
 public:
  CpuEmitter(const plan::Plan& plan, const Kernel& kernel, const SourceOptions& options, Writer* out)
      : ColumnEmitter(plan, kernel, options, out) {}

  /// Writes the function; returns its name.
  std::string Run();

 private:
  // For want of registers, which functions and tiles need many of. Kernels that walk rows together put few there, and
  // need the register that an aligned stack takes.
  bool PutsPacketsOnStack() const;
  // What rows are put together in that follow each other.
  void JoinRows();
  void RowLoops(int axis);
};

}  // namespace umbra::codegen

#endif  // UMBRA_COMPILER_CODEGEN_CPU_EMITTER_H_

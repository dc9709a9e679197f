// Kernels whose rows share columns of their operands (KernelSignature::panels).
#ifndef UMBRA_RUNTIME_PANELS_H_
#define UMBRA_RUNTIME_PANELS_H_

#include "umbra/program.h"

namespace umbra::runtime {

/// Do the columns of an operand lie across memory, so that only a copy has them side by side?
inline bool LiesAcross(const KernelSignature& signature, int operand) {
  const auto& dims = signature.operands[static_cast<std::size_t>(operand)].dim_of_axis;
  const auto inner = static_cast<std::size_t>(signature.row_axes);
  return dims[inner - 1] >= 0 && dims[inner] > dims[inner - 1];
}

/// Does a launch of so many rows have columns copied? Many rows repay it, and those that lie across memory have to be.
inline bool PacksColumns(const KernelSignature& signature, index_t rows) {
  if (signature.panels.empty()) return false;
  if (rows > kFewRows) return true;
  for (const int operand : signature.panels)
    if (operand >= 0 && LiesAcross(signature, operand)) return true;
  return false;
}

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_PANELS_H_

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

/// May rows, of which there are many, go by bands, a tile's rows through all columns at a time, so that results are
/// written along memory? What few steps read of wide columns is as near where it lies as a copy would be. `lines`: are
/// packets lines of the cache? A tile of narrower ones comes back sooner for lines that fall into few sets.
inline bool MayGoByBands(const KernelSignature& signature, index_t steps, index_t columns, bool lines) {
  constexpr index_t kFewSteps = 64, kFewOfNarrow = 16, kWide = 192;
  if (signature.turned || steps > (lines ? kFewSteps : kFewOfNarrow) || columns < kWide) return false;
  for (const int operand : signature.panels)
    if (operand < 0 || LiesAcross(signature, operand)) return false;
  return !signature.panels.empty();
}

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_PANELS_H_

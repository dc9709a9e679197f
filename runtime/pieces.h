// Kernels that may take the rows of a product piece by piece, while the next piece is multiplied.
#ifndef UMBRA_RUNTIME_PIECES_H_
#define UMBRA_RUNTIME_PIECES_H_

#include <map>
#include <optional>

#include "umbra/program.h"

namespace umbra::runtime {

/// Along which dimension of each buffer that it touches the kernel's first axis goes, -1 for those that are the same
/// for all rows, if it may have the rows of the matrix `product` piece by piece: it reads them as it goes, and stores
/// rows of its own.
inline std::optional<std::map<int, int>> DimensionsAlongRows(const KernelSignature& signature, int product) {
  if (!signature.elementwise || signature.positional) return std::nullopt;
  std::map<int, int> dimensions;
  for (const Access& access : signature.operands) {
    const int along = access.dim_of_axis[0];
    dimensions.emplace(access.buffer, along);
    if (dimensions.at(access.buffer) != along || (access.store && along < 0)) return std::nullopt;
  }
  const auto read = dimensions.find(product);
  if (read == dimensions.end() || read->second != 0) return std::nullopt;
  return dimensions;
}

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_PIECES_H_

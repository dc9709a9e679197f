// What the source of a kernel with transposed operands and its launch both ask: how its tiles come by rows.
#ifndef UMBRA_RUNTIME_TURNED_LINES_H_
#define UMBRA_RUNTIME_TURNED_LINES_H_

#include <algorithm>
#include <cstddef>

#include "umbra/program.h"

namespace umbra::runtime {

/// The rows of a kernel's tiles. A tile has a line of the smallest transposed elements of each of its rows.
struct RowsOfTiles {
  int turned = 0;  ///< transposed operands
  std::size_t least = 0, most = 0;  ///< bytes of their elements
  bool reads_others = false;  ///< are rows of other operands read beside?
  bool writes_parts = false;  ///< is less than a line of a row written?

  /// Of a kernel whose packets go along `vector_axis`, and across which operands lie along `axis`. `buffers` are the
  /// program's, anything with a `dtype`.
  template <typename Buffers>
  RowsOfTiles(const KernelSignature& signature, std::size_t axis, std::size_t vector_axis, const Buffers& buffers)
      : last_(static_cast<int>(axis) + 1 == signature.row_axes) {
    const auto size = [&](const Access& access) {
      return SizeOf(buffers[static_cast<std::size_t>(access.buffer)].dtype);
    };
    for (const Access& access : signature.operands) {
      const int row = access.dim_of_axis[axis], column = access.dim_of_axis[vector_axis];
      if (access.store || column < 0 || row < 0) continue;
      if (column > row) {
        reads_others = true;
        continue;
      }
      least = turned == 0 ? size(access) : std::min(least, size(access));
      most = std::max(most, size(access));
      ++turned;
    }
    for (const Access& access : signature.operands)
      writes_parts = writes_parts || (access.store && size(access) < least);
  }
  /// Do tiles take turns at rows, of which they have no more than a line?
  bool TakeTurns() const { return reads_others || writes_parts; }
  /// Are whole lines of a block turned first instead, so that it goes along one row after the other? Each operand takes
  /// as much of the first cache as a block has lines.
  bool MayTurnLines() const { return TakeTurns() && last_ && turned <= 2 && least == most; }

 private:
  bool last_;  // is there no other axis between?
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_TURNED_LINES_H_

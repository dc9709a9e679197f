// What the source of a kernel and its launch both count: the memory of what is kept, how many rows are walked together.
#ifndef UMBRA_RUNTIME_ROWS_TOGETHER_H_
#define UMBRA_RUNTIME_ROWS_TOGETHER_H_

#include <algorithm>
#include <cstddef>

#include "umbra/program.h"

namespace umbra::runtime {

/// Elements that memory has for `count`, so that what follows is aligned as it is; in sources codegen::Padded.
inline index_t Padded(index_t count) { return (count + 15) / 16 * 16; }

/// Bytes for each element of a row: of the operands that move along it, and of what is kept of it. `buffers` are the
/// program's, anything with a `dtype`.
template <typename Buffers>
std::size_t BytesAlongRow(const KernelSignature& signature, const Buffers& buffers) {
  std::size_t bytes = 0;
  for (const Access& access : signature.operands)
    if (access.dim_of_axis[static_cast<std::size_t>(signature.vector_axis)] >= 0)
      bytes += SizeOf(buffers[static_cast<std::size_t>(access.buffer)].dtype);
  for (const DType type : signature.row_buffers) bytes += SizeOf(type);
  return bytes;
}

/// The first dimension of the operand's short rows, across which packets go: from it on the operand moves along inner
/// axes of the kernel only, the last one or, if `several`, more, in any order. One behind its last dimension: it has
/// none.
inline int FirstOfShortRow(const KernelSignature& signature, const Access& access, bool several) {
  const auto outer = access.dim_of_axis.begin();
  const auto inner = several ? outer + signature.row_axes : access.dim_of_axis.end() - 1;
  const auto is_inner = [&](int dim) { return std::ranges::find(outer, inner, dim) == inner; };
  int first = access.LastDim() + 1;
  while (first > 0 && is_inner(first - 1)) --first;
  return first;
}

/// Do the axis and the next one go through dimensions that follow each other, of all operands that they move? A launch
/// makes them one where it can.
bool IsOneWithNext(const KernelSignature& signature, int axis);

/// Are rows of several axes short rows (plan::AskForDenseRows)? Operands whose rows are to be dense say so.
inline bool RowsAreOne(const KernelSignature& signature) {
  if (!signature.goes_along_columns() || static_cast<int>(signature.axes.size()) <= signature.row_axes + 1)
    return false;
  for (const Access& access : signature.operands)
    if (access.dense && !access.gathered && FirstOfShortRow(signature, access, true) <= access.LastDim()) return true;
  return false;
}

/// Of an operand that is to be dense, from which dimension on that is: of short rows each, and all of them that packets
/// go across if they lie one behind the other; else all that gathers and lanes have of it.
inline int FirstOfDense(const KernelSignature& signature, const Access& access) {
  if (!signature.goes_along_columns() || access.gathered) return 0;
  const int row = FirstOfShortRow(signature, access, RowsAreOne(signature));
  return row > 0 && access.dim_of_axis[static_cast<std::size_t>(signature.vector_axis)] == row - 1 ? row - 1 : row;
}

/// Bytes that rows which are walked together have at most. Those that take little arithmetic have less to wait for, and
/// rows to come need the room.
inline index_t RoomOfRows(const KernelSignature& signature) {
  constexpr double kLight = 20;  // of an element, in additions
  return signature.cost < kLight ? 8192 : 24576;
}

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_ROWS_TOGETHER_H_

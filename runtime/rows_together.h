// What the source of a kernel and its launch both count: the memory of what is kept, how many rows are walked together.
#ifndef UMBRA_RUNTIME_ROWS_TOGETHER_H_
#define UMBRA_RUNTIME_ROWS_TOGETHER_H_

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

/// Are rows of several axes short rows, across which packets go (plan::JoinShortRows)? Operands that are to be dense
/// say so.
inline bool RowsAreOne(const KernelSignature& signature) {
  if (!signature.goes_along_columns() || static_cast<int>(signature.axes.size()) <= signature.row_axes + 1)
    return false;
  for (const Access& access : signature.operands)
    if (access.dense && access.dim_of_axis.back() >= 0) return true;
  return false;
}

/// Bytes that rows which are walked together have at most. Those that take little arithmetic have less to wait for, and
/// rows to come need the room.
inline index_t RoomOfRows(const KernelSignature& signature) {
  constexpr double kLight = 20;  // of an element, in additions
  return signature.cost < kLight ? 8192 : 24576;
}

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_ROWS_TOGETHER_H_

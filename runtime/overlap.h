// Which operands may share memory.
#ifndef UMBRA_RUNTIME_OVERLAP_H_
#define UMBRA_RUNTIME_OVERLAP_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "umbra/function.h"

namespace umbra::runtime {

/// Bytes [first, last) in memory.
using Bytes = std::pair<const char*, const char*>;

/// Pairs of an output and an operand before it, ascending.
using OperandPairs = std::vector<std::pair<std::size_t, std::size_t>>;

/// Which operands of a call overlap in memory; `first_output` operands are inputs, the others outputs. Takes
/// n log n steps.
OperandPairs Overlapping(const std::vector<Bytes>& operands, std::size_t first_output);

/// May the buffer `output` of `program` be the very memory of its buffer `input`?
bool MayShare(const Program& program, int output, int input);

/// Throws umbra::Error if two outputs overlap, or if an output overlaps an input in a way that
/// would change the result. The very same memory is fine where every kernel that writes the output
/// reads the input only at the point that it writes, and no later step reads the input; so are operands whose rows lie
/// between each other's. Returns which do, and which lie so.
OperandPairs CheckOverlaps(const Program& program, const std::vector<TensorRef>& buffers);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_OVERLAP_H_

// Which operands may share memory.
#ifndef UMBRA_RUNTIME_OVERLAP_H_
#define UMBRA_RUNTIME_OVERLAP_H_

#include "umbra/function.h"

namespace umbra::runtime {

/// Throws umbra::Error if two outputs overlap, or if an output overlaps an input in a way that
/// would change the result. The very same memory is fine where every kernel that writes the output
/// reads the input only at the point that it writes, and no later step reads the input.
void CheckOverlaps(const Program& program, const std::vector<TensorRef>& buffers);

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_OVERLAP_H_

// Buffers that lie in the memory of others.
#ifndef UMBRA_RUNTIME_VIEWS_H_
#define UMBRA_RUNTIME_VIEWS_H_

#include <cstddef>
#include <vector>

#include "runtime/overlap.h"
#include "umbra/function.h"

namespace umbra::runtime {

/// Makes `tensor`, which has the shape of `view`, the part of `place` that it is. What a view joins has to follow each
/// other there (DenseCopies).
void PlaceView(const Buffer& view, const TensorRef& place, const std::vector<index_t>& symbols, TensorRef* tensor);

/// Is an output written part by part? Steps may then read inputs when some of it is there already.
bool IsWrittenInParts(const std::vector<Buffer>& buffers, std::size_t output);

/// Dense copies of the operands of a call, of which views join dimensions that do not follow each other in memory, or
/// which are written part by part where an input is.
class DenseCopies {
 public:
  DenseCopies() = default;
  /// `operands` are those of `buffers`, checked, and `shared` those that share memory; of those that calls copy the
  /// copy's strides are left, and no memory.
  DenseCopies(const std::vector<Buffer>& buffers, const OperandPairs& shared, std::vector<TensorRef>* operands);

  bool empty() const { return words_.empty(); }
  /// What a call needs for them, from a cache line on.
  std::size_t bytes() const { return bytes_; }
  /// Before the steps of a call: `data` are base pointers, and copies take their place in `copied`. `operands` as they
  /// were left.
  void Take(const std::vector<TensorRef>& operands, char* memory, void* const* data, void** copied) const {
    Move(operands, memory, data, copied);
  }
  /// After them: outputs go from their copies to the operands.
  void Return(const std::vector<TensorRef>& operands, char* memory, void* const* data) const {
    Move(operands, memory, data, nullptr);
  }

 private:
  void Move(const std::vector<TensorRef>& operands, char* memory, void* const* data, void** copied) const;

  std::vector<index_t> words_;  ///< of each copy: the operand, the bytes that it takes, and the strides of the operand
  index_t first_output_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_VIEWS_H_

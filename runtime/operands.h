// The operands of one call: as a call site takes them, and as the buffers of a program.
#ifndef UMBRA_RUNTIME_OPERANDS_H_
#define UMBRA_RUNTIME_OPERANDS_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "umbra/call_site.h"
#include "umbra/function.h"
#include "umbra/program.h"

namespace umbra::runtime {

/// Beyond this many different shapes, a call site prepares calls anew.
inline constexpr std::size_t kMaxPrepared = 64;

/// The first of a program's buffers: inputs, then outputs.
inline std::vector<TensorRef> BuffersOf(const Arguments& arguments) {
  std::vector<TensorRef> buffers = arguments.inputs;
  buffers.insert(buffers.end(), arguments.outputs.begin(), arguments.outputs.end());
  return buffers;
}

/// Is all that the kernel would store empty?
inline bool StoresNothing(const KernelStep& step, const std::vector<TensorRef>& buffers) {
  return std::all_of(step.signature.operands.begin(), step.signature.operands.end(), [&](const Access& access) {
    const auto& shape = buffers[static_cast<std::size_t>(access.buffer)].shape;
    return !access.store || std::find(shape.begin(), shape.end(), 0) != shape.end();
  });
}

/// Collects operands in the order of the program's buffers; a few of them without an allocation.
class Operands {
 public:
  Operands() = default;
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  /// `stride` has `rank` entries; null is dense, row-major.
  void Add(void* data, DType dtype, int rank, const index_t* shape, const index_t* stride) {
    data_.Append(1)[0] = data;
    index_t* const words = words_.Append(Layout::SizeOf(rank));
    words[0] = Layout::Kind(rank, dtype);
    for (int d = 0; d < rank; ++d) words[1 + d] = shape[d];
    index_t* const strides = words + 1 + rank;
    if (stride != nullptr) {
      for (int d = 0; d < rank; ++d) strides[d] = stride[d];
      return;
    }
    index_t step = 1;
    for (int d = rank - 1; d >= 0; --d) {
      strides[d] = step;
      if (__builtin_mul_overflow(step, shape[d], &step)) step = 0;  // found when the extents are checked
    }
  }

  void* const* data() const { return data_.begin; }
  Layout layout() const { return {words_.begin, words_.size}; }

 private:
  // A vector that begins on the stack.
  template <typename T, std::size_t kRoom>
  struct Words {
    T* Append(std::size_t count) {
      if (capacity - size < count) Grow(count);
      size += count;
      return begin + size - count;
    }
    [[gnu::noinline]] void Grow(std::size_t count) {
      std::vector<T> larger(begin, begin + size);
      capacity = 2 * (size + count);
      larger.resize(capacity);
      heap = std::move(larger);
      begin = heap.data();
    }
    T room[kRoom];
    T* begin = room;
    std::size_t size = 0, capacity = kRoom;
    std::vector<T> heap;
  };
  Words<void*, 16> data_;
  Words<index_t, 16 * Layout::SizeOf(3)> words_;
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_OPERANDS_H_

// The operands of one call as a call site takes them.
#ifndef UMBRA_RUNTIME_OPERANDS_H_
#define UMBRA_RUNTIME_OPERANDS_H_

#include <array>
#include <cstddef>
#include <memory_resource>
#include <vector>

#include "umbra/call_site.h"

namespace umbra::runtime {

/// Collects operands in the order of the program's buffers; a few of them without an allocation.
class Operands {
 public:
  explicit Operands(std::size_t count) {
    data_.reserve(count);
    words_.reserve(count * Layout::SizeOf(kUsualRank));
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  /// `stride` has `rank` entries; null is dense, row-major.
  void Add(void* data, DType dtype, int rank, const index_t* shape, const index_t* stride) {
    data_.push_back(data);
    words_.push_back(Layout::Kind(rank, dtype));
    words_.insert(words_.end(), shape, shape + rank);
    if (stride != nullptr || rank == 0) {
      words_.insert(words_.end(), stride, stride + rank);
      return;
    }
    words_.resize(words_.size() + static_cast<std::size_t>(rank), 1);
    index_t* const last = &words_.back();
    for (int d = 1; d < rank; ++d)  // a product that overflows is found when the extents are checked
      if (__builtin_mul_overflow(last[1 - d], shape[rank - d], &last[-d])) last[-d] = 0;
  }

  void* const* data() const { return data_.data(); }
  Layout layout() const { return {words_.data(), words_.size()}; }

 private:
  static constexpr int kUsualRank = 3;
  std::array<std::byte, 1536> room_;
  std::pmr::monotonic_buffer_resource memory_{room_.data(), room_.size()};
  std::pmr::vector<void*> data_ = std::pmr::vector<void*>(&memory_);  // braces would make it an element
  std::pmr::vector<index_t> words_{&memory_};
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_OPERANDS_H_

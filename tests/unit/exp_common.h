// What the tests of eager expressions share.
#ifndef UMBRA_TESTS_UNIT_EXP_COMMON_H_
#define UMBRA_TESTS_UNIT_EXP_COMMON_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "tests/support/testing.h"
#include "umbra/tensor.h"

namespace umbra::testing {

/// Row lengths around the widths of packets.
inline constexpr index_t kSizes[] = {1, 3, 4, 15, 16, 17, 33, 64};

/// Numbers that differ from place to place, of both signs, exact in every dtype.
template <typename DType>
inline DType Sample(index_t i) {
  return static_cast<DType>((i * 37 + 11) % 101 - 50);
}

/// Rows of `columns` elements with `gap` elements between them that nothing may touch.
template <typename DType>
class Padded {
 public:
  Padded(index_t rows, index_t columns, index_t gap, index_t offset = 1)
      : rows_(rows),
        columns_(columns),
        pitch_(columns + gap),
        offset_(offset),
        memory_(Shape1(offset + rows * pitch_ + 1)) {
    for (index_t i = 0; i < memory_.shape_[0]; ++i) memory_[i] = kGuard;
    for (index_t y = 0; y < rows; ++y)
      for (index_t x = 0; x < columns; ++x) tensor()[y][x] = Sample<DType>(y * columns + x);
  }
  Tensor<cpu, 2, DType> tensor() const {
    return Tensor<cpu, 2, DType>(memory_.dptr_ + offset_, Shape2(rows_, columns_), pitch_, nullptr);
  }
  /// Is everything outside of the rows as it was?
  bool GuardsHold() const {
    for (index_t i = 0; i < memory_.shape_[0]; ++i) {
      const index_t at = i - offset_;
      const bool inside = at >= 0 && at < rows_ * pitch_ && at % pitch_ < columns_;
      if (!inside && memory_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  static constexpr DType kGuard = static_cast<DType>(12345);
  index_t rows_, columns_, pitch_, offset_;
  TensorContainer<cpu, 1, DType> memory_;
};

template <typename T>
inline bool SameBits(T a, T b) {
  if (a != a && b != b) return true;
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace umbra::testing

#endif  // UMBRA_TESTS_UNIT_EXP_COMMON_H_

// The axes of one kernel's launch: their extents, how far operands step along them, and which of them are one as memory
// has no gaps between.
#ifndef UMBRA_RUNTIME_LAUNCH_AXES_H_
#define UMBRA_RUNTIME_LAUNCH_AXES_H_

#include <algorithm>
#include <vector>

#include "runtime/launch.h"

namespace umbra::runtime {

/// Whole cache lines of results of 2 bytes and more, and whole tiles of products: what shares of columns are multiples
/// of.
inline constexpr index_t kColumnGranule = 96;

class [[gnu::visibility("hidden")]] LaunchAxes {
 protected:
  /// Extents and strides of a launch, in plan_: of all rows, or of a block of `rows` indices of axis 0.
  LaunchAxes(const KernelSignature& signature, const std::vector<TensorRef>& buffers,
             const std::vector<index_t>& symbols, int threads, index_t rows);

  /// Makes axes that lie one after the other in memory one; rows of a dense element-wise kernel are cut anew.
  void Merge();

  index_t& Stride(std::size_t operand, std::size_t axis) { return plan_.stride[operand * rank_ + axis]; }
  /// In additions.
  double Work() const;
  /// Of the axes [begin, end).
  index_t Points(std::size_t begin, std::size_t end) const;
  std::size_t RowAxes() const { return static_cast<std::size_t>(signature_.row_axes); }
  bool InColumns() const { return vector_axis_ < RowAxes(); }
  index_t Columns() const { return InColumns() ? plan_.extent[vector_axis_] : 1; }
  index_t Rows() const { return Points(0, RowAxes()) / std::max<index_t>(1, Columns()); }
  /// Of a kernel that has panels: the row axis whose rows are computed together.
  std::size_t SharedAxis() const { return RowAxes() - 2; }
  /// The axis along which operands lie that the vector axis lies across: tiles of them are turned. rank_ if there is
  /// none.
  std::size_t TileAxis() const;

  const KernelSignature& signature_;
  const std::vector<TensorRef>& buffers_;
  int threads_;
  LaunchPlan plan_;
  std::size_t rank_ = 0, vector_axis_ = 0;

 private:
  bool CanMerge(std::size_t outer, std::size_t inner);
  bool MovesWithFirst(std::size_t axis);
  void MergeInto(std::size_t outer, std::size_t inner);
  index_t RowsAtOnce() const;
  void GiveRowsBack();
  void LengthenRows();
  void LengthenTiles(std::size_t tiles);
  bool MayGrow(std::size_t axis) const { return !IsBaked(signature_, static_cast<int>(axis)); }
  void CutRows();
};

}  // namespace umbra::runtime

#endif  // UMBRA_RUNTIME_LAUNCH_AXES_H_

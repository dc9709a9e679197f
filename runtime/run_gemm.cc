#include "runtime/run_gemm.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/blas.h"
#include "runtime/cpu_info.h"
#include "runtime/matrix.h"

namespace umbra::runtime {

namespace {

// A matrix for BLAS: rows that lie `lead` apart, elements side by side; `transposed` if the memory
// holds the transpose. Memory of any other shape is copied into `copy`.
template <typename T>
struct Matrix {
  T* data = nullptr;
  index_t rows = 1, columns = 1, lead = 1;
  bool transposed = false;
  std::unique_ptr<T[]> copy;
};

template <typename T>
Matrix<T> ForBlas(const TensorRef& tensor, bool transpose) {
  const auto [rows, columns, row_stride, column_stride] = AsMatrix(tensor, transpose);
  Matrix<T> m;
  m.data = static_cast<T*>(tensor.data);
  m.rows = rows;
  m.columns = columns;
  if (column_stride == 1 && row_stride >= std::max<index_t>(1, columns)) {
    m.lead = row_stride;
  } else if (row_stride == 1 && column_stride >= std::max<index_t>(1, rows)) {
    m.lead = column_stride;
    m.transposed = true;
  } else {
    m.copy.reset(new T[static_cast<std::size_t>(rows * columns)]);
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j) m.copy[i * columns + j] = m.data[i * row_stride + j * column_stride];
    m.data = m.copy.get();
    m.lead = std::max<index_t>(1, columns);
  }
  return m;
}

template <typename T>
void Multiply(const GemmStep& step, const TensorRef& ta, const TensorRef& tb, const TensorRef& tc) {
  if (tc.shape.size() == 3) {
    for (index_t k = 0; k < tc.shape[0]; ++k) Multiply<T>(step, ta.At(k), tb.At(k), tc.At(k));
    return;
  }
  const Matrix<T> a = ForBlas<T>(ta, step.transpose_a), b = ForBlas<T>(tb, step.transpose_b);
  const MatrixShape c = AsMatrix(tc, false);
  const auto multiply = [&](T* result, index_t lead) {
    Gemm(a.transposed, b.transposed, a.rows, b.columns, a.columns, static_cast<T>(step.alpha), a.data, a.lead, b.data,
         b.lead, T(0), result, lead);
  };
  T* const results = static_cast<T*>(tc.data);
  const index_t lead = std::max<index_t>(1, c.columns);
  if (c.column_stride == 1 && c.row_stride >= lead) return multiply(results, c.row_stride);
  const std::unique_ptr<T[]> side_by_side(new T[static_cast<std::size_t>(c.rows * c.columns)]);
  multiply(side_by_side.get(), lead);
  for (index_t i = 0; i < c.rows; ++i)
    for (index_t j = 0; j < c.columns; ++j)
      results[i * c.row_stride + j * c.column_stride] = side_by_side[i * lead + j];
}

// Few rows or columns, where they lie. A factor that is read a few columns at a time touches a page for each line of
// it, which only those that stay in the caches bear, or those of few rows, which packets of eight lanes and more walk
// along its rows. Where rows in the caches are whole pages, what a tile reads of them falls into few sets, and a tile
// of AVX2 comes back for it more often. Packets do not lie across the lines of a matrix.
bool OfFewIsFaster(const ProductShape& shape, std::string_view target) {
  constexpr index_t kFewOfPages = 8;
  constexpr std::size_t kPage = 4096;
  constexpr double kMostBytes = 8 << 20;
  const bool few_rows = shape.rows <= kFewRows;
  if (!few_rows && shape.columns > kFewRows) return false;
  if (shape.made_b && few_rows) return true;
  if (shape.transposed_b) return false;
  if (few_rows && target == "avx512") return true;
  const auto bytes = [&](index_t extent) {
    return static_cast<double>(extent) * static_cast<double>(shape.inner) * static_cast<double>(shape.element_size);
  };
  const bool stays = bytes(shape.columns) <= kMostBytes,
             pages = static_cast<std::size_t>(shape.columns) * shape.element_size % kPage == 0;
  if (stays && pages && shape.rows > kFewOfPages && target != "avx512") return false;
  if (few_rows && target == "avx2") return true;
  return stays && (!shape.transposed_a || bytes(shape.rows) <= kMostBytes);
}

// More rows, which share a copy of the columns that tiles read; with the widest packets of the processor, which a BLAS
// has, too. Of long sums it copies the rows as well, which pays where a tile has few columns.
bool InPanelsIsFaster(const ProductShape& shape, std::string_view target) {
  const bool avx512 = target == "avx512", widest = avx512 || (target == "avx2" && !CpuRuns("avx512"));
  if (!widest) return false;
  constexpr index_t kManyRows = 64, kLongSum = 128;
  if (!avx512 && !shape.made_b && shape.inner >= kLongSum) return false;
  return shape.rows > (avx512 ? kFewRows : kManyRows) || (avx512 && shape.transposed_b && shape.rows > 1);
}

bool IsSmall(const ProductShape& shape, std::string_view target) {
  constexpr index_t kMostExtent = 32;
  const index_t most = target == "plain" ? 128 : 512;
  return std::max({shape.rows, shape.columns, shape.inner}) <= kMostExtent &&
         shape.rows * shape.columns * shape.inner <= most;
}

}  // namespace

void RunGemm(const GemmStep& step, const TensorRef& a, const TensorRef& b, const TensorRef& c) {
  if (c.dtype == DType::kFloat64) Multiply<double>(step, a, b, c);
  else Multiply<float>(step, a, b, c);
}

GemmStep Turned(const GemmStep& step) {
  GemmStep turned = step;
  std::swap(turned.a, turned.b);
  turned.transpose_a = !step.transpose_b;
  turned.transpose_b = !step.transpose_a;
  return turned;
}

ProductShape ShapeOf(const GemmStep& step, const KernelSignature& kernel, const std::vector<index_t>& loops,
                     DType dtype) {
  const GemmStep product = kernel.turned ? Turned(step) : step;
  const std::size_t rank = loops.size();
  const auto reads = [&](const Access& access) { return access.buffer == product.b && !access.store; };
  const bool made = std::none_of(kernel.operands.begin(), kernel.operands.end(), reads);
  return {
      loops[rank - 3], loops[rank - 2], loops[rank - 1], product.transpose_a, product.transpose_b, SizeOf(dtype), made,
      rank > 3};
}

// Measured beside OpenBLAS on AVX-512 and AVX2. A vector is BLAS's, which reads the matrix once; of two or three
// columns too much of a packet is empty. But to call it takes as long as to multiply small matrices, of which there are
// many.
ProductWay FastestWay(const ProductShape& shape, std::string_view target) {
  constexpr index_t kLeastColumns = 4;
  if (shape.batched && IsSmall(shape, target)) return ProductWay::kAsTheyLie;
  if (shape.columns < kLeastColumns || (shape.rows < 2 && !shape.made_b)) return ProductWay::kBlas;
  if (InPanelsIsFaster(shape, target)) return ProductWay::kInPanels;
  return OfFewIsFaster(shape, target) ? ProductWay::kAsTheyLie : ProductWay::kBlas;
}

RowDims RowDimsOf(const GemmStep& step, const std::vector<TensorRef>& buffers) {
  const auto rank = [&](int buffer) { return buffers[static_cast<std::size_t>(buffer)].shape.size(); };
  if (rank(step.c) == 1) return {};
  if (rank(step.c) == 3) return {0, 0, 0};
  return {rank(step.a) == 2 && step.transpose_a ? 1 : 0, -1, 0};
}

}  // namespace umbra::runtime

// Functions over whole tensors on the CPU, with the names and meaning of mshadow's, which check little. Where nothing
// else is said, elements have any of the ten dtypes, indices one of their own. All throw umbra::Error if shapes do not
// fit together, memory is missing, or the destination overlaps an operand other than as is said.
#ifndef UMBRA_TENSOR_FUNCTIONS_H_
#define UMBRA_TENSOR_FUNCTIONS_H_

#include <algorithm>
#include <numeric>
#include <vector>

#include "umbra/gemm.h"
#include "umbra/tensor.h"

namespace umbra {

namespace detail {
inline void RequireShapes(bool fit, const char* name) {
  Require(fit, name, ": the shapes of the tensors do not fit together");
}
// A position given as a number of any dtype, held within 0 .. extent - 1.
template <typename IType>
inline index_t ClippedPosition(IType value, index_t extent) {
  if constexpr (std::is_integral_v<IType>) {
    const auto position = static_cast<index_t>(value);
    return position < 0 ? 0 : position < extent ? position : extent - 1;
  } else {
    const auto position = static_cast<double>(value);
    if (!(position > 0)) return 0;
    return position < static_cast<double>(extent) ? static_cast<index_t>(position) : extent - 1;
  }
}
// A position given as a number of any dtype, which must be a row of `owner`.
template <typename IType, typename Owner>
inline index_t RowAt(IType value, const Owner& owner, const char* name) {
  const auto position = static_cast<double>(value);
  Require(position >= 0 && position < static_cast<double>(owner.size(0)), name, ": row ", position,
          " of a tensor of shape ", owner.shape_);
  return static_cast<index_t>(position);
}
// Tensors with memory, of which `dst` is written while the others are read.
template <typename Dst, typename... Srcs>
inline void RequireMemory(const char* name, const Dst& dst, const Srcs&... srcs) {
  expr::CheckTensor(dst);
  (expr::CheckTensor(srcs), ...);
  const expr::Region region = expr::RegionOf(dst);
  Require((true && ... && expr::RegionOf(srcs).Apart(region)), name,
          ": the destination overlaps an operand; give it memory of its own");
}
}  // namespace detail

namespace detail {
// The classes of a classifier's outputs: the elements of a vector, of each row of a matrix, or along axis 1
// of a tensor of rank 3.
template <int dim, typename DType>
struct ClassLines {
  static_assert(1 <= dim && dim <= 3, "umbra: Softmax and SoftmaxGrad take tensors of rank 1 to 3");
  explicit ClassLines(const Tensor<cpu, dim, DType>& t)
      : data(t.dptr_),
        outer(dim == 1 ? 1 : t.shape_[0]),
        inner(dim == 3 ? t.shape_[dim - 1] : 1),
        classes(t.shape_[dim == 1 ? 0 : 1]),
        step(dim == 3 ? t.stride_ : 1),
        outer_step(dim == 3 ? classes * t.stride_ : t.stride_) {
    expr::CheckTensor(t);
  }
  DType* Line(index_t y, index_t z) const { return data + y * outer_step + z; }

  DType* data;
  index_t outer, inner, classes;
  index_t step, outer_step;  // elements from one class, and from one line, to the next
};

// Calls body(y, z, dst line, src line) for each line of two tensors of one shape.
template <int dim, typename DType, typename Body>
inline void ForEachLine(const char* name, const Tensor<cpu, dim, DType>& dst, const Tensor<cpu, dim, DType>& src,
                        Body body) {
  RequireShapes(dst.shape_ == src.shape_, name);
  const ClassLines<dim, DType> to(dst), from(src);
  Require(expr::AliasCheck<Tensor<cpu, dim, DType>>::Harmless(src, expr::RegionOf(dst)), name,
          ": the destination overlaps the operand in part; use the same tensor or memory of its own");
  if (to.classes == 0) return;
  for (index_t y = 0; y < to.outer; ++y)
    for (index_t z = 0; z < to.inner; ++z) body(y, z, to.Line(y, z), to.step, from.Line(y, z), from.step);
}

// What the classes of a row should be: the labelled one, and each other.
template <typename DType>
struct SoftmaxTarget {
  // `alpha` of the labelled class is shared by the others.
  SoftmaxTarget(float alpha, index_t classes)
      : label(ComputeOf<DType>(1) - static_cast<ComputeOf<DType>>(alpha)),
        other(classes < 2 ? ComputeOf<DType>(0)
                          : static_cast<ComputeOf<DType>>(alpha) / static_cast<ComputeOf<DType>>(classes - 1)) {}
  ComputeOf<DType> label, other;
};

template <int dim, typename DType>
inline void SoftmaxGrad(const Tensor<cpu, dim, DType>& dst, const Tensor<cpu, dim, DType>& src,
                        const Tensor<cpu, dim - 1, DType>& label, const DType* ignore_label, float alpha) {
  static_assert(dim > 1, "umbra: SoftmaxGrad takes tensors of rank 2 or 3");
  using C = ComputeOf<DType>;
  RequireShapes(label.shape_[0] == src.shape_[0] && (dim == 2 || label.shape_[dim - 2] == src.shape_[dim - 1]),
                "SoftmaxGrad");
  RequireMemory("SoftmaxGrad", dst, label);
  const index_t classes = src.shape_[1];
  const SoftmaxTarget<DType> target(alpha, classes);
  ForEachLine("SoftmaxGrad", dst, src,
              [&](index_t y, index_t z, DType* out, index_t out_step, const DType* in, index_t in_step) {
                const DType wanted = label.dptr_[dim == 2 ? y : y * label.stride_ + z];
                const bool ignored = ignore_label != nullptr && wanted == *ignore_label;
                const auto number = static_cast<double>(wanted);
                Require(ignored || (number >= 0 && number < static_cast<double>(classes)), "SoftmaxGrad: label ",
                        number, " of row ", y, " is none of ", classes, " classes");
                const index_t k = ignored ? 0 : static_cast<index_t>(number);
                for (index_t x = 0; x < classes; ++x)
                  out[x * out_step] = ConvertTo<DType>(
                      ignored ? C(0) : static_cast<C>(in[x * in_step]) - (x == k ? target.label : target.other));
              });
}
}  // namespace detail

/// The classes become their softmax, exp(x - max) / sum: the elements of a vector, of each row of a matrix, or
/// along axis 1 of a tensor of rank 3. For floating dtypes; f16 and bf16 are computed in f32 and rounded once. `dst`
/// and `src` may be one tensor. mshadow's Softmax.
template <int dim, typename DType>
inline void Softmax(Tensor<cpu, dim, DType> dst, const Tensor<cpu, dim, DType>& src) {
#if defined(UMBRA_JIT_EXPRESSIONS)
  if constexpr (dim == 2 && std::is_floating_point_v<DType>) {
    detail::RequireShapes(dst.shape_ == src.shape_, "Softmax");
    using namespace expr;
    const auto e = F<op::exp>(src - broadcast<0>(reduce_with_axis<red::maximum>(src, 1), src.shape_));
    dst = e / broadcast<0>(reduce_with_axis<red::sum>(e, 1), src.shape_);
    return;
  }
#endif
  using C = ComputeOf<DType>;
  const index_t n = src.shape_[dim == 1 ? 0 : 1];
  std::vector<C> line(static_cast<std::size_t>(n));
  detail::ForEachLine("Softmax", dst, src,
                      [&](index_t, index_t, DType* out, index_t out_step, const DType* in, index_t in_step) {
                        C most = static_cast<C>(in[0]), sum = 0;
                        for (index_t i = 1; i < n; ++i) most = simd::maximum(static_cast<C>(in[i * in_step]), most);
                        for (index_t i = 0; i < n; ++i)
                          sum += line[static_cast<std::size_t>(i)] = simd::exp(static_cast<C>(in[i * in_step]) - most);
                        for (index_t i = 0; i < n; ++i)
                          out[i * out_step] = ConvertTo<DType>(line[static_cast<std::size_t>(i)] / sum);
                      });
}
/// The gradient of cross-entropy over softmax: `src` less 1 at the class that `label` names, which is one for
/// each row of a matrix and for each (axis 0, axis 2) of a tensor of rank 3; labels have the dtype of `src`, their
/// fractions are cut off. Throws umbra::Error for a label that is no class. mshadow's SoftmaxGrad.
template <int dim, typename DType>
inline void SoftmaxGrad(Tensor<cpu, dim, DType> dst, const Tensor<cpu, dim, DType>& src,
                        const Tensor<cpu, dim - 1, DType>& label) {
  detail::SoftmaxGrad<dim, DType>(dst, src, label, nullptr, 0);
}
/// The same, with zeros where the label is `ignore_label`.
template <int dim, typename DType>
inline void SoftmaxGrad(Tensor<cpu, dim, DType> dst, const Tensor<cpu, dim, DType>& src,
                        const Tensor<cpu, dim - 1, DType>& label, const DType& ignore_label) {
  detail::SoftmaxGrad<dim, DType>(dst, src, label, &ignore_label, 0);
}
/// The same where `alpha`, usually 0 to 1, of the labelled class is shared alike by all others: `src` less 1 - alpha
/// there, less alpha / (classes - 1) elsewhere. mshadow's SmoothSoftmaxGrad.
template <int dim, typename DType>
inline void SmoothSoftmaxGrad(Tensor<cpu, dim, DType> dst, const Tensor<cpu, dim, DType>& src,
                              const Tensor<cpu, dim - 1, DType>& label, float alpha) {
  detail::SoftmaxGrad<dim, DType>(dst, src, label, nullptr, alpha);
}
template <int dim, typename DType>
inline void SmoothSoftmaxGrad(Tensor<cpu, dim, DType> dst, const Tensor<cpu, dim, DType>& src,
                              const Tensor<cpu, dim - 1, DType>& label, const DType& ignore_label, float alpha) {
  detail::SoftmaxGrad<dim, DType>(dst, src, label, &ignore_label, alpha);
}

/// dst[index[y]] += src[y] for `index` (n), `src` (n, c), `dst` (rows, c); positions beyond `dst` are clipped, as
/// take() reads them. mshadow's AddTakeGrad.
template <typename IndexType, typename DType>
inline void AddTakeGrad(Tensor<cpu, 2, DType> dst, const Tensor<cpu, 1, IndexType>& index,
                        const Tensor<cpu, 2, DType>& src) {
  detail::RequireShapes(index.size(0) == src.size(0) && dst.size(1) == src.size(1), "AddTakeGrad");
  detail::RequireMemory("AddTakeGrad", dst, index, src);
  if (dst.size(0) == 0) return;
  for (index_t y = 0; y < index.size(0); ++y) {
    Tensor<cpu, 1, DType> row = dst[detail::ClippedPosition(index[y], dst.size(0))];
    expr::MapExp<sv::plusto>(&row, src[y]);
  }
}
/// dst[sorted[y]] += src[index[y]], where `index` says which row of `src` each element of `sorted` came from. Positions
/// beyond `dst` are clipped; throws umbra::Error for a row that `src` does not have. mshadow's AddTakeGradLargeBatch;
/// here `sorted` may be in any order.
template <typename IndexType, typename DType>
inline void AddTakeGradLargeBatch(Tensor<cpu, 2, DType> dst, const Tensor<cpu, 1, IndexType>& sorted,
                                  const Tensor<cpu, 1, IndexType>& index, const Tensor<cpu, 2, DType>& src) {
  detail::RequireShapes(sorted.size(0) == index.size(0) && dst.size(1) == src.size(1), "AddTakeGradLargeBatch");
  detail::RequireMemory("AddTakeGradLargeBatch", dst, sorted, index, src);
  for (index_t y = 0; y < sorted.size(0); ++y) {
    const index_t row = detail::RowAt(index[y], src, "AddTakeGradLargeBatch");
    if (dst.size(0) == 0) continue;
    Tensor<cpu, 1, DType> to = dst[detail::ClippedPosition(sorted[y], dst.size(0))];
    expr::MapExp<sv::plusto>(&to, src[row]);
  }
}
/// dst[index[y]] = src[y] for `index` (n), `src` (n, c), `dst` (rows, c). Throws umbra::Error for a row that `dst` does
/// not have. mshadow's IndexFill.
template <typename IndexType, typename DType>
inline void IndexFill(Tensor<cpu, 2, DType> dst, const Tensor<cpu, 1, IndexType>& index,
                      const Tensor<cpu, 2, DType>& src) {
  detail::RequireShapes(index.size(0) == src.size(0) && dst.size(1) == src.size(1), "IndexFill");
  detail::RequireMemory("IndexFill", dst, index, src);
  for (index_t y = 0; y < index.size(0); ++y) Copy<1, DType>(dst[detail::RowAt(index[y], dst, "IndexFill")], src[y]);
}

/// Sorts `keys` (n) and brings `values` (n), of another dtype if need be, into the same order; equal keys keep theirs.
/// NaN comes last. mshadow's SortByKey.
template <typename KDType, typename VDType>
inline void SortByKey(Tensor<cpu, 1, KDType> keys, Tensor<cpu, 1, VDType> values, bool is_ascend = true) {
  detail::RequireShapes(keys.size(0) == values.size(0), "SortByKey");
  detail::RequireMemory("SortByKey", keys, values);
  std::vector<index_t> order(static_cast<std::size_t>(keys.size(0)));
  std::iota(order.begin(), order.end(), index_t{0});
  const auto before = [&](index_t a, index_t b) {
    const KDType x = keys[a], y = keys[b];
    if (x != x || y != y) return x == x;
    return is_ascend ? x < y : y < x;
  };
  // (For std::stable_sort of libstdc++ 12, clang warns.)
  std::sort(order.begin(), order.end(), [&](index_t a, index_t b) { return before(a, b) || (a < b && !before(b, a)); });
  std::vector<KDType> sorted_keys;
  std::vector<VDType> sorted_values;
  for (index_t k : order) {
    sorted_keys.push_back(keys[k]);
    sorted_values.push_back(values[k]);
  }
  std::copy(sorted_keys.begin(), sorted_keys.end(), keys.dptr_);
  std::copy(sorted_values.begin(), sorted_values.end(), values.dptr_);
}
/// Sorts the elements of every segment: `segments` says which one each of `values` belongs to, and is
/// in ascending order afterwards. mshadow's VectorizedSort.
template <typename VDType, typename SDType>
inline void VectorizedSort(Tensor<cpu, 1, VDType> values, Tensor<cpu, 1, SDType> segments) {
  SortByKey(values, segments, true);
  SortByKey(segments, values, true);
}

/// dst[0] = sum of lhs[i] * rhs[i], f32 or f64; 0 of no elements. mshadow's VectorDot.
template <typename DType>
inline void VectorDot(Tensor<cpu, 1, DType> dst, const Tensor<cpu, 1, DType>& lhs, const Tensor<cpu, 1, DType>& rhs) {
  detail::RequireShapes(lhs.size(0) == rhs.size(0) && dst.size(0) == 1, "VectorDot");
  detail::RequireMemory("VectorDot", dst, lhs, rhs);
  dst[0] = DType(0);
  if (lhs.size(0) > 0)
    blas::Gemm<DType>(false, false, 1, 1, lhs.size(0), DType(1), lhs.dptr_, lhs.size(0), rhs.dptr_, 1, DType(0),
                      dst.dptr_, 1);
}
namespace detail {
/// Rows, columns and inner extent of each product of a batch. Throws umbra::Error if the tensors do not fit.
struct BatchExtents {
  index_t m, n, k;
};
template <bool transpose_left, bool transpose_right, typename Device, typename DType>
inline BatchExtents BatchExtentsOf(const Tensor<Device, 3, DType>& dst, const Tensor<Device, 3, DType>& lhs,
                                   const Tensor<Device, 3, DType>& rhs) {
  const BatchExtents e{dst.size(1), dst.size(2), lhs.size(transpose_left ? 1 : 2)};
  RequireShapes(lhs.size(0) == dst.size(0) && rhs.size(0) == dst.size(0) && lhs.size(transpose_left ? 2 : 1) == e.m &&
                    rhs.size(transpose_right ? 1 : 2) == e.n && rhs.size(transpose_right ? 2 : 1) == e.k,
                "BatchGEMM");
  RequireMemory("BatchGEMM", dst, lhs, rhs);
  return e;
}
}  // namespace detail
/// dst[k] = alpha * op(lhs[k]) . op(rhs[k]) + beta * dst[k] for every matrix k, f32 or f64: op(lhs) is (batch, m, k),
/// op(rhs) (batch, k, n), `dst` (batch, m, n). `workspace` is mshadow's, whose BatchGEMM this is; none is needed.
template <bool transpose_left, bool transpose_right, typename DType>
inline void BatchGEMM(Tensor<cpu, 3, DType> dst, const Tensor<cpu, 3, DType>& lhs, const Tensor<cpu, 3, DType>& rhs,
                      DType alpha, DType beta, Tensor<cpu, 1, DType*> workspace = Tensor<cpu, 1, DType*>()) {
  (void)workspace;
  const auto [m, n, k] = detail::BatchExtentsOf<transpose_left, transpose_right>(dst, lhs, rhs);
  for (index_t b = 0; b < dst.size(0); ++b)
    blas::Gemm<DType>(transpose_left, transpose_right, m, n, k, alpha, lhs[b].dptr_, lhs.stride_, rhs[b].dptr_,
                      rhs.stride_, beta, dst[b].dptr_, dst.stride_);
}

}  // namespace umbra

#endif  // UMBRA_TENSOR_FUNCTIONS_H_

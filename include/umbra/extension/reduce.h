// Reductions: over one axis, or over all axes but one.
#ifndef UMBRA_EXTENSION_REDUCE_H_
#define UMBRA_EXTENSION_REDUCE_H_

#include "umbra/expr_engine.h"

namespace umbra::expr {

/// A reduction over axes that lie side by side: an element of the result is the join of `count_`
/// elements of the source. The source's linear index is
/// (outer * count + k) * inner + rest for the result's linear index outer * inner + rest.
template <typename Reducer, typename SrcExp, typename DType, int dimsrc, int dimdst, bool keepdim>
struct ReduceWithAxisExp
    : MakeTensorExp<ReduceWithAxisExp<Reducer, SrcExp, DType, dimsrc, dimdst, keepdim>, SrcExp,
                    dimdst, DType> {
  SrcExp src_;
  int axis_;
  index_t count_, inner_, last_;
  ReduceWithAxisExp(const SrcExp& src, int axis) : src_(src), axis_(axis) {
    const Shape<dimsrc> shape = ShapeCheck<dimsrc, SrcExp>::Check(src);
    Require(axis >= 0 && axis < dimsrc, "reduction over axis ", axis, " of shape ", shape,
            ": its axes are 0 to ", dimsrc - 1);
    count_ = shape[axis];
    inner_ = shape.ProdShape(axis + 1, dimsrc);
    last_ = shape[dimsrc - 1];
    for (int d = 0, to = 0; d < dimsrc; ++d) {
      if (d == axis && !keepdim) continue;
      this->shape_[to++] = d == axis ? 1 : shape[d];
    }
    if (dimsrc == 1 && !keepdim) this->shape_[0] = 1;
  }
};

/// Joins the elements along `axis` by Reducer (red::sum, maximum, minimum, product); the result has
/// one axis less (one element for a vector).
template <typename Reducer, bool mask = false, typename SrcExp, typename DType, int etype>
inline auto reduce_with_axis(const Exp<SrcExp, DType, etype>& src, int axis) {
  static_assert(!mask, "umbra: reduce_with_axis gives values, not positions");
  constexpr int dim = ExpInfo<SrcExp>::kDim;
  static_assert(dim >= 1, "umbra: reduce_with_axis takes a tensor expression");
  return ReduceWithAxisExp<Reducer, SrcExp, DType, dim, (dim > 1 ? dim - 1 : 1), false>(src.self(), axis);
}
/// The same with the axis kept at extent 1.
template <typename Reducer, bool mask = false, typename SrcExp, typename DType, int etype>
inline auto reduce_keepdim(const Exp<SrcExp, DType, etype>& src, int axis) {
  static_assert(!mask, "umbra: reduce_keepdim gives values, not positions");
  constexpr int dim = ExpInfo<SrcExp>::kDim;
  static_assert(dim >= 1, "umbra: reduce_keepdim takes a tensor expression");
  return ReduceWithAxisExp<Reducer, SrcExp, DType, dim, dim, true>(src.self(), axis);
}

template <typename Reducer, typename SrcExp, typename DType, int dimsrc, int dimdst, bool keepdim>
struct Plan<ReduceWithAxisExp<Reducer, SrcExp, DType, dimsrc, dimdst, keepdim>, DType> {
  using E = ReduceWithAxisExp<Reducer, SrcExp, DType, dimsrc, dimdst, keepdim>;
  explicit Plan(const E& e)
      : src_(e.src_), count_(e.count_), inner_(e.inner_), last_(e.last_),
        row_(e.shape_[dimdst - 1]) {}
  DType Eval(index_t y, index_t x) const {
    const index_t at = y * row_ + x;
    const index_t first = at / inner_ * count_ * inner_ + at % inner_;
    DType joined = Reducer::template Initial<DType>();
    for (index_t k = 0; k < count_; ++k) {
      const index_t from = first + k * inner_;
      Reducer::Reduce(joined, DType(src_.Eval(from / last_, from % last_)));
    }
    return joined;
  }
  Plan<SrcExp, DType> src_;
  index_t count_, inner_, last_, row_;
};
template <typename Reducer, typename SrcExp, typename DType, int dimsrc, int dimdst, bool keepdim>
struct ExpInfo<ReduceWithAxisExp<Reducer, SrcExp, DType, dimsrc, dimdst, keepdim>> {
  static constexpr int kDim = dimdst;
  static constexpr int kDevMask = ExpInfo<SrcExp>::kDevMask;
  static constexpr bool kPacket = false;
};
template <typename Reducer, typename SrcExp, typename DType, int dimsrc, int dimdst, bool keepdim>
struct AliasCheck<ReduceWithAxisExp<Reducer, SrcExp, DType, dimsrc, dimdst, keepdim>> {
  using E = ReduceWithAxisExp<Reducer, SrcExp, DType, dimsrc, dimdst, keepdim>;
  static bool Harmless(const E& e, const Region& dst) { return AliasCheck<SrcExp>::Apart(e.src_, dst); }
  static bool Apart(const E& e, const Region& dst) { return AliasCheck<SrcExp>::Apart(e.src_, dst); }
};

/// Joins all elements that share an index along `dimkeep` into a vector.
template <typename SrcExp, typename DType, typename Reducer, int dimkeep>
struct ReduceTo1DExp
    : MakeTensorExp<ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>, SrcExp, 1, DType> {
  static constexpr int kSrcDim = ExpInfo<SrcExp>::kDim;
  SrcExp src_;
  index_t outer_, inner_, last_;
  explicit ReduceTo1DExp(const SrcExp& src) : src_(src) {
    const Shape<kSrcDim> shape = ShapeCheck<kSrcDim, SrcExp>::Check(src);
    this->shape_[0] = shape[dimkeep];
    outer_ = shape.ProdShape(0, dimkeep);
    inner_ = shape.ProdShape(dimkeep + 1, kSrcDim);
    last_ = shape[kSrcDim - 1];
  }
};

/// The sums over all axes but `dimkeep`.
template <int dimkeep, typename SrcExp, typename DType, int etype>
inline ReduceTo1DExp<SrcExp, DType, red::sum, dimkeep> sumall_except_dim(
    const Exp<SrcExp, DType, etype>& src) {
  static_assert(0 <= dimkeep && dimkeep < ExpInfo<SrcExp>::kDim,
                "umbra: sumall_except_dim<axis>: the axis is beyond the rank");
  return ReduceTo1DExp<SrcExp, DType, red::sum, dimkeep>(src.self());
}
/// The sum of the rows of a matrix: a vector of its columns' sums.
template <typename SrcExp, typename DType, int etype>
inline auto sum_rows(const Exp<SrcExp, DType, etype>& src) {
  static_assert(ExpInfo<SrcExp>::kDim == 2, "umbra: sum_rows takes a matrix (two axes)");
  return sumall_except_dim<1>(src);
}

template <typename SrcExp, typename DType, typename Reducer, int dimkeep>
struct Plan<ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>, DType> {
  using E = ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>;
  explicit Plan(const E& e)
      : src_(e.src_), size_(e.shape_[0]), outer_(e.outer_), inner_(e.inner_), last_(e.last_) {}
  DType Eval(index_t, index_t x) const {
    DType joined = Reducer::template Initial<DType>();
    for (index_t o = 0; o < outer_; ++o)
      for (index_t i = 0; i < inner_; ++i) {
        const index_t from = (o * size_ + x) * inner_ + i;
        Reducer::Reduce(joined, DType(src_.Eval(from / last_, from % last_)));
      }
    return joined;
  }
  Plan<SrcExp, DType> src_;
  index_t size_, outer_, inner_, last_;
};
template <typename SrcExp, typename DType, typename Reducer, int dimkeep>
struct ExpInfo<ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>> {
  static constexpr int kDim = 1;
  static constexpr int kDevMask = ExpInfo<SrcExp>::kDevMask;
  static constexpr bool kPacket = false;
};
template <typename SrcExp, typename DType, typename Reducer, int dimkeep>
struct AliasCheck<ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>> {
  using E = ReduceTo1DExp<SrcExp, DType, Reducer, dimkeep>;
  static bool Harmless(const E& e, const Region& dst) { return AliasCheck<SrcExp>::Apart(e.src_, dst); }
  static bool Apart(const E& e, const Region& dst) { return AliasCheck<SrcExp>::Apart(e.src_, dst); }
};

}  // namespace umbra::expr

namespace umbra {
using expr::reduce_keepdim;
using expr::reduce_with_axis;
using expr::sum_rows;
using expr::sumall_except_dim;
}  // namespace umbra

#endif  // UMBRA_EXTENSION_REDUCE_H_

// Shapes whose rank is known at run time.
#ifndef UMBRA_TSHAPE_H_
#define UMBRA_TSHAPE_H_

#include <algorithm>
#include <cctype>
#include <istream>
#include <iterator>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "umbra/shape.h"

namespace umbra {

/// Extents of any number of dimensions, as mshadow's TShape; up to four lie in the object itself.
/// Unlike the original, a moved-from shape has rank 0, products that overflow throw, and `>>` and Load
/// leave the target as it was when they fail.
class TShape {
 public:
  static constexpr index_t kStackCache = 4;

  /// Rank 0.
  TShape() = default;
  /// `ndim` extents of 1. Throws umbra::Error if it is negative.
  explicit TShape(index_t ndim) {
    Require(ndim >= 0, "a shape of ", ndim, " dimensions");
    SetDim(ndim);
    std::fill_n(data(), ndim, index_t{1});
  }
  template <typename Iterator,
            typename = typename std::iterator_traits<Iterator>::iterator_category>
  TShape(Iterator begin, Iterator end) { CopyFrom(begin, end); }
  template <int dim>
  TShape(const Shape<dim>& s) { CopyFrom(s.shape_, s.shape_ + dim); }  // NOLINT: mirrors the original
  TShape(const TShape& s) { CopyFrom(s.begin(), s.end()); }
  TShape(TShape&& s) noexcept { swap(s); }
  TShape& operator=(const TShape& s) {
    if (this != &s) CopyFrom(s.begin(), s.end());
    return *this;
  }
  TShape& operator=(TShape&& s) noexcept {
    TShape taken(std::move(s));
    swap(taken);
    return *this;
  }
  TShape& operator=(const std::vector<index_t>& shape) {
    CopyFrom(shape.begin(), shape.end());
    return *this;
  }
  template <int dim>
  TShape& operator=(const Shape<dim>& s) {
    CopyFrom(s.shape_, s.shape_ + dim);
    return *this;
  }
  void swap(TShape& other) noexcept {
    std::swap(ndim_, other.ndim_);
    std::swap(capacity_, other.capacity_);
    std::swap(heap_, other.heap_);
    std::swap(stack_, other.stack_);
  }

  /// The extents of a range, which may lie within this shape.
  template <typename Iterator>
  void CopyFrom(Iterator begin, Iterator end) {
    const std::vector<index_t> extents(begin, end);
    SetDim(static_cast<index_t>(extents.size()));
    std::copy(extents.begin(), extents.end(), data());
  }

  index_t ndim() const { return ndim_; }
  index_t* data() { return ndim_ <= kStackCache ? stack_ : heap_.get(); }
  const index_t* data() const { return ndim_ <= kStackCache ? stack_ : heap_.get(); }
  const index_t* begin() const { return data(); }
  const index_t* end() const { return data() + ndim_; }

  /// Extent `i`; debug builds throw umbra::Error for one that there is not.
  index_t& operator[](index_t i) {
    CheckIndex(i);
    return data()[i];
  }
  const index_t& operator[](index_t i) const {
    CheckIndex(i);
    return data()[i];
  }

  bool operator==(const TShape& s) const { return std::equal(begin(), end(), s.begin(), s.end()); }
  bool operator!=(const TShape& s) const { return !(*this == s); }
  template <int dim>
  bool operator==(const Shape<dim>& s) const {
    return std::equal(begin(), end(), s.shape_, s.shape_ + dim);
  }
  template <int dim>
  bool operator!=(const Shape<dim>& s) const { return !(*this == s); }

  /// Number of elements; 1 for rank 0. Throws umbra::Error if it overflows.
  std::size_t Size() const { return static_cast<std::size_t>(ProdShape(0, static_cast<int>(ndim_))); }
  /// Product of the extents of dimensions [begin, end). Throws umbra::Error if it overflows or if there
  /// are no such dimensions.
  index_t ProdShape(int dimstart, int dimend) const {
    Require(dimstart >= 0 && dimend <= ndim_, "ProdShape(", dimstart, ", ", dimend, ") of shape ", *this);
    index_t product = 1;
    for (int i = dimstart; i < dimend; ++i)
      Require(!__builtin_mul_overflow(product, data()[i], &product), "the number of elements of shape ",
              *this, " overflows");
    return product;
  }
  /// All dimensions but the last as one; (0,0) for rank 0.
  Shape<2> FlatTo2D() const {
    if (ndim_ == 0) return Shape2(0, 0);
    return Shape2(ProdShape(0, static_cast<int>(ndim_) - 1), data()[ndim_ - 1]);
  }
  /// The dimensions before `axis_begin`, from there to `axis_end`, and behind it, each as one.
  Shape<3> FlatTo3D(index_t axis_begin, index_t axis_end) const {
    if (ndim_ == 0) return Shape3(0, 0, 0);
    Require(0 <= axis_begin && axis_begin <= axis_end && axis_end < ndim_, "FlatTo3D(", axis_begin, ", ",
            axis_end, ") of shape ", *this);
    const int first = static_cast<int>(axis_begin), last = static_cast<int>(axis_end);
    return Shape3(ProdShape(0, first), ProdShape(first, last + 1), ProdShape(last + 1, static_cast<int>(ndim_)));
  }
  Shape<3> FlatTo3D(index_t axis) const { return FlatTo3D(axis, axis); }
  /// As a shape of static rank. Throws umbra::Error if the rank is another.
  template <int dim>
  Shape<dim> get() const {
    Require(dim == ndim_, "shape ", *this, " has rank ", ndim_, ", not ", dim);
    Shape<dim> s;
    std::copy(begin(), end(), s.shape_);
    return s;
  }

  /// Writes rank and extents to a stream that has Write(const void*, size_t).
  template <typename Stream>
  void Save(Stream* stream) const {
    stream->Write(&ndim_, sizeof ndim_);
    stream->Write(data(), sizeof(index_t) * static_cast<std::size_t>(ndim_));
  }
  /// Reads what Save wrote from a stream that has size_t Read(void*, size_t). False, and the shape is as
  /// before, if the input ends early, or has a negative extent or more than 1024 dimensions.
  template <typename Stream>
  bool Load(Stream* stream) {
    index_t ndim = 0;
    if (stream->Read(&ndim, sizeof ndim) != sizeof ndim || ndim < 0 || ndim > 1024) return false;
    std::vector<index_t> extents(static_cast<std::size_t>(ndim));
    const std::size_t bytes = extents.size() * sizeof(index_t);
    if (bytes > 0 && stream->Read(extents.data(), bytes) != bytes) return false;
    if (std::any_of(extents.begin(), extents.end(), [](index_t e) { return e < 0; })) return false;
    *this = extents;
    return true;
  }

  /// A Python tuple: (), (3,) and (3,4).
  friend std::ostream& operator<<(std::ostream& out, const TShape& shape) {
    out << '(';
    for (index_t i = 0; i < shape.ndim_; ++i) out << (i ? "," : "") << shape.data()[i];
    return out << (shape.ndim_ == 1 ? ",)" : ")");
  }
  /// A Python tuple, whose numbers may end in L, or one number. On malformed text failbit is set and
  /// the shape is as before.
  friend std::istream& operator>>(std::istream& in, TShape& shape) {
    std::vector<index_t> extents;
    if (ReadTuple(in, &extents)) shape = extents;
    else in.setstate(std::ios::failbit);
    return in;
  }

 private:
  void SetDim(index_t dim) {
    if (dim > kStackCache && dim > capacity_) {
      heap_.reset(new index_t[static_cast<std::size_t>(dim)]);
      capacity_ = dim;
    }
    ndim_ = dim;
  }
  void CheckIndex(index_t i) const {
#ifndef NDEBUG
    Require(i >= 0 && i < ndim_, "dimension ", i, " of shape ", *this);
#else
    (void)i;
#endif
  }
  static bool ReadTuple(std::istream& in, std::vector<index_t>* extents) {
    in >> std::ws;
    index_t extent = 0;
    if (in.peek() != '(') {
      if (std::isdigit(in.peek()) == 0 || !(in >> extent)) return false;
      extents->push_back(extent);
      return true;
    }
    in.get();
    while (true) {
      in >> std::ws;
      if (in.peek() == ')') return in.get() == ')';
      if (std::isdigit(in.peek()) == 0 || !(in >> extent)) return false;
      extents->push_back(extent);
      if (in.peek() == 'L') in.get();
      in >> std::ws;
      if (in.peek() == ',') in.get();
      else if (in.peek() != ')') return false;
    }
  }

  index_t ndim_ = 0, capacity_ = 0;
  index_t stack_[kStackCache] = {};
  std::unique_ptr<index_t[]> heap_;
};

}  // namespace umbra

#endif  // UMBRA_TSHAPE_H_

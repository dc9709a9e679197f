// Shapes whose rank is known at run time, as mshadow's TShape.
#ifndef UMBRA_TSHAPE_H_
#define UMBRA_TSHAPE_H_

#include <algorithm>
#include <istream>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "umbra/shape.h"

namespace umbra {

/// Extents of any number of dimensions, in elements, as mshadow's TShape. Unlike the original, a
/// moved-from shape has rank 0, products that overflow or have a negative factor throw, and `>>`
/// and Load leave the target as it was when they fail.
class TShape {
 public:
  /// Up to this rank the extents lie in the object itself, beyond it on the heap.
  static constexpr index_t kStackCache = 4;
  /// The largest rank; dimensions are counted by int.
  static constexpr index_t kMaxRank = std::numeric_limits<int>::max();
  /// The largest rank that Save writes and Load believes.
  static constexpr index_t kMaxSavedRank = 1024;

  /// Rank 0.
  TShape() = default;
  /// `ndim` extents of 1. Throws umbra::Error if it is negative or above kMaxRank, or memory runs out.
  explicit TShape(index_t ndim) {
    SetDim(ndim);
    std::fill_n(data(), ndim, index_t{1});
  }
  /// The extents of a range, which is read once. Throws umbra::Error if it is longer than kMaxRank.
  template <typename Iterator, typename = typename std::iterator_traits<Iterator>::iterator_category>
  TShape(Iterator begin, Iterator end) {
    CopyFrom(begin, end);
  }
  /// The extents of a shape of static rank.
  template <int dim>
  TShape(const Shape<dim>& s) {  // NOLINT: mirrors the original
    CopyFrom(s.shape_, s.shape_ + dim);
  }
  /// The same extents.
  TShape(const TShape& s) { CopyFrom(s.begin(), s.end()); }
  /// The extents of `s`, which then has rank 0.
  TShape(TShape&& s) noexcept { swap(s); }
  /// The same extents; `s` may be this shape. If memory runs out this shape is as before.
  TShape& operator=(const TShape& s) {
    if (this != &s) CopyFrom(s.begin(), s.end());
    return *this;
  }
  /// The extents of `s`, which then has rank 0, unless it is this shape.
  TShape& operator=(TShape&& s) noexcept {
    TShape taken(std::move(s));
    swap(taken);
    return *this;
  }
  /// The extents of a vector.
  TShape& operator=(const std::vector<index_t>& shape) {
    CopyFrom(shape.begin(), shape.end());
    return *this;
  }
  /// The extents of a shape of static rank.
  template <int dim>
  TShape& operator=(const Shape<dim>& s) {
    CopyFrom(s.shape_, s.shape_ + dim);
    return *this;
  }
  /// Exchanges the extents with those of `other`.
  void swap(TShape& other) noexcept {
    std::swap(ndim_, other.ndim_);
    std::swap(capacity_, other.capacity_);
    std::swap(heap_, other.heap_);
    std::swap(stack_, other.stack_);
  }

  /// The extents of a range, which is read once and may lie within this shape. Throws umbra::Error,
  /// and the shape is as before, if the range is longer than kMaxRank or memory runs out.
  template <typename Iterator>
  void CopyFrom(Iterator begin, Iterator end) {
    using Category = typename std::iterator_traits<Iterator>::iterator_category;
    if constexpr (std::is_base_of_v<std::forward_iterator_tag, Category>) {
      TShape fresh;
      fresh.SetDim(static_cast<index_t>(std::distance(begin, end)));
      std::copy(begin, end, fresh.data());
      swap(fresh);
    } else {
      const std::vector<index_t> read(begin, end);
      CopyFrom(read.begin(), read.end());
    }
  }

  /// The rank.
  index_t ndim() const { return ndim_; }
  /// The first of `ndim()` extents; valid until the shape is assigned, moved or destroyed.
  index_t* data() { return ndim_ <= kStackCache ? stack_ : heap_.get(); }
  /// The first of `ndim()` extents; valid until the shape is assigned, moved or destroyed.
  const index_t* data() const { return ndim_ <= kStackCache ? stack_ : heap_.get(); }
  /// The first extent.
  const index_t* begin() const { return data(); }
  /// Behind the last extent.
  const index_t* end() const { return data() + ndim_; }

  /// Extent `i`. Debug builds (NDEBUG not defined) throw umbra::Error beyond the rank, which the
  /// original never checks.
  index_t& operator[](index_t i) {
    CheckIndex(i);
    return data()[i];
  }
  /// Extent `i`, checked in debug builds.
  const index_t& operator[](index_t i) const {
    CheckIndex(i);
    return data()[i];
  }

  /// Equal ranks and extents.
  bool operator==(const TShape& s) const { return std::equal(begin(), end(), s.begin(), s.end()); }
  /// Another rank or another extent.
  bool operator!=(const TShape& s) const { return !(*this == s); }
  /// Equal ranks and extents.
  template <int dim>
  bool operator==(const Shape<dim>& s) const {
    return std::equal(begin(), end(), s.shape_, s.shape_ + dim);
  }
  /// Another rank or another extent.
  template <int dim>
  bool operator!=(const Shape<dim>& s) const {
    return !(*this == s);
  }

  /// Number of elements; 1 for rank 0. Throws umbra::Error as ProdShape does.
  std::size_t Size() const { return static_cast<std::size_t>(ProdShape(0, static_cast<int>(ndim_))); }
  /// Product of the extents of dimensions [dimstart, dimend); 1 if there are none in between, 0 if
  /// one is 0, however large the others are. Throws umbra::Error if the range leaves the rank, an
  /// extent is negative or the product does not fit 63 bits.
  index_t ProdShape(int dimstart, int dimend) const {
    Require(dimstart >= 0 && dimend <= ndim_, "ProdShape(", dimstart, ", ", dimend, ") of shape ", *this,
            ": the range must lie within its ", ndim_, " dimensions");
    index_t product = 1;
    bool empty = false, overflow = false;
    for (int i = dimstart; i < dimend; ++i) {
      const index_t extent = data()[i];
      Require(extent >= 0, "shape ", *this, " has a negative extent in dimension ", i);
      empty = empty || extent == 0;
      overflow = __builtin_mul_overflow(product, extent, &product) || overflow;
    }
    if (empty) return 0;
    Require(!overflow, "the number of elements of shape ", *this, " overflows");
    return product;
  }
  /// All dimensions but the last as one; (0,0) for rank 0, as in the original. Throws umbra::Error
  /// as ProdShape does.
  Shape<2> FlatTo2D() const {
    if (ndim_ == 0) return Shape2(0, 0);
    return Shape2(ProdShape(0, static_cast<int>(ndim_) - 1), data()[ndim_ - 1]);
  }
  /// The dimensions before `axis_begin`, those from there to `axis_end` inclusive, and those behind
  /// it, each as one; (0,0,0) for rank 0, as in the original. Throws umbra::Error if the range is
  /// empty or leaves a rank above 0, and as ProdShape does.
  Shape<3> FlatTo3D(index_t axis_begin, index_t axis_end) const {
    if (ndim_ == 0 && axis_begin <= axis_end) return Shape3(0, 0, 0);
    Require(0 <= axis_begin && axis_begin <= axis_end && axis_end < ndim_, "FlatTo3D(", axis_begin, ", ", axis_end,
            ") of shape ", *this, ": 0 <= axis_begin <= axis_end < ", ndim_, " is expected");
    const int first = static_cast<int>(axis_begin), behind = static_cast<int>(axis_end) + 1;
    return Shape3(ProdShape(0, first), ProdShape(first, behind), ProdShape(behind, static_cast<int>(ndim_)));
  }
  /// The dimensions before `axis`, `axis` itself, and those behind it, each as one.
  Shape<3> FlatTo3D(index_t axis) const { return FlatTo3D(axis, axis); }
  /// As a shape of static rank. Throws umbra::Error that names both ranks if they differ.
  template <int dim>
  Shape<dim> get() const {
    Require(dim == ndim_, "shape ", *this, " has rank ", ndim_, ", not ", dim);
    Shape<dim> s;
    std::copy(begin(), end(), s.shape_);
    return s;
  }

  /// Writes the rank and the extents, 64 bits each in the byte order of the machine, to a stream
  /// that has Write(const void*, size_t), as dmlc::Stream. Throws umbra::Error, and writes nothing,
  /// for a shape that Load would not believe.
  template <typename Stream>
  void Save(Stream* stream) const {
    Require(ndim_ <= kMaxSavedRank && AllNonNegative(), "TShape::Save: shape ", *this,
            " has a negative extent or more than ", kMaxSavedRank, " dimensions");
    stream->Write(&ndim_, sizeof ndim_);
    if (ndim_ > 0) stream->Write(data(), sizeof(index_t) * static_cast<std::size_t>(ndim_));
  }
  /// Reads what Save wrote from a stream that has size_t Read(void*, size_t), as dmlc::Stream.
  /// False, and the shape is as before, if the input ends early, has a rank below 0 or above
  /// kMaxSavedRank, or a negative extent; the original trusts the rank that it reads.
  template <typename Stream>
  bool Load(Stream* stream) {
    index_t ndim = 0;
    if (stream->Read(&ndim, sizeof ndim) != sizeof ndim) return false;
    if (ndim < 0 || ndim > kMaxSavedRank) return false;
    TShape read(ndim);
    const std::size_t bytes = sizeof(index_t) * static_cast<std::size_t>(ndim);
    if (bytes > 0 && stream->Read(read.data(), bytes) != bytes) return false;
    if (!read.AllNonNegative()) return false;
    swap(read);
    return true;
  }

  /// A Python tuple: (), (3,) and (3,4). The stream's number format and locale take no part.
  friend std::ostream& operator<<(std::ostream& out, const TShape& shape) {
    std::string text = "(";
    for (index_t i = 0; i < shape.ndim_; ++i) {
      if (i > 0) text += ',';
      text += std::to_string(shape.data()[i]);
    }
    return out << text + (shape.ndim_ == 1 ? ",)" : ")");
  }
  /// A Python tuple of decimal numbers, which may end in L, or one number. On malformed text, and
  /// for an extent beyond 63 bits, failbit is set and the shape is as before; the original stores
  /// what it read so far.
  friend std::istream& operator>>(std::istream& in, TShape& shape) {
    std::vector<index_t> extents;
    if (ReadTuple(in, &extents)) shape = extents;
    else in.setstate(std::ios::failbit);
    return in;
  }

 private:
  void SetDim(index_t dim) {
    Require(0 <= dim && dim <= kMaxRank, "TShape: a rank of 0 to ", kMaxRank, " is expected, ", dim, " was given");
    if (dim > kStackCache && dim > capacity_) {
      std::unique_ptr<index_t[]> heap(new (std::nothrow) index_t[static_cast<std::size_t>(dim)]);
      Require(heap != nullptr, "TShape: out of memory for ", dim, " extents");
      heap_ = std::move(heap);
      capacity_ = dim;
    }
    ndim_ = dim;
  }
  bool AllNonNegative() const {
    return std::all_of(begin(), end(), [](index_t extent) { return extent >= 0; });
  }
  void CheckIndex(index_t i) const {
#ifndef NDEBUG
    Require(i >= 0 && i < ndim_, "dimension ", i, " of shape ", *this, ", whose rank is ", ndim_);
#else
    (void)i;
#endif
  }
  // By hand: `>>` of numbers would heed the stream's base and the grouping of its locale, to which
  // the comma of a tuple may belong.
  static bool ReadExtent(std::istream& in, std::vector<index_t>* extents) {
    const auto next_is_digit = [&in] { return in.peek() >= '0' && in.peek() <= '9'; };
    if (!next_is_digit()) return false;
    index_t extent = 0;
    do {
      const index_t digit = in.get() - '0';
      if (__builtin_mul_overflow(extent, 10, &extent)) return false;
      if (__builtin_add_overflow(extent, digit, &extent)) return false;
    } while (next_is_digit());
    extents->push_back(extent);
    return true;
  }
  static bool ReadTuple(std::istream& in, std::vector<index_t>* extents) {
    in >> std::ws;
    if (in.peek() != '(') return ReadExtent(in, extents);
    in.get();
    while (true) {
      in >> std::ws;
      if (in.peek() == ')') return in.get() == ')';
      if (!ReadExtent(in, extents)) return false;
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

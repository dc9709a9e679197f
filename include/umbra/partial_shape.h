// Dimension, Rank and PartialShape: shapes that are known in part, with the meaning that nGraph
// documents for its classes of these names.
#ifndef UMBRA_PARTIAL_SHAPE_H_
#define UMBRA_PARTIAL_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <ostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "umbra/shape.h"

namespace umbra {

/// How two shapes that differ are brought to one, as nGraph's AutoBroadcastSpec.
struct AutoBroadcastSpec {
  enum Type {
    kNone,  ///< they must be compatible as they are
    kNumpy,  ///< aligned at the last dimension; an extent of 1 fits every other
    kPdpd  ///< the second shape's dimensions are those of the first from `axis` on (-1: the last ones)
  };
  Type type = kNone;  ///< the rule
  std::int64_t axis = -1;  ///< of kPdpd, in the first shape
};

namespace op {
using umbra::AutoBroadcastSpec;
}

/// An extent that is either known (static) or not known before run time (dynamic).
///
/// Beyond nGraph's class, a dynamic dimension may carry a symbol: dimensions with the same symbol
/// are known to be equal. Symbols take no part in comparisons of scheme or compatibility.
class Dimension {
 public:
  /// The value that stands for "dynamic".
  static constexpr std::int64_t s_dynamic_val = std::numeric_limits<std::int64_t>::max();

  /// A dynamic dimension.
  constexpr Dimension() = default;
  /// A static dimension; throws std::invalid_argument for s_dynamic_val.
  constexpr Dimension(std::int64_t dimension) : value_(dimension) {  // NOLINT: implicit by design
    if (dimension == s_dynamic_val)
      throw std::invalid_argument("a static Dimension cannot have the value s_dynamic_val");
  }
  /// A dynamic dimension.
  static constexpr Dimension dynamic() { return Dimension(); }
  /// A dynamic dimension that equals every other with this symbol (0 or more).
  static constexpr Dimension WithSymbol(int symbol) {
    Dimension dimension;
    dimension.symbol_ = symbol;
    return dimension;
  }

  /// Is the extent known?
  constexpr bool is_static() const { return value_ != s_dynamic_val; }
  /// Is the extent not known before run time?
  constexpr bool is_dynamic() const { return !is_static(); }
  /// The symbol of a dynamic dimension, or -1.
  constexpr int symbol() const { return symbol_; }

  /// The static value; throws std::invalid_argument if dynamic.
  explicit constexpr operator std::int64_t() const {
    if (is_dynamic())
      throw std::invalid_argument("a static Dimension is expected, ? was given; check is_static() first");
    return value_;
  }
  /// The static value; throws std::invalid_argument if dynamic or negative.
  explicit constexpr operator std::size_t() const {
    if (is_dynamic() || value_ < 0)
      throw std::invalid_argument(detail::Concat("a static Dimension of 0 or more is expected, ", *this, " was given"));
    return static_cast<std::size_t>(value_);
  }

  /// Both dynamic, or both static and equal.
  constexpr bool same_scheme(const Dimension& other) const { return value_ == other.value_; }
  /// Can the two be merged: either is dynamic, or they are equal.
  constexpr bool compatible(const Dimension& other) const {
    return is_dynamic() || other.is_dynamic() || value_ == other.value_;
  }
  /// This is dynamic, or both are static and equal.
  constexpr bool relaxes(const Dimension& other) const { return is_dynamic() || same_scheme(other); }
  /// `other` is dynamic, or both are static and equal.
  constexpr bool refines(const Dimension& other) const { return other.relaxes(*this); }

  /// Writes the merge of `a` and `b` to `dst`; false, and `dst` untouched, if they contradict.
  static bool merge(Dimension& dst, const Dimension a, const Dimension b) {
    if (a.is_dynamic()) {
      dst = b.is_dynamic() && b.symbol_ < 0 ? a : b;
      return true;
    }
    if (b.is_static() && a.value_ != b.value_) return false;
    dst = a;
    return true;
  }

  /// The same, where an extent of 1 gives way to the other.
  static bool broadcast_merge(Dimension& dst, const Dimension a, const Dimension b) {
    if (a.value_ == 1) dst = b;
    else if (b.value_ == 1) dst = a;
    // Either may turn out to be 1, so that the result need not equal one of them.
    else if (a.is_dynamic() && b.is_dynamic() && a.symbol_ != b.symbol_) dst = Dimension();
    else return merge(dst, a, b);
    return true;
  }

  /// Sum of extents: dynamic if either is. Throws std::overflow_error beyond 64 bits.
  friend Dimension operator+(const Dimension& a, const Dimension& b) {
    if (a.is_dynamic() || b.is_dynamic()) return Dimension();
    std::int64_t sum = 0;
    const bool overflow = __builtin_add_overflow(a.value_, b.value_, &sum);
    return Checked(overflow, sum);
  }
  /// The same for the difference.
  friend Dimension operator-(const Dimension& a, const Dimension& b) {
    if (a.is_dynamic() || b.is_dynamic()) return Dimension();
    std::int64_t difference = 0;
    const bool overflow = __builtin_sub_overflow(a.value_, b.value_, &difference);
    return Checked(overflow, difference);
  }
  /// Product: 0 if either is a static 0, else dynamic if either is; the same error.
  friend Dimension operator*(const Dimension& a, const Dimension& b) {
    if (a.value_ == 0 || b.value_ == 0) return Dimension(0);
    if (a.is_dynamic() || b.is_dynamic()) return Dimension();
    std::int64_t product = 0;
    const bool overflow = __builtin_mul_overflow(a.value_, b.value_, &product);
    return Checked(overflow, product);
  }
  /// *this + other; the other two likewise.
  Dimension& operator+=(const Dimension& other) { return *this = *this + other; }
  Dimension& operator-=(const Dimension& other) { return *this = *this - other; }
  Dimension& operator*=(const Dimension& other) { return *this = *this * other; }

  /// The value, or `?`.
  friend std::ostream& operator<<(std::ostream& out, const Dimension& dimension) {
    if (dimension.is_static()) return out << dimension.value_;
    return out << '?';
  }

 private:
  static Dimension Checked(bool overflow, std::int64_t value) {
    if (overflow || value == s_dynamic_val) throw std::overflow_error("an extent beyond 64 bits");
    return Dimension(value);
  }

  std::int64_t value_ = s_dynamic_val;
  int symbol_ = -1;
};

/// The number of axes of a shape, which may be unknown too.
using Rank = Dimension;

/// A shape whose rank or some of whose dimensions may be unknown.
class PartialShape {
 public:
  /// Rank 0, static: the shape of a scalar.
  PartialShape() = default;
  /// Static rank; `PartialShape s{2, Dimension::dynamic(), 3}`.
  PartialShape(std::initializer_list<Dimension> dimensions) : dimensions_(dimensions) {}
  /// Static rank. Implicit, as the constructors below and nGraph's.
  PartialShape(std::vector<Dimension> dimensions)  // NOLINT: implicit by design
      : dimensions_(std::move(dimensions)) {}
  /// A static shape. Throws std::invalid_argument for an extent of s_dynamic_val.
  PartialShape(const std::vector<std::int64_t>& shape)  // NOLINT
      : dimensions_(shape.begin(), shape.end()) {}
  /// A static shape, as nGraph's Shape has it. Throws umbra::Error for an extent that is s_dynamic_val
  /// or more.
  PartialShape(const std::vector<std::size_t>& shape) {  // NOLINT
    for (const std::size_t extent : shape) {
      Require(extent < static_cast<std::size_t>(Dimension::s_dynamic_val), "PartialShape: extents below ",
              Dimension::s_dynamic_val, " are expected, ", extent, " was given");
      dimensions_.emplace_back(static_cast<std::int64_t>(extent));
    }
  }
  /// A static shape. Throws std::invalid_argument for an extent of s_dynamic_val.
  template <int rank>
  PartialShape(const Shape<rank>& shape)  // NOLINT
      : dimensions_(shape.shape_, shape.shape_ + rank) {}

  /// The given rank and all dimensions dynamic. Throws std::invalid_argument for a negative rank.
  static PartialShape dynamic(Rank rank = Rank::dynamic()) {
    PartialShape shape;
    shape.rank_is_static_ = rank.is_static();
    if (rank.is_static()) shape.dimensions_.resize(static_cast<std::size_t>(rank));
    return shape;
  }

  /// Are the rank and all dimensions static?
  bool is_static() const {
    if (!rank_is_static_) return false;
    for (const Dimension& d : dimensions_)
      if (d.is_dynamic()) return false;
    return true;
  }
  /// Is the rank or a dimension dynamic?
  bool is_dynamic() const { return !is_static(); }
  /// Number of dimensions; dynamic if it is not known.
  Rank rank() const { return rank_is_static_ ? Rank(static_cast<std::int64_t>(dimensions_.size())) : Rank::dynamic(); }

  /// Can the two shapes be merged?
  bool compatible(const PartialShape& other) const {
    return EachDimension(other, true, [](auto& a, auto& b) { return a.compatible(b); });
  }
  /// Both of dynamic rank, or equal ranks and dimension by dimension the same scheme.
  bool same_scheme(const PartialShape& other) const {
    if (!rank_is_static_ || !other.rank_is_static_) return rank_is_static_ == other.rank_is_static_;
    return EachDimension(other, false, [](auto& a, auto& b) { return a.same_scheme(b); });
  }
  /// Whatever `other` may turn out to be, this may turn out to be as well.
  bool relaxes(const PartialShape& other) const {
    if (!rank_is_static_) return true;
    return EachDimension(other, false, [](auto& a, auto& b) { return a.relaxes(b); });
  }
  /// Whatever this may turn out to be, `other` may turn out to be as well.
  bool refines(const PartialShape& other) const { return other.relaxes(*this); }

  /// True if the rank is compatible with `rank`; a dynamic rank becomes it. Throws
  /// std::invalid_argument if a dynamic rank would become negative.
  bool merge_rank(Rank rank) {
    if (!rank_is_static_) {
      if (rank.is_static()) *this = dynamic(rank);
      return true;
    }
    return rank.is_dynamic() || static_cast<std::int64_t>(rank) == static_cast<std::int64_t>(dimensions_.size());
  }

  /// The static shape; throws std::invalid_argument if anything is dynamic or negative.
  std::vector<std::size_t> to_shape() const {
    if (is_dynamic()) throw std::invalid_argument("to_shape() of a dynamic PartialShape");
    std::vector<std::size_t> shape;
    for (const Dimension& d : dimensions_) shape.push_back(static_cast<std::size_t>(d));
    return shape;
  }

  /// True if no static dimension is negative.
  bool all_non_negative() const {
    for (const Dimension& d : dimensions_)
      if (d.is_static() && static_cast<std::int64_t>(d) < 0) return false;
    return true;
  }

  /// Dimension `i`; throws std::out_of_range beyond the rank.
  const Dimension& operator[](std::size_t i) const {
    CheckIndex(i);
    return dimensions_[i];
  }
  /// Dimension `i`, for writing; throws std::out_of_range beyond the rank.
  Dimension& operator[](std::size_t i) {
    CheckIndex(i);
    return dimensions_[i];
  }

  /// Number of dimensions of a shape of static rank; 0 for a dynamic one.
  std::size_t size() const { return dimensions_.size(); }
  /// The first dimension.
  std::vector<Dimension>::const_iterator begin() const { return dimensions_.begin(); }
  /// Behind the last dimension.
  std::vector<Dimension>::const_iterator end() const { return dimensions_.end(); }

  /// Merges `src` into `dst`; false if they contradict, and `dst` may then have changed.
  static bool merge_into(PartialShape& dst, const PartialShape& src) {
    if (!dst.rank_is_static_) {
      dst = src;
      return true;
    }
    if (!src.rank_is_static_) return true;
    if (dst.size() != src.size()) return false;
    bool merged = true;
    for (std::size_t i = 0; i < dst.size(); ++i)
      merged = Dimension::merge(dst.dimensions_[i], dst.dimensions_[i], src.dimensions_[i]) && merged;
    return merged;
  }

  /// Merges `src` into `dst` by the rule; false if they do not fit, and `dst` may then have changed. By
  /// kNumpy a dynamic rank of either makes the result's rank dynamic; by kPdpd, whose result has the
  /// dimensions of `dst`, `dst` stays as it is.
  static bool broadcast_merge_into(PartialShape& dst, const PartialShape& src, const AutoBroadcastSpec& rule) {
    if (rule.type == AutoBroadcastSpec::kNone) return merge_into(dst, src);
    if (!dst.rank_is_static_ || !src.rank_is_static_) {
      if (rule.type == AutoBroadcastSpec::kNumpy) dst = dynamic();
      return true;
    }
    const std::size_t a = dst.size(), b = src.size();
    if (rule.type == AutoBroadcastSpec::kNumpy) {
      std::vector<Dimension> merged(a > b ? a : b);
      for (std::size_t i = 1; i <= merged.size(); ++i) {
        const Dimension x = i <= a ? dst.dimensions_[a - i] : Dimension(1);
        const Dimension y = i <= b ? src.dimensions_[b - i] : Dimension(1);
        if (!Dimension::broadcast_merge(merged[merged.size() - i], x, y)) return false;
      }
      dst = PartialShape(std::move(merged));
      return true;
    }
    const std::int64_t axis = rule.axis == -1 ? static_cast<std::int64_t>(a) - static_cast<std::int64_t>(b) : rule.axis;
    if (axis < 0 || static_cast<std::size_t>(axis) + b > a) return false;
    for (std::size_t i = 0; i < b; ++i) {
      Dimension& to = dst.dimensions_[static_cast<std::size_t>(axis) + i];
      const bool repeats = src.dimensions_[i].is_static() && static_cast<std::int64_t>(src.dimensions_[i]) == 1;
      if (!repeats && !Dimension::merge(to, to, src.dimensions_[i])) return false;
    }
    return true;
  }

  /// Elementwise sum; dynamic if either rank is; throws std::invalid_argument if ranks differ.
  friend PartialShape operator+(const PartialShape& a, const PartialShape& b) {
    if (!a.rank_is_static_ || !b.rank_is_static_) return dynamic();
    if (a.size() != b.size()) throw std::invalid_argument("sum of PartialShapes of different rank");
    PartialShape sum = a;
    for (std::size_t i = 0; i < a.size(); ++i) sum.dimensions_[i] += b.dimensions_[i];
    return sum;
  }

  /// `?` for a dynamic rank, else `{1,?,2}`.
  friend std::ostream& operator<<(std::ostream& out, const PartialShape& shape) {
    if (!shape.rank_is_static_) return out << '?';
    out << '{';
    for (std::size_t i = 0; i < shape.size(); ++i) out << (i ? "," : "") << shape.dimensions_[i];
    return out << '}';
  }

 private:
  void CheckIndex(std::size_t i) const {
    if (i >= dimensions_.size()) throw std::out_of_range("PartialShape: index beyond the rank, or the rank is dynamic");
  }

  template <typename Compare>
  bool EachDimension(const PartialShape& other, bool if_dynamic, const Compare& compare) const {
    if (!rank_is_static_ || !other.rank_is_static_) return if_dynamic;
    if (size() != other.size()) return false;
    for (std::size_t i = 0; i < size(); ++i)
      if (!compare(dimensions_[i], other.dimensions_[i])) return false;
    return true;
  }

  bool rank_is_static_ = true;
  std::vector<Dimension> dimensions_;
};

}  // namespace umbra

#endif  // UMBRA_PARTIAL_SHAPE_H_

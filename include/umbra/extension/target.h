// Index maps that can be assigned to, as mshadow's: a part of a tensor, its reverse, or two tensors joined, or those of
// other such maps. An assignment is one to the tensors, of any of the ten dtypes, in the order of the (first) tensor's
// stream. It may read what it writes: the right side is evaluated before the tensors change. Throws umbra::Error if the
// shapes of the two sides differ.
#ifndef UMBRA_EXTENSION_TARGET_H_
#define UMBRA_EXTENSION_TARGET_H_

#include "umbra/extension/index_map.h"

namespace umbra::expr {

/// A map of what can be assigned to, of the shape of a Value, which is a tensor: Sub::Put<Saver>(value) joins a value
/// with what is mapped, in the order of Sub::stream().
template <typename Sub, typename Map, typename Value, typename... Srcs>
class AssignableMap;

template <typename Sub, typename Map, typename Device, int dim, typename DType, typename... Srcs>
class AssignableMap<Sub, Map, Tensor<Device, dim, DType>, Srcs...> : public IndexMapExp<Map, DType, dim, Srcs...> {
 public:
  using IndexMapExp<Map, DType, dim, Srcs...>::IndexMapExp;
#define UMBRA_MAP_ASSIGNMENT(symbol, saver)               \
  template <typename E, int etype>                        \
  Sub& operator symbol(const Exp<E, DType, etype>& exp) { \
    return Assign<sv::saver>(exp);                        \
  }                                                       \
  Sub& operator symbol(ComputeOf<DType> s) { return Assign<sv::saver>(ScalarExp<DType>(s)); }
  UMBRA_MAP_ASSIGNMENT(=, saveto)
  UMBRA_MAP_ASSIGNMENT(+=, plusto)
  UMBRA_MAP_ASSIGNMENT(-=, minusto)
  UMBRA_MAP_ASSIGNMENT(*=, multo)
  UMBRA_MAP_ASSIGNMENT(/=, divto)
#undef UMBRA_MAP_ASSIGNMENT

  /// Joins the elements of `exp`, which evaluate(tensor, exp) gives to a tensor of the map's shape, with what is
  /// mapped.
  template <typename Saver, typename E, int etype, typename Evaluate>
  void AssignBy(const Exp<E, DType, etype>& exp, Evaluate evaluate) const {
    if constexpr (etype != type::kComplex) {  // a product says what it does not fit
      const MaybeShape<dim> shape = ShapeOf<dim>(exp.self());
      Require(shape.any || shape.shape == this->shape_, "assignment to a map of shape ", this->shape_,
              " from an expression of shape ", shape.shape);
    }
    const Sub& sub = static_cast<const Sub&>(*this);
    const auto put = [exp = exp.self(), evaluate](const Sub& to) {
      TensorContainer<Device, dim, DType> value(to.shape_);
      if constexpr (!Device::kDevCPU) value.set_stream(to.stream());
      evaluate(&value, exp);
      to.template Put<Saver>(value);
      umbra::detail::Settle(to.stream());  // as long as there is `value`
    };
    if constexpr (Device::kDevCPU) {
      if (umbra::detail::IsAsynchronous(sub.stream())) return sub.stream()->Submit([put, sub] { put(sub); });
    }
    put(sub);
  }

 private:
  template <typename Saver, typename E, int etype>
  Sub& Assign(const Exp<E, DType, etype>& exp) {
    AssignBy<Saver>(exp, [](auto* value, const E& from) { *value = from; });
    return static_cast<Sub&>(*this);
  }
};

namespace detail {
// What can be assigned to, as its own class: a tensor's handle, or a map.
template <typename Device, int dim, typename DType>
inline const Tensor<Device, dim, DType>& Assignable(const Tensor<Device, dim, DType>& t) {
  return t;
}
template <typename Sub, typename Map, typename Value, typename... Srcs>
inline const Sub& Assignable(const AssignableMap<Sub, Map, Value, Srcs...>& t) {
  return static_cast<const Sub&>(t);
}
template <typename T>
using AssignableOf = std::decay_t<decltype(Assignable(std::declval<const T&>()))>;

// The class of tensors of its shape.
template <typename Device, int dim, typename DType>
Tensor<Device, dim, DType> ValueLike(const Tensor<Device, dim, DType>&);
template <typename Sub, typename Map, typename Value, typename... Srcs>
Value ValueLike(const AssignableMap<Sub, Map, Value, Srcs...>&);
template <typename T>
using ValueOf = decltype(ValueLike(std::declval<const T&>()));

// The expression that it is where it is read.
template <typename T>
using SourceOf = std::decay_t<decltype(std::declval<const T&>().self())>;

template <typename Device, int dim, typename DType>
inline Stream<Device>* StreamOf(const Tensor<Device, dim, DType>& t) {
  return t.stream_;
}
template <typename Sub, typename Map, typename Value, typename... Srcs>
inline auto StreamOf(const AssignableMap<Sub, Map, Value, Srcs...>& t) {
  return Assignable(t).stream();
}

// A tensor with the elements of `exp`, to be read in the order of `stream`.
template <typename Device, int dim, typename DType, typename E>
inline TensorContainer<Device, dim, DType> Evaluated(const Shape<dim>& shape, Stream<Device>* stream, const E& exp) {
  TensorContainer<Device, dim, DType> value(shape);
  if constexpr (!Device::kDevCPU) value.set_stream(stream);
  MapExp<sv::saveto>(static_cast<Tensor<Device, dim, DType>*>(&value), exp);
  return value;
}

// `to Saver= exp`, here and now, or in a GPU's stream.
template <typename Saver, typename Device, int dim, typename DType, typename E>
inline void JoinAll(const Tensor<Device, dim, DType>& to, const E& exp) {
  Tensor<Device, dim, DType> handle = to;
  MapExp<Saver>(&handle, exp);
}
template <typename Saver, typename Sub, typename Map, typename Device, int dim, typename DType, typename... Srcs,
          typename E>
inline void JoinAll(const AssignableMap<Sub, Map, Tensor<Device, dim, DType>, Srcs...>& to, const E& exp) {
  Assignable(to).template Put<Saver>(Evaluated<Device, dim, DType>(to.shape_, StreamOf(to), exp));
}

// A part of a tensor, `shape` from `begin` on, as blocks: matrices of the axes from `first` on.
template <typename Device, int dim, typename DType>
inline Tensor<Device, 2, DType> BlockOf(const Tensor<Device, dim, DType>& t, const Shape<dim>& begin,
                                        const Shape<dim>& shape, int first, index_t block) {
  index_t row = 0, pitch = 1;
  for (int d = dim - 2; d >= 0; --d) {
    row += begin[d] * pitch;
    if (d < first) {
      row += block % shape[d] * pitch;
      block /= shape[d];
    }
    pitch *= t.shape_[d];
  }
  return {t.dptr_ + row * t.stride_ + begin[dim - 1], Shape2(shape.ProdShape(first, dim - 1), shape[dim - 1]),
          dim == 1 ? t.shape_[0] : t.stride_, t.stream_};  // a vector's is nobody's
}

// The part of `to` from `begin` on joins with that of `value` from `from` on, of this shape, block by block: as many of
// the innermost axes as lie in rows of one pitch in both.
template <typename Saver, typename Device, int dim, typename DType>
inline void JoinPart(const Tensor<Device, dim, DType>& to, const Shape<dim>& begin,
                     const Tensor<Device, dim, DType>& value, const Shape<dim>& from, const Shape<dim>& shape) {
  if (shape.Size() == 0) return;
  int first = dim > 1 ? dim - 2 : 0;
  while (first > 0 && shape[first] == to.shape_[first] && shape[first] == value.shape_[first]) --first;
  const index_t blocks = shape.ProdShape(0, first);
  for (index_t block = 0; block < blocks; ++block) {
    Tensor<Device, 2, DType> part = BlockOf(to, begin, shape, first, block);
    MapExp<Saver>(&part, BlockOf(value, from, shape, first, block));
  }
}
// All of `value`.
template <typename Saver, typename Device, int dim, typename DType>
inline void JoinPart(const Tensor<Device, dim, DType>& to, const Shape<dim>& begin,
                     const Tensor<Device, dim, DType>& value) {
  JoinPart<Saver>(to, begin, value, Shape<dim>(), value.shape_);
}
// Of a map all is read, and written back.
template <typename Saver, typename Sub, typename Map, typename Device, int dim, typename DType, typename... Srcs>
inline void JoinPart(const AssignableMap<Sub, Map, Tensor<Device, dim, DType>, Srcs...>& to, const Shape<dim>& begin,
                     const Tensor<Device, dim, DType>& value) {
  const auto all = Evaluated<Device, dim, DType>(to.shape_, StreamOf(to), to);
  JoinPart<Saver>(static_cast<const Tensor<Device, dim, DType>&>(all), begin, value);
  Assignable(to).template Put<sv::saveto>(all);
}

// All of `to` joins with the part of `value` from `from` on.
template <typename Saver, typename Device, int dim, typename DType>
inline void JoinWithPart(const Tensor<Device, dim, DType>& to, const Tensor<Device, dim, DType>& value,
                         const Shape<dim>& from) {
  JoinPart<Saver>(to, Shape<dim>(), value, from, to.shape_);
}
template <typename Saver, typename Sub, typename Map, typename Device, int dim, typename DType, typename... Srcs>
inline void JoinWithPart(const AssignableMap<Sub, Map, Tensor<Device, dim, DType>, Srcs...>& to,
                         const Tensor<Device, dim, DType>& value, const Shape<dim>& from) {
  TensorContainer<Device, dim, DType> part(to.shape_);
  if constexpr (!Device::kDevCPU) part.set_stream(StreamOf(to));
  JoinWithPart<sv::saveto>(static_cast<const Tensor<Device, dim, DType>&>(part), value, from);
  Assignable(to).template Put<Saver>(part);
}
}  // namespace detail

/// A part of one axis of T, a tensor or a map of some, that can be assigned to.
template <int axis, typename T, typename Value = detail::ValueOf<T>>
class SliceTarget : public AssignableMap<SliceTarget<axis, T>, index_map::slice, Value, detail::SourceOf<T>> {
 public:
  /// Elements begin .. end - 1 of axis `axis` of `x`; slice<axis>() makes it. Throws umbra::Error unless 0 <= begin
  /// <= end <= extent.
  SliceTarget(const T& x, index_t begin, index_t end)
      : SliceTarget::AssignableMap({axis, begin, end}, x.self()),
        x_(x),
        begin_(begin) {}
  SliceTarget(const SliceTarget&) = default;
  using SliceTarget::AssignableMap::operator=;
  /// Assigns elements, not the handle.
  SliceTarget& operator=(const SliceTarget& other) { return *this = other.self(); }
  /// The stream of the tensor.
  auto* stream() const { return detail::StreamOf(x_); }
  /// Joins `value`, of the slice's shape, into the slice.
  template <typename Saver>
  void Put(const Value& value) const {
    auto begin = value.shape_;
    for (int d = 0; d < Value::kDimension; ++d) begin[d] = d == axis ? begin_ : 0;
    detail::JoinPart<Saver>(x_, begin, value);
  }

 private:
  T x_;
  index_t begin_;
};
/// Of what can be assigned to, a slice can also be assigned to: `slice<axis>(x, begin, end) = exp`. Throws umbra::Error
/// unless 0 <= begin <= end <= extent. mshadow's slice.
template <int axis, typename T, typename Own = detail::AssignableOf<T>>
inline SliceTarget<axis, Own> slice(const T& x, index_t begin, index_t end) {
  static_assert(axis >= 0 && axis < ExpInfo<detail::SourceOf<Own>>::kDim,
                "umbra: slice<axis>() of an axis beyond the rank");
  return {detail::Assignable(x), begin, end};
}

/// A part of T, a tensor or a map of some, in every axis, that can be assigned to.
template <typename T, typename Value = detail::ValueOf<T>>
class BoxTarget : public AssignableMap<BoxTarget<T>, index_map::slice_ex, Value, detail::SourceOf<T>> {
 public:
  using Corner = decltype(Value::shape_);  ///< a position: of the first element, or behind the last
  /// Elements begin[d] .. end[d] - 1 of every axis d of `x`; slice() makes it. Throws umbra::Error unless 0 <= begin[d]
  /// <= end[d] <= extent.
  BoxTarget(const T& x, const Corner& begin, const Corner& end)
      : BoxTarget::AssignableMap(detail::BoxNumbers(begin, end).data(), 3 * Value::kDimension, x.self()),
        x_(x),
        begin_(begin) {}
  BoxTarget(const BoxTarget&) = default;
  using BoxTarget::AssignableMap::operator=;
  /// Assigns elements, not the handle.
  BoxTarget& operator=(const BoxTarget& other) { return *this = other.self(); }
  /// The stream of the tensor.
  auto* stream() const { return detail::StreamOf(x_); }
  /// Joins `value`, of the part's shape, into the part.
  template <typename Saver>
  void Put(const Value& value) const {
    detail::JoinPart<Saver>(x_, begin_, value);
  }

 private:
  T x_;
  Corner begin_;
};
/// Elements begin[d] .. end[d] - 1 of every axis d, of what can be assigned to, which can also be assigned to. Throws
/// umbra::Error unless 0 <= begin[d] <= end[d] <= extent, which mshadow's slice(x, begin, end) does not check.
template <typename T, typename Own = detail::AssignableOf<T>>
inline BoxTarget<Own> slice(const T& x, typename BoxTarget<Own>::Corner begin, typename BoxTarget<Own>::Corner end) {
  return {detail::Assignable(x), begin, end};
}

/// The reverse of T, a tensor or a map of some, that can be assigned to.
template <typename T, typename Value = detail::ValueOf<T>>
class FlipTarget : public AssignableMap<FlipTarget<T>, index_map::flip, Value, detail::SourceOf<T>> {
 public:
  /// `x` reversed along `axis`; flip() makes it. Throws umbra::Error if `x` has no such axis.
  FlipTarget(const T& x, int axis) : FlipTarget::AssignableMap({axis}, x.self()), x_(x), axis_(axis) {}
  FlipTarget(const FlipTarget&) = default;
  using FlipTarget::AssignableMap::operator=;
  /// Assigns elements, not the handle.
  FlipTarget& operator=(const FlipTarget& other) { return *this = other.self(); }
  /// The stream of the tensor.
  auto* stream() const { return detail::StreamOf(x_); }
  /// Joins `value` with the tensor, the last element with the first.
  template <typename Saver>
  void Put(const Value& value) const {
    detail::JoinAll<Saver>(
        x_, IndexMapExp<index_map::flip, detail::ElementType<Value>, Value::kDimension, Value>({axis_}, value));
  }

 private:
  T x_;
  int axis_;
};
/// Of what can be assigned to, the reverse along `axis` can also be assigned to: `flip(x, axis) = exp`. Throws
/// umbra::Error if `x` has no such axis. mshadow's flip.
template <typename T, typename Own = detail::AssignableOf<T>>
inline FlipTarget<Own> flip(const T& x, int axis) {
  return {detail::Assignable(x), axis};
}

/// A and B, tensors or maps of some, as one that can be assigned to: each gets its part.
template <int axis, typename A, typename B, typename Value = detail::ValueOf<A>>
class ConcatTarget : public AssignableMap<ConcatTarget<axis, A, B>, index_map::concat, Value, detail::SourceOf<A>,
                                          detail::SourceOf<B>> {
 public:
  /// `a`, then `b`; concat<axis>() makes it. Throws umbra::Error if extents other than along `axis` differ.
  ConcatTarget(const A& a, const B& b) : ConcatTarget::AssignableMap({axis}, a.self(), b.self()), a_(a), b_(b) {}
  ConcatTarget(const ConcatTarget&) = default;
  using ConcatTarget::AssignableMap::operator=;
  /// Assigns elements, not the handles.
  ConcatTarget& operator=(const ConcatTarget& other) { return *this = other.self(); }
  /// The stream of the first tensor.
  auto* stream() const { return detail::StreamOf(a_); }
  /// Joins `value`, of the shape of both, into its two parts.
  template <typename Saver>
  void Put(const Value& value) const {
    decltype(value.shape_) from{};
    detail::JoinWithPart<Saver>(a_, value, from);
    from[axis] = a_.shape_[axis];
    detail::JoinWithPart<Saver>(b_, value, from);
  }

 private:
  A a_;
  B b_;
};
/// Two that can be assigned to give what can also be assigned to: `concat<axis>(a, b) = exp`. Throws umbra::Error if
/// extents other than along `axis` differ. mshadow's concat.
template <int axis, typename A, typename B, typename OwnA = detail::AssignableOf<A>,
          typename OwnB = detail::AssignableOf<B>>
inline ConcatTarget<axis, OwnA, OwnB> concat(const A& a, const B& b) {
  static_assert(std::is_same_v<detail::ValueOf<OwnA>, detail::ValueOf<OwnB>>,
                "umbra: concat() of tensors of different ranks, dtypes or devices");
  static_assert(axis >= 0 && axis < detail::ValueOf<OwnA>::kDimension,
                "umbra: concat<axis>() along an axis beyond the rank");
  return {detail::Assignable(a), detail::Assignable(b)};
}
/// Of three and more: `a`, then `b`, then the others, `concat<axis>(concat<axis>(a, b), c)` and so on.
template <int axis, typename A, typename B, typename C, typename... More>
inline auto concat(const A& a, const B& b, const C& c, const More&... more) {
  return concat<axis>(concat<axis>(a, b), c, more...);
}

}  // namespace umbra::expr

namespace umbra {
using expr::concat;
using expr::flip;
using expr::slice;
}  // namespace umbra

#endif  // UMBRA_EXTENSION_TARGET_H_

// The 16-bit floats as C++ types, and conversions among element types.
#ifndef UMBRA_HALF_H_
#define UMBRA_HALF_H_

#include <cstdint>
#include <type_traits>

#include "umbra/prelude/half.h"

namespace umbra {

namespace detail {

/// Which bits of a 16-bit float are what. No type, so that functions of tensors of halves are not looked for among
/// those of umbra::simd.
enum class Format16 { kIeee, kBrain };

/// A 16-bit float: converts to f32 exactly and from numbers with one rounding to nearest, ties to
/// even. Arithmetic is f32's, since it converts; a compound assignment rounds once.
template <Format16 format>
class Half16 {
  using Bits = std::conditional_t<format == Format16::kIeee, simd::f16, simd::bf16>;

 public:
  Half16() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Half16(T value)  // NOLINT: a number stands for its half
      : value_(simd::narrow<Bits>(static_cast<std::conditional_t<std::is_same_v<T, float>, float, double>>(value))) {}
  operator float() const { return simd::widen<float>(value_); }  // NOLINT

  static Half16 FromBits(std::uint16_t bits) {
    Half16 half;
    half.value_.bits = bits;
    return half;
  }
  std::uint16_t bits() const { return value_.bits; }

  Half16& operator+=(float b) { return *this = Half16(*this + b); }
  Half16& operator-=(float b) { return *this = Half16(*this - b); }
  Half16& operator*=(float b) { return *this = Half16(*this * b); }
  Half16& operator/=(float b) { return *this = Half16(*this / b); }

 private:
  Bits value_{};
};

}  // namespace detail

/// IEEE's 16-bit float: 11 bits of precision, up to 65504.
using half_t = detail::Half16<detail::Format16::kIeee>;
/// The upper half of an f32: 8 bits of precision, f32's range.
using bf16_t = detail::Half16<detail::Format16::kBrain>;

/// `value` as an element of To: floats to integers truncate and saturate, NaN becomes 0; integers to
/// narrower ones wrap around; to a 16-bit float rounds once; to bool is `!= 0`.
template <typename To, typename From>
To ConvertTo(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, half_t> || std::is_same_v<From, bf16_t>) {
    return ConvertTo<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_same_v<To, half_t> || std::is_same_v<To, bf16_t>) {
    return To(value);
  } else {
    return simd::cast<To>(value);
  }
}

}  // namespace umbra

#endif  // UMBRA_HALF_H_

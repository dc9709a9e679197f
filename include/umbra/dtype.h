// Element types: the run-time tag and its C++ types.
#ifndef UMBRA_DTYPE_H_
#define UMBRA_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "umbra/error.h"
#include "umbra/half.h"

namespace umbra {

/// Signed 64-bit index of elements, extents and strides.
using index_t = std::int64_t;

/// Element type of a tensor. f16, bf16, i8, u8 and i16 are only stored: see ComputeType.
enum class DType : std::uint8_t {
  kFloat32, kFloat64, kInt32, kBool, kInt64, kFloat16, kBFloat16, kInt8, kUInt8, kInt16
};

inline constexpr DType kAllDTypes[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt8,
                                       DType::kUInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kBool};

/// Short name as in the text form: f32, f64, f16, bf16, i8, u8, i16, i32, i64, bool.
constexpr std::string_view Name(DType type) {
  switch (type) {
    case DType::kFloat32: return "f32";
    case DType::kFloat64: return "f64";
    case DType::kInt32: return "i32";
    case DType::kBool: return "bool";
    case DType::kInt64: return "i64";
    case DType::kFloat16: return "f16";
    case DType::kBFloat16: return "bf16";
    case DType::kInt8: return "i8";
    case DType::kUInt8: return "u8";
    case DType::kInt16: return "i16";
  }
  return "?";
}

/// The dtype called `name`, if there is one.
constexpr std::optional<DType> FindDType(std::string_view name) {
  for (const DType type : kAllDTypes)
    if (Name(type) == name) return type;
  return std::nullopt;
}

/// Size of one element in bytes.
constexpr std::size_t SizeOf(DType type) {
  switch (type) {
    case DType::kFloat64:
    case DType::kInt64: return 8;
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt16: return 2;
    case DType::kBool:
    case DType::kInt8:
    case DType::kUInt8: return 1;
    case DType::kFloat32:
    case DType::kInt32: break;
  }
  return 4;
}

/// What values of the dtype are computed in: narrow types widen when they are loaded, f16 and bf16 to
/// f32, i8, u8 and i16 to i32, and are rounded or wrapped once, at the store.
constexpr DType ComputeType(DType type) {
  switch (type) {
    case DType::kFloat16:
    case DType::kBFloat16: return DType::kFloat32;
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kInt16: return DType::kInt32;
    default: return type;
  }
}
constexpr bool IsHalf(DType type) { return type == DType::kFloat16 || type == DType::kBFloat16; }
/// f32 or f64.
constexpr bool IsFloat(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat64;
}

/// DTypeOf<float>::value is DType::kFloat32, and so on; undefined for unsupported element types.
template <typename T>
struct DTypeOf;
#define UMBRA_DTYPE_OF(type, dtype) \
  template <>                       \
  struct DTypeOf<type> { static constexpr DType value = DType::dtype; }
UMBRA_DTYPE_OF(float, kFloat32);
UMBRA_DTYPE_OF(double, kFloat64);
UMBRA_DTYPE_OF(half_t, kFloat16);
UMBRA_DTYPE_OF(bf16_t, kBFloat16);
UMBRA_DTYPE_OF(std::int8_t, kInt8);
UMBRA_DTYPE_OF(std::uint8_t, kUInt8);
UMBRA_DTYPE_OF(std::int16_t, kInt16);
UMBRA_DTYPE_OF(std::int32_t, kInt32);
UMBRA_DTYPE_OF(std::int64_t, kInt64);
UMBRA_DTYPE_OF(bool, kBool);
#undef UMBRA_DTYPE_OF

/// Calls `body(T{})` with the C++ type of the dtype.
template <typename Body>
decltype(auto) SwitchDType(DType type, Body&& body) {
  switch (type) {
    case DType::kFloat64: return body(double{});
    case DType::kFloat16: return body(half_t{});
    case DType::kBFloat16: return body(bf16_t{});
    case DType::kInt8: return body(std::int8_t{});
    case DType::kUInt8: return body(std::uint8_t{});
    case DType::kInt16: return body(std::int16_t{});
    case DType::kInt32: return body(std::int32_t{});
    case DType::kInt64: return body(std::int64_t{});
    case DType::kBool: return body(bool{});
    case DType::kFloat32: break;
  }
  return body(float{});
}

}  // namespace umbra

#endif  // UMBRA_DTYPE_H_
